"""Certificates: bets that cannot be won against the truth, plans, answers and refusals."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import permutations
from math import exp, log
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labeler.data.corrections.file import CorrectionsFile
from labeler.errors import UnknownName, UsageError
from labeler.evidence.certificate import Certificate, Goal
from labeler.evidence.looks import Design, Looks, fit_logistic, logit
from labeler.evidence.plan import Plan, make_plan, stream_interval
from labeler.evidence.plan_files import read_answers, read_plan, write_plan
from labeler.evidence.units import CERTIFIABLE, Answer, Item, Readings
from labeler.labels.record import LabelRecord
from labeler.labels_object import Labels
from support.command import Command
from support.judged import correction, judgment
from support.labeled import record, relabeled, with_question
from support.plans import read_cells, write_cells
from support.samples import keyed_example

WEIGHTS = np.array([0.1, 0.3, 0.2, 0.25, 0.15])
TOPS = np.array([1.0, 0.0, 1.0, 0.0, 1.0])
FORECASTS = np.array([0.9, 0.6, 0.7, 0.2, 0.4])
SCALES = np.array([0.3, 0.5, 0.45, 0.4, 0.5])


@pytest.mark.parametrize("bottoms", [np.ones(5), np.array([1.0, 1.0, 1.0, 0.0, 1.0])])
@pytest.mark.parametrize("above", [True, False], ids=["above", "below"])
def test_no_bet_against_the_truth_gains_over_all_orders(bottoms: np.ndarray, above: bool) -> None:
    """Over every order of drawing, a bettor against the true ratio keeps 1 on average."""
    truth = float((WEIGHTS * TOPS).sum() / (WEIGHTS * bottoms).sum())
    sizes = np.minimum(1.0, FORECASTS + 0.3)
    mass, expected = WEIGHTS * SCALES, 0.0
    for order in permutations(range(5), 4):
        looks, chance, left = Looks(WEIGHTS, FORECASTS, sizes, error=0.05), 1.0, mass.sum()
        for unit in order:
            chance *= mass[unit] / left
            left -= mass[unit]
        for look in (order[:1], order[1:]):
            units = np.array(look)
            looks.forecasts = FORECASTS
            design = Design(SCALES, above=0.5, below=0.9)
            looks.learn(list(look), design, TOPS[units], bottoms[units])
        expected += chance * exp(looks.draws.log_wealth(truth, above=above))
    assert expected == pytest.approx(1.0)


def test_worked_bet_on_two_units() -> None:
    """Two equal units, forecast one half, the first answer yes: by hand."""
    half, ones = np.array([0.5, 0.5]), np.ones(2)
    looks = Looks(half, half, ones, error=0.05)
    looks.forecasts = half
    looks.learn([0], Design(half, above=0.25, below=0.25), np.array([1.0]), np.array([1.0]))
    # Expected 1/2 before the draw; the answer is 1/2 above its forecast and counts twice by the
    # chance of 1/2, so the estimate is 1. The stake is 0.25 over the spread 0.5.
    assert looks.draws.log_wealth(0.4, above=True) == pytest.approx(log(1 + 0.5 * (1 - 0.4)))
    assert (looks.low, looks.high) == (0.5, 1.0)


def test_chances_are_proportional_to_weight_and_scale() -> None:
    """The first draw follows the recorded chances."""
    mass = WEIGHTS * SCALES
    random = np.random.default_rng(3)
    counts = np.zeros(5)
    for _ in range(4000):
        looks = Looks(WEIGHTS, FORECASTS, np.ones(5), error=0.05)
        drawn, chance = looks.draw(Design(SCALES, 0.5, 0.5), random.random(5), 2)
        counts[drawn[0]] += 1
        assert chance[0] == pytest.approx(mass[drawn[0]] / mass.sum())
    assert counts / 4000 == pytest.approx(mass / mass.sum(), abs=0.03)


def test_logistic_fit_is_the_maximum_of_its_posterior() -> None:
    """No step in any direction raises the posterior, also from a start far away."""
    random = np.random.default_rng(5)
    features = np.stack([np.ones(80), logit(random.random(80))], axis=1)
    answers = (random.random(80) < 0.3).astype(float)
    means, deviations = np.array([0.0, 3.0]), np.array([1.0, 0.5])

    def posterior(values: np.ndarray) -> float:
        line = features @ values
        prior = (((values - means) / deviations) ** 2).sum() / 2
        return float((answers * line - np.logaddexp(0, line)).sum() - prior)

    found = fit_logistic(features, answers, means, deviations)
    steps = 1e-3 * np.array([[1, 0], [-1, 0], [0, 1], [0, -1]])
    assert all(posterior(found) >= posterior(found + step) for step in steps)


def labels(count: int = 60) -> list[LabelRecord]:
    """Labels of two response sentences, every fifth with an unsupported one."""
    return [
        record(id=f"r{n}", support={"a": ["0a"], "b": [] if n % 5 == 0 else ["0b"]})
        for n in range(count)
    ]


def answered(plan: Plan, *, wrong: int = 7) -> dict[Item, Answer]:
    """Answer a plan as the judge does, but for every seventh record."""
    return {
        (one.id, one.sentence): (one.sentence == "a" or int(one.id[1:]) % 5 != 0)
        != (int(one.id[1:]) % wrong == 0 and one.sentence == "a")
        for one in plan.sentences
    }


def finished(
    found: Plan | Certificate,
    answers: Callable[[Plan], dict[Item, Answer]] = answered,
    who: str = "ann",
) -> Certificate:
    """Answer looks, the second readings with yes, until there is a certificate."""
    while isinstance(found, Plan):
        second = dict.fromkeys(found.again, True)
        found = found.certificate(answers(found), second=second, who=who)
    return found


def test_certificate_holds_the_value_that_people_would_give() -> None:
    """With the width that was asked for, or a value far from the threshold on its side."""
    found = finished(make_plan(labels(400), Goal("adherence_fraction", within=0.06)))
    low, high = found.interval
    assert found.checked < found.sentences
    assert (high - low) / 2 <= 0.06
    assert low <= 1 - (80 + 58) / 800 <= high
    assert found.judged == pytest.approx(0.9)
    found = finished(make_plan(labels(400), Goal("adherence_fraction", at_least=0.5)))
    assert "at least 0.5" in found.conclusion
    assert found.interval[0] >= 0.5


@pytest.mark.parametrize("metric", CERTIFIABLE)
def test_reading_everything_gives_the_exact_value(metric: str) -> None:
    """With all sentences read, the value is the metric over people's answers."""
    plan = make_plan(labels(20), Goal(metric, within=0.001))
    found = finished(plan, lambda one: {two[:2]: two.sentence in "a0a" for two in one.sentences})
    expected = {"hallucination_rate": 0.5, "adherence_fraction": 0.5, "adherence": 0.0}
    assert found.value == pytest.approx(expected.get(metric, 1 / 3))
    assert found.interval == pytest.approx((found.value, found.value))


