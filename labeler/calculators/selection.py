"""Repeated rows and shared questions among the rows of indexes and files."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from tempfile import SpooledTemporaryFile
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from labeler.calculators.ratio_column import Bools, Ints
from labeler.errors import UsageError

Digests = NDArray[np.uint64]
Groups = NDArray[np.uint32]

_MEMORY = 1 << 23
"""Bytes of digests that are kept in memory."""
_ROW = 32
"""Bytes of the digests of a row."""
_PORTION = 1 << 16
"""Rows whose digests are read from the file at once."""
_TOGETHER = 1 << 19
"""Identities whose rows are compared at once."""

COUNTED, REPEATED, FAILED = 0, 1, 2
"""A row that is counted, a label that repeats, and a failure that repeats or was labeled later."""


class DifferingRecords(Exception):
    """Records of one identity have different contents; reading records one by one names them."""


class Digested(Protocol):
    """A batch of rows with their digests."""

    def identities(self) -> Digests:
        """Return the :class:`~labeler.calculators.metrics_row.Identity` of each row."""
        ...

    def contents(self) -> Digests:
        """Return the digest of each label; 0 for a failure."""
        ...

    def questions(self) -> Digests:
        """Return the digest of each row's question; 0 for none."""
        ...


Reading = Callable[[], Iterable[Digested]]
"""Yields the digests of all rows in order, each time it is called."""


class RowDigests(NamedTuple):
    """Digests of consecutive rows.

    Attributes:
        numbers: four a row: two of its identity, those of its label and of its question.
    """

    numbers: Digests

    @classmethod
    def of(cls, batch: Digested) -> RowDigests:
        """Return the digests of the rows of a batch."""
        return cls(np.column_stack([batch.identities(), batch.contents(), batch.questions()]))

    def identities(self) -> Digests:
        """Return the identity of each row."""
        return self.numbers[:, :2]

    def contents(self) -> Digests:
        """Return the digest of each label."""
        return self.numbers[:, 2]

    def questions(self) -> Digests:
        """Return the digest of each row's question."""
        return self.numbers[:, 3]


class SeenDigests:
    """The digests of all rows so far: a few megabytes in memory, the others in a temporary file.

    They need not fit in memory, as those of indexes do not: these are mapped.
    """

    def __init__(self) -> None:
        self._file = SpooledTemporaryFile(_MEMORY)  # noqa: SIM115 - closed by close
        self.rows = 0
        """Number of rows; a lower one forgets the last."""

    def add(self, digests: RowDigests) -> None:
        """Add the next rows.

        Raises:
            UsageError: they do not fit on the disk.
        """
        try:
            self._file.seek(self.rows * _ROW)
            self._file.write(digests.numbers.tobytes())
            self._file.flush()
        except OSError as error:
            raise UsageError(
                f"no temporary file for the digests of labels: {error}; free {_ROW} bytes a label, "
                "or name a folder with space in the environment: TMPDIR=FOLDER"
            ) from error
        self.rows += len(digests.numbers)

    def batches(self) -> Iterator[RowDigests]:
        """Yield the digests of all rows, in order."""
        for place in range(0, self.rows * _ROW, _PORTION * _ROW):
            self._file.seek(place)
            numbers = np.frombuffer(self._file.read(_PORTION * _ROW), np.uint64)
            yield RowDigests(numbers.reshape(-1, 4))

    def present(self, rows: Collection[int]) -> set[int]:
        """Return those of some digests of rows that have a label or failed."""
        asked = np.fromiter(rows, np.uint64, len(rows))
        found: set[int] = set()
        for batch in self.batches() if rows else ():
            found.update(asked[np.isin(asked, batch.identities()[:, 0])].tolist())
        return found

    def close(self) -> None:
        """Remove the temporary file."""
        self._file.close()


