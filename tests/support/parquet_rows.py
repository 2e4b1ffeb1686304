"""Parquet files of rows for tests, and what partitions hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from labeler.data.label_files import parts_of, read_outcomes
from labeler.labels.record import AnyOutcome


def row(number: int) -> dict[str, Any]:
    """A row; every number asks something else."""
    return {
        "id": f"r{number}",
        "question": f"How long is quay {number}?",
        "documents": [f"Quay {number} is {90 + number} m long.", "It was built of oak."],
        "response": f"Quay {number} is {90 + number} m long.",
    }


def write_rows(
    path: Path, rows: int, *, first: int = 0, group: int = 1000, **columns: list[Any]
) -> Path:
    """A Parquet file of so many rows, in row groups of that size."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.Table.from_pylist([row(number) for number in range(first, first + rows)])
    for name, values in columns.items():
        at = table.column_names.index(name) if name in table.column_names else table.num_columns
        table = (table.drop_columns([name]) if name in table.column_names else table).add_column(
            at, name, pa.array(values)
        )
    pq.write_table(table, path, row_group_size=group)
    return path


def outcomes_in(folder: Path) -> list[AnyOutcome]:
    """All that the partitions of a folder hold."""
    return [one for part in parts_of(str(folder)) or () for one in read_outcomes(part)]


def watch_groups(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """Return the row groups of Parquet files, in the order in which they will be asked for."""
    asked: list[list[int]] = []

    class Spy(pq.ParquetFile):  # type: ignore[misc] # pyarrow has no types
        def iter_batches(self, *, row_groups: list[int], batch_size: int, **options: Any) -> Any:
            if batch_size > 1:  # one row is read to learn the sizes of dictionaries
                asked.append(row_groups)
            return super().iter_batches(batch_size, row_groups, **options)

    monkeypatch.setattr(pq, "ParquetFile", Spy)
    return asked
