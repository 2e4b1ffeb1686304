"""Metrics of a user's own that go wrong: what went wrong is told, with metric and record."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import labeler
from labeled import output, record
from labeler.calculators import Tally, measure
from labeler.calculators.column_summary import SummaryRequest
from labeler.calculators.index.summaries import summarize_stored
from labeler.calculators.ratio import Ratio
from labeler.calculators.registry import Metric
from labeler.errors import UsageError


def own(compute: Callable[..., Any], *, vectorized: bool = False) -> Metric:
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
        vectorized=vectorized,
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


@pytest.mark.parametrize(
    ("compute", "told"),
    [
        pytest.param(lambda _: 1 // 0, "failed: ZeroDivisionError", id="raises"),
        pytest.param(
            lambda _: [0.5], "gave list; it must return a RatioColumn of 1 rows", id="list"
        ),
    ],
)
def test_a_vectorised_form_that_fails_says_how_to_do_without(
    compute: Callable[..., Any], told: str, tmp_path: Path
) -> None:
    """The metric may be right record by record."""
    path = tmp_path / "labels.jsonl"
    labeler.write_labels([record(id="r7", answer=output(support={"a": ["0a"]}))], path)
    with pytest.raises(UsageError, match=f"form of metric 'own' {told}.*--no-index does without"):
        summarize_stored(str(path), SummaryRequest([own(compute, vectorized=True)]), print)


def supported(tally: Tally) -> Ratio:
    """Share of supported sentences."""
    return tally.response_share(tally.supported)


def test_who_asks_for_a_metric_without_a_vectorised_form_is_told(tmp_path: Path) -> None:
    """Its records are read one by one, which takes longer."""
    path = tmp_path / "labels.jsonl"
    labeler.write_labels([record(id="r7", answer=output(support={"a": ["0a"]}))], path)
    told: list[str] = []
    assert summarize_stored(str(path), SummaryRequest([own(supported)]), told.append) is None
    assert told == ["no vectorised form of own: the records are read one by one"]
