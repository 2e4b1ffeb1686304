"""Means of one metric by a judge, by people, and by both together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from labeler.calculators import METRICS
from labeler.calculators.rater_agreement import is_yes_or_no
from labeler.calculators.statistics.bias_correction import (
    Corrected,
    JudgeErrors,
    corrected_proportion,
    plain_mean,
    ppi_mean,
)
from labeler.comparing.agreement.matching import TIE
from labeler.comparing.human_labels import OVERALL


@dataclass(frozen=True)
class Estimates:
    """Three means of one metric, side by side.

    Attributes:
        metric: the metric's id, or ``overall_supported``.
        group: value of the grouping column; ``None`` for all records together.
        plain: the judge's mean over all records.
        ppi: the PPI++ mean.
        corrected: the error-corrected proportion; ``None`` where the metric is not yes or no.
        people: the mean of the human-judged records, by people.
    """

    metric: str
    group: str | None
    plain: Corrected
    ppi: Corrected
    corrected: Corrected | None
    people: Corrected

    def as_json(self) -> dict[str, Any]:
        """The published form."""
        return {
            "metric": self.metric,
            "group": self.group,
            "people": self.people.as_json(),
            "plain": self.plain.as_json(),
            "ppi": self.ppi.as_json(),
            "corrected": None if self.corrected is None else self.corrected.as_json(),
        }


def estimate(
    metric: str,
    group: str | None,
    judged: Mapping[str, float | None],
    verdicts: Mapping[str, float | None],
    *,
    random_sample: bool,
) -> Estimates:
    """The means of one metric.

    Args:
        metric: its id.
        group: value of the grouping column, or ``None``.
        judged: the judge's value by record; ``None`` where the metric is undefined.
        verdicts: people's value by record; ``None`` where they are tied.
        random_sample: whether the human-judged records are known to have been drawn at random.
    """
    values = {name: value for name, value in judged.items() if value is not None}
    said = {name: verdicts[name] for name in values if name in verdicts}
    alone = [value for name, value in values.items() if name not in said]
    mine = [TIE if value is None else value for value in said.values()]
    return Estimates(
        metric=metric,
        group=group,
        plain=replace(plain_mean(list(values.values())), labelled=len(said), unlabelled=len(alone)),
        ppi=without_empty_interval(
            ppi_mean(
                mine,
                [values[name] for name in said],
                alone,
                bounds=(0, 1) if _is_share(metric, values.values()) else None,
                random_sample=random_sample,
            )
        ),
        corrected=_corrected(said, values, alone, random_sample=random_sample)
        if is_yes_or_no(metric)
        else None,
        people=replace(plain_mean(mine), method="people", labelled=len(said), unlabelled=0),
    )


def without_empty_interval(mean: Corrected) -> Corrected:
    """A mean without an interval that has no width: it would claim what no sample can know."""
    interval = mean.interval
    if interval is None or interval.low < interval.high:
        return mean
    return replace(mean, interval=None, warnings=(*mean.warnings, _NO_WIDTH))


_NO_WIDTH = "there is no interval: by these values it would have no width"


def _is_share(metric: str, values: Iterable[float]) -> bool:
    """Whether no value, and so no mean, can lie outside 0 to 1; one that does is proof."""
    declared = metric == OVERALL or METRICS[metric].bounded
    return declared and all(0 <= value <= 1 for value in values)


def _corrected(
    said: Mapping[str, float | None],
    values: Mapping[str, float],
    alone: Sequence[float],
    *,
    random_sample: bool,
) -> Corrected:
    """The error-corrected proportion of what says yes or no; ties are left out."""
    decided = {name: value for name, value in said.items() if value is not None}
    errors = JudgeErrors.of(list(decided.values()), [values[name] for name in decided])
    yes = sum(1 for value in alone if value)
    return corrected_proportion(yes, len(alone), errors, random_sample=random_sample)
