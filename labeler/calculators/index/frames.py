"""Batches of index rows as columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, pairwise
from typing import Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from labeler.calculators.column_summary import Categorical, UnreadableFrame
from labeler.calculators.columns import CHARACTERS, SENTENCES, Members
from labeler.calculators.ratio_column import Bools, Ints
from labeler.calculators.selection import Digests
from labeler.labels.answering import AnsweringModel
from labeler.labels.profiles import PROFILES

MARKS = ("documents", "response", "claims", "reference_claims")
"""Lists of marks, see :mod:`labeler.calculators.columns`; they are stored as texts are."""
TEXTS = ("id", "label", "answered", "failed", "profile", "question", "metadata", *MARKS)
NUMBERS = (
    "place",
    *("stored_relevant", "stored_utilized", "stored_both", "stored_unsupported"),
    *("citations", "correct_citations"),
    *("has_probabilities", "relevance_mass", "utilization_mass", "adherence_mass"),
    *("measures_completeness", "has_conversation"),
    *SENTENCES,
    *CHARACTERS,
)
"""Position in the file or store, counts of the answer as given (relevant keys, utilized keys,
distinct keys in both lists, unsupported sentences as published), citations, sums of
probabilities, two flags of the record, and document sentences."""
DIGESTS = ("identity", "content", "asked")
"""Digests of a row's id and signature, of its label, and of its question."""
TYPES = {
    **dict.fromkeys(TEXTS, ("<i4", "<u4", "|u1")),
    **dict.fromkeys(NUMBERS, ("<u4",)),
    "place": ("<u8",),
    "key": ("|u1",),
    **dict.fromkeys(DIGESTS, ("<u8",)),
}
"""Types of the arrays of each column.

A text column has a code per row (-1 for none), the length of each distinct text, and these texts
in UTF-8. Keys are 32 bytes each.
"""
BATCH = 1 << 14
"""Rows per batch: columns of so many numbers stay near the processor, and one under construction
takes 1 KB a row."""
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


def encode_texts(texts: Sequence[str | bytes | None]) -> Arrays:
    """Return the arrays of a text column."""
    distinct = dict.fromkeys(texts)
    distinct.pop(None, None)
    codes = dict(zip(distinct, range(len(distinct)), strict=True))
    codes[None] = -1
    encoded = [text.encode() if isinstance(text, str) else text or b"" for text in distinct]
    return (
        np.fromiter(map(codes.__getitem__, texts), np.int32, len(texts)),
        np.fromiter(map(len, encoded), np.uint32, len(encoded)),
        np.frombuffer(b"".join(encoded), np.uint8),
    )


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
        texts: list[bytes | None] = []
        for part, arrays in zip(self._parts, found, strict=True):
            codes, offsets, content = _distinct(name, arrays, len(part))
            data = content.tobytes()
            names = [data[begin:end] for begin, end in pairwise(offsets.tolist())]
            texts += map([*names, None].__getitem__, codes.tolist())
        return encode_texts(texts)


def _distinct(name: str, arrays: Arrays, rows: int) -> tuple[Ints, Ints, NDArray[np.uint8]]:
    """Return codes of a text column, the bounds of its distinct texts, and their bytes.

    Raises:
        DamagedIndex: a code or a length is out of range.
    """
    codes, sizes, content = arrays
    offsets = np.append(0, np.cumsum(sizes, dtype=np.int64))
    require(len(codes) == rows and offsets[-1] == len(content), name)
    require(not rows or bool(codes.min() >= -1 and codes.max() < len(sizes)), name)
    return codes.astype(np.int64), offsets, content.view(np.uint8)


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
        self._numbers: dict[str, Ints] = {}
        self._coded: dict[str, Categorical] = {}

    def numbers(self, name: str) -> Ints:
        """Return one number per row."""
        if name not in self._numbers:
            found = self._batch.read(name)[0].astype(np.int64)
            require(len(found) == self.rows and bool((found >= 0).all()), name)
            self._numbers[name] = found
        return self._numbers[name]

    def lists(self, name: str) -> Members:
        """Return a list of marks per row, all of them chosen."""
        codes, offsets, values = _distinct(name, self._batch.read(name), self.rows)
        return Members(values, offsets, codes, np.ones(len(values), np.bool_))

    def known(self, name: str) -> Bools:
        """Return which rows have a list of claims, by their profile."""
        profiles = self.coded("profile")
        having = [text in _HAVING[name] for text in profiles.names]
        found: Bools = np.array(having, np.bool_)[profiles.codes]
        return found

    def coded(self, name: str) -> Categorical:
        """Return a text column by its distinct texts."""
        if name not in self._coded:
            codes, offsets, content = _distinct(name, self._batch.read(name), self.rows)
            data = content.tobytes()
            try:
                names = [data[a:b].decode() for a, b in pairwise(offsets.tolist())]
            except UnicodeDecodeError as error:
                raise DamagedIndex(f"its column {name!r} is no text") from error
            found = Categorical(codes, names)
            if name == "profile":
                require(bool((found.codes >= 0).all()) and PROFILES.keys() >= {*found.names}, name)
            self._coded[name] = found
        return self._coded[name]

    def answered(self) -> tuple[Ints, list[AnsweringModel]]:
        """Return the place of each row's answering model among the distinct ones, and these.

        A failed row has the place -1.
        """
        column = self.coded("answered")
        try:
            return column.codes, [_ANSWERED.decode(text) for text in column.names]
        except msgspec.MsgspecError as error:
            raise DamagedIndex("its answering models are none") from error

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
        return np.stack([self._digests("identity"), self._leading_digits()], axis=1)

    def contents(self) -> Digests:
        """Return the digest of each label; 0 for a failure."""
        return self._digests("content")

    def questions(self) -> Digests:
        """Return the digest of each row's question; 0 for none."""
        return self._digests("asked")

    def order(self) -> Ints:
        """Return positions, or leading digits of keys if labels are read in the order of keys."""
        if not self._by_key:
            return self.numbers("place") + self._before
        return (self._leading_digits() >> np.uint64(4)).astype(np.int64)

    def _digests(self, name: str) -> Digests:
        found: Digests = self._batch.read(name)[0].astype(np.uint64, copy=False)
        require(len(found) == self.rows, name)
        return found

    def _leading_digits(self) -> Digests:
        """Return the first 16 digits of each row's key."""
        (keys,) = self._batch.read("key")
        require(len(keys) == _KEY * self.rows, "key")
        first = np.ascontiguousarray(keys.reshape(-1, _KEY)[:, :8]).view(">u8").reshape(-1)
        return first.astype(np.uint64)


_ANSWERED = msgspec.json.Decoder(AnsweringModel)
_HAVING = {"claims": {"claims", "reference"}, "reference_claims": {"reference"}}
"""The profiles that have each list."""
_ABSENT = object()


def require(holds: bool, name: str) -> None:
    """Raise an error about a column unless a condition holds.

    Raises:
        DamagedIndex: it does not.
    """
    if not holds:
        raise DamagedIndex(f"its column {name!r} holds what no index does")
