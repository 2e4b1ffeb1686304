"""Judges that answer with probabilities, before a server of both of their APIs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import labeler
from injection.attacks import ATTACKS, POSITIONS
from labeler.errors import UsageError
from labeler.judges.decisions import DecisionsJudge, RequestLimits, SystemOneJudge
from labeler.judges.decisions.questions import Question, decision_prompt
from labeler.judges.openai.error_rules import ObservedError
from labeler.labels.record import LabelFailure, LabelRecord, Outcome
from labeler.report.views import record_view
from support.command import Command
from support.payloads import PAYLOADS
from support.real_data import needs_ragbench, published_labels
from wire.calls import Json
from wire.decider import KEY, Answer, Asked, Decider, oracle, shares
from wire.runs import brief

JUDGES = (DecisionsJudge, SystemOneJudge)
each_api = pytest.mark.parametrize("judge", JUDGES, ids=lambda judge: judge.provider)
ROW: Json = {
    "id": "1",
    "question": "Which color?",
    "documents": ["It is a lamp. It is red.", "Chairs are wood."],
    "response": "It is a lamp. It is blue.",
}
LIKELY = {"0a": 0.875, "0b": 0.5, "1a": 0.1, "a": 0.875, "b": 0.25}


def likely(asked: Asked) -> Any:
    """Probabilities of the row."""
    if not asked.options:
        return LIKELY[asked.key]
    return {"0a": 0.5, "0b": 0.25, "1a": 0.2, "none": 0.05}


def labeled(
    server: Decider, kind: type[DecisionsJudge], rows: Any = (ROW,), **options: Any
) -> list[Outcome]:
    """Label rows with the server's model."""
    judge = kind("m", api_key=KEY, base_url=server.url, sleep=brief, max_attempts=2)
    store = labeler.MemoryStore()
    return list(labeler.iter_labels(rows, judge=judge, **{"store": store, **options}))


def of_one(outcomes: list[Outcome]) -> LabelRecord:
    """The only outcome, a label."""
    (found,) = outcomes
    assert isinstance(found, LabelRecord), found
    return found


@each_api
def test_one_request_makes_a_label(judge: type[DecisionsJudge]) -> None:
    """Verdicts at one half, supporting keys from the choice, probabilities as they came."""
    with Decider(likely) as server:
        record = of_one(labeled(server, judge))
    assert len(server.requests) == record.reply.attempts == 1
    label, scores = record.label, record.scores
    assert label.all_relevant_sentence_keys == label.all_utilized_sentence_keys == ("0a", "0b")
    support = label.sentence_support_information
    assert [(one.fully_supported, one.supporting_sentence_keys) for one in support] == [
        (True, ("0a", "0b")),
        (False, ()),
    ]
    assert scores is not None
    assert scores.support == {"a": 0.875, "b": 0.25}
    assert scores.adherence == 0.875 * 0.25
    assert str(record.signature.prompt).startswith("decisions/v1@")
    assert record.signature.sampling == {}


@each_api
@needs_ragbench
def test_published_labels_come_back(judge: type[DecisionsJudge]) -> None:
    """Of a server that knows them, in one request each, with the published values."""
    prompt, known = decision_prompt("trace/v1"), dict[str, LabelRecord]()
    for record in published_labels(200):
        if not record.violations and "duplicate_key" not in record.normalised:
            known.setdefault(prompt.render(record.example)[0]["content"], record)
    published = list(known.values())
    with Decider(oracle(known)) as server:
        outcomes = labeled(server, judge, [given(one) for one in published], splitter="given")
    assert len(server.requests) == len(published) > 12
    for before, outcome in zip(published, outcomes, strict=True):
        after, scores = of_one([outcome]), before.example.metadata["published"]
        relevant = set(after.label.all_relevant_sentence_keys)
        utilized = set(after.label.all_utilized_sentence_keys)
        count = len(after.example.document_keys())
        assert scores["relevance_score"] == len(relevant) / count
        assert scores["utilization_score"] == len(utilized) / count
        complete = len(relevant & utilized) / len(relevant) if relevant else 1
        assert scores["completeness_score"] == complete
        each = all(one.fully_supported for one in before.label.sentence_support_information)
        if each == before.label.overall_supported:  # else the published label contradicts itself
            assert scores["adherence_score"] == after.label.overall_supported


