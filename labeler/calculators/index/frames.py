"""Batches of index rows in memory, as they are built and as frames."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import NamedTuple

import msgspec
import numpy as np

from labeler.calculators.column_summary import Categorical
from labeler.calculators.columns import Ragged
from labeler.calculators.index.decoding import NeedsValidation, decode_label
from labeler.calculators.index.rows import ClaimRow, FailureRow, LabelRow, failure_row, label_row
from labeler.calculators.ratio_column import Bools, Ints
from labeler.labels.record import AnyOutcome, LabelFailure, LabelRecord, is_canary, records_of

TEXTS = ("id", "key", "label", "failed", "profile", "question", "metadata")
CODED = ("label", "failed", "profile")
"""Texts with few distinct values."""
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
BATCH = 1 << 15
"""Rows per batch: about a million sentences, and 8 MB per number column."""
_SENTENCES = 1 << 22
"""Sentences that complete a batch with fewer rows."""
_TOGETHER = 256
"""Labels that are appended to the columns together, which is faster than one by one."""


class Lists(NamedTuple):
    """A growing column with a list of numbers per row."""

    values: array[int]
    sizes: array[int]

    def add(self, numbers: Iterable[int]) -> None:
        """Append the list of one row."""
        before = len(self.values)
        self.values.extend(numbers)
        self.sizes.append(len(self.values) - before)

    def add_all(self, lists: Sequence[Sequence[int]]) -> None:
        """Append the lists of many rows."""
        self.values.extend(chain.from_iterable(lists))
        self.sizes.extend(map(len, lists))

    def add_marks(self, lists: Sequence[bytes]) -> None:
        """Append lists that are bytes."""
        self.values.frombytes(b"".join(lists))
        self.sizes.extend(map(len, lists))

    def add_empty(self, rows: int) -> None:
        """Append empty lists for a number of rows."""
        self.sizes.frombytes(bytes(rows * self.sizes.itemsize))

    def ragged(self) -> Ragged:
        """Return all lists as an array."""
        offsets = np.zeros(len(self.sizes) + 1, np.int64)
        np.cumsum(np.frombuffer(self.sizes, np.uint32), out=offsets[1:])
        return Ragged(np.array(self.values), offsets)


class RowBatch:
    """Index rows of one batch under construction."""

    def __init__(self) -> None:
        self._texts: dict[str, list[str | None]] = {name: [] for name in TEXTS}
        self._numbers = {name: array("q") for name in NUMBERS}
        self._lists = {
            name: Lists(array("B" if name in MARKS else "I"), array("I")) for name in LISTS
        }
        self._columns: set[str] = set()
        self._waiting: list[LabelRow] = []
        self._places: list[int] = []
        self._sentences = 0

    def __len__(self) -> int:
        return len(self._texts["id"]) + len(self._waiting)

    @property
    def full(self) -> bool:
        """True if the batch is complete."""
        return self._sentences >= _SENTENCES or len(self) >= BATCH

    @property
    def texts(self) -> dict[str, list[str | None]]:
        """The text columns by name."""
        self._flush()
        return self._texts

    @property
    def numbers(self) -> dict[str, array[int]]:
        """The columns with one number per row."""
        self._flush()
        return self._numbers

    @property
    def lists(self) -> dict[str, Lists]:
        """The columns with a list per row."""
        self._flush()
        return self._lists

    @property
    def columns(self) -> set[str]:
        """Names of the metadata columns."""
        self._flush()
        return self._columns

    def add_label(self, place: int, row: LabelRow) -> None:
        """Add a label.

        Args:
            place: position at which it is stored.
            row: its index row.
        """
        self._places.append(place)
        self._waiting.append(row)
        self._sentences += len(row.marks)
        if len(self._waiting) >= _TOGETHER:
            self._flush()

    def add_failure(self, place: int, row: FailureRow) -> None:
        """Add a row without a label; see :meth:`add_label`."""
        self._flush()
        texts = row.id, None, row.label, row.reason, row.profile, None, row.metadata
        for column, text in zip(self._texts.values(), texts, strict=True):
            column.append(text)
        for numbers, number in zip(self._numbers.values(), (place, 0, 0, 0, 0), strict=True):
            numbers.append(number)
        self._columns.update(row.columns)
        for name in LISTS:
            self._lists[name].add_empty(1)

    def _flush(self) -> None:
        """Append the waiting labels to the columns."""
        rows, places = self._waiting, self._places
        if not rows:
            return
        self._waiting, self._places = [], []
        columns = dict(zip(LabelRow._fields, zip(*rows, strict=True), strict=True))
        columns["failed"] = (None,) * len(rows)
        for name, texts in self._texts.items():
            texts.extend(columns[name])
        numbers = (places, *zip(*columns["stored"], strict=True))
        for column, found in zip(self._numbers.values(), numbers, strict=True):
            column.extend(found)
        self._columns.update(*columns["columns"])
        for name in ("documents", "lengths"):
            self._lists[name].add_all(columns[name])
        for name in ("marks", "response"):
            self._lists[name].add_marks(columns[name])
        if any(columns["claims"]):
            for row in rows:
                self._add_claims(row.claims or _NONE, row.reference_claims or _NONE)
        else:
            for name in OF_CLAIMS:
                self._lists[name].add_empty(len(rows))

    def _add_claims(self, claims: ClaimRow, reference: ClaimRow) -> None:
        lists = self._lists
        lists["claims"].add(claims.marks)
        lists["claim_sentences"].add(claims.sentences)
        lists["supporting_counts"].add(map(len, claims.supporting))
        lists["supporting"].add(_flat(claims.supporting))
        lists["contradicting_counts"].add(map(len, claims.contradicting))
        lists["contradicting"].add(_flat(claims.contradicting))
        lists["reference_claims"].add(reference.marks)
        lists["reference_sentences"].add(reference.sentences)
        lists["reference_supporting_counts"].add(map(len, reference.supporting))
        lists["reference_supporting"].add(_flat(reference.supporting))


_NONE = ClaimRow(b"", (), (), ())


def _flat(parts: Iterable[Sequence[int]]) -> Iterable[int]:
    return (number for part in parts for number in part)


class MemoryFrame:
    """A frame of rows in memory.

    Args:
        batch: the rows.
    """

    def __init__(self, batch: RowBatch) -> None:
        self._batch = batch
        self.rows = len(batch)
        self.columns = frozenset(batch.columns)

    def numbers(self, name: str) -> Ints:
        """Return one number per row."""
        return np.array(self._batch.numbers[name], np.int64)

    def lists(self, name: str) -> Ragged:
        """Return a list of numbers per row."""
        return self._batch.lists[name].ragged()

    def known(self, name: str) -> Bools:
        """Return which rows have the list, by their profile."""
        profiles = self.coded("profile")
        return known_in(profiles, name)

    def coded(self, name: str) -> Categorical:
        """Return one of the texts with few distinct values."""
        texts = self._batch.texts[name]
        names = [text for text in dict.fromkeys(texts) if text is not None]
        numbers: dict[str | None, int] = {text: number for number, text in enumerate(names)}
        numbers[None] = -1
        codes = np.fromiter(map(numbers.__getitem__, texts), np.int64, len(texts))
        return Categorical(codes, names)

    def ids(self, rows: Sequence[int]) -> list[str]:
        """Return the ids of some rows."""
        return [str(self._batch.texts["id"][row]) for row in rows]

    def metadata(self, column: str, *, question: bool) -> list[object]:
        """Return each row's value in a metadata column."""
        texts = self._batch.texts
        return metadata_values(texts["metadata"], texts["question"] if question else None, column)

    def order(self) -> Ints:
        """Return the positions, since rows in memory were read in order."""
        return self.numbers("place")


