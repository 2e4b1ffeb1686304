"""Numbers as tables: metric rows and summaries as CSV, Parquet, data frames and Arrow tables.

One row a record, or a summary; each metric has four columns: ``relevance``, its value,
``relevance.numerator``, ``relevance.denominator``, and ``relevance.undefined``, why it has none.
In CSV a text that a spreadsheet would take for a formula has an apostrophe in front.
"""

from __future__ import annotations

import csv
import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

from labeler.calculators import MetricsRow, SummaryRow
from labeler.data.label_files import replaced
from labeler.errors import UsageError
from labeler.sentences.characters import plain_json
from labeler.version import __version__

Record = dict[str, Any]


class Column(NamedTuple):
    """A column of a table."""

    name: str
    kind: Literal["text", "number", "count", "flag"]


_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_GROUP = 10_000
"""Rows in a row group of Parquet."""
_FRAME = (Column("id", "text"), Column("failed", "text"), Column("signature", "text"))
_METADATA = Column("metadata", "text")
_SUMMARY = (
    Column("metric", "text"),
    Column("group", "text"),
    Column("mean", "number"),
    Column("interval.low", "number"),
    Column("interval.high", "number"),
    Column("interval.level", "number"),
    Column("interval.method", "text"),
    Column("bounds.low", "number"),
    Column("bounds.high", "number"),
    Column("pooled", "number"),
    Column("defined", "count"),
    Column("undefined", "text"),
    Column("failed", "text"),
    Column("higher_is_better", "flag"),
    Column("signature", "text"),
)
_PARTS: dict[str, Literal["text", "number", "count"]] = {
    "value": "number",
    "numerator": "number",
    "denominator": "count",
    "undefined": "text",
}


def metric_columns(ids: Iterable[str]) -> tuple[Column, ...]:
    """The columns of metric rows: ``id``, ``failed``, ``signature``, the metrics, ``metadata``.

    Args:
        ids: of the metrics.
    """
    of_metrics = (
        Column(_column(metric, part), kind)
        for metric in dict.fromkeys(ids)
        for part, kind in _PARTS.items()
    )
    return (*_FRAME, *of_metrics, _METADATA)


def _column(metric: str, part: str) -> str:
    return metric if part == "value" else f"{metric}.{part}"


def metric_record(row: MetricsRow) -> Record:
    """A metric row as one row of a table; its other columns are JSON in ``metadata``."""
    told = row.as_json(__version__)
    numbers = {
        _column(metric, part): value
        for metric, ratio in told["metrics"].items()
        for part, value in ratio.items()
    }
    frame = {"id": told["id"], "failed": told["failed"], "signature": told["signature"]}
    return {**frame, **numbers, "metadata": _json(row.metadata) if row.metadata else None}


def summary_record(row: SummaryRow) -> Record:
    """A summary as one row of a table; ``undefined`` and ``failed`` are counts as JSON."""
    told: Record = dict(row.as_json(__version__))
    nested = {name: told.pop(name) or {} for name in ("interval", "bounds")}
    flat = {
        f"{name}.{part}": value for name, inner in nested.items() for part, value in inner.items()
    }
    counts = {name: _json(told[name]) if told[name] else None for name in ("undefined", "failed")}
    return {**told, **flat, **counts}


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def write_metric_rows(rows: Iterable[MetricsRow], path: str | Path) -> int:
    """Write metric rows to a file, which appears when it is whole.

    Which metrics have columns is known when the last row was seen; until then the rows stand in a
    nameless temporary file, so that very many of them need no memory.

    Args:
        rows: the rows.
        path: ``.csv``, ``.parquet``, ``.jsonl``, or one of the texts packed: ``.csv.gz``.

    Returns:
        How many there were.

    Raises:
        UsageError: the file's name ends in none of these, or it cannot be written.
    """
    if _is_lines(path):
        return _write_lines((row.as_json(__version__) for row in rows), path)
    ids: dict[str, None] = {}
    with tempfile.TemporaryFile("w+", encoding="utf-8") as spool:
        for row in rows:
            ids.update(dict.fromkeys(row.metrics))
            spool.write(_json(metric_record(row)) + "\n")
        spool.seek(0)
        return _write(map(json.loads, spool), metric_columns(ids), path)


def write_summaries(rows: Iterable[SummaryRow], path: str | Path) -> int:
    """Write summaries to a file, as :func:`write_metric_rows` writes rows.

    Raises:
        UsageError: the file's name has no such end, or it cannot be written.
    """
    if _is_lines(path):
        return _write_lines((row.as_json(__version__) for row in rows), path)
    return _write(map(summary_record, rows), _SUMMARY, path)


def check_table(path: str | Path) -> None:
    """Refuse names of files that numbers cannot be written to, before anything is computed.

    Raises:
        UsageError: the name ends in none of ``.csv``, ``.parquet``, ``.jsonl``.
    """
    if not _is_lines(path):
        _writer(path)


def _is_lines(path: str | Path) -> bool:
    return str(path).lower().removesuffix(".gz").endswith(".jsonl")


def _write_lines(values: Iterable[object], path: str | Path) -> int:
    with replaced(Path(path)) as file:
        return sum(file.write(plain_json(_json(value)) + "\n") > 0 for value in values)


_Write = Callable[[Record], None]