def given(record: LabelRecord) -> Json:
    """A record's row with its sentences."""
    example = record.example
    documents = [[sentence.text for sentence in document] for document in example.documents]
    response = [sentence.text for sentence in example.response]
    return {
        "id": example.id,
        "question": example.question,
        "documents": [" ".join(document) for document in documents],
        "response": " ".join(response),
        "documents_sentences": documents,
        "response_sentences": response,
    }


LONG: Json = {
    "id": "long",
    "question": "Which numbers?",
    "documents": [
        " ".join(f"Fact {n} of {d} holds." for n in range(size))
        for d, size in enumerate((40, 1, 1, 90, 3))
    ],
    "response": " ".join(f"Answer {n} is so." for n in range(9)),
}
LONG_KEYS = {"a": ["0a", "0an"], "b": ["3cl"], "c": ["1a", "2a", "4c"], "d": [], "e": ["3a"]}


def long_answer(record: LabelRecord) -> Answer:
    """Answers about the long row: each response sentence has its keys, one is unsupported."""

    def answer(asked: Asked) -> Any:
        if asked.options:
            return shares(record, LONG_KEYS.get(asked.key, ["0b"]), asked.options)
        if len(asked.key) == 1:
            return 0.1 if asked.key == "f" else 0.9
        return len(asked.key) / 5

    return answer


@each_api
@pytest.mark.parametrize("most", [26, 64, 128, 200])
def test_limits_change_no_label(judge: type[DecisionsJudge], most: int) -> None:
    """Questions go in several requests, and choices in two steps; the limit is learned once."""
    record = of_one(list(labeler.label([LONG], judge="embedded", store=labeler.MemoryStore())))
    rows = [LONG, {**LONG, "id": "again", "question": "Which?"}]
    with Decider(long_answer(record)) as free:
        whole = [of_one([one]) for one in labeled(free, judge, rows)]
    with Decider(long_answer(record), questions=most, options=most) as server:
        split = [of_one([one]) for one in labeled(server, judge, rows, concurrency=1)]
    assert [one.label for one in split] == [one.label for one in whole]
    assert [one.scores for one in split] == [one.scores for one in whole]
    entries = whole[0].label.sentence_support_information
    assert entries[0].supporting_sentence_keys == ("0a", "0an")
    assert entries[3].supporting_sentence_keys == ("supported_without_sentence",)
    assert len(free.requests) == 2 < len(server.requests)
    assert server.rejected <= 2
    assert split[1].reply.reasks == 0


def test_a_limit_that_another_record_has_learned_is_not_raised() -> None:
    """The request that is rejected was sent before."""
    limits = RequestLimits(questions=20, options=26)
    asked = [Question(f"by_{n}", "Which?", tuple(map(str, range(200)))) for n in range(100)]
    for words in ("too many choices", "too many questions"):
        assert limits.learn(ObservedError("status", status=400, message=words), asked)
    assert limits == RequestLimits(questions=20, options=26)


def test_a_record_longer_than_the_context_is_asked_in_parts() -> None:
    """Until a request fits; the next record begins with whole requests again."""

    def full(body: Json, _: int) -> Any:
        if len(body["answers"]) > 6:
            return 400, {"error": {"message": "maximum context length is 1000 tokens"}}
        return body

    with Decider(likely, spoil=full) as server:
        assert of_one(labeled(server, DecisionsJudge)).reply.attempts == 3
    with Decider(likely, spoil=lambda *_: (413, {"error": "too large"})) as server:
        (failed,) = labeled(server, DecisionsJudge)
    assert isinstance(failed, LabelFailure)
    assert failed.reason == "context_length"


FIRST, CHOICE = 0, -1
"""Places of answers: first those of yes or no, last choices."""


def changed(place: int, change: Callable[[Json], object]) -> Callable[[Json, int], Json]:
    """A fault: an answer has other fields."""

    def spoil(body: Json, _: int) -> Json:
        answers = body["answers"]
        change((answers if isinstance(answers, list) else [*answers.values()])[place])
        return body

    return spoil


