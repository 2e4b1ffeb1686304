"""Records that repeat, rows that failed before, and questions that several records share."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

import labeler
from labeler.api import write_labels
from labeler.calculators.intervals import mean_interval
from labeler.calculators.metrics_row import REPEATED, DigestMap, Identity
from labeler.calculators.outcomes import RowTexts
from labeler.errors import UsageError
from labeler.labels.answers import as_given
from labeler.labels.record import AnyOutcome, LabelFailure, LabelRecord, Outcome
from labeler.report.report_data import ReportData
from labeler.testing import assert_metric
from support.command import Command
from support.labeled import failure, record, relabeled, with_question
from support.scored import record as score_record

QUESTIONS, EACH = 10, 4


def labels() -> list[LabelRecord]:
    """Four answers to each question, all right or all wrong, and all wrong for one in five."""
    return [
        with_question(
            record(id=f"{question}-{n}", support={"a": ["0a"] if question % 5 else []}),
            f"What is {question}?",
        )
        for question in range(QUESTIONS)
        for n in range(EACH)
    ]


def lonely() -> list[LabelRecord]:
    """The first answer to each question."""
    return labels()[::EACH]


def written(name: str, outcomes: Iterable[AnyOutcome]) -> str:
    """Write a label file in the command's folder; returns its name."""
    write_labels(outcomes, name)
    return name


@pytest.fixture
def summarized(labeler_command: Command) -> Any:
    """The summaries of outcomes in two files, with what is said of them."""

    def summarize(outcomes: Sequence[Outcome], *options: str) -> tuple[Any, str]:
        half = len(outcomes) // 2
        names = [written("a.jsonl", outcomes[:half]), written("b.jsonl", outcomes[half:])]
        code, out, err = labeler_command("metrics", *names, "--json", *options)
        assert code == 0
        return json.loads(out), err

    return summarize


def test_a_file_three_times_is_counted_once(summarized: Any) -> None:
    """Rows and intervals stay, and one notice gives the number."""
    failures = [failed("f"), failed("u", signed=False)]
    once, quiet = summarized([*lonely(), *failures])
    thrice, notice = summarized([*lonely(), *failures] * 3)
    assert [row.pop("duplicates") for row in thrice] == [2 * QUESTIONS] * len(once)
    assert [row.pop("duplicates") for row in once] == [0] * len(once)
    assert thrice == once
    assert once[0]["clusters"] is None
    assert (quiet, notice) == ("", REPEATED.format(2 * QUESTIONS) + "\n")


def failed(name: str, *, signed: bool = True) -> LabelFailure:
    """A row that failed by the judge of the labels, or before a judge was chosen."""
    return failure(name, made_by=labels()[0] if signed else None)


def judged_again() -> LabelRecord:
    """Another answer of the same judge to the first request."""
    first = lonely()[0]
    label = first.label.model_copy(update={"relevance_explanation": "Asked again."})
    return first.model_copy(update={"label": label})


@pytest.mark.parametrize(
    "command",
    [
        *("metrics", "metrics --rows", "audit", "report -o r.html", "check --min adherence=0"),
        "check --min adherence=0 --against base.jsonl --max-drop adherence=1",
        *("compare base.jsonl", "agree base.jsonl", "diff base.jsonl"),
    ],
)
def test_no_command_takes_another_label_for_a_copy(labeler_command: Command, command: str) -> None:
    """Another answer, also one as given, or other texts under one id; the place is named."""
    first = lonely()[0]
    given = as_given(first.label).model_copy(update={"overall_supported": False})
    written("base.jsonl", lonely())
    again = f"has another answer than an earlier record with its id and key {first.key}"
    for other, words in (
        (first.model_copy(update={"verbatim": given}), again),
        (judged_again(), again),
        (with_question(first, "Why?"), "differs in question from the record of the same id at"),
    ):
        written("new.jsonl", [*lonely(), other])
        code, _, err = labeler_command(*command.split(), "new.jsonl")
        assert (code, f"new.jsonl:11: record {first.id!r} {words}" in err) == (2, True)
    assert "new.jsonl:1." in err
    assert "labeler compare A B" in err


def added(outcomes: list[Outcome]) -> labeler.Labels:
    """Labels of two runs, added together."""
    return labeler.Labels(outcomes[:-1]) + labeler.Labels(outcomes[-1:])


