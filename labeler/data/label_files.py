"""Records and failures as files: the form in which labels and scores are passed on."""

from __future__ import annotations

import contextlib
import glob
import gzip
import os
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, TypeVar

from pydantic import ValidationError

from labeler.data.lines import STDIO, Line, is_remote, parse_object, read_lines
from labeler.errors import BadRow, UsageError
from labeler.labels.record import OUTCOME, AnyOutcome, LabelFailure
from labeler.sentences.characters import plain_json

T = TypeVar("T", bound=AnyOutcome)

INDEX_SUFFIX = ".index.parquet"
"""What the name of a label file's index ends with, after that of the file; it holds no labels."""
_PATTERN = re.compile(r"[*?\[]")
_CONSTANT = re.compile(rb"NaN|Infinity")
"""What pydantic would take for a number in metadata and JSON does not know."""


def read_outcomes(path: str | Path) -> Iterator[AnyOutcome]:
    """Read records of any kind and failures from JSON Lines, or from Parquet by the file's name.

    Raises:
        UsageError: a line is none; the message names file, line and the fields at fault.
    """
    for line in lines_of(str(path)):
        yield outcome_of(line)


def parts_of(name: str) -> list[str] | None:
    """The label files that a folder of Parquet or a pattern, such as ``labels/*.parquet``, means.

    Returns:
        Their names in order; ``None`` where the name is that of one thing alone.

    Raises:
        UsageError: a pattern fits no file.
    """
    path = Path(name)
    if path.is_dir():
        found = sorted(str(part) for part in path.rglob("*.parquet") if _is_part(part))
        return found or None
    if path.exists() or not _PATTERN.search(name):
        return None
    found = sorted(part for part in glob.glob(name, recursive=True) if _is_part(Path(part)))  # noqa: PTH207 - the pattern may be of any folder
    if not found:
        raise UsageError(f"no file is like {name}: check the pattern")
    return found


def _is_part(path: Path) -> bool:
    return path.is_file() and not is_index(path.name)


def is_index(name: str) -> bool:
    """Whether a file of this name is the index of a label file, which holds no labels."""
    return name.endswith(INDEX_SUFFIX)


def lines_of(name: str) -> Iterator[Line]:
    """The records of a label file as lines of JSON, whether it is Parquet or JSON Lines."""
    if not is_table(name):
        return read_lines(name)
    from labeler.data.label_tables import read_lines_of  # noqa: PLC0415 - loads pyarrow

    return read_lines_of(name)


def is_table(name: str | Path) -> bool:
    """Whether a label file of this name is Parquet."""
    return str(name).lower().endswith(".parquet")


_OTHER_FORMATS = re.compile(
    r"\.(csv|tsv|json|arrow|feather|ipc|xlsx?|html?|zip|parquet\.gz)(\.gz)?$", re.IGNORECASE
)


def check_label_file(path: str | Path) -> None:
    """See that labels can be written under a name that does not promise another format.

    Raises:
        UsageError: it does, or it is an address.
    """
    name = str(path)
    if is_remote(name):
        raise UsageError(f"{name} is an address: write labels to a file, and copy it there")
    found = _OTHER_FORMATS.search(name)
    if found:
        raise UsageError(
            f"{name}: labels are written as JSON Lines or .parquet, not {found[0]}; name such a "
            "file, and write numbers as CSV by 'labeler metrics'"
        )


def outcome_of(line: Line) -> AnyOutcome:
    """The record or failure that a line holds.

    Raises:
        UsageError: it holds none, or a record that was damaged or edited.
    """
    try:
        outcome = OUTCOME.validate_json(line.content)
        if _CONSTANT.search(line.content):
            parse_object(line)
    except BadRow as error:
        raise UsageError(str(error)) from error
    except ValidationError as error:
        raise UsageError(
            f"{line.where}: not a label record: {_faults(error)}; rows are labelled first: label "
            "files are written by 'labeler label' and 'labeler import'"
        ) from error
    fault = None if isinstance(outcome, LabelFailure) else outcome.fault()
    if fault:
        raise UsageError(
            f"{line.where}: record {outcome.id!r} was damaged or edited: {fault}; "
            "write it anew from the store, or leave the line out"
        )
    return outcome


def _faults(error: ValidationError) -> str:
    """The first few faults of a value, without the value itself."""
    faults = error.errors(include_url=False, include_input=False, include_context=False)
    if any(fault["type"].startswith("union_tag") for fault in faults):
        return "it has no 'kind' of label, score or failure"
    shown = [f"{'.'.join(map(str, f['loc'])) or 'line'}: {f['msg']}" for f in faults[:3]]
    return "; ".join(shown)


def to_line(outcome: AnyOutcome) -> str:
    """Write an outcome as one line of JSON, without the line break."""
    return outcome.model_dump_json()


def write_outcomes(outcomes: Iterable[T], path: str | Path) -> Iterator[T]:
    """Write outcomes as JSON Lines, or as Parquet by the file's name, while passing them on.

    A file appears under its name only when it is whole; until then its lines stand in a
    temporary file beside it. ``-`` writes to standard output, line by line.

    Raises:
        UsageError: see :func:`check_label_file`.
    """
    check_label_file(path)
    if str(path) == STDIO:
        for outcome in outcomes:
            # The screen may be a reader too; escaped, it is the same JSON.
            sys.stdout.write(plain_json(to_line(outcome)) + "\n")
            yield outcome
        sys.stdout.flush()
        return
    if is_table(path):
        from labeler.data.label_tables import write_parquet  # noqa: PLC0415 - loads pyarrow

        yield from write_parquet(outcomes, path)
        return
    with replaced(Path(path)) as file:
        for outcome in outcomes:
            file.write(to_line(outcome) + "\n")
            yield outcome


@contextlib.contextmanager
def replaced(path: Path) -> Iterator[IO[str]]:
    """Open a file for writing that takes the path's place only when all went well.

    What is no ordinary file, such as a pipe or ``/dev/null``, is written to directly.

    Raises:
        UsageError: the folder does not exist or cannot be written.
    """
    direct = path.exists() and not path.is_file()
    opener = gzip.open if path.suffix == ".gz" else open
    target = path if direct else path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        file = opener(target, "wt", encoding="utf-8", newline="\n")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}; check the folder") from error
    try:
        with file:
            yield file
        if not direct:
            target.replace(path)
    except BaseException:
        if not direct:
            target.unlink(missing_ok=True)
        raise
