"""Two sets of labels against each other: who is paired, what is said, what is named."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from labeler.api import write_labels
from labeler.calculators.intervals import Interval
from labeler.calculators.significance import Undefined
from labeler.comparing.compare import compare, compare_runs
from labeler.comparing.comparison import Flip, MetricComparison
from labeler.errors import UsageError
from labeler.labels.record import AnyOutcome, LabelRecord, Outcome
from labeler.sentences.display import WIDTH
from support.command import Command
from support.labeled import failure, record, reference_output, relabeled, right
from support.scored import record as score_record

BOTH: Mapping[str, Sequence[str]] = {"a": ["0a"], "b": ["0b"]}
HALF: Mapping[str, Sequence[str]] = {"a": ["0a"], "b": []}


def row(
    number: int,
    *,
    question: str | None = None,
    domain: str | float | None = "law",
    model: str = "test-1",
    trial: int = 0,
    **facts: Any,
) -> LabelRecord:
    """A label of a row that asks its own question, by some model; see :func:`labeled.record`."""
    shown = {
        "question": question or f"How high is tower {number}?",
        "metadata": {} if domain is None else {"domain": domain},
    }
    return relabeled(record(id=f"row-{number}", **facts), shown, model=model, trial=trial)


def rows(count: int, **facts: Any) -> list[LabelRecord]:
    """That many labels."""
    return [row(n, **facts) for n in range(count)]


def used(made: LabelRecord, keys: list[str]) -> LabelRecord:
    """The same label, whose judge named these utilized sentences, some of them again and again."""
    stored = made.label.model_copy(update={"all_utilized_sentence_keys": keys})
    return made.model_copy(update={"verbatim": stored})


def lost(number: int, made_by: LabelRecord | None = None) -> Outcome:
    """A row without a label."""
    return failure(f"row-{number}", made_by=made_by)


def compared(a: Sequence[Outcome], b: Sequence[Outcome], ids: str) -> MetricComparison:
    """One metric of two sides."""
    (found,) = compare(a, b, ids).rows
    return found


def test_a_metric_is_compared_pair_by_pair() -> None:
    """15 of 16 answers lose a sentence's support: .5 less each, 2 · 1.5^-15."""
    a = rows(16)
    b = [row(n, support=HALF if n else BOTH) for n in range(16)]
    found = compared(a, b, "adherence_fraction")
    assert (found.pairs, found.undefined_pairs, found.questions) == (16, 0, None)
    assert (found.mean_a, found.mean_b, found.difference) == (1.0, 0.53125, -0.46875)
    assert found.p == pytest.approx(2 * 1.5**-15, rel=0.02)
    assert found.p_adjusted == found.p
    assert isinstance(found.interval, Interval)
    assert found.interval.low < -0.46875 < found.interval.high < 0
    assert found.verdict == "worse"


LESS = rows(14, support=HALF)


@pytest.mark.parametrize(
    ("a", "b", "verdicts"),
    [
        # Fewer hallucinations are better, less faithfulness is worse; A against B is the reverse.
        (rows(14), LESS, ["worse", "worse"]),
        (LESS, rows(14), ["better", "better"]),
        # Two judges are higher and lower; a trial is no other judge.
        (rows(14), rows(14, support=HALF, model="test-2"), ["lower", "higher"]),
        (rows(14), rows(14, support=HALF, trial=1), ["worse", "worse"]),
    ],
)
def test_the_verdict_follows_the_direction_of_the_metric(
    a: list[LabelRecord], b: list[LabelRecord], verdicts: list[str]
) -> None:
    """Better and worse are said of one judge alone."""
    found = compare(a, b, "faithfulness,hallucination_rate")
    assert [one.verdict for one in found.rows] == verdicts
    assert found.same_judge == ("lower" not in verdicts)


