"""Gates: verdicts, the command and its reports, and the helper for tests."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from labeler.api import write_labels
from labeler.calculators import Intervals, MetricsRow, measure, select_metrics
from labeler.calculators.ratio import Ratio
from labeler.comparing.checking import check_rows, junit_report, markdown_report
from labeler.comparing.gates import Demand, Gate, GateSettings, doubts
from labeler.comparing.verdicts import Verdict
from labeler.errors import UnknownName
from labeler.labels.record import AnyOutcome, LabelRecord, Outcome, ReplyFacts
from labeler.plugins.scores.criteria import CRITERIA
from labeler.plugins.scores.records import ScoreRecord
from labeler.testing import assert_metric
from support.command import Command
from support.labeled import expects, failure, record, reference_output, relabeled, right
from support.questions import questions_record
from support.records import sample_record
from support.scored import criterion
from support.scored import record as score_record

Check = Callable[..., tuple[int, str, str]]
NASTY = 'a|b<script>&"\x1b[31m\u202e\ufffe_x_\n[l](http://x.example)'
"""A group's name that means something in a terminal, in XML and in Markdown."""
LOST = failure()


def outcomes(good: int, bad: int, *, group: str = "g") -> list[Outcome]:
    """Labels of wholly supported answers, and of wholly unsupported ones."""
    supports = [{"a": ["0a"]}] * good + [{"a": []}] * bad
    return [
        record(id=f"{group}{n}", support=support, metadata={"topic": group})
        for n, support in enumerate(supports)
    ]


def searches(found: int, nothing: int) -> list[Outcome]:
    """Labels of questions with a relevant document, and of questions with none."""
    return [
        record(id=f"q{n}", relevant=["0a"] if n < found else []) for n in range(found + nothing)
    ]


def verdicts(
    found: Sequence[Outcome],
    metric: str = "adherence",
    *,
    at_least: float | None = None,
    at_most: float | None = None,
    **settings: Any,
) -> list[Verdict]:
    """The verdicts on one metric's gates."""
    gates = [
        Demand(metric, threshold, at_least=lower).gate()
        for threshold, lower in ((at_least, True), (at_most, False))
        if threshold is not None
    ]
    rows = [measure(outcome, select_metrics([metric])) for outcome in found]
    return check_rows(rows, gates, GateSettings(**settings))


@pytest.fixture
def check(labeler_command: Command) -> Check:
    """``labeler check`` of outcomes."""

    def command(found: Sequence[AnyOutcome], *options: object) -> tuple[int, str, str]:
        write_labels(found, "labels.jsonl")
        return labeler_command("check", "labels.jsonl", *options)

    return command


OTHER = relabeled(record(support={"a": []}), model="test-2")
HALF = [record(support={"a": ["0a"], "b": []})]
NINE = outcomes(9, 1)
TWO_GROUPS = [*outcomes(9, 1, group="x"), *outcomes(1, 1, group="y")]
EMPTY = [record(support={}), failure("f", "empty_response")]  # a reason of both kinds of rows
NOTHING = "no record has a value: "


@pytest.mark.parametrize(
    ("found", "gate", "passed", "finding"),
    [
        (NINE, {"at_least": 0.9}, [True], "mean 0.9000 (n 10,"),
        (NINE, {"at_least": 0.91}, [False], "mean 0.9000 (n 10,"),
        (NINE, {"metric": "hallucination_rate", "at_most": 0.1}, [True], "mean 0.1000"),
        (NINE, {"metric": "hallucination_rate", "at_most": 0.09}, [False], "mean 0.1000"),
        # What misses by little is shown with more digits.
        (outcomes(2, 1), {"at_least": 0.6667}, [False], "mean 0.66667 "),
        (outcomes(1, 2), {"at_most": 0.33333333}, [False], "mean 0.333333333 "),
        ([LOST], {"max_failed": 1, "max_undefined": 1}, [False], f"{NOTHING}1 refusal"),
        (EMPTY, {}, [False], f"{NOTHING}2 empty_response"),
        ([], {}, [False], f"{NOTHING}there are"),
        ([], {"by": "topic"}, [False], "there are no records"),
        (HALF, {"metric": "faithfulness", "on": "interval"}, [False], "too few records for an int"),
        (TWO_GROUPS, {"at_least": 0.8, "by": "topic"}, [True, False], "mean 0.9000"),
        ([*outcomes(5, 0), OTHER], {"at_least": 0.8}, [True, False], "mean 1.0000 (n 5,"),
    ],
)
def test_every_group_and_judge_must_reach_the_threshold(
    found: list[Outcome], gate: dict[str, Any], passed: list[bool], finding: str
) -> None:
    """Reaching it exactly is enough; without a value, records or an interval nothing is shown."""
    made = verdicts(found, **({} if "at_most" in gate else {"at_least": 0.0}) | gate)
    assert [verdict.passed for verdict in made] == passed
    assert made[0].finding.startswith(finding)


