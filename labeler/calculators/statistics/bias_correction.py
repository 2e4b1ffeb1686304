"""Means that a judge's verdicts give, set right by a sample that people judged too.

Two ways, and what both rest on. PPI++ (Angelopoulos, Duchi, Zrnic 2023, arXiv 2311.01453) moves
the judge's mean by how far the judge is off on the sample, and trusts the judge as far as it goes
with people: any numbers. The error-corrected proportion (arXiv 2511.21140, after Rogan and Gladen
1978, with the interval of Lang and Reiczigel 2014) reckons back from how often the judge says yes
to how often people would, by its sensitivity and specificity on the sample: yes or no only.

Both hold if the sample was drawn at random from the records that they speak of, and their
intervals if it is large. What is not so, or not known, comes back as a warning beside the value.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean
from typing import Any

from labeler.calculators.statistics.intervals import LEVEL, Interval, mean_interval
from labeler.errors import UsageError

FEWEST_LABELS = 100
"""Human labels under which the intervals of either method cannot be relied on."""
FEWEST_OF_A_KIND = 10
"""Human yeses, and noes, under which sensitivity and specificity are mere guesses."""
UNLIKE = 3.0
"""Standard errors between the judge's means on sample and rest that chance hardly explains."""

NO_LABELS = "no_human_labels"
TOO_FEW_LABELS = "too_few_human_labels"
NO_VALUES = "no_values"
NO_OTHERS = "no_unlabelled_records"
NO_YES = "no_human_yes"
NO_NO = "no_human_no"
UNINFORMATIVE = "judge_no_better_than_chance"

_PAIR = 2


@dataclass(frozen=True)
class Corrected:
    """A mean with what it rests on.

    Attributes:
        method: ``plain`` (the judge alone), ``ppi++`` or ``error-corrected``.
        value: the mean; ``None`` where it is undefined.
        interval: where the true mean would lie; ``None`` where the value is undefined, or rests on
            one record.
        undefined: why there is no value, such as ``no_human_labels``.
        labelled: records that people judged too.
        unlabelled: records that the judge alone judged.
        warnings: conditions that do not hold or are not known to, in plain English.
        weight: PPI++: how far the judge is trusted, from 0 (not at all: the mean is that of the
            human labels) to 1.
        sensitivity: how often the judge says yes where people do.
        specificity: how often it says no where people do.
    """

    method: str
    value: float | None
    interval: Interval | None
    undefined: str | None
    labelled: int
    unlabelled: int
    warnings: tuple[str, ...] = ()
    weight: float | None = None
    sensitivity: float | None = None
    specificity: float | None = None

    def as_json(self) -> dict[str, Any]:
        """The published form."""
        interval = self.interval
        return {
            "method": self.method,
            "value": self.value,
            "interval": None if interval is None else [interval.low, interval.high],
            "level": None if interval is None else interval.level,
            "undefined": self.undefined,
            "labelled": self.labelled,
            "unlabelled": self.unlabelled,
            "weight": self.weight,
            "sensitivity": self.sensitivity,
            "specificity": self.specificity,
            "warnings": list(self.warnings),
        }


def plain_mean(values: Sequence[float], *, level: float = LEVEL) -> Corrected:
    """The mean of values as they are, with the interval that summaries give it.

    Raises:
        UsageError: a value is no finite number, or the level is not between 0 and 1.
    """
    _check(values, level)
    if not values:
        return Corrected("plain", None, None, NO_VALUES, 0, 0)
    interval = mean_interval(values, level=level)
    return Corrected("plain", fmean(values), interval, None, 0, len(values))


