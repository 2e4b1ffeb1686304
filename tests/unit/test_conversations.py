"""Earlier turns and tool outputs of rows: shown, keyed, named as support, and counted apart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import labeler
from labeler.api import open_rows
from labeler.calculators.metrics_row import measure
from labeler.judges.judge import Judge
from labeler.judges.openai.attempts import complaint
from labeler.judges.task import JudgeReply, Task
from labeler.labels.answers import lowered
from labeler.labels.contract import check_label
from labeler.labels.record import LabelFailure, LabelRecord
from labeler.labels.retrieval_record import RetrievalRecord
from labeler.plugins.scores.records import ScoreRecord
from labeler.sentences.example import Frozen
from labeler.store import MemoryStore
from support import rows as read
from support.fakes import CountingJudge, agreeable, peeking, scoring
from support.labeled import record

TURNS = [
    {"role": "user", "text": "Tell me about the Aria lamp."},
    {"speaker": "agent", "content": "It is red. It weighs 2 kg."},
]
ROW: dict[str, Any] = {
    "id": "r1",
    "question": "And how much is it?",
    "documents": ["The Aria lamp costs 30 euros.", "Chairs are made of wood."],
    "response": "It costs 30 euros. That is 33 dollars.",
    "history": TURNS,
    "tool_outputs": [{"name": "rates", "output": "30 euros are 33 dollars."}, "Done."],
}


class Asked(CountingJudge):
    """Names given keys as the support of every response sentence."""

    def __init__(self, *support: str) -> None:
        def answer(task: Task[Any]) -> JudgeReply[Frozen]:
            if not support or task.kind.name == "retrieval":
                return peeking(task)
            reply = agreeable(task)
            supported = {"supporting_sentence_keys": support, "fully_supported": True}
            entries = tuple(
                entry.model_copy(update=supported)
                for entry in reply.answer.sentence_support_information
            )
            update = {"sentence_support_information": entries}
            return JudgeReply(lowered(reply.answer.model_copy(update=update), task.answer_type))

        super().__init__(answer)


def label(judge: Judge, *rows: dict[str, Any], **options: Any) -> Any:
    """The outcome of the last row."""
    options = {"store": MemoryStore(), **options}
    return list(labeler.label(list(rows or (ROW,)), judge=judge, **options))[-1]


def test_no_judge_is_asked_for_the_relevance_of_no_documents() -> None:
    """The label rests on an empty retrieval label, and the estimate counts no request for it."""
    row = {**ROW, "documents": []}
    judge = Asked("t0a")
    assert labeler.estimate([row], judge=judge, relevance="blind").rows.asked == 1
    made = label(judge, row, relevance="blind")
    assert [task.kind.name for task in judge.tasks] == ["trace"]
    assert (made.label.all_relevant_sentence_keys, made.fault()) == ((), None)


def test_turns_and_tool_outputs_are_shown_kept_and_named_as_support() -> None:
    """With keys of their own, outside the document sentences that metrics count."""
    judge = Asked("h1a", "t0a")
    made = label(judge)
    shown = judge.tasks[0].messages[1]["content"].splitlines()
    assert {
        'h0a user "Tell me about the Aria lamp."',
        'h1b assistant "It weighs 2 kg."',
        't0a "30 euros are 33 dollars."',
    } <= {*shown}
    assert [output.name for output in made.example.tool_outputs] == ["rates", None]
    assert "history" not in made.example.metadata
    assert made.fault() is None
    numbers = measure(made).metrics
    assert numbers["supported_by_history"].value == numbers["adherence"].value == 1
    assert (numbers["citation_coverage"].value, numbers["relevance"].denominator) == (0, 2)
    # A criterion shows neither.
    asked: dict[str, Any] = {"criteria": "rubric_faithfulness", "store": MemoryStore()}
    [score] = labeler.score([ROW], judge=CountingJudge(scoring()), **asked)
    assert isinstance(score, ScoreRecord)
    assert score.example.metadata == {name: ROW[name] for name in ("history", "tool_outputs")}


@pytest.mark.parametrize(
    ("change", "differs"),
    [
        ({"history": TURNS[:1]}, True),
        ({"history": [{**TURNS[0], "role": "assistant"}, TURNS[1]]}, True),
        ({"tool_outputs": ["30 euros are 34 dollars.", "Done."]}, True),
        ({"history": [{"role": "human", "text": TURNS[0]["text"]}, TURNS[1]]}, False),
        ({"history": [{"speaker": "user", "utterance": TURNS[0]["text"]}, TURNS[1]]}, False),
        ({"history": [{"role": "user", "message": TURNS[0]["text"]}, TURNS[1]]}, False),
        ({"history": [{"role": "system", "content": "Be kind."}, *TURNS]}, False),
        ({"tool_outputs": ["30 euros are 33 dollars.", {"text": "Done."}]}, False),
    ],
)
def test_a_key_follows_from_speakers_and_texts_alone(change: dict[str, Any], differs: bool) -> None:
    """Whatever a row calls its fields; names of tools are for people. Empty history is none."""
    judge = Asked()
    assert (label(judge).key != label(judge, {**ROW, **change}).key) is differs
    plain = {name: ROW[name] for name in ("id", "question", "documents", "response")}
    for empty in (None, [], [{"role": "user", "content": " "}]):
        assert label(judge, {**plain, "history": empty}).key == label(judge, plain).key
        assert judge.tasks[-1].messages == judge.tasks[-2].messages


@pytest.mark.parametrize(
    ("history", "said"),
    [
        ("Hello", "'history' must be a list of turns {'role': …, 'text': …}, got a text"),
        (["Hello"], "history[0] must be a turn, got a text"),
        ([*TURNS, {"role": "narrator", "text": "x"}], "history[2] has the role 'narrator'"),
        ([{"role": "user", "text": 7}], "history[0] has no text"),
        ([TURNS[0]] * 1_001, "'history' has 1,001 parts; allowed are 1,000"),
        ([{"role": "user", "text": "\ud800"}], "'history' has a lone surrogate"),
    ],
)
def test_history_of_another_form_fails_where_it_would_be_shown(history: object, said: str) -> None:
    """With the place and what a turn is; a surrogate is found before anything is sent."""
    found = label(Asked(), {**ROW, "history": history})
    assert isinstance(found, LabelFailure)
    assert said in found.message


def test_only_support_may_name_the_conversation() -> None:
    """A relevant turn is a violation, and a re-ask lists what may support."""
    made = label(Asked("h0a"))
    odd = {"supporting_sentence_keys": ("h9a", "[H1B]")}
    judged = made.label.sentence_support_information
    wrong = {
        "all_relevant_sentence_keys": ("h0a",),
        "all_utilized_sentence_keys": ("t0a",),
        "sentence_support_information": tuple(one.model_copy(update=odd) for one in judged),
    }
    checked = check_label(made.label.model_copy(update=wrong), made.example)
    named = {(one.kind, one.keys) for one in checked.violations}
    assert named == {("unknown_key", (key,)) for key in ("h0a", "t0a", "h9a")}
    assert checked.answer.sentence_support_information[0].supporting_sentence_keys == ("h1b",)
    says = complaint(checked.violations, made.example)
    assert "as support only are t0a, t1a, h0a, h1a-h1b." in says


def test_relevance_without_the_response_knows_the_turns_and_no_tool_outputs() -> None:
    """A follow-up question means what turns before it say: others are another retrieval."""
    judge, store = Asked(), MemoryStore()
    changes: list[dict[str, Any]] = [{}, {"tool_outputs": ["x"]}, {"history": TURNS[:1]}]
    rows = [{**ROW, "id": f"{n}", "response": f"{n}.", **more} for n, more in enumerate(changes)]
    labels = list(labeler.label(rows, judge=judge, store=store, relevance="blind"))
    retrievals = [task for task in judge.tasks if task.kind.name == "retrieval"]
    shown = [task.messages[1]["content"] for task in retrievals]
    assert [("h0a user" in one, "t0a" in one) for one in shown] == [(True, False)] * 2
    assert all(isinstance(one, LabelRecord) and one.fault() is None for one in labels)
    stored = store.get(retrievals[0].key)
    assert isinstance(stored, RetrievalRecord)
    assert (stored.fault(), stored.example.tool_outputs) == (None, ())


def test_only_supported_sentences_rest_on_the_conversation() -> None:
    """Neither one that documents alone support, nor an unsupported one that names a turn."""
    made = record(turns=1, support={"a": ["h0a", "0a"], "b": ["0b"], "c": ["h0b"]})
    *judged, last = made.label.sentence_support_information
    judged.append(last.model_copy(update={"fully_supported": False}))
    changed = made.label.model_copy(update={"sentence_support_information": tuple(judged)})
    found = measure(made.model_copy(update={"label": changed})).metrics["supported_by_history"]
    assert (found.numerator, found.denominator) == (1, 3)


ASKED = {"role": "user", "content": "And how much is it?"}
ANSWERED = {"role": "assistant", "content": "30 euros."}
CALLED = [
    {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]},
    {"role": "tool", "tool_call_id": "1", "content": [{"type": "text", "text": "33 dollars"}]},
]
TEXTS = [TURNS[0]["text"], TURNS[1]["content"], ASKED["content"], "33 dollars", ANSWERED["content"]]
SHOWN = {"context": {"citations": [{"content": text} for text in ROW["documents"]]}}
SHAPES: dict[str, dict[str, Any]] = {
    "openai_messages": {
        "messages": [{"role": "system", "content": "Be kind."}, *TURNS, ASKED, *CALLED, ANSWERED],
        "documents": ROW["documents"],
    },
    "ragas_multi_turn": {
        "user_input": [
            {"type": role, "content": text}
            for role, text in zip(("human", "ai", "human", "tool", "ai"), TEXTS, strict=True)
        ],
        "retrieved_contexts": ROW["documents"],
    },
    "deepeval_conversation": {
        "turns": [
            {"role": "user", "content": TEXTS[0]},
            {**ANSWERED, "content": TEXTS[1], "retrieval_context": ["Another."]},
            ASKED,
            {
                **ANSWERED,
                "retrieval_context": ROW["documents"],
                "tools_called": [{"name": "rates", "output": "33 dollars"}],
            },
        ],
        "expected_outcome": "It answers.",
    },
    "azure": {
        "conversation": {
            "messages": [*TURNS, ASKED, {"role": "tool", "content": TEXTS[3]}, ANSWERED | SHOWN]
        }
    },
    "mtrag": {
        "task_id": "conversation<::>2",
        "input": [*TURNS, {"speaker": "user", "text": ASKED["content"]}],
        "contexts": [{"document_id": f"{n}", "text": t} for n, t in enumerate(ROW["documents"])],
        "targets": [{"speaker": "agent", "text": "30."}],
        "model_response": ANSWERED["content"],
    },
}


@pytest.mark.parametrize("preset", SHAPES)
def test_a_list_of_messages_is_question_response_and_history(preset: str) -> None:
    """The last turns are the row's; the only preset that fits is used and named."""
    rows = open_rows([{"id": "r1", **SHAPES[preset]}])
    found = read.only(rows)
    assert [found.question, found.response] == [ASKED["content"], ANSWERED["content"]]
    assert list(found.documents) == ROW["documents"]
    keyed = label(Asked(), found.model_dump()).example
    assert [turn.role for turn in keyed.history] == ["user", "assistant"]
    shown = [s.text for output in keyed.tool_outputs for s in output.sentences]
    assert shown == ([] if preset == "mtrag" else ["33 dollars"])
    [notice] = rows.notices.values()
    assert f"reading by --preset {preset}" in notice


