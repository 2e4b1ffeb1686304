"""Ratios calculate as their values do, and never with a value that they do not have."""

from __future__ import annotations

import functools
import math
import operator
import statistics
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labeler import Ratio
from labeler.errors import UndefinedRatio

RATIOS = st.builds(Ratio, st.integers(0, 50), st.integers(1, 50))
BINARY: list[Callable[..., Any]] = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
]
BINARY += [operator.mod, divmod, operator.lt, operator.le, operator.gt, operator.ge, operator.eq]
UNARY: list[Callable[[Any], Any]] = [
    float,
    int,
    bool,
    complex,
    abs,
    round,
    operator.neg,
    operator.pos,
    hash,
]
UNARY += [math.trunc, math.floor, math.ceil, "{:.2f}".format, "{:.1%}".format]
MEAN: Callable[[list[Any]], Any] = statistics.mean
MISSING = Ratio.missing("no_claims")
USES: list[Callable[[Ratio], Any]] = [
    *(one for one in UNARY if one is not hash),
    *(lambda one, of=of: of(one, 1) for of in BINARY[:-1]),
    *(lambda one, of=of: of(0.5, one) for of in BINARY[:-1]),
    *(lambda one, of=of: of([Ratio(1, 2), one]) for of in (sum, sorted, max, np.mean, np.array)),
    *(lambda one, of=of: of([Ratio(1, 2), one]) for of in (MEAN, statistics.fmean)),
]


def outcome(function: Callable[..., Any], *numbers: object) -> object:
    """Return the result, or the class of the error."""
    try:
        return function(*numbers)
    except ZeroDivisionError as error:
        return type(error)


@given(RATIOS, RATIOS, st.one_of(st.integers(-9, 9), st.floats(-9, 9)))
def test_operators_are_those_of_floats(one: Ratio, two: Ratio, number: float) -> None:
    """Every operator gives what it gives for values, at either side of numbers and ratios."""
    a, b = float(one), float(two)
    for function in BINARY:
        assert outcome(function, one, two) == outcome(function, a, b)
        assert outcome(function, one, number) == outcome(function, a, number)
        assert outcome(function, number, one) == outcome(function, number, a)
    assert [function(one) for function in UNARY] == [function(a) for function in UNARY]


@given(st.lists(RATIOS, min_size=1, max_size=9))
def test_many_ratios_are_numbers(ratios: list[Ratio]) -> None:
    """Sums, means, orders and arrays of ratios are those of their values; means are exact."""
    values = [float(ratio) for ratio in ratios]
    # The sum() of floats alone carries the lost digits along, from Python 3.12 on.
    assert sum(ratios) == functools.reduce(operator.add, values)
    assert sorted(ratios) == sorted(values)
    assert MEAN(ratios) == float(MEAN([one.exact for one in ratios]))
    assert statistics.fmean(ratios) == statistics.fmean(values)
    assert np.array(ratios).dtype == float
    assert np.mean(ratios) == np.mean(values)


@pytest.mark.parametrize("use", USES)
def test_an_undefined_ratio_is_no_number(use: Callable[[Ratio], Any]) -> None:
    """Each use as a number raises an error that names the reason, and gives no NaN."""
    with pytest.raises(UndefinedRatio, match=r"undefined \(no_claims\)"):
        use(MISSING)


def test_equal_ratios_are_one_key() -> None:
    """As are floats, with one hash; undefined ones of one reason are equal, and print it."""
    assert MISSING == Ratio(None, None, "no_claims") != Ratio.missing("no_documents")
    assert MISSING not in {0, None, math.nan, "no_claims", Ratio(0, 1)}
    assert f"{MISSING}" == "undefined (no_claims)"
    assert {Ratio(1, 2), Ratio(2, 4), Ratio(Fraction(1, 2)), 0.5} == {0.5}
    assert Ratio(1, 2).parts != Ratio(2, 4).parts
    assert Ratio(1, 3) == pytest.approx(0.333, abs=1e-3)
