"""The leases of a store: who may ask for a key's label, known to the system and written nowhere.

A lease on disk is a lock on one byte of an empty file beside the database. The system lets go of
it when the process ends, however it ends: there are no clocks, no process numbers, and nothing is
left to clean up. The byte is a digest of the key; two keys in very many share one, and then merely
wait for one another.

The system walks a list of all that is locked in a file before it locks more, hence sixteen files:
to take 10,000 leases and keep them takes 0.1 s, 50,000 take 5 s and 100,000 half a minute (in a
single file, 20,000 take 7 s; one core at 2 to 3 GHz). With few held, one takes 10 µs.

No one may remove a file while a store is open: who comes later would lock another one.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import struct
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from labeler.errors import StoreError, UsageError

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

FILES = tuple(f"leases-{digit:x}" for digit in range(16))


class OnceLease:
    """A lease that is let go by the first release alone; a later one cannot free another's."""

    def __init__(self, let_go: Callable[[], object]) -> None:
        self._let_go = let_go
        self._released = threading.Lock()

    def release(self) -> None:
        """Let others ask; again is harmless."""
        if self._released.acquire(blocking=False):
            self._let_go()


class MemoryLeases:
    """The leases among the users of one object in memory."""

    def __init__(self) -> None:
        self._taken: dict[str, object] = {}

    def take(self, key: str) -> OnceLease | None:
        """Reserve a key; ``None`` where someone has it."""
        mine = object()
        if self._taken.setdefault(key, mine) is not mine:
            return None
        return OnceLease(partial(self._taken.pop, key, None))


class FileLeases:
    """The leases of one store object on disk, usable from several threads."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._files: dict[str, _LockFile] = {}
        self._closed = False

    def take(self, key: str) -> OnceLease | None:
        """Reserve a key; ``None`` where someone has it.

        Raises:
            StoreError: the system or the file system gives no locks.
            UsageError: the store is closed.
        """
        name, place = _place(key)
        with _GUARD:
            if self._closed:
                raise UsageError(f"label store {self._directory} is closed; open it again")
            try:
                file = self._files.get(name) or self._open(name)
                if not file.lock(place, self):
                    return None
            except OSError as error:
                raise StoreError(
                    f"label store {self._directory}: {name} gives no leases: {error}; keep the "
                    "store on a local disk, in a directory that you may write to"
                ) from error
        return OnceLease(partial(self._free, file, place))

    def close(self) -> None:
        """Let go of every lease; again is harmless."""
        with _GUARD:
            self._closed = True
            while self._files:
                _, file = self._files.popitem()
                file.leave(self)

    def _free(self, file: _LockFile, place: int) -> None:
        with _GUARD:
            file.unlock(place, self)

    def _open(self, name: str) -> _LockFile:
        """Join the stores of this process that use the file already, or open it."""
        path = self._directory / name
        file = _opened(path) or _LockFile(path)
        file.users.add(self)
        self._files[name] = file
        return file


class _LockFile:
    """An open file, and which store object of this process has which of its bytes.

    Opened once in a process: the system may tell processes apart and not the parts of one, and
    where it does that, closing a file a second time lets go of all that the first one locked.
    """

    def __init__(self, path: Path) -> None:
        no_follow = getattr(os, "O_NOFOLLOW", 0)
        # No program that this one starts inherits a descriptor that Python opens.
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | no_follow, 0o600)
        self._identity = _identity(os.fstat(self._descriptor))
        self._path = path
        self._holders: dict[int, FileLeases] = {}
        self.users: set[FileLeases] = set()
        _OPEN[self._identity] = self

    def lock(self, place: int, holder: FileLeases) -> bool:
        """Lock a byte; ``False`` where another has it."""
        if place in self._holders:
            return False
        if self._descriptor < 0:
            raise UsageError(
                f"{self._path} was opened before this process was forked; open the store here"
            )
        if not os.fstat(self._descriptor).st_nlink:
            raise StoreError(
                f"{self._path} was removed while it was in use: others may ask for the same "
                "labels; run again, and leave the file where it is"
            )
        try:
            _set_lock(self._descriptor, place)
        except OSError as error:
            if error.errno not in {errno.EACCES, errno.EAGAIN}:
                raise
            return False
        self._holders[place] = holder
        return True

    def unlock(self, place: int, holder: FileLeases) -> None:
        """Let go of a byte, where the holder still has it."""
        if self._holders.get(place) is holder:
            # What cannot be let go of now goes with the process, and others wait until then.
            with suppress(OSError):
                _set_lock(self._descriptor, place, free=True)
            del self._holders[place]

    def leave(self, user: FileLeases) -> None:
        """Let go of all that a store object has; the last one closes the file."""
        self.users.discard(user)
        if self.users:
            for place in self._holders.copy():
                self.unlock(place, user)
        else:
            self.forget()

    def forget(self) -> None:
        """Close the file; the locks go with it, unless it is a parent's that has it open too."""
        _OPEN.pop(self._identity, None)
        self._holders.clear()
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


_GUARD = threading.RLock()
"""Reentrant, because a store that is collected as garbage closes itself wherever that happens."""
_OPEN: dict[tuple[int, int], _LockFile] = {}
"""The open files of this process by device and number."""


def _place(key: str) -> tuple[str, int]:
    """A key's file, and the number of its byte there: up to 62 bits, which every system takes."""
    digest = hashlib.sha256(key.encode("utf-8", "backslashreplace")).digest()
    return FILES[digest[0] % len(FILES)], int.from_bytes(digest[1:9]) >> 2


def _opened(path: Path) -> _LockFile | None:
    """The file of that name where this process has it open."""
    try:
        facts = path.lstat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(facts.st_mode):
        raise StoreError(
            f"{path} is no plain file: it does not belong in a label store; remove it if you did "
            "not put it there, or restore the store from a copy"
        )
    return _OPEN.get(_identity(facts))


def _identity(facts: os.stat_result) -> tuple[int, int]:
    return facts.st_dev, facts.st_ino


_FLOCK = struct.Struct("hhqqi0q")
"""Linux's ``struct flock``: kind, whence, start, length, and a process number that must be 0."""

if sys.platform == "win32":

    def _set_lock(descriptor: int, place: int, *, free: bool = False) -> None:
        """Lock or free one byte without waiting; an ``OSError`` where that cannot be."""
        os.lseek(descriptor, place, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK if free else msvcrt.LK_NBLCK, 1)

else:

    def _set_lock(descriptor: int, place: int, *, free: bool = False) -> None:
        """Lock or free one byte without waiting; an ``OSError`` where that cannot be."""
        if sys.platform == "linux":
            # A lock of this open file: whatever else the process opens and closes, it stays.
            kind = fcntl.F_UNLCK if free else fcntl.F_WRLCK
            wanted = _FLOCK.pack(kind, os.SEEK_SET, place, 1, 0)
            try:
                fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, wanted)
            except OSError as error:
                if error.errno != errno.EINVAL:  # A kernel without them, as in some sandboxes.
                    raise
            else:
                return
        fcntl.lockf(descriptor, fcntl.LOCK_UN if free else fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)


def _forget_the_parents() -> None:
    """In a forked child: keep none of the parent's locks alive, and free none of them."""
    try:
        for file in list(_OPEN.values()):
            file.forget()
    finally:
        _GUARD.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_GUARD.acquire, after_in_parent=_GUARD.release, after_in_child=_forget_the_parents
    )