def test_on_the_interval_the_end_that_speaks_against_it_counts() -> None:
    """Nine of ten may be luck: the lower end for at least, the upper end for at most."""
    low, high = verdicts(NINE, at_least=0.7, at_most=0.95, on="interval")
    assert low.row is not None
    assert low.row.interval is not None
    assert (low.value, high.value) == (low.row.interval.low, low.row.interval.high)
    assert (low.passed, high.passed) == (False, False)
    assert verdicts(NINE, at_least=0.5, on="interval")[0].passed


def two_profiles(*, reference: int = 2, trace: int = 3) -> list[LabelRecord]:
    """Labels of rows with a reference answer, and poorer labels of rows without."""
    answer = reference_output([right(by=["0a"])], [expects(["0a"], found=True)])
    rich = [record(id=f"r{n}", answer=answer) for n in range(reference)]
    return [*rich, *(record(id=f"t{n}") for n in range(trace))]


def test_labels_that_lack_the_fields_are_noted_and_not_gated(check: Check) -> None:
    """Rows without a reference cannot miss a gate on it; every label counts where it can."""
    (verdict,) = verdicts(two_profiles(), "claim_f1", at_least=0.2)
    assert verdict.passed
    found, noted = verdict.finding.split("; ")
    assert found.startswith("mean 1.0000 (n 2, undefined 0, failed 0) by prompt reference/v1@")
    assert noted.startswith("not gated: 3 needs_reference by prompt trace/v1@")
    assert ", schema label-trace/v1@" in noted
    assert "judge:" not in verdict.finding
    code, out, _ = check(two_profiles(), "--min", "claim_f1=0.2", "--min", "adherence=0.5")
    assert (code, [line[:6] for line in out.splitlines()[:4]]) == (0, ["passed"] * 4)
    assert out.splitlines()[4:] == ["note: not checked: 3 records whose judge was not asked for it"]


def test_labels_that_all_lack_the_fields_miss_the_gate() -> None:
    """Nothing was measured; also in one group of several."""
    (verdict,) = verdicts(two_profiles(reference=0), "claim_f1", at_least=0.2)
    remedy = "labels of profile reference have what it needs"
    assert not verdict.passed
    assert verdict.finding == f"{NOTHING}3 needs_reference; {remedy}"
    assert f"(claim_f1) (3 needs_reference); {remedy}" in str(verdict)
    sides = zip(two_profiles(reference=1, trace=2), "xxy", strict=True)
    found = [relabeled(one, {"metadata": {"t": t}}) for one, t in sides]
    grouped = verdicts(found, "claim_f1", at_least=0.2, by="t")
    assert {v.group: v.passed for v in grouped} == {"x": True, "y": False}


def test_unreadable_rows_count_as_failed_of_every_configuration() -> None:
    """No judge was chosen for them, and each was to label them."""
    found: list[Outcome] = [failure(reason="missing_field"), *two_profiles()]
    for most, passes in ((0.05, False), (0.5, True)):
        made = verdicts(found, at_least=0.5, max_failed=most)
        assert [one.row and one.row.failed for one in made] == [{"missing_field": 1}] * 2
        assert [one.passed for one in made] == [passes] * 2


