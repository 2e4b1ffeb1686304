"""Delete records from a store: rows by id or metadata, and their bytes from the file.

Everything else in this package only adds. Deletion needs the file for itself: SQLite grants an
exclusive lock only while no other process, run or review has the store open.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from labeler.data.lines import replacing
from labeler.errors import StoreError
from labeler.labels.record import AnyOutcome, LabelFailure, LabelRecord
from labeler.store.disk import flush_directory, inspect_rows
from labeler.store.reader import FILE, Database, is_locked, open_connection, translated_errors


@dataclass(frozen=True)
class Selection:
    """Rows to delete.

    Attributes:
        ids: ids of rows; a row of any of them is selected.
        where: values of metadata fields, texts as they are and others as JSON; a row with all of
            them is selected.
    """

    ids: frozenset[str] = frozenset()
    where: Mapping[str, str] = field(default_factory=dict)

    def selects(self, id_: str, metadata: Mapping[str, Any]) -> bool:
        """Return true if a row of this id and metadata is selected."""
        if id_ in self.ids:
            return True
        return bool(self.where) and all(
            name in metadata and _is(metadata[name], wanted) for name, wanted in self.where.items()
        )

    def matches(self, outcome: AnyOutcome) -> bool:
        """Return true if a record or failure is of a selected row; steps are of no row."""
        if outcome.kind == "steps":
            return False
        metadata = outcome.metadata if isinstance(outcome, LabelFailure) else _example_of(outcome)
        return self.selects(outcome.id, metadata)


def _is(value: object, wanted: str) -> bool:
    return wanted == (value if isinstance(value, str) else json.dumps(value))


def _example_of(outcome: Any) -> Mapping[str, Any]:  # noqa: ANN401 - a record with an example
    found: Mapping[str, Any] = outcome.example.metadata
    return found


@dataclass
class Found:
    """Selected rows of one store file.

    Attributes:
        rowids: their numbers.
        kinds: kind of each.
        keys: label keys of them.
        unreadable: number of damaged rows, which may be of selected rows.
    """

    rowids: list[int] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)
    unreadable: int = 0

    def add(self, rowid: int, outcome: AnyOutcome) -> None:
        """Add a selected row."""
        self.rowids.append(rowid)
        self.kinds.append(outcome.kind)
        self.keys.add(str(outcome.key))


class ExclusiveFile(Database):
    """The file of a store that nobody else has open, from opening to closing.

    Raises:
        StoreError: someone else has it open, or it is no store that may be written.
    """

    def __init__(self, directory: Path) -> None:
        try:
            super().__init__(directory.absolute(), 0)
        except StoreError as error:
            if isinstance(error.__cause__, sqlite3.Error) and is_locked(error.__cause__):
                raise StoreError(
                    f"{directory} is in use by a run, a review or another command: end it, then "
                    "run this again; nothing was deleted"
                ) from error
            raise
        try:
            self.require_writable()
        except BaseException:
            self.close()
            raise

    def _connected(self, _lock_timeout: float) -> sqlite3.Connection:
        connection = open_connection(self.directory / FILE, "rw", 0)
        try:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
        except BaseException:
            connection.close()
            raise
        return connection

    def find(self, selection: Selection) -> Found:
        """Return the selected rows, failures of the same judgments, and their retrieval labels.

        A retrieval label stays while a label rests on it that is not selected.
        """
        found = Found()
        failures: dict[str, int] = {}
        rested, kept = set[str](), set[str]()
        for rowid, _, outcome, _ in inspect_rows(self):
            if outcome is None:
                found.unreadable += 1
                continue
            if isinstance(outcome, LabelFailure):
                failures[str(outcome.key)] = rowid
            matches = selection.matches(outcome)
            if isinstance(outcome, LabelRecord) and outcome.retrieval:
                (rested if matches else kept).add(outcome.retrieval.key)
            if matches and outcome.kind != "retrieval":
                found.add(rowid, outcome)
        self._add_retrievals(found, selection, rested, kept)
        further = {failures[key] for key in found.keys & failures.keys()} - {*found.rowids}
        found.rowids += further
        found.kinds += ["failure"] * len(further)
        return found

    def _add_retrievals(
        self, found: Found, selection: Selection, rested: set[str], kept: set[str]
    ) -> None:
        """Add the retrieval labels of selected rows.

        Args:
            found: the selected rows.
            selection: selects rows.
            rested: keys of those that selected labels rest on.
            kept: keys of those that other labels rest on.
        """
        for rowid, _, outcome, _ in inspect_rows(self):
            if outcome is None or outcome.kind != "retrieval":
                continue
            if outcome.key in kept:
                continue
            if outcome.key in rested or selection.matches(outcome):
                found.add(rowid, outcome)

    def delete(self, rowids: Iterable[int]) -> None:
        """Delete rows in one transaction.

        Raises:
            StoreError: the file cannot be written; nothing was deleted.
        """
        with self._lock, translated_errors(self.directory):
            connection = self._connection
            if connection is None:
                return
            connection.execute("BEGIN IMMEDIATE")
            try:
                connection.executemany(
                    "DELETE FROM Cache WHERE rowid = ?", ((rowid,) for rowid in rowids)
                )
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def wipe(self) -> None:
        """Rewrite the file without the bytes of deleted rows, and empty its log.

        Needs free disk space of twice the size of the file.
        """
        self._all("VACUUM")
        self._all("PRAGMA wal_checkpoint(TRUNCATE)")


def rewrite_without(path: Path, drops: Callable[[bytes], bool]) -> None:
    """Replace a file of lines durably and atomically by one without some of its lines."""
    with replacing(path) as partial:
        with path.open("rb") as lines, partial.open("wb") as kept:
            kept.writelines(line for line in lines if not drops(line))
            kept.flush()
            os.fsync(kept.fileno())
        partial.chmod(path.stat().st_mode)
    flush_directory(path.parent)