def test_certificates_do_not_depend_on_the_order_of_labels() -> None:
    """What is read, the value and the interval are equal to the last digit."""
    own = [record(id=f"r{n}", documents=[1 + n % 7]) for n in range(150)]
    goal, found = Goal("utilization", within=0.06, seed=13), []
    for given in (own, own[::-1], own[1::2] + own[::2]):
        one = finished(
            make_plan(given, goal),
            lambda plan: {one[:2]: int(one.id[1:]) % 8 > 0 for one in plan.sentences},
        )
        found.append((one.looks, one.value, one.interval, one.digests["plan"]))
    assert found[0] == found[1] == found[2]


def test_a_plan_says_how_many_sentences_are_missing() -> None:
    """Fewer than a certificate needs at least, or than the plan asks for, are not promised."""
    plan = make_plan(labels(), Goal("adherence_fraction", within=0.3))
    assert plan.needed >= len(plan.sentences) == 60
    following = plan.certificate(dict.fromkeys(list(answered(plan))[:20], True))
    assert isinstance(following, Plan)
    assert following.needed == len(following.sentences) == 40
    plan = make_plan(labels(), Goal("adherence", within=0.4))
    none = plan.certificate({one[:2]: False for one in plan.sentences if one.sentence == "a"})
    assert isinstance(none, Plan)
    assert none.needed >= 50 - len(none.answers)


def test_rounding_does_not_contradict_the_verdict() -> None:
    """An end that is near the threshold has as many digits as show its side; so has the value."""
    found = finished(make_plan(labels(20), Goal("adherence_fraction", at_least=0.9)))
    for interval, shown in (
        ((0.8998, 0.95), " 95.00 % (89.98 to 95.00 %"),
        ((0.85, 0.89996), " 89.996 % (85.000 to 89.996 %"),
        ((0.9, 0.95), " 95.0 % (90.0 to 95.0 %"),
    ):
        assert shown in replace(found, value=interval[1], interval=interval).conclusion
    goal = Goal("adherence_fraction", at_least=0.9999999)
    assert f"{goal}, " in replace(found, goal=goal, interval=(1.0, 1.0)).conclusion
    assert f"{goal}" == "at least 0.9999999"


