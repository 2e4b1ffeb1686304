"""Tells what two judgements of the same sentences decide differently, and what that does."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from labeler.calculators import Metric, select_metrics
from labeler.comparing.agreement.sides import LabelsById, check_column, group_name
from labeler.comparing.diff.changes import RecordDiff, diff_record
from labeler.comparing.diff.pairs import Choice, Kept, PairCounts, Pairs, read_pairs
from labeler.comparing.diff.totals import FlipCount, MetricDiff, Totals
from labeler.errors import UsageError
from labeler.labels.record import AnyOutcome

TOP = 10
"""Records that are named."""
MOST_GROUPS = 1_000
"""Groups at most: each holds exact sums of every metric, and a column of ids would fill the
memory."""


@dataclass(frozen=True)
class DiffSide:
    """One side of a diff.

    Attributes:
        name: the file or folder, or what else it is called.
        signatures: printed signatures of its labels, sorted.
        labelled: how many labels it has.
        failed: how many records without one.
    """

    name: str
    signatures: tuple[str, ...]
    labelled: int
    failed: int

    def as_json(self) -> dict[str, Any]:
        """The published form."""
        return {
            "name": self.name,
            "signatures": list(self.signatures),
            "labelled": self.labelled,
            "failed": self.failed,
        }


@dataclass(frozen=True)
class LabelDiff:
    """What B's labels decide otherwise than A's, and what that does to the metrics.

    Attributes:
        a: the labels that changes start from.
        b: the labels that are compared with them.
        counts: what became of the records.
        by: name of the metadata column that records are grouped by, or ``None``.
        flipped: records with a flip.
        flips: how many decisions flipped, of all records first, then by group.
        metrics: what that did to each metric, in the same order.
        records: those that changed most, the most changed first; records without a flip and with
            the same values are never among them.
    """

    a: DiffSide
    b: DiffSide
    counts: PairCounts
    by: str | None
    flipped: int
    flips: tuple[FlipCount, ...]
    metrics: tuple[MetricDiff, ...]
    records: tuple[RecordDiff, ...]

    @property
    def groups(self) -> tuple[str | None, ...]:
        """``None`` for all records, and then the groups."""
        return tuple(dict.fromkeys(count.group for count in self.flips))

    def as_json(self) -> dict[str, Any]:
        """The published form."""
        return {
            "a": self.a.as_json(),
            "b": self.b.as_json(),
            "counts": self.counts.as_json(),
            "by": self.by,
            "flipped": self.flipped,
            "flips": [count.as_json() for count in self.flips],
            "metrics": [row.as_json() for row in self.metrics],
            "records": [record.as_json() for record in self.records],
        }


@dataclass(frozen=True)
class Differences:
    """Two sides that were read and paired, to be gone through record by record.

    Attributes:
        pairs: the records of both sides.
        metrics: what is computed of each.
        by: name of the metadata column that records are grouped by, or ``None``.
    """

    pairs: Pairs
    metrics: tuple[Metric, ...]
    by: str | None

    def __iter__(self) -> Iterator[RecordDiff]:
        for a, b in self.pairs:
            yield diff_record(a, b, self.metrics, group_name(a.example.metadata, self.by))

    def summary(self, top: int = TOP) -> LabelDiff:
        """Add all records up.

        Args:
            top: how many of those that changed most are kept.

        Raises:
            UsageError: the records are of more than :data:`MOST_GROUPS` groups.
        """
        whole = Totals(None, self.metrics)
        groups: dict[str, Totals] = {}
        most = _Most(top)
        for record in self:
            whole.add(record)
            most.add(record)
            if record.group is not None:
                if record.group not in groups:
                    self._check_groups(len(groups))
                    groups[record.group] = Totals(record.group, self.metrics)
                groups[record.group].add(record)
        totals = [whole, *(groups[name] for name in sorted(groups))]
        return LabelDiff(
            a=_side(self.pairs.a),
            b=_side(self.pairs.b),
            counts=self.pairs.counts,
            by=self.by,
            flipped=most.flipped,
            flips=tuple(count for part in totals for count in part.flips()),
            metrics=tuple(row for part in totals for row in part.metrics()),
            records=most.first(),
        )

    def _check_groups(self, count: int) -> None:
        if count == MOST_GROUPS:
            raise UsageError(
                f"column {self.by!r:.80} has more than {MOST_GROUPS:,} values to group by; name "
                "one with fewer"
            )


def _side(side: LabelsById[Kept]) -> DiffSide:
    return DiffSide(side.name, side.signatures, len(side.labelled), len(side.failed))


class _Most:
    """The records that changed most, of any number."""

    def __init__(self, top: int) -> None:
        self._top = top
        self._heap: list[tuple[Fraction, int, int, RecordDiff]] = []
        self._seen = 0
        self.flipped = 0

    def add(self, record: RecordDiff) -> None:
        """See a record; of two that changed as much the earlier one counts as more."""
        self._seen += 1
        self.flipped += bool(record.flips)
        size = record.size
        if not self._top or not (record.flips or size):
            return
        entry = (size, len(record.flips), -self._seen, record)
        if len(self._heap) < self._top:
            heapq.heappush(self._heap, entry)
        else:
            heapq.heappushpop(self._heap, entry)

    def first(self) -> tuple[RecordDiff, ...]:
        """The most changed ones, first those that changed most."""
        return tuple(entry[-1] for entry in sorted(self._heap, reverse=True))


def open_diff(
    a: Iterable[AnyOutcome],
    b: Iterable[AnyOutcome],
    *,
    metrics: str | Iterable[str] | None = None,
    by: str | None = None,
    names: tuple[str, str] = ("A", "B"),
    signatures: tuple[str | None, str | None] = (None, None),
    trials: tuple[int | None, int | None] = (None, None),
) -> Differences:
    """Read two sides and pair their records; see :func:`diff_labels` for what is given and raised.

    Whoever wants every record goes through what this returns.
    """
    chosen = select_metrics(metrics)
    pairs = read_pairs(
        a,
        b,
        (
            Choice(names[0], signatures[0], trials[0]),
            Choice(names[1], signatures[1], trials[1], "--b-signature", "--trial-b"),
        ),
    )
    check_column(pairs.a, by)
    if metrics is None:
        chosen = tuple(metric for metric in chosen if pairs.have_fields_of(metric))
    return Differences(pairs, chosen, by)


def diff_labels(
    a: Iterable[AnyOutcome],
    b: Iterable[AnyOutcome],
    *,
    metrics: str | Iterable[str] | None = None,
    by: str | None = None,
    names: tuple[str, str] = ("A", "B"),
    signatures: tuple[str | None, str | None] = (None, None),
    trials: tuple[int | None, int | None] = (None, None),
    top: int = TOP,
) -> LabelDiff:
    """Tell which decisions two sets of labels take differently, and split each metric's change.

    Compared are the records that both have a label of, for the very same question, documents and
    response. The change of a metric is split over the decisions that flipped so that the parts
    add up to it exactly; see ``docs/diff.md``.

    Args:
        a: label records and failures that changes start from, such as
            ``labeler.read_labels("before.jsonl")``; what else is there is left out.
        b: those that are compared with them.
        metrics: metric ids, as for :func:`labeler.metrics`; where left out, each metric once, in
            its default dialect, that labels of both sides have the fields for.
        by: name of a metadata column of A's records to group by as well.
        names: what the sides are called in errors and results, such as their files.
        signatures: for each side a part of the signature of the labels that are meant.
        trials: for each side the trial that is meant.
        top: how many of the records that changed most are named.

    Raises:
        UsageError: a side has no label that was chosen, or two of one record that differ; no
            record has a label on both sides for the very same sentences; no record of A has the
            column, or it has more than :data:`MOST_GROUPS` values; or ``top`` is negative.
        UnknownName: there is no such metric.
    """
    if top < 0:
        raise UsageError(f"top {top}: name 0 or more records")
    found = open_diff(
        a, b, metrics=metrics, by=by, names=names, signatures=signatures, trials=trials
    )
    return found.summary(top)
