"""Batches of index rows: under construction, stored, and as frames of columns."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, pairwise
from typing import Any, NamedTuple, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from labeler.calculators.column_summary import Categorical, UnreadableFrame
from labeler.calculators.columns import SUPPORTED, UNSUPPORTED, Ragged
from labeler.calculators.index.decoding import NeedsValidation, decode_label, label_row
from labeler.calculators.index.rows import ClaimRow, IndexRow, failure_row
from labeler.calculators.metrics_row import Identity, question_digest
from labeler.calculators.ratio_column import Bools, Ints
from labeler.calculators.selection import Digests
from labeler.labels.profiles import PROFILES
from labeler.labels.record import AnyOutcome, LabelFailure, LabelRecord, is_uncounted, records_of

TEXTS = ("id", "label", "failed", "profile", "question", "metadata")
NUMBERS = ("place", "stored_relevant", "stored_utilized", "stored_both", "stored_unsupported")
MARKS = ("marks", "response", "claims", "reference_claims")
"""Lists of small numbers."""
OF_CLAIMS = (
    *("claims", "claim_sentences", "supporting_counts", "supporting"),
    *("contradicting_counts", "contradicting"),
    *("reference_claims", "reference_sentences"),
    *("reference_supporting_counts", "reference_supporting"),
)
LISTS = ("documents", "lengths", "marks", "response", *OF_CLAIMS)
TYPES = {
    **dict.fromkeys(TEXTS, ("<i4", "<u4", "|u1")),
    **dict.fromkeys(NUMBERS, ("<i8",)),
    **dict.fromkeys(LISTS, ("<u4", "<u4")),
    **dict.fromkeys(MARKS, ("|u1", "<u4")),
    "key": ("|u1",),
    "identity": ("<u8",),
    "asked": ("<u8",),
}
"""Types of the arrays of each column.

