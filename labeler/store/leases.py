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
from functools import partial
from pathlib import Path
from weakref import WeakValueDictionary

from labeler.errors import StoreError
from labeler.store import Lease

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

FILES = tuple(f"leases-{digit:x}" for digit in range(16))
_Place = tuple[str, int]
"""The file and byte of a key."""


class LockFiles:
    """The lock files of a directory, and the bytes that stores of this process hold.

    A process opens each file once: some systems assign locks to processes, so that closing a second
    descriptor of the file would release every lock of the first. See :func:`lock_files`.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._opened: dict[str, int] = {}
        self._holders: dict[_Place, object] = {}

    def acquire(self, key: str, holder: object) -> Lease | None:
        """Reserve a key for a store; ``None`` if anyone has it.

        Raises:
            StoreError: the system or the file system does not support locks.
        """
        place = _place(key)
        with _GUARD:
            try:
                if place in self._holders or not _set_lock(self._file(place[0]), place[1]):
                    return None
            except OSError as error:
                raise StoreError(
                    f"label store {self.directory}: {place[0]} gives no leases: {error}; keep the "
                    "store on a local disk, in a directory that you may write to"
                ) from error
            self._holders[place] = holder
        return Lease(partial(self._unlock, place, holder))

    def release_all(self, holder: object) -> None:
        """Release every lease of a store, and close files that nobody needs."""
        with _GUARD:
            for place in [place for place, held_by in self._holders.items() if held_by is holder]:
                self._unlock(place, holder)
            if not self._holders:
                self.close()

    def close(self) -> None:
        """Close the files and thereby end their locks, unless a parent process has them open."""
        self._holders.clear()
        while self._opened:
            os.close(self._opened.popitem()[1])

    def _file(self, name: str) -> int:
        """Return the descriptor of a lock file; child programs do not inherit it."""
        if name not in self._opened:
            flags = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
            path = self.directory / name
            self._opened[name] = os.open(path, os.O_RDWR | os.O_CREAT | flags, 0o600)
        facts = os.fstat(self._opened[name])
        if not stat.S_ISREG(facts.st_mode) or not facts.st_nlink:
            raise StoreError(
                f"{self.directory / name} is not a regular file, or was removed while it was in "
                "use, so that others may ask for the same labels: remove what you did not put "
                "there, run again, and leave the lease files where they are"
            )
        return self._opened[name]

    def _unlock(self, place: _Place, holder: object) -> None:
        with _GUARD:
            # A store may be closed, and a forked child holds nothing of its parent.
            if self._holders.get(place) is holder:
                del self._holders[place]
                with suppress(OSError):  # others wait until the process ends
                    _set_lock(self._opened[place[0]], place[1], free=True)


def lock_files(directory: Path) -> LockFiles:
    """Return the lock files of a directory, the same for all stores of this process there."""
    facts = directory.stat()
    with _GUARD:
        files = _OPEN.setdefault((facts.st_dev, facts.st_ino), LockFiles(directory))
        files.directory = directory  # the folder was moved, or a new one has its number
        return files


_GUARD = threading.RLock()
"""Reentrant: a garbage-collected store closes itself, possibly while this thread holds it."""
_OPEN: WeakValueDictionary[tuple[int, int], LockFiles] = WeakValueDictionary()
"""Lock files of this process by their folder."""


def _place(key: str) -> _Place:
    """Return a key's file and byte offset: up to 62 bits, which every system supports."""
    digest = hashlib.sha256(key.encode("utf-8", "backslashreplace")).digest()
    return FILES[digest[0] % len(FILES)], int.from_bytes(digest[1:9]) >> 2


_FLOCK = struct.Struct("hhqqi0q")
"""Linux's ``struct flock``: type, whence, start, length, and a process number that must be 0."""


def _set_lock(descriptor: int, offset: int, *, free: bool = False) -> bool:
    """Lock or unlock one byte without waiting; ``False`` if another process has it."""
    try:
        if sys.platform == "win32":
            os.lseek(descriptor, offset, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_UNLCK if free else msvcrt.LK_NBLCK, 1)
            return True
        if sys.platform == "linux":
            # A lock of the open file, which closing another descriptor of it does not end.
            kind = fcntl.F_UNLCK if free else fcntl.F_WRLCK
            wanted = _FLOCK.pack(kind, os.SEEK_SET, offset, 1, 0)
            try:
                fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, wanted)
            except OSError as error:
                if error.errno != errno.EINVAL:  # the kernel lacks them, as in some sandboxes
                    raise
            else:
                return True
        kind = fcntl.LOCK_UN if free else fcntl.LOCK_EX | fcntl.LOCK_NB
        fcntl.lockf(descriptor, kind, 1, offset)
    except OSError as error:
        if error.errno not in {errno.EACCES, errno.EAGAIN}:
            raise
        return False
    return True


def _leave_to_parent() -> None:
    """Neither keep the locks of the parent process alive nor release them."""
    for files in [*_OPEN.values()]:
        files.close()
    _GUARD.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_GUARD.acquire, after_in_parent=_GUARD.release, after_in_child=_leave_to_parent
    )
