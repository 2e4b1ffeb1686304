"""A judge's means, corrected by human labels of a sample of its records.

PPI++ (Angelopoulos, Duchi, Zrnic 2023, arXiv 2311.01453) shifts the judge's mean by its error on
the sample, weighted by its correlation with people; it applies to any numbers. The error-corrected
proportion (arXiv 2511.21140, after Rogan and Gladen 1978, with the interval of Lang and Reiczigel
2014) converts the judge's share of yes to that of people by sensitivity and specificity on the
sample; it applies to yes-or-no values.

Both are valid for a random sample of the records. Conditions that fail or are unknown are returned
as warnings.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist, fmean
from typing import Any

from labeler.calculators.statistics.intervals import (
    FEWEST,
    LEVEL,
    SAME,
    Interval,
    is_small,
    mean_interval,
    quantile_of,
    wilson_ends,
)
from labeler.calculators.statistics.resampling import GroupEffect, ppi_variance
from labeler.errors import UsageError

FEWEST_OF_A_KIND = 10
"""Human yeses, and noes, below which sensitivity and specificity are unreliable."""
UNLIKE = 3.0
"""Standard errors between the judge's means on sample and rest from which a warning is given."""

NO_LABELS = "no_human_labels"
TOO_FEW_LABELS = "too_few_human_labels"
NO_VALUES = "no_values"
NO_OTHERS = "no_unlabeled_records"
NO_YES = "no_human_yes"
NO_NO = "no_human_no"
UNINFORMATIVE = "judge_no_better_than_chance"
CONTRADICTORY = "judge_errs_otherwise_elsewhere"

_PAIR = 2