A text column has a code per row (-1 for none), the bytes of each distinct text, and these texts in
UTF-8. A list column has all numbers, and the length of each list. Keys are 32 bytes each. An
identity is two numbers, and ``asked`` is the digest of the question.
"""
BATCH = 1 << 15
"""Rows per batch: about a million sentences, and 8 MB per number column."""
_SENTENCES = 1 << 22
"""Sentences that complete a batch with fewer rows."""
_TOGETHER = 256
"""Labels that are appended to the columns together, which is faster than one by one."""
_KEY = 32
"""Bytes of a label key."""

Arrays = tuple[NDArray[np.integer], ...]


class DamagedIndex(UnreadableFrame):
    """An invalid index; the message gives the reason. Labels are never affected."""


class Batch(Protocol):
    """Rows whose columns can be read."""

    @property
    def columns(self) -> Iterable[str]:
        """Names of the metadata columns."""
        ...

    def __len__(self) -> int: ...

    def read(self, name: str) -> Arrays:
        """Return the arrays of a column, see ``TYPES``."""
        ...


def encode_texts(texts: Sequence[str | None]) -> Arrays:
    """Return the arrays of a text column."""
    distinct = dict.fromkeys(texts)
    distinct.pop(None, None)
    codes: dict[str | None, int] = dict(zip(distinct, range(len(distinct)), strict=True))
    codes[None] = -1
    encoded = [text.encode() for text in distinct if text is not None]
    return (
        np.fromiter(map(codes.__getitem__, texts), np.int32, len(texts)),
        np.fromiter(map(len, encoded), np.uint32, len(encoded)),
        np.frombuffer(b"".join(encoded), np.uint8),
    )


def decode_texts(name: str, arrays: Arrays, rows: int) -> Categorical:
    """Return a text column from its arrays.

    Raises:
        DamagedIndex: a code or a length is out of range, or a text is not UTF-8.
    """
    codes, sizes, content = arrays
    data, ends = content.tobytes(), np.cumsum(sizes, dtype=np.int64)
    require(len(codes) == rows and (ends[-1] if len(ends) else 0) == len(data), name)
    require(bool((codes >= -1).all() and (codes < len(sizes)).all()), name)
    bounds = [0, *ends.tolist()]
    try:
        names = [data[a:b].decode() for a, b in pairwise(bounds)]
    except UnicodeDecodeError as error:
        raise DamagedIndex(f"its column {name!r} is no text") from error
    return Categorical(codes.astype(np.int64), names)


def _offsets(sizes: NDArray[np.integer]) -> Ints:
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets


class _Lists(NamedTuple):
    """A growing column with a list of numbers per row."""

    values: array[int]
    sizes: array[int]

    def add(self, lists: Sequence[Any]) -> None:
        """Append the lists of many rows; those of marks are bytes."""
        if self.values.typecode == "B":
            self.values.frombytes(b"".join(lists))
        else:
            self.values.extend(chain.from_iterable(lists))
        self.sizes.extend(map(len, lists))

    def add_empty(self, rows: int) -> None:
        """Append empty lists for a number of rows."""
        self.sizes.frombytes(bytes(rows * self.sizes.itemsize))


class RowBatch:
    """Index rows of one batch under construction."""

    def __init__(self) -> None:
        self._keys: list[str] = []
        self._identities, self._asked = array("Q"), array("Q")
        self._texts: dict[str, list[str | None]] = {name: [] for name in TEXTS}
        self._numbers = {name: array("q") for name in NUMBERS}
        self._lists = {
            name: _Lists(array("B" if name in MARKS else "I"), array("I")) for name in LISTS
        }
        self._columns: set[str] = set()
        self._waiting: list[IndexRow] = []
        self._places: list[int] = []
        self._sentences = 0

    def __len__(self) -> int:
        return len(self._keys) + len(self._waiting)

    @property
    def full(self) -> bool:
        """True if the batch is complete."""
        return self._sentences >= _SENTENCES or len(self) >= BATCH

    @property
    def columns(self) -> set[str]:
        """Names of the metadata columns."""
        self._flush()
        return self._columns

    def read(self, name: str) -> Arrays:
        """Return the arrays of a column, see ``TYPES``."""
        self._flush()
        if name in LISTS:
            values, sizes = self._lists[name]
            return np.array(values), np.array(sizes)
        if name in NUMBERS:
            return (np.array(self._numbers[name]),)
        if name == "key":
            return (np.frombuffer(bytes.fromhex("".join(self._keys)), np.uint8),)
        if name in {"identity", "asked"}:
            return (np.array(self._identities if name == "identity" else self._asked),)
        return encode_texts(self._texts[name])

    def add(self, place: int, row: IndexRow) -> None:
        """Add a row.

        Args:
            place: position at which it is stored.
            row: its index row.
        """
        self._places.append(place)
        self._waiting.append(row)
        self._sentences += len(row.marks)
        if len(self._waiting) >= _TOGETHER:
            self._flush()

    def _flush(self) -> None:
        """Append the waiting labels to the columns."""
        rows, places = self._waiting, self._places
        if not rows:
            return
        self._waiting, self._places = [], []
        columns = dict(zip(IndexRow._fields, zip(*rows, strict=True), strict=True))
        self._keys.extend(columns["key"])
        for row in rows:
            self._identities.extend(Identity.of(row.id, row.label, None if row.failed else row.key))
        self._asked.extend(map(question_digest, columns["question"]))
        for name, texts in self._texts.items():
            texts.extend(columns[name])
        numbers = (places, *zip(*columns["stored"], strict=True))
        for column, found in zip(self._numbers.values(), numbers, strict=True):
            column.extend(found)
        self._columns.update(*columns["columns"])
        for name in ("documents", "lengths", "marks", "response"):
            self._lists[name].add(columns[name])
        if any(columns["claims"]):
            lists = zip(*map(_claim_lists, rows), strict=True)
            for name, several in zip(OF_CLAIMS, lists, strict=True):
                self._lists[name].add(several)
        else:
            for name in OF_CLAIMS:
                self._lists[name].add_empty(len(rows))


def _claim_lists(row: IndexRow) -> Iterable[Sequence[int]]:
    """Return the lists of a label's claims, in the order of ``OF_CLAIMS``."""
    claims, reference = row.claims or _NO_CLAIMS, row.reference_claims or _NO_CLAIMS
    yield from (claims.marks, claims.sentences)
    yield from _counted(claims.supporting)
    yield from _counted(claims.contradicting)
    yield from (reference.marks, reference.sentences)
    yield from _counted(reference.supporting)


