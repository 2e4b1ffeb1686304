"""Figures of agreement that no command line is needed for."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from labeler.calculators import METRICS, measure, select_metrics
from labeler.calculators.rater_agreement import FieldRatings, is_yes_or_no, verdicts_of
from labeler.calculators.statistics.agreement import Pattern
from labeler.comparing import human_agreement
from labeler.comparing.human_agreement import estimate
from support.labeled import record


def test_fields_are_yes_or_no_by_what_they_are() -> None:
    """Sentences, the whole response, and every metric of labels that is 1 or else 0."""
    metrics = select_metrics("all")
    flags = {metric.id for metric in metrics if metric.formula.startswith("1 if ")}
    assert "adherence" in flags
    assert {metric.id for metric in metrics if is_yes_or_no(metric.id)} == flags
    verdicts = ["relevant", "utilized", "supported", "overall_supported"]
    assert all(map(is_yes_or_no, verdicts))


def test_a_sentence_that_was_judged_twice_counts_as_in_the_metrics() -> None:
    """It is supported only if both judgments say so, whichever comes first."""
    yes, no = (
        record(support={"a": keys}).label.sentence_support_information[0] for keys in (["0a"], [])
    )
    for entries in ((yes, no), (no, yes)):
        made = record(support={"a": ["0a"]})
        label = made.label.model_copy(update={"sentence_support_information": entries})
        made = made.model_copy(update={"label": label})
        assert verdicts_of(made)["supported"] == (False,)
        assert measure(made).metrics["adherence_fraction"].value == 0


def test_who_voted_not_on_a_unit_has_no_mean_of_it() -> None:
    """More than two sides have no side A and side B; a missing vote is no vote against."""
    given: Counter[Pattern] = Counter({(None, True, True): 5, (True,) * 3: 5})
    found = FieldRatings(given).agreement("supported")
    assert (found.mean_a, found.mean_b) == (None, None)
    assert (found.units, found.left_out, found.raw) == (10, 0, 1.0)


def test_means_of_two_sides_are_over_what_both_judged() -> None:
    """A unit that one of them left out counts for neither."""
    given: Counter[Pattern] = Counter({(True, False): 1, (True, True): 3, (None, True): 4})
    found = FieldRatings(given).agreement("supported")
    assert (found.mean_a, found.mean_b, found.units, found.left_out) == (1.0, 0.75, 4, 4)


JUDGED = {f"r{n}": float(n % 2) for n in range(40)}
SAID = {"r0": 1.0, "r1": 1.0, "r2": 1.0, "r3": 0.0}


def highest(metric: str, judged: dict[str, float | None]) -> float:
    """Upper end of the PPI++ interval, of few records by people."""
    interval = estimate(metric, None, judged, dict(SAID), random_sample=True).ppi.interval
    assert interval is not None
    return interval.high


def test_a_mean_is_cut_to_1_only_where_it_is_a_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """By what the metric declares; values beyond say so as well."""
    assert highest("relevance", {**JUDGED}) <= 1.0
    assert highest("relevance", {**JUDGED, "r5": 3.0}) > 1.0
    free = replace(METRICS["relevance"], bounded=False)
    monkeypatch.setattr(human_agreement, "METRICS", {"relevance": free})
    assert highest("relevance", {**JUDGED}) > 1.0
