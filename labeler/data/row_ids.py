"""Ids of rows: each names one row, or copies of one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from labeler.data.repeats import SeenRows, row_digests
from labeler.data.rows import Row
from labeler.labels.record import LabelFailure
from labeler.sentences.example import Example


def identified(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield each row under an id that names it alone, or a copy of an earlier row under its id.

    A row without an id of its own that repeats an earlier one is named by the same digest with its
    number, ``sha256-…-2``. A row whose given id names another content is a failure.
    """
    with SeenRows() as seen:
        for row in rows:
            example = row.content
            if not isinstance(example, Example):
                yield row
                continue
            first = seen.add(row.where, row_digests(example))
            if first is None or (row.is_named and first.is_same):
                yield row
            elif row.is_named:
                yield Row(row.where, _conflict(row.where, example, first.where))
            else:
                yield Row(row.where, _numbered(row.where, example, seen))


def _numbered(where: str, example: Example, seen: SeenRows) -> Example:
    """Return a row without an id of its own under the next number of its digest."""
    digests = row_digests(example)
    while True:
        name = f"{example.id}-{seen.next_number(digests)}"
        named = example.model_copy(update={"id": name})
        if seen.add(where, row_digests(named)) is None:
            return named


def _conflict(where: str, row: Example, first: str) -> LabelFailure:
    """Return the failure of a row whose id names another one, under its place."""
    message = (
        f"{where}: id {row.id!r} stands already at {first} with other content; ids name records: "
        "give each row its own, name rows by several columns (--id), or leave ids out"
    )
    return LabelFailure(id=where, reason="id_conflict", message=message, metadata=row.metadata)
