"""Parts of Parquet files: what one worker labels at a time, by names that any run finds again.

A part is a row group, or so many rows of a large one. Its name tells the file and the place, and
by a digest of the file's footer that the file is still the same.
"""

from __future__ import annotations

import glob
import hashlib
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from labeler.data.columns import Choice, Columns
from labeler.data.formats.arrow_files import arrow_errors
from labeler.data.formats.parquet_files import ParquetRows
from labeler.data.lines import is_remote, open_bytes
from labeler.data.presets import preset_hint
from labeler.errors import UsageError
from labeler.integrations.ray.filesystem import files_like

PART_ROWS = 5000
"""Rows of a part at most, where nothing else is said."""
LARGEST_PART = 1 << 30
"""Bytes of a part, unpacked, at most."""
_SUFFIX = ".parquet"
_ODD = re.compile(r"[^A-Za-z0-9_-]+")
_LONGEST_STEM = 60
_NAME = re.compile(r"(.+)-([0-9a-f]{12})-g(\d{5,})-r(\d{7,})")
_PATTERN = re.compile(r"[*?\[]")
_NEEDED = ("question", "documents", "response")
_OF_LABELS = {"kind", "key", "signature", "label", "example"}
"""Columns that a file of labels has, and no file of rows."""


@dataclass(frozen=True)
class Part:
    """Some rows of a Parquet file that stand together.

    Attributes:
        name: the same in every run, and of no other part.
        file: path or address, as it was given.
        place: the same from any folder.
        group: number of the row group.
        start: the first row in it.
        stop: the row after the last one.
        before: rows of the file before its row group.
        besides: other parts that rows of it once stood in: their stores are looked into as well.
    """

    name: str
    file: str
    place: str
    group: int
    start: int
    stop: int
    before: int
    besides: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        """How many there are."""
        return self.stop - self.start

    def to_json(self) -> str:
        """The part as a text."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Part:
        """The part of a text that :meth:`to_json` made."""
        made = cls(**json.loads(text))
        return replace(made, besides=tuple(made.besides))


class PartName(NamedTuple):
    """What the name of a part tells.

    Attributes:
        stem: of its file's name.
        digest: of its file's footer.
        group: number of the row group.
        start: the first row in it.
    """

    stem: str
    digest: str
    group: int
    start: int


def part_name(text: str) -> PartName | None:
    """Understand a part's name; ``None`` where it is none."""
    found = _NAME.fullmatch(text)
    return PartName(found[1], found[2], int(found[3]), int(found[4])) if found else None


def input_files(name: str) -> list[str]:
    """The Parquet files that a path, a pattern or a folder means, here or at an address.

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
    return files_like(pattern)


def parts_of_file(file: str, most: int = PART_ROWS, columns: Columns | None = None) -> list[Part]:
    """The parts of a Parquet file, in order, by its footer alone.

    Args:
        file: path or address.
        most: rows of a part at most.
        columns: which column each field is read from; those that were named must be there.

    Raises:
        UsageError: it cannot be read, or lacks a column without which no row of it can be labelled.
    """
    with arrow_errors(file), open_bytes(file) as source:
        rows = ParquetRows(file, source)
        schema, counts = rows.schema, rows.counts
        digest = _footer_digest(source)
    _require_columns(file, schema.names, columns)
    if any(counts):
        _require_rows(file, schema, columns)
    stem = _ODD.sub("_", Path(file).stem)[:_LONGEST_STEM]
    befores = itertools.accumulate(counts, initial=0)
    return [
        Part(
            f"{stem}-{digest}-g{group:05d}-r{start:07d}",
            file,
            anywhere(file),
            group,
            start,
            min(start + most, count),
            before,
        )
        for group, (count, before) in enumerate(zip(counts, befores, strict=False))
        for start in range(0, count, most)
    ]


def anywhere(name: str) -> str:
    """A path or an address that means the same whatever folder a process is in."""
    return name if is_remote(name) else str(Path(name).absolute())


def _footer_digest(source: Any) -> str:  # noqa: ANN401 - a file of any kind
    """Tell a file by its footer, which holds where all of it lies, and its least and greatest."""
    source.seek(-8, 2)
    length = int.from_bytes(source.read(4), "little")
    source.seek(-8 - length, 2)
    return hashlib.sha256(source.read(length)).hexdigest()[:12]


def _require_columns(file: str, names: Iterable[str], columns: Columns | None) -> None:
    there = set(names)
    for path, field in columns.expected() if columns else ():
        if path.text not in there and path.steps[0] not in there:
            raise UsageError(
                f"{file} has no column {path.text!r:.80}, which {field!r} is to be read from; it "
                f"has: {', '.join(sorted(there))[:300]}"
            )


def _require_rows(file: str, schema: Any, columns: Columns | None) -> None:  # noqa: ANN401 - pyarrow has no types
    """Refuse a file of which each row would fail: it has no column for what rows need."""
    there = set(schema.names)
    ways = columns.choices if columns else {}
    missing = [field for field in _NEEDED if not _has(there, field, ways.get(field))]
    if not missing:
        return
    if there >= _OF_LABELS:
        raise UsageError(
            f"{file} holds labels, not rows: 'labeler metrics' reads them; name the rows that are "
            "to be labelled"
        )
    hint = preset_hint({field.name: _sample(field.type) for field in schema}) if not columns else ""
    read_from = [
        f"; {field!r} is read from {' or '.join(repr(str(choice)) for choice in ways[field])}"
        for field in missing
        if field in ways
    ]
    raise UsageError(
        f"{file} has no column for {', '.join(map(repr, missing))}, so that each of its rows would "
        f"fail; rows need {', '.join(_NEEDED)}; it has: {', '.join(sorted(there))[:300]}"
        f"{''.join(read_from)}{hint or '; say which columns are meant with --map or --preset'}"
    )


def _has(there: AbstractSet[str], field: str, choices: Sequence[Choice] | None) -> bool:
    if choices is None:
        return field in there
    return any(
        path.text in there or path.steps[0] in there for choice in choices for path in choice.paths
    )


def _sample(kind: Any) -> object:  # noqa: ANN401 - pyarrow has no types
    """A value as a column of a type may hold."""
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [_sample(kind.value_type)]
    if pa.types.is_struct(kind):
        return {field.name: _sample(field.type) for field in kind}
    return "text"


def read_part(part: Part) -> Any:  # noqa: ANN401 - pyarrow has no types
    """The rows of a part, as a table.

    Raises:
        UsageError: the file cannot be read.
    """
    with arrow_errors(part.file), open_bytes(part.place) as source:
        file = ParquetRows(part.file, source)
        batches = list(_bounded(part, _slice(part, file.batches(part.group))))
        return pa.Table.from_batches(batches, schema=file.schema)


def _bounded(part: Part, batches: Iterable[Any]) -> Iterator[Any]:
    """The batches of a part, which are in memory together.

    Raises:
        UsageError: they are too large for that.
    """
    size = 0
    for batch in batches:
        size += batch.nbytes
        if size > LARGEST_PART:
            raise UsageError(
                f"{part.file}: of row group {part.group} the rows {part.start + 1} to {part.stop} "
                f"are more than {LARGEST_PART} bytes; at most that is labelled as one part: give a "
                "smaller --part-rows"
            )
        yield batch


def _slice(part: Part, batches: Iterable[Any]) -> Iterator[Any]:
    at = 0
    for batch in batches:
        begin, end = max(part.start - at, 0), min(part.stop - at, batch.num_rows)
        if begin < end:
            yield batch.slice(begin, end - begin)
        at += batch.num_rows
        if at >= part.stop:
            return
