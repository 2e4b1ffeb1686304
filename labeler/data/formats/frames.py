"""Tables of Python as rows: data frames, Arrow tables, and data sets, by what they can do.

None of the libraries is imported that the caller has not imported already, but pyarrow for what
speaks its protocol only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from labeler.data.formats.plain import plain_row
from labeler.errors import UsageError

_ROWS = 1024
"""Rows of a data frame that are turned into objects at once."""


class Table:
    """A table's rows, as often as they are asked for.

    Args:
        read: begins to read them.
    """

    def __init__(self, read: Callable[[], Iterator[Mapping[str, Any]]]) -> None:
        self._read = read

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return self._read()


def table_of(rows: object) -> Table | None:
    """The table that something from Python is; ``None`` where it is none.

    Known are data frames of polars and pandas, data sets of the Hugging Face library, and what
    gives out an Arrow stream, such as tables of pyarrow.

    Raises:
        UsageError: it is an Arrow table, and pyarrow is not installed; or it has several splits.
    """
    given: Any = rows
    kind = type(rows).__module__.partition(".")[0]
    if kind == "polars" and hasattr(rows, "collect"):
        return table_of(given.collect())
    if kind == "polars" and hasattr(rows, "iter_rows"):
        return Table(lambda: map(plain_row, given.iter_rows(named=True)))
    if kind == "pandas" and hasattr(rows, "to_dict"):
        return Table(lambda: _pandas_rows(given))
    if kind == "datasets" and isinstance(rows, Mapping):
        raise UsageError(f"these are several splits ({', '.join(rows):.200}): give the rows of one")
    if kind == "datasets":
        return Table(lambda: map(plain_row, iter(given)))
    if hasattr(rows, "__arrow_c_stream__"):
        from labeler.data.formats.arrow_files import held, table_rows  # noqa: PLC0415 - loads pyarrow

        kept = held(rows)
        return Table(lambda: table_rows(kept))
    return None


def _pandas_rows(frame: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401 - pandas need not be there
    for start in range(0, len(frame), _ROWS):
        for row in frame.iloc[start : start + _ROWS].to_dict("records"):
            yield plain_row(row)
