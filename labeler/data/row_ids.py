"""Ids of rows: each names one row, or copies of one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar, cast

from labeler.data.repeats import RowDigests, SeenRows, row_digests
from labeler.data.rows import KnownRow, Row
from labeler.labels.record import LabelFailure
from labeler.sentences.example import Example

RowT = TypeVar("RowT", bound=Row | KnownRow)


def identified(rows: Iterable[RowT]) -> Iterator[RowT]:
    """Yield each row under an id that names it alone, or a copy of an earlier row under its id.

    A row without an id of its own that repeats an earlier one is named by the same digest with its
    number, ``sha256-…-2``. A row whose given id names another content is a failure.
    """
    with SeenRows() as seen:
        for row in rows:
            digests = _digests_of(row)
            first = None if digests is None else seen.add(row.where, digests)
            if first is None:
                yield row
                continue
            parsed = row.parse() if isinstance(row, KnownRow) else row
            example = parsed.content
            if parsed.is_named and not first.is_same:
                content: Example | LabelFailure = _conflict(row.where, example, first.where)
            elif not parsed.is_named and isinstance(example, Example):
                content = _numbered(row.where, example, seen)
            else:
                yield row
                continue
            yield cast("RowT", Row(row.where, content))


def _numbered(where: str, example: Example, seen: SeenRows) -> Example:
    """Return a row without an id of its own under the next number of its digest."""
    digests = row_digests(example)
    while True:
        name = f"{example.id}-{seen.next_number(digests)}"
        named = example.model_copy(update={"id": name})
        if seen.add(where, row_digests(named)) is None:
            return named


def _conflict(where: str, row: Example | LabelFailure, first: str) -> LabelFailure:
    """Return the failure of a row whose id names another one, under its place."""
    message = (
        f"{where}: id {row.id!r} stands already at {first} with other content; ids name records: "
        "give each row its own, name rows by several columns (--id), or leave ids out"
    )
    return LabelFailure(id=where, reason="id_conflict", message=message, metadata=row.metadata)


def _digests_of(row: Row | KnownRow) -> RowDigests | None:
    if row.digests or isinstance(row, KnownRow):
        return row.digests
    return row_digests(row.content) if isinstance(row.content, Example) else None
