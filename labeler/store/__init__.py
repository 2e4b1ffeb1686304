"""Label stores: durable, checksummed storage of paid answers on disk, or in memory.

Here are the bytes of a value, the base of all stores, and a store in memory.

Layout: four bytes of magic, whose last byte is the version; the SHA-256 of the rest; then the JSON
of the value, compressed with zlib. Only JSON is ever parsed; its ``kind`` selects the class.

The checksum detects damage and careless edits, not forgery: anyone who can write to the store can
write a matching checksum. The contract is checked when a value is written, so a read compares the
checksum and the key: a forger cannot move a label to another question, because every read derives
the key again from the sentences and the signature.
"""

from __future__ import annotations

import hashlib
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import ValidationError
from pydantic_core import from_json

from labeler.errors import UnknownName, UnstorableRecord, UsageError, describe_faults
from labeler.extensions import importer
from labeler.labels.record import AnyOutcome, AnyRecord, LabelFailure, parse_outcome

if TYPE_CHECKING:
    from labeler.store.disk import DiskStore
    from labeler.store.maintenance import import_labels

MAGIC = b"LBL1"
LARGEST = 64 * 2**20
"""Bytes of JSON in one record: far above any real one, and a limit on decompression bombs."""
FAILURE = "failure:"
"""Prefix of the names of failures; the name of a record is its key, which is hexadecimal."""

_LEVEL = 1
_HEADER = len(MAGIC) + 32


class DamagedRecord(Exception):
    """The bytes are damaged or belong to another key; the message names the defect."""


def name_of(outcome: AnyOutcome) -> str:
    """Return the name under which a store keeps an outcome."""
    return FAILURE * isinstance(outcome, LabelFailure) + str(outcome.key)


def encode(value: AnyOutcome) -> bytes:
    """Encode a record or failure as checksummed bytes.

    Raises:
        UnstorableRecord: it contains a lone surrogate or an object without a JSON form, or is too
            large or too deeply nested to be read back.
    """
    try:
        text = value.model_dump_json().encode()
        from_json(text)  # rejects deep nesting and integers of thousands of digits, as a read does
    except (ValueError, RecursionError) as error:
        raise UnstorableRecord(
            f"{value.kind} {value.id!r} cannot be stored as JSON: {error}; remove lone surrogates, "
            "deep nesting and objects that JSON cannot hold from its texts and metadata"
        ) from error
    if len(text) > LARGEST:
        raise UnstorableRecord(
            f"{value.kind} {value.id!r} is {len(text)} bytes of JSON; a store takes up to "
            f"{LARGEST}; shorten its texts or its metadata"
        )
    body = zlib.compress(text, _LEVEL)
    return MAGIC + hashlib.sha256(body).digest() + body


def require_valid(value: AnyOutcome) -> None:
    """Reject a value that has a fault; see :meth:`labeler.labels.record.Record.fault`.

    Raises:
        UnstorableRecord: its key is not its own, or its answer breaks the contract.
    """
    try:
        fault = value.fault()
    except UnicodeError as error:
        fault = f"{error}; remove lone surrogates from its texts"
    if fault:
        raise UnstorableRecord(f"{value.kind} {value.id!r} cannot be stored: {fault}")


def decode(name: str, data: bytes) -> AnyOutcome:
    """Decode the record or failure that is stored under a name.

    Raises:
        DamagedRecord: the bytes are damaged, of another version, or of another key.
    """
    outcome = _parsed(data)
    if name_of(outcome) != name:
        raise DamagedRecord(misplaced(outcome))
    if not isinstance(outcome, LabelFailure) and outcome.compute_key() != outcome.key:
        raise DamagedRecord(f"its key does not belong to its {outcome.keyed_by}")
    return outcome


def decode_fully(data: bytes) -> AnyOutcome:
    """Decode a record or failure that is stored under any name, and check its contract.

    Raises:
        DamagedRecord: the bytes are damaged, of another version, or break the contract.
    """
    outcome = _parsed(data)
    try:
        require_valid(outcome)
    except UnstorableRecord as error:
        raise DamagedRecord(str(error)) from error
    return outcome


def misplaced(outcome: AnyOutcome) -> str:
    """Return the defect of a row that holds an outcome of another name."""
    return f"it holds the {outcome.kind} {outcome.id!r:.80} of key {name_of(outcome):.80}"


def _parsed(data: bytes) -> AnyOutcome:
    """Parse checksummed bytes after comparing magic and checksum."""
    checksum, body = data[len(MAGIC) : _HEADER], data[_HEADER:]
    if data[: len(MAGIC)] != MAGIC:
        raise DamagedRecord(f"it begins with {data[:4]!r}, a checksummed record with {MAGIC!r}")
    if hashlib.sha256(body).digest() != checksum:
        raise DamagedRecord("its checksum does not match: bytes were lost or changed")
    inflater = zlib.decompressobj()
    try:
        text = inflater.decompress(body, LARGEST)
        if not inflater.eof or inflater.unused_data:
            raise DamagedRecord("its compressed bytes do not end where they should")
        return parse_outcome(text)
    except zlib.error as error:
        raise DamagedRecord(f"it cannot be decompressed: {error}") from error
    except UnknownName as error:
        raise DamagedRecord(str(error)) from error
    except ValidationError as error:
        fault = describe_faults(error, whole="the whole")
        raise DamagedRecord(f"it is not a record: {fault}") from error