@pytest.mark.parametrize(
    ("found", "metric", "finding"),
    [
        (
            [*outcomes(10, 0), *(failure(f"f{n}") for n in range(90))],
            "adherence",
            "failed 90); 90 of 100 rows failed, more than 0.05 of them: 90 refusal; max_failed al",
        ),
        # Nothing relevant was found, so no precision; a definition that has one is named.
        (
            searches(10, 90),
            "context_precision",
            "max_undefined allows more; context_precision:ragas counts no_relevant_sentences as 0",
        ),
    ],
    ids=["failed", "undefined"],
)
def test_rows_without_a_value_miss_a_gate_that_the_others_keep(
    found: list[Outcome], metric: str, finding: str
) -> None:
    """Ten perfect labels say nothing of 90 rows."""
    (verdict,) = verdicts(found, metric, at_least=0.95)
    assert (verdict.passed, verdict.finding.partition(", ")[0]) == (False, "mean 1.0000 (n 10")
    assert finding in verdict.finding
    (loose,) = verdicts(found, metric, at_least=0.95, max_undefined=0.9, max_failed=0.9)
    assert loose.passed


@pytest.mark.parametrize(
    ("missing", "rows", "share"), [(1, 20, 0.05), (3, 10, 0.3), (7, 100, 0.07)]
)
def test_a_share_that_is_reached_exactly_is_allowed(missing: int, rows: int, share: float) -> None:
    """Compared as decimals, of failed and of undefined rows."""
    labels = searches(rows - missing, missing)
    failures = [failure(one.id) for one in labels]
    mixed = [*failures[:missing], *labels[missing:]]
    for most, passes in ((share, True), (share - 0.001, False)):
        (failed,) = verdicts(mixed, "relevance", at_least=0, max_failed=most)
        (undefined,) = verdicts(labels, "completeness", at_least=0, max_undefined=most)
        assert (failed.passed, undefined.passed) == (passes, passes)


UNASKED = ("no_probabilities", "no_citations", "not_measured_by_judge", "needs_anything")


@pytest.mark.parametrize("reason", [*UNASKED, "empty_response", "a_reason_of_a_third_party"])
def test_values_that_were_never_asked_for_are_shown_and_not_counted(reason: str) -> None:
    """A judge without probabilities has not failed."""
    metric = select_metrics(["adherence"])[0]
    values = [Ratio(1, 1), *[Ratio.missing(reason)] * 9]
    rows = [MetricsRow(str(n), {metric.id: one}, "judge", "") for n, one in enumerate(values)]
    (verdict,) = check_rows(rows, [Gate(metric, 0.5, at_least=True)])
    assert (verdict.passed, "undefined 9" in verdict.finding) == (reason in UNASKED, True)


def test_a_gate_in_the_wrong_direction_is_doubted() -> None:
    """Unless it ends a band; of metrics whose direction is known it is an error."""
    adherence = Demand("adherence", 0.9, at_least=False).gate()
    assert doubts([adherence, replace(adherence, at_least=True)]) == []
    assert doubts([adherence]) == [
        "adherence at most 0.9: higher is better, so at least may be meant, not at most"
    ]


def test_a_mean_of_exactly_its_threshold_passes() -> None:
    """Sums of rounded values came out below 6 % of short decimals."""
    metric = select_metrics(["adherence_fraction"])[0]
    for hundredths in range(3, 98):
        tops = [hundredths * 7 + step for step in (-20, 1, 6, 13)]
        rows = [
            MetricsRow(str(n), {metric.id: Ratio(top, 700)}, "judge", "")
            for n, top in enumerate(tops)
        ]
        for lower in (True, False):
            (verdict,) = check_rows(rows, [Gate(metric, hundredths / 100, lower)])
            assert verdict.passed, (hundredths, verdict.value)


# The command and its reports.


