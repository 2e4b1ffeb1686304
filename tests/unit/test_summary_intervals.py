"""Intervals and bounds of summaries, in Python and on the command line."""

from __future__ import annotations

import io
import itertools
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from typing import Any

import pytest

import labeler
from labeler.api import write_labels
from labeler.audit.auditing import audit_labels
from labeler.calculators import Intervals, Metric, Ratio, SummaryRow, measure, summarize
from labeler.calculators.intervals import mean_interval
from labeler.calculators.summary_text import View
from labeler.cli.measure import print_summary
from labeler.cli.terminal import print_sections
from labeler.comparing.agreement import compare_labels
from labeler.comparing.checking import check_rows
from labeler.comparing.compare import compare
from labeler.comparing.gates import Demand, GateSettings
from labeler.labels.record import LabelRecord, Outcome
from support.command import Command
from support.labeled import failure, record

BAD: dict[str, Sequence[str]] = {"a": []}
GOOD: dict[str, Sequence[str]] = {"a": ["0a"]}
HALF: dict[str, Sequence[str]] = {"a": ["0a"], "b": []}


def answers(*supports: dict[str, Sequence[str]]) -> list[Outcome]:
    """Labels of answers, two to a question."""
    return [
        record(id=str(index), support=support, metadata={"topic": f"t{index // 2}"})
        for index, support in enumerate(supports)
    ]


def refused(count: int) -> list[Outcome]:
    """Rows that the judge would not label."""
    return [failure(f"f{n}") for n in range(count)]


UNANSWERED = record(id="u", relevant=[])


@pytest.mark.parametrize(
    ("outcomes", "metric", "mean", "bounds"),
    [
        ([*answers(GOOD, BAD), *refused(2)], "adherence", 1 / 2, (1 / 4, 3 / 4)),
        # One of three is complete, one has nothing relevant, one failed.
        ([*answers(GOOD), UNANSWERED, *refused(1)], "completeness", 1.0, (1 / 3, 1.0)),
        # Without missing values the mean, without any value the whole range, without rows none.
        (answers(GOOD, BAD), "adherence", 1 / 2, (0.5, 0.5)),
        (refused(3), "adherence", None, (0.0, 1.0)),
        # Ten perfect records do not hide ninety failures.
        ([*answers(*[GOOD] * 10), *refused(90)], "adherence", 1.0, (0.1, 1.0)),
        ([], "adherence", None, None),
    ],
)
def test_bounds_give_rows_without_a_value_the_worst_and_the_best(
    outcomes: list[Outcome], metric: str, mean: float | None, bounds: tuple[float, float] | None
) -> None:
    """They cost nothing; intervals are found only where they are asked for."""
    (row,) = labeler.summary(outcomes, metric)
    assert (row.mean, row.interval, row.bounds) == (mean, None, bounds)


def stars(given: int, *, bounded: bool = True) -> SummaryRow:
    """The summary of three labels and a failure by a metric that gives every label so many."""
    facts: dict[str, Any] = {"needs": (), "source": "test", "formula": "1 to 5", "bounded": bounded}
    metric = Metric(name="stars", definition="t", compute=lambda _: Ratio(given, 1), **facts)
    rows = [measure(one, [metric]) for one in (*answers(GOOD, BAD, GOOD), *refused(1))]
    (row,) = summarize(rows, [metric], intervals=Intervals())
    return row


def test_ones_of_a_metric_that_goes_beyond_are_no_share() -> None:
    """Three of three ones say nothing of a fourth that may be a five, nor of missing rows."""
    share, points, fours = stars(1), stars(1, bounded=False), stars(4)
    assert share.interval == mean_interval([1.0] * 3)
    assert share.bounds == (0.75, 1.0)
    assert (points.mean, points.interval, points.bounds) == (1.0, None, None)
    assert (fours.mean, fours.bounds) == (4.0, None)