def test_population_is_wider_than_the_records() -> None:
    """The stream's interval contains that of the records; too narrow a wish is refused."""
    goal = Goal("adherence_fraction", within=0.15, population=True)
    own = [with_question(one, f"Question {n // 2}?") for n, one in enumerate(labels(200))]
    found = finished(make_plan(own, goal))
    (low, high), alone = found.interval, finished(make_plan(own, replace(goal, population=False)))
    assert high - low > alone.interval[1] - alone.interval[0]
    assert len(found.looks) <= 3  # a look reads what the stream's interval needs, not the records'
    with pytest.raises(UsageError, match="label more records") as caught:
        make_plan(own, Goal("adherence_fraction", within=0.01, population=True))
    possible = float(str(caught.value).partition("ask for within ")[2].split()[0])
    make_plan(own, Goal("adherence_fraction", within=possible, population=True))


@pytest.mark.parametrize("largest", [1, 40], ids=["equal questions", "one large question"])
def test_a_stream_is_held_where_errors_are_few(largest: int) -> None:
    """Exact chance, over samples of 50 questions or more, that the interval holds.

    Wilson's comes down to 0.87; questions that count by Kish's effective number to 0.96.
    """
    sizes, error = [largest] + [1] * (49 if largest == 1 else 360), 0.025
    questions = [f"{place}?" for place, size in enumerate(sizes) for _ in range(size)]
    own = [with_question(record(id=f"r{n}"), text) for n, text in enumerate(questions)]
    count = len(own)
    ends = [stream_interval(own, k / count, k / count, error) for k in range(count + 1)]
    if largest == 1:
        # By hand: the end of Clopper and Pearson.
        assert ends[count] == pytest.approx(((error / 2) ** (1 / count), 1.0), rel=1e-3)
    for truth in (0.04, 0.5, 0.9, 0.97, 0.997):
        chances = np.ones(1)
        for size in sizes:
            chances = np.convolve(chances, [1 - truth, *[0.0] * (size - 1), truth])
        held = [p for p, (low, high) in zip(chances, ends, strict=True) if low <= truth <= high]
        assert sum(held) >= 1 - error


def test_records_without_the_metric_say_nothing_of_it() -> None:
    """Without a relevant sentence completeness is not 0, nor do they count in a stream."""

    def relevant(plan: Plan) -> dict[Item, Answer]:
        return {one[:2]: one.id.startswith("False") or None for one in plan.sentences}

    goal = Goal("completeness", at_least=0.99, population=True)  # undecided until all is read
    found = []
    for others in (0, 60):
        plan = make_plan([record(id=f"{n < others} {n}") for n in range(others + 30)], goal)
        found.append(finished(plan, relevant).interval)
    assert found[0] == pytest.approx(found[1])
    # Completeness of records without a relevant sentence is not 0.
    plan = make_plan(labels(4), Goal("completeness", within=0.1))
    assert 0.5 < plan.value < 1  # the judge's forecast, before any answer
    with pytest.raises(UsageError, match="completeness is undefined"):
        plan.certificate({one[:2]: None for one in plan.sentences})


def test_second_readings_may_come_after_the_next_plan() -> None:
    """They change neither draws nor the value."""
    plan = make_plan(labels(), Goal("adherence_fraction", within=0.05))
    second = {plan.again[0]: True}
    following = plan.certificate(answered(plan))
    assert isinstance(following, Plan)
    later = following.certificate({}, second=second)
    assert isinstance(later, Plan)
    assert (later.second, later.sentences) == (second, following.sentences)


def test_wrong_answers_are_refused() -> None:
    """Answers about other sentences, with gaps, or that are neither yes nor no."""
    plan = make_plan(labels(), Goal("adherence_fraction", within=0.05))
    given = answered(plan)
    first = next(iter(given))
    wrong: list[tuple[Any, dict[str, Any], str]] = [
        (dict.fromkeys(((one.id, "b") for one in labels()), True) | given, {}, "did not draw"),
        ({1: True}, {}, "no label has it"),
        ({("1", "a"): True}, {}, "no label has it"),
        ({item: yes for item, yes in given.items() if item != first}, {}, "no answer for"),
        ({}, {}, "no new answer: the plan asks for 60 other sentences"),
        ({**given, first: np.ones(2)}, {}, "True or False"),
        ({**given, first: None}, {}, "True or False"),
        ({**given, first: "yes"}, {}, "True or False"),
        ([True], {}, "answers are a mapping"),
        (given, {"who": [1]}, "who is a name"),
        (given, {"who": 3}, "who is a name"),
        (given, {"second": {first: "yes"}}, "True or False"),
    ]
    for answers, more, message in wrong:
        with pytest.raises(UsageError, match=message):
            plan.certificate(answers, **more)


