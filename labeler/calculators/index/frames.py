"""Rows on their way into columns, and batches of rows in memory."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple

import msgspec
import numpy as np

from labeler.calculators.column_summary import Categorical
from labeler.calculators.columns import Ragged
from labeler.calculators.index.rows import ClaimRow, FailureRow, LabelRow
from labeler.calculators.ratio_column import Bools, Ints

TEXTS = ("id", "key", "label", "failed", "profile", "question", "metadata")
CODED = ("label", "failed", "profile")
"""Texts that are the same in many rows."""
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
"""Rows of one batch: about a million sentences, and 8 MB for a number of each."""
_SENTENCES = 1 << 22
"""Sentences that are enough for a batch, however few the rows."""
_TOGETHER = 256
"""Labels that enter the columns at once, which is faster than one by one."""


class Lists(NamedTuple):
    """A list of numbers for each row, as it grows."""

    values: array[int]
    sizes: array[int]

    def add(self, numbers: Iterable[int]) -> None:
        """Add the list of one more row."""
        before = len(self.values)
        self.values.extend(numbers)
        self.sizes.append(len(self.values) - before)

    def add_all(self, lists: Sequence[Sequence[int]]) -> None:
        """Add the lists of many more rows."""
        self.values.extend(chain.from_iterable(lists))
        self.sizes.extend(map(len, lists))

    def add_marks(self, lists: Sequence[bytes]) -> None:
        """The same of lists that are bytes."""
        self.values.frombytes(b"".join(lists))
        self.sizes.extend(map(len, lists))

    def add_empty(self, rows: int) -> None:
        """Add empty lists for so many rows."""
        self.sizes.frombytes(bytes(rows * self.sizes.itemsize))

    def ragged(self) -> Ragged:
        """All lists, for counting."""
        offsets = np.zeros(len(self.sizes) + 1, np.int64)
        np.cumsum(np.frombuffer(self.sizes, np.uint32), out=offsets[1:])
        return Ragged(np.array(self.values), offsets)


class RowBatch:
    """Rows that become one batch."""

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
        """Whether it is time for another batch."""
        return self._sentences >= _SENTENCES or len(self) >= BATCH

    @property
    def texts(self) -> dict[str, list[str | None]]:
        """The columns of texts by their names."""
        self._settle()
        return self._texts

    @property
    def numbers(self) -> dict[str, array[int]]:
        """The columns of one number a row."""
        self._settle()
        return self._numbers

    @property
    def lists(self) -> dict[str, Lists]:
        """The columns of lists."""
        self._settle()
        return self._lists

    @property
    def columns(self) -> set[str]:
        """Names of the metadata columns."""
        self._settle()
        return self._columns

    def add_label(self, place: int, row: LabelRow) -> None:
        """Add a label.

        Args:
            place: where it is stored.
            row: what the index holds of it.
        """
        self._places.append(place)
        self._waiting.append(row)
        self._sentences += len(row.marks)
        if len(self._waiting) >= _TOGETHER:
            self._settle()

    def add_failure(self, place: int, row: FailureRow) -> None:
        """Add a row without a label; see :meth:`add_label`."""
        self._settle()
        texts = row.id, None, row.label, row.reason, row.profile, None, row.metadata
        for column, text in zip(self._texts.values(), texts, strict=True):
            column.append(text)
        for numbers, number in zip(self._numbers.values(), (place, 0, 0, 0, 0), strict=True):
            numbers.append(number)
        self._columns.update(row.columns)
        for name in LISTS:
            self._lists[name].add_empty(1)

    def _settle(self) -> None:
        """Put the labels that wait into the columns."""
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
    """A batch of rows in memory.

    Args:
        gathered: the rows.
    """

    def __init__(self, gathered: RowBatch) -> None:
        self._gathered = gathered
        self.rows = len(gathered)
        self.columns = frozenset(gathered.columns)

    def numbers(self, name: str) -> Ints:
        """One number a row."""
        return np.array(self._gathered.numbers[name], np.int64)

    def lists(self, name: str) -> Ragged:
        """A list of numbers a row."""
        return self._gathered.lists[name].ragged()

    def known(self, name: str) -> Bools:
        """For which rows there is a list: for those of whose profile it is."""
        profiles = self.coded("profile")
        return known_in(profiles, name)

    def coded(self, name: str) -> Categorical:
        """One of the texts that are the same in many rows."""
        texts = self._gathered.texts[name]
        names = [text for text in dict.fromkeys(texts) if text is not None]
        numbers: dict[str | None, int] = {text: number for number, text in enumerate(names)}
        numbers[None] = -1
        codes = np.fromiter(map(numbers.__getitem__, texts), np.int64, len(texts))
        return Categorical(codes, names)

    def ids(self, rows: Sequence[int]) -> list[str]:
        """The ids of some rows."""
        return [str(self._gathered.texts["id"][row]) for row in rows]

    def metadata(self, column: str, *, question: bool) -> list[object]:
        """What each row has in a metadata column."""
        texts = self._gathered.texts
        return metadata_values(texts["metadata"], texts["question"] if question else None, column)

    def order(self) -> Ints:
        """Places: what is in memory was read in order."""
        return self.numbers("place")


def known_in(profiles: Categorical, name: str) -> Bools:
    """Which rows are of a profile that has a list of claims."""
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
    """Values of a metadata column.

    Args:
        texts: the metadata of each row, as JSON.
        questions: the question of each, where rows have it in the column unless they have one of
            their own.
        column: its name.
    """
    found = [msgspec.json.decode(text or "{}").get(column, _ABSENT) for text in texts]
    asked = [None] * len(found) if questions is None else list(questions)
    return [other if value is _ABSENT else value for value, other in zip(found, asked, strict=True)]


_ABSENT = object()
