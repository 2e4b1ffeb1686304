"""The first pass over the rows: they are read, checked and counted before any spend."""

from __future__ import annotations

import itertools
from collections.abc import Collection
from typing import NamedTuple

from labeler.data.rows import KnownRow, RecalledRows, Row, RowPart, Rows, distinct
from labeler.errors import BadRows
from labeler.labels.record import LabelFailure
from labeler.sentences.example import Example

_LONGEST_MESSAGE = 1_000
"""Characters of the first row's error in that of all rows."""


class RowCounts(NamedTuple):
    """The result of a first pass over the rows."""

    distinct: int
    repeated: int
    """Rows that repeat an earlier one in every field, and are skipped."""


def count_rows(rows: Rows | RecalledRows, needed: Collection[str] = ()) -> RowCounts:
    """Read and check all rows once, before any spend.

    Args:
        rows: the rows.
        needed: optional fields of an example, such as ``reference``, that nothing can be asked
            without.

    Raises:
        BadRows: every readable row lacks the same field.
        UsageError: the rows cannot be read, or two have the same id and different content.
    """
    read = itertools.count()
    lacking = _Lacking(frozenset(needed))
    watched = (lacking.watch(row) for row, _ in zip(rows, read, strict=False))
    kept = sum(1 for _ in distinct(watched))
    if not isinstance(rows, RowPart):  # other parts may have the field
        lacking.check()
    return RowCounts(kept, next(read) - kept)


class _Lacking:
    """The fields that every row so far lacks; lines that cannot be read at all are left out."""

    def __init__(self, needed: frozenset[str]) -> None:
        self._needed = needed
        self._rows = 0
        self._fields: frozenset[str] | None = None
        self._first = ""
        """What the first row has."""
        self._absent = True
        """False if the first row has the field in a wrong form."""

    def watch(self, row: Row | KnownRow) -> Row | KnownRow:
        if isinstance(row, KnownRow):  # a label was made of it, so it had all that was needed
            self._fields = frozenset()
            return row
        example, lacks = row.content, row.lacks
        if isinstance(example, Example):
            lacks = frozenset(n for n in self._needed if not (getattr(example, n) or "").strip())
        elif not lacks:
            return row
        if self._fields is None:
            self._first, self._absent = (
                _columns_found(row),
                getattr(example, "reason", "") != "wrong_type",
            )
        self._rows += 1
        self._fields = lacks if self._fields is None else self._fields & lacks
        return row

    def check(self) -> None:
        if self._fields:
            field, *others = sorted(self._fields, key=tuple(Example.model_fields).index)
            more = f" (nor {', '.join(map(repr, others))})" if others else ""
            rows = f"none of {self._rows:,} rows has" if self._rows > 1 else "the row has no"
            remedy = (
                f". Name its column by --map {field}=COLUMN, in Python by "
                f"columns={{{field!r}: 'COLUMN'}}"
                if field != "id"
                else ""
            )
            raise BadRows(
                f"{rows} {field!r}{more}, so nothing was asked: "
                f"{self._first:.{_LONGEST_MESSAGE}}{remedy if self._absent else ''}"
            )


def _columns_found(row: Row) -> str:
    """Return the error of a row, or the columns of a readable one."""
    if isinstance(row.content, LabelFailure):
        return row.content.message
    fields = [name for name in Example.model_fields if getattr(row.content, name)]
    return f"{row.where} has {', '.join([*fields, *row.content.metadata])}"
