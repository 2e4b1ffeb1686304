"""Logistic regression with normal priors."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.intp]

_EDGE = 1e-3
"""Probabilities nearer to 0 or 1 count as this far."""
_STEPS = 25
_CLOSE = 1e-7
"""Last step of a fit."""


def logit(probabilities: Floats) -> Floats:
    """Return log odds; probabilities very near to 0 or 1 are moved inside."""
    inside = np.clip(probabilities, _EDGE, 1 - _EDGE)
    return np.log(inside / (1 - inside))


def sigmoid(values: Floats) -> Floats:
    """Return the probabilities of log odds."""
    return 1 / (1 + np.exp(-values))


def fit_logistic(features: Floats, answers: Floats, means: Floats, deviations: Floats) -> Floats:
    """Return the coefficients of a logistic regression with normal priors: their posterior mode.

    Source: Newton's method for the penalized likelihood, as in T. Hastie, R. Tibshirani, J.
    Friedman, The Elements of Statistical Learning, 2009, section 4.4.

    Features have one row an answer, which is 0, 1 or a share, and one column a coefficient.
    """
    found, precision = means.astype(float), deviations**-2.0

    def loss(values: Floats) -> float:
        line = features @ values
        prior = (precision * (values - means) ** 2).sum() / 2
        return float((np.logaddexp(0.0, line) - answers * line).sum() + prior)

    for _ in range(_STEPS):
        expected = sigmoid(features @ found)
        slope = features.T @ (answers - expected) - precision * (found - means)
        curve = (features.T * (expected * (1 - expected))) @ features + np.diag(precision)
        step, before = np.linalg.solve(curve, slope), loss(found)
        while loss(found + step) > before and np.abs(step).max() > _CLOSE:
            step = step / 2
        if loss(found + step) > before:
            break
        found = found + step
        if np.abs(step).max() < _CLOSE:
            break
    return found