def test_a_person_may_stop_after_any_sentence() -> None:
    """The first answers of a plan count, and earlier answers cannot change later."""
    plan = make_plan(labels(), Goal("adherence_fraction", within=0.05))
    some = dict(list(answered(plan).items())[:30])
    following = plan.certificate(some)
    assert isinstance(following, Plan)
    assert following.looks == (30,)
    assert following.sentences == plan.sentences[30:]  # nothing that was seen can be left out
    at_once, later = (one.certificate(answered(plan)) for one in (plan, following))
    assert (later.looks, later.interval) == (at_once.looks, at_once.interval)
    changed = {item: not yes for item, yes in some.items()}
    with pytest.raises(UsageError, match="begin a new plan"):
        following.certificate(changed)
    plan = make_plan(labels(), Goal("adherence", within=0.05))
    name = plan.sentences[0].id
    following = plan.certificate({(name, "a"): False})  # one no settles the response
    assert isinstance(following, Plan)
    with pytest.raises(UsageError, match="another answer has settled its record"):
        following.certificate({(name, "b"): True})


def test_labels_of_two_judges_or_one_id_are_refused() -> None:
    """Answers name a record by its id, so it must be one label of one judge."""
    goal = Goal("adherence", within=0.1)
    with pytest.raises(UsageError, match="two labels have the id"):
        make_plan([*labels(3), record(id="r1", relevant=())], goal)
    with pytest.raises(UsageError, match="two judge configurations"):
        make_plan([*labels(3), relabeled(labels(4)[3], model="other")], goal)


TENTH: dict[str, Any] = {"metric": "adherence", "within": 0.1}


def test_a_goal_is_one_number() -> None:
    """A width or a threshold, between 0 and 1, of a metric that can be certified."""
    wrong: list[dict[str, Any]] = [{"within": None}, {"within": 0.0}, {"within": "x"}]
    for one in (*wrong, {"at_least": 0.9}, {"level": 1.0}, {"seed": "x"}):
        with pytest.raises(UsageError):
            Goal(**TENTH | one)
    for metric in ("context_precision", ["adherence"]):
        with pytest.raises(UnknownName):
            Goal(**TENTH | {"metric": metric})


def test_a_finished_plan_stays_finished(tmp_path: Path, labeler_command: Command) -> None:
    """The same answers give the same certificate; later or changed ones are refused."""
    own, plan, answers = (tmp_path / name for name in ("l.jsonl", "p.csv", "a.csv"))
    records = [with_question(one, f"{one.id}?") for one in labels(200)]
    Labels(records).save(own)
    asked = ("certify", own, "--plan", plan)
    assert labeler_command(*asked, "--at-least", "0.6")[0] == 0
    drawn = [(row["id"], row["sentence"]) for row in read_cells(plan)]
    lines = [f"{name},{key},yes\n" for name, key in dict.fromkeys(drawn)]

    def answer(*given: str) -> tuple[int, str, str]:
        answers.write_text("".join(["id,sentence,answer\n", *given]))
        return labeler_command(*asked, "--answers", answers)

    assert answer(*lines[:20])[0] == 1
    code, first, _ = answer(*lines)
    assert (code, answer(*lines)[1]) == (0, first)
    read = [row for row in read_cells(plan) if row["reading"] == "2"]
    again = [f"{row['id']},{row['sentence']},yes\n" for row in read]
    code, out, _ = answer(*again, *again)
    assert (code, f"{len(again)} of {len(again)} answers agree" in out) == (0, True)
    unread = next(f"{one.id},a,yes\n" for one in records if (one.id, "a") not in drawn)
    said = CorrectionsFile(tmp_path / "c.jsonl")
    said.append(correction(records[int(drawn[0][0][1:])], judgment(support={})))
    for (code, _, err), message in (
        (answer(unread), "is finished"),
        (answer(lines[0].replace("yes", "no")), "in an earlier look"),
        (answer(again[0], again[0].replace("yes", "no")), "in an earlier look"),
        (labeler_command(*asked, "--answers", said.path), "in an earlier look"),
    ):
        assert (code, message in err) == (2, True), err