@pytest.mark.parametrize("other", [judged_again(), with_question(lonely()[0], "Why?")])
def test_no_function_takes_another_label_for_a_copy(other: LabelRecord) -> None:
    """Of records in memory the error gives the number, also of labels that were added together."""
    outcomes: list[Outcome] = [*lonely(), other]
    for function in (
        labeler.metrics,
        labeler.summary,
        labeler.audit.audit_labels,
        lambda one: labeler.compare(lonely(), one),
        lambda one: assert_metric(one, "adherence", at_least=0),
        lambda one: labeler.report.write_report(one, "r.html", name="labels"),
        lambda one: added(one).metrics(),
        lambda one: added(one).audit(),
        lambda one: added(one).worst(),
        lambda one: added(one).check(adherence=0),
    ):
        with pytest.raises(UsageError, match=r"(B: )?outcome 11: record '0-0'"):
            function(outcomes)


@pytest.mark.parametrize(
    "command",
    [
        *("metrics", "metrics --rows", "audit", "agree base.jsonl", "diff base.jsonl"),
        *("compare base.jsonl", "check --min adherence=0.6 --on interval"),
        "check --min adherence=0.6 --junit j.xml",
    ],
)
def test_every_command_counts_copies_once(labeler_command: Command, command: str) -> None:
    """Of labels and failures; a row with a label did not fail; one notice has the number."""
    written("base.jsonl", lonely())
    once: list[Outcome] = [*lonely(), failed("f")]
    expected = labeler_command(*command.split(), written("labels.jsonl", once))
    written("labels.jsonl", [*once, *once, failed(lonely()[0].id), *once])
    code, out, err = labeler_command(*command.split(), "labels.jsonl")
    assert (code, out) == expected[:2]
    assert err == expected[2] + REPEATED.format(2 * QUESTIONS) + "\n"


@pytest.mark.parametrize("command", ["metrics", "check --on interval --min adherence=0"])
def test_failures_alone_have_questions(labeler_command: Command, command: str) -> None:
    """Grouping by question is no error where every row failed."""
    path = written("labels.jsonl", [failed("a"), failed("b")])
    code, _, err = labeler_command(*command.split(), path, "--group", "question")
    assert (code, "column" in err) == (int("check" in command), False)


def test_a_failure_that_does_not_count_makes_no_group() -> None:
    """The row has a label, and its failure another value in the column."""
    label = lonely()[0].model_copy(deep=True)
    label.example.metadata["topic"] = "a"
    lost = [failed(label.id, signed=signed) for signed in (True, False)]
    others = [one.model_copy(update={"metadata": {"topic": "b"}}) for one in lost]
    assert {row.group for row in labeler.summary([label, *others], by="topic")} == {"a"}