def test_values_that_pass_1_are_compared_over_their_own_span() -> None:
    """A definition that counts keys as stored may pass 1; all groups of a metric share its span."""
    domains = ["law", "law", "art"] * 2
    a = [used(row(n, relevant=[], domain=domain), []) for n, domain in enumerate(domains)]
    b = [used(row(n, domain=domain), ["0a"] * 3 * (n + 1)) for n, domain in enumerate(domains)]
    found = compare(a, b, "utilization:ragbench, adherence", by="domain")
    assert found.whole is not None
    counted, other = found.whole.rows
    assert (counted.difference, counted.as_json()["span"], other.span) == (3.5, 6.0, 1.0)
    assert isinstance(counted.interval, Interval)
    assert -6 <= counted.interval.low < 3.5 < counted.interval.high <= 6
    groups = [one for one in found.rows if one.metric is counted.metric]
    found_in = {one.group: (one.mean_b, one.span) for one in groups}
    assert found_in == {"art": (4.5, 6.0), "law": (3.0, 6.0)}


def test_few_pairs_are_no_evidence_and_alike_ones_no_difference() -> None:
    """Where nothing differs there is nothing to test; the smaller of two p values counts twice."""
    asked = "adherence,adherence_fraction,relevance"
    _, fraction, relevance = compare(rows(2), rows(2, support=HALF), asked).rows
    assert (fraction.verdict, relevance.verdict) == ("no evidence", "no difference")
    assert relevance.p == relevance.p_adjusted == Undefined("equal_retrieval")
    yes_or_no, fraction, relevance = compare(rows(6), rows(6, support=HALF), asked).rows
    assert yes_or_no.p == pytest.approx(2 / 64, rel=0.01)
    assert isinstance(yes_or_no.p, float)
    assert (yes_or_no.p_adjusted, fraction.p_adjusted) == (2 * yes_or_no.p, fraction.p)
    assert relevance.p_adjusted == Undefined("equal_retrieval")


def test_equal_quantities_are_one_test() -> None:
    """Three names of one share of sentences, one of them turned around, count once."""
    a, b = rows(12), rows(12, support=HALF)
    found = compare(a, b, "adherence_fraction,faithfulness,hallucination_rate")
    assert found.tests == 1
    assert [one.p_adjusted for one in found.rows] == pytest.approx([2 * 1.5**-12] * 3, rel=0.02)
    assert {one.verdict for one in found.rows} == {"worse"}


def test_what_only_p_before_holm_shows_is_not_significant_and_says_so() -> None:
    """The interval, which is of p before Holm, does not hold 0."""
    a = rows(10)
    b = [row(n, support=HALF if n < 6 else BOTH, utilized=("0a", "0b")[: n % 2]) for n in range(10)]
    found = compare(a, b, "adherence,adherence_fraction,utilization")
    assert found.tests == 3
    assert found["adherence"].verdict == "not significant after Holm"
    interval = found["adherence"].interval
    assert isinstance(interval, Interval)
    assert interval.high < 0


def test_definedness_is_an_outcome_of_its_own() -> None:
    """Ten of twenty records lost their value: equal means say nothing about that."""
    a = rows(20)
    b = [row(n, relevant=() if n < 10 else ("0a",)) for n in range(20)]
    found = compared(a, b, "completeness")
    assert found.difference == 0
    assert found.verdict == "definedness differs"
    assert (found.definedness.only_a, found.definedness.only_b) == (10, 0)
    assert found.definedness.p == pytest.approx(2 / 1024, rel=0.01)
    assert found.definedness.p_adjusted == found.definedness.p
    assert found.as_json()["definedness"]["only_a"] == 10
    early, late = (
        [row(n, relevant=("0a",) if (n < 5) is first else ()) for n in range(10)]
        for first in (True, False)
    )
    even = compared(early, late, "completeness")
    assert (even.definedness.only_a, even.definedness.only_b, even.pairs) == (5, 5, 0)
    assert even.verdict == "definedness differs"


def test_equal_retrieval_is_about_the_judge() -> None:
    """Another answer to the same documents cannot find more; after other turns it can."""
    a = rows(12)
    b = rows(12, relevant=("0a", "0b"), support={"a": ["0b"]}, utilized=("0b",))
    found = compared(a, b, "relevance")
    assert (found.verdict, found.p) == ("judge inconsistency", Undefined("equal_retrieval"))
    assert found.as_json()["verdict"] == "judge_inconsistency"
    inconsistency = found.judge_inconsistency
    assert inconsistency is not None
    assert (inconsistency.pairs, inconsistency.lean) == (12, 1.0)
    assert inconsistency.mean_absolute_difference == found.difference
    assert inconsistency.flipped == 12 / inconsistency.sentences
    for name in ("utilization", "context_utilization_precision"):
        assert compared(a, b, name).judge_inconsistency is None
    later = compared(rows(20), rows(20, relevant=("0a", "0b"), turns=1), "relevance")
    assert (later.judge_inconsistency, later.verdict) == (None, "better")


