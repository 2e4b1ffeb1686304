"""CSV files of plans and answers, as a spreadsheet reads and writes them."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path


def read_cells(path: Path) -> list[dict[str, str]]:
    """The rows of a file."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def write_cells(path: Path, rows: Iterable[Mapping[str, str]]) -> Path:
    """Write rows, whose columns are those of any of them; returns the file."""
    rows = list(rows)
    names = dict.fromkeys(name for row in rows for name in row)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names, restval="")
        writer.writeheader()
        writer.writerows(rows)
    return path
