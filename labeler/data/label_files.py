"""Files of records and failures: JSON Lines or Parquet, written by commands and read by others."""

from __future__ import annotations

import contextlib
import glob
import gzip
import logging
import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TextIO, TypeVar

from pydantic import ValidationError

from labeler.data.lines import (
    PATTERN,
    STDIO,
    Line,
    check_size,
    is_remote,
    parse_object,
    read_lines,
    remote_parts,
    replacing,
    with_checksum,
    without_checksum,
)
from labeler.errors import BadRow, StoreError, UnknownName, UsageError, describe_faults
from labeler.labels.record import AnyOutcome, LabelFailure, parse_outcome
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
        UsageError: the file is CSV and holds rows, which have no labels yet.
    """
    is_csv = name.lower().removesuffix(".gz").endswith(".csv")
    is_file = Path(name).is_file() and Path(name).stat().st_size > 0
    if not is_file and not (is_csv and is_remote(name)):
        return False
    if is_csv:
        if _holds_rows(name):
            raise UsageError(
                f"{name} holds rows, not labels: label them first: "
                f"labeler label {shlex.quote(name)} -o labels.jsonl"
            )
        return True
    if is_table(name):
        from labeler.data.formats import require_pyarrow  # noqa: PLC0415 - for tables

        require_pyarrow(name)
        from labeler.data.formats.parquet_files import column_names  # noqa: PLC0415 - loads pyarrow

        return column_names(name) >= NUMBERS
    with contextlib.suppress(UsageError, BadRow):
        return any(parse_object(line).keys() >= NUMBERS for line in islice(read_lines(name), 1))
    return False


def _holds_rows(name: str) -> bool:
    """Return True if the columns of a CSV file mean a question and a response."""
    from labeler.data.formats import read_source  # noqa: PLC0415 - for CSV
    from labeler.data.presets import has_fields  # noqa: PLC0415 - for CSV

    with contextlib.suppress(UsageError):
        first = next(read_source(name), None)
        row = first.fields if first else None
        return isinstance(row, Mapping) and not row.keys() >= NUMBERS and has_fields(row)
    return False


def lines_of(name: str) -> Iterator[Line]:
    """Read the lines of a label file; rows of Parquet become lines of JSON.

    Raises:
        UsageError: the file holds numbers.
    """
    if holds_numbers(name):
        raise UsageError(
            f"{name} holds numbers, not labels: labeler metrics, check and compare read them; "
            "texts, explanations and probabilities, as needed here, are in the label file only"
        )
    if not is_table(name):
        return read_lines(name)
    from labeler.data.formats import require_pyarrow  # noqa: PLC0415 - for tables

    require_pyarrow(name)
    from labeler.data.formats.parquet_files import read_label_lines  # noqa: PLC0415 - loads pyarrow

    return read_label_lines(name)


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
    name = str(path)
    if is_remote(name):
        raise UsageError(f"{name} is an address: write labels to a file, and copy it there")
    if is_table(name):
        from labeler.data.formats import require_pyarrow  # noqa: PLC0415 - for tables

        require_pyarrow(name)
    found = _OTHER_FORMATS.search(name)
    if found:
        raise UsageError(
            f"{name}: labels are written as JSON Lines or .parquet, not {found[0]}; name such a "
            "file, and write numbers as CSV by 'labeler metrics'"
        )


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
        # Constants that pydantic accepts as numbers in metadata and JSON does not have.
        if b"NaN" in line.content or b"Infinity" in line.content:
            parse_object(line, is_strict=True)
    except BadRow as error:
        raise UsageError(str(error)) from error
    except (ValidationError, UnknownName) as error:
        faults = (
            error
            if isinstance(error, UnknownName)
            else describe_faults(error, most=3, whole="line")
        )
        raise UsageError(
            f"{line.where}: not a label record: {faults}; if these are rows, label them first: "
            "labeler label ROWS -o labels.jsonl"
        ) from error
    if not is_intact:
        _check_changed(line, outcome, is_signed=is_intact is not None)
    return outcome


def _check_changed(line: Line, outcome: AnyOutcome, *, is_signed: bool) -> None:
    """Check a record that this program did not write as it is.

    Raises:
        UsageError: the record contradicts itself.
    """
    fault = None if isinstance(outcome, LabelFailure) else outcome.fault()
    if fault:
        raise UsageError(
            f"{line.where}: record {outcome.id!r} was damaged or edited: {fault}; "
            "write it again from the store, or leave the line out"
        )
    if is_signed:
        _report_changed(line.where)


_REPORTED: set[str] = set()
"""Files whose first changed line was reported."""


def _report_changed(where: str) -> None:
    name = where.rpartition(":")[0]
    if name not in _REPORTED:
        _REPORTED.add(name)
        _LOG.warning(
            "%s: this line was changed after labeler wrote it; it keeps the rules of labels, so "
            "it counts as it stands; further changed lines of this file are not listed",
            visible(where),
        )


def to_line(outcome: AnyOutcome) -> str:
    """Return an outcome as one line of JSON, without a line break."""
    return outcome.model_dump_json()


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
            line = with_checksum(plain_json(to_line(outcome)).encode())
            sys.stdout.write(line.decode() + "\n")
            yield outcome
        sys.stdout.flush()
        return
    if is_table(path):
        from labeler.data.formats.parquet_files import write_parquet  # noqa: PLC0415 - loads pyarrow

        yield from write_parquet(outcomes, path)
        return
    with replaced(Path(path)) as file:
        for outcome in outcomes:
            file.buffer.write(with_checksum(to_line(outcome).encode()) + b"\n")
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