def test_only_pairs_with_equal_retrieval_are_left_out() -> None:
    """In whatever order the documents stand, unless the metric is of their order."""
    first, second = ["Here.", "There."], ["Elsewhere."]
    a = rows(8, documents=[first, second])
    turned = rows(6, documents=[second, first], support={"a": ["0a"], "b": ["1a"]})
    relevance, precision = compare(a, [*turned, *a[6:]], "relevance,context_precision").rows
    assert relevance.judge_inconsistency is not None
    assert relevance.judge_inconsistency.pairs == 8
    assert precision.judge_inconsistency is not None
    assert (precision.pairs, precision.judge_inconsistency.pairs) == (6, 2)


def test_every_record_is_counted_once() -> None:
    """Pairs, one side alone, failures that no label follows, other questions; of joined files."""
    a = [*map(row, (1, 1, 2, 3)), lost(4), lost(5), row(6), row(7), lost(9), lost(1)]
    b = [row(1), row(2), lost(3), row(4), lost(5), row(6, question="Why?"), row(8)]
    counts = compare([*a, score_record(4)], b, "adherence").counts
    assert (counts.pairs, counts.same, counts.unlike) == (2, 2, {})
    assert (counts.only_a, counts.only_b) == (1, 1)
    assert (counts.failed_a, counts.failed_b, counts.failed_both) == (2, 1, 1)
    assert counts.left_out == {"question": 1}


def test_pairs_without_a_value_on_both_sides_are_counted_with_their_reasons() -> None:
    """They enter neither mean; where no pair is left, every figure says so."""
    a = [row(1), row(2, relevant=()), row(3, relevant=())]
    b = [row(1), row(2), row(3, relevant=())]
    found = compared(a, b, "completeness")
    assert (found.pairs, found.undefined_pairs) == (1, 2)
    assert found.undefined_a == {"no_relevant_sentences": 2}
    assert found.undefined_b == {"no_relevant_sentences": 1}
    assert found.interval == Undefined("too_few_pairs")
    none = compared(a[1:], a[1:], "completeness")
    assert none.verdict == "not tested"
    assert none.difference == none.p == Undefined("no_pairs")


def test_differences_are_exact() -> None:
    """A third gained twice and two thirds lost are 0; equal differences are listed by id."""

    def side(*supported: int) -> list[LabelRecord]:
        """Records of which so many of three sentences are supported."""
        return [
            row(n, support={key: ["0a"] if place < yes else [] for place, key in enumerate("abc")})
            for n, yes in enumerate(supported)
        ]

    found = compared(side(0, 1, 3), side(1, 2, 1), "adherence_fraction")
    assert (found.difference, found.change_in_words.partition(" ")[0]) == (0.0, "0")
    assert [one.id for one in found.moved] == ["row-2", "row-0", "row-1"]
    assert replace(found, difference=0.0004).change_in_words.startswith("+.0004 (")


def test_the_records_that_moved_most_come_first_with_their_flips() -> None:
    """What B counts more, and less; key b of one answer is not key b of the other."""
    a = [row(0), row(1), row(2, relevant=("0a", "1a")), row(3)]
    b = [row(0), row(1, support={"a": []}), row(2, relevant=("1a", "0b"), support=HALF), row(3)]
    found = compare(a, b, "context_precision,adherence_fraction")
    assert (found.counts.same, found.counts.unlike) == (3, {"response": 1})
    assert not found.same_sentences
    precision, fraction = found.rows
    other, same = fraction.moved
    assert precision.moved == ()
    assert (other.id, other.flips) == ("row-1", None)
    assert (same.id, same.a, same.b) == ("row-2", 1.0, 0.5)
    assert same.flips == (Flip("relevant", ("0b",), ("0a",)), Flip("supported", (), ("b",)))
    (first,) = compare(a, b, "adherence_fraction", top=1).rows[0].moved
    assert first == other


