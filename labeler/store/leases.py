"""Leases of label keys: operating-system locks that exclude other askers and leave no trace.

A lease on disk is a lock on one byte of an empty file next to the database. The system releases it
when the process ends, however it ends: there are no clocks and no process numbers, and nothing to
clean up. The byte's position is a digest of the key; two keys that share one, which is very rare,
merely wait for each other.

The system scans a list of all locks in a file before it adds one, hence sixteen files: acquiring
and keeping 10,000 leases takes 0.1 s, 50,000 take 5 s and 100,000 half a minute (in a single file,
20,000 take 7 s; one core at 2 to 3 GHz). When few are held, one takes 10 µs.

Never delete a lease file while a store is open: the next process would lock another file.
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
    """A lease that only the first release frees; a later one cannot free someone else's."""

    def __init__(self, free: Callable[[], object]) -> None:
        self._free = free
        self._released = threading.Lock()

    def release(self) -> None:
        """Free the key; calling it again has no effect."""
        if self._released.acquire(blocking=False):
            self._free()


class MemoryLeases:
    """Leases among the users of one object in memory."""

    def __init__(self) -> None:
        self._held: dict[str, object] = {}

    def acquire(self, key: str) -> OnceLease | None:
        """Reserve a key; ``None`` if someone holds it."""
        mine = object()
        if self._held.setdefault(key, mine) is not mine:
            return None
        return OnceLease(partial(self._held.pop, key, None))


class FileLeases:
    """The leases of one store object on disk, usable from several threads."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._files: dict[str, _LockFile] = {}
        self._closed = False

    def acquire(self, key: str) -> OnceLease | None:
        """Reserve a key; ``None`` if someone holds it.

        Raises:
            StoreError: the system or the file system does not support locks.
            UsageError: the store is closed.
        """
        name, offset = _location(key)
        with _GUARD:
            if self._closed:
                raise UsageError(f"label store {self._directory} is closed; open it again")
            try:
                file = self._files.get(name) or self._open(name)
                if not file.lock(offset, self):
                    return None
            except OSError as error:
                raise StoreError(
                    f"label store {self._directory}: {name} gives no leases: {error}; keep the "
                    "store on a local disk, in a directory that you may write to"
                ) from error
        return OnceLease(partial(self._free, file, offset))

    def close(self) -> None:
        """Release every lease; calling it again has no effect."""
        with _GUARD:
            self._closed = True
            while self._files:
                _, file = self._files.popitem()
                file.leave(self)

    def _free(self, file: _LockFile, offset: int) -> None:
        with _GUARD:
            file.unlock(offset, self)

    def _open(self, name: str) -> _LockFile:
        """Share the file if this process has it open, or open it."""
        path = self._directory / name
        file = _shared(path) or _LockFile(path)
        file.users.add(self)
        self._files[name] = file
        return file


class _LockFile:
    """An open lock file, and which store object of this process holds which byte.

    A process opens each file once: some systems assign locks to processes, so that closing a second
    descriptor of the file would release every lock of the first.
    """

    def __init__(self, path: Path) -> None:
        no_follow = getattr(os, "O_NOFOLLOW", 0)
        # Child programs do not inherit descriptors that Python opens.
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | no_follow, 0o600)
        self._identity = _identity(os.fstat(self._descriptor))
        self._path = path
        self._holders: dict[int, FileLeases] = {}
        self.users: set[FileLeases] = set()
        _OPEN[self._identity] = self

    def lock(self, offset: int, holder: FileLeases) -> bool:
        """Lock a byte; ``False`` if someone else has it."""
        if offset in self._holders:
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
            _set_lock(self._descriptor, offset)
        except OSError as error:
            if error.errno not in {errno.EACCES, errno.EAGAIN}:
                raise
            return False
        self._holders[offset] = holder
        return True

    def unlock(self, offset: int, holder: FileLeases) -> None:
        """Unlock a byte if the holder still has it."""
        if self._holders.get(offset) is holder:
            # If unlocking fails, the lock ends with the process, and others wait until then.
            with suppress(OSError):
                _set_lock(self._descriptor, offset, free=True)
            del self._holders[offset]

    def leave(self, user: FileLeases) -> None:
        """Unlock all bytes of a store object; the last user closes the file."""
        self.users.discard(user)
        if self.users:
            for offset in self._holders.copy():
                self.unlock(offset, user)
        else:
            self.close()

    def close(self) -> None:
        """Close the file and thereby end its locks, unless a parent process has it open too."""
        _OPEN.pop(self._identity, None)
        self._holders.clear()
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


_GUARD = threading.RLock()
"""Reentrant: a garbage-collected store closes itself, possibly while this thread holds it."""
_OPEN: dict[tuple[int, int], _LockFile] = {}
"""Open files of this process by device and inode."""


def _location(key: str) -> tuple[str, int]:
    """Return a key's file and byte offset: up to 62 bits, which every system supports."""
    digest = hashlib.sha256(key.encode("utf-8", "backslashreplace")).digest()
    return FILES[digest[0] % len(FILES)], int.from_bytes(digest[1:9]) >> 2


def _shared(path: Path) -> _LockFile | None:
    """Return the lock file of that path if this process has it open."""
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
"""Linux's ``struct flock``: type, whence, start, length, and a process number that must be 0."""

if sys.platform == "win32":

    def _set_lock(descriptor: int, offset: int, *, free: bool = False) -> None:
        """Lock or unlock one byte without waiting; ``OSError`` if that fails."""
        os.lseek(descriptor, offset, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK if free else msvcrt.LK_NBLCK, 1)

else:

    def _set_lock(descriptor: int, offset: int, *, free: bool = False) -> None:
        """Lock or unlock one byte without waiting; ``OSError`` if that fails."""
        if sys.platform == "linux":
            # A lock of this open file description: closing other descriptors does not end it.
            kind = fcntl.F_UNLCK if free else fcntl.F_WRLCK
            wanted = _FLOCK.pack(kind, os.SEEK_SET, offset, 1, 0)
            try:
                fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, wanted)
            except OSError as error:
                if error.errno != errno.EINVAL:  # The kernel lacks them, as in some sandboxes.
                    raise
            else:
                return
        fcntl.lockf(descriptor, fcntl.LOCK_UN if free else fcntl.LOCK_EX | fcntl.LOCK_NB, 1, offset)


def _drop_inherited_files() -> None:
    """In a forked child: neither keep the parent's locks alive nor release them."""
    try:
        for file in list(_OPEN.values()):
            file.close()
    finally:
        _GUARD.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_GUARD.acquire, after_in_parent=_GUARD.release, after_in_child=_drop_inherited_files
    )