def test_the_table_shows_both_means_interval_bounds_and_counts(labeler_command: Command) -> None:
    """And says how the interval was found; there is no such column without intervals."""
    write_labels([*answers(*[GOOD, BAD, HALF] * 10), *refused(10)], "labels.jsonl")
    asked = ("metrics", "labels.jsonl", "--metrics", "faithfulness", "--details")
    _, out, _ = labeler_command(*asked)
    found = mean_interval([1.0, 0.0, 0.5] * 10)
    assert found is not None
    line = next(line for line in out.splitlines() if line.strip().startswith("faithfulness"))
    cells = ["0.5000", f"{found.low:.3f}-{found.high:.3f}", "0.5000", "30", "0", "10"]
    assert line.split()[3:] == cells
    assert "95 % intervals of the mean: gaffke\n" in out
    assert "mean if missing values were the lowest or highest: faithfulness 0.375-0.625" in out
    assert "interval" not in labeler_command(*asked, "--no-intervals")[1]
    code, _, err = labeler_command(*asked, "--no-intervals", "--group", "topic")
    assert (code, "--group needs intervals" in err) == (2, True)


VALUES = (1, "1", None, "(none)", True, "true", "", "café")
GATE = Demand("adherence", 0.9, at_least=True).gate()
NAMES = {"1", '"1"', "(none)", '"(none)"', "true", '"true"', '""', "café"}


def labels() -> list[LabelRecord]:
    """Two records of each value, one of them supported; one record without the column.

    Two texts that differ by their Unicode form are one value.
    """
    made = [
        record(id=f"{n}-{good}", support={"a": ["0a"] * good}, metadata={"g": value})
        for n, values in enumerate(zip(VALUES, [*VALUES[:-1], "cafe\u0301"], strict=True))
        for good, value in enumerate(values)
    ]
    return [*made, record(id="without", metadata={"other": 1})]


def test_numbers_texts_and_missing_values_are_groups_of_their_own() -> None:
    """In summaries, gates, comparisons and audits, each with a name of its own; as observations."""
    found = labeler.summary(labels(), "adherence", by="g")
    counts = {row.group: row.defined for row in found}
    assert counts == {**dict.fromkeys(NAMES, 2), "(none)": 3}
    compared = compare(labels(), labels(), "adherence", by="g").rows
    assert {row.group: row.pairs for row in compared} == counts
    agreed = compare_labels(labels(), labels(), by="g").fields
    assert {one.group for one in agreed} == {None, *NAMES}
    assert {row.group for row in audit_labels(labels(), by="g").rows} == NAMES
    rows = list(labeler.metrics(labels(), "adherence"))
    for verdict in check_rows(rows, [GATE], GateSettings(by="g")):
        assert verdict.as_json()["rows"] == counts[verdict.group]
    values = [1, "1", 1, "1", None, None]  # records without a value are each alone
    made = [record(id=str(n), metadata={"g": value}) for n, value in enumerate(values)]
    (row,) = labeler.summary(made, "adherence", intervals=Intervals(group="g"))
    assert row.interval == mean_interval([1.0] * 6, groups=["a", "b", "a", "b", None, None])


def calls(groups: int) -> int:
    """Functions that tables and gates of so many groups enter."""
    made = [
        record(id=f"r{n}", support={"a": ["0a"] * (n % 3 > 0)}, metadata={"g": f"g{n // 2}"})
        for n in range(2 * groups)
    ]
    counter = itertools.count()
    sys.setprofile(lambda *_: next(counter))
    try:
        rows = labeler.summary(made, by="g", intervals=Intervals())
        with redirect_stdout(io.StringIO()):
            print_summary(rows, View(Intervals(), "g", every=True))
            print_sections(compare_labels(made, made, by="g").in_full())
        check_rows(list(labeler.metrics(made, "adherence")), [GATE], GateSettings(by="g"))
    finally:
        sys.setprofile(None)
    return next(counter)


def test_many_groups_cost_as_much_as_their_records() -> None:
    """Four times as many groups are about four times as much work, not sixteen."""
    calls(5)
    assert calls(24) < 6 * calls(6)
