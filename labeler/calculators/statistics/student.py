"""Quantiles of Student's t, where a normal quantile would be too sure of few observations."""

from __future__ import annotations

import math
from statistics import NormalDist

_EXACT = 2
"""Up to so many degrees of freedom there is a closed form; beyond, a series is close enough."""


def student_quantile(probability: float, freedom: int) -> float:
    """The value below which t lies with a probability.

    Up to 2 degrees of freedom it is exact. Beyond, it is the Cornish-Fisher series in powers of
    1 / freedom, which for probabilities of .005 to .995 errs by less than 1 % with 3 degrees of
    freedom, and by less than 0.1 % from 5 on.

    Args:
        probability: above 0 and below 1.
        freedom: degrees of freedom, 1 or more.
    """
    if freedom > _EXACT:
        return _series(NormalDist().inv_cdf(probability), freedom)
    if freedom == 1:
        return math.tan(math.pi * (probability - 0.5))
    centred = 2 * probability - 1
    return centred * math.sqrt(2 / (1 - centred * centred))


def _series(z: float, freedom: int) -> float:
    """Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.5."""
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + math.fsum(term / freedom**power for power, term in enumerate(terms, start=1))
