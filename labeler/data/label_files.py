"""Files of records and failures: JSON Lines or Parquet, written by commands and read by others.

:class:`LabelView` is a file as a sequence that reads each record when it is needed.
"""

from __future__ import annotations

import contextlib
import glob
import gzip
import logging
import os
import re
import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple, TextIO, TypeVar, cast, overload

import msgspec
from pydantic import ValidationError

from labeler.data.lines import (
    BOM,
    CUT_OFF,
    LONGEST_LINE,
    PATTERN,
    STDIO,
    Line,
    bounded_lines,
    check_size,
    file_errors,
    is_cut_off,
    is_remote,
    parse_object,
    read_lines,
    reject_database,
    remote_parts,
    replacing,
    with_checksum,
    without_checksum,
)
from labeler.errors import (
    BadRow,
    StoreError,
    UnknownName,
    UsageError,
    describe_faults,
    path_in,
)
from labeler.labels.record import (
    AnyOutcome,
    LabelFailure,
    Outcome,
    parse_outcome,
    requested_kind,
    written_kind,
)
from labeler.sentences.characters import plain_json, visible

_LOG = logging.getLogger(__name__)
T = TypeVar("T", bound=AnyOutcome)
_WRITTEN = 1 << 16
"""Bytes written to a file at once: labels are as long as Python's default buffer."""

STORE_FILE = "cache.db"
"""The file, named by diskcache, that makes a folder a label store."""
SHARDS = "shards"
"""Holds the stores of shards, inside the folder of a label store."""


def read_outcomes(path: str | Path) -> Iterator[AnyOutcome]:
    """Read records of any kind and failures from JSON Lines, or from Parquet by the file's name.

    Raises:
        UsageError: a line is not an outcome; the message names file, line and faulty fields.
    """
    for line in lines_of(str(path)):
        yield outcome_of(line)


def is_store(path: Path) -> bool:
    """Return True if a path is the folder of a label store.

    Raises:
        StoreError: the folder cannot be read.
    """
    try:
        return (path / STORE_FILE).is_file()
    except PermissionError as error:
        raise StoreError(
            f"{path} cannot be read: {error.strerror}; if it is the label store of another user, "
            "ask for a copy, and put it into a folder of your own"
        ) from None


def parts_of(name: str) -> list[str] | None:
    """Expand a folder of Parquet files or a pattern such as ``labels/*.parquet``, local or remote.

    Returns:
        The sorted names of the label files; ``None`` if the name is a single source.

    Raises:
        UsageError: a pattern matches no file.
    """
    path = Path(name)
    if is_remote(name):
        found = remote_parts(name)
        if found is None:
            return None
    elif path.is_dir():
        found = sorted(str(part) for part in path.rglob("*.parquet") if part.is_file())
        return found or None
    elif path.exists() or not PATTERN.search(name):
        return None
    else:
        found = sorted(part for part in glob.glob(name, recursive=True) if Path(part).is_file())  # noqa: PTH207 - the pattern may be of any folder
    if not found:
        raise UsageError(f"no file is like {name}: check the pattern")
    return found


def local_files(name: str) -> list[Path]:
    """Return the local label files that a name stands for; none for a store or a missing file."""
    if name == STDIO or is_remote(name) or is_store(Path(name)):
        return []
    try:
        parts = parts_of(name)
    except UsageError:
        return []  # The reader reports the missing file.
    return [part for part in map(Path, parts or [name]) if part.is_file()]


NUMBERS = frozenset({"id", "position", "versions"})
"""Columns that mark a file of numbers."""


def holds_numbers(name: str) -> bool:
    """Return True for a file that ``labeler metrics --rows -o`` wrote.

    Raises:
        UsageError: the file is CSV and holds anything else, such as rows without labels.
    """
    is_csv = name.lower().removesuffix(".gz").endswith((".csv", ".tsv"))
    is_file = Path(name).is_file() and Path(name).stat().st_size > 0
    if not is_file and not (is_csv and is_remote(name)):
        return False
    if is_csv:
        from labeler.data.formats.text_files import check_numbers  # noqa: PLC0415 - for CSV

        check_numbers(name, NUMBERS)
        return True
    if is_table(name):
        return bool(_tables(name).column_names(name) >= NUMBERS)
    with contextlib.suppress(UsageError, BadRow):
        return any(parse_object(line).keys() >= NUMBERS for line in islice(read_lines(name), 1))
    return False


def reject_numbers(name: str) -> None:
    """Raise :class:`UsageError` if a file that labels are read from holds numbers."""
    if holds_numbers(name):
        raise UsageError(
            f"{name} holds numbers, not labels: labeler metrics, check and compare read them; "
            "texts, explanations and probabilities, as needed here, are in the label file only"
        )


def lines_of(name: str) -> Iterator[Line]:
    """Read the lines of a label file; rows of Parquet become lines of JSON.

    Raises:
        UsageError: the file holds numbers.
    """
    reject_numbers(name)
    lines: Iterator[Line] = (
        _tables(name).read_label_lines(name) if is_table(name) else read_lines(name)
    )
    return lines