def known_in(profiles: Categorical, name: str) -> Bools:
    """Return which rows have a list of claims, by their profile."""
    having = _HAVING[name]
    found: Bools = np.array([text in having for text in profiles.names], np.bool_)[profiles.codes]
    return found


_HAVING = {
    "claims": frozenset({"claims", "reference"}),
    "reference_claims": frozenset({"reference"}),
}
"""The profiles that have each list."""


def metadata_values(
    texts: Iterable[str | None], questions: Iterable[str | None] | None, column: str
) -> list[object]:
    """Return the values of a metadata column.

    Args:
        texts: each row's metadata, as JSON.
        questions: each row's default value, if the column holds questions by default.
        column: its name.
    """
    found = [msgspec.json.decode(text or "{}").get(column, _ABSENT) for text in texts]
    asked = [None] * len(found) if questions is None else list(questions)
    return [other if value is _ABSENT else value for value, other in zip(found, asked, strict=True)]


_ABSENT = object()


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
        batch.add_label(place, row)
    return None


def _add(batch: RowBatch, place: int, outcome: AnyOutcome) -> AnyOutcome | None:
    if not any(True for _ in records_of([outcome], "label")):
        return outcome
    if not is_canary(outcome):
        if isinstance(outcome, LabelRecord):
            batch.add_label(place, label_row(outcome))
        elif isinstance(outcome, LabelFailure):
            batch.add_failure(place, failure_row(outcome))
    return None
