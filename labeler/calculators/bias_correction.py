"""A judge's means, corrected by human labels of a sample of its records.

PPI++ (Angelopoulos, Duchi, Zrnic 2023, arXiv 2311.01453) shifts the judge's mean by its error on
the sample, weighted by its correlation with people; it applies to any numbers. The error-corrected
proportion (arXiv 2511.21140, after Rogan and Gladen 1978, with the interval of Lang and Reiczigel
2014) converts the judge's share of yes to people's share by sensitivity and specificity on the
sample; it applies to yes-or-no values.

Both are valid for a random sample of the records. Conditions that fail or are unknown are returned
as warnings.

Variances leave out a record or a group at a time, which takes in what the published ones take for
known: with few human labels the judge's weight varies with them, most of all where few large values
decide both; and records of one question err together (R. Miller, The Jackknife: A Review,
Biometrika 1974).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import NormalDist, fmean
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeler.calculators.agreement import Floats, Groups, group_sums
from labeler.calculators.intervals import FEWEST, LEVEL, Interval, is_small, mean_interval
from labeler.calculators.significance import SAME, effective_count, quantile_of, wilson_ends
from labeler.errors import UsageError

FEWEST_OF_A_KIND = 10
"""Human yeses, and noes, below which sensitivity and specificity are unreliable."""
UNLIKE = 3.0
"""Standard errors between the judge's means on sample and rest from which a warning is given."""


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
        found = self.interval
        return asdict(self) | {
            "interval": None if found is None else [found.low, found.high],
            "level": None if found is None else found.level,
            "small_sample": found is not None and found.small_sample,
            "warnings": list(self.warnings),
        }


def plain_mean(values: Sequence[float], *, groups: Groups = None) -> Corrected:
    """Return the uncorrected mean, with the interval of summaries over records or groups.

    Raises:
        UsageError: a value is not finite.
    """
    if not values:
        return Corrected("plain", None, None, "no_values", 0, 0)
    interval = mean_interval(values, groups=groups)
    return Corrected("plain", fmean(values), interval, None, 0, len(values))


def ppi_mean(
    people: Sequence[float],
    judge: Sequence[float],
    judge_alone: Sequence[float],
    *,
    is_share: bool = False,
    groups: Groups = None,
    random_sample: bool = False,
) -> Corrected:
    """Return the PPI++ estimate of the mean of human values.

    The judge has the weight with the shortest published interval. The interval here also holds for
    few human labels: with the jackknife's variance, Student's quantile and, for shares, Wilson's
    form.

    Args:
        people: human values of the sample.
        judge: the judge's values of the same records, in the same order.
        judge_alone: the judge's values of all other records.
        is_share: True for a mean between 0 and 1; value and interval are clipped to them.
        groups: group of each record, such as its question, the sample first.
        random_sample: True if the sample is known to be random.

    Raises:
        UsageError: people and judge differ in number, or a value is not finite.
    """
    _check(people, judge, judge_alone)
    if len(people) < 2:  # noqa: PLR2004 - one label does not vary
        reason = "too_few_human_labels" if people else "no_human_labels"
        return Corrected("ppi++", None, None, reason, len(people), len(judge_alone))
    sums = _ppi_sums(people, judge, judge_alone)
    trust, shift = (float(part[0]) for part in _ppi_shift(sums.sum(axis=0)[np.newaxis]))
    mean = fmean(people) + shift
    found = ppi_variance(people, judge, judge_alone, groups=groups)
    interval = None if found is None else _student_interval(mean, *found, is_share=is_share)
    if interval and groups is not None:
        interval = replace(interval, method=f"{interval.method}_groups")
    return Corrected(
        method="ppi++",
        value=_cut(mean) if is_share else mean,
        interval=interval,
        undefined=None,
        labeled=len(people),
        unlabeled=len(judge_alone),
        warnings=(
            *_sample_warnings(len(people), random_sample=random_sample),
            *_mean_warnings(people, judge, judge_alone),
            *(
                ["all human-judged records ask one question: there is no interval"]
                if interval is None
                else []
            ),
        ),
        weight=trust,
    )