def test_pairs_are_compared_within_a_column() -> None:
    """Sides that differ are a group, but not a number and its text; texts may need quotes."""
    ours = ["law", "health", None, "law", "(differs)", "true", 2020, " ", "7"]
    theirs = [*ours[:3], "art", *ours[4:6], 2020.0, " ", 7, True]
    a, b = ([row(n, domain=one) for n, one in enumerate(side)] for side in (ours, theirs))
    found = compare(a, b, "adherence", by="domain").rows
    groups = ['" "', '"(differs)"', '"true"', "(differs)", "(none)", "2020", "7", "health", "law"]
    assert [(one.group, one.pairs) for one in found] == [(name, 1) for name in groups]
    of_csv, of_json = ([row(0, domain=one)] for one in ("True", True))
    assert compare(of_csv, of_json, "adherence", by="domain").rows[0].group == "true"


def test_the_first_metric_keeps_its_verdict_next_to_a_certain_one() -> None:
    """Where the judge alone explains a difference, the conclusion does not say that it saw none."""
    a = rows(24, relevant=(), utilized=())
    b = rows(24, relevant=("0a",), utilized=("0a", "0b"))
    found = str(compare(a, b, "relevance,utilization").conclusion)
    assert "same documents: retrieved sentences relevant 0 → .33" in found
    assert "no difference seen" not in found


def test_the_whole_comes_before_the_groups() -> None:
    """All pairs give what they give without groups."""
    a = [row(n, domain="x" if n < 12 else "y") for n in range(24)]
    b = [row(n, domain="x" if n < 12 else "y", support=BOTH if n > 13 else HALF) for n in range(24)]
    found, plain = compare(a, b, "adherence", by="domain"), compare(a, b, "adherence")
    assert found.whole is not None
    assert found.whole.rows == plain.rows
    assert found["adherence"] == plain["adherence"]
    assert [*found.by_group] == [None, "x", "y"]
    assert found.conclusion == plain.conclusion
    assert next(found.regressions()) == next(plain.regressions())
    published = found.as_json()
    assert published["whole"] == plain.as_json()["comparisons"]


ELSE = row(2, model="test-2")
FULL = str(row(1).signature)


@pytest.mark.parametrize(
    ("a", "chosen", "failed", "only_b", "signatures"),
    [
        # Another one begins with it, as a second trial's does.
        ([row(1), row(1, trial=1), lost(2, row(2, trial=1)), lost(3)], FULL, 1, 1, 1),
        # Those that failed before a judge was chosen count.
        ([row(1), lost(2, ELSE), lost(3), ELSE], "test-1", 1, 1, 1),
        # By its own signature, also where no label of that very signature is there.
        ([row(1), lost(2, row(2)), lost(3, row(3, model="test-12"))], "/test-1", 2, 0, 1),
        # Rows with sentences of their own have another splitter than the rest of their run.
        ([row(1), ELSE], "test/", 0, 1, 2),
    ],
)
def test_a_choice_counts_the_labels_and_failures_that_fit_it(
    a: list[Outcome], chosen: str, failed: int, only_b: int, signatures: int
) -> None:
    """A signature given in full means itself; a part fits all that have it."""
    found = compare(a, [row(n) for n in range(1, 4)], "adherence", signature=chosen)
    assert (found.counts.failed_a, found.counts.only_b) == (failed, only_b)
    assert len(found.a.signatures) == signatures


def test_a_side_of_several_profiles_has_the_metrics_of_the_richest() -> None:
    """Labels of one run may be of several profiles; those without the fields have no value."""
    rich = record(id="row-1", answer=reference_output([right("a", ["0a"])], []))
    side = [rich, record(id="row-2")]
    found = compare(side, side, signature="test")["claim_precision"]
    assert found.undefined_a == {"needs_reference": 1, "no_reference_claims": 1}
    plain = compare(side, side[1:], signature="test").rows
    assert "claim_precision" not in {one.metric.id for one in plain}


ONE = [row(1)]
TWO_WAYS = [row(1), row(2), row(1, model="test-2", support=HALF)]


