"""The corrections file: JSON Lines to which corrections are appended and never changed.

An append is one write under a lock, durable when it returns. A crash can leave an incomplete line:
readers report and skip it, and the next append starts a new line.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pydantic import ValidationError

from labeler.catalog import with_named_keywords
from labeler.data.corrections import Correction
from labeler.data.lines import STDIO, Line, flush_directory, is_gzipped, read_lines
from labeler.errors import StoreError, UsageError, describe_faults, validation_faults

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

SUFFIX = ".corrections.jsonl"
IN_STORE = "corrections.jsonl"
"""Name of the file in a store's folder."""
LONGEST_LINE = 4_000_000
"""Largest length of a line in bytes."""
_BEGINNING = b'{"kind":"correction"'
"""The start of every line that we write; tells an incomplete line from a foreign one."""
_KIND = re.compile(rb'"kind"\s*:\s*"correction"')
_LOCK_TIMEOUT = 30.0
"""Seconds to wait for the lock."""
_POLL = 0.005
"""Seconds between two attempts to take it."""
_MODE = 0o644


def corrections_path(labels: str | Path) -> Path:
    """Return the default corrections file of labels.

    ``runs/labels.jsonl`` → ``runs/labels.corrections.jsonl``; for a store's folder, the file
    ``corrections.jsonl`` in it.

    Raises:
        UsageError: the labels come from standard input.
    """
    path = Path(labels)
    if str(labels) == STDIO:
        raise UsageError(
            "labels from standard input have no file next to them: name the other file"
        )
    if path.is_dir():
        return path / IN_STORE
    name = path.name.removesuffix(".gz").removesuffix(".jsonl")
    return path.with_name(f"{name}{SUFFIX}")


@dataclass(frozen=True)
class Corrections:
    """The content of a corrections file.

    Attributes:
        events: every correction, in file order.
        torn: ``FILE:LINE`` of incomplete lines, which are skipped.
    """

    events: tuple[Correction, ...] = ()
    torn: tuple[str, ...] = ()


def by_time(events: Iterable[Correction]) -> list[Correction]:
    """Return corrections by their time; at one time, in their order. Files can be joined."""
    return sorted(events, key=lambda event: datetime.fromisoformat(event.at))


def current(events: Iterable[Correction]) -> tuple[Correction, ...]:
    """Return each person's latest correction of each label by time, without withdrawn ones."""
    last: dict[tuple[str, str], Correction] = {}
    for event in by_time(events):
        last.pop((event.key, event.annotator), None)
        last[event.key, event.annotator] = event
    return tuple(event for event in last.values() if not event.withdrawn)


def independent(events: Iterable[Correction]) -> tuple[Correction, ...]:
    """Return each person's independent correction of each label, which statistics count.

    That is the latest judgment made while the judge's verdicts were hidden, even if the person
    saved another after seeing them. For a person who never judged blind it is the latest
    correction, as in :func:`current`. Withdrawn corrections are missing.
    """
    every = by_time(events)
    blind: dict[tuple[str, str], Correction] = {}
    for event in every:
        if event.withdrawn:
            blind.pop((event.key, event.annotator), None)
        elif event.blind and event.verdict is not None:
            blind[event.key, event.annotator] = event
    return tuple(blind.get((event.key, event.annotator), event) for event in current(every))


@with_named_keywords
class CorrectionsFile:
    """A corrections file; several processes and threads may append to it at once.

    Args:
        path: the file; it need not exist.

    Raises:
        UsageError: the path is standard input or output.

    Example:
        >>> file = labeler.data.CorrectionsFile(folder / "labels.corrections.jsonl")
        >>> len(file.read().events)
        0
    """

    def __init__(self, path: str | Path) -> None:
        if str(path) == STDIO:
            raise UsageError(
                f"{STDIO} keeps nothing: name a file for the corrections, or ./{STDIO} for one of "
                "that name"
            )
        self.path = Path(path)

    def append(self, *corrections: Correction) -> None:
        """Append corrections durably; all of them or none.

        Raises:
            UsageError: a correction is too large, or the file is gzipped.
            StoreError: the file is not writable.
        """
        content = b"".join(map(_line, corrections))
        if not content:
            return
        self.check_appendable()
        try:
            with self._opened() as descriptor:
                _append(descriptor, content)
        except OSError as error:
            raise StoreError(
                f"{self.path}: nothing was added: {error.strerror or error}; check the folder, its "
                "rights and the disk's room, then do it again"
            ) from error

    def check_appendable(self) -> None:
        """Reject a gzipped file, which plain lines would make unreadable.

        Raises:
            UsageError: the file is gzipped.
        """
        if self.path.is_file() and is_gzipped(self.path):
            raise UsageError(
                f"{self.path} is packed by gzip, and nothing can be added to it: unpack it first "
                "(gunzip), and name what comes out"
            )

    def read(self) -> Corrections:
        """Read the file; a missing file has no corrections.

        Raises:
            UsageError: a line is not a correction; the message names file and line.
        """
        return read_corrections(self.path) if self.path.exists() else Corrections()

    def rewrite(self, change: Callable[[Path], None]) -> None:
        """Have a function replace the file, while nobody else appends to it."""
        with self._opened():
            change(self.path)

    def current(self) -> tuple[Correction, ...]:
        """Return the latest corrections; see :func:`current`."""
        return current(self.read().events)

    @contextlib.contextmanager
    def _opened(self) -> Iterator[int]:
        """Open the file for appending and hold its lock."""
        is_new = not self.path.exists()
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
        descriptor = os.open(self.path, flags, _MODE)
        try:
            _lock(descriptor, self.path)
            if not os.path.samestat(os.fstat(descriptor), self.path.stat()):
                raise OSError("it was replaced meanwhile")
            if is_new:
                flush_directory(self.path.parent)
            yield descriptor
        finally:
            os.close(descriptor)  # releases the lock


