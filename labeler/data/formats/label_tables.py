"""Records and failures as Parquet: a row each, their parts in columns, and nothing lost.

What is one value in a record, such as its kind, its key or a failure's reason, is a column of that
type; what is nested, such as the sentences or the label, is JSON in a column of texts. Reading a
row puts the parts together to the very line that JSON Lines would hold.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from labeler.data.formats.arrow_files import parquet_batches, reading
from labeler.data.lines import Line, open_bytes
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
    "criterion",
    "answer",
    "distribution",
    "similarity",
    "usage",
    "metadata",
)
_ID = "id"
"""A failure's own field; of a record a copy of its row's, for those who look at the table."""

SCHEMA = pa.schema(
    [pa.field(_ID, pa.string())]
    + [pa.field(name, pa.string()) for name in _TEXTS]
    + [pa.field(name, pa.int64()) for name in _COUNTS]
    + [pa.field(name, pa.bool_()) for name in _FLAGS]
    + [pa.field(name, pa.string()) for name in _NESTED]
)
GROUP = 1000
"""Records in a row group, the unit that is in memory when reading and writing."""
_LARGEST_GROUP = 1 << 26
"""Characters after which a row group ends sooner."""


def row_of(outcome: AnyOutcome) -> dict[str, Any]:
    """An outcome as one row of the table."""
    fields = outcome.model_dump(mode="json")
    row = {
        name: json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        if name in _NESTED and value is not None
        else value
        for name, value in fields.items()
    }
    return {**row, _ID: outcome.id}


def write_parquet(outcomes: Iterable[T], path: str | Path) -> Iterator[T]:
    """Write outcomes as Parquet while passing them on; the file appears when it is whole.

    Raises:
        UsageError: the file cannot be written.
    """
    with written(Path(path), SCHEMA) as writer:
        groups = _Groups(writer)
        for outcome in outcomes:
            groups.add(row_of(outcome))
            yield outcome
        groups.flush()


class _Groups:
    """Collects rows to row groups of bounded size."""

    def __init__(self, writer: Any) -> None:  # noqa: ANN401 - pyarrow has no types
        self._writer = writer
        self._rows: list[dict[str, Any]] = []
        self._size = 0

    def add(self, row: dict[str, Any]) -> None:
        self._rows.append(row)
        self._size += sum(len(value) for value in row.values() if isinstance(value, str))
        if len(self._rows) >= GROUP or self._size >= _LARGEST_GROUP:
            self.flush()

    def flush(self) -> None:
        if self._rows:
            self._writer.write_batch(pa.RecordBatch.from_pylist(self._rows, schema=SCHEMA))
            self._rows, self._size = [], 0


@contextmanager
def written(path: Path, schema: Any) -> Iterator[Any]:  # noqa: ANN401 - pyarrow has no types
    """Open a Parquet file for writing that takes the path's place only when all went well.

    Raises:
        UsageError: the folder does not exist or cannot be written.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        writer = pq.ParquetWriter(partial, schema, compression="zstd")
    except (OSError, pa.ArrowException) as error:
        raise UsageError(f"cannot write {path}: {error}; check the folder") from error
    try:
        with writer:
            yield writer
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def read_lines_of(name: str) -> Iterator[Line]:
    """Read a table of outcomes as the lines that JSON Lines would hold, row group by row group.

    Raises:
        UsageError: the file cannot be read, or is no such table.
    """
    with reading(name), open_bytes(name) as source:
        number = 0
        for batch in parquet_batches(name, source):
            _check(name, batch.schema)
            for row in batch.to_pylist():
                number += 1
                where = f"{name}:row {number}"
                yield Line(where, _json_of(row).encode("utf-8"))


def _check(name: str, schema: Any) -> None:  # noqa: ANN401 - pyarrow has no types
    wrong = [
        f.name for f in schema if f.name in SCHEMA.names and f.type != SCHEMA.field(f.name).type
    ]
    if "kind" not in schema.names or wrong:
        fault = f"its column {wrong[0]!r} has another type" if wrong else "it has no column 'kind'"
        raise UsageError(
            f"{name} is no table of labels: {fault}; such tables are written by 'labeler label' "
            "and 'labeler export' with -o NAME.parquet; rows are labelled first"
        )


class _Part(NamedTuple):
    name: str
    json: str


def _json_of(row: dict[str, Any]) -> str:
    """The JSON text of one outcome; what is wrong with it, whoever reads it will say."""
    parts = [
        _Part(name, value if name in _NESTED else json.dumps(value, ensure_ascii=False))
        for name, value in row.items()
        if value is not None and name in SCHEMA.names and not _is_copy(name, row)
    ]
    return "{" + ",".join(f'"{part.name}":{part.json}' for part in parts) + "}"


_FAILURE = LabelFailure.model_fields["kind"].default


def _is_copy(name: str, row: dict[str, Any]) -> bool:
    return name == _ID and row.get("kind") != _FAILURE
