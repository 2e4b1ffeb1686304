"""The file of corrections: lines are added at its end, and none is ever changed.

An addition is one write under a lock, and durable when it returns. What a crash leaves behind is
the beginning of a line: readers report and skip it, and the next addition begins a line of its own.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from labeler.data.corrections.correction import Correction
from labeler.data.lines import STDIO, Line, is_gzipped, read_lines
from labeler.errors import StoreError, UsageError

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

SUFFIX = ".corrections.jsonl"
IN_STORE = "corrections.jsonl"
"""Name of the file in a store's folder."""
LONGEST_LINE = 4_000_000
"""Bytes of one line at most."""
_BEGINNING = b'{"kind":"correction"'
"""How every line begins that we write: by it a line that was cut off is told from a strange one."""
_PATIENCE = 30.0
"""Seconds to wait for others to finish their addition."""
_BETWEEN = 0.005
_MODE = 0o644


def corrections_path(labels: str | Path) -> Path:
    """Where the corrections of labels are kept unless another file is named.

    ``runs/labels.jsonl`` → ``runs/labels.corrections.jsonl``; of a store's folder, the file
    ``corrections.jsonl`` in it.

    Raises:
        UsageError: the labels come from standard input.
    """
    path = Path(labels)
    if str(labels) == STDIO:
        raise UsageError("labels from standard input have no file beside them: name the other file")
    if path.is_dir():
        return path / IN_STORE
    name = path.name.removesuffix(".gz").removesuffix(".jsonl")
    return path.with_name(f"{name}{SUFFIX}")


@dataclass(frozen=True)
class Corrections:
    """What a corrections file holds.

    Attributes:
        events: every correction, the oldest first.
        torn: ``FILE:LINE`` of lines that a crash cut off; they say nothing.
    """

    events: tuple[Correction, ...] = ()
    torn: tuple[str, ...] = ()

    def current(self) -> tuple[Correction, ...]:
        """See :func:`current`."""
        return current(self.events)


def current(events: Iterable[Correction]) -> tuple[Correction, ...]:
    """What each person says last of each label, without what was taken back.

    The order of the file decides, not the clocks; of the result, it is that of the last words.
    """
    last: dict[tuple[str, str], Correction] = {}
    for event in events:
        last.pop((event.key, event.annotator), None)
        last[event.key, event.annotator] = event
    return tuple(event for event in last.values() if not event.withdrawn)


def unled(events: Iterable[Correction]) -> tuple[Correction, ...]:
    """What each person says of each label by themselves, where they did: what statistics count.

    That is the last judgement made while the judge's verdicts were hidden, also where the person
    saved another after seeing them; of who never judged blind, the last word as in
    :func:`current`. What was taken back is missing.
    """
    last: dict[tuple[str, str], Correction] = {}
    blind: dict[tuple[str, str], Correction] = {}
    for event in events:
        who = event.key, event.annotator
        last.pop(who, None)
        last[who] = event
        if event.withdrawn:
            blind.pop(who, None)
        elif event.blind and event.verdict is not None:
            blind[who] = event
    return tuple(blind.get(who, event) for who, event in last.items() if not event.withdrawn)


class CorrectionsFile:
    """A file of corrections; several processes and threads may add to it at once.

    Args:
        path: the file; it need not exist.

    Raises:
        UsageError: it is standard input or output, which keep nothing.
    """

    def __init__(self, path: str | Path) -> None:
        if str(path) == STDIO:
            raise UsageError(
                f"{STDIO} keeps nothing: name a file for the corrections, or ./{STDIO} for one of "
                "that name"
            )
        self.path = Path(path)

    def append(self, *corrections: Correction) -> None:
        """Add corrections so that they survive a crash; all of them or none.

        Raises:
            UsageError: one is too large, or the file is packed.
            StoreError: the file cannot be written.
        """
        content = b"".join(map(_line, corrections))
        if not content:
            return
        self.check_unpacked()
        try:
            with self._opened() as descriptor:
                _add(descriptor, content)
        except OSError as error:
            raise StoreError(
                f"{self.path}: nothing was added: {error.strerror or error}; check the folder, its "
                "rights and the disk's room, then do it again"
            ) from error

    def check_unpacked(self) -> None:
        """See that lines can be added: behind packed ones they would spoil the whole file.

        Raises:
            UsageError: the file is packed by gzip.
        """
        if self.path.is_file() and is_gzipped(self.path):
            raise UsageError(
                f"{self.path} is packed by gzip, and nothing can be added to it: unpack it first "
                "(gunzip), and name what comes out"
            )

    def read(self) -> Corrections:
        """Read all there is; a file that does not exist holds nothing.

        Raises:
            UsageError: a line is no correction; the message names file and line.
        """
        return read_corrections(self.path) if self.path.exists() else Corrections()

    def current(self) -> tuple[Correction, ...]:
        """What each person says last of each label; see :func:`current`."""
        return self.read().current()

    @contextlib.contextmanager
    def _opened(self) -> Iterator[int]:
        """The file open for adding, and nobody else adding to it."""
        is_new = not self.path.exists()
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
        descriptor = os.open(self.path, flags, _MODE)
        try:
            _lock(descriptor, self.path)
            if is_new:
                _flush_folder(self.path.parent)
            yield descriptor
        finally:
            os.close(descriptor)  # the lock goes with it