@dataclass(frozen=True)
class Corrected:
    """A corrected mean with its basis.

    Attributes:
        method: ``plain`` (the judge alone), ``ppi++`` or ``error-corrected``.
        value: the mean; ``None`` if undefined.
        interval: confidence interval of the mean; ``None`` if undefined, or for one record.
        undefined: reason of a missing value, such as ``no_human_labels``.
        labeled: records with human labels.
        unlabeled: records with the judge's labels only.
        warnings: conditions that fail or are unknown, in plain English.
        weight: PPI++: weight of the judge, from 0 (the mean of the human labels) to 1.
        sensitivity: share of human yeses that the judge calls yes.
        specificity: share of human noes that the judge calls no.
    """

    method: str
    value: float | None
    interval: Interval | None
    undefined: str | None
    labeled: int
    unlabeled: int
    warnings: tuple[str, ...] = ()
    weight: float | None = None
    sensitivity: float | None = None
    specificity: float | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the published form."""
        interval = self.interval
        return {
            "method": self.method,
            "value": self.value,
            "interval": None if interval is None else [interval.low, interval.high],
            "level": None if interval is None else interval.level,
            "small_sample": interval is not None and interval.small_sample,
            "undefined": self.undefined,
            "labeled": self.labeled,
            "unlabeled": self.unlabeled,
            "weight": self.weight,
            "sensitivity": self.sensitivity,
            "specificity": self.specificity,
            "warnings": list(self.warnings),
        }


def plain_mean(values: Sequence[float], *, groups: Sequence[Hashable] | None = None) -> Corrected:
    """Return the uncorrected mean, with the interval of summaries over records or groups.

    Raises:
        UsageError: a value is not finite.
    """
    if not values:
        return Corrected("plain", None, None, NO_VALUES, 0, 0)
    interval = mean_interval(values, groups=groups)
    return Corrected("plain", fmean(values), interval, None, 0, len(values))


def ppi_mean(
    people: Sequence[float],
    judge: Sequence[float],
    judge_alone: Sequence[float],
    *,
    bounds: tuple[float, float] | None = None,
    groups: Sequence[Hashable] | None = None,
    random_sample: bool = False,
) -> Corrected:
    """Return the PPI++ estimate of the mean of human values.

    The judge has the weight with the shortest published interval. The interval here also holds for
    few human labels: with the jackknife's variance, Student's quantile and, between bounds,
    Wilson's form.

    Args:
        people: human values of the sample.
        judge: the judge's values of the same records, in the same order.
        judge_alone: the judge's values of all other records.
        bounds: lowest and highest possible mean, such as 0 and 1 for shares; value and interval
            are clipped to them.
        groups: group of each record, such as its question, the sample first.
        random_sample: True if the sample is known to be random.

    Raises:
        UsageError: people and judge differ in number, or a value is not finite.
    """
    for value in (*people, *judge, *judge_alone):
        if not math.isfinite(value):
            raise UsageError(f"a value is {value}; leave out records without a number")
    if len(people) != len(judge):
        raise UsageError(
            f"{len(people)} human values and {len(judge)} of the judge; give both for each "
            "record of the sample, in one order"
        )
    if len(people) < _PAIR:
        reason = TOO_FEW_LABELS if people else NO_LABELS
        return Corrected("ppi++", None, None, reason, len(people), len(judge_alone))
    trust = _best_weight(people, judge, judge_alone)
    mean = fmean(mine - trust * theirs for mine, theirs in zip(people, judge, strict=True))
    if judge_alone:
        mean += trust * fmean(judge_alone)
    found = ppi_variance(people, judge, judge_alone, groups=groups)
    interval = None if found is None else _student_interval(mean, *found, bounds)
    if interval and groups is not None:
        interval = replace(interval, method=f"{interval.method}_groups")
    return Corrected(
        method="ppi++",
        value=_cut(mean, bounds),
        interval=interval,
        undefined=None,
        labeled=len(people),
        unlabeled=len(judge_alone),
        warnings=(
            *_sample_warnings(len(people), random_sample=random_sample),
            *_mean_warnings(people, judge, judge_alone),
            *([_ONE_GROUP] if interval is None else []),
        ),
        weight=trust,
    )


def _student_interval(
    mean: float, variance: float, count: int, bounds: tuple[float, float] | None
) -> Interval:
    """Return an interval of a PPI++ mean that holds for few human labels.

    Between bounds it is Wilson's for the effective number of yes-or-no records, as for other
    means: near a bound the estimate is skewed. Without an observed spread it counts as many
    yes-or-no records as there are human labels, or groups with some.
    """
    quantile, small = quantile_of(LEVEL, count), is_small(count)
    if bounds is None:
        half = quantile * math.sqrt(variance)
        return Interval(mean - half, mean + half, LEVEL, "ppi++_t", small)
    low, width = bounds[0], bounds[1] - bounds[0]
    share = (_cut(mean, bounds) - low) / width
    spread, seen = share * (1 - share), variance / width**2
    trials = max(1.0, spread / seen) if spread and seen > SAME**2 else float(count)
    begin, end = wilson_ends(share, trials, quantile)
    return Interval(low + width * begin, low + width * end, LEVEL, "ppi++_wilson", small)


def _best_weight(
    people: Sequence[float], judge: Sequence[float], judge_alone: Sequence[float]
) -> float:
    """Return the weight with the smallest variance of the estimate.

    With covariance c of people and judge, and variance v of the judge, the variance of the mean is
    a constant + (w²v - 2wc)/n + w²v/N, with its minimum at w = c / (v·(1 + n/N)).
    """
    everything = [*judge, *judge_alone]
    # n - 1 here and n in the covariance follow the published implementation.
    spread = _variance(everything) * len(everything) / (len(everything) - 1)
    if not spread or not judge_alone:
        return 0.0
    mean, theirs = fmean(people), fmean(judge)
    together = math.fsum(
        (a - mean) * (b - theirs) for a, b in zip(people, judge, strict=True)
    ) / len(people)
    best = together / (spread * (1 + len(people) / len(judge_alone)))
    return min(1.0, max(0.0, best))


@dataclass(frozen=True)
class JudgeErrors:
    """The judge's confusion counts on the records with human labels."""

    human_yes: int
    """Records with a human yes."""
    both_yes: int
    """Records with a yes of both."""
    human_no: int
    """Records with a human no."""
    both_no: int
    """Records with a no of both."""

    def __post_init__(self) -> None:
        if not (0 <= self.both_yes <= self.human_yes and 0 <= self.both_no <= self.human_no):
            raise UsageError(f"these counts do not fit together: {self}")

    @classmethod
    def of(cls, people: Sequence[float], judge: Sequence[float]) -> JudgeErrors:
        """Count verdicts (1 yes, 0 no) of the same records in the same order.

        Raises:
            UsageError: people and judge differ in number, or a verdict is neither 0 nor 1.
        """
        if len(people) != len(judge) or not {*people, *judge} <= {0, 1}:
            raise UsageError("error correction needs a 0 or a 1 of people and of the judge each")
        pairs = list(zip(people, judge, strict=True))
        return cls(
            human_yes=sum(1 for a, _ in pairs if a),
            both_yes=sum(1 for a, b in pairs if a and b),
            human_no=sum(1 for a, _ in pairs if not a),
            both_no=sum(1 for a, b in pairs if not a and not b),
        )


