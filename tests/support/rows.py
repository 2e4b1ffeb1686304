"""Rows as they are read, and files of them."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from labeler.api import open_rows
from labeler.labels.record import LabelFailure
from labeler.sentences.example import Example


def contents(source: object, **how: Any) -> list[Example | LabelFailure]:
    """What the rows of a source become."""
    return [row.content for row in open_rows(source, **how)]


def examples(source: object, **how: Any) -> list[Example]:
    """The rows of a source, each of which can be read."""
    found = contents(source, **how)
    read = [one for one in found if isinstance(one, Example)]
    assert read == found
    return read


def only(source: object, **how: Any) -> Example:
    """The one row of a source."""
    (found,) = examples(source, **how)
    return found


def failed(source: object, **how: Any) -> LabelFailure:
    """The failure of the one row of a source."""
    (found,) = contents(source, **how)
    assert isinstance(found, LabelFailure), found
    return found


def write(path: Path, content: str | bytes) -> Path:
    """Write a file as it stands; return its path."""
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def write_lines(path: Path, rows: Iterable[object]) -> Path:
    """Write JSON Lines; return the path."""
    return write(path, "".join(f"{json.dumps(row)}\n" for row in rows))


def write_csv(path: Path, rows: Iterable[dict[str, Any]], delimiter: str = ",") -> Path:
    """Write CSV with lists as JSON; return the path."""
    cells = [{n: v if isinstance(v, str) else json.dumps(v) for n, v in r.items()} for r in rows]
    names = dict.fromkeys(name for row in cells for name in row)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(names), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(cells)
    return path