def read_corrections(path: str | Path) -> Corrections:
    """Read a corrections file, packed by gzip or not, or standard input (``-``).

    Raises:
        UsageError: it cannot be read, or a line is no correction; the message names file and line.
    """
    events, torn = [], []
    for line in _complete_lines(path):
        event = _event(line)
        if event is None:
            torn.append(line.where)
        else:
            events.append(event)
    return Corrections(tuple(events), tuple(torn))


def is_corrections_file(path: str | Path) -> bool:
    """Whether a file begins with a correction: false of what cannot be read, or only once."""
    if not Path(path).is_file():
        return False
    try:
        first = next(iter(read_lines(path)), None)
    except UsageError:
        return False
    return first is not None and _has_kind(first.content.strip())


def keep_corrections(path: str | Path) -> None:
    """See that a file which is to be written anew holds nothing that people said.

    Raises:
        UsageError: it is a file of corrections.
    """
    if is_corrections_file(path):
        raise UsageError(
            f"{path} holds what people said of labels, which writing it anew would lose: write to "
            "another file"
        )


def _has_kind(line: bytes) -> bool:
    if len(line) < len(_BEGINNING):
        return len(line) > 1 and _BEGINNING.startswith(line)  # a brace alone may be anyone's
    return line.startswith(b"{") and b'"correction"' in line[:200]


def _complete_lines(path: str | Path) -> Iterator[Line]:
    """The lines of a file, while nobody adds to it where that can be seen to."""
    with contextlib.ExitStack() as held:
        if Path(path).is_file():
            # On a file system without locks, a line that is being added may look cut off.
            with contextlib.suppress(OSError):
                descriptor = os.open(path, os.O_RDONLY)
                held.callback(os.close, descriptor)
                _lock(descriptor, Path(path), shared=True)
        yield from read_lines(path)


def _event(line: Line) -> Correction | None:
    """The correction of a line; ``None`` of the beginning of one that we would write."""
    if len(line.content) > LONGEST_LINE:
        raise UsageError(
            f"{line.where}: {len(line.content)} bytes in one line; a correction has "
            f"{LONGEST_LINE} at most"
        )
    try:
        return Correction.model_validate_json(line.content, strict=True)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False, include_context=False)
        if faults[0]["type"] == "json_invalid" and _is_beginning(line.content.rstrip(b"\r\n")):
            return None
        shown = "; ".join(
            f"{'.'.join(f'{part!s:.40}' for part in fault['loc']) or 'line'}: {fault['msg']:.200}"
            for fault in faults[:3]
        )
        raise UsageError(
            f"{line.where}: not a correction: {shown}; corrections are written by 'labeler review' "
            "and 'labeler corrections import': mend the line, or leave it out"
        ) from error


def _is_beginning(line: bytes) -> bool:
    return line.startswith(_BEGINNING) or _BEGINNING.startswith(line)


def _line(correction: Correction) -> bytes:
    content = correction.model_dump_json().encode() + b"\n"
    if len(content) > LONGEST_LINE:
        raise UsageError(
            f"the correction of record {correction.id!r:.80} takes {len(content)} bytes; a line "
            f"may have {LONGEST_LINE}"
        )
    return content


def _add(descriptor: int, content: bytes) -> None:
    """Write at the end, under the lock, and see that it is there; or leave the file as it was."""
    start = os.lseek(descriptor, 0, os.SEEK_END)
    if start and _at(descriptor, start - 1, 1) != b"\n":
        content = b"\n" + content  # end the line that a crash cut off: it is reported, not mended
    try:
        rest = content
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        os.fsync(descriptor)
        _check(descriptor, start, content)
    except OSError:
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, start)
        raise


def _check(descriptor: int, place: int, content: bytes) -> None:
    if _at(descriptor, place, len(content)) != content:
        raise OSError("what was written does not read back")


def _at(descriptor: int, place: int, size: int) -> bytes:
    """Read some bytes; the file is open for adding, so that writing is not moved by it."""
    os.lseek(descriptor, place, os.SEEK_SET)
    found = b""
    while len(found) < size and (part := os.read(descriptor, size - len(found))):
        found += part
    return found


def _lock(descriptor: int, path: Path, *, shared: bool = False) -> None:
    """Wait until nobody else adds to the file; the lock ends with the descriptor.

    Raises:
        StoreError: somebody is at it for half a minute.
        OSError: the file system has no locks.
    """
    until = time.monotonic() + _PATIENCE
    while not _locked(descriptor, shared=shared):
        if time.monotonic() > until:
            raise StoreError(
                f"{path}: another program has been writing to it for {_PATIENCE:.0f} seconds; "
                "see what it does, then do this again"
            )
        time.sleep(_BETWEEN)


if sys.platform == "win32":
    _FAR = 1 << 30
    """A byte that no file reaches: a lock on Windows keeps others from reading, too."""

    def _locked(descriptor: int, *, shared: bool) -> bool:
        """Take the lock if it is free; on Windows there is but one kind."""
        del shared
        os.lseek(descriptor, _FAR, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        return True

else:

    def _locked(descriptor: int, *, shared: bool) -> bool:
        """Take the lock if it is free; it is of the open file, so threads wait as well."""
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def _flush_folder(folder: Path) -> None:
    """Make a new name survive a loss of power, where the system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
