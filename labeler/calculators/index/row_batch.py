"""Batches of index rows under construction."""

from __future__ import annotations

from array import array
from collections.abc import Callable

import numpy as np

from labeler.calculators.index.decoding import NeedsValidation, decode_label, label_row
from labeler.calculators.index.frames import BATCH, DIGESTS, NUMBERS, TEXTS, Arrays, encode_texts
from labeler.calculators.index.rows import IndexRow, failure_row
from labeler.calculators.metrics_row import question_digest, row_digest
from labeler.labels.record import AnyOutcome, LabelFailure, LabelRecord, is_uncounted, records_of

_TOGETHER = 256
"""Labels that are appended to the columns together, which is faster than one by one."""


class RowBatch:
    """Index rows of one batch under construction."""

    def __init__(self) -> None:
        self._keys: list[str] = []
        self._digests = {name: array("Q") for name in DIGESTS}
        self._texts: dict[str, list[str | bytes | None]] = {name: [] for name in TEXTS}
        self._numbers = array("Q")
        self._columns: set[str] = set()
        self._waiting: list[IndexRow] = []
        self._places: list[int] = []

    def __len__(self) -> int:
        return len(self._keys) + len(self._waiting)

    @property
    def full(self) -> bool:
        """True if the batch is complete."""
        return len(self) >= BATCH

    @property
    def columns(self) -> set[str]:
        """Names of the metadata columns."""
        self._flush()
        return self._columns

    def read(self, name: str) -> Arrays:
        """Return the arrays of a column, see ``TYPES``."""
        self._flush()
        if name in NUMBERS:
            return (np.array(self._numbers).reshape(-1, len(NUMBERS))[:, NUMBERS.index(name)],)
        if name == "key":
            return (np.frombuffer(bytes.fromhex("".join(self._keys)), np.uint8),)
        if name in DIGESTS:
            return (np.array(self._digests[name]),)
        return encode_texts(self._texts[name])

    def add(self, place: int, row: IndexRow) -> None:
        """Add a row.

        Args:
            place: position at which it is stored.
            row: its index row.
        """
        self._places.append(place)
        self._waiting.append(row)
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
        self._digests["identity"].extend(map(row_digest, columns["id"], columns["label"]))
        self._digests["content"].extend(columns["content"])
        self._digests["asked"].extend(map(question_digest, columns["question"]))
        for name, texts in self._texts.items():
            texts.extend(columns[name])
        for place, numbers in zip(places, columns["numbers"], strict=True):
            self._numbers.append(place)
            self._numbers.extend(numbers)
        self._columns.update(*columns["columns"])


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