def corrected_proportion(
    judged_yes: int,
    judged: int,
    errors: JudgeErrors,
    *,
    effect: GroupEffect | None = None,
    random_sample: bool = False,
) -> Corrected:
    """Return the error-corrected estimate of the share of human yeses.

    With the judge's share of yes p, specificity q0 and sensitivity q1: (p + q0 - 1)/(q0 + q1 - 1),
    clipped to 0 and 1. Undefined (``judge_errs_otherwise_elsewhere``) if the whole interval lies
    beyond 0 or 1: no share explains the judge's yeses by its errors on the sample.

    Args:
        judged_yes: records without human labels that the judge calls yes.
        judged: all records without human labels.
        errors: the judge's confusion counts on the records with human labels.
        effect: of groups of dependent records, by
            :func:`labeler.calculators.statistics.resampling.group_effect`.
        random_sample: True if the records with human labels are known to be a random sample.

    Raises:
        UsageError: the counts do not fit together.
    """
    if not 0 <= judged_yes <= judged:
        raise UsageError(f"the judge said yes {judged_yes} times to {judged} records")
    labeled = errors.human_yes + errors.human_no
    reason = _undefined_reason(judged, errors)
    if reason:
        return Corrected("error-corrected", None, None, reason, labeled, judged)
    sensitivity = errors.both_yes / errors.human_yes
    specificity = errors.both_no / errors.human_no
    raw = (judged_yes / judged + specificity - 1) / (sensitivity + specificity - 1)
    interval = _interval_of_proportion(judged_yes, judged, errors, effect)
    return Corrected(
        method="error-corrected",
        value=_cut(raw, (0, 1)) if interval else None,
        interval=interval,
        undefined=None if interval else CONTRADICTORY,
        labeled=labeled,
        unlabeled=judged,
        warnings=(*_proportion_warnings(errors, raw, random_sample=random_sample),),
        sensitivity=sensitivity,
        specificity=specificity,
    )


def _undefined_reason(judged: int, errors: JudgeErrors) -> str | None:
    """Return the reason why the corrected proportion is undefined, or ``None``."""
    if not errors.human_yes + errors.human_no:
        return NO_LABELS
    if not judged:
        return NO_OTHERS
    if not errors.human_yes:
        return NO_YES
    if not errors.human_no:
        return NO_NO
    # sensitivity + specificity > 1, in whole numbers
    better = errors.both_yes * errors.human_no + errors.both_no * errors.human_yes
    return None if better > errors.human_yes * errors.human_no else UNINFORMATIVE