def _counted(parts: Sequence[Sequence[int]]) -> tuple[Sequence[int], Sequence[int]]:
    return list(map(len, parts)), list(chain.from_iterable(parts))


_NO_CLAIMS = ClaimRow()


class JoinedBatches:
    """Several stored batches as one."""

    def __init__(self, parts: Sequence[Batch]) -> None:
        self._parts = parts
        self.columns = frozenset(chain.from_iterable(part.columns for part in parts))

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def read(self, name: str) -> Arrays:
        """Return the arrays of a column, see ``TYPES``."""
        found = [part.read(name) for part in self._parts]
        if name not in TEXTS:
            return tuple(map(np.concatenate, zip(*found, strict=True)))
        texts: list[str | None] = []
        for part, arrays in zip(self._parts, found, strict=True):
            column = decode_texts(name, arrays, len(part))
            texts += map([*column.names, None].__getitem__, column.codes.tolist())
        return encode_texts(texts)


class IndexFrame:
    """A batch of rows as columns; each column is read and validated on first use.

    Args:
        batch: the rows.
        by_key: True if labels are read in the order of their keys without an index.
        before: number before the first position, otherwise.
    """

    def __init__(self, batch: Batch, *, by_key: bool = False, before: int = 0) -> None:
        self._batch = batch
        self._by_key = by_key
        self._before = before
        self.rows = len(batch)
        self.columns = frozenset(batch.columns)
        self._lists: dict[str, Ragged] = {}
        self._coded: dict[str, Categorical] = {}

    def numbers(self, name: str) -> Ints:
        """Return one number per row."""
        found: Ints = self._batch.read(name)[0].astype(np.int64, copy=False)
        require(len(found) == self.rows and bool((found >= 0).all()), name)
        return found

    def lists(self, name: str) -> Ragged:
        """Return a list of numbers per row."""
        if name not in self._lists:
            values, sizes = self._batch.read(name)
            offsets = _offsets(sizes)
            require(len(sizes) == self.rows and offsets[-1] == len(values), name)
            self._lists[name] = Ragged(values, offsets)
            self._check_lists(name)
        return self._lists[name]

    def known(self, name: str) -> Bools:
        """Return which rows have a list of claims, by their profile."""
        profiles = self.coded("profile")
        having = [text in _HAVING[name] for text in profiles.names]
        found: Bools = np.array(having, np.bool_)[profiles.codes]
        return found

    def coded(self, name: str) -> Categorical:
        """Return a text column by its distinct texts."""
        if name not in self._coded:
            found = decode_texts(name, self._batch.read(name), self.rows)
            if name == "profile":
                require(bool((found.codes >= 0).all()) and PROFILES.keys() >= {*found.names}, name)
            self._coded[name] = found
        return self._coded[name]

    def ids(self, rows: Sequence[int]) -> list[str]:
        """Return the ids of some rows."""
        column = self.coded("id")
        require(bool((column.codes >= 0).all()), "id")
        return [column.names[code] for code in column.codes[rows].tolist()]

    def metadata(self, column: str, *, question: bool) -> list[object]:
        """Return each row's value in a metadata column.

        Args:
            column: its name.
            question: True if labels have their question in this column by default.
        """
        stored = self.coded("metadata")
        try:
            read = [msgspec.json.decode(text).get(column, _ABSENT) for text in stored.names]
        except (ValueError, AttributeError, RecursionError, msgspec.MsgspecError) as error:
            raise DamagedIndex("its metadata is no JSON") from error
        found = map([*read, _ABSENT].__getitem__, stored.codes.tolist())
        if not question:
            return [None if value is _ABSENT else value for value in found]
        asked = self.coded("question")
        others = map([*asked.names, None].__getitem__, asked.codes.tolist())
        return [b if a is _ABSENT else a for a, b in zip(found, others, strict=True)]

    def identities(self) -> Digests:
        """Return the identity of each row: two numbers."""
        found: Digests = self._batch.read("identity")[0].astype(np.uint64, copy=False)
        require(len(found) == 2 * self.rows, "identity")
        return found.reshape(-1, 2)

    def questions(self) -> Digests:
        """Return the digest of each row's question; 0 for none."""
        found: Digests = self._batch.read("asked")[0].astype(np.uint64, copy=False)
        require(len(found) == self.rows, "asked")
        return found

    def order(self) -> Ints:
        """Return positions, or leading digits of keys if labels are read in the order of keys."""
        if not self._by_key:
            return self.numbers("place") + self._before
        (keys,) = self._batch.read("key")
        require(len(keys) == _KEY * self.rows, "key")
        first = np.ascontiguousarray(keys.reshape(-1, _KEY)[:, :8]).view(">u8").reshape(-1)
        return (first >> np.uint64(4)).astype(np.int64)

    def _check_lists(self, name: str) -> None:
        """Validate lengths of lists that belong together, and ranges of indices."""
        found = self._lists[name]
        if name in _SHAPES:
            require(bool((found.sizes == self.lists(_SHAPES[name]).sizes).all()), name)
        if name == "marks":
            documents = self.lists("documents")
            require(bool((documents.sums(documents.values) == found.sizes).all()), name)
        if name == "response":
            both = SUPPORTED | UNSUPPORTED
            require(not (found.values & both == both).any(), name)
        if name in _COUNTS:
            counts = self.lists(_COUNTS[name])
            require(bool((counts.sums(counts.values) == found.sizes).all()), name)
            size = self.lists("documents").sizes
            require(bool((found.values < size[found.owners]).all()), name)


