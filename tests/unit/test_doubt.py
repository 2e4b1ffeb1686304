"""Doubt: priors, calibration by corrections, files and rows."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from labeler.errors import UsageError
from labeler.evidence.certificate import Goal
from labeler.evidence.doubt import FEATURES, Doubt, fit_doubt
from labeler.evidence.plan import make_plan
from labeler.evidence.plan_files import read_plan, write_plan
from labeler.evidence.units import Units
from labeler.labels.record import LabelRecord, SentenceScores
from labeler.labels.signature import MAJORITY
from labeler.labels_object import Labels
from support.command import Command
from support.labeled import output, record


def overconfident(count: int) -> tuple[list[LabelRecord], dict[tuple[str, str], bool]]:
    """Labels whose stated log odds are twice the true ones, and what people would say."""
    random = np.random.default_rng(7)
    labels, truth = [], {}
    for n in range(count):
        odds = random.normal(1.0, 1.5, 2)
        stated = 1 / (1 + np.exp(-2 * odds))
        support = {key: ["0a"] if p >= 0.5 else [] for key, p in zip("ab", stated, strict=True)}
        scores = SentenceScores(
            support=dict(zip("ab", map(float, stated), strict=True)), adherence=0.5
        )
        labels.append(record(id=f"r{n}", support=support).model_copy(update={"scores": scores}))
        for key, odd in zip("ab", odds, strict=True):
            truth[f"r{n}", key] = bool(random.random() < 1 / (1 + np.exp(-odd)))
    return labels, truth


def test_corrections_calibrate_an_overconfident_judge() -> None:
    """After 200 corrections the expected calibration error is at most .05, and the order stays."""
    labels, truth = overconfident(2000)
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


def test_without_corrections_the_priors_follow_the_audit() -> None:
    """A record with a finding is doubted more than one without any."""
    plain = record(id="plain", documents=[["Tides turn at noon."]], support={"a": ["0a"]})
    odd = record(id="odd", documents=[["Tides turn at noon."]], support={"a": ["general"]})
    found = fit_doubt([plain, odd])
    assert found.corrections == 0
    assert found.coefficients == tuple(one.mean for one in FEATURES)
    assert "nobody corrected any" in repr(found)


def test_model_is_saved_and_applied_to_other_labels(tmp_path: Path) -> None:
    """The file holds coefficients alone; a broken or foreign one is named."""
    labels, truth = overconfident(60)
    found = fit_doubt(labels, truth)
    path = found.save(tmp_path / "m.json")
    assert Doubt.load(path).of(labels) == found
    for text in ("{}", "[]", "nonsense", path.read_text().replace("doubt/v1", "doubt/v0")):
        path.write_text(text)
        with pytest.raises(UsageError, match=r"m\.json"):
            Doubt.load(path)


def test_certify_reads_what_is_doubted_first(tmp_path: Path) -> None:
    """Doubts change the chances; a plan that was made with them is read with them only."""
    labels = [record(id=f"r{n}") for n in range(100)]
    doubts = {(f"r{n}", key): 0.5 if n < 10 else 0.01 for n in range(100) for key in "ab"}
    plan = make_plan(labels, Goal("adherence_fraction", within=0.02), doubts)
    assert sum(int(one.id[1:]) < 10 for one in plan.sentences) > 2 * 6  # 6 by weight alone
    write_plan(plan, tmp_path / "p.csv")
    assert read_plan(tmp_path / "p.csv", labels, doubts).sentences == plan.sentences
    with pytest.raises(UsageError, match="model of doubt"):
        read_plan(tmp_path / "p.csv", labels)


def test_votes_are_probabilities() -> None:
    """A verdict of two votes among three is doubted more, and forecast less, than one of all."""
    scores = SentenceScores(support={"a": 1.0, "b": 2 / 3}, relevance={"0a": 1.0})
    voted = record(id="r1").model_copy(update={"scores": scores})
    signature = voted.signature.model_copy(update={"judge": MAJORITY, "model": "3 votes"})
    majority = voted.model_copy(update={"signature": signature})
    all_three, two = fit_doubt([majority]).verdicts
    assert two.doubt > all_three.doubt + 0.2
    other_scale, same = fit_doubt([voted]).verdicts
    assert other_scale.doubt == pytest.approx(same.doubt, rel=0.2)
    assert Units([majority], "adherence_fraction").forecasts == pytest.approx([0.9, 0.1 + 1.6 / 3])
    assert Units([majority], "relevance").forecasts == pytest.approx([0.9, 0.1, 0.1])


def test_doubts_are_of_one_judge(tmp_path: Path, labeler_command: Command) -> None:
    """Doubts name records by id, so labels of two judges are refused, also by audit."""
    own = record(id="r1")
    signature = own.signature.model_copy(update={"model": "other"})
    both = [own, own.model_copy(update={"signature": signature, "key": "f" * 64})]
    model = fit_doubt([own])
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
    human.write_text("id,sentence,supported\nr9,a,no\n")
    code, _, err = labeler_command(*command)
    assert (code, "no correction is about" in err) == (2, True)


def test_audit_ranks_by_a_fitted_model(tmp_path: Path, labeler_command: Command) -> None:
    """With a model, the number before an id is the probability that a verdict is wrong."""
    odd = output(support={"a": []}, overall=True)
    labels = [record(id="r1"), record(id="r2", answer=odd)]
    Labels(labels).save(tmp_path / "l.jsonl")
    found = fit_doubt(labels, {("r1", "a"): True, ("r2", "a"): True})
    found.save(tmp_path / "m.json")
    code, out, _ = labeler_command(
        "audit", tmp_path / "l.jsonl", "--json", "--doubt", tmp_path / "m.json"
    )
    ranked = {one["id"]: one["doubt"] for one in json.loads(out)["doubtful"]}
    assert code == 0
    assert ranked
    assert all(found.by_record()[name] == doubt for name, doubt in ranked.items())
