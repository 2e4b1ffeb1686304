"""A columnar index beside stored labels: what metrics count, as columns, in Parquet files.

Recomputing reads labels as JSON, which takes far longer than counting. The index holds what
:class:`labeler.calculators.tally.Tally` says of each label, so that metrics are computed from
columns, batch by batch. It is made from labels alone and can be thrown away at any time. It is
never trusted blindly: what is stale, foreign or damaged is made anew, or left aside.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from labeler.data.label_files import INDEX_SUFFIX, parts_of
from labeler.data.lines import STDIO, is_remote
from labeler.errors import UsageError
from labeler.store.reader import FILE

FOLDER = "index"
"""Where the index of a store is, inside its folder."""
PARTS_FOLDER = "_index"
"""Where the indexes of a folder's label files are; what begins so is no part of a data set."""
PART_SUFFIX = ".index"
"""What the name of one there ends with, after that of the label file."""
SMALL = 1 << 18
"""Bytes of labels up to which it is faster to read them than to load what reads columns."""


def sidecar_of(labels: Path) -> Path:
    """Where the index of a label file is."""
    return labels.with_name(labels.name + INDEX_SUFFIX)


def is_store(path: Path) -> bool:
    """Whether a path is the folder of a store."""
    return (path / FILE).is_file()


def index_in_folder(labels: Path) -> Path:
    """Where the index of a label file is that was made with those of a whole folder."""
    return labels.parent / PARTS_FOLDER / f"{labels.name}{PART_SUFFIX}"


def has_index(labels: Path) -> bool:
    """Whether there is an index of a label file, whatever it is worth."""
    return sidecar_of(labels).exists() or index_in_folder(labels).exists()


def files_of(names: Sequence[str]) -> list[str]:
    """The label files that names mean; none where one of them is a store, or means no file.

    Args:
        names: files, folders of Parquet files, patterns, and addresses of files.
    """
    found: list[str] = []
    for name in names:
        parts = [name] if is_remote(name) else _local_files(name)
        if not parts:
            return []
        found += parts
    return found


def _local_files(name: str) -> list[str]:
    if name == STDIO or is_store(Path(name)):
        return []
    try:
        parts = parts_of(name)
    except UsageError:
        return []  # Whoever reads it says that no file is like it.
    return (parts or [name]) if parts or Path(name).is_file() else []


def is_worthwhile(labels: str | Sequence[str]) -> bool:
    """Whether there are labels enough in files, or in a store, to count them by columns."""
    names = [labels] if isinstance(labels, str) else labels
    if len(names) == 1 and is_store(path := Path(names[0])):
        return (path / FILE).stat().st_size >= SMALL or (path / FOLDER).exists()
    files = files_of(names)
    if not files or any(map(is_remote, files)):
        return bool(files)
    paths = [Path(file) for file in files]
    return any(map(has_index, paths)) or sum(path.stat().st_size for path in paths) >= SMALL