def test_corrections_answer_a_plan(tmp_path: Path, labeler_command: Command) -> None:
    """Corrections, also those imported from another tool, answer drawn sentences up to a gap."""
    own, plan, said = (tmp_path / name for name in ("l.jsonl", "p.csv", "c.jsonl"))
    records = [with_question(one, f"{one.id}?") for one in labels(40)]
    Labels(records).save(own)
    asked = ("certify", own, "--plan", plan)
    assert labeler_command(*asked, "--at-least", "0.4", "-o", tmp_path / "c.json")[0] == 2
    assert not plan.exists()
    assert labeler_command(*asked, "--at-least", "0.4")[0] == 0
    drawn = [row["id"] for row in read_cells(plan)]
    late = next(name for name in drawn if drawn.index(name) >= 30)
    file = CorrectionsFile(said)
    file.append(*(correction(one, judgment()) for one in records if one.id != late))
    code, out, err = labeler_command(*asked, "--answers", said)
    assert (code, f"after {drawn.index(late)} sentences" in out) == (1, True), err
    file.append(correction(records[int(late[1:])], judgment(), by="bo"))
    code, _, err = labeler_command(*asked, "--answers", said, "-o", tmp_path / "c.json")
    found = json.loads((tmp_path / "c.json").read_text())
    assert (code, found["who"]) == (0, ["ann", "bo"]), err


def test_corrections_of_completeness_have_three_answers(tmp_path: Path) -> None:
    """A sentence that a person does not call relevant is not relevant, whether used or not."""
    own = record()
    said = judgment(relevant=["0a", "0b"], utilized=["0a", "1a"])
    CorrectionsFile(tmp_path / "c.jsonl").append(correction(own, said))
    plan = make_plan([own], Goal("completeness", within=0.1))
    found = read_answers(tmp_path / "c.jsonl", plan)
    assert found.answers == {("r1", "0a"): True, ("r1", "0b"): False, ("r1", "1a"): None}


def test_plan_file_holds_all_there_is(tmp_path: Path) -> None:
    """A plan that is read again goes on as the one in memory, look after look.

    An apostrophe of an id's own is not taken for one that the file added.
    """
    ids = ["=", "'=", "''=", "'-", " '@", "'quoted' "]
    own = [record(id=f"{ids[n % 6]}{n}") for n in range(150)]
    path = tmp_path / "plan.csv"
    plan: Plan | Certificate = make_plan(own, Goal("adherence_fraction", within=0.05))
    while isinstance(plan, Plan):
        write_plan(plan, path)
        again = read_plan(path, own)
        assert again.sentences == plan.sentences
        assert (again.answers, again.looks) == (plan.answers, plan.looks)
        assert (again.who, again.second) == (plan.who, plan.second)
        plan = plan.certificate({one[:2]: one.sentence == "a" for one in plan.sentences}, who="ann")
    changed = [record(id=own[0].id, relevant=()), *own[1:]]
    with pytest.raises(UsageError, match="made of other labels"):
        read_plan(path, changed)


def test_answers_file_has_two_readings_and_people(tmp_path: Path) -> None:
    """A second row is a second reading, and a person's row counts once; no word is guessed."""
    path, item = tmp_path / "answers.csv", ("=1+1", "a")
    plan = make_plan(labels(1), Goal("adherence_fraction", within=0.1))
    rows = "'=1+1,a,Yes,ann,x\n'=1+1,a,no,bo,\nr,b,,ann,\n"
    for text in (rows, rows + rows):
        path.write_text(f"id,sentence,answer,annotator,note\n{text}")
        assert read_answers(path, plan) == ({item: True}, {item: False}, ("ann", "bo"))
    first, second = "'=1+1,a,1.0,1.0\n", "'=1+1,a,0.0,2.0\n"  # as a data frame writes them
    for text, again in ((first + first, {}), (second + first + second, {item: False})):
        path.write_text(f"id,sentence,answer,reading\n{text}")  # a pasted row is no second reading
        assert read_answers(path, plan) == ({item: True}, again, ())
    for text, message in (
        ("r,a,1,ann\nr,a,0,ann\n", r"answers\.csv:3: another answer of 'ann'"),
        ("r,a,maybe,\n", r"answers\.csv:2: answer is 'maybe'"),
        ("r,a,,\n", "no answer is there"),
    ):
        path.write_text(f"id,sentence,answer,annotator\n{text}")
        with pytest.raises(UsageError, match=message):
            read_answers(path, plan)
    with pytest.raises(UsageError, match="as which a spreadsheet can be saved"):
        read_answers(tmp_path / "answers.xlsx", plan)


