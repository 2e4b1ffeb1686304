"""Merge, verify, fill and thin out label stores; a merge also rescues a damaged store's records.

Deletion needs the file for itself: SQLite grants an exclusive lock only while no other process, run
or review has the store open.
"""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from labeler.catalog import named_keywords
from labeler.data.label_files import is_store
from labeler.data.options import DEFAULT_STORE
from labeler.errors import StoreError, UsageError
from labeler.labels.record import (
    AnyOutcome,
    AnyRecord,
    LabelFailure,
    LabelRecord,
    given_outcome,
)
from labeler.labels.retrieval_record import retrieval_of
from labeler.store import DamagedRecord, decode_fully, misplaced, name_of
from labeler.store.database import Database, damaged
from labeler.store.disk import DiskStore

_QUEUED = 1000
"""Most records that are being saved at a time."""


@dataclass
class Reading:
    """The findings of a reading of all rows of a store.

    Attributes:
        sound: sound rows by kind.
        misplaced: an error for each row whose key is damaged, and whose outcome is sound: a record
            proves its own key.
        damaged: an error for each other damaged row.
    """

    sound: Counter[str] = field(default_factory=Counter)
    misplaced: list[StoreError] = field(default_factory=list)
    damaged: list[StoreError] = field(default_factory=list)

    def rows(self, database: Database) -> Iterator[tuple[int, Any]]:
        """Yield number and outcome of every readable row."""
        numbers, faults = database.salvaged()
        self.damaged += faults
        for rowid in numbers:
            try:
                row = database.row(rowid)
                outcome = decode_fully(row.data())
            except StoreError as error:
                self.damaged.append(error)
            except DamagedRecord as error:
                self.damaged.append(damaged(database.directory, row.name, error))
            else:
                if row.name == name_of(outcome):
                    self.sound[outcome.kind] += 1
                else:
                    fault = damaged(database.directory, row.name, misplaced(outcome))
                    self.misplaced.append(fault)
                yield rowid, outcome


@dataclass
class Imported:
    """Counts of records that were put into a store.

    Attributes:
        new: records that were saved.
        present: records that the store already had, or that came twice.
        failures: failures that were saved.
        differing: ids of those whose key has another answer in the store, which was kept.
    """

    new: int = 0
    present: int = 0
    failures: int = 0
    differing: list[str] = field(default_factory=list)

    def put(self, outcomes: Iterable[AnyOutcome], store: DiskStore) -> None:
        """Put outcomes into a store, and count them; a key that it holds keeps its outcome."""
        left = iter(outcomes)
        while group := [*islice(left, _QUEUED)]:
            saving = [
                (outcome, store.put(outcome))
                for outcome in group
                if not (isinstance(outcome, LabelFailure) and store.failure(str(outcome.key)))
            ]
            for outcome, saved in saving:
                is_new = saved.result()
                if isinstance(outcome, LabelFailure):
                    self.failures += 1
                elif is_new:
                    self.new += 1
                else:
                    self.present += 1
                    kept = store.get(outcome.key)
                    if kept is not None and kept.answer != outcome.answer:
                        self.differing.append(outcome.id)


@dataclass
class MergeResult(Imported, Reading):
    """Counts of a merge, and faults of its sources; misplaced records were copied."""


def stores_in(*paths: str | Path) -> list[Path]:
    """Return the label store in each folder, or those in its subfolders, each once.

    Raises:
        UsageError: a folder has none.
    """
    found: dict[Path, None] = {}
    for folder in map(Path, paths):
        inside = sorted(folder.iterdir()) if folder.is_dir() else []
        stores = [folder] if is_store(folder) else [one for one in inside if is_store(one)]
        if not stores:
            raise UsageError(
                f"no label store in {folder} or the folders inside it; name the folder that "
                "'labeler label --store' wrote to (by default .labeler)"
            )
        found |= dict.fromkeys(stores)
    return [*found]


def merge_stores(sources: Iterable[Path], into: str | Path) -> MergeResult:
    """Copy the content of other stores into one; the sources are not changed.

    A key that the target already has keeps its first record, and its failure. Merging again changes
    nothing. Damaged records are skipped; a record whose row has a damaged key is copied under its
    own key. Sources whose settings or rows were tampered with can be read, so merging a damaged
    store into a new one rescues its sound records.

    Args:
        sources: folders of stores.
        into: the target store's folder; created if missing.

    Raises:
        UsageError: one of the sources is the target.
        StoreError: a store cannot be read at all, or the target cannot be written.
    """
    target, found = Path(into), [*sources]
    if any(one.resolve() == target.resolve() for one in found):
        raise UsageError(f"{target} is the store to merge into: name the others")
    result = MergeResult()
    with DiskStore(target) as store:
        for source in found:
            with closing(Database(source.absolute())) as opened:
                result.put((outcome for _, outcome in result.rows(opened)), store)
    return result


