"""Doubt: priors, calibration by corrections, files and rows."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import labeler
from labeler.audit import examine, findings_of, suspicion_score
from labeler.comparing.calibration import Threshold, calibrate
from labeler.comparing.human_labels import HumanLabel, HumanLabels
from labeler.errors import UsageError
from labeler.evidence.certificate import Goal
from labeler.evidence.doubt import MEANS, PRIORS, Doubt, fit_doubt
from labeler.evidence.looks import sigmoid
from labeler.evidence.plan import make_plan
from labeler.evidence.plan_files import read_plan, write_plan
from labeler.evidence.units import Units
from labeler.judges.embedded import second_opinion
from labeler.labels.answers import GENERAL, SecondOpinion
from labeler.labels.record import LabelRecord, SentenceScores
from labeler.labels.signature import MAJORITY
from labeler.labels_object import Labels
from support.audited import judged
from support.command import Command
from support.labeled import record, relabeled
from support.plans import read_cells


def overconfident(count: int) -> tuple[list[LabelRecord], dict[tuple[str, str], bool]]:
    """Labels whose stated log odds are twice the true ones, and what people would say."""
    random = np.random.default_rng(8)
    odds = random.normal(1.0, 1.5, (count, 2))
    said = random.random((count, 2)) < sigmoid(odds)
    labels = stating(map(tuple, sigmoid(2 * odds).tolist()))
    items = product(map(str, range(count)), "ab")
    return labels, dict(zip(items, said.ravel().tolist(), strict=True))


def test_corrections_calibrate_an_overconfident_judge() -> None:
    """After 200 corrections the expected calibration error is at most .05, and the order stays."""
    labels, truth = overconfident(1000)
    some = dict(list(truth.items())[:200])
    rest = [one for one in fit_doubt(labels, some).verdicts if (one.id, one.sentence) not in some]
    doubts = np.array([one.doubt for one in rest])
    wrong = np.array([one.supported != truth[one.id, one.sentence] for one in rest], dtype=float)
    places = (doubts * 10).astype(int)
    error = sum(abs((doubts - wrong)[places == place].sum()) for place in range(10)) / len(rest)
    assert error <= 0.05
    stated = {one.id: one.scores.support for one in labels if one.scores}
    sure = np.array([abs(stated[one.id][one.sentence] - 0.5) for one in rest])
    assert np.corrcoef(np.argsort(np.argsort(doubts)), np.argsort(np.argsort(-sure)))[0, 1] > 0.95


def test_without_corrections_the_priors_say_what_to_check_first() -> None:
    """Of verdicts that are as likely to be wrong, the first one."""
    found = fit_doubt([record(id="one"), record(id="other")])
    assert found.corrections == 0
    assert found.coefficients == tuple(MEANS)
    assert repr(found).startswith("Check one, sentence a, first: of 4 verdicts none looks more")


def test_model_is_saved_and_applied_to_other_labels(tmp_path: Path) -> None:
    """The file holds coefficients alone; a broken or foreign one is named."""
    labels, truth = overconfident(60)
    found = fit_doubt(labels, truth)
    path = found.save(tmp_path / "m.json")
    assert Doubt.load(path).of(labels) == found
    plans = [Labels(labels).certify("adherence", within=0.1, doubt=one) for one in (found, path)]
    assert plans[0].sentences == plans[1].sentences
    for text in ("{}", "[]", "nonsense", path.read_text().replace("doubt/v1", "doubt/v0")):
        path.write_text(text)
        with pytest.raises(UsageError, match=r"m\.json"):
            Doubt.load(path)


def test_certify_reads_what_is_doubted_first(tmp_path: Path, labeler_command: Command) -> None:
    """Doubts change the chances; a plan keeps the model, also one fitted to other labels."""
    labels = [record(id=f"r{n}", support={"a": ["0a"] if n > 19 else []}) for n in range(200)]
    weights = dict.fromkeys(PRIORS, 0.0) | {"every verdict": -4.6, "verdict: not supported": 4.6}
    doubt = Doubt(tuple(weights.values()), 200)
    plan = make_plan(labels, Goal("adherence_fraction", within=0.02), doubt)
    assert sum(int(one.id[1:]) < 20 for one in plan.sentences) > 1.5 * 6  # 6 by weight alone
    forecasts = Units(labels[19:21], "adherence_fraction", doubt).forecasts
    assert forecasts == pytest.approx([0.5, 0.99], abs=1e-3)
    other = [one.model_copy(update={"key": "f" * 64}) for one in labels[20:]]
    again = make_plan(labels, plan.goal, doubt.of(other))
    assert again.sentences == plan.sentences
    write_plan(plan, tmp_path / "p.csv")
    assert read_plan(tmp_path / "p.csv", labels).sentences == plan.sentences
    with pytest.raises(UsageError, match="certify relevance without"):
        make_plan(labels, Goal("relevance", within=0.02), doubt)
    Labels(labels).save(tmp_path / "l.jsonl")
    doubt.save(tmp_path / "d.json")
    asked = ("certify", tmp_path / "l.jsonl", "--plan", tmp_path / "q.csv")
    assert labeler_command(*asked, "--within", ".02", "--doubt", tmp_path / "d.json")[0] == 0
    rows = read_cells(tmp_path / "q.csv")
    first = tuple((row["id"], row["sentence"]) for row in rows if row["reading"] == "1")
    assert first == tuple(one[:2] for one in plan.sentences)
    (tmp_path / "a.csv").write_text("id,sentence,answer\n" + f"{','.join(first[0])},yes\n")
    assert labeler_command(*asked, "--answers", tmp_path / "a.csv")[0] == 1


def test_votes_are_probabilities() -> None:
    """A verdict of two votes among three is doubted more, and forecast less, than one of all."""
    scores = SentenceScores(support={"a": 1.0, "b": 2 / 3}, relevance={"0a": 1.0})
    voted = record(id="r1").model_copy(update={"scores": scores})
    majority = relabeled(voted, judge=MAJORITY, model="3 votes")
    all_three, two = fit_doubt([majority]).verdicts
    assert two.doubt > all_three.doubt + 0.2
    other_scale, same = fit_doubt([voted]).verdicts
    assert other_scale.doubt == pytest.approx(same.doubt, rel=0.2)
    assert Units([majority], "adherence_fraction").forecasts == pytest.approx([0.9, 0.1 + 1.6 / 3])
    assert Units([majority], "relevance").forecasts == pytest.approx([0.9, 0.1, 0.1])


def test_doubts_are_of_one_judge(tmp_path: Path, labeler_command: Command) -> None:
    """Doubts name records by id, so labels of two judges are refused, also by audit."""
    own = record(id="r1")
    both, model = [own, relabeled(own, model="other")], fit_doubt([own])
    with pytest.raises(UsageError, match="one configuration at a time"):
        model.of(both)
    model.save(tmp_path / "m.json")
    Labels(both).save(tmp_path / "l.jsonl")
    code, _, err = labeler_command("audit", tmp_path / "l.jsonl", "--doubt", tmp_path / "m.json")
    assert (code, "one configuration at a time" in err) == (2, True)


def test_command_prints_a_row_for_each_verdict(tmp_path: Path, labeler_command: Command) -> None:
    """Rows have id, sentence and a probability; human labels of other rows are an error."""
    Labels([record(id="r1"), record(id="r2")]).save(tmp_path / "l.jsonl")
    human = tmp_path / "h.csv"
    human.write_text("id,sentence,supported\nr1,a,no\nr1,b,yes\n")
    command = ("doubt", tmp_path / "l.jsonl", "--human", human)
    code, out, _ = labeler_command(*command, "--rows")
    rows = [json.loads(line) for line in out.splitlines()]
    assert (code, len(rows)) == (0, 4)
    assert all(0 < row["doubt"] < 1 for row in rows)
    saved = ("--second-opinion", "-o", tmp_path / "m.json")
    code, _, err = labeler_command(*command, *saved)
    assert (code, "ask no second judge" in err, saved[-1].exists()) == (2, True, False)
    human.write_text("id,sentence,supported\nr9,a,no\n")
    code, _, err = labeler_command(*command)
    assert (code, "no correction is about" in err) == (2, True)


def test_audit_ranks_all_verdicts_by_a_fitted_model(
    tmp_path: Path, labeler_command: Command
) -> None:
    """Also those without a finding; the conclusion counts verdicts that are likely wrong."""
    records, _ = overconfident(60)
    weights = {name: mean for name, (mean, _) in PRIORS.items()} | {"verdict: not supported": 9.0}
    found = Doubt(tuple(weights.values()), 200).of(records)
    found.save(tmp_path / "m.json")
    Labels(records).save(tmp_path / "l.jsonl")
    command = ("audit", tmp_path / "l.jsonl", "--doubt", tmp_path / "m.json")
    _, out, _ = labeler_command(*command, "--json", "--top", 60)
    ranked = {one["id"]: one["doubt"] for one in json.loads(out)["doubtful"]}
    assert ranked == found.by_record()
    assert [*ranked.values()] == sorted(ranked.values(), reverse=True)
    rows = [json.loads(line) for line in labeler_command(*command, "--rows")[1].splitlines()]
    assert sum(row["check"] == "doubt" for row in rows) == 120
    likely = {one.id for one in found.verdicts if one.doubt >= 0.5}
    assert {row["id"] for row in rows if row["severity"] != "note"} >= likely
    assert f"look suspicious. Look first at: {next(iter(ranked))}" in labeler_command(*command)[1]


def test_wrong_corrections_are_named(tmp_path: Path) -> None:
    """Neither a sentence that the record lacks nor a third answer is passed over."""
    own = [record(id="r1")]
    for said, message in (
        ({("r1", "a"): True, ("r1", "z"): True}, "('r1', 'z') is not about a"),
        ({("r1", "0a"): True}, "is not about a response sentence"),
        ({("r1", "a"): "yes"}, "True or False"),
        ({"r1": True}, "is not about a response sentence"),
        ([("r1", "a")], "corrections are a mapping"),
        ({("r2", "a"): True}, "no correction is about"),
    ):
        with pytest.raises(UsageError) as caught:
            fit_doubt(own, said)  # type: ignore[arg-type]  # the point of it
        assert message in str(caught.value)
    (tmp_path / "h.csv").write_text("id,sentence,supported\nr1,a,yes\nr1,c,yes\n")
    with pytest.raises(UsageError, match="is not about a response sentence"):
        fit_doubt(own, tmp_path / "h.csv")
    with pytest.raises(UsageError, match="no label to doubt"):
        fit_doubt([])


def stating(stated: Iterable[tuple[float, float]]) -> list[LabelRecord]:
    """Labels whose two sentences have these probabilities of support."""
    found = []
    for n, (one, two) in enumerate(stated):
        support = {key: ["0a"] if p >= 0.5 else [] for key, p in (("a", one), ("b", two))}
        scores = SentenceScores(support={"a": one, "b": two}, adherence=0.5)
        found.append(record(id=f"{n}", support=support).model_copy(update={"scores": scores}))
    return found


def people(verdicts: list[tuple[bool, bool]]) -> HumanLabels:
    """One person's verdicts on both sentences of each record."""
    labels = [
        HumanLabel(str(n), "supported", key, "ann", float(said), "here")
        for n, pair in enumerate(verdicts)
        for key, said in zip("ab", pair, strict=True)
    ]
    return HumanLabels(tuple(labels), 0, ())