class Selection(NamedTuple):
    """The rows that are counted.

    Attributes:
        left_out: ``COUNTED``, ``REPEATED`` or ``FAILED`` for each row; ``None`` if all are counted.
        groups: the number of each row's group of equal questions; 0 for a row that shares none.
            ``None`` if no question is shared.
    """

    left_out: NDArray[np.int8] | None = None
    groups: Groups | None = None

    def of(self, begin: int, end: int) -> Selection:
        """Return the selection of some consecutive rows."""
        return Selection(
            None if self.left_out is None else self.left_out[begin:end],
            None if self.groups is None else self.groups[begin:end],
        )


def select(read: Reading) -> Selection:
    """Return the rows to be counted, in less than 24 bytes of memory a row.

    Args:
        read: yields all rows in order, each time it is called.

    Raises:
        DifferingRecords: two rows of one identity have different contents.
    """
    return Selection(_left_out(read), groups_of(read))


def groups_of(read: Reading) -> Groups | None:
    """Return the number of each row's group of equal questions, see :class:`Selection`."""
    shared = _repeated(batch.questions() for batch in read())
    shared = shared[shared != 0]
    if not len(shared):
        return None
    groups = bytearray()
    for batch in read():
        places, among = _places(batch.questions(), shared)
        groups += ((places + 1) * among).astype(np.uint32).tobytes()
    return np.frombuffer(groups, np.uint32)


def _repeated(parts: Iterable[Digests]) -> Digests:
    """Return the digests that occur more than once: each once, in ascending order."""
    joined = bytearray()  # it grows in place; to join arrays, both they and the result are held
    for part in parts:
        joined += part.tobytes()
    digests = np.frombuffer(joined, np.uint64)
    digests.sort()
    repeats: Bools = digests[1:] == digests[:-1]
    repeats[1:] &= ~repeats[:-1]
    found: Digests = digests[1:][repeats]
    return found


def _places(digests: Digests, ascending: Digests) -> tuple[Ints, Bools]:
    """Return the place of each digest in others, and whether it is among them."""
    places = np.minimum(np.searchsorted(ascending, digests), len(ascending) - 1)
    return places, ascending[places] == digests


def _left_out(read: Reading) -> NDArray[np.int8] | None:
    repeated = _repeated(batch.identities()[:, 0] for batch in read())
    if not len(repeated):
        return None
    found = np.zeros(sum(len(batch.contents()) for batch in read()), np.int8)
    for begin in range(0, len(repeated), _TOGETHER):
        _mark(found, read, repeated[begin : begin + _TOGETHER])
    return found if found.any() else None


def _mark(found: NDArray[np.int8], read: Reading, repeated: Digests) -> None:
    """Mark the rows to be left out among those of some identities."""
    begin, parts = 0, []
    for batch in read():
        identities, contents = batch.identities(), batch.contents()
        among = np.flatnonzero(_places(identities[:, 0], repeated)[1])
        parts.append((among + begin, *identities[among].T, contents[among]))
        begin += len(contents)
    numbers, rows, keys, contents = map(np.concatenate, zip(*parts, strict=True))
    order = np.lexsort((keys, rows))  # stable: the first of equal rows stays first
    numbers, rows, keys, contents = numbers[order], rows[order], keys[order], contents[order]
    begins: Bools = np.append(True, rows[1:] != rows[:-1])
    starts = np.flatnonzero(begins)
    sizes = np.diff(starts, append=len(rows))
    labeled = np.repeat(keys[starts + sizes - 1] != 0, sizes)  # a failure has the lowest key: 0
    repeats = ~begins & np.append(False, keys[1:] == keys[:-1])
    if (repeats[1:] & (contents[1:] != contents[:-1])).any():
        raise DifferingRecords("records with equal id and label key have different answers")
    failed = (keys == 0) & (labeled | repeats)
    found[numbers] = np.where(failed, FAILED, np.where(repeats, REPEATED, COUNTED))


Present = Callable[[Collection[int]], set[int]]
"""Returns those of some digests of rows that have a label or failed."""