def read_corrections(path: str | Path) -> Corrections:
    """Read a corrections file, gzipped or not, or standard input (``-``).

    Raises:
        UsageError: the file cannot be read, or a line is not a correction; the message names both.
    """
    # Without the lock, a line that is being appended may look incomplete.
    with locked(path, shared=True) if Path(path).is_file() else contextlib.nullcontext():
        read = [(line.where, _event(line)) for line in read_lines(path)]
    events = tuple(event for _, event in read if event is not None)
    return Corrections(events, tuple(where for where, event in read if event is None))


def is_corrections_file(path: str | Path) -> bool:
    """Return True if a readable, regular file begins with a correction."""
    if not Path(path).is_file():
        return False
    line = b""
    with contextlib.suppress(UsageError):
        line = next((first.content.strip() for first in read_lines(path)), b"")
    if len(line) < len(_BEGINNING):
        return len(line) > 1 and _BEGINNING.startswith(line)  # a lone brace may be of any file
    return line.startswith(b"{") and _KIND.search(line, 0, 200) is not None


def keep_corrections(path: str | Path) -> None:
    """Reject a corrections file as the target of a command that would overwrite it.

    Raises:
        UsageError: the file holds corrections.
    """
    if is_corrections_file(path):
        raise UsageError(
            f"{path} holds what people said of labels, which overwriting it would lose: write to "
            "another file"
        )


@contextlib.contextmanager
def locked(path: str | Path, *, shared: bool = False) -> Iterator[None]:
    """Hold the lock of a file, where the file system has locks.

    Raises:
        StoreError: another process held it for 30 seconds.
    """
    with contextlib.ExitStack() as held:
        with contextlib.suppress(OSError):
            descriptor = os.open(path, os.O_RDONLY)
            held.callback(os.close, descriptor)
            _lock(descriptor, Path(path), shared=shared)
        yield


def _event(line: Line) -> Correction | None:
    """Return the correction in a line; ``None`` if the line is incomplete."""
    if len(line.content) > LONGEST_LINE:
        raise UsageError(
            f"{line.where}: {len(line.content)} bytes in one line; a correction has "
            f"{LONGEST_LINE} at most"
        )
    try:
        return Correction.model_validate_json(line.content, strict=True)
    except ValidationError as error:
        start = line.content.rstrip(b"\r\n")
        is_ours = start.startswith(_BEGINNING) or _BEGINNING.startswith(start)
        if is_ours and validation_faults(error)[0]["type"] == "json_invalid":
            return None
        raise UsageError(
            f"{line.where}: not a correction: {describe_faults(error, most=3, whole='line'):.600}; "
            "corrections are written by 'labeler review' and 'labeler corrections import': mend "
            "the line, or leave it out"
        ) from error


def _line(correction: Correction) -> bytes:
    content = correction.model_dump_json().encode() + b"\n"
    if len(content) > LONGEST_LINE:
        raise UsageError(
            f"the correction of record {correction.id!r:.80} takes {len(content)} bytes; a line "
            f"may have {LONGEST_LINE}"
        )
    return content


def _append(descriptor: int, content: bytes) -> None:
    """Append under the lock; on an error, restore the file."""
    start = os.lseek(descriptor, 0, os.SEEK_END)
    if start:
        os.lseek(descriptor, start - 1, os.SEEK_SET)
        if os.read(descriptor, 1) != b"\n":
            content = b"\n" + content  # end an incomplete line; readers report it
    try:
        rest = content
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        os.fsync(descriptor)
    except OSError:
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, start)
        raise


def _lock(descriptor: int, path: Path, *, shared: bool = False) -> None:
    """Take the lock of a file; closing the descriptor releases it.

    Raises:
        StoreError: another process held the lock for 30 seconds.
        OSError: the file system has no locks.
    """
    until = time.monotonic() + _LOCK_TIMEOUT
    while not _locked(descriptor, shared=shared):
        if time.monotonic() > until:
            raise StoreError(
                f"{path}: another program has been writing to it for {_LOCK_TIMEOUT:.0f} seconds; "
                "see what it does, then do this again"
            )
        time.sleep(_POLL)


if sys.platform == "win32":
    _FAR = 1 << 30
    """A byte beyond any file, because a lock on Windows also blocks readers."""

    def _locked(descriptor: int, *, shared: bool) -> bool:
        """Try to take the lock; on Windows every lock is exclusive."""
        del shared
        os.lseek(descriptor, _FAR, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        return True

else:

    def _locked(descriptor: int, *, shared: bool) -> bool:
        """Try to take the lock of the open file, which also excludes threads."""
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