def test_worked_numbers() -> None:
    """Bins, error and thresholds of eight verdicts, as computed by hand."""
    stated = [(0.95, 0.25), (0.85, 0.2), (0.85, 0.65), (0.65, 0.25)]
    said = [(True, False), (True, False), (False, True), (True, True)]
    (found,) = calibrate(stating(stated), people(said), precision=0.75).kinds
    filled = {one.low: (one.verdicts, one.observed) for one in found.bins if one.verdicts}
    assert filled == {0.2: (3, 1 / 3), 0.6: (2, 1.0), 0.8: (2, 0.5), 0.9: (1, 1.0)}
    # 3 * |.7/3 - 1/3| + 2 * |.65 - 1| + 2 * |.85 - .5| + |.95 - 1|, over 8
    assert found.calibration_error == pytest.approx((0.3 + 0.7 + 0.7 + 0.05) / 8)
    best, precise = found.best_balanced_accuracy, found.with_precision
    assert best.specificity == pytest.approx(2 / 3)
    assert (best.value, best.sensitivity) == (0.5, 4 / 5)
    assert (precise.value, precise.precision) == (0.5, 4 / 5)


def test_of_equal_thresholds_the_one_nearest_one_half_is_best() -> None:
    """Here .2 and .6 are equal, but not when rates are rounded before they are added."""
    stated = [(0.6, 0.1), (0.5, 0.1), (0.3, 0.7)]
    said = [(True, False), (False, False), (True, True)]
    (found,) = calibrate(stating(stated), people(said)).kinds
    assert found.best_balanced_accuracy.value == 0.6