def _student_interval(mean: float, variance: float, count: int, *, is_share: bool) -> Interval:
    """Return an interval of a PPI++ mean that holds for few human labels.

    For shares it is Wilson's for the effective number of yes-or-no records, as for other means:
    near 0 and 1 the estimate is skewed. Without an observed spread it counts as many yes-or-no
    records as there are human labels, or groups with some.
    """
    quantile, small = quantile_of(LEVEL, count), is_small(count)
    if not is_share:
        half = quantile * math.sqrt(variance)
        return Interval(mean - half, mean + half, LEVEL, "ppi++_t", small)
    share = _cut(mean)
    spread = share * (1 - share)
    trials = max(1.0, spread / variance) if spread and variance > SAME**2 else float(count)
    return Interval(*wilson_ends(share, trials, quantile), LEVEL, "ppi++_wilson", small)


def _check(people: Sequence[float], judge: Sequence[float], judge_alone: Sequence[float]) -> None:
    for value in (*people, *judge, *judge_alone):
        if not math.isfinite(value):
            raise UsageError(f"a value is {value}; leave out records without a number")
    if len(people) != len(judge):
        raise UsageError(
            f"{len(people)} human values and {len(judge)} of the judge; give both for each "
            "record of the sample, in one order"
        )


class _Counts(NamedTuple):
    """Counts of verdicts; the first two are of records without human labels."""

    yes: int
    judged: int
    both_yes: int
    human_yes: int
    both_no: int
    human_no: int


def corrected_proportion(
    people: Sequence[float],
    judge: Sequence[float],
    judge_alone: Sequence[float],
    *,
    groups: Groups = None,
    random_sample: bool = False,
) -> Corrected:
    """Return the error-corrected estimate of the share of human yeses.

    With the judge's share of yes p, specificity q0 and sensitivity q1: (p + q0 - 1)/(q0 + q1 - 1),
    clipped to 0 and 1. Undefined (``judge_errs_otherwise_elsewhere``) if the whole interval lies
    beyond 0 or 1: no share explains the judge's yeses by its errors on the sample.

    Args:
        people: human values of the sample, 0 or 1.
        judge: the judge's values of the same records, in the same order, 0 or 1.
        judge_alone: the judge's values of all other records, 0 or 1.
        groups: group of each record, such as its question, the sample first.
        random_sample: True if the sample is known to be random.

    Raises:
        UsageError: people and judge differ in number, or a value is neither 0 nor 1.
    """
    _check(people, judge, judge_alone)
    if not {*people, *judge, *judge_alone} <= {0, 1}:
        raise UsageError("error correction needs a 0 or a 1 of people and of the judge each")
    records = _confusion(people, judge, judge_alone)
    counts = _Counts(*map(int, records.sum(axis=0).tolist()))
    if reason := _undefined_reason(counts):
        return Corrected(
            "error-corrected", None, None, reason, labeled=len(people), unlabeled=len(judge_alone)
        )
    sensitivity = counts.both_yes / counts.human_yes
    specificity = counts.both_no / counts.human_no
    raw = (counts.yes / counts.judged + specificity - 1) / (sensitivity + specificity - 1)
    interval = _interval_of_proportion(counts, group_effect(records, groups) if groups else None)
    return Corrected(
        method="error-corrected",
        value=_cut(raw) if interval else None,
        interval=interval,
        undefined=None if interval else "judge_errs_otherwise_elsewhere",
        labeled=len(people),
        unlabeled=len(judge_alone),
        warnings=(*_proportion_warnings(counts, raw, random_sample=random_sample),),
        sensitivity=sensitivity,
        specificity=specificity,
    )


def _confusion(
    people: Sequence[float], judge: Sequence[float], judge_alone: Sequence[float]
) -> Floats:
    """Return a row for each record, the sample first, whose sums are :class:`_Counts`."""
    sampled, mine, theirs = _columns(people, judge, judge_alone)
    alone, human_no = 1 - sampled, sampled * (1 - mine)
    parts = (alone * theirs, alone, mine * theirs, mine, human_no * (1 - theirs), human_no)
    return np.stack(parts, axis=1)


