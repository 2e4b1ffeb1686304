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

    folder: _LeaseFolder
    place: _Place

    def release(self) -> None:
        """Free the key; calling it again has no effect."""
        self.folder.unlock(self.place, self)


class FileLeases:
    """The leases of one store object on disk, usable from several threads."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        facts = directory.stat()
        identity = facts.st_dev, facts.st_ino
        with _GUARD:
            self._folder: _LeaseFolder | None = _OPEN.get(identity) or _LeaseFolder(directory)
            _OPEN[identity] = self._folder

    def acquire(self, key: str) -> FileLease | None:
        """Reserve a key; ``None`` if someone holds it.

        Raises:
            StoreError: the system or the file system does not support locks.
            UsageError: the store is closed.
        """
        place = _place(key)
        with _GUARD:
            if self._folder is None:
                raise UsageError(f"label store {self._directory} is closed; open it again")
            lease = FileLease(self._folder, place)
            try:
                return lease if self._folder.lock(place, lease, self) else None
            except OSError as error:
                raise StoreError(
                    f"label store {self._directory}: {place[0]} gives no leases: {error}; keep the "
                    "store on a local disk, in a directory that you may write to"
                ) from error

    def close(self) -> None:
        """Release every lease; calling it again has no effect."""
        with _GUARD:
            folder, self._folder = self._folder, None
            if folder is not None:
                folder.unlock_all(self)


class _LeaseFolder:
    """The open lock files of a directory, and which lease holds which byte.

    A process opens each file once: some systems assign locks to processes, so that closing a second
    descriptor of the file would release every lock of the first.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._files: dict[str, int] = {}
        self._leases: dict[_Place, tuple[FileLease, FileLeases]] = {}
        self._is_forked = False

    def lock(self, place: _Place, lease: FileLease, holder: FileLeases) -> bool:
        """Lock a byte; ``False`` if someone else has it."""
        name, offset = place
        path = self._directory / name
        if self._is_forked:
            raise UsageError(f"{path} was opened before this process was forked; open it here")
        if place in self._leases:
            return False
        if name not in self._files:
            self._files[name] = _opened(path)
        if not os.fstat(self._files[name]).st_nlink:
            raise StoreError(
                f"{path} was removed while it was in use: others may ask for the same labels; "
                "run again, and leave the file where it is"
            )
        try:
            _set_lock(self._files[name], offset)
        except OSError as error:
            if error.errno not in {errno.EACCES, errno.EAGAIN}:
                raise
            return False
        self._leases[place] = lease, holder
        return True

    def unlock(self, place: _Place, lease: FileLease) -> None:
        """Unlock a byte if the lease still has it."""
        with _GUARD:
            if self._leases.get(place, (None,))[0] is lease:
                del self._leases[place]
                # If unlocking fails, the lock ends with the process, and others wait until then.
                with suppress(OSError):
                    _set_lock(self._files[place[0]], place[1], free=True)

    def unlock_all(self, holder: FileLeases) -> None:
        """Unlock all bytes of a store object."""
        for place, (lease, of) in [*self._leases.items()]:
            if of is holder:
                self.unlock(place, lease)

    def close(self) -> None:
        """Close the files and thereby end their locks, unless a parent process has them open."""
        while self._files:
            os.close(self._files.popitem()[1])

    __del__ = close

    def forget(self) -> None:
        """Neither keep the locks of the parent process alive nor release them."""
        self._is_forked = True
        self._leases.clear()
        self.close()


_GUARD = threading.RLock()
"""Reentrant: a garbage-collected store closes itself, possibly while this thread holds it."""
_OPEN: WeakValueDictionary[tuple[int, int], _LeaseFolder] = WeakValueDictionary()
"""Folders in use by this process, by device and inode; the last user's end closes them."""


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
        for folder in [*_OPEN.values()]:
            folder.forget()
    finally:
        _GUARD.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_GUARD.acquire, after_in_parent=_GUARD.release, after_in_child=_forget_all
    )
