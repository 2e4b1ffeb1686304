"""Wilson's score interval of a share."""

from __future__ import annotations

import math


def score_ends(share: float, trials: float, quantile: float) -> tuple[float, float]:
    """Both ends of Wilson's interval: the shares that the observed one does not speak against.

    Args:
        share: the observed share, 0 to 1.
        trials: how many there were, or how many would have told as much.
        quantile: how many standard errors an end may lie off.
    """
    weight = quantile * quantile / trials
    middle = (share + weight / 2) / (1 + weight)
    spread = math.sqrt(share * (1 - share) * weight + weight * weight / 4) / (1 + weight)
    # Rounding would leave 1 a hair above the share 1.
    return max(0.0, min(share, middle - spread)), min(1.0, max(share, middle + spread))
