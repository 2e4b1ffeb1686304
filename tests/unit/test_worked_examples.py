"""The worked examples of the documents that define the metrics."""

from __future__ import annotations

import pytest

from labeler.labels.record import LabelRecord
from published_examples import Figure, figures, labels


def _name(figure: Figure) -> str:
    return f"{figure.metric} of {figure.example}"


@pytest.mark.parametrize("figure", figures(), ids=_name)
def test_a_worked_example_comes_out(figure: Figure) -> None:
    """As it is printed; or, where the document slips, as it should have been."""
    assert figure.verdict == ("slip" if figure.slip else "equal")


@pytest.mark.parametrize("labeled", labels().values(), ids=labels().keys())
def test_a_worked_label_keeps_the_contract(labeled: LabelRecord) -> None:
    """It is one that a judge may return."""
    assert labeled.violations == ()
    assert labeled.normalised == {}


def test_a_figure_that_differs_is_told() -> None:
    """Equal to as many digits as are printed, or not; a slip is one only where we are right."""
    assert Figure("d", "e", "m", "0.67", 2 / 3).verdict == "equal"
    assert Figure("d", "e", "m", "0.66", 2 / 3).verdict == "differs"
    assert Figure("d", "e", "m", "0.66", 2 / 3, slip="why", correct="0.67").verdict == "slip"
    assert Figure("d", "e", "m", "0.66", 0.5, slip="why", correct="0.67").verdict == "differs"
    assert Figure("d", "e", "m", "0.67", 2 / 3, slip="why", correct="0.67").verdict == "differs"
