"""Stated probabilities against people: reliability, calibration error and thresholds."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

import labeler
from labeler.comparing.calibration import calibrate
from labeler.comparing.human_labels import HumanLabel, HumanLabels
from labeler.errors import UsageError
from labeler.labels.record import LabelRecord, SentenceScores
from support.command import Command

ROWS = [
    {
        "id": str(n),
        "question": f"Which {n}?",
        "documents": [f"It is lamp {n}."],
        "response": "It is a lamp. It is red.",
    }
    for n in range(200)
]


@pytest.fixture(scope="module")
def base() -> list[LabelRecord]:
    """Labels of 200 records with two response sentences each."""
    found = labeler.label(ROWS, judge="embedded", store=labeler.MemoryStore())
    return [one for one in found if isinstance(one, LabelRecord)]


def stating(base: list[LabelRecord], stated: list[tuple[float, float]]) -> list[LabelRecord]:
    """Labels whose two sentences have these probabilities of support."""
    return [
        record.model_copy(
            update={
                "scores": SentenceScores(
                    support={"a": first, "b": second},
                    relevance={"0a": first},
                    utilization={"0a": second},
                    adherence=first * second,
                )
            }
        )
        for record, (first, second) in zip(base, stated, strict=False)
    ]


def people(verdicts: list[tuple[bool, bool]]) -> HumanLabels:
    """One person's verdicts on both sentences of each record."""
    labels = [
        HumanLabel(str(n), "supported", key, "ann", float(said), "here")
        for n, pair in enumerate(verdicts)
        for key, said in zip("ab", pair, strict=True)
    ]
    return HumanLabels(tuple(labels), 0, ())


def test_worked_numbers(base: list[LabelRecord]) -> None:
    """Bins, error and thresholds of eight verdicts, as computed by hand."""
    stated = [(0.95, 0.25), (0.85, 0.2), (0.85, 0.65), (0.65, 0.25)]
    said = [(True, False), (True, False), (False, True), (True, True)]
    (found,) = calibrate(stating(base, stated), people(said), precision=0.75).kinds
    filled = {one.low: (one.verdicts, one.observed) for one in found.bins if one.verdicts}
    assert filled == {0.2: (3, 1 / 3), 0.6: (2, 1.0), 0.8: (2, 0.5), 0.9: (1, 1.0)}
    # 3 * |.7/3 - 1/3| + 2 * |.65 - 1| + 2 * |.85 - .5| + |.95 - 1|, over 8
    assert found.error == pytest.approx((0.3 + 0.7 + 0.7 + 0.05) / 8)
    best, precise = found.balanced, found.precise
    assert best.specificity == pytest.approx(2 / 3)
    assert (best.value, best.sensitivity) == (0.5, 4 / 5)
    assert (precise.value, precise.precision) == (0.5, 4 / 5)


def test_a_calibrated_judge_has_a_small_error_and_a_known_threshold(
    base: list[LabelRecord],
) -> None:
    """Intervals hold the true values: no error, threshold one half."""
    rng = random.Random(3)  # noqa: S311 - test data
    stated = [(rng.random(), rng.random()) for _ in base]
    said = [(rng.random() < a, rng.random() < b) for a, b in stated]
    (found,) = calibrate(stating(base, stated), people(said)).kinds
    assert found.error < 0.06
    assert found.interval is not None
    assert found.balanced.interval is not None
    assert found.balanced.interval.low < 0.5 < found.balanced.interval.high
    # Of verdicts stated at t or above, (1 + t) / 2 are right: .9 at t = .8.
    assert found.precise.interval is not None
    assert found.precise.interval.low < 0.8 < found.precise.interval.high


@pytest.mark.parametrize(
    "likely", [(0.9, 0.2), (0.9999, 0.9998), (1.0, 0.0), (0.12345678, 0.12345677)]
)
def test_the_printed_threshold_divides_as_reported(
    base: list[LabelRecord], likely: tuple[float, float]
) -> None:
    """Labels moved to it have the reported accuracy, however close probabilities are."""
    labels = stating(base[:20], [likely] * 20)
    (found,) = calibrate(labels, people([(True, False)] * 20)).kinds
    assert found.balanced.balanced_accuracy == 1
    assert found.balanced.value is not None
    moved = labeler.Labels(labels).at(support=float(str(found.balanced.value)))
    for record in moved:
        assert isinstance(record, LabelRecord)
        verdicts = [one.fully_supported for one in record.label.sentence_support_information]
        assert verdicts == [True, False]


def test_undefined_is_not_zero(base: list[LabelRecord]) -> None:
    """People who always say no leave no best threshold, and none with a precision."""
    (found,) = calibrate(stating(base[:9], [(0.9, 0.1)] * 9), people([(False, False)] * 9)).kinds
    assert found.balanced.as_json() == {
        **dict.fromkeys(("value", "interval", "sensitivity", "specificity", "precision")),
        "balanced_accuracy": None,
        "undefined": "one_class",
    }
    assert found.precise.undefined == "not_reached"


def test_labels_without_probabilities_are_refused(base: list[LabelRecord]) -> None:
    """And so are verdicts on whole records alone, and a precision that is no share."""
    human = people([(True, False)])
    without = [one.model_copy(update={"scores": None}) for one in base]
    with pytest.raises(UsageError, match="gave no probabilities"):
        calibrate(without, human)
    overall = HumanLabel("0", "overall_supported", None, "", 1.0, "here")
    with pytest.raises(UsageError, match="judges no sentence"):
        calibrate(base, HumanLabels((overall,), 0, ()))
    with pytest.raises(UsageError, match="precision"):
        calibrate(base, human, precision=1.5)


def test_the_command_and_the_report(
    base: list[LabelRecord], tmp_path: Path, labeler_command: Command
) -> None:
    """Both read people's rows; few verdicts are warned of; the page has a plot and a table."""
    labels, human = str(tmp_path / "l.jsonl"), tmp_path / "people.csv"
    labeler.api.write_labels(stating(base[:30], [(0.9, 0.2)] * 30), labels)
    lines = [f"{n},{key},{word}" for n in range(30) for key, word in (("a", "yes"), ("b", "no"))]
    human.write_text("id,sentence,supported\n" + "\n".join(lines))
    code, out, _ = labeler_command("thresholds", labels, "--human", human)
    assert code == 0
    assert "off by .15 (.10 to .25) on average; --threshold support=0.6 agrees" in out
    assert "60 verdicts are too few" in out
    code, out, _ = labeler_command("thresholds", labels, "--human", human, "--json")
    found: Any = json.loads(out)
    assert found["kinds"][0]["calibration_error"] == pytest.approx(0.15)
    page = tmp_path / "report.html"
    assert labeler_command("report", labels, "-o", page, "--human", human)[0] == 0
    assert 'id="reliability-support-t"' in page.read_text()
    assert labeler_command("thresholds", labels)[0] == 2
