"""What rows come in: files of several formats, tables of Python, and columns of other names.

Every reader yields the rows of one source as :class:`Raw`, one by one, and again when it is asked
again. What a row's fields mean is decided later, in one place, for all formats alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from labeler.catalog import Catalog
from labeler.data.lines import Line, is_remote, parse_object, read_lines
from labeler.errors import BadRow


class Raw(NamedTuple):
    """One row as its format has it, its columns not yet understood."""

    where: str
    """``FILE:LINE`` in files of lines, ``FILE:row N`` in others, both counted from 1."""
    fields: Mapping[str, Any] | BadRow
    """What stands in each column, or why the row cannot be read."""
    of_texts: bool = False
    """Whether the format has texts alone, as CSV has, so that a list is JSON in a text."""


Reader = Callable[[str], Iterator[Raw]]
"""Reads the rows of a file.

Raises:
    UsageError: the file as a whole cannot be read.
"""


def read_json_lines(name: str) -> Iterator[Raw]:
    """Read JSON Lines, packed by gzip or not."""
    return of_lines(read_lines(name))


def of_lines(lines: Iterable[Line]) -> Iterator[Raw]:
    """Read lines as JSON objects."""
    for line in lines:
        try:
            yield Raw(line.where, parse_object(line))
        except BadRow as error:
            yield Raw(line.where, error)


READERS: Catalog[Reader] = Catalog("format")
READERS.add("jsonl", read_json_lines)
READERS.add("json", "labeler.data.formats.json_files:read_json")
READERS.add("csv", "labeler.data.formats.csv_files:read_csv")
READERS.add("tsv", "labeler.data.formats.csv_files:read_tsv")
READERS.add("parquet", "labeler.data.formats.arrow_files:read_parquet")
READERS.add("arrow", "labeler.data.formats.arrow_files:read_arrow")
READERS.add("dataset", "labeler.data.formats.hugging_face:read_saved")
READERS.add("hub", "labeler.data.formats.hugging_face:read_hub")

_BY_SUFFIX = {
    ".json": "json",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
"""Formats by how a name ends; whatever else a file is called, it is JSON Lines."""

HUB = "hf:"
"""How the name of a data set on the Hugging Face hub begins."""


def format_of(name: str) -> str:
    """The format of a file, by its name alone; of a folder, that of a saved data set."""
    if name.startswith(HUB):
        return "hub"
    if not is_remote(name) and Path(name).is_dir():
        return "dataset"
    return _BY_SUFFIX.get(Path(name.lower().removesuffix(".gz")).suffix, "jsonl")


def is_rereadable(name: str) -> bool:
    """Whether what a name stands for can be read twice, as a pipe cannot."""
    return name.startswith(HUB) or is_remote(name) or Path(name).is_file() or Path(name).is_dir()


def read_file(name: str) -> Iterator[Raw]:
    """Read the rows of a file, of a folder that holds a data set, or of a data set on the hub.

    Raises:
        UsageError: it cannot be read; what is wrong with one row alone is that row's.
    """
    return READERS[format_of(name)](name)