def ppi_mean(
    people: Sequence[float],
    judge: Sequence[float],
    judge_alone: Sequence[float],
    *,
    weight: float | None = None,
    bounds: tuple[float, float] | None = None,
    level: float = LEVEL,
    random_sample: bool = False,
) -> Corrected:
    """The PPI++ mean: what people would give on average, estimated with the judge's help.

    Args:
        people: the values that people gave to the records of the sample.
        judge: the judge's values of the same records, in the same order.
        judge_alone: the judge's values of all other records.
        weight: how far to trust the judge; by default, what makes the interval shortest, kept
            between 0 and 1.
        bounds: least and greatest value that the mean can have, such as 0 and 1 of a share; value
            and interval are cut to them.
        level: confidence level of the interval, between 0 and 1.
        random_sample: whether the sample is known to have been drawn at random.

    Raises:
        UsageError: people and judge differ in number, a value is no finite number, the weight is
            not between 0 and 1, or the level is out of range.
    """
    _check([*people, *judge, *judge_alone], level)
    if len(people) != len(judge):
        raise UsageError(
            f"{len(people)} human values beside {len(judge)} of the judge; give both for each "
            "record of the sample, in one order"
        )
    if weight is not None and not 0 <= weight <= 1:
        raise UsageError(f"the weight of the judge must be between 0 and 1, got {weight}")
    if len(people) < _PAIR:
        reason = TOO_FEW_LABELS if people else NO_LABELS
        return Corrected("ppi++", None, None, reason, len(people), len(judge_alone))
    trust = _best_weight(people, judge, judge_alone) if weight is None else weight
    if not judge_alone:
        trust = 0.0  # there is nothing to carry over to
    errors = [mine - trust * theirs for mine, theirs in zip(people, judge, strict=True)]
    mean, variance = fmean(errors), _variance(errors) / len(errors)
    if judge_alone:
        mean += trust * fmean(judge_alone)
        variance += trust**2 * _variance(judge_alone) / len(judge_alone)
    half = _quantile(level) * math.sqrt(variance)
    return Corrected(
        method="ppi++",
        value=_cut(mean, bounds),
        interval=Interval(_cut(mean - half, bounds), _cut(mean + half, bounds), level, "ppi++"),
        undefined=None,
        labelled=len(people),
        unlabelled=len(judge_alone),
        warnings=(*_mean_warnings(people, judge, judge_alone, random_sample=random_sample),),
        weight=trust,
    )


