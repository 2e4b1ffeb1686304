"""The first pass over the rows: they are read, checked and counted before any spend."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from labeler.data.rows import KnownRow, RecalledRows, Row, RowFile, RowPart, Rows
from labeler.errors import BadRows, UsageError
from labeler.labels.record import LabelFailure
from labeler.sentences.example import Example

_LONGEST_MESSAGE = 1_000
"""Characters of the first row's error in that of all rows."""
_MOST_COLUMNS = 1_000
"""Columns of all rows whose names are kept for the remedy."""


def count_rows(rows: Rows | RecalledRows, needed: Collection[str] = ()) -> int:
    """Read and count all rows once, before any spend.

    Args:
        rows: the rows.
        needed: optional fields of an example, such as ``reference``, that nothing can be asked
            without.

    Raises:
        BadRows: every readable row lacks a field.
        UsageError: the rows cannot be read, or there are none.
    """
    lacking = _Lacking(frozenset(needed))
    count = sum(1 for _ in map(lacking.watch, rows))
    if not isinstance(rows, RowPart):  # other parts may have rows, and the field
        lacking.check()
        files = rows.rows if isinstance(rows, RecalledRows) else rows
        if not count and isinstance(files, RowFile):
            raise UsageError(
                f"{', '.join(files.names) or 'the input'} holds no rows: nothing was asked; write "
                "one JSON object a line, or a CSV line below the names of the columns"
            )
    return count


class _Lacking:
    """The fields that rows lack, if every row lacks one; lines without columns are left out."""

    def __init__(self, needed: frozenset[str]) -> None:
        self._needed = needed
        self._rows = 0
        self._fields: frozenset[str] | None = frozenset()
        """Fields that a row lacks, ``None`` once a row lacks none."""
        self._first = ""
        """What the first row has."""
        self._absent = True
        """False if the first row has the field in a wrong form."""
        self._columns: dict[str, Any] = {}
        """Columns of the rows, each with a value."""

    def watch(self, row: Row | KnownRow) -> Row | KnownRow:
        if isinstance(row, KnownRow):  # a label was made of it, so it had all that was needed
            self._fields = None
            return row
        example, lacks = row.content, row.lacks
        if isinstance(example, Example):
            lacks = frozenset(n for n in self._needed if not (getattr(example, n) or "").strip())
        elif not lacks:
            return row
        if not self._rows:
            self._first = _columns_found(row)
            self._absent = getattr(example, "reason", "") != "wrong_type"
        self._rows += 1
        self._fields = self._fields | lacks if lacks and self._fields is not None else None
        if self._fields is not None and len(self._columns) < _MOST_COLUMNS:
            columns = example.metadata if isinstance(example, Example) else row.columns or {}
            self._columns |= {n: v for n, v in columns.items() if self._columns.get(n) is None}
        return row

    def check(self) -> None:
        if not self._fields:
            return
        lacking = sorted(self._fields, key=tuple(Example.model_fields).index)
        field, *others = lacking
        more = f" (nor {', '.join(map(repr, others))})" if others else ""
        rows = f"none of {self._rows:,} rows has" if self._rows > 1 else "the row has no"
        remedy = _remedy(lacking, self._columns) if self._absent and field != "id" else ""
        raise BadRows(
            f"{rows} {field!r}{more}, so nothing was asked: "
            f"{self._first:.{_LONGEST_MESSAGE}}{remedy}"
        )


def _remedy(lacking: Sequence[str], columns: Mapping[str, Any]) -> str:
    """Return the mappings that rows need, by the names of their columns."""
    from labeler.data.field_meanings import map_options, mappings  # noqa: PLC0415 - rare

    unknown = {name: "COLUMN" for name in lacking if columns.get(name) is None}
    found = unknown | mappings(columns)
    is_text = found.get("documents", "").endswith(",")
    note = "; the comma makes a text one document, --split-documents SEP splits it" * is_text
    return f". Pass {map_options(found)} (in Python columns={found!r}{note})"


def _columns_found(row: Row) -> str:
    """Return the error of a row, or the columns of a readable one."""
    if isinstance(row.content, LabelFailure):
        return row.content.message
    fields = [name for name in Example.model_fields if getattr(row.content, name)]
    return f"{row.where} has {', '.join([*fields, *row.content.metadata])}"
