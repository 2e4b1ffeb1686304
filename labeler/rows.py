"""Input rows: read, checked, and told apart before any spend."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from labeler.errors import BadRow, UsageError
from labeler.example import Example
from labeler.lines import Line, parse_object, read_lines
from labeler.parsing import id_of, joined_id, metadata_of, refuse_surrogates, to_example
from labeler.record import LabelFailure
from labeler.signature import digest


class Row(NamedTuple):
    """One input row: an example, or the failure that takes its place."""

    where: str
    """``FILE:LINE``, or ``row N`` for rows that come from Python."""
    content: Example | LabelFailure


class RowFile:
    """The rows of JSON Lines files; iterating again reads the files again.

    What can be read once only, such as standard input or a pipe, is kept in memory.

    Args:
        paths: files, read one after the other.
        id_from: columns that together name a row, joined by ``/``; by default the column ``id``.
    """

    def __init__(self, *paths: str | Path, id_from: Sequence[str] = ()) -> None:
        self._id_from = id_from
        self._sources: list[str | Path | list[Line]] = [
            path if Path(path).is_file() else list(read_lines(path)) for path in paths
        ]

    def __iter__(self) -> Iterator[Row]:
        """Each row in turn; a line that is no example becomes a failure in its place."""
        for source in self._sources:
            for line in source if isinstance(source, list) else read_lines(source):
                try:
                    yield _row(self._fields(line), line.where)
                except BadRow as error:
                    yield Row(line.where, _failure(line.where, error))

    def _fields(self, line: Line) -> dict[str, Any]:
        fields = parse_object(line)
        if self._id_from:
            fields["id"] = joined_id(fields, self._id_from, line.where)
        return fields


@dataclass(frozen=True)
class RowSequence:
    """Rows given from Python: examples, or mappings with the same fields."""

    rows: Sequence[Example | Mapping[str, Any]]

    def __iter__(self) -> Iterator[Row]:
        """Each row in turn; a mapping that is no example becomes a failure in its place."""
        for number, row in enumerate(self.rows, start=1):
            yield _row(row.model_dump() if isinstance(row, Example) else row, f"row {number}")


Rows = RowFile | RowSequence
"""Rows that can be read more than once."""


def _row(fields: Mapping[str, Any], where: str) -> Row:
    """An example, or a failure that keeps the row's name and columns where they can be read."""
    try:
        return Row(where, to_example(fields, where))
    except BadRow as error:
        name, metadata = where, {}
        with contextlib.suppress(BadRow, AttributeError):
            metadata = metadata_of(fields, where)
            refuse_surrogates({"id": fields.get("id")}, where)
            name = where if fields.get("id") is None else id_of(fields, where)
        return Row(where, _failure(name, error, metadata))


def _failure(name: str, error: BadRow, metadata: dict[str, Any] | None = None) -> LabelFailure:
    return LabelFailure(id=name, reason=error.reason, message=str(error), metadata=metadata or {})


def distinct(rows: Iterable[Row]) -> Iterator[Row]:
    """Pass on each row once; a row that repeats an earlier one in every field is left out.

    Raises:
        UsageError: two rows share an id and differ in content.
    """
    seen: dict[str, tuple[str, str]] = {}
    for row in rows:
        if not isinstance(row.content, Example):
            yield row
            continue
        content = digest(row.content.model_dump(mode="json"))
        if row.content.id not in seen:
            seen[row.content.id] = row.where, content
            yield row
        elif seen[row.content.id][1] != content:
            raise UsageError(
                f"{row.where}: id {row.content.id!r} stands already at {seen[row.content.id][0]} "
                "with other content; ids name records: give each row its own, or name rows by "
                "several columns (--id)"
            )


class Survey(NamedTuple):
    """What a first reading of the rows found."""

    distinct: int
    repeated: int
    """Rows that repeat an earlier one in every field, and are left out."""


def survey(rows: Rows) -> Survey:
    """Read all rows once, before any spend.

    Raises:
        UsageError: the rows cannot be read, or two of them share an id and differ in content.
    """
    read = itertools.count()
    kept = sum(1 for _ in distinct(row for row, _ in zip(rows, read, strict=False)))
    return Survey(kept, next(read) - kept)
