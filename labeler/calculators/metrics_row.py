"""Metrics of one record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from typing_extensions import TypedDict

from labeler.calculators.ratio import Ratio, RatioJSON
from labeler.calculators.registry import METRICS, Metric
from labeler.calculators.tally import Tally, tally
from labeler.errors import UsageError
from labeler.labels.profiles import DEFAULT_PROFILE, PROFILES, Profile
from labeler.labels.record import LabelFailure, LabelRecord, Outcome


class MetricsRowJSON(TypedDict):
    """One line of ``labeler metrics --rows``: a contract with the programs that read it."""

    id: str
    metrics: dict[str, RatioJSON]
    """By metric id."""
    failed: str | None
    """Reason code of a row without a label."""
    signature: str
    """Metrics with their versions, label signature, and program version."""


@dataclass(frozen=True)
class MetricsRow:
    """All selected metrics of one row.

    Attributes:
        id: the row's id.
        metrics: the value of each metric, by metric id.
        label: printed signature of the label; ``None`` for a failed row that has none.
        versions: printed names and versions of the metrics.
        failed: the failure's reason code; ``None`` for a labeled row.
        metadata: the row's other columns, for grouping.
    """

    id: str
    metrics: dict[str, Ratio]
    label: str | None
    versions: str
    failed: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict, repr=False)

    def as_json(self, version: str) -> MetricsRowJSON:
        """Return the published form.

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
    """Compute metrics of one row; every metric of a failed row is undefined.

    Args:
        outcome: a label record or a failure.
        metrics: by default every metric, aliases included, in its default definition, if labels of
            the row's profile have its fields.

    Raises:
        UsageError: a third party's metric failed.
    """
    if metrics is None:
        output = outcome_profile(outcome).output
        every = (metric for metric in METRICS.values() if metric.default)
        metrics = [metric for metric in every if issubclass(output, metric.profile.output)]
    if isinstance(outcome, LabelFailure):
        signature = str(outcome.signature) if outcome.signature else None
        return failed_row(outcome, metrics, signature)
    counted = tally(outcome)
    return MetricsRow(
        outcome.id,
        {metric.id: _compute(metric, counted, outcome.id) for metric in metrics},
        str(outcome.signature),
        printed_versions(metrics),
        metadata=outcome.example.metadata,
    )


def failed_row(failure: LabelFailure, metrics: Sequence[Metric], label: str | None) -> MetricsRow:
    """Return the row of a failure: every metric is undefined, as in ``failed:refusal``.

    Args:
        failure: the failure.
        metrics: the selected metrics.
        label: printed signature of the records that the failure counts with.
    """
    missing = Ratio.missing(f"failed:{failure.reason}")
    return MetricsRow(
        failure.id,
        {metric.id: missing for metric in metrics},
        label,
        printed_versions(metrics),
        failed=failure.reason,
        metadata=failure.metadata,
    )


def outcome_profile(outcome: Outcome) -> Profile:
    """Return the profile of a row's label; the leanest if it failed before one was chosen."""
    if isinstance(outcome, LabelRecord):
        return next(p for p in PROFILES.values() if type(outcome.label) is p.output)
    schema = outcome.signature.response_schema.name if outcome.signature else ""
    family = schema.partition("/")[0]
    found = (profile for profile in PROFILES.values() if profile.family == family)
    return next(found, PROFILES[DEFAULT_PROFILE])


def printed_versions(metrics: Sequence[Metric]) -> str:
    """Return the metrics part of a signature."""
    return "metrics:" + ",".join(f"{metric.id}.v{metric.version}" for metric in metrics)


def _compute(metric: Metric, counted: Tally, row: str) -> Ratio:
    """Compute a metric that a third party may have written."""
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