__all__ = [
    "DiskStore",
    "LabelStore",
    "MemoryStore",
    "import_labels",
]
__getattr__ = importer(__name__, {"disk": "DiskStore", "maintenance": "import_labels"})


class Lease:
    """The exclusive right to ask for one label, until it is released.

    Args:
        free: frees the key; called once at most, so that a late release frees nobody else's lease.
    """

    def __init__(self, free: Callable[[], object]) -> None:
        self._free = [free]

    def release(self) -> None:
        """Free the key; calling it again has no effect."""
        try:
            free = self._free.pop()
        except IndexError:
            return
        free()


class LabelStore(ABC):
    """Keeps records of every kind, and failures, under their keys; nothing is evicted or expires.

    Usable from several threads. Every method raises a :class:`UsageError` once it is closed, which
    the end of a ``with`` block does.

    Example:
        >>> with labeler.MemoryStore() as store:
        ...     all(store.put(label).result() for label in labels), len(store)
        (True, 14)
    """

    directory: Path | None = None
    """Folder of the labels; ``None`` if they are in memory."""

    @abstractmethod
    def _find(self, *names: str) -> Any | None:  # noqa: ANN401 - its kind follows from the name
        """Return the outcome of the first stored name (:func:`name_of`), or ``None``."""

    @abstractmethod
    def _save(self, name: str, outcome: AnyOutcome) -> Future[bool]:
        """Save a valid record if it is the first of its key, or the latest failure of a key."""

    @abstractmethod
    def lease(self, key: str) -> Lease | None:
        """Reserve a key so that nobody else pays for its label; ``None`` if someone else holds it.

        Never waits. Excludes every other user of the store, in this process and others. Ends when
        it is released, when the store is closed, or when the process ends in any way.
        """

    @abstractmethod
    def __iter__(self) -> Iterator[AnyRecord]:
        """Yield every record of every kind, by key."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of records."""

    @abstractmethod
    def close(self) -> None:
        """Make everything durable and release resources; calling it again has no effect."""

    def get(self, key: str) -> AnyRecord | None:
        """Return the record of a key, or ``None``.

        Raises:
            StoreError: the stored bytes are damaged or were tampered with.
        """
        return self._find(key)

    def failure(self, key: str) -> LabelFailure | None:
        """Return the latest lasting failure of a key, or ``None``.

        Raises:
            StoreError: the stored bytes are damaged or were tampered with.
        """
        return self._find(FAILURE + key)

    def outcome(self, key: str) -> AnyOutcome | None:
        """Return the record of a key, else its latest lasting failure, or ``None``.

        Raises:
            StoreError: the stored bytes are damaged or were tampered with.
        """
        return self._find(key, FAILURE + key)

    def put(self, outcome: AnyOutcome, *, is_checked: bool = False) -> Future[bool]:
        """Save a record or a failure; the future is done once it is durable.

        A key that is stored already keeps its first record; the result is true if that is this
        one. A failure replaces an earlier failure of the key, never a label, which takes
        precedence no matter which was saved first. On disk, what is put waits while the file is
        locked or the disk is full, as long as the store is open. Never blocks: the caller limits
        how many records wait.

        The future's exception is an :class:`UnstorableRecord` if only this record is at fault, and
        a :class:`StoreError` if the store is damaged, must not be written, or was closed before
        the write succeeded.

        Args:
            outcome: a record or failure.
            is_checked: True if its key and answer were just checked against its sentences; else
                they are checked here.
        """
        try:
            if not is_checked:
                require_valid(outcome)
            return self._save(name_of(outcome), outcome)
        except UnstorableRecord as error:
            failed = Future[bool]()
            failed.set_exception(error)
            return failed

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class MemoryStore(LabelStore):
    """Keeps records and failures in a dictionary as long as the object lives.

    Usable from several threads: every step is one atomic dictionary operation.

    Example:
        >>> store = labeler.MemoryStore()
        >>> found = labeler.label("examples/rows.jsonl", judge="embedded", store=store)
        >>> store.get(found["log-rotation"].key).id
        'log-rotation'
    """

    def __init__(self) -> None:
        self._held: dict[str, AnyOutcome] = {}
        self._leases: dict[str, Lease] = {}
        self._closed = False

    def _outcomes(self) -> dict[str, AnyOutcome]:
        if self._closed:
            raise UsageError("the label store is closed; make a new one")
        return self._held

    def _find(self, *names: str) -> Any | None:  # noqa: ANN401 - as in the base
        held = self._outcomes()
        return next((held[name] for name in names if name in held), None)

    def _save(self, name: str, outcome: AnyOutcome) -> Future[bool]:
        held, saved = self._outcomes(), Future[bool]()
        if isinstance(outcome, LabelFailure):
            held[name] = outcome
        saved.set_result(held.setdefault(name, outcome) is outcome)
        return saved

    def lease(self, key: str) -> Lease | None:
        """Reserve a key among the users of this object; ``None`` if someone else holds it."""
        self._outcomes()
        lease = Lease(partial(self._leases.pop, key, None))
        return lease if self._leases.setdefault(key, lease) is lease else None

    def __iter__(self) -> Iterator[AnyRecord]:
        held = sorted(self._outcomes().items())
        return iter([one for _, one in held if not isinstance(one, LabelFailure)])

    def __len__(self) -> int:
        return sum(not isinstance(one, LabelFailure) for one in [*self._outcomes().values()])

    def close(self) -> None:
        """Reject further use; the records are gone with the object."""
        self._closed = True
