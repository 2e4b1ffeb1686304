"""Label files as Parquet: one record or failure per row, without loss.

Single values of a record, such as its kind, key or failure reason, are typed columns. Nested
values, such as the sentences and the label, are JSON in text columns. Reading a row restores the
line that JSON Lines would hold.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from labeler.data.formats.arrow_files import arrow_errors
from labeler.data.formats.parquet_files import ParquetRows
from labeler.data.lines import Line, checksum, open_bytes, replacing
from labeler.errors import UsageError
from labeler.labels.record import AnyOutcome, LabelFailure

T = TypeVar("T", bound=AnyOutcome)

_TEXTS = ("kind", "key", "method", "reason", "message")
_COUNTS = ("version", "samples", "attempts", "reasks")
_FLAGS = ("lasting",)
_NESTED = (
    "example",
    "label",
    "verbatim",
    "normalised",
    "violations",
    "signature",
    "reply",
    "scores",
    "not_measured",
    "retrieval",
    "criterion",
    "answer",
    "distribution",
    "similarity",
    "usage",
    "metadata",
)
_CHECKSUM = "checksum"
"""That of the line of JSON that the row stands for."""
_ID = "id"
"""A field of a failure; for a record, a copy of its example's id for readers of the table."""

SCHEMA = pa.schema(
    [pa.field(_ID, pa.string())]
    + [pa.field(name, pa.string()) for name in _TEXTS]
    + [pa.field(name, pa.int64()) for name in _COUNTS]
    + [pa.field(name, pa.bool_()) for name in _FLAGS]
    + [pa.field(name, pa.string()) for name in (*_NESTED, _CHECKSUM)]
)
GROUP = 1000
"""Records in a row group, the unit held in memory when reading and writing."""
_LARGEST_GROUP = 1 << 26
"""Characters after which a row group ends early."""


def row_of(outcome: AnyOutcome) -> dict[str, Any]:
    """Return an outcome as a row of the table."""
    fields = outcome.model_dump(mode="json")
    row = {
        name: json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        if name in _NESTED and value is not None
        else value
        for name, value in fields.items()
    }
    row[_ID] = outcome.id
    row = {name: row.get(name) for name in SCHEMA.names}
    return {**row, _CHECKSUM: checksum(_json_of(row).encode()).decode()}


def write_parquet(outcomes: Iterable[T], path: str | Path) -> Iterator[T]:
    """Write outcomes as Parquet and yield each; the file appears once it is complete.

    Raises:
        UsageError: the file cannot be written.
    """
    rows: list[dict[str, Any]] = []
    size = 0
    with parquet_writer(Path(path), SCHEMA) as writer:

        def flush() -> None:
            if rows:
                writer.write_batch(pa.RecordBatch.from_pylist(rows, schema=SCHEMA))
                rows.clear()

        for outcome in outcomes:
            row = row_of(outcome)
            rows.append(row)
            size += sum(len(value) for value in row.values() if isinstance(value, str))
            if len(rows) >= GROUP or size >= _LARGEST_GROUP:
                flush()
                size = 0
            yield outcome
        flush()


@contextmanager
def parquet_writer(path: Path, schema: Any) -> Iterator[Any]:  # noqa: ANN401 - pyarrow has no types
    """Open a Parquet writer whose file replaces the path only if all went well.

    Raises:
        UsageError: the folder does not exist or is not writable.
    """
    with replacing(path) as partial:
        try:
            writer = pq.ParquetWriter(partial, schema, compression="zstd", write_page_checksum=True)
        except (OSError, pa.ArrowException) as error:
            raise UsageError(f"cannot write {path}: {error}; check the folder") from error
        with writer:
            yield writer


def read_lines_of(name: str) -> Iterator[Line]:
    """Read a table of outcomes as the lines of the equivalent JSON Lines file.

    Raises:
        UsageError: the file cannot be read, or is not such a table.
    """
    with arrow_errors(name), open_bytes(name) as source:
        table = ParquetRows(name, source)
        _check(name, table.schema)
        number = 0
        for batch in table.all_batches():
            for row in batch.to_pylist():
                number += 1
                yield Line(f"{name}:row {number}", _json_of(row).encode("utf-8"))


def column_names(name: str) -> frozenset[str]:
    """Return the names of a table's columns; none if it cannot be read."""
    try:
        with open_bytes(name) as source:
            return frozenset(ParquetRows(name, source).schema.names)
    except (pa.ArrowException, OSError, UsageError):
        return frozenset()


def _check(name: str, schema: Any) -> None:  # noqa: ANN401 - pyarrow has no types
    wrong = [
        f.name for f in schema if f.name in SCHEMA.names and f.type != SCHEMA.field(f.name).type
    ]
    if "kind" not in schema.names or wrong:
        fault = f"its column {wrong[0]!r} has another type" if wrong else "it has no column 'kind'"
        raise UsageError(
            f"{name} is not a table of labels: {fault}; if these are rows, label them first: "
            "labeler label ROWS -o labels.parquet"
        )


def _json_of(row: dict[str, Any]) -> str:
    """Return the JSON text of one outcome, unchecked; its reader validates it."""
    is_failure = row.get("kind") == _FAILURE
    parts = [
        f'"{name}":{value if name in _NESTED else json.dumps(value, ensure_ascii=False)}'
        for name, value in row.items()
        if value is not None and name in SCHEMA.names and (name != _ID or is_failure)
    ]
    return "{" + ",".join(parts) + "}"


_FAILURE = LabelFailure.model_fields["kind"].default