def test_the_command_says_what_it_found_and_exits_by_it(check: Check) -> None:
    """0 where all passed, 1 where one was missed."""
    gates = ("--min", "adherence=0.9", "--max", "hallucination_rate=0.1")
    code, out, err = check(NINE, *gates)
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "passed: all 2 gates",
        "passed: answers fully supported (adherence) .90, at least .9 asked for",
        "passed: answer sentences unsupported (hallucination_rate) .10, at most .1 asked for",
    ]
    code, out, _ = check(outcomes(8, 2), *gates)
    assert code == 1
    assert out.startswith(
        "MISSED: 2 of 2 gates\nMISSED by .10: answers fully supported (adherence) .80, at least "
        ".9 asked for; worst: g8, g9\n"
    )
    _, out, _ = check(outcomes(1, 199), "--min", "adherence=0.01")
    assert out.startswith("MISSED by .005: answers fully supported (adherence) .005, at least .01")
    _, out, _ = check(outcomes(8, 2), *gates, "--details")
    assert "adherence at least 0.9: mean 0.8000 (n 10, undefined 0, failed 0)\n  worst: 'g8'" in out


def test_the_command_gates_on_intervals(check: Check) -> None:
    """With a level, and a column whose values are observations."""
    options = ("--min", "adherence=0.5", "--on", "interval", "--level", 0.5)
    assert check(NINE, *options, "--group", "topic")[0] == 1
    code, out, _ = check(NINE, *options)
    assert code == 0
    assert re.search(
        r"^passed by .2.*\) \.90 \(\.7\d to \.9\d\), at least \.5 asked of the low", out
    )


def test_reports_name_missing_rows_and_the_option(check: Check) -> None:
    """JSON, and JUnit with each record."""
    gate, found = ("--min", "context_precision=0.95"), searches(10, 90)
    code, out, _ = check(found, *gate, "--json")
    (verdict,) = json.loads(out)
    assert (code, verdict["passed"], verdict["rows"], verdict["defined"]) == (1, False, 100, 10)
    assert verdict["undefined"] == {"no_relevant_sentences": 90}
    assert "--max-undefined allows more" in verdict["exceeded"][0]
    assert check(found, *gate, "--max-undefined", 0.9)[0] == 0
    assert check(found, *gate, "--junit", "out.xml", "--junit-per-record")[0] == 1
    suite = ET.parse("out.xml").getroot()[0]  # noqa: S314 - written a moment ago
    assert (suite.get("tests"), suite.get("failures")) == ("101", "91")
    (missed,) = suite[0]
    assert suite[0].get("name") == "context_precision at least 0.95"
    assert str(missed.get("message")).startswith("mean 1.0000 (n 10, undefined 90, failed 0)")
    assert "without a value: 'q10' no_relevant_sentences" in (missed.text or "")


def test_reports_show_a_strangers_text_as_text() -> None:
    """JUnit without what no XML may hold; in Markdown no cell ends early, no markup, no link."""
    made = verdicts(outcomes(1, 0, group=NASTY), at_least=0.5, by="topic")
    text, table = junit_report(made), markdown_report(made)
    assert not {"\x1b", "\u202e", "\ufffe"} & set(text)
    case = ET.fromstring(text).find("testsuite/testcase")  # noqa: S314 - written a moment ago
    assert case is not None
    assert 'a|b<script>&"<U+001B>[31m<U+202E>' in str(case.get("name"))
    row = table.splitlines()[-1]
    assert row.startswith('| ✅ | adherence at least 0\\.5 in a\\|b\\<script\\>\\&\\"')
    assert "\\_x\\_ \\[l\\]\\(http\\:\\/\\/x\\.example\\)" in row
    assert "\u202e" not in table