@pytest.mark.parametrize(
    ("a", "b", "options", "words"),
    [
        ([*ONE, row(1, support=HALF)], ONE, {}, "A: outcome 2: record 'row-1' has another answer"),
        (TWO_WAYS, ONE, {}, r"(?s)2 ways.*(signature).*test/test-1.*\(2 labels\)"),
        (TWO_WAYS, ONE, {"signature": "test-3"}, r"(?s)no label fits signature=.test-3.*test-1"),
        (TWO_WAYS, ONE, {"signature": "test/"}, "'row-1' was labeled in 2 ways"),
        (ONE, [row(2)], {}, r"1 label \('row-1'\).*'row-2'.*joined by id"),
        ([lost(1)], ONE, {}, r"A: no label: 1 record failed \(1 refusal\)"),
        (ONE, [row(1, question="Why?")], {}, r"1 in question.*\(id_from\)$"),
        (ONE, [score_record(4)] * 2, {}, "B: no labels, but 2 records of kind 'score'"),
        (ONE, ONE, {"by": "kind"}, r"no row has a column 'kind'.*columns: domain"),
        (ONE, ONE, {"by": ["kind"]}, "one metadata column"),
        (ONE, ONE, {"level": 95}, "level"),
        (ONE, ONE, {"top": -1}, "top"),
    ],
)
def test_sides_that_cannot_be_compared_are_refused(
    a: list[AnyOutcome], b: list[AnyOutcome], options: dict[str, Any], words: str
) -> None:
    """Which of two labels should count? The message shows what is there, and how to choose."""
    with pytest.raises(UsageError, match=words):
        compare(a, b, **options)


def test_the_order_of_lines_changes_no_figure() -> None:
    """To the last digit, with shared questions, and the records that are named."""
    a = [row(n, question=f"Q{n // 2}?") for n in range(60)]
    b = [row(n, question=f"Q{n // 2}?", support=HALF if n % 3 else BOTH) for n in range(60)]
    forth, back = compare(a, b), compare(a[::-1], [*b[30:], *b[:30]])
    assert forth.rows == back.rows


def test_several_sets_are_compared_with_the_first_as_one_family_of_tests() -> None:
    """Each set has its own pairs and figures; p values are adjusted for the tests of all."""
    base = rows(8)
    worse, alike = rows(8, support=HALF), rows(6)
    found = compare_runs([base, worse, alike, worse], "adherence")
    alone = compare(base, worse, "adherence").rows[0]
    assert [one.rows[0].verdict for one in found] == ["worse", "no difference", "worse"]
    assert [one.rows[0].pairs for one in found] == [8, 6, 8]
    assert (found[0].tests, found[0].rows[0].p) == (2, alone.p)
    assert isinstance(alone.p, float)
    assert found[0].rows[0].p_adjusted == 2 * alone.p
    assert "D: answers fully supported" in repr(found)
    assert found[1].letter == "C"
    assert "; but 2 of 8 records with a label in A have none in C" in str(found[1].conclusion)


def test_lost_values_are_a_regression() -> None:
    """Rows without a label, or without a value, count beyond 5 %, whatever the verdicts."""
    base = rows(40)
    assert [*compare(base, base[:38]).regressions()] == []
    assert [*compare(base, [*base[:37], lost(37)]).regressions()] == [
        "3 of 40 records with a label in A have none in B"
    ]
    assert [*compare(base, [*base, *map(lost, range(40, 50))]).regressions()] == []
    asked = [row(n, question=f"Another question, {n}?") for n in range(37)]
    assert [*compare(base, [*asked, *base[37:39]]).regressions()] == [
        "38 of 40 records with a label in A have none of the same question in B"
    ]
    empty = rows(40, relevant=(), documents=(3, 1))
    assert [*compare(base, empty, "completeness").regressions()] == [
        "40 of 40 records have a value of relevant sentences used in A and none in B"
    ]
    other = [one.model_copy(update={"not_measured": ("completeness",)}) for one in base]
    assert [*compare(base, other, "completeness").regressions()] == []
    both = [*other[:30], *base[30:]], [*other[:30], *empty[30:]]
    (found,) = compare(*both, "completeness").regressions()
    assert found.startswith("10 of 40 records have a value of relevant sentences used in A")


