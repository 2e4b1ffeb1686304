"""Gates on regressions: paired by id, with what has no pair, on the mean and on the interval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from labeler.api import write_labels
from labeler.calculators import SummaryRow, measure, select_metrics
from labeler.comparing.checking import check_drops
from labeler.comparing.gates import Gate, GateSettings
from labeler.comparing.verdicts import Verdict
from labeler.errors import UsageError
from labeler.labels.record import LabelRecord, Outcome
from labeler.testing import assert_metric
from support.command import Command
from support.labeled import failure, record, relabeled, with_question
from support.scored import record as score_record


def run_of(yes: int, no: int = 0) -> list[LabelRecord]:
    """Supported answers and then unsupported ones; each asks its own question."""
    return [
        with_question(record(id=f"r{n}", support={"a": ["0a"] if n < yes else []}), f"What is {n}?")
        for n in range(yes + no)
    ]


def checked(
    new: Sequence[Outcome],
    base: Sequence[Outcome],
    most: float,
    *,
    metric: str = "adherence",
    **settings: Any,
) -> Verdict:
    """The verdict on one metric."""
    metrics = select_metrics([metric])
    after, before = ([measure(one, metrics) for one in side] for side in (new, base))
    gate = Gate(metrics[0], most, at_least=False, of_drop=True)
    (found,) = check_drops(after, before, [gate], GateSettings(**settings, every_record=True))
    return found


def figures(verdict: Verdict) -> SummaryRow:
    """What was found of the pairs; those that failed have no pair."""
    assert verdict.row is not None
    return verdict.row


def test_the_mean_drop_of_the_pairs_must_not_exceed_the_threshold() -> None:
    """Reaching it exactly is enough; a rise is no drop, unless less is better."""
    new, base = run_of(49, 1), run_of(50)
    found, less, rise = (checked(new, base, 0.02), checked(new, base, 0.019), checked(base, new, 0))
    assert (found.value, found.passed, less.passed, rise.passed) == (0.02, True, False, True)
    new, base = run_of(9, 1), run_of(10)
    found = checked(new, base, 0.05, metric="hallucination_rate")
    assert (found.value, found.passed) == (0.1, False)
    assert found.demand == "hallucination_rate rise at most 0.05"


def test_on_the_interval_only_a_certain_drop_misses() -> None:
    """Two of fifty may be chance, fifteen of fifty are not."""
    base, few, many = run_of(50), run_of(48, 2), run_of(35, 15)
    assert not checked(few, base, 0.02).passed
    found = checked(few, base, 0.02, on="interval")
    interval = figures(found).interval
    assert interval is not None
    assert found.value == interval.low < 0
    assert found.passed
    assert not checked(many, base, 0.02, on="interval").passed
    assert checked(many, base, 0.2, on="interval").passed


def test_records_of_other_questions_are_no_pairs() -> None:
    """They count as failed; where all are such, the files are of other rows, and refused."""
    base = run_of(20)
    other = [with_question(one, "Another?") for one in base]
    found = checked([*base[:18], *other[18:]], base, 0.02)
    assert (figures(found).failed, found.passed) == ({"other_question": 2}, False)
    assert checked([*base[:19], *other[19:]], base, 0.02).passed
    with pytest.raises(UsageError, match=r"share 20 ids \('r0', 'r1', .*ask different questions"):
        checked(other, base, 0.02)


def test_rows_without_a_pair_count_as_failed() -> None:
    """New rows, lost ones, and failures; up to a share that is allowed."""
    base = run_of(20)
    lost = checked(base[:18], base, 0.02)
    assert (lost.value, figures(lost).failed, lost.passed) == (0.0, {"only_in_base": 2}, False)
    assert "2 of 20 rows failed, more than 0.05 of them: 2 only_in_base" in lost.finding
    gone = checked([*base[:19], failure("r19")], base, 0.02)
    assert (figures(gone).failed, gone.passed) == ({"refusal": 1}, True)
    assert checked(base[:18], base, 0.02, max_failed=0.1).passed
    grown = checked(base, base[:18], 0.02)
    assert figures(grown).failed == {"only_in_new": 2}
    assert str(grown).endswith(
        "2 of 20 records have no pair (2 only in the new labels), at most 5 % may (max_failed); "
        "without a pair: r18, r19"
    )
    assert not checked([], base, 0.02).passed
    with pytest.raises(UsageError, match=r"no id in common: the new labels have 9 ids \('r0', "):
        checked(base[:9], base[9:], 0.02)


def test_values_that_got_lost_are_no_improvement() -> None:
    """A record that no longer has a value drops out of the mean, and is counted."""
    base = [record(id=f"r{n}") for n in range(10)]
    new = [*base[:5], *(record(id=f"r{n}", relevant=()) for n in range(5, 10))]
    for sides, reason in (((new, base), ""), ((base, new), "_in_base")):
        found = checked(*sides, 0.02, metric="completeness")
        assert figures(found).undefined == {f"no_relevant_sentences{reason}": 5}
        assert (found.value, found.passed) == (0.0, False)
        assert "completeness:ragbench counts no_relevant_sentences as 1" in found.finding
        assert checked(*sides, 0.02, metric="completeness", max_undefined=0.5).passed


def test_several_judges_of_one_file_are_refused() -> None:
    """Which of them should be paired?"""
    base = run_of(1)
    other = relabeled(base[0], model="x")
    with pytest.raises(UsageError, match="2 judge configurations are checked against 1"):
        checked([*base, other], base, 0.1)
    assert "labeled otherwise" in checked([other], base, 0.1).finding


def test_the_command_fails_where_a_metric_drops(labeler_command: Command) -> None:
    """Several metrics, next to plain gates, with the worst records in the reports."""
    write_labels(run_of(48, 2), "new")
    write_labels(run_of(50), "base")
    check = ("check", "new", "--against", "base", "--junit", "j.xml")
    drops = ("--max-drop", "adherence=0.02", "--max-drop", "hallucination_rate=0.5")
    code, out, _ = labeler_command(*check, *drops, "--min", "adherence=0.9")
    assert code == 1
    name, other = "answers fully supported (adherence)", "unsupported (hallucination_rate)"
    assert out.splitlines() == [
        "MISSED: 1 of 3 gates",
        f"MISSED by .02: {name} lost .04, at most .02 may be lost; worst: r48, r49",
        f"passed by .06: {name} .96, at least .9 asked for",
        f"passed by .46: answer sentences {other} rose .04, at most .5 may be added",
    ]
    suite = ET.parse("j.xml").getroot()[0]  # noqa: S314 - our own file
    assert (suite.attrib["tests"], suite.attrib["failures"]) == ("3", "1")
    failure = suite.find(".//failure")
    assert failure is not None
    assert "worst: 'r48' +1.0000, 'r49' +1.0000" in (failure.text or "")
    # Cases of records fail if they miss the threshold themselves, and the gate is missed.
    for most, failures in ((0.02, "3"), (0.04, "0")):
        cases = ("--max-drop", f"adherence={most}", "--junit-per-record")
        assert labeler_command(*check, *cases)[0] == (failures != "0")
        suite = ET.parse("j.xml").getroot()[0]  # noqa: S314 - our own file
        assert (suite.attrib["tests"], suite.attrib["failures"]) == ("51", failures)
    _, out, _ = labeler_command("check", "base", "--against", "new", *drops[:2])
    assert out.startswith(f"passed by .06: {name} gained .04, at most")


def test_an_assertion_compares_with_a_base() -> None:
    """The same in a test, with the ids."""
    new, base = run_of(48, 2), run_of(50)
    assert_metric(new, "adherence", against=base, max_drop=0.04)
    message = r"drop at most 0.02: .*mean \+0.0400(.|\n)*'r48' \+1.0000"
    with pytest.raises(AssertionError, match=message):
        assert_metric(new, "adherence", against=base, max_drop=0.02, at_least=0.9)
    with pytest.raises(AssertionError, match="5 of 50 rows failed"):
        assert_metric(base[:45], "adherence", against=base, max_drop=0)
    assert_metric(base[:45], "adherence", against=base, max_drop=0, max_failed=0.1)
    with pytest.raises(UsageError, match="against and max_drop need each other"):
        assert_metric(new, "adherence", max_drop=0.02)


def test_a_drop_of_scores_is_any_part_of_their_scale() -> None:
    """From 1 to 5 a mean can drop by 0 to 4 points."""
    base, new = ([score_record(score, row={"id": "s"})] for score in (5, 4))
    assert_metric(new, "tone", against=base, max_drop=1)
    with pytest.raises(AssertionError, match=r"tone drop at most 0.5: mean \+1.0000"):
        assert_metric(new, "tone", against=base, max_drop=0.5)
    for drop in (-1, 4.5):
        with pytest.raises(UsageError, match="values are from 0 to 4"):
            assert_metric(new, "tone", against=base, max_drop=drop)