def _best_weight(
    people: Sequence[float], judge: Sequence[float], judge_alone: Sequence[float]
) -> float:
    """The weight that makes the variance of the estimate least.

    With covariance c of people and judge, and variance v of the judge, the variance of the mean is
    a constant + (w²v - 2wc)/n + w²v/N, which is least at w = c / (v·(1 + n/N)).
    """
    everything = [*judge, *judge_alone]
    # n - 1 here and n in the covariance are those of the method's published implementation.
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
    """How the judge did on the records that people judged too, as counts."""

    human_yes: int
    """Records that people said yes to."""
    both_yes: int
    """Those of them that the judge said yes to."""
    human_no: int
    """Records that people said no to."""
    both_no: int
    """Those of them that the judge said no to."""

    def __post_init__(self) -> None:
        if not (0 <= self.both_yes <= self.human_yes and 0 <= self.both_no <= self.human_no):
            raise UsageError(f"these counts do not fit together: {self}")

    @classmethod
    def of(cls, people: Sequence[float], judge: Sequence[float]) -> JudgeErrors:
        """Count verdicts, 1 for yes and 0 for no, of the same records in the same order.

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
    level: float = LEVEL,
    random_sample: bool = False,
) -> Corrected:
    """How often people would say yes, reckoned back from how often the judge does.

    With the judge's share of yes p, specificity q0 and sensitivity q1: (p + q0 - 1)/(q0 + q1 - 1),
    kept between 0 and 1.

    Args:
        judged_yes: records that the judge said yes to, among those that people did not judge.
        judged: all records that people did not judge.
        errors: how the judge did on the records that people judged.
        level: confidence level of the interval, between 0 and 1.
        random_sample: whether these are known to have been drawn at random.

    Raises:
        UsageError: the counts do not fit together, or the level is out of range.
    """
    _check((), level)
    if not 0 <= judged_yes <= judged:
        raise UsageError(f"the judge said yes {judged_yes} times to {judged} records")
    labelled = errors.human_yes + errors.human_no
    reason = _why_not(judged, errors)
    if reason:
        return Corrected("error-corrected", None, None, reason, labelled, judged)
    sensitivity = errors.both_yes / errors.human_yes
    specificity = errors.both_no / errors.human_no
    raw = (judged_yes / judged + specificity - 1) / (sensitivity + specificity - 1)
    return Corrected(
        method="error-corrected",
        value=_cut(raw, (0, 1)),
        interval=_interval_of_proportion(judged_yes, judged, errors, level),
        undefined=None,
        labelled=labelled,
        unlabelled=judged,
        warnings=(*_proportion_warnings(errors, raw, random_sample=random_sample),),
        sensitivity=sensitivity,
        specificity=specificity,
    )


def _why_not(judged: int, errors: JudgeErrors) -> str | None:
    """Why there is no corrected proportion."""
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
    judged_yes: int, judged: int, errors: JudgeErrors, level: float
) -> Interval:
    """The interval, from counts moved a little towards one half so that it holds for few of them.

    The judge's share gets z²/2 yeses in z² records more, sensitivity and specificity one in two;
    the middle is moved by what the curvature of the quotient adds on average.
    """
    z = _quantile(level)
    n, yes, no = judged + z**2, errors.human_yes + 2, errors.human_no + 2
    share = (judged_yes + z**2 / 2) / n
    q1, q0 = (errors.both_yes + 1) / yes, (errors.both_no + 1) / no
    gain = q0 + q1 - 1
    if gain <= 0:  # the few added counts took away what little the judge knew
        return Interval(0.0, 1.0, level, "error-corrected")
    middle = (share + q0 - 1) / gain
    on_no = (1 - middle) * q0 * (1 - q0) / no
    on_yes = middle * q1 * (1 - q1) / yes
    shift = 2 * z**2 * (on_yes - on_no)
    spread = share * (1 - share) / n + (1 - middle) * on_no + middle * on_yes
    half = z * math.sqrt(spread) / gain
    low, high = middle + shift - half, middle + shift + half
    return Interval(_cut(low, (0, 1)), _cut(high, (0, 1)), level, "error-corrected")


def _sample_warnings(labelled: int, *, random_sample: bool) -> Iterator[str]:
    """Which conditions on the sample do not hold or are not known to."""
    if not random_sample:
        yield (
            "it is not known that the human-judged records were drawn at random; if they were "
            "picked in another way, the corrected means can be wrong by any amount"
        )
    if labelled < FEWEST_LABELS:
        yield (
            f"records with human labels: only {labelled}; under {FEWEST_LABELS} the intervals "
            "cannot be relied on"
        )


def _mean_warnings(
    people: Sequence[float],
    judge: Sequence[float],
    judge_alone: Sequence[float],
    *,
    random_sample: bool,
) -> Iterator[str]:
    yield from _sample_warnings(len(people), random_sample=random_sample)
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
    # One spread for both: a few equal values would seem to have none.
    spread = _variance([*sample, *rest]) * (1 / len(sample) + 1 / len(rest))
    return abs(fmean(sample) - fmean(rest)) > UNLIKE * math.sqrt(spread)


def _proportion_warnings(errors: JudgeErrors, raw: float, *, random_sample: bool) -> Iterator[str]:
    """As for a mean; but the judge's errors may be measured on yeses and noes drawn apart."""
    yield from _sample_warnings(errors.human_yes + errors.human_no, random_sample=random_sample)
    for count, verdict in ((errors.human_yes, "yes"), (errors.human_no, "no")):
        if count < FEWEST_OF_A_KIND:
            yield (
                f"records to which people said {verdict}: only {count}; what the judge makes of "
                "such records is hardly known"
            )
    if not 0 <= raw <= 1:
        yield f"the formula gave {raw:.3f}, which is no proportion; it was cut to 0 or 1"


def _cut(value: float, bounds: tuple[float, float] | None) -> float:
    return value if bounds is None else float(min(bounds[1], max(bounds[0], value)))


def _check(values: Sequence[float], level: float) -> None:
    if not 0 < level < 1:
        raise UsageError(f"the confidence level must be between 0 and 1, got {level}")
    for value in values:
        if not math.isfinite(value):
            raise UsageError(f"a value is {value}; leave out records without a number")


def _quantile(level: float) -> float:
    """Standard errors on either side of the mean of a normal distribution."""
    return NormalDist().inv_cdf((1 + level) / 2)


def _variance(values: Sequence[float]) -> float:
    """Mean squared distance from the mean."""
    mean = fmean(values)
    return math.fsum((value - mean) ** 2 for value in values) / len(values)