def _tables(name: str) -> Any:  # noqa: ANN401 - a module
    """Return the module for tables of labels.

    Raises:
        UsageError: pyarrow, which it needs, is not installed.
    """
    from labeler.data.formats import require_pyarrow  # noqa: PLC0415 - for tables

    require_pyarrow(name)
    from labeler.data.formats import parquet_files  # noqa: PLC0415 - loads pyarrow

    return parquet_files


def is_table(name: str | Path) -> bool:
    """Return True if a label file of this name is Parquet."""
    return str(name).lower().endswith(".parquet")


_OTHER_FORMATS = re.compile(
    r"\.(csv|tsv|json|arrow|feather|ipc|xlsx?|html?|zip|parquet\.gz)(\.gz)?$", re.IGNORECASE
)


def check_label_file(path: str | Path) -> None:
    """Reject a name for a label file that stands for another format or an address.

    Raises:
        UsageError: the name is not that of a local JSON Lines or Parquet file, or pyarrow is
            needed and not installed.
    """
    path_in("the label file", name := str(path))
    if is_remote(name):
        raise UsageError(f"{name} is an address: write labels to a file, and copy it there")
    if is_table(name):
        _tables(name)
    if found := _OTHER_FORMATS.search(name):
        raise UsageError(
            f"{name}: labels are written as JSON Lines or .parquet, not {found[0]}; name such a "
            "file, and write numbers as CSV by 'labeler metrics'"
        )
    if name != STDIO:
        reject_database(Path(name))


def outcome_of(line: Line) -> AnyOutcome:
    """Parse the record or failure in a line; a line over a limit is a failure itself.

    A record whose checksum matches was checked when it was written. Any other is checked here, as
    when labels are imported; the first one of a file whose checksum is wrong is reported.

    Raises:
        UsageError: the line holds neither, or a record that was damaged or edited.
    """
    try:
        check_size(line)
    except BadRow as error:
        return LabelFailure(id=line.where, reason=error.reason, message=str(error))
    try:
        content, is_intact = without_checksum(line.content)
        outcome = parse_outcome(content)
        if is_intact:
            return outcome
        # Constants that pydantic accepts as numbers in metadata and JSON does not have.
        if b"NaN" in line.content or b"Infinity" in line.content:
            parse_object(line, is_strict=True)
    except BadRow as error:
        raise UsageError(str(error)) from error
    except (ValidationError, UnknownName) as error:
        if is_cut_off(line.content):
            raise UsageError(f"{line.where}: {CUT_OFF}") from error
        faults = (
            error
            if isinstance(error, UnknownName)
            else describe_faults(error, most=3, whole="line")
        )
        numbers = "; numbers are read from named files" * line.where.startswith(f"{STDIO}:")
        if line.content.lstrip()[:1] == b"[" or line.content.strip() == b"{":
            faults = f"{faults}; write each on one line: jq -c '.[]' of an array, else jq -c ."
        raise UsageError(
            f"{line.where}: not a label record: {faults}; if these are rows, label them first: "
            f"labeler label ROWS -o labels.jsonl{numbers}"
        ) from error
    if fault := None if isinstance(outcome, LabelFailure) else outcome.fault():
        raise UsageError(
            f"{line.where}: record {outcome.id!r} was damaged or edited: {fault}; "
            "write it again from the store, or leave the line out"
        )
    name = line.where.rpartition(":")[0]
    if is_intact is not None and name not in _REPORTED:
        _REPORTED.add(name)
        _LOG.warning(
            "%s: this line was changed after labeler wrote it; it keeps the rules of labels, so "
            "it counts as it stands; further changed lines of this file are not listed",
            visible(line.where),
        )
    return outcome


_REPORTED: set[str] = set()
"""Files whose first changed line was reported."""


def write_outcomes(outcomes: Iterable[T], path: str | Path) -> Iterator[T]:
    """Write outcomes as JSON Lines, or as Parquet by the file's name, and yield each.

    The file appears under its name once it is complete; until then a temporary file next to it
    holds the lines. ``-`` writes to standard output, line by line.

    Raises:
        UsageError: see :func:`check_label_file`.
    """
    check_label_file(path)
    if str(path) == STDIO:
        for outcome in outcomes:
            # The reader may be a terminal; escaped text is the same JSON.
            line = with_checksum(plain_json(outcome.model_dump_json()).encode())
            sys.stdout.write(line.decode() + "\n")
            yield outcome
        sys.stdout.flush()
        return
    if is_table(path):
        yield from _tables(str(path)).write_parquet(outcomes, path)
        return
    with replaced(Path(path)) as file:
        for outcome in outcomes:
            file.buffer.write(with_checksum(outcome.model_dump_json().encode()) + b"\n")
            yield outcome


