"""The labels under review, compressed, and their order: a hundred thousand fit into memory."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from labeler.calculators import Metric
from labeler.calculators.metrics_row import DistinctRows, Identity, Measurer, MetricsRow
from labeler.data.corrections import Queue
from labeler.data.corrections.applying import corrected_signature
from labeler.errors import UsageError
from labeler.labels.answering import configuration
from labeler.labels.record import LabelFailure, LabelRecord, Outcome
from labeler.sentences.display import plural

_LEVEL = 1
"""The fastest compression level comes within a tenth of the smallest size here."""


class LabelSet:
    """Distinct label records in the order of the file, and the number of failures.

    Args:
        outcomes: labels and failures, consumed once.
        metrics: metrics computed for each label.
        doubt: computes the suspicion score of a label, if the review order depends on it.
        name: name of the outcomes in errors.

    Attributes:
        keys: label keys.
        rows: for every labeled row, the place of its label: rows with the same sentences share
            one. Copies and failures count as in metrics, see :func:`labeler.calculators.summarize`.
        questions: for every labeled row, the digest of its question; 0 for none.
        values: the judge's values by metric, one per label; ``None`` where undefined.
        doubts: suspicion score of each label; empty if ``doubt`` is ``None``.
        failed: number of rows without a label.
        signatures: the distinct signatures of the labels.

    Raises:
        UsageError: there is no label, two different labels share a key, or the labels contain
            people's corrections already.
    """

    def __init__(
        self,
        outcomes: Iterable[Outcome],
        metrics: Sequence[Metric],
        *,
        doubt: Callable[[LabelRecord], float] | None = None,
        name: str = "labels",
    ) -> None:
        self.metrics = tuple(metrics)
        self._measurer, self._doubt, self._name = Measurer(metrics), doubt, name
        self.places: dict[str, int] = {}
        """The place of each label by key."""
        self.rows: list[int] = []
        self.questions: list[int] = []
        self.values: dict[str, list[float | None]] = {metric.id: [] for metric in metrics}
        self.doubts: list[float] = []
        self.failed = 0
        self.signatures: set[str] = set()
        self._compressed: list[bytes] = []
        for row in DistinctRows(self._read(outcomes)):
            if row.failed:
                self.failed += 1
            else:
                self.rows.append(row.place)
                self.questions.append(row.question)
        if not self.places:
            failed = f": {plural(self.failed, 'row')} failed" if self.failed else ""
            raise UsageError(f"{name}: no label is there{failed}; label rows first: labeler label")
        self.keys = tuple(self.places)

    def __len__(self) -> int:
        return len(self.keys)

    def record(self, place: int) -> LabelRecord:
        """Return the record at a place."""
        return LabelRecord.model_validate_json(zlib.decompress(self._compressed[place]))

    def _read(self, outcomes: Iterable[Outcome]) -> Iterator[_Row]:
        """Add the labels, and yield every row."""
        for outcome in outcomes:
            row = self._measurer.row(outcome)
            place = -1 if isinstance(outcome, LabelFailure) else self._add(outcome, row)
            yield _Row(row.id, row.label, row.failed, row.identity, place, row.question)

    def _add(self, record: LabelRecord, row: MetricsRow) -> int:
        """Add a label, and return its place."""
        place = self.places.setdefault(record.key, len(self.places))
        if place < len(self._compressed):
            if self.record(place).label != record.label:
                raise UsageError(
                    f"{self._name}: record {record.id!r:.80} stands there twice under one key with "
                    "different labels, and a correction could not say which it means; review files "
                    "that hold one label of each"
                )
            return place
        corrected_signature(record.signature, "")  # rejects labels that people corrected already
        self._compressed.append(zlib.compress(record.model_dump_json().encode(), _LEVEL))
        self.signatures.add(configuration(record))
        for name, ratio in row.metrics.items():
            self.values[name].append(ratio.value)
        if self._doubt is not None:
            self.doubts.append(self._doubt(record))
        return place


class _Row(NamedTuple):
    """A row, and the place of its label; see :class:`DistinctRows`."""

    id: str
    label: str | None
    failed: str | None
    identity: Identity | None
    place: int
    question: int


def queue_places(
    queue: Queue,
    keys: Sequence[str],
    *,
    size: int | None = None,
    seed: int = 0,
    doubts: Sequence[float] = (),
) -> tuple[int, ...]:
    """Return the places of the labels to review, in review order.

    A random queue depends on the label keys and the seed only, not on the order of the file: the
    same labels give the same sample, and a larger sample begins with the smaller one.

    Args:
        queue: ``random``, ``doubtful`` or ``order``.
        keys: label keys, in the order of the file.
        size: maximum number of labels; all by default, or of fewer.
        seed: seed of the random queue.
        doubts: suspicion score of each label, for the doubtful queue. The highest score comes
            first; equal scores stay in order.
    """
    places = range(len(keys))
    if queue == "random":
        ranks = [(hashlib.sha256(f"{seed}:{key}".encode()).hexdigest(), key) for key in keys]
        return tuple(sorted(places, key=ranks.__getitem__)[:size])
    if queue == "doubtful":
        return tuple(sorted(places, key=lambda place: -doubts[place])[:size])
    return tuple(places[:size])
