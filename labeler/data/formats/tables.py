"""Rows of Python tables: data frames, Arrow tables and Hugging Face data sets.

Tables are recognized by their interface. No library is imported that the caller has not imported
already, except pyarrow for objects that only speak the Arrow protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sized
from typing import Any

from labeler.data.formats import require_pyarrow, twice
from labeler.data.formats.plain import plain_row
from labeler.errors import UsageError

_ROWS = 1024
"""Rows of a data frame that are converted to Python objects at once."""


class Table:
    """The rows of a table; each iteration reads them again.

    Args:
        read: starts a new iteration.
        given: the object that holds the rows.

    Attributes:
        total: number of rows; ``None`` if the object does not know it.
    """

    def __init__(self, read: Callable[[], Iterator[Mapping[str, Any]]], given: object) -> None:
        self._read = read
        self.total = len(given) if isinstance(given, Sized) else None

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return self._read()


def table_of(rows: object) -> Table | None:
    """Return the rows of a table; ``None`` if the object is not a known kind of table.

    Known kinds: data frames of polars and pandas, Hugging Face data sets, and objects that export
    an Arrow stream, such as pyarrow tables.

    Raises:
        UsageError: the data set has several splits, two columns have one name, or pyarrow is needed
            and not installed.
    """
    given: Any = rows
    library = type(rows).__module__.partition(".")[0]
    if library == "polars" and hasattr(rows, "collect"):
        given = given.collect()
    if library == "polars" and hasattr(given, "iter_rows"):
        return Table(lambda: map(plain_row, given.iter_rows(named=True)), given)
    if library == "pandas" and hasattr(rows, "to_dict"):
        if (name := twice(map(str, getattr(given, "columns", ())))) is not None:
            raise UsageError(f"the frame has two columns {name!r:.40}; give each its own name")
        return Table(lambda: _pandas_rows(given), given)
    if library == "datasets" and isinstance(rows, Mapping):
        if len(rows) == 1:
            return table_of(next(iter(rows.values())))
        raise UsageError(
            f"these are several splits ({', '.join(rows):.200}): pass one, such as data[SPLIT]"
        )
    if library == "datasets":
        return Table(lambda: map(plain_row, iter(given)), given)
    if hasattr(rows, "__arrow_c_stream__"):
        require_pyarrow("an Arrow table")
        from labeler.data.formats.arrow_files import rereadable, table_rows  # noqa: PLC0415 - loads pyarrow

        kept = rereadable(rows)
        return Table(lambda: table_rows(kept), kept)
    return None


def _pandas_rows(frame: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401 - pandas may be missing
    for start in range(0, len(frame), _ROWS):
        for row in frame.iloc[start : start + _ROWS].to_dict("records"):
            yield plain_row(row)