def test_a_calibrated_judge_has_a_small_error_and_a_known_threshold() -> None:
    """Intervals hold the true values: no error, threshold one half."""
    rng = random.Random(3)  # noqa: S311 - test data
    stated = [(rng.random(), rng.random()) for _ in range(200)]
    said = [(rng.random() < a, rng.random() < b) for a, b in stated]
    (found,) = calibrate(stating(stated), people(said)).kinds
    assert found.calibration_error < 0.06
    assert found.interval is not None
    # Of verdicts stated at t or above, (1 + t) / 2 are right: .9 at t = .8.
    for threshold, truth in ((found.best_balanced_accuracy, 0.5), (found.with_precision, 0.8)):
        assert threshold.interval is not None
        assert threshold.interval.low < truth < threshold.interval.high


@pytest.mark.parametrize(
    "likely", [(0.9, 0.2), (0.9999, 0.9998), (1.0, 0.0), (0.12345678, 0.12345677)]
)
def test_the_printed_threshold_divides_as_reported(likely: tuple[float, float]) -> None:
    """Labels moved to it have the reported accuracy, however close probabilities are."""
    labels = stating([likely] * 20)
    (kind,) = calibrate(labels, people([(True, False)] * 20)).kinds
    best = kind.best_balanced_accuracy
    assert best.balanced_accuracy == 1
    moved = Labels(labels).at(support=float(str(best.value)))
    found = {(one.sentence, one.supported) for one in fit_doubt(moved).verdicts}
    assert found == {("a", True), ("b", False)}