def _interval_of_proportion(
    judged_yes: int, judged: int, errors: JudgeErrors, effect: GroupEffect | None
) -> Interval | None:
    """Return the interval of Lang and Reiczigel, from adjusted counts; ``None`` beyond 0 to 1.

    The judge's share gets z²/2 yeses in z² additional records, sensitivity and specificity one in
    two; the midpoint is shifted by the second-order bias of the quotient. Groups widen it by the
    root of their effect, and make the quantile Student's.
    """
    z, method = NormalDist().inv_cdf((1 + LEVEL) / 2), "error-corrected"
    small, wide = is_small(errors.human_yes + errors.human_no), 1.0
    if effect:
        wide = math.sqrt(effect.factor) * quantile_of(LEVEL, effect.labeled) / z
        small, method = is_small(effect.labeled), f"{method}_groups"
    n, yes, no = judged + z**2, errors.human_yes + 2, errors.human_no + 2
    share = (judged_yes + z**2 / 2) / n
    q1, q0 = (errors.both_yes + 1) / yes, (errors.both_no + 1) / no
    gain = q0 + q1 - 1
    noise = wide * z * math.sqrt(q0 * (1 - q0) / no + q1 * (1 - q1) / yes)
    if gain <= noise:  # it may be 0, so that the quotient may be anything (Fieller 1954)
        return Interval(0.0, 1.0, LEVEL, method, small_sample=True)
    small = small or gain <= _UNSURE * noise
    middle = (share + q0 - 1) / gain
    on_no = (1 - middle) * q0 * (1 - q0) / no
    on_yes = middle * q1 * (1 - q1) / yes
    shift = 2 * z**2 * (on_yes - on_no)
    spread = share * (1 - share) / n + (1 - middle) * on_no + middle * on_yes
    half = wide * z * math.sqrt(spread) / gain
    low, high = middle + shift - half, middle + shift + half
    if low >= 1 or high <= 0:
        return None
    return Interval(_cut(low, (0, 1)), _cut(high, (0, 1)), LEVEL, method, small)


_UNSURE = 2
"""Half-widths of sensitivity + specificity - 1 from 0 below which the interval is marked."""
_ONE_GROUP = "all human-judged records ask one question: there is no interval"


def _sample_warnings(labeled: int, *, random_sample: bool) -> Iterator[str]:
    """Yield the conditions on the sample that fail or are unknown."""
    if not random_sample:
        yield (
            "it is not known that the human-judged records were drawn at random; if they were "
            "picked in another way, the corrected means can be wrong by any amount"
        )
    if labeled < FEWEST:
        yield (
            f"records with human labels: only {labeled}; under {FEWEST} the intervals "
            "cannot be relied on"
        )


def _mean_warnings(
    people: Sequence[float], judge: Sequence[float], judge_alone: Sequence[float]
) -> Iterator[str]:
    """Yield the conditions of a PPI++ mean that fail."""
    if len(set(people)) == 1:
        yield (
            f"people gave {people[0]:g} to all {len(people)} records: the interval cannot tell how "
            "much records differ"
        )
    if not judge_alone:
        yield "people judged every record that the judge did: the value is simply their mean"
    elif _unlike(judge, judge_alone):
        yield (
            f"the judge's mean is {fmean(judge):.3f} on the human-judged records and "
            f"{fmean(judge_alone):.3f} on the others, more apart than chance explains: they are "
            "hardly a random sample"
        )


def _unlike(sample: Sequence[float], rest: Sequence[float]) -> bool:
    # Pooled, because a few equal values would have no spread of their own.
    spread = _variance([*sample, *rest]) * (1 / len(sample) + 1 / len(rest))
    return abs(fmean(sample) - fmean(rest)) > UNLIKE * math.sqrt(spread)


def _proportion_warnings(errors: JudgeErrors, raw: float, *, random_sample: bool) -> Iterator[str]:
    """Yield the conditions of a proportion that fail or are unknown."""
    yield from _sample_warnings(errors.human_yes + errors.human_no, random_sample=random_sample)
    for count, verdict in ((errors.human_yes, "yes"), (errors.human_no, "no")):
        if count < FEWEST_OF_A_KIND:
            yield (
                f"records to which people said {verdict}: only {count}; what the judge makes of "
                "such records is hardly known"
            )
    if not 0 <= raw <= 1:
        yield (
            f"the formula gave {raw:.3f}, beyond 0 to 1: the judge errs otherwise on the records "
            "without human labels, or the human-judged records are hardly a random sample"
        )


def _cut(value: float, bounds: tuple[float, float] | None) -> float:
    return value if bounds is None else float(min(bounds[1], max(bounds[0], value)))


def _variance(values: Sequence[float]) -> float:
    """Return the mean squared distance from the mean."""
    mean = fmean(values)
    return math.fsum((value - mean) ** 2 for value in values) / len(values)
