"""A label store in memory, for Python users and tests: the same rules, without durability."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Generic, TypeVar

from labeler.errors import StoreError, UsageError
from labeler.labels.record import AnyRecord, LabelFailure
from labeler.store.checksums import Checked, failure_key, require_valid
from labeler.store.leases import MemoryLeases
from labeler.store.protocol import Closing, Lease

_Value = TypeVar("_Value", bound=Checked)


class MemoryFile(Closing, Generic[_Value]):
    """Keeps values in a dictionary as long as the object lives.

    Usable from several threads: every step is one atomic dictionary operation. Every method raises
    a :class:`UsageError` once it is closed.
    """

    _check: Callable[[_Value], object] = staticmethod(require_valid)
    _noun = "label"

    def __init__(self) -> None:
        self._values: dict[str, _Value] = {}
        self._leases = MemoryLeases()
        self._closed = False

    def get(self, key: str) -> _Value | None:
        """Return the value of a key, or ``None``."""
        self._require_open()
        return self._values.get(key)

    def put(self, value: _Value) -> Future[bool]:
        """Save a value; the future is done at once.

        A key that is stored already keeps its first value. The future's exception is a
        :class:`StoreError` if the value's key is not its own.
        """
        self._require_open()
        saved: Future[bool] = Future()
        try:
            self._check(value)
        except StoreError as error:
            saved.set_exception(error)
        else:
            saved.set_result(self._values.setdefault(value.key, value) is value)
        return saved

    def lease(self, key: str) -> Lease | None:
        """Reserve a key among the users of this object; ``None`` if someone else holds it."""
        self._require_open()
        return self._leases.acquire(key)

    def __len__(self) -> int:
        self._require_open()
        return len(self._values)

    def close(self) -> None:
        """Reject further use; the values are gone with the object."""
        self._closed = True

    def _require_open(self) -> None:
        if self._closed:
            raise UsageError(f"the {self._noun} store is closed; make a new one")


class MemoryStore(MemoryFile[AnyRecord]):
    """Keeps records and failures in dictionaries as long as the object lives."""

    def __init__(self) -> None:
        super().__init__()
        self._failures: dict[str, LabelFailure] = {}

    def failure(self, key: str) -> LabelFailure | None:
        """Return the latest failure of a key, or ``None``."""
        self._require_open()
        return self._failures.get(key)

    def put_failure(self, failure: LabelFailure) -> Future[bool]:
        """Save a failure; the future is done at once.

        Replaces an earlier failure of the key, never a label.

        Raises:
            UsageError: the store is closed, or the failure has no valid label key.
        """
        self._require_open()
        self._failures[failure_key(failure)] = failure
        saved: Future[bool] = Future()
        saved.set_result(True)
        return saved

    def __iter__(self) -> Iterator[AnyRecord]:
        self._require_open()
        return iter([record for _, record in sorted(self._values.items())])