def test_an_answer_of_a_model_next_to_its_messages_is_the_response() -> None:
    """As logs of requests have it; columns that messages replace stay metadata."""
    answer = {"choices": [{"index": 0, "message": ANSWERED}]}
    row = {"messages": [*TURNS, ASKED], "context": ROW["documents"], "response": answer}
    whole = {"messages": [*TURNS, ASKED, ANSWERED]}
    found = read.examples([row, row | whole | {"response": {"seconds": 3}}, row | whole])
    texts = {(one.question, one.response, str(one.history)) for one in found}
    assert [one[:2] for one in texts] == [(ASKED["content"], ANSWERED["content"])]
    own = {"question": "Rewritten?", "history": "none", "documents": ["x"]}
    one = read.only([{**SHAPES["openai_messages"], **own}])
    assert one.question == ASKED["content"]
    assert one.metadata == {"question": "Rewritten?", "history": "none"}


def test_tool_outputs_alone_are_enough_to_judge_a_response() -> None:
    """Nothing was retrieved, so nothing is measured of it."""
    turns = SHAPES["openai_messages"]["messages"]
    judge = Asked("t0a")
    made = label(judge, {"id": "r1", "messages": turns})
    numbers = measure(made).metrics
    assert numbers["adherence"].value == numbers["supported_by_history"].value == 1
    assert numbers["relevance"].undefined == "no_document_sentences"
    long = [*turns[:1], {**TURNS[0], "text": "lamp " * 9_000}, *turns[1:]]
    failed = label(judge, {"id": "r1", "messages": long}, max_input_tokens=4_000)
    assert failed.reason == "context_length"


