"""Intervals and bounds of summaries, in Python and on the command line."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import labeler
from labeler.calculators import (
    Intervals,
    Metric,
    Ratio,
    SummaryRow,
    measure,
    select_metrics,
    summarize,
)
from labeler.calculators.statistics.intervals import mean_interval
from labeler.cli import checking, reading
from labeler.data.label_files import to_line
from labeler.errors import UsageError
from labeler.labels.record import LabelFailure, Outcome
from labeler.labels.schemas import read_resource
from labeler.plugins.similarity.metrics import QUESTION_METRICS
from support.labeled import record

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
    return [LabelFailure(id=f"f{n}", reason="refusal", message="no") for n in range(count)]


def summary(
    outcomes: Sequence[Outcome], metric: str, intervals: Intervals | None = None
) -> SummaryRow:
    """The one summary of one metric."""
    chosen = select_metrics([metric])
    (row,) = summarize((measure(o, chosen) for o in outcomes), chosen, intervals=intervals)
    return row


def run(folder: Path, *arguments: object) -> tuple[int, str, str]:
    """The command in a process of its own; exit code, standard output, standard error."""
    done = subprocess.run(
        [sys.executable, "-m", "labeler", *map(str, arguments)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def written(folder: Path, outcomes: Sequence[Outcome]) -> Path:
    """A label file."""
    path = folder / "labels.jsonl"
    path.write_text("".join(to_line(outcome) + "\n" for outcome in outcomes), encoding="utf-8")
    return path


def test_a_mean_gets_the_interval_of_the_library() -> None:
    """With the same level."""
    outcomes = answers(*[GOOD, BAD, HALF, HALF] * 10)
    row = summary(outcomes, "faithfulness", Intervals(level=0.9))
    assert row.interval == mean_interval([1.0, 0.0, 0.5, 0.5] * 10, level=0.9)
    assert row.interval is not None
    assert (row.interval.method, row.interval.level) == ("gaffke", 0.9)


def test_records_are_grouped_by_a_column() -> None:
    """Rows that share its value are one observation."""
    outcomes = answers(*[GOOD, GOOD, BAD, BAD, HALF, HALF] * 10)
    alone = summary(outcomes, "faithfulness", Intervals()).interval
    together = summary(outcomes, "faithfulness", Intervals(group="topic")).interval
    assert alone is not None
    assert together is not None
    assert together.method == "gaffke_groups"
    assert together.high - together.low > 1.2 * (alone.high - alone.low)


def test_the_question_is_a_column_to_group_by() -> None:
    """It is no metadata, and every record has one: all of these are of one question."""
    outcomes = answers(GOOD, HALF, BAD, HALF)
    (row,) = labeler.summary(outcomes, ["faithfulness"], intervals=Intervals(group="question"))
    assert row.interval is None
    assert row.defined == 4


def test_an_unknown_column_to_draw_by_names_the_known() -> None:
    """A slip of the pen must not draw record by record in silence."""
    with pytest.raises(UsageError, match=r"no row has a column 'topics' to draw .*: topic"):
        summary(answers(GOOD, BAD), "adherence", Intervals(group="topics"))


def test_intervals_are_found_only_where_they_are_asked_for() -> None:
    """A plain summary has none; bounds cost nothing."""
    row = summary([*answers(GOOD, BAD), *refused(2)], "adherence")
    assert row.interval is None
    assert row.bounds == (1 / 4, 3 / 4)


def test_bounds_give_failed_rows_the_worst_and_the_best_value() -> None:
    """Ten perfect records do not hide ninety failures."""
    row = summary([*answers(*[GOOD] * 10), *refused(90)], "adherence")
    assert (row.mean, row.defined, row.rows, row.bounds) == (1.0, 10, 100, (0.1, 1.0))
    published = row.as_json("0")
    assert published["bounds"] == {"low": 0.1, "high": 1.0}
    parts = [published["defined"], *published["undefined"].values(), *published["failed"].values()]
    assert sum(parts) == row.rows


def test_bounds_give_undefined_rows_a_value_too() -> None:
    """One of three is complete, one has nothing relevant, one failed."""
    unanswered = record(id="u", relevant=[])
    row = summary([*answers(GOOD), unanswered, *refused(1)], "completeness")
    assert (row.rows, row.bounds) == (3, (1 / 3, 1.0))


def test_bounds_without_missing_values_are_the_mean() -> None:
    """And without any value the whole range; without rows there are none."""
    assert summary(answers(GOOD, BAD), "adherence").bounds == (0.5, 0.5)
    row = summary(refused(3), "adherence", Intervals())
    assert (row.mean, row.interval, row.bounds) == (None, None, (0.0, 1.0))
    assert summary([], "adherence").bounds is None


def stars(given: int, *, bounded: bool = True) -> Metric:
    """A metric that gives every label so many."""
    return Metric(
        name="stars",
        definition="test",
        version=1,
        higher_is_better=True,
        needs=(),
        source="test",
        formula="1 to 5",
        compute=lambda _: Ratio(given, 1),
        default=True,
        bounded=bounded,
    )


def starred(metric: Metric) -> SummaryRow:
    """The summary of three labels and a failure."""
    outcomes = [*answers(GOOD, BAD, GOOD), *refused(1)]
    (row,) = summarize((measure(o, [metric]) for o in outcomes), [metric], intervals=Intervals())
    return row


def test_a_metric_beyond_its_range_has_no_bounds() -> None:
    """What the missing rows could have had is not known then."""
    assert (starred(stars(4)).mean, starred(stars(4)).bounds) == (4.0, None)


def test_ones_of_a_metric_that_goes_beyond_are_no_share() -> None:
    """Three of three ones say nothing of a fourth that may be a five."""
    share, points = starred(stars(1)), starred(stars(1, bounded=False))
    assert share.interval == mean_interval([1.0] * 3)
    assert share.bounds == (0.75, 1.0)
    assert (points.mean, points.interval, points.bounds) == (1.0, None, None)


def test_cosines_are_not_bounded_and_shares_are() -> None:
    """They may be below 0."""
    bounded = {metric.id: metric.bounded for metric in QUESTION_METRICS}
    assert bounded == {
        "answer_relevancy_similarity": False,
        "answer_relevancy_similarity:ragas": False,
        "noncommittal": True,
    }
    beyond = {metric.id for metric in select_metrics("all") if not metric.bounded}
    assert beyond == {"relevance:ragbench", "utilization:ragbench"}


@pytest.mark.parametrize("options", [{"level": 1.5}, {"level": 0}])
def test_options_out_of_their_range_are_refused_at_once(options: dict[str, Any]) -> None:
    """Before anything is read."""
    with pytest.raises(UsageError):
        Intervals(**options)


def test_the_json_summary_has_interval_and_bounds(tmp_path: Path) -> None:
    """With level and method, by the published schema."""
    labels = written(tmp_path, [*answers(GOOD, GOOD, BAD), *refused(1)])
    code, out, _ = run(
        tmp_path, "metrics", labels, "--metrics", "adherence", "--json", "--level", 0.9
    )
    (row,) = json.loads(out)
    jsonschema.validate(row, json.loads(read_resource("schemas", "summary-row/v1", ".json")))
    assert code == 0
    assert row["interval"]["method"] == "gaffke"
    assert row["interval"]["level"] == 0.9
    assert row["interval"]["low"] < row["mean"] < row["interval"]["high"]
    assert row["bounds"] == {"low": 0.5, "high": 0.75}


def test_the_table_shows_both_means_interval_bounds_and_counts(tmp_path: Path) -> None:
    """And says how the interval was found."""
    labels = written(tmp_path, [*answers(*[GOOD, BAD, HALF] * 10), *refused(10)])
    _, out, _ = run(tmp_path, "metrics", labels, "--metrics", "faithfulness", "--details")
    found = mean_interval([1.0, 0.0, 0.5] * 10)
    assert found is not None
    line = next(line for line in out.splitlines() if line.strip().startswith("faithfulness"))
    cells = ["0.5000", f"{found.low:.3f}-{found.high:.3f}", "0.5000", "30", "0", "10"]
    assert line.split()[3:] == cells
    assert "95 % intervals of the mean: gaffke\n" in out
    assert "mean if missing values were the lowest or highest: faithfulness 0.375-0.625" in out


def test_a_table_without_intervals_has_no_such_column(tmp_path: Path) -> None:
    """--no-intervals."""
    labels = written(tmp_path, answers(GOOD, BAD))
    _, out, _ = run(tmp_path, "metrics", labels, "--metrics", "adherence", "--no-intervals")
    assert "95 % range" not in out


def test_a_group_without_intervals_is_wrong_use(tmp_path: Path) -> None:
    """It would do nothing."""
    labels = written(tmp_path, answers(GOOD, BAD))
    code, _, err = run(tmp_path, "metrics", labels, "--no-intervals", "--group", "topic")
    assert code == 2
    assert "--group needs intervals" in err


@pytest.mark.parametrize("command", [reading.metrics, checking.check])
def test_the_commands_have_the_librarys_defaults(command: Callable[..., object]) -> None:
    """They are written twice only so that --help need not import the library."""
    defaults = {p.name: p.default for p in inspect.signature(command).parameters.values()}
    named = {name: defaults[name] for name in ("level", "group")}
    assert named == asdict(Intervals())


@pytest.mark.parametrize("option", ["--rows", "--no-intervals", "--level=0.9"])
def test_numbers_load_no_numpy(tmp_path: Path, option: str) -> None:
    """With intervals and without, a plain recompute starts fast."""
    labels = written(tmp_path, answers(GOOD, HALF))
    program = (
        f"import sys; sys.argv = ['labeler', 'metrics', {str(labels)!r}, {option!r}]\n"
        "from labeler.cli import run; code = run()\n"
        "print(code, 'numpy' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "0 False"