@pytest.fixture
def command(labeler_command: Command) -> Command:
    """The command, beside two label files."""
    write_labels(rows(8), "a.jsonl")
    write_labels([*rows(7, support=HALF), lost(7)], "b.jsonl")
    return labeler_command


def test_the_command_begins_with_the_conclusion(command: Command) -> None:
    """Then the metrics with values in words, the records that moved, and the missing records."""
    code, out, err = command("compare", "a.jsonl", "b.jsonl", "--top", "1")
    assert (code, err) == (0, "")
    assert out.startswith("B is worse: 7 fewer of 7 answers fully supported, -1 (-1 to")
    assert "answers fully supported: row-0 1 → 0" in out
    assert "\nB is b.jsonl: 7 records in both, 1 failed in B\n" in out
    table = out[out.index("──") :].partition("\n\n")[0].splitlines()
    assert len(table) == 1 + 6
    assert max(map(len, table)) <= 80
    assert len(command("compare", "a.jsonl", "b.jsonl", "--all")[1]) > len(out)
    assert not re.search("Holm|undefined|signature|_", out)


def test_details_have_the_tests_and_the_flips(command: Command) -> None:
    """Below the conclusion; no table is wider than a page."""
    asked = ("--metrics", "adherence,relevance", "--top", "1", "--details")
    _, out, _ = command("compare", "a.jsonl", "b.jsonl", *asked)
    assert out.startswith("B is worse: ")
    assert "7 records in both, 1 failed in B" in out
    lines = [line.split() for line in out.splitlines()]
    (figures, tests) = [line for line in lines if line[:1] == ["adherence"] and len(line) > 1]
    assert figures[:6] == ["adherence", "↑", "7", "1.0000", "0.0000", "-1.0000"]
    assert [*figures[8:], *tests[2:]][:3] == ["worse", "0.0155", "0.0155"]
    assert "row-0: 1.0000 → 0.0000 (supported -b)" in out
    assert "row-1" not in out
    assert max(len(line) for line in out.splitlines() if "──" in line) <= WIDTH


def test_groups_are_rows_of_one_table(command: Command) -> None:
    """Of the first metric; all metrics of each group where they are asked for."""
    write_labels([row(n, support={"a": ["0a"]}) for n in range(8)], "c.jsonl")
    for more, words in (
        ((), "answers fully supported, by domain"),
        (("--all",), "domain: law"),
        (("--details",), "0 of them have the same sentences in both; 8 have another response"),
        (("b.jsonl", "--details"), "C against A, domain: law"),
    ):
        assert words in command("compare", "a.jsonl", "c.jsonl", "--by", "domain", *more)[1]


def test_the_command_fails_where_something_is_worse(command: Command) -> None:
    """Exit 1 and the reasons; 0 for a set that is as good."""
    options = ("--metrics", "adherence", "--fail-on", "worse")
    assert command("compare", "b.jsonl", "a.jsonl", *options)[::2] == (0, "")
    code, out, err = command("compare", "a.jsonl", "b.jsonl", *options)
    assert (code, "B is" in out) == (1, True)
    assert err.splitlines() == [
        "B (b.jsonl): worse: 7 fewer of 7 answers fully supported, -1 (-1 to -.18)",
        "B (b.jsonl): 1 of 8 records with a label in A has none in B",
    ]


def test_three_files_are_one_table_and_a_page(command: Command) -> None:
    """A column a file, the figures of each below, and the same as HTML, escaped."""
    write_labels(rows(8), "<c>.jsonl")
    three = ("compare", "a.jsonl", "b.jsonl", "<c>.jsonl")
    code, out, _ = command(*three, "--metrics", "adherence")
    assert code == 0
    assert out.startswith("Against A: B worse; C no difference seen.\n")
    assert "C against A" in out
    assert command(*three, "--html", "page.html")[0] == 0
    page = Path("page.html").read_text()
    assert ("&lt;c&gt;.jsonl" in page, "<c>" in page) == (True, False)
    names = [one["b"]["name"] for one in json.loads(command(*three, "--json")[1])]
    assert names == ["b.jsonl", "<c>.jsonl"]