_HAVING = {"claims": {"claims", "reference"}, "reference_claims": {"reference"}}
"""The profiles that have each list."""
_ABSENT = object()
_SHAPES = {
    "lengths": "marks",
    "supporting_counts": "claims",
    "contradicting_counts": "claims",
    "claim_sentences": "claims",
    "reference_supporting_counts": "reference_claims",
    "reference_sentences": "reference_claims",
}
"""Lists with as many numbers as others."""
_COUNTS = {
    "supporting": "supporting_counts",
    "contradicting": "contradicting_counts",
    "reference_supporting": "reference_supporting_counts",
}
"""Lists of document indices, and the lists with their number per claim."""


def require(holds: bool, name: str) -> None:
    """Raise an error about a column unless a condition holds.

    Raises:
        DamagedIndex: it does not.
    """
    if not holds:
        raise DamagedIndex(f"its column {name!r} holds what no index does")


def add_stored(
    batch: RowBatch,
    place: int,
    content: bytes | None,
    read: Callable[[], AnyOutcome],
    *,
    key: str | None = None,
) -> AnyOutcome | None:
    """Add a stored outcome to a batch if it is a label or a failure to label.

    Canaries, which enter no number, are skipped.

    Args:
        batch: the batch.
        place: position at which the outcome is stored.
        content: its JSON, if it may be a label.
        read: parses it with the pydantic models, if needed.
        key: key under which it is stored.

    Returns:
        The outcome if it is of another kind, such as a score; else ``None``.

    Raises:
        Unindexable: no index can hold it.
    """
    if content is None:
        return _add(batch, place, read())
    try:
        row = decode_label(content, key)
    except NeedsValidation:
        return _add(batch, place, read())
    if row is not None:
        batch.add(place, row)
    return None


def _add(batch: RowBatch, place: int, outcome: AnyOutcome) -> AnyOutcome | None:
    if not any(True for _ in records_of([outcome], "label")):
        return outcome
    if not is_uncounted(outcome):
        if isinstance(outcome, LabelRecord):
            batch.add(place, label_row(outcome))
        elif isinstance(outcome, LabelFailure):
            batch.add(place, failure_row(outcome))
    return None