@contextlib.contextmanager
def replaced(path: Path) -> Iterator[TextIO]:
    """Open a text file for writing that replaces the path only if all went well.

    A path that is not an ordinary file, such as a pipe or ``/dev/null``, is written to directly.

    Raises:
        UsageError: the folder does not exist or is not writable.
    """
    opener = gzip.open if path.suffix == ".gz" else partial(open, buffering=_WRITTEN)
    with contextlib.ExitStack() as stack:
        is_special = path.exists() and not path.is_file()
        target = path if is_special else stack.enter_context(replacing(path))
        try:
            file = opener(target, "wt", encoding="utf-8", newline="\n")
        except OSError as error:
            raise UsageError(f"cannot write {path}: {error.strerror}; check the folder") from error
        with file:
            yield file


class _Named(msgspec.Struct):
    id: str


class _Made(msgspec.Struct):
    judge: str
    model: str


class _Tokens(msgspec.Struct):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0


class _Asked(msgspec.Struct):
    attempts: int = 1
    usage: _Tokens | None = None
    host: str | None = None


class Glance(msgspec.Struct):
    """The few fields of an outcome that counts need, under the outcome's own names."""

    kind: Literal["label", "failure"]
    key: str = ""
    row: str | None = msgspec.field(default=None, name="id")
    example: _Named | None = None
    reason: str = ""
    attempts: int = 0
    usage: _Tokens | None = None
    signature: _Made | None = None
    reply: _Asked = msgspec.field(default_factory=_Asked)

    @property
    def id(self) -> str:
        """The row's id."""
        return self.example.id if self.example else self.row or ""


_GLANCE = msgspec.json.Decoder(Glance)


class _Places(NamedTuple):
    """Where each label begins, the numbers of their lines, and how many outcomes are not labels."""

    offsets: array[int]
    numbers: array[int]
    others: int


class LabelView(Sequence[Outcome]):
    """The labels and failures of a file of JSON Lines; memory holds 16 bytes for each.

    The file is first read when it is asked for something.

    Args:
        path: the file; other outcomes in it, such as scores, are left out.

    Raises:
        UsageError: the file cannot be read, or holds numbers.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        reject_numbers(str(path))
        with file_errors(str(path)), self.path.open("rb") as file:
            self._state = _state(file)

    @property
    def others(self) -> int:
        """Outcomes that were left out."""
        return self._places.others

    @cached_property
    def _places(self) -> _Places:
        begin, others = 0, 0
        offsets, numbers = array("Q"), array("Q")
        with file_errors(str(self.path)), self._opened() as file:
            for number, content in enumerate(bounded_lines(file), start=1):
                if not content.isspace():
                    if self._is_label(content, number):
                        offsets.append(begin)
                        numbers.append(number)
                    else:
                        others += 1
                begin = file.tell()
        return _Places(offsets, numbers, others)

    def _is_label(self, content: bytes, number: int) -> bool:
        if kind := written_kind(content):
            return kind == "label"
        return requested_kind(outcome_of(self._line(content, number))) in {"label", None}

    def _line(self, content: bytes, number: int) -> Line:
        return Line(f"{self.path}:{number}", content.removeprefix(BOM))

    def __len__(self) -> int:
        return len(self._places.offsets)

    def __iter__(self) -> Iterator[Outcome]:
        """Yield the outcomes in the order of the file.

        Raises:
            UsageError: the file has changed, or a line is not an outcome.
        """
        for line in self._lines(range(len(self))):
            yield cast("Outcome", outcome_of(line))  # its kind was checked before

    def glances(self) -> Iterator[Glance | Outcome]:
        """Yield a few fields of each outcome, many times as fast as the outcomes.

        Raises:
            UsageError: the file has changed, or a line is not an outcome.
        """
        for line in self._lines(range(len(self))):
            try:
                yield _GLANCE.decode(line.content)
            except (msgspec.MsgspecError, UnicodeError):  # what it refuses may be an outcome
                yield cast("Outcome", outcome_of(line))

    @overload
    def __getitem__(self, place: int) -> Outcome: ...
    @overload
    def __getitem__(self, place: slice) -> LabelView: ...
    def __getitem__(self, place: int | slice) -> Outcome | LabelView:
        """Return an outcome, or a view of several.

        Raises:
            IndexError: the position is out of range.
            UsageError: the file has changed, or a line is not an outcome.
        """
        if isinstance(place, slice):
            part, (offsets, numbers, _) = copy(self), self._places
            part._places = _Places(offsets[place], numbers[place], 0)  # noqa: SLF001 - its own class
            return part
        (line,) = self._lines([range(len(self))[place]])
        return cast("Outcome", outcome_of(line))

    def _lines(self, places: Iterable[int]) -> Iterator[Line]:
        """Read the lines at some places."""
        offsets, numbers, _ = self._places
        with file_errors(str(self.path)), self._opened() as file:
            for place in places:
                file.seek(offsets[place])
                yield self._line(file.readline(LONGEST_LINE + 1), numbers[place])

    def _opened(self) -> IO[bytes]:
        file = self.path.open("rb")
        if _state(file) != self._state:
            file.close()
            raise UsageError(f"{self.path} has changed since it was opened: load it again")
        return file


def _state(file: IO[bytes]) -> tuple[int, int, int]:
    """Return what changes when a file is written again."""
    found = os.fstat(file.fileno())
    return found.st_ino, found.st_size, found.st_mtime_ns
