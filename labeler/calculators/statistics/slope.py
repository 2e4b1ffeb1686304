"""Whether one number follows another: the least-squares slope, and how sure it is.

Made to see whether scores follow the length of the response. Scores are shares, so their spread
depends on how much there was to count, hence on length itself: the usual interval, which takes one
spread for all, would be wrong. The interval here is robust against that (HC3: MacKinnon and White
1985), in closed form, so that auditing many metrics takes no resampling and no seed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labeler.calculators.statistics.intervals import LEVEL, Interval, Undefined, check_options
from labeler.calculators.statistics.small_samples import student_quantile
from labeler.errors import UsageError

Floats = NDArray[np.float64]

METHOD = "hc3"
_LEAST = 3
"""Points below which a line leaves no residual to learn from."""
_ROUNDING = 1e-12
"""Residuals, and what is left of a full leverage, below this are rounding."""


@dataclass(frozen=True, slots=True)
class Slope:
    """A least-squares line.

    Attributes:
        slope: change of y for one unit of x.
        intercept: y where x is 0.
        n: points.
        interval: of the slope, robust against a spread that depends on x. Undefined for fewer than
            three points (``too_few_points``), where the line meets every point (``exact_fit``),
            and where one point alone decides it (``one_point_decides``).
    """

    slope: float
    intercept: float
    n: int
    interval: Interval | Undefined


def fit_slope(x: Sequence[float], y: Sequence[float], *, level: float = LEVEL) -> Slope | Undefined:
    """Fit y = intercept + slope · x by least squares.

    Args:
        x: what y may follow, such as the characters of a response.
        y: one value for each x, such as a score.
        level: of the interval.

    Returns:
        The line; undefined where all x are the same (``constant_x``) or there are fewer than two
        points (``too_few_points``), or where numbers are too large or small to reckon with
        (``out_of_range``).

    Raises:
        UsageError: a value is no finite number, there is not one y for each x, or the level does
            not lie between 0 and 1.
    """
    check_options(level=level)
    across, up = _checked(x, "x"), _checked(y, "y")
    if len(across) != len(up):
        raise UsageError(f"{len(across)} x with {len(up)} y; give one y for each x")
    if len(across) < 2:  # noqa: PLR2004 - two points make a line
        return Undefined("too_few_points")
    with np.errstate(all="ignore"):
        return _fit(across, up, level)


def _fit(x: Floats, y: Floats, level: float) -> Slope | Undefined:
    centred = x - x.mean()
    scale = float(np.abs(centred).max())
    if not np.ptp(x) or not scale:
        return Undefined("constant_x")
    unit = centred / scale  # squares of large and small numbers would leave a float's range
    square = float(unit @ unit)
    rise = float(unit @ (y - y.mean())) / square
    slope = rise / scale
    intercept = float(y.mean() - slope * x.mean())
    if not (math.isfinite(slope) and math.isfinite(intercept)):
        return Undefined("out_of_range")
    residuals = y - y.mean() - rise * unit
    spread = _spread(unit, residuals, y, square)
    if isinstance(spread, Undefined):
        return Slope(slope, intercept, len(x), spread)
    reach = student_quantile((1 + level) / 2, len(x) - 2) * spread / scale
    if not math.isfinite(reach):
        return Slope(slope, intercept, len(x), Undefined("out_of_range"))
    interval = Interval(slope - reach, slope + reach, level, METHOD)
    return Slope(slope, intercept, len(x), interval)


def _spread(unit: Floats, residuals: Floats, y: Floats, square: float) -> float | Undefined:
    """Standard error of the rise for each unit: every residual as if its point had no say in it."""
    if len(unit) < _LEAST:
        return Undefined("too_few_points")
    own = 1 - 1 / len(unit) - unit**2 / square
    if own.min() < _ROUNDING:
        return Undefined("one_point_decides")
    if np.abs(residuals).max() <= _ROUNDING * np.abs(y).max():
        return Undefined("exact_fit")
    error = float(np.sqrt(((unit * residuals / own) ** 2).sum())) / square
    return error if math.isfinite(error) else Undefined("out_of_range")


def _checked(values: Sequence[float], name: str) -> Floats:
    checked = np.asarray(values, dtype=np.float64)
    if checked.ndim != 1:
        raise UsageError(f"{name} is a list of numbers, got {checked.ndim} dimensions")
    wrong = np.flatnonzero(~np.isfinite(checked))
    if len(wrong):
        raise UsageError(f"{name} {wrong[0]} is {checked[wrong[0]]}; leave out what has no value")
    return checked