def test_the_summary_is_added_to_the_steps_file(
    check: Check, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Behind what stands there already; a file that cannot be written is an error."""
    asked, target = ("--min", "adherence=0.5", "--github"), tmp_path / "step.md"
    target.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(target))
    assert check(outcomes(0, 1), *asked)[0] == 1
    text = target.read_text(encoding="utf-8")
    assert text.startswith("before\n### labeler check\n\nMISSED by \\.50\\: answers fully ")
    assert "| ❌ | adherence at least 0\\.5 | mean 0\\.0000 " in text
    assert "\\; worst\\: \\'g0\\' 0\\.0000 |" in text
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path))
    code, _, err = check(outcomes(1, 0), *asked)
    assert (code, "cannot write the file of GITHUB_STEP_SUMMARY" in err) == (2, True)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY")  # printed outside of actions; next to JSON on stderr
    code, out, err = check(outcomes(1, 0), *asked)
    assert (code, "### labeler check\n\npassed by \\.50\\: " in out) == (0, True)
    assert "GITHUB_STEP_SUMMARY names no file" in err
    code, out, err = check(outcomes(1, 0), *asked, "--json")
    assert json.loads(out)
    assert "### labeler check" in err


# Assertions.


def test_an_assertion_that_fails_names_value_interval_counts_and_the_worst() -> None:
    """All that one needs to look further; control characters of ids are written out."""
    with pytest.raises(AssertionError) as caught:
        assert_metric([*outcomes(9, 3, group="\u202e"), LOST], "adherence", at_least=0.9)
    first, second, *_ = str(caught.value).splitlines()
    assert first.startswith(
        "MISSED: adherence at least 0.9: 95 % interval 0.4282 to 0.9452 (gaffke), mean 0.7500 "
        "(n 12, undefined 0, failed 1); 1 of 13 rows failed, more than 0.05 of them: 1 refusal;"
    )
    worst = (f"'\\u202e{n}' 0.0000" for n in (10, 11, 9))
    assert second == f"  worst: {', '.join(worst)}; failed: 'f' refusal"


GROUPS = [*outcomes(0, 2, group="x"), *outcomes(2, 7, group="y")]
BY_TOPIC = Intervals(group="topic")
FOUND = searches(18, 2)


@pytest.mark.parametrize(
    ("found", "gate", "message"),
    [
        (FOUND, {"metric": "completeness", "max_undefined": 0.1}, None),
        (FOUND, {"metric": "completeness"}, r"2 of 20 rows und(.|\n)*out a value: 'q18' no_rel"),
        ([*FOUND, LOST], {"metric": "relevance", "max_failed": 0.04}, "1 of 21 rows failed"),
        (GROUPS[:2], {"on": "interval", "intervals": BY_TOPIC}, "too few records for an i"),
        ([], {"at_least": 0.5}, r"adherence at least 0\.5"),
        (GROUPS, {"at_most": 0.1, "by": "topic"}, r"(?s)^(?!.*'x).*0\.1 in y.*'y0' 1.0000, 'y1'"),
    ],
)
def test_an_assertion_takes_the_options_of_the_command(
    found: list[Outcome], gate: dict[str, Any], message: str | None
) -> None:
    """Named as the command names them; the records are those of the group that misses."""
    with pytest.raises(AssertionError, match=message) if message else nullcontext():
        assert_metric(found, **{"metric": "adherence", "at_least": 0, **gate})


# Scores and similarity.


def faithful(*scores: int) -> list[ScoreRecord]:
    """Scores by a criterion that ships."""
    asked = CRITERIA["rubric_faithfulness"]
    return [
        score_record(score, asked=asked, row={"id": f"s{n}", "metadata": {"topic": "ab"[n % 2]}})
        for n, score in enumerate(scores)
    ]


LIKE = questions_record(0.9, 0.9, 0.9, id="q", noncommittal=False)
"""Written questions with this cosine each."""


def test_one_file_may_hold_every_kind(check: Check) -> None:
    """Each gate looks at its own; a failure to score fails no label."""
    refused = LOST.model_copy(update={"signature": faithful(4)[0].signature})
    found: list[AnyOutcome] = [*outcomes(1, 0), *faithful(4), refused, LIKE, score_record(4)]
    gates = ["adherence=1", "rubric_faithfulness=4", "answer_relevancy_similarity:ragas=0.8"]
    gates += ["tone=4", "tone:pass=1"]  # a criterion of one's own is known by the file
    asked = [part for gate in gates for part in ("--min", gate)]
    code, out, _ = check(found, *asked, "--max-failed", 0.5, "--json")
    assert code == 0
    counts = [(one["defined"], sum(one["failed"].values())) for one in json.loads(out)]
    assert counts == [(1, 0), (1, 1), (1, 0), (1, 0), (1, 0)]
    # Of the name of a label metric it is what its file holds.
    named = [score_record(4, asked=criterion(name="adherence"))]
    assert check(named, "--min", "adherence=4")[0] == 0


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("tune", "unknown metric 'tune'; did you mean 'tone'"),
        ("tone:pas", "did you mean 'tone:pass'"),
        ("answer_relevancy_similarty", "did you mean 'answer_relevancy_similarity'"),
        ("json:dumps", "'json:dumps' is not a metric"),
    ],
)
def test_an_unknown_name_is_told_with_the_criteria_of_the_file(
    check: Check, name: str, message: str
) -> None:
    """Beside the metrics of labels and of written questions."""
    code, _, err = check([score_record(4)], "--min", f"{name}=1")
    assert code == 2
    assert message in err
    assert ": tone, tone:pass" in err


def test_scores_are_gated_by_group_and_on_the_interval_of_their_scale(check: Check) -> None:
    """Forty of 5 say that few are worse; three of 1 say little, though 1 is a share of 1."""
    code, out, _ = check(faithful(5, 1, 5, 1), "--min", "rubric_faithfulness=3", "--by", "topic")
    assert (code, out.splitlines()[0]) == (1, "MISSED: 1 of 2 gates")
    options = ("--on", "interval")
    code, out, _ = check(faithful(*[5] * 40), "--min", "rubric_faithfulness=4.5", *options)
    assert code == 0
    assert "rubric_faithfulness 5.00 (4.65 to 5.00), at least 4.5 asked of the low end" in out
    assert check(faithful(1, 1, 1), "--max", "rubric_faithfulness=1.5", *options)[0] == 1
    assert check([score_record(4)], "--max", "tone=4")[::2] == (
        0,
        "tone at most 4: higher is better, so at least may be meant, not at most\n",
    )


def test_an_assertion_reads_a_file_of_any_kind(tmp_path: Path) -> None:
    """Also of scores and similarity; the worst records are named."""
    assert_metric([LIKE], "answer_relevancy_similarity", at_least=0.9, at_most=1)
    path = tmp_path / "scores.jsonl"
    write_labels(faithful(5, 2), path)
    assert_metric(path, "rubric_faithfulness:pass", at_least=0.5)
    with pytest.raises(AssertionError, match=r"worst: 's1' 2\.0000$"):
        assert_metric(path, "rubric_faithfulness", at_least=4)
    with pytest.raises(UnknownName, match="rubric_faithfulness:pass"):
        assert_metric(path, "rubric", at_least=4)


# The models that answered.


def answered(n: int, model: str | None, host: str | None = "a.test") -> LabelRecord:
    """A label for which ``none-1`` was asked."""
    reply = ReplyFacts(served_model=model, host=host)
    return sample_record(n).model_copy(update={"reply": reply})


@pytest.mark.parametrize(
    ("second", "fault"),
    [
        (answered(1, "none-1-2026-01-01"), None),
        (answered(1, None, None), None),
        (answered(1, "none-1-mini"), "not a version of it answered: 'none-1-mini'"),
        (answered(1, "none-1-2026-02-02"), "2 models answered: 'none-1-2026-01-01', 'none-1-2026-"),
        (answered(1, "none-1-2026-01-01", "b.test"), "2 hosts answered: 'a.test', 'b.test'"),
    ],
)
def test_a_gate_asks_for_one_model(check: Check, second: LabelRecord, fault: str | None) -> None:
    """A version of the model asked for, everywhere; records without a name prove nothing."""
    labels = [answered(0, "none-1-2026-01-01"), second]
    code, out, _ = check(labels, "--one-model")
    assert (code, "MISSED: one model: " in out) == (int(fault is not None), fault is not None)
    assert (fault or "no other") in out
    with pytest.raises(AssertionError, match=fault) if fault else nullcontext():
        assert_metric(labels, "adherence", one_model=True)
    # Other gates are kept by several models, and note them: a new snapshot breaks no build.
    first, *notes = check(labels, "--min", "relevance=0")[1].splitlines()
    assert first.startswith("passed by .50: ")
    models = len({one.reply.served_model for one in labels} - {None})
    assert [note[:24] for note in notes] == ["note: 2 models answered:"] * (models - 1)
