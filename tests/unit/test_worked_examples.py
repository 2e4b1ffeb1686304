"""The worked examples of the documents that define the metrics."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from labeler.labels.record import LabelRecord
from published_examples import Figure, figures, labels
from worked_examples import main, table

SCRIPT = Path(__file__).parents[2] / "scripts" / "worked_examples.py"


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


def test_the_table_names_each_document_once() -> None:
    """Printed and computed stand side by side; slips are explained below."""
    text = table([Figure("doc", "one", "m", "1", 1.0), Figure("doc", "two", "m", "2", 1.0, "x")])
    assert text.count("\ndoc ") == 1
    assert "slip: m of 'two': x" in text


def test_a_difference_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 1, and the row says so."""
    monkeypatch.setattr("worked_examples.figures", lambda: [Figure("d", "e", "m", "1", 0.0)])
    assert main() == 1
    assert "0 equal; 0 slip; 1 differs" in capsys.readouterr().out


def test_the_command_prints_them_all() -> None:
    """From anywhere, with nothing but the checkout."""
    done = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True, check=True)
    slips = sum(bool(figure.slip) for figure in figures())
    assert f"{len(figures()) - slips} equal; {slips} slip; 0 differs" in done.stdout