def verify_store(store: Path) -> Reading:
    """Read every row of a store, and compare each with its checksum, its own key and the contract.

    Returns:
        What was found; ``damaged`` begins with what SQLite reports.

    Raises:
        StoreError: the store cannot be read at all.
    """
    found = Reading()
    with closing(Database(store.absolute())) as database:
        try:
            defects = [line for (line,) in database.all("PRAGMA integrity_check(10)")]
        except StoreError as error:
            defects = [error]
        for defect in defects if defects != ["ok"] else ():
            found.damaged.append(StoreError(f"label store {store}: SQLite reports: {defect}"))
        deque(found.rows(database), maxlen=0)
    return found


@named_keywords
def import_labels(outcomes: Iterable[AnyOutcome], store: str | Path = DEFAULT_STORE) -> Imported:
    """Put records of any kind into a store; a key that it holds already keeps its first record.

    A store holds judgments, not rows: records of different rows that request the same judgment of
    the same sentences are one. Failures are skipped. A label brings the retrieval label that it
    rests on, which is not counted.

    Args:
        outcomes: records and failures, such as those of a label file.
        store: the store's folder; it is made if it does not exist.

    Returns:
        How many records were new, present, and present with another label.

    Raises:
        StoreError: the store cannot be read or written.

    Example:
        >>> labeler.store.import_labels(labels, folder / "store").new
        14
    """
    result, rested = Imported(), dict[str, AnyRecord]()

    def records() -> Iterator[AnyRecord]:
        for number, record in enumerate(outcomes, start=1):
            given_outcome(f"outcome {number}", record)
            if isinstance(record, LabelRecord) and (found := retrieval_of(record)):
                rested[found.key] = found  # would be bought again
            if not isinstance(record, LabelFailure):
                yield record

    with DiskStore(store) as labels:
        result.put(records(), labels)
        # Last, because the outcomes may hold them with the facts of the judge's reply.
        Imported().put(rested.values(), labels)
    return result


@dataclass(frozen=True)
class RowSelection:
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
        found = {
            name: value if isinstance(value, str) else json.dumps(value)
            for name, value in metadata.items()
            if name in self.where
        }
        return id_ in self.ids or (bool(self.where) and found == self.where)

    def matches(self, outcome: AnyOutcome) -> bool:
        """Return true if a record or failure is of a selected row; some are of no row."""
        if isinstance(outcome, LabelFailure):
            return self.selects(outcome.id, outcome.metadata)
        example: Any = getattr(outcome, "example", None)
        if isinstance(example, dict):  # of a record that no installed package reads
            return self.selects(outcome.id, example.get("metadata") or {})
        return example is not None and self.selects(outcome.id, example.metadata)


@dataclass
class Found(Reading):
    """Selected rows of one store file; damaged rows may be of selected ones too.

    Attributes:
        rowids: numbers of the rows.
        kinds: numbers of rows by kind.
        keys: label keys of the rows.
        ids: ids of the rows.
    """

    rowids: list[int] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)
    keys: set[str] = field(default_factory=set)
    ids: set[str] = field(default_factory=set)

    def add(self, kind: str, rowid: int, key: str) -> None:
        """Add a selected row."""
        self.rowids.append(rowid)
        self.kinds[kind] += 1
        self.keys.add(key)


def find_rows(database: Database, selection: RowSelection) -> Found:
    """Return the selected rows, failures of the same judgments, and their retrieval labels.

    A retrieval label stays while a label rests on it that is not selected.
    """
    found, further = Found(), list[tuple[str, int, str, bool]]()
    rested, kept = set[str](), set[str]()
    for rowid, outcome in found.rows(database):
        row, is_selected = (outcome.kind, rowid, str(outcome.key)), selection.matches(outcome)
        if is_selected:
            found.ids.add(outcome.id)
        if outcome.kind in {"retrieval", "failure"}:
            further.append((*row, is_selected))
            continue
        if is_selected:
            found.add(*row)
        if isinstance(outcome, LabelRecord) and outcome.retrieval:
            (rested if is_selected else kept).add(outcome.retrieval.key)
    # What rests on a retrieval is known only now; a failure of a retrieval comes after it.
    for kind, rowid, key, is_selected in sorted(further, reverse=True):
        belongs = key in (rested if kind == "retrieval" else found.keys)
        if (is_selected or belongs) and not (kind == "retrieval" and key in kept):
            found.add(kind, rowid, key)
    return found
