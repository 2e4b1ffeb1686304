"""What diskcache may do with a label store: settings that evict nothing, text keys and bytes.

Only :mod:`labeler.store.writer` uses it, after :mod:`labeler.store.database` has checked the file.
"""

from __future__ import annotations

from typing import NoReturn

import diskcache

from labeler.errors import StoreError
from labeler.store.checksums import DamagedRecord

FORMAT = 1
SETTINGS: dict[str, int | str] = {
    # Marks the file as a label store, in the header field that SQLite reserves for that.
    "sqlite_application_id": int.from_bytes(b"LBLS"),
    "sqlite_user_version": FORMAT,
    "statistics": 0,
    "tag_index": 0,
    # Paid labels are never evicted: no policy, no culling, no limit.
    "eviction_policy": "none",
    "cull_limit": 0,
    "size_limit": 2**62,
    # An acknowledged label survives loss of power (2 is FULL; diskcache's default is NORMAL).
    "sqlite_synchronous": 2,
    "sqlite_journal_mode": "wal",
    "sqlite_auto_vacuum": 0,
    "sqlite_cache_size": 2**13,
    # A file that is cut short under a memory map ends the process instead of raising.
    "sqlite_mmap_size": 0,
    "disk_min_file_size": 2**62,
    "disk_pickle_protocol": 0,
}
"""Every setting of diskcache 5.6.3, none left to its default, and the header of the file."""


def plain_bytes(mode: object, filename: object, value: object) -> bytes:
    """Return a row's value if it is inline bytes, which diskcache marks as mode 1.

    Raises:
        DamagedRecord: diskcache would unpickle it, or read a file.
    """
    if mode != 1 or filename is not None or type(value) is not bytes:
        where = "inline" if filename is None else "in a file"
        raise DamagedRecord(f"its value is not plain bytes (mode {mode!r:.80}, {where})")
    return value


class BytesDisk(diskcache.Disk):  # type: ignore[misc]  # diskcache has no types
    """Restricts diskcache to text keys and inline bytes: never a pickle, never another file."""

    def __init__(self, directory: str, **_stored: object) -> None:
        # The other arguments come from the file.
        super().__init__(directory)

    def put(self, key: object) -> tuple[str, bool]:
        """Accept a text key."""
        if type(key) is not str:
            raise StoreError(f"a label store's keys are text, got {type(key).__name__}")
        return key, True

    def get(self, key: object, raw: object) -> NoReturn:
        """Reject: nobody lists keys through diskcache, which would unpickle them."""
        raise DamagedRecord(f"diskcache may not list keys (raw {raw!r:.80}, {key!r:.80})")

    def store(
        self,
        value: object,
        read: object,
        key: object = diskcache.UNKNOWN,  # noqa: ARG002 - part of diskcache's interface
    ) -> tuple[int, int, None, bytes]:
        """Accept bytes, to be stored unchanged in the value column (mode 1)."""
        if read or type(value) is not bytes:
            raise StoreError(f"a label store's values are bytes, got {type(value).__name__}")
        return 0, 1, None, value

    def fetch(self, mode: object, filename: object, value: object, read: object) -> bytes:
        """Return inline bytes; reject pickles and files that the row names."""
        del read
        return plain_bytes(mode, filename, value)

    def remove(self, file_path: object) -> None:
        """Keep the file that a replaced row names: no label store wrote that name."""
