"""Faults of label stores: SQLite's errors with their remedies, damage, files that others change."""

from __future__ import annotations

import os
import shlex
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from labeler.data.label_files import STORE_FILE
from labeler.errors import StoreError, UsageError

_REMEDIES = {
    "SQLITE_FULL": "free some space on its disk",
    "SQLITE_IOERR": "check its disk: free space, quota, limit on file sizes",
    "SQLITE_BUSY": "another process keeps it locked: end that process",
    "SQLITE_CANTOPEN": "make the directory and its files readable and writable for you",
    "SQLITE_CORRUPT": "restore it from a copy, or rescue its rows with `sqlite3 cache.db .recover`",
    "SQLITE_NOTADB": "restore it from a copy, or remove the directory and judge again",
    "SQLITE_READONLY": "make the directory and its files writable for you",
}
_TRANSIENT = ("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_BUSY", "SQLITE_CANTOPEN")
"""The same write may succeed later; a full disk can also hinder opening."""


@contextmanager
def translated_errors(directory: Path) -> Iterator[None]:
    """Turn SQLite's errors into a :class:`StoreError` with a remedy."""
    try:
        yield
    except sqlite3.Error as error:
        longer = ", or wait longer with lock_timeout=SECONDS" if is_locked(error) else ""
        raise StoreError(f"label store {directory}: {described(error)}{longer}") from error


def described(error: sqlite3.Error) -> str:
    """Return SQLite's message, its error code and the remedy."""
    code = _code(error)
    remedies = (text for start, text in _REMEDIES.items() if code.startswith(start))
    return f"{error} ({code}); {next(remedies, 'see the SQLite message')}"


def is_locked(error: BaseException | None) -> bool:
    """Return True if another connection's lock caused the error."""
    return _code(error).startswith("SQLITE_BUSY")


def is_transient(error: BaseException | None) -> bool:
    """Return True if the same write may succeed later."""
    return _code(error).startswith(_TRANSIENT)


def _code(error: BaseException | None) -> str:
    return getattr(error, "sqlite_errorname", "")


def closed_error(directory: Path) -> UsageError:
    """Return the error of a use after the close."""
    return UsageError(f"label store {directory} is closed; open it again")


def damaged(directory: Path, name: str, reason: object) -> StoreError:
    """Return an error that names an unreadable row, its defect and the remedy."""
    return changed(
        directory, f"key {name}: the stored record was damaged or tampered with: {reason}"
    )


def changed(directory: Path, fault: str) -> StoreError:
    """Return an error of a store that may hold sound records."""
    return StoreError(
        f"label store {directory}: {fault}; copy its sound records to a new store with "
        f"`labeler store merge {shlex.quote(str(directory))} --into NEW_STORE` and use that one"
    )


def require_private(directory: Path) -> None:
    """Reject a directory that other users could have changed, and files that are not a store's.

    SQLite follows links, plays a journal back into the file, and deletes a file that a journal
    names. A label store always uses a write-ahead log, so someone else put the journal there.

    Raises:
        StoreError: someone else owns it, or group or others may write to it (POSIX only); or its
            database is a link or has a rollback journal.
    """
    facts = directory.stat()
    if os.name == "posix" and facts.st_uid != os.geteuid():
        raise StoreError(
            f"label store {directory} belongs to user {facts.st_uid}, not to you "
            f"({os.geteuid()}): its owner could change labels; copy it to a directory of your own"
        )
    if os.name == "posix" and facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise StoreError(
            f"label store {directory} can be written by others (mode "
            f"{stat.S_IMODE(facts.st_mode):o}): run `chmod 700 {directory}`"
        )
    for suffix in ("", "-wal", "-shm", "-journal"):
        file = directory / (STORE_FILE + suffix)
        present = os.path.lexists(file)
        if present and (suffix == "-journal" or not stat.S_ISREG(file.lstat().st_mode)):
            raise StoreError(
                f"label store {directory}: {file.name} does not belong in a label store; "
                "remove it if you did not put it there, or restore the store from a copy"
            )