def answering(answers: object) -> Callable[[Json, int], Json]:
    """A fault: no answers of the form that was asked for."""
    return lambda body, _: {**body, "answers": answers}


def having(place: int, **fields: object) -> Callable[[Json, int], Json]:
    """A fault: fields of an answer have other values."""
    return changed(place, lambda answer: answer.update(fields))


def probable(value: Any) -> Callable[[Json, int], Json]:
    """A fault: another probability."""
    return changed(FIRST, lambda answer: answer.update({[*answer][-1]: value}))


def scaled(factor: float) -> Callable[[Json, int], Json]:
    """A fault: the probabilities of a choice sum to something else."""

    def change(answer: Json) -> None:
        found = answer["probabilities"]
        if isinstance(found, dict):
            found.update({key: value * factor for key, value in found.items()})
        for each in found if isinstance(found, list) else ():
            each["probability"] *= factor

    return changed(CHOICE, change)


def with_answers(
    change: Callable[[list[Json]], list[Json]], named: Callable[[Json], Json] = lambda body: body
) -> Callable[[Json, int], Json]:
    """A fault: other answers in a list, and other ones by name."""

    def spoil(body: Json, _: int) -> Json:
        answers = body["answers"]
        return {**body, "answers": (change if isinstance(answers, list) else named)(answers)}

    return spoil


OTHER_APIS: dict[str, Any] = {
    "chat completions": {"object": "chat.completion", "choices": [{"message": {"content": "yes"}}]},
    "vLLM, classify": {"data": [{"index": 0, "label": "entailment", "probs": [0.9, 0.1]}]},
    "text-embeddings-inference, predict": [[{"score": 0.9, "label": "LABEL_0"}]],
    "Llama Guard": "unsafe\nS1",
    "a number": 0.9,
}
"""Bodies of other APIs, which answer a request that they do not know."""

MALFORMED: dict[str, Callable[[Json, int], Any]] = {
    "missing": with_answers(lambda one: one[1:], lambda one: dict([*one.items()][1:])),
    "extra": with_answers(
        lambda one: [*one, {**one[0], "name": "x"}],
        lambda one: {**one, "x": {"type": "noul", "noul": 1}},
    ),
    "no answers": lambda body, _: {"model": "m", "usage": body["usage"]},
    "twice": lambda body, _: json.dumps(body)[:-1].encode() + b', "model": "n"}',
    **{f"type {other!r}": having(FIRST, type=other) for other in ("boolean", None)},
    **{
        f"probability {value!r}": probable(value)
        for value in (float("nan"), 1.01, -0.01, "0.9", True, None, {"value": 0.9})
    },
    **{
        f"distribution {given!r}": having(CHOICE, probabilities=given)
        for given in (None, {}, {"yes": 0.9, "no": 0.1})
    },
    **{f"sum {total}": scaled(total) for total in (1.2, 0)},
    **{f"answers {answers!r}": answering(answers) for answers in (None, 3, "yes")},
    **{name: lambda *_, body=body: json.dumps(body).encode() for name, body in OTHER_APIS.items()},
}
FAULTS: dict[str, tuple[Callable[[Json, int], Any], str]] = {
    **{name: (spoil, "malformed") for name, spoil in MALFORMED.items()},
    "refusal": (having(FIRST, type="refusal"), "refusal"),
    "xssi": (lambda body, _: b")]}'\n" + json.dumps(body).encode(), "transport"),
    "cut off": (lambda body, _: json.dumps(body).encode()[:-9], "transport"),
    "words in 200": (lambda *_: {"detail": "model overloaded"}, "transport"),
    "page": (lambda *_: b"<html>Log in</html>", "transport"),
    "error in 200": (lambda *_: {"error": {"message": "blocked", "code": 400}}, "bad_request"),
}


@each_api
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_a_failure(judge: type[DecisionsJudge], fault: str) -> None:
    """Never a label; what may pass is asked once more."""
    spoil, reason = FAULTS[fault]
    with Decider(likely, spoil=spoil) as server:
        (failed,) = labeled(server, judge)
    assert isinstance(failed, LabelFailure)
    assert failed.reason == reason, failed.message
    assert len(server.requests) == (1 if reason in {"refusal", "bad_request"} else 2)
    assert KEY not in failed.message


