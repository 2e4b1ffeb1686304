"""Rows of a run: read, parsed and identified once, in order."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from labeler.data.row_ids import identified
from labeler.data.rows import FIRST_ROWS, Row, RowFile, RowPart, Rows
from labeler.errors import BadRows, UsageError
from labeler.labels.record import LabelFailure
from labeler.sentences.example import Example

_LONGEST_MESSAGE = 1_000
"""Characters of the first row's error in the error about all rows."""
_MOST_COLUMNS = 1_000
"""Columns of all rows whose names are kept for the remedy."""
_MOST_MEMORY = 64 << 20
"""Bytes of first rows that are held, roughly."""


class RowStream:
    """Rows under their ids; iterate over it once.

    The first rows are read at once, so that a fault of all of them stops a run before any spend.

    Args:
        rows: the rows.
        needed: optional fields of an example, such as ``reference``, that nothing can be asked
            without.
        notice: receives messages for people about how rows are read.

    Attributes:
        first: the first rows.

    Raises:
        BadRows: the first rows all lack a field, or all fail for one reason.
        UsageError: the rows cannot be read, or there are none.
    """

    def __init__(
        self,
        rows: Rows,
        needed: Collection[str] = (),
        notice: Callable[[str], object] = lambda _: None,
    ) -> None:
        self._rows, self._notice = rows, notice
        self._reported: dict[str, str] = {}
        self._rest = iter(rows)
        self.first: list[Row] = []
        memory = 0
        for row in self._rest:
            self.first.append(row)
            memory += row.memory
            if len(self.first) == FIRST_ROWS or memory > _MOST_MEMORY:
                break
        if not isinstance(rows, RowPart):  # other parts may have rows, and the field
            self._check(needed)
        self._report()

    def __iter__(self) -> Iterator[Row]:
        yield from identified(chain(self._taken(), self._rest))
        self._report()

    def total(self) -> int | None:
        """Return the number of rows where it can be counted exactly without reading them."""
        return self._rows.total()

    def _report(self) -> None:
        """Report messages that are new, or count more rows than before."""
        notices = dict(self._rows.notices)
        for text in notices.values():
            if text not in self._reported.values():
                self._notice(text)
        self._reported = notices

    def _taken(self) -> Iterator[Row]:
        """Yield the first rows, and hold each no longer."""
        first, self.first = self.first[::-1], []
        while first:
            yield first.pop()

    def _check(self, needed: Collection[str]) -> None:
        lacking = _Lacking(frozenset(needed))
        for row in self.first:
            lacking.watch(row)
        lacking.check()
        if not self.first and isinstance(self._rows, RowFile):
            raise UsageError(
                f"{', '.join(self._rows.names) or 'the input'} holds no rows: nothing was asked; "
                "write one JSON object a line, or a CSV line below the names of the columns"
            )
        failures = [row.content for row in self.first if isinstance(row.content, LabelFailure)]
        reasons = {failure.reason for failure in failures}
        if len(failures) == len(self.first) == FIRST_ROWS and len(reasons) == 1:
            raise BadRows(
                f"none of the first {FIRST_ROWS} rows can be read ({reasons.pop()}), so nothing "
                f"was asked: {failures[0].message:.{_LONGEST_MESSAGE}}"
            )


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

    def watch(self, row: Row) -> None:
        example, lacks = row.content, row.lacks
        if isinstance(example, Example):
            lacks = frozenset(n for n in self._needed if not (getattr(example, n) or "").strip())
        elif not lacks:
            return
        if not self._rows:
            self._first = _columns_found(row)
            self._absent = getattr(example, "reason", "") != "wrong_type"
        self._rows += 1
        self._fields = self._fields | lacks if lacks and self._fields is not None else None
        if self._fields is not None and len(self._columns) < _MOST_COLUMNS:
            columns = example.metadata if isinstance(example, Example) else row.columns or {}
            self._columns |= {n: v for n, v in columns.items() if self._columns.get(n) is None}

    def check(self) -> None:
        if not self._fields:
            return
        lacking = sorted(self._fields, key=tuple(Example.model_fields).index)
        field, *others = lacking
        more = f" (nor {', '.join(map(repr, others))})" if others else ""
        first = "the first " * (self._rows == FIRST_ROWS)
        rows = f"none of {first}{self._rows:,} rows has" if self._rows > 1 else "the row has no"
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