def test_undefined_is_not_zero() -> None:
    """People who always say no leave no best threshold, and none with a precision."""
    (found,) = calibrate(stating([(0.9, 0.1)] * 9), people([(False, False)] * 9)).kinds
    assert found.best_balanced_accuracy == Threshold(undefined="one_class")
    assert found.with_precision.undefined == "not_reached"


def test_labels_without_probabilities_are_refused() -> None:
    """And so are verdicts on whole records alone, and a precision that is no share."""
    labels, human = stating([(0.9, 0.2)]), people([(True, False)])
    overall = HumanLabel("0", "overall_supported", None, "", 1.0, "here")
    with pytest.raises(UsageError, match="gave no probabilities"):
        calibrate([record(id="0")], human)
    with pytest.raises(UsageError, match="judges no sentence"):
        calibrate(labels, HumanLabels((overall,), 0, ()))
    with pytest.raises(UsageError, match="precision"):
        calibrate(labels, human, precision=1.5)


def test_the_command_and_the_report(tmp_path: Path, labeler_command: Command) -> None:
    """Both read people's rows; few verdicts are warned of; the page has a plot and a table."""
    labels, human = str(tmp_path / "l.jsonl"), tmp_path / "people.csv"
    labeler.api.write_labels(stating([(0.9, 0.2)] * 30), labels)
    lines = [f"{n},{key},{word}" for n in range(30) for key, word in (("a", "yes"), ("b", "no"))]
    human.write_text("id,sentence,supported\n" + "\n".join(lines))
    code, out, _ = labeler_command("thresholds", labels, "--human", human)
    assert code == 0
    assert "off by .15 (.10 to .25) on average; too few verdicts to choose" in out
    assert "people judged 60 verdicts; a threshold needs 100" in out
    code, out, _ = labeler_command("thresholds", labels, "--human", human, "--json")
    found: Any = json.loads(out)
    assert found["kinds"][0]["calibration_error"] == pytest.approx(0.15)
    page = tmp_path / "report.html"
    assert labeler_command("report", labels, "-o", page, "--human", human)[0] == 0
    assert 'id="reliability-support-t"' in page.read_text()
    assert labeler_command("thresholds", labels)[0] == 2