HARMLESS: dict[str, Callable[[Json, int], Any]] = {
    "second best": having(CHOICE, choice="1a"),
    "confidence": having(CHOICE, confidence=7),
    "more fields": lambda body, _: {**body, "latency_ms": 5, "x_nan": float("nan")},
    "no usage": lambda body, _: {**body, "usage": None},
    "float usage": lambda body, _: {**body, "usage": {"input_tokens": 30.0}},
    "rounded": scaled(1.04),
    "without names, in order": with_answers(lambda one: [{**each, "name": None} for each in one]),
    "with names, in any order": with_answers(lambda one: one[::-1]),
    "more behind it": lambda body, _: json.dumps(body).encode() + b"\n{}",
    "byte order mark": lambda body, _: b"\xef\xbb\xbf" + json.dumps(body).encode(),
    "once": lambda body, count: body if count > 1 else (529, {"detail": "overloaded"}),
    "once odd": lambda body, count: body if count > 1 else {**body, "answers": 3},
}


@each_api
@pytest.mark.parametrize("fault", HARMLESS)
def test_a_harmless_fault_changes_no_label(judge: type[DecisionsJudge], fault: str) -> None:
    """Nothing of ``choice`` and ``confidence`` is used, and rounding is made up for."""
    with Decider(likely) as server:
        expected = of_one(labeled(server, judge))
    with Decider(likely, spoil=HARMLESS[fault]) as server:
        assert of_one(labeled(server, judge)).label == expected.label


def row_of(text: str, name: str) -> Json:
    """A row with a text as question, document sentence and response."""
    split = {"documents_sentences": [[text, "Second."], ["Third."]], "response_sentences": [text]}
    documents = [f"{text} Second.", "Third."]
    return {"id": name, "question": text, "documents": documents, "response": text, **split}


@each_api
def test_texts_change_no_question(judge: type[DecisionsJudge]) -> None:
    """Hostile texts stay in their lines of the input; the questions do not change."""
    written = [" ".join(one.write(POSITIONS[n % 3])) for n, one in enumerate(ATTACKS)]
    texts = dict.fromkeys(["Harmless.", *written, *PAYLOADS[::3]])
    rows = [row_of(text, str(n)) for n, text in enumerate(texts)]
    with Decider(lambda one: {o: 1 / len(one.options) for o in one.options} or 0.5) as server:
        outcomes = labeled(server, judge, rows, splitter="given")
    assert {outcome.kind for outcome in outcomes} == {"label"}
    assert len(server.requests) == len(rows) > 30
    shapes, questions = set(), []
    for body in server.requests:
        lines = (body.pop("input", None) or body.pop("state")).split("\n")
        firsts = [re.sub("[0-9a-f]{8}$", "", line.partition(' "')[0]) for line in lines[4:]]
        shapes.add(tuple("text" if line.startswith('"') else line for line in firsts))
        questions.append(body)
    assert len(shapes) == 1
    assert all(body == questions[0] for body in questions)


def test_a_reference_is_asked_about_by_sentence() -> None:
    """Its sentences stand for claims, so recall is defined; the response has no claims."""
    answers = {"recalled": 1.0, "found": 0.75, "where": {"0a": 0.1, "0b": 0.8, "1a": 0.1}}

    def answer(asked: Asked) -> Any:
        if asked.key == "ref.b":
            return {"recalled": 0.0, "found": 0.2}.get(asked.kind, {"0a": 1.0})
        return answers.get(asked.kind) or likely(asked)

    row = {**ROW, "reference": "It is red. It is old."}
    with Decider(answer) as server:
        found = labeled(server, DecisionsJudge, [row], profile="reference")
        plain = of_one(labeled(server, DecisionsJudge, [row]))
    asked_for = "context_recall,claim_recall,answer_relevancy"
    (row_values,) = labeler.metrics(found, asked_for)
    recall, stated, relevancy = (row_values.metrics[name] for name in asked_for.split(","))
    assert [(one.numerator, one.denominator) for one in (recall, stated)] == [(1, 2), (1, 2)]
    assert relevancy.undefined
    assert "old" in server.requests[0]["input"]
    assert "old" not in server.requests[1]["input"]
    assert plain.label.all_relevant_sentence_keys == ("0a", "0b")


