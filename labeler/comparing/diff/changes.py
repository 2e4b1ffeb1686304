"""One record of a diff: what flipped in it, and what that did to each metric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from labeler.calculators import Metric
from labeler.comparing.diff.attributing import MetricChange, attribute
from labeler.comparing.diff.decisions import DecisionFlip, Field
from labeler.comparing.diff.hybrids import Hybrids
from labeler.labels.record import LabelRecord


@dataclass(frozen=True)
class RecordDiff:
    """What B's label says otherwise than A's of one record.

    Attributes:
        id: the record.
        group: its value in the grouping column; ``None`` where nothing is grouped.
        flips: the decisions that differ, in reading order.
        changes: every metric's change, in the order of the metrics.
        decisions: by field, how many decisions there were to flip.
    """

    id: str
    group: str | None
    flips: tuple[DecisionFlip, ...]
    changes: tuple[MetricChange, ...]
    decisions: dict[Field, int]

    @property
    def size(self) -> Fraction:
        """How much changed: the sum of what each metric moved, up or down."""
        return sum((abs(c.change) for c in self.changes if c.change is not None), Fraction())

    def as_json(self) -> dict[str, Any]:
        """The published form: a line of ``labeler diff --rows``."""
        return {
            "id": self.id,
            "group": self.group,
            "size": float(self.size),
            "flips": [flip.as_json() for flip in self.flips],
            "metrics": {change.metric: change.as_json() for change in self.changes},
        }


def diff_record(
    a: LabelRecord, b: LabelRecord, metrics: Sequence[Metric], group: str | None = None
) -> RecordDiff:
    """Compare two labels of the very same sentences.

    Args:
        a: the record with the label that changes start from.
        b: the same sentences with another label.
        metrics: what is computed of both.
        group: the record's group.
    """
    hybrids = Hybrids(a, b)
    return RecordDiff(
        id=a.id,
        group=group,
        flips=hybrids.flips,
        changes=tuple(attribute(metric, hybrids) for metric in metrics),
        decisions=_decisions(hybrids),
    )


def _decisions(hybrids: Hybrids) -> dict[Field, int]:
    """How many decisions of each field both labels take."""
    tally = hybrids.first()
    sentences, response = tally.sentences, len(tally.response)
    return {
        "relevant": sentences,
        "utilized": sentences,
        "supported": response,
        "supporting_keys": response,
        "overall_supported": 1,
        "claims": int(tally.claims is not None and hybrids.last().claims is not None),
        "reference_claims": int(
            tally.reference_claims is not None and hybrids.last().reference_claims is not None
        ),
        "as_given": 1,
    }
