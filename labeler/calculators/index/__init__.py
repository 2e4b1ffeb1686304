"""Locations of indexes: files with the tally of each label as columns.

Reading labels as JSON takes far longer than counting. An index holds the fields of
:class:`labeler.calculators.tally.Tally`, from which metrics are computed batch by batch. It is
derived from labels alone and can be deleted at any time. A stale, foreign or damaged index is
rebuilt or ignored.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from labeler.data.label_files import (
    INDEX_SUFFIX,
    OLD_INDEX_SUFFIX,
    STORE_FILE,
    is_store,
    parts_of,
)
from labeler.data.lines import STDIO, is_remote
from labeler.errors import UsageError

FOLDER = "index"
"""Folder of a store's index, inside the store."""
PARTS_FOLDER = "_index"
"""Folder of the indexes of a folder's label files; data set readers ignore a leading underscore."""
SMALL = 1 << 18
"""Bytes of labels up to which reading them is faster than importing the column readers."""


def sidecar_of(labels: Path) -> Path:
    """Return the path of a label file's index."""
    return labels.with_name(labels.name + INDEX_SUFFIX)


def index_in_folder(labels: Path) -> Path:
    """Return the path of a label file's index if it was built with those of its folder."""
    return labels.parent / PARTS_FOLDER / f"{labels.name}{INDEX_SUFFIX}"


def old_sidecar_of(labels: Path) -> Path:
    """Return the path at which earlier versions kept a label file's index, as Parquet."""
    return labels.with_name(labels.name + OLD_INDEX_SUFFIX)


def indexes_of(labels: Path) -> list[Path]:
    """Return the paths at which a label file may have an index, from the preferred one on."""
    return [sidecar_of(labels), index_in_folder(labels), old_sidecar_of(labels)]


def has_index(labels: Path) -> bool:
    """Return True if a label file has an index, valid or not."""
    return any(path.exists() for path in indexes_of(labels))


def files_of(names: Sequence[str]) -> list[str]:
    """Return the label files that names stand for; none if one is a store or has no file.

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
        return []  # The reader reports the missing file.
    return (parts or [name]) if parts or Path(name).is_file() else []


def is_worthwhile(labels: str | Sequence[str]) -> bool:
    """Return True if a store or files hold enough labels to count them by columns."""
    names = [labels] if isinstance(labels, str) else labels
    if len(names) == 1 and is_store(path := Path(names[0])):
        return (path / STORE_FILE).stat().st_size >= SMALL or (path / FOLDER).exists()
    files = files_of(names)
    if not files or any(map(is_remote, files)):
        return bool(files)
    paths = [Path(file) for file in files]
    return any(map(has_index, paths)) or sum(path.stat().st_size for path in paths) >= SMALL