def test_tools_without_an_output_show_nothing() -> None:
    """In a column of their own, and among the turns of DeepEval, whatever these hold."""
    calls: list[Any] = [{"name": "rates"}, {"name": "rates", "output": None}, None]
    for called in (calls, 7, "rates"):
        row = {"id": "r1", "turns": [ASKED, {**ANSWERED, "tools_called": called}]}
        assert read.only([{**row, "documents": ["x"]}]).tool_outputs is None
    made = label(Asked(), {**ROW, "tool_outputs": [*calls[1:], "33 dollars"]})
    assert len(made.example.tool_outputs) == 1


def test_an_evaluation_file_has_a_row_for_each_answer(tmp_path: Path) -> None:
    """Tasks, answers and documents are joined by ids; the conversation is a column."""
    task = SHAPES["mtrag"]
    told = {"task_id": task["task_id"], "contexts": [{"document_id": "1"}]}
    alone = {"input": task["input"], "contexts": [{"text": "Its own.", "document_id": None}]}
    answers = [{"task_id": task["task_id"]}] * 2 + [alone]
    file = {
        "name": "made up",
        "documents": [*task["contexts"], {"text": "Of none.", "page": 3}],
        "tasks": [{"task_id": ["odd"]}, {**task, **told}, {"targets": [{"text": "31."}]}],
        "evaluations": [
            {**answer, "model_id": name, "model_response": name}
            for name, answer in zip(("one", "two", "three"), answers, strict=True)
        ],
    }
    rows = read.examples(read.write(tmp_path / "evaluations.json", json.dumps(file)))
    assert [(one.id.split("/")[-1][:6], one.documents, one.reference) for one in rows] == [
        ("one", (ROW["documents"][1],), "30."),
        ("two", (ROW["documents"][1],), "30."),
        ("sha256", ("Its own.",), None),
    ]
    assert [one.metadata.get("conversation_id") for one in rows] == ["conversation"] * 2 + [None]


def test_the_embedded_judge_finds_support_in_turns_and_tool_outputs() -> None:
    """In documents, turns and tool outputs alike; relevance and utilization do not move."""
    row = {
        **ROW,
        "reference": "It costs 30 euros. It weighs 2 kg.",
        "response": "The Aria lamp costs 30 euros. It weighs 2 kg. Those 30 euros are 33 dollars.",
    }
    plain = {name: row[name] for name in ("id", "question", "documents", "reference", "response")}
    found, alone = (
        label(labeler.EmbeddedJudge(), each, profile="reference") for each in (row, plain)
    )
    support = {
        entry.response_sentence_key: entry.supporting_sentence_keys
        for entry in found.label.sentence_support_information
    }
    assert "0a" in support["a"]
    assert support["b"][0] == "h1b"
    assert support["c"][0] == "t0a"
    assert not alone.label.overall_supported
    for name in ("all_relevant_sentence_keys", "relevance_explanation", "reference_claims"):
        assert getattr(found.label, name) == getattr(alone.label, name)
    assert found.scores.utilization == alone.scores.utilization
    assert found.fault() is None
    no_documents = label(labeler.EmbeddedJudge(), {**row, "documents": []})
    assert no_documents.fault() is None