SAID = {
    "The tower is 120 metres high.": ["0a"],
    "It was opened in 1931 by the mayor.": [],
    "Ferries carry elephants to Madagascar every night.": ["1a"],
}
"""The second is stated and called unsupported; the third is made up and called supported."""
DISAGREES = "second_opinion_disagrees"
ODD = relabeled(judged(SAID))


def test_it_finds_both_wrong_verdicts_and_raises_suspicion() -> None:
    """Findings of other checks stay; an opinion that agrees raises it less."""
    opinion = SecondOpinion({"a": 0.95, "b": 0.99, "c": 0.02}, frozenset())
    findings, suspicion = examine(ODD, opinion)
    assert [one.keys for one in findings if one.check == DISAGREES] == [("b",), ("c",)]
    assert [one for one in findings if one.check != DISAGREES] == [*findings_of(ODD)]
    assert suspicion > suspicion_score(findings_of(ODD))
    agreeing = SecondOpinion({"a": 0.99, "b": 0.02, "c": 0.99}, frozenset())
    assert suspicion > examine(ODD, agreeing)[1]
    # .85 is undecided; the odds of .5 are .85 to .15 against support.
    opinion = SecondOpinion({"a": 0.85, "b": 0.5, "c": 0.0}, frozenset())
    assert opinion.disagreements(ODD.label) == pytest.approx({"a": 0.5, "b": 0.15, "c": 1.0})


def test_general_is_odd_for_a_sentence_with_a_claim() -> None:
    """Unless the other judge takes it for a general remark too."""
    made = judged({"The tower is 120 metres high.": [GENERAL], "I hope this helps.": [GENERAL]})
    check = "general_makes_a_claim"
    opinion = SecondOpinion({"a": 0.9, "b": 0.9}, frozenset(["b"]))
    assert [one.keys for one in findings_of(made, check, opinion)] == [("a",)]
    agreeing = SecondOpinion({"a": 0.9, "b": 0.9}, frozenset(["a", "b"]))
    assert findings_of(made, check, agreeing) == findings_of(made, check) == ()


def test_the_embedded_judge_scores_each_sentence_of_any_response() -> None:
    """Whatever the splitter; a response without sentences gets no opinion."""
    found = second_opinion(ODD)
    assert found is not None
    assert list(found.support) == ["a", "b", "c"]
    assert all(0 <= support <= 1 for support in found.support.values())
    empty = ODD.example.model_copy(update={"response": ()})
    assert second_opinion(ODD.model_copy(update={"example": empty})) is None


@pytest.mark.parametrize("place", ["labels.jsonl", "store"])
def test_an_audit_has_one_on_request_and_writes_nothing(
    tmp_path: Path, place: str, labeler_command: Command
) -> None:
    """Neither in a store nor next to a file; by default its checks apply to no record."""
    path = tmp_path / place
    if place == "store":
        labeler.label([{"id": "r", "question": "Q?", "documents": ["A."], "response": "A."}],
                      judge="embedded", store=path, progress=False)  # fmt: skip
    else:
        path.write_text(ODD.model_dump_json() + "\n", encoding="utf-8")
    before = {*tmp_path.rglob("*")}
    code, out, _ = labeler_command("audit", path, "--json", "--second-opinion")
    checks = {row["check"]: row["flagged"] for row in json.loads(out)["checks"]}
    assert (code, checks[DISAGREES]) == (0, int(place != "store"))
    rows = json.loads(labeler_command("audit", path, "--json")[1])["checks"]
    assert [row["records"] for row in rows if row["check"] == DISAGREES] == [0]
    asked = labeler.load(path).audit(second_opinion=True)
    flagged = sum(any(f.check == DISAGREES for f in one.findings) for one in asked.records)
    assert flagged == checks[DISAGREES]
    of_open_stores = {*tmp_path.rglob("*-shm"), *tmp_path.rglob("*-wal")}
    assert {*tmp_path.rglob("*")} - of_open_stores == before


def test_only_verdicts_on_sentences_count_as_ties() -> None:
    """Two people who are tied on one of two sentences are not tied on the answer, too."""
    ann = people([(True, False)]).labels
    bob = [one._replace(annotator="bob", value=1.0) for one in ann]
    found = calibrate(stating([(0.9, 0.2)]), HumanLabels((*ann, *bob), 0, ()))
    assert found.matched.ties == 1
    assert "left out, because people are tied: 1 verdict" in found.warnings
