"""Metrics of one record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from typing_extensions import TypedDict

from labeler.calculators.ratio import Ratio, RatioJSON
from labeler.calculators.registry import Metric, select_metrics
from labeler.calculators.tally import Tally, tally
from labeler.errors import UsageError
from labeler.labels.profiles import DEFAULT_PROFILE, PROFILES, Profile
from labeler.labels.record import LabelFailure, LabelRecord, Outcome

FAILED = "failed"
"""Prefix of the reason that every metric of a failed row carries: ``failed:refusal``."""


class MetricsRowJSON(TypedDict):
    """One line of ``labeler metrics --rows``: a contract with the programs that read it."""

    id: str
    metrics: dict[str, RatioJSON]
    """By metric id."""
    failed: str | None
    """Reason code of a row without a label."""
    signature: str
    """What made the numbers: metrics with their versions, label, and program version."""


@dataclass(frozen=True)
class MetricsRow:
    """All selected metrics of one row.

    Attributes:
        id: the row's id.
        metrics: the value of each metric, by metric id.
        label: printed signature of the label; ``None`` for a failed row that has none.
        versions: printed names and versions of the metrics.
        failed: the failure's reason code; ``None`` for a labelled row.
        metadata: the row's other columns, for grouping.
    """

    id: str
    metrics: dict[str, Ratio]
    label: str | None
    versions: str
    failed: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict, repr=False)

    def as_json(self, version: str) -> MetricsRowJSON:
        """The published form of a row.

        Args:
            version: the program's version, part of every signature.
        """
        return {
            "id": self.id,
            "metrics": {name: ratio.as_json() for name, ratio in self.metrics.items()},
            "failed": self.failed,
            "signature": f"{self.versions}|{self.label or 'label:none'}|labeler:{version}",
        }


def measure(outcome: Outcome, metrics: Sequence[Metric] | None = None) -> MetricsRow:
    """Compute metrics of one row; a failed row has every metric undefined.

    Args:
        outcome: a label record or a failure.
        metrics: by default each metric once, in its default dialect, that labels of the row's
            profile have the fields for.
    """
    if metrics is None:
        own = outcome_profile(outcome).output
        metrics = [m for m in select_metrics() if issubclass(own, m.profile.output)]
    if isinstance(outcome, LabelFailure):
        return _failed(outcome, metrics)
    return _measured(outcome, metrics)


def outcome_profile(outcome: Outcome) -> Profile:
    """The profile of a row's label; the leanest where it failed before one was chosen."""
    if isinstance(outcome, LabelRecord):
        return next(p for p in PROFILES.values() if type(outcome.label) is p.output)
    asked = outcome.signature.response_schema.name if outcome.signature else ""
    family = asked.partition("/")[0]
    found = (profile for profile in PROFILES.values() if profile.family == family)
    return next(found, PROFILES[DEFAULT_PROFILE])


def _measured(record: LabelRecord, metrics: Sequence[Metric]) -> MetricsRow:
    counted = tally(record)
    return MetricsRow(
        record.id,
        {metric.id: _ratio(metric, counted, record.id) for metric in metrics},
        str(record.signature),
        _versions(metrics),
        metadata=record.example.metadata,
    )


def _ratio(metric: Metric, counted: Tally, row: str) -> Ratio:
    """A metric of one row; one of a user's own may raise anything, and return anything."""
    try:
        ratio: object = metric.compute(counted)
    except Exception as error:
        raise UsageError(
            f"metric {metric.id!r} failed on record {row!r}: {type(error).__name__}: {error}; "
            "Ratio.of(numerator, denominator, if_empty=…) and Ratio.missing(reason) say when there "
            "is no value"
        ) from error
    if not isinstance(ratio, Ratio):
        raise UsageError(
            f"metric {metric.id!r} gave {type(ratio).__name__} for record {row!r}; it must return "
            "a Ratio, such as Ratio.of(numerator, denominator, if_empty=…)"
        )
    return ratio


def _failed(failure: LabelFailure, metrics: Sequence[Metric]) -> MetricsRow:
    missing = Ratio.missing(f"{FAILED}:{failure.reason}")
    return MetricsRow(
        failure.id,
        {metric.id: missing for metric in metrics},
        str(failure.signature) if failure.signature else None,
        _versions(metrics),
        failed=failure.reason,
        metadata=failure.metadata,
    )


def _versions(metrics: Sequence[Metric]) -> str:
    return "metrics:" + ",".join(f"{metric.id}.v{metric.version}" for metric in metrics)
