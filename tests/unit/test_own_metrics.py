"""Metrics of a user's own that go wrong: what went wrong is told, with metric and record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from labeler.calculators import measure
from labeler.calculators.ratio import Ratio
from labeler.calculators.registry import Metric
from labeler.errors import UsageError
from support.labeled import output, record


def own(compute: Callable[..., Any]) -> Metric:
    """A metric that is in no catalog."""
    return Metric(
        name="own",
        definition="mine",
        version=1,
        higher_is_better=True,
        needs=("sentence_support_information",),
        source="here",
        formula="?",
        compute=compute,
        default=True,
    )


def fails(_: object) -> Ratio:
    """It divides by zero."""
    return Ratio(1 // 0, 1)


def test_a_metric_that_fails_names_itself_and_the_record() -> None:
    """Not the line of its code alone."""
    row = record(id="r7", answer=output(support={"a": ["0a"]}))
    with pytest.raises(UsageError, match=r"metric 'own' failed on record 'r7': ZeroDivisionError"):
        measure(row, [own(fails)])


def test_a_metric_that_returns_a_number_is_told_what_to_return() -> None:
    """A number alone has no reason where it is undefined."""
    row = record(id="r7", answer=output(support={"a": ["0a"]}))
    with pytest.raises(UsageError, match=r"'own' gave float for record 'r7'; it must return"):
        measure(row, [own(lambda _: 0.5)])