def test_records_of_one_question_are_drawn_together(summarized: Any) -> None:
    """Without an option; four equal answers are no four observations."""
    (row,), _ = summarized(labels(), "--metrics", "adherence")
    values = [float(n // EACH % 5 > 0) for n in range(QUESTIONS * EACH)]
    groups = [n // EACH for n in range(QUESTIONS * EACH)]
    expected = mean_interval(values, groups=groups)
    assert expected is not None
    assert (row["interval"], row["clusters"]) == (expected.as_json(), QUESTIONS)
    assert expected.method == "gaffke_groups"
    # Two judges of the same rows share no observations.
    outcomes = [*lonely(), *(relabeled(one, trial=1) for one in lonely())]
    rows, _ = summarized(outcomes, "--metrics", "adherence")
    assert [(row["defined"], row["clusters"]) for row in rows] == [(QUESTIONS, None)] * 2


def test_gates_on_intervals_group_questions(labeler_command: Command) -> None:
    """Forty answers to ten questions: of the mean, and of the drop from a base."""
    path = written("labels.jsonl", labels())
    note = f"grouped by question ({QUESTIONS} groups)\n"
    options = ("--on", "interval", "--min", "adherence=0.1")
    _, out, err = labeler_command("check", path, *options, "--json")
    summary = labeler_command("metrics", path, "--metrics", "adherence", "--json")[1]
    assert json.loads(out)[0]["value"] == json.loads(summary)[0]["interval"]["low"]
    assert err == note
    base = written("base.jsonl", labels())
    drop = ("--against", base, "--on", "interval", "--max-drop", "adherence=1")
    assert labeler_command("check", path, *drop)[2] == note


def test_a_gate_and_a_drop_read_the_labels_once(
    labeler_command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From standard input, too; copies of both sides are one notice."""
    text = Path(written("base.jsonl", lonely() * 2)).read_bytes()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
    drop = ("--against", "base.jsonl", "--max-drop", "adherence=0.1")
    code, out, err = labeler_command("check", "-", "--min", "adherence=0.5", *drop)
    assert (code, out.splitlines()[0]) == (0, "passed: all 2 gates")
    assert err == REPEATED.format(2 * QUESTIONS) + "\n"


def test_the_report_says_what_it_counts_once(labeler_command: Command) -> None:
    """Next to the means, with the groups of the intervals."""
    path = written("labels.jsonl", labels() * 2)
    assert labeler_command("report", path, "-o", "report.html")[0] == 0
    page = Path("report.html").read_text(encoding="utf-8")
    assert f"Duplicates (same id and label key), not counted: {QUESTIONS * EACH}." in page
    assert f"grouped by question ({QUESTIONS} groups)" in page


@pytest.mark.parametrize("signed", [True, False])
def test_a_failure_counts_unless_its_row_has_a_label(
    labeler_command: Command, signed: bool
) -> None:
    """The label may come before or after it; rows that failed again count once."""
    first, last = (failed(lonely()[place].id, signed=signed) for place in (0, -1))
    failures = [failed("f"), failed("f", signed=False)]
    path = written("labels.jsonl", [last, *failures, *lonely(), first])
    (row,) = json.loads(labeler_command("metrics", path, "--json", "--metrics", "adherence")[1])
    counts = (row["defined"], row["failed"], row["duplicates"])
    assert counts == (QUESTIONS, {"refusal": 1}, 0)
    assert [row.id for row in labeler.metrics(path)] == ["f", *(one.id for one in lonely())]
    code, out, _ = labeler_command("check", path, "--min", "adherence=0.99", "--json")
    assert (code, json.loads(out)[0]["rows"]) == (1, QUESTIONS + 1)
    data = ReportData(labeler.load(path), io.BytesIO(), list[int]().append)
    assert len(list(data.views())) == len(data.entries) == QUESTIONS + 1


def test_copies_of_scores_count_once(labeler_command: Command) -> None:
    """And are counted, in the notice and in JSON; a row with a score did not fail."""
    scores = [score_record(row={"id": f"r{n}"}) for n in range(4)]
    path = written("scores.jsonl", [*scores, *scores[:3], failed("r0", signed=False)])
    _, out, err = labeler_command("metrics", path, "--json")
    assert [(r["defined"], r["duplicates"], r["failed"]) for r in json.loads(out)] == [
        (4, 3, {})
    ] * 2
    assert err == REPEATED.format(3) + "\n"


def test_many_identities_are_told_apart() -> None:
    """The table grows; equal ids with other keys are other records."""
    known = DigestMap()
    made = [Identity.of(f"r{n % 500}", "judge", f"key {n}") for n in range(2_000)]
    assert not any(known.add(*one.entry) for one in made)
    assert all(known.add(*one.entry) for one in made)
    rows = {Identity.of(name, "judge", None).row for name in ("r1", "r500")}
    assert known.present(rows) == {Identity.of("r1", "judge", None).row}


def test_the_first_record_of_an_id_is_named_wherever_it_is() -> None:
    """Lines of several files, stores whose names end in digits, and a list."""
    given = [*(f"a.jsonl:{n}" for n in (1, 2, 7)), *["store2"] * 2, "a.jsonl:4", "at/007", "v0"]
    given += ["B: outcome 1", "B: outcome 2", "20261129101112", "labels"]
    for place, where in enumerate(given):
        texts = RowTexts()
        for n, one in enumerate(given):
            texts.check(one, record(id=f"r{n}"))
        with pytest.raises(UsageError, match=f" at {re.escape(where)}\\. An id"):
            texts.check("there:9", with_question(record(id=f"r{place}"), "Why?"))


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl"])
def test_an_id_names_one_row_of_numbers_files(labeler_command: Command, suffix: str) -> None:
    """As of label files, also of labels by several judges; the same rows in two are copies."""
    first, *others = lonely()
    other = relabeled(with_question(first, "Why?"), model="other")
    for name, outcomes in (("a", lonely()), ("b", [other, *others])):
        written(f"{name}-labels.jsonl", outcomes)
        labeler_command("metrics", f"{name}-labels.jsonl", "--rows", "-o", f"{name}.{suffix}")
    code, _, err = labeler_command("metrics", f"a.{suffix}", f"b.{suffix}")
    assert (code, f"b.{suffix}:row 1: record {first.id!r} differs in question" in err) == (2, True)
