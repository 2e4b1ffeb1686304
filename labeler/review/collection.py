"""The labels under review, held packed: a hundred thousand of them fit into memory."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from labeler.calculators import Metric, measure
from labeler.comparing.human_labels import OVERALL
from labeler.data.corrections.applying import corrected_signature
from labeler.errors import UsageError
from labeler.labels.answers import GPTLabelingOutput
from labeler.labels.record import LabelFailure, LabelRecord, Outcome, is_canary

_LEVEL = 1
"""The quickest packing is within a tenth of the tightest here."""


@dataclass(frozen=True)
class Collection:
    """Label records, each once, in the order of the file.

    Attributes:
        keys: their keys.
        rows: for every row of the file that has a label, which of the labels it is: rows with the
            same sentences share one.
        values: the judge's value of every label by metric, and by ``overall_supported``; ``None``
            where it is undefined.
        doubts: how doubtful each label is, where somebody asked.
        failed: rows without a label.
        ways: in how many ways the labels were made.
        packed: the records themselves.
    """

    keys: tuple[str, ...]
    rows: tuple[int, ...]
    values: Mapping[str, Sequence[float | None]]
    doubts: tuple[float, ...] | None
    failed: int
    ways: int
    packed: Sequence[bytes]

    def __len__(self) -> int:
        return len(self.keys)

    @cached_property
    def known(self) -> frozenset[str]:
        """The keys, to look up."""
        return frozenset(self.keys)

    def record(self, place: int) -> LabelRecord:
        """A record by its place."""
        return LabelRecord.model_validate_json(zlib.decompress(self.packed[place]))


def collect(
    outcomes: Iterable[Outcome],
    metrics: Sequence[Metric],
    *,
    doubt: Callable[[LabelRecord], float] | None = None,
    name: str = "labels",
) -> Collection:
    """Take in labels; canaries are left out, failures are counted.

    Args:
        outcomes: consumed once.
        metrics: what is worked out of each label.
        doubt: how doubtful a label is, where the order of the desk goes by it.
        name: what errors call the outcomes.

    Raises:
        UsageError: there is no label, two different ones stand under one key, or people's
            corrections are in them already.
    """
    taken = _Taken(metrics, doubt, name)
    for outcome in outcomes:
        if not is_canary(outcome):
            taken.add(outcome)
    if not taken.places:
        failed = f": all {taken.failed} rows failed" if taken.failed else ""
        raise UsageError(f"{name}: no label is there{failed}; label rows first: labeler label")
    return Collection(
        keys=tuple(taken.places),
        rows=tuple(taken.rows),
        values=taken.values,
        doubts=None if doubt is None else tuple(taken.doubts),
        failed=taken.failed,
        ways=len(taken.signatures),
        packed=taken.packed,
    )


class _Taken:
    """What was taken in so far."""

    def __init__(
        self,
        metrics: Sequence[Metric],
        doubt: Callable[[LabelRecord], float] | None,
        name: str,
    ) -> None:
        self.places: dict[str, int] = {}
        self.rows: list[int] = []
        names = [*(metric.id for metric in metrics), OVERALL]
        self.values: dict[str, list[float | None]] = {name: [] for name in names}
        self.doubts: list[float] = []
        self.failed = 0
        self.signatures: set[str] = set()
        self.packed: list[bytes] = []
        self._labels: list[int] = []
        self._metrics, self._doubt, self._name = metrics, doubt, name

    def add(self, outcome: Outcome) -> None:
        if isinstance(outcome, LabelFailure):
            self.failed += 1
            return
        place = self.places.setdefault(outcome.key, len(self.places))
        self.rows.append(place)
        if place < len(self.packed):
            self._check_same(place, outcome)
            return
        corrected_signature(outcome.signature, "")  # refuses labels that people corrected already
        self.packed.append(zlib.compress(outcome.model_dump_json().encode(), _LEVEL))
        self.signatures.add(str(outcome.signature))
        self._labels.append(_verdicts(outcome.label))
        for name, value in values_of(outcome, self._metrics).items():
            self.values[name].append(value)
        if self._doubt is not None:
            self.doubts.append(self._doubt(outcome))

    def _check_same(self, place: int, record: LabelRecord) -> None:
        if self._labels[place] != _verdicts(record.label):
            raise UsageError(
                f"{self._name}: record {record.id!r:.80} stands there twice under one key with "
                "different labels, and a correction could not say which it means; review files "
                "that hold one label of each"
            )


def _verdicts(label: GPTLabelingOutput) -> int:
    return hash(label.model_dump_json())


def values_of(record: LabelRecord, metrics: Sequence[Metric]) -> dict[str, float | None]:
    """A record's values by metric, and its verdict on the response as a whole: 1 or 0."""
    measured = measure(record, metrics).metrics
    values = {name: ratio.value for name, ratio in measured.items()}
    return {**values, OVERALL: float(record.label.overall_supported)}
