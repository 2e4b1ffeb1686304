"""Parts of Parquet files: the rows that one worker labels at a time, with reproducible names.

A part is a row group, or a slice of a large one. Its name tells the file and the position, and
contains a digest of the file's footer, which changes with the file.
"""

from __future__ import annotations

import glob
import hashlib
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from labeler.data.columns import Choice, Columns
from labeler.data.formats.arrow_files import arrow_errors
from labeler.data.formats.parquet_files import ParquetRows
from labeler.data.lines import is_remote, open_bytes
from labeler.data.presets import preset_hint
from labeler.errors import UsageError
from labeler.integrations.ray.filesystem import glob_files
from labeler.sentences.example import Frozen

PART_ROWS = 5000
"""Most rows of a part, by default."""
LARGEST_PART = 1 << 30
"""Most bytes of a part, decompressed."""
_SUFFIX = ".parquet"
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]+")
_LONGEST_STEM = 60
_NAME = re.compile(r"(.+)-([0-9a-f]{12})-g(\d{5,})-r(\d{7,})")
_PATTERN = re.compile(r"[*?\[]")
_NEEDED = ("question", "documents", "response")
_LABEL_COLUMNS = {"kind", "key", "signature", "label", "example"}
"""Columns of label files, which no file of rows has."""


class InputPart(Frozen):
    """Consecutive rows of a Parquet file."""

    name: str
    """Unique, and the same in every run."""
    file: str
    """Path or address, as it was given."""
    absolute: str
    """The same, usable from any folder."""
    group: int
    """Number of the row group."""
    start: int
    """The first row in it."""
    stop: int
    """The row after the last one."""
    before: int
    """Rows of the file before its row group."""
    overlapping: tuple[str, ...] = ()
    """Names of other parts that had some of its rows; their stores are read too."""

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.stop - self.start


class PartName(NamedTuple):
    """The components of a part's name.

    Attributes:
        stem: from the name of its file.
        digest: of the footer of its file.
        group: number of the row group.
        start: the first row in it.
    """

    stem: str
    digest: str
    group: int
    start: int


def parse_part_name(text: str) -> PartName | None:
    """Parse a part's name; ``None`` if it is not one."""
    found = _NAME.fullmatch(text)
    return PartName(found[1], found[2], int(found[3]), int(found[4])) if found else None


def input_files(name: str) -> list[str]:
    """Return the Parquet files of a path, pattern or folder, local or remote.

    Raises:
        UsageError: there is none, or one is of another format.
    """
    found = _remote_files(name) if is_remote(name) else _local_files(name)
    if not found:
        raise UsageError(f"no Parquet file is at {name}: check the path or the pattern")
    other = next((one for one in found if not one.lower().endswith(_SUFFIX)), None)
    if other:
        raise UsageError(
            f"{other} is no Parquet file by its name; several machines read Parquet: rewrite it, "
            "for example with polars or pyarrow, or label it on one machine"
        )
    return found


def _local_files(name: str) -> list[str]:
    if Path(name).is_dir():
        return sorted(map(str, Path(name).rglob(f"*{_SUFFIX}")))
    if Path(name).exists() or not _PATTERN.search(name):
        return [name]
    return sorted(one for one in glob.glob(name, recursive=True) if Path(one).is_file())  # noqa: PTH207 - the pattern may be of any folder


def _remote_files(name: str) -> list[str]:
    if not _PATTERN.search(name) and name.lower().endswith(_SUFFIX):
        return [name]
    pattern = name if _PATTERN.search(name) else f"{name.rstrip('/')}/**/*{_SUFFIX}"
    return glob_files(pattern)


def parts_of_file(
    file: str, most: int = PART_ROWS, columns: Columns | None = None
) -> list[InputPart]:
    """Return the parts of a Parquet file, in order; only its footer is read.

    Args:
        file: path or address.
        most: most rows of a part.
        columns: the columns that fields are read from; named ones must exist.

    Raises:
        UsageError: it cannot be read, or lacks a column that every row needs.
    """
    with arrow_errors(file), open_bytes(file) as source:
        rows = ParquetRows(file, source)
        schema, counts = rows.schema, rows.counts
        digest = _footer_digest(source)
    _require_columns(file, schema.names, columns)
    if any(counts):
        _require_rows(file, schema, columns)
    stem = _NOT_IN_NAMES.sub("_", Path(file).stem)[:_LONGEST_STEM]
    befores = itertools.accumulate(counts, initial=0)
    return [
        InputPart(
            name=f"{stem}-{digest}-g{group:05d}-r{start:07d}",
            file=file,
            absolute=absolute_name(file),
            group=group,
            start=start,
            stop=min(start + most, count),
            before=before,
        )
        for group, (count, before) in enumerate(zip(counts, befores, strict=False))
        for start in range(0, count, most)
    ]