def _write(records: Iterable[Record], columns: Sequence[Column], path: str | Path) -> int:
    opened = _writer(path)
    count = 0
    with opened(Path(path), columns) as write:
        for count, record in enumerate(records, start=1):  # noqa: B007 - the number of the last
            write(record)
    return count


def _writer(path: str | Path) -> Callable[[Path, Sequence[Column]], Any]:
    name = str(path).lower()
    if name.endswith(".parquet"):
        return _parquet_writer
    if name.removesuffix(".gz").endswith(".csv"):
        return _csv_writer
    raise UsageError(f"{path}: numbers are written to .csv, .parquet or .jsonl; name such a file")


@contextmanager
def _csv_writer(path: Path, columns: Sequence[Column]) -> Iterator[_Write]:
    with replaced(path) as file:
        writer = csv.writer(file)  # it quotes what is in its line ends alone, so these stay both
        writer.writerow([guarded(column.name) for column in columns])

        def write(record: Record) -> None:
            writer.writerow([_cell(record.get(column.name)) for column in columns])

        yield write


def _cell(value: object) -> object:
    if isinstance(value, str):
        return guarded(value)
    return json.dumps(value) if isinstance(value, bool) else value


def guarded(text: str) -> str:
    """A text that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text


@contextmanager
def _parquet_writer(path: Path, columns: Sequence[Column]) -> Iterator[_Write]:
    import pyarrow as pa  # noqa: PLC0415 - slow to load

    from labeler.data.label_tables import parquet_writer  # noqa: PLC0415 - the same

    schema = _schema(pa, columns)
    with parquet_writer(path, schema) as writer:
        rows: list[Record] = []

        def flush() -> None:
            writer.write_batch(pa.RecordBatch.from_pylist(rows, schema=schema))
            rows.clear()

        def write(record: Record) -> None:
            rows.append(record)
            if len(rows) == _GROUP:
                flush()

        yield write
        if rows:
            flush()


def _schema(pa: Any, columns: Sequence[Column]) -> Any:  # noqa: ANN401 - pyarrow has no types
    kinds = {"text": pa.string(), "number": pa.float64(), "count": pa.int64(), "flag": pa.bool_()}
    return pa.schema([pa.field(column.name, kinds[column.kind]) for column in columns])


class _Table(NamedTuple):
    columns: tuple[Column, ...]
    records: list[Record]


def _table_of(rows: Iterable[MetricsRow | SummaryRow]) -> _Table:
    every = list(rows)
    of_metrics = [row for row in every if isinstance(row, MetricsRow)]
    of_summaries = [row for row in every if isinstance(row, SummaryRow)]
    if len(of_metrics) + len(of_summaries) < len(every) or (of_metrics and of_summaries):
        raise UsageError(
            "a table is of metric rows or of summaries: what metrics() or summary() give"
        )
    if of_summaries:
        return _Table(_SUMMARY, list(map(summary_record, of_summaries)))
    ids = dict.fromkeys(metric for row in of_metrics for metric in row.metrics)
    return _Table(metric_columns(ids), list(map(metric_record, of_metrics)))


def to_arrow(rows: Iterable[MetricsRow | SummaryRow]) -> Any:  # noqa: ANN401 - pyarrow has no types
    """Metric rows, or summaries, as a table of pyarrow.

    Raises:
        UsageError: pyarrow is not installed, or these are neither.
    """
    import pyarrow as pa  # noqa: PLC0415 - slow to load

    table = _table_of(rows)
    return pa.Table.from_pylist(table.records, schema=_schema(pa, table.columns))


def to_frame(rows: Iterable[MetricsRow | SummaryRow], library: str = "polars") -> Any:  # noqa: ANN401 - either library's
    """Metric rows, or summaries, as a data frame.

    Args:
        rows: what :func:`labeler.metrics` or :func:`labeler.summary` gives.
        library: ``polars`` or ``pandas``.

    Raises:
        UsageError: the library is neither, or not installed; or the rows are neither.
    """
    table = _table_of(rows)
    try:
        if library == "polars":
            return _polars(table)
        if library == "pandas":
            return _pandas(table)
    except ImportError as error:
        raise UsageError(f"to_frame needs {library}, which is not installed") from error
    raise UsageError(f"to_frame makes frames of polars or pandas, not of {library!r:.40}")


def _polars(table: _Table) -> Any:  # noqa: ANN401 - its own type would have it imported
    import polars as pl  # noqa: PLC0415 - installed by those who want it

    kinds = {"text": pl.String, "number": pl.Float64, "count": pl.Int64, "flag": pl.Boolean}
    schema = {column.name: kinds[column.kind] for column in table.columns}
    return pl.DataFrame(
        {
            c.name: [_number(c, record.get(c.name)) for record in table.records]
            for c in table.columns
        },
        schema=schema,
    )


def _pandas(table: _Table) -> Any:  # noqa: ANN401 - it need not be installed
    import pandas as pd  # noqa: PLC0415 - installed by those who want it

    kinds = {"text": "string", "number": "float64", "count": "Int64", "flag": "boolean"}
    return pd.DataFrame(
        {
            c.name: pd.Series([record.get(c.name) for record in table.records], dtype=kinds[c.kind])
            for c in table.columns
        }
    )


def _number(column: Column, value: object) -> object:
    return float(value) if column.kind == "number" and isinstance(value, int) else value
