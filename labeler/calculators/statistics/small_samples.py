"""Small samples: when an interval is marked, and quantiles that hold for them; without numpy."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

SAME = 1e-12
"""Relative differences below this are rounding errors."""
FEWEST_BOUNDED = 10
"""Records or groups between known limits below which an interval is marked: it holds, and is so
wide that it says little."""
FEWEST = 30
"""Records or groups with other values below which an interval is marked: no sample of that size
shows whether rare values lie far away."""
_COCHRAN = 25
"""Units per squared skewness from which a mean is about normal."""
_SUMMED = 100
"""Degrees of freedom up to which Student's distribution is summed; a series beyond."""
_HALVINGS = 60


def is_small(count: float, *, skewness: float | None = 0.0) -> bool:
    """Return whether an interval is marked as one of a small sample.

    This is the one rule for all intervals; benchmarks/interval_coverage.py measures it.

    Args:
        count: effective number of records, pairs or groups.
        skewness: of values without known limits; ``None`` for values between limits. With skewed
            values a mean is over too few of them by Cochran's rule.

    Source: W. Cochran, Sampling Techniques, 1977, 2.15.
    """
    if skewness is None:
        return bool(count < FEWEST_BOUNDED)
    return bool(count < max(FEWEST, _COCHRAN * skewness * skewness))


def effective_count(whole: float, squares: float) -> int:
    """Return the number of equal units that weigh as much as unequal ones, rounded down.

    Source: Carter, Schnepel and Steigerwald, Asymptotic Behavior of a t-Test Robust to Cluster
    Heterogeneity, Review of Economics and Statistics 2017.

    Args:
        whole: sum of the units' denominators.
        squares: sum of their squares.
    """
    return max(2, math.floor(whole * whole / squares * (1 + SAME)))


def quantile_of(level: float, count: int) -> float:
    """Return Student's quantile of an interval of a mean over so many units."""
    return student_quantile((1 + level) / 2, count - 1)


def wilson_ends(share: float, trials: float, quantile: float) -> tuple[float, float]:
    """Return both ends of Wilson's score interval of a share.

    Args:
        share: the observed share, 0 to 1.
        trials: number of trials, or the effective number.
        quantile: half-width in standard errors.
    """
    weight = quantile * quantile / trials
    middle = (share + weight / 2) / (1 + weight)
    spread = math.sqrt(share * (1 - share) * weight + weight * weight / 4) / (1 + weight)
    # Rounding would leave 1 slightly above the share 1.
    return max(0.0, min(share, middle - spread)), min(1.0, max(share, middle + spread))


@lru_cache
def student_quantile(probability: float, freedom: int) -> float:
    """Return the quantile of Student's t distribution.

    Up to 100 degrees of freedom the distribution function, a finite sum, is inverted by bisection;
    beyond, the Cornish-Fisher series in powers of 1 / freedom. From .00005 to .99995 the relative
    error is below 1e-7.

    Args:
        probability: above 0 and below 1.
        freedom: degrees of freedom, 1 or more.

    Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 to 26.7.5.
    """
    if freedom > _SUMMED:
        return _student_series(NormalDist().inv_cdf(probability), freedom)
    low, high = 0.0, math.pi / 2
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        inside = _student_inside(middle, freedom) < abs(2 * probability - 1)
        low, high = (middle, high) if inside else (low, middle)
    return math.copysign(math.sqrt(freedom) * math.tan(low), probability - 0.5)


def _student_inside(angle: float, freedom: int) -> float:
    """Return the probability that abs(t) is below sqrt(freedom) * tan(angle)."""
    squared, odd = math.cos(angle) ** 2, freedom % 2
    term = math.cos(angle) if odd else 1.0
    total = 0.0
    for power in range(2 + odd, freedom + 1, 2):
        total += term
        term *= squared * (power - 1) / power
    total *= math.sin(angle)
    return (angle + total) * 2 / math.pi if odd else total


def _student_series(z: float, freedom: int) -> float:
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + math.fsum(term / freedom**power for power, term in enumerate(terms, start=1))