def absolute_name(name: str) -> str:
    """Return a path or an address that does not depend on the working directory."""
    return name if is_remote(name) else str(Path(name).absolute())


def _footer_digest(source: Any) -> str:  # noqa: ANN401 - a file of any kind
    """Return a digest of a file's footer, which holds the positions and extremes of its columns."""
    source.seek(-8, 2)
    length = int.from_bytes(source.read(4), "little")
    source.seek(-8 - length, 2)
    return hashlib.sha256(source.read(length)).hexdigest()[:12]


def _require_columns(file: str, names: Iterable[str], columns: Columns | None) -> None:
    existing = set(names)
    for path, field in columns.expected() if columns else ():
        if path.text not in existing and path.steps[0] not in existing:
            raise UsageError(
                f"{file} has no column {path.text!r:.80}, which {field!r} is to be read from; it "
                f"has: {', '.join(sorted(existing))[:300]}"
            )


def _require_rows(file: str, schema: Any, columns: Columns | None) -> None:  # noqa: ANN401 - pyarrow has no types
    """Reject a file whose every row would fail because a needed column is missing."""
    existing = set(schema.names)
    ways = columns.choices if columns else {}
    missing = [field for field in _NEEDED if not _has(existing, field, ways.get(field))]
    if not missing:
        return
    if existing >= _LABEL_COLUMNS:
        raise UsageError(
            f"{file} holds labels, not rows: 'labeler metrics' reads them; name the rows that are "
            "to be labeled"
        )
    hint = preset_hint({field.name: _sample(field.type) for field in schema}) if not columns else ""
    read_from = [
        f"; {field!r} is read from {' or '.join(repr(str(choice)) for choice in ways[field])}"
        for field in missing
        if field in ways
    ]
    raise UsageError(
        f"{file} has no column for {', '.join(map(repr, missing))}, so that each of its rows would "
        f"fail; rows need {', '.join(_NEEDED)}; it has: {', '.join(sorted(existing))[:300]}"
        f"{''.join(read_from)}{hint or '; say which columns are meant with --map or --preset'}"
    )


def _has(existing: AbstractSet[str], field: str, choices: Sequence[Choice] | None) -> bool:
    if choices is None:
        return field in existing
    return any(
        path.text in existing or path.steps[0] in existing
        for choice in choices
        for path in choice.paths
    )


def _sample(kind: Any) -> object:  # noqa: ANN401 - pyarrow has no types
    """Return an example value of a column type."""
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [_sample(kind.value_type)]
    if pa.types.is_struct(kind):
        return {field.name: _sample(field.type) for field in kind}
    return "text"


def read_part(part: InputPart) -> Any:  # noqa: ANN401 - pyarrow has no types
    """Return the rows of a part as a table.

    Raises:
        UsageError: the file cannot be read.
    """
    with arrow_errors(part.file), open_bytes(part.absolute) as source:
        file = ParquetRows(part.file, source)
        batches = list(_bounded(part, _slice(part, file.batches(part.group))))
        return pa.Table.from_batches(batches, schema=file.schema)


def _bounded(part: InputPart, batches: Iterable[Any]) -> Iterator[Any]:
    """Yield the batches of a part, which are in memory together.

    Raises:
        UsageError: they are too large.
    """
    size = 0
    for batch in batches:
        size += batch.nbytes
        if size > LARGEST_PART:
            raise UsageError(
                f"{part.file}: of row group {part.group} the rows {part.start + 1} to {part.stop} "
                f"are more than {LARGEST_PART} bytes; at most that is labeled as one part: give a "
                "smaller --part-rows"
            )
        yield batch


def _slice(part: InputPart, batches: Iterable[Any]) -> Iterator[Any]:
    at = 0
    for batch in batches:
        begin, end = max(part.start - at, 0), min(part.stop - at, batch.num_rows)
        if begin < end:
            yield batch.slice(begin, end - begin)
        at += batch.num_rows
        if at >= part.stop:
            return
