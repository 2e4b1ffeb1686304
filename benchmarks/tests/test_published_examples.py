"""The verdict on a figure that a document prints."""

from __future__ import annotations

from published_examples import Figure


def test_a_figure_that_differs_is_told() -> None:
    """Equal to as many digits as are printed, or not; a slip is one only where we are right."""
    assert Figure("d", "e", "m", "0.67", 2 / 3).verdict == "equal"
    assert Figure("d", "e", "m", "0.66", 2 / 3).verdict == "differs"
    assert Figure("d", "e", "m", "0.66", 2 / 3, slip="why", correct="0.67").verdict == "slip"
    assert Figure("d", "e", "m", "0.66", 0.5, slip="why", correct="0.67").verdict == "differs"
    assert Figure("d", "e", "m", "0.67", 2 / 3, slip="why", correct="0.67").verdict == "differs"