@each_api
def test_relevance_may_be_judged_without_the_response(judge: type[DecisionsJudge]) -> None:
    """In a request of its own, that shows no response."""
    with Decider(likely) as server:
        record = of_one(labeled(server, judge, relevance="blind"))
    texts = [body.get("input") or body["state"] for body in server.requests]
    assert len(texts) == 2
    assert "blue" not in texts[0]
    assert "blue" in texts[1]
    assert record.label.all_relevant_sentence_keys == ("0a", "0b")
    assert record.scores is not None
    assert sum(record.scores.relevance.values()) == 0.875 + 0.5 + 0.1


def test_claims_are_refused() -> None:
    """Before any request, with the reason."""
    with Decider(likely) as server, pytest.raises(UsageError, match="claims, which are"):
        labeled(server, DecisionsJudge, profile="claims")
    assert not server.requests


def test_a_budget_is_kept(tmp_path: Path) -> None:
    """Priced by input tokens alone; what was bought is not bought again."""
    rows = [{**ROW, "id": str(n), "question": f"Which {n}?"} for n in range(20)]
    price = labeler.judges.find_price("m", given="100,0")
    with Decider(likely) as server:
        judge = DecisionsJudge("m", api_key=KEY, base_url=server.url, price=price)
        store = tmp_path / "store"
        some = list(labeler.iter_labels(rows, judge=judge, store=store, budget="0.5"))
        bought = sum(isinstance(one, LabelRecord) for one in some)
        assert 0 < bought < 20
        assert {one.reason for one in some if isinstance(one, LabelFailure)} == {"budget"}
        rest = list(labeler.iter_labels(rows, judge=judge, store=store))
    assert all(isinstance(one, LabelRecord) for one in rest)
    assert len(server.requests) == 20


def test_thresholds_move_on_the_command_line(tmp_path: Path, labeler_command: Command) -> None:
    """No request is sent; the configuration names them, and no explanation is missed.

    A label is shown with its probabilities in place of explanations.
    """
    path = str(tmp_path / "labels.jsonl")
    with Decider(likely) as server:
        found = labeled(server, DecisionsJudge)
    labeler.api.write_labels(found, path)
    moved = ["--threshold", "support=0.2", "--threshold", "relevance=0.6"]
    code, out, _ = labeler_command("metrics", path, "--json", *moved)
    assert (code, "threshold:relevance=0.6|threshold:support=0.2" in out) == (0, True)
    assert labeler_command("check", path, "--min", "adherence=1", *moved)[0] == 0
    assert labeler_command("check", path, "--min", "adherence=1")[0] == 1
    assert labeler_command("audit", path, "--rows", *moved)[0] == 0
    assert labeler_command("report", path, "-o", tmp_path / "report.html", *moved)[0] == 0
    code, _, err = labeler_command("metrics", path, "--threshold", "support")
    assert (code, "KIND=PROBABILITY" in err) == (2, True)
    code, shown, _ = labeler_command("show", path, "1")
    assert (code, "probabilities, no explanation" in shown) == (0, True)
    assert "0a, 0b: probability of support 0.875" in shown
    view = record_view(of_one(found))
    assert view["made"]["answers"] == "probabilities, no explanation"
    assert view["label"] is not None
    assert view["label"]["support"]["b"]["explanation"] == "probability of support 0.25"


@each_api
@pytest.mark.parametrize(("value", "read"), [(1 + 1e-7, 1.0), (-1e-9, 0.0)])
def test_a_probability_off_by_rounding_counts(
    judge: type[DecisionsJudge], value: float, read: float
) -> None:
    """It is the nearest one from 0 to 1."""
    with Decider(likely, spoil=probable(value)) as server:
        scores = of_one(labeled(server, judge)).scores
    assert scores is not None
    assert scores.relevance["0a"] == read