def _columns(
    people: Sequence[float], judge: Sequence[float], judge_alone: Sequence[float]
) -> tuple[Floats, Floats, Floats]:
    """Return by record: 1 in the sample, human values (0 outside it), and the judge's values."""
    theirs = np.array([*judge, *judge_alone], dtype=np.float64)
    sampled, mine = np.zeros_like(theirs), np.zeros_like(theirs)
    sampled[: len(people)], mine[: len(people)] = 1, people
    return sampled, mine, theirs


def _undefined_reason(counts: _Counts) -> str | None:
    """Return the reason why the corrected proportion is undefined, or ``None``."""
    _, judged, both_yes, human_yes, both_no, human_no = counts
    reasons = {
        "no_human_labels": not human_yes + human_no,
        "no_unlabeled_records": not judged,
        "no_human_yes": not human_yes,
        "no_human_no": not human_no,
        # sensitivity + specificity > 1, in whole numbers
        "judge_no_better_than_chance": both_yes * human_no + both_no * human_yes
        <= human_yes * human_no,
    }
    return next((reason for reason, applies in reasons.items() if applies), None)


def _interval_of_proportion(counts: _Counts, effect: tuple[float, int] | None) -> Interval | None:
    """Return the interval of Lang and Reiczigel, from adjusted counts; ``None`` beyond 0 to 1.

    The judge's share gets z²/2 yeses in z² additional records, sensitivity and specificity one in
    two; the midpoint is shifted by the second-order bias of the quotient. Groups widen it by the
    root of their effect, and make the quantile Student's.
    """
    z, method = NormalDist().inv_cdf((1 + LEVEL) / 2), "error-corrected"
    small, wide = is_small(counts.human_yes + counts.human_no), 1.0
    if effect:
        factor, labeled = effect
        wide = math.sqrt(factor) * quantile_of(LEVEL, labeled) / z
        small, method = is_small(labeled), f"{method}_groups"
    n, yes, no = counts.judged + z**2, counts.human_yes + 2, counts.human_no + 2
    share = (counts.yes + z**2 / 2) / n
    q1, q0 = (counts.both_yes + 1) / yes, (counts.both_no + 1) / no
    gain = q0 + q1 - 1
    noise = wide * z * math.sqrt(q0 * (1 - q0) / no + q1 * (1 - q1) / yes)
    if gain <= noise:  # it may be 0, so that the quotient may be anything (Fieller 1954)
        return Interval(0.0, 1.0, LEVEL, method, small_sample=True)
    small = small or gain <= 2 * noise
    middle = (share + q0 - 1) / gain
    on_no = (1 - middle) * q0 * (1 - q0) / no
    on_yes = middle * q1 * (1 - q1) / yes
    shift = 2 * z**2 * (on_yes - on_no)
    spread = share * (1 - share) / n + (1 - middle) * on_no + middle * on_yes
    half = wide * z * math.sqrt(spread) / gain
    low, high = middle + shift - half, middle + shift + half
    if low >= 1 or high <= 0:
        return None
    return Interval(_cut(low), _cut(high), LEVEL, method, small)


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
        return
    # Pooled, because a few equal values would have no spread of their own.
    spread = float(np.var([*judge, *judge_alone])) * (1 / len(judge) + 1 / len(judge_alone))
    if abs(fmean(judge) - fmean(judge_alone)) > UNLIKE * math.sqrt(spread):
        yield (
            f"the judge's mean is {fmean(judge):.3f} on the human-judged records and "
            f"{fmean(judge_alone):.3f} on the others, more apart than chance explains: they are "
            "hardly a random sample"
        )


def _proportion_warnings(counts: _Counts, raw: float, *, random_sample: bool) -> Iterator[str]:
    """Yield the conditions of a proportion that fail or are unknown."""
    yield from _sample_warnings(counts.human_yes + counts.human_no, random_sample=random_sample)
    for count, verdict in ((counts.human_yes, "yes"), (counts.human_no, "no")):
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


def _cut(share: float) -> float:
    return float(min(1, max(0, share)))


# Variances: records or groups are left out, one at a time.


