"""Leases of label keys: operating-system locks that exclude other askers and leave no trace.

A lease on disk is a lock on one byte of an empty file next to the database. The system releases it
when the process ends, however it ends: there are no clocks and no process numbers, and nothing to
clean up. The byte's position is a digest of the key; two keys that share one, which is very rare,
merely wait for each other.

The system scans a list of all locks in a file before it adds one, hence sixteen files: acquiring
10,000 leases takes 0.1 s, in a single file it would take 2 s.

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
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from weakref import WeakValueDictionary

from labeler.errors import StoreError, UsageError

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

FILES = tuple(f"leases-{digit:x}" for digit in range(16))
_Place = tuple[str, int]
"""The file and byte of a key."""


@dataclass(frozen=True, eq=False)
class FileLease:
    """A lease that only its first release frees; a later one cannot free someone else's."""

    files: _LockFiles
    holder: FileLeases
    place: _Place

    def release(self) -> None:
        """Free the key; calling it again has no effect."""
        with _GUARD:
            if self.files.leases.get(self.place) is self:
                del self.files.leases[self.place]
                # If unlocking fails, the lock ends with the process, and others wait until then.
                with suppress(OSError):
                    name, offset = self.place
                    _set_lock(self.files.opened[name], offset, free=True)


class FileLeases:
    """The leases of one store object on disk, usable from several threads."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        facts = directory.stat()
        with _GUARD:
            self._files: _LockFiles | None = _OPEN.setdefault(
                (facts.st_dev, facts.st_ino), _LockFiles(directory)
            )

    def acquire(self, key: str) -> FileLease | None:
        """Reserve a key; ``None`` if someone holds it.

        Raises:
            StoreError: the system or the file system does not support locks.
            UsageError: the store is closed.
        """
        place = _place(key)
        with _GUARD:
            if self._files is None:
                raise UsageError(f"label store {self._directory} is closed; open it again")
            lease = FileLease(self._files, self, place)
            try:
                return lease if self._files.lock(lease) else None
            except OSError as error:
                raise StoreError(
                    f"label store {self._directory}: {place[0]} gives no leases: {error}; keep the "
                    "store on a local disk, in a directory that you may write to"
                ) from error

    def close(self) -> None:
        """Release every lease; calling it again has no effect."""
        with _GUARD:
            files, self._files = self._files, None
            for lease in [*files.leases.values()] if files else ():
                if lease.holder is self:
                    lease.release()


class _LockFiles:
    """The open lock files of a directory, and which lease holds which byte.

    A process opens each file once: some systems assign locks to processes, so that closing a second
    descriptor of the file would release every lock of the first.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.opened: dict[str, int] = {}
        self.leases: dict[_Place, FileLease] = {}
        self._is_forked = False

    def lock(self, lease: FileLease) -> bool:
        """Lock the byte of a lease; ``False`` if someone else has it."""
        name, offset = lease.place
        path = self._directory / name
        if self._is_forked:
            raise UsageError(f"{path} was opened before this process was forked; open it here")
        if lease.place in self.leases:
            return False
        if name not in self.opened:
            self.opened[name] = _opened(path)
        if not os.fstat(self.opened[name]).st_nlink:
            raise StoreError(
                f"{path} was removed while it was in use: others may ask for the same labels; "
                "run again, and leave the file where it is"
            )
        try:
            _set_lock(self.opened[name], offset)
        except OSError as error:
            if error.errno not in {errno.EACCES, errno.EAGAIN}:
                raise
            return False
        self.leases[lease.place] = lease
        return True

    def close(self) -> None:
        """Close the files and thereby end their locks, unless a parent process has them open."""
        while self.opened:
            os.close(self.opened.popitem()[1])

    __del__ = close

    def forget(self) -> None:
        """Neither keep the locks of the parent process alive nor release them."""
        self._is_forked = True
        self.leases.clear()
        self.close()


_GUARD = threading.RLock()
"""Reentrant: a garbage-collected store closes itself, possibly while this thread holds it."""
_OPEN: WeakValueDictionary[tuple[int, int], _LockFiles] = WeakValueDictionary()
"""Lock files in use by this process, by their folder; the last user's end closes them."""


def _place(key: str) -> _Place:
    """Return a key's file and byte offset: up to 62 bits, which every system supports."""
    digest = hashlib.sha256(key.encode("utf-8", "backslashreplace")).digest()
    return FILES[digest[0] % len(FILES)], int.from_bytes(digest[1:9]) >> 2


def _opened(path: Path) -> int:
    """Open a lock file; child programs do not inherit descriptors that Python opens."""
    flags = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | flags, 0o600)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise StoreError(f"{path} is not a regular file; remove it if you did not put it there")
    return descriptor


_FLOCK = struct.Struct("hhqqi0q")
"""Linux's ``struct flock``: type, whence, start, length, and a process number that must be 0."""


def _set_lock(descriptor: int, offset: int, *, free: bool = False) -> None:
    """Lock or unlock one byte without waiting; ``OSError`` if that fails."""
    if sys.platform == "win32":
        os.lseek(descriptor, offset, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK if free else msvcrt.LK_NBLCK, 1)
        return
    if sys.platform == "linux":
        # A lock of this open file description: closing other descriptors does not end it.
        wanted = _FLOCK.pack(fcntl.F_UNLCK if free else fcntl.F_WRLCK, os.SEEK_SET, offset, 1, 0)
        try:
            fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, wanted)
        except OSError as error:
            if error.errno != errno.EINVAL:  # The kernel lacks them, as in some sandboxes.
                raise
        else:
            return
    fcntl.lockf(descriptor, fcntl.LOCK_UN if free else fcntl.LOCK_EX | fcntl.LOCK_NB, 1, offset)


def _forget_all() -> None:
    try:
        for files in [*_OPEN.values()]:
            files.forget()
    finally:
        _GUARD.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_GUARD.acquire, after_in_parent=_GUARD.release, after_in_child=_forget_all
    )
