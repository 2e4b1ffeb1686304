"""Files that other packages wrote (`scripts/check_elsewhere imports --keep tests/imports`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from import_rows import import_rows
from labeler.api import open_rows
from labeler.sentences.example import Example

FILES = sorted((Path(__file__).parents[1] / "imports").iterdir())
JOINED = ("deepeval.csv", "deepeval.jsonl")
"""Files whose documents are one text."""


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_file_of_another_package_is_read_as_it_was_written(path: Path) -> None:
    """Without a preset; quotes, line breaks and separators in texts included."""
    split = "|" if path.name in JOINED else None
    found = [row.content for row in open_rows(path, split_documents=split)]
    texts = ("question", "documents", "response")
    assert all(isinstance(one, Example) for one in found), found[0]
    assert [{name: getattr(one, name) for name in texts} for one in found] == [
        {name: row[name] if name != "documents" else tuple(row[name]) for name in texts}
        for row in import_rows()
    ]
