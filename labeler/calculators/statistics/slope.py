"""Least-squares slopes with robust confidence intervals.

They show whether scores depend on the length of the response. The spread of scores varies with
length, so the usual interval, which assumes equal spread, would be wrong. This interval is robust
against unequal spread (HC3: MacKinnon and White 1985) and has a closed form, without resampling.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labeler.calculators.statistics.intervals import LEVEL, Interval, Undefined, check_options
from labeler.calculators.statistics.small_samples import is_small, student_quantile
from labeler.errors import UsageError

Floats = NDArray[np.float64]

METHOD = "hc3"
_LEAST = 3
"""Minimum number of points with a residual."""
_ROUNDING = 1e-12
"""Residuals, and complements of leverages, below this are rounding errors."""


@dataclass(frozen=True, slots=True)
class Slope:
    """A least-squares line.

    Attributes:
        slope: change of y per unit of x.
        intercept: y at x = 0.
        n: number of points.
        interval: of the slope, robust against a spread that depends on x. Undefined for fewer than
            three points (``too_few_points``), if the line passes through every point
            (``exact_fit``), and if one point determines it (``one_point_decides``).
    """

    slope: float
    intercept: float
    n: int
    interval: Interval | Undefined


def fit_slope(x: Sequence[float], y: Sequence[float], *, level: float = LEVEL) -> Slope | Undefined:
    """Fit y = intercept + slope · x by least squares.

    Args:
        x: the independent variable, such as the characters of a response.
        y: one value for each x, such as a score.
        level: confidence level.

    Returns:
        The line; undefined if all x are equal (``constant_x``), for fewer than two points
        (``too_few_points``), and if numbers exceed the range of floats (``out_of_range``).

    Raises:
        UsageError: a value is not finite, x and y differ in length, or the level is out of range.
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
    centered = x - x.mean()
    scale = float(np.abs(centered).max())
    if not np.ptp(x) or not scale:
        return Undefined("constant_x")
    unit = centered / scale  # squares of extreme numbers would exceed the range of floats
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
    small = is_small(len(x))
    interval = Interval(slope - reach, slope + reach, level, METHOD, small)
    return Slope(slope, intercept, len(x), interval)


def _spread(unit: Floats, residuals: Floats, y: Floats, square: float) -> float | Undefined:
    """Return the standard error of the rise per unit, from leave-one-out residuals (HC3)."""
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