def test_certificate_is_saved_as_json_and_as_an_inert_page(tmp_path: Path) -> None:
    """The file has every fact; hostile names are escaped on the page."""
    found, other = (
        finished(make_plan(labels(30), Goal("adherence_fraction", within=width)), who="<script>x")
        for width in (0.001, 0.0010001)
    )
    read = json.loads(found.save(tmp_path / "c.json").read_text())
    assert (read["interval"], read["checked"]) == ([*found.interval], 60)
    assert 6 <= read["second_read"] <= 8
    assert set(read["digests"]) == {"labels", "prompt", "plan", "answers"}
    assert found.digests["plan"] != other.digests["plan"]
    assert "<script>x" not in found.save(tmp_path / "c.html").read_text()
    with pytest.raises(UsageError, match=r"\.json file or a \.html page"):
        found.save(tmp_path / "c.pdf")
    differ = f"{found.second_read - found.second_agreed} of {found.second_read}"
    assert f"60 sentences read, {differ} second answers differ." in str(found)
    assert f"Digest of labels: {found.digests['labels']}" in str(found)  # below the table


def test_command_plans_then_certifies(tmp_path: Path, labeler_command: Command) -> None:
    """A filled-in plan is a file of answers; every output begins with its conclusion."""
    own, plan, answers = (tmp_path / name for name in ("l.jsonl", "p.csv", "a.csv"))
    Labels(labels(200)).save(own)
    goal = ("--metric", "adherence_fraction", "--at-least", "0.6")
    code, out, _ = labeler_command("certify", own, *goal, "--plan", plan)
    assert (code, out.startswith("Read 60 of 400 sentences first, 6 of them twice")) == (0, True)
    asked = ("certify", own, "--plan", plan, "--answers")
    for _ in range(9):
        write_cells(answers, ({**row, "answer": "yes"} for row in read_cells(plan)))
        code, out, _ = labeler_command(*asked, answers, "-o", tmp_path / "c.json")
        if not code:
            break
        assert out.startswith("Not yet: about ")
    assert out.startswith("Answer sentences supported: at least 0.6, ")
    assert json.loads((tmp_path / "c.json").read_text())["who"] == []
    other_metric = (*asked, answers, "--metric", "relevance")
    for wrong, message in (
        (("certify", own, *goal, "--plan", plan), "is a plan already"),
        ((*asked, plan), "under another name"),
        ((*asked, "export.json"), "corrections import"),
        (other_metric, "was planned with metric adherence_fraction, not relevance"),
    ):
        code, _, err = labeler_command(*wrong)
        assert (code, message in err) == (2, True)


def test_answers_to_other_texts_are_refused(tmp_path: Path) -> None:
    """A plan of other responses, or that a stranger altered, was read for another sentence."""
    answers, path = tmp_path / "answers.csv", tmp_path / "plan.csv"
    example = keyed_example(response=["Paris is in the north of France.", "Yes."])
    own = [relabeled(record(), vars(example))]
    plan = make_plan(own, Goal("adherence_fraction", within=0.1))
    write_plan(plan, path)
    row = next(row for row in read_cells(path) if row["sentence"] == "a") | {"answer": "yes"}
    for same in ({}, {"text": "  paris is in the NORTH of France. "}, {"question": "1"}):
        write_cells(answers, [row | same])
        assert read_answers(answers, plan).answers == {("r1", "a"): True}
    asked = {"ask": CERTIFIABLE["utilization"].ask}  # the sentence is the same, the answer is not
    for other in (asked, {"text": "Paris is in Spain."}, {"evidence": "Nobody knows where it is."}):
        write_cells(answers, [row | other])
        with pytest.raises(UsageError, match=rf"answers\.csv:2: {next(iter(other))} is "):
            read_answers(answers, plan)
    write_plan(plan.after(Readings({("r1", "a"): True}, {})), path)
    write_cells(path, (one | {"text": "Paris is in Spain, now."} for one in read_cells(path)))
    with pytest.raises(UsageError, match=r"plan\.csv:2: text is "):
        read_plan(path, own)