def ppi_variance(
    people: Sequence[float],
    judge: Sequence[float],
    judge_alone: Sequence[float],
    *,
    groups: Groups = None,
) -> tuple[float, int] | None:
    """Return the variance of a PPI++ mean and the effective number of groups with human labels.

    Args:
        people: human values of the sample.
        judge: the judge's values of the same records.
        judge_alone: the judge's values of all other records.
        groups: of the records, the sample first.

    Returns:
        ``None`` if all human labels are of one group.
    """
    units = group_sums(_ppi_sums(people, judge, judge_alone), groups)
    labels = units[:, 0]
    if np.count_nonzero(labels) < 2:  # noqa: PLR2004 - one group does not vary
        return None
    variance = _jackknife(units, _ppi_means, labels > 0)
    return variance, effective_count(len(people), float(labels @ labels))


def _ppi_sums(
    people: Sequence[float], judge: Sequence[float], judge_alone: Sequence[float]
) -> Floats:
    """Return a row for each record, the sample first, whose sums :func:`_ppi_shift` takes."""
    sampled, mine, theirs = _columns(people, judge, judge_alone)
    # Shifts change neither variance nor weight; sums of squares lose fewer digits.
    mine = np.where(sampled > 0, mine - mine[: len(people)].mean(), 0.0)
    theirs -= theirs.mean()
    alone = np.where(sampled > 0, 0.0, theirs)
    parts = (sampled, mine, theirs - alone, mine * theirs, 1 - sampled, alone, theirs**2)
    return np.stack(parts, axis=1)


def _ppi_shift(sums: Floats) -> tuple[Floats, Floats]:
    """Return the judge's weight, and the shift of people's mean by the judge, for rows of sums.

    With covariance c of people and judge, and variance v of the judge, the variance of the mean is
    a constant + (w²v - 2wc)/n + w²v/N, with its minimum at the weight w = c / (v·(1 + n/N)).
    """
    count, mine, theirs, products, others, alone, squares = sums.T
    every = count + others
    with np.errstate(divide="ignore", invalid="ignore"):
        # n - 1 here and n in the covariance follow the published implementation.
        spread = (squares - (theirs + alone) ** 2 / every) / (every - 1)
        together = products / count - mine * theirs / count**2
        best = np.clip(together / (spread * (1 + count / others)), 0, 1)
        trust = np.where((others > 0) & (spread > SAME**2), best, 0.0)
        return trust, np.where(others > 0, trust * (alone / others - theirs / count), 0.0)


def _ppi_means(sums: Floats) -> Floats:
    found: Floats = sums[:, 1] / sums[:, 0] + _ppi_shift(sums)[1]
    return found


def group_effect(records: Floats, groups: Sequence[Hashable]) -> tuple[float, int]:
    """Return the effect of groups on an error-corrected proportion.

    Args:
        records: a row of counts (:class:`_Counts`) for each record, with one human label or more.
        groups: of the records.

    Returns:
        The factor of the variance, 1 or more, infinite where it has none without some group; and
        the effective number of groups with human labels.
    """
    units = group_sums(records, groups)
    labeled, labels = (rows[:, 3] + rows[:, 5] for rows in (records, units))
    single = _jackknife(records, _proportions, labeled > 0)
    grouped = _jackknife(units, _proportions, labels > 0)
    factor = max(1.0, grouped / single) if single else 1.0
    count = effective_count(float(labeled.sum()), float(labels @ labels))
    return factor if math.isfinite(grouped + single) else math.inf, count


def _proportions(sums: Floats) -> Floats:
    """Return the proportion of each row of sums, with the counts that its interval adds."""
    yes, judged, both_yes, human_yes, both_no, human_no = sums.T
    specificity, sensitivity = (both_no + 1) / (human_no + 2), (both_yes + 1) / (human_yes + 2)
    share, gain = (yes + 1) / (judged + 2) + specificity - 1, sensitivity + specificity - 1
    found: Floats = np.where(gain > SAME, share / np.maximum(gain, SAME), np.nan)
    return found


def _jackknife(
    units: Floats, statistic: Callable[[Floats], Floats], labeled: NDArray[np.bool_]
) -> float:
    """Return the variance of a statistic; units with human labels and the others are two strata."""
    whole = units.sum(axis=0)
    squares = (statistic(whole - units) - float(statistic(whole[np.newaxis])[0])) ** 2
    parts = (squares[labeled], squares[~labeled])
    return sum(float(part.sum()) * (len(part) - 1) / len(part) for part in parts if len(part))
