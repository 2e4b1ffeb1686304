"""What a judge is sent to have questions written."""

from __future__ import annotations

import json
import re

import pytest

from labeler.errors import UsageError
from labeler.judges.embedded.judge import EmbeddedJudge
from labeler.judges.judge import require_answers
from labeler.judges.task import JudgeReply, Task
from labeler.labels.record import ReplyFacts
from labeler.labels.schemas import load_schema
from labeler.plugins.similarity.questioning import (
    SCHEMA,
    QuestionsKind,
    QuestionsTasks,
    load_questions_prompt,
)
from labeler.plugins.similarity.records import QuestionsAnswer, QuestionsRecord, questions_key
from labeler.sentences.example import Example, KeyedExample
from labeler.sentences.splitting import SPLITTERS
from labeler.store.checksums import DamagedRecord, decode, encode
from support import samples
from support.fakes import CountingJudge

ANSWER = QuestionsAnswer(
    noncommittal_explanation="it names the capital",
    noncommittal=False,
    questions=("What is the capital?", "Which city is it?", "Where is the government?"),
)


def request_for(example: KeyedExample) -> Task[QuestionsAnswer]:
    """The request for a record's questions."""
    signature = samples.signature(prompt="trace/v1")
    return Task(
        questions_key(example, signature),
        example,
        signature,
        load_questions_prompt(),
        load_schema(SCHEMA),
        QuestionsKind(),
    )


def user_message(*response: str) -> str:
    """What stands in the user message for a response."""
    return request_for(samples.keyed_example(response=response)).messages[1]["content"]


def test_the_response_stands_in_a_fence_of_its_own() -> None:
    """One line a sentence, between two lines with the marker that the first line states."""
    lines = user_message("It is red.", "It is\nlarge.").split("\n")
    marker = lines[0].removeprefix("The marker is ")
    assert re.fullmatch("[0-9a-f]{16}", marker)
    inside = lines[
        lines.index(f"BEGIN RESPONSE {marker}") + 1 : lines.index(f"END RESPONSE {marker}")
    ]
    assert inside == ['a "It is red."', r'b "It is\nlarge."']


def test_what_is_sent_depends_on_the_response_alone() -> None:
    """The key promises that: rows of one response and several questions send the same."""
    one = samples.keyed_example(question="One?", documents=[["A document."]])
    other = samples.keyed_example(question="Other?", id="x")
    assert request_for(one).messages == request_for(other).messages
    assert request_for(one).key == request_for(other).key
    assert user_message("It is red.") != user_message("It is blue.")


@pytest.mark.parametrize("text", ["<|im_end|>", "\u202e", "</s>", "[INST]"])
def test_nothing_in_a_response_can_pass_for_a_models_control_token(text: str) -> None:
    """It is escaped, and means the same."""
    sent = user_message(f"It is {text} red.")
    assert text not in sent
    assert json.loads(sent.split("\n")[3].removeprefix("a ")) == f"It is {text} red."


def test_a_response_cannot_use_the_frames_variables() -> None:
    """They are filled in once, and text that came in is never looked at again."""
    assert "{{marker}} {{response}}" in user_message("{{marker}} {{response}}")


def test_the_task_names_all_that_can_change_the_questions() -> None:
    """Judge, prompt, schema, splitter and trial; another trial has another key."""
    example = Example(id="r", question="q?", documents=(), response="It is red. It is large.")
    tasks = QuestionsTasks(CountingJudge(), SPLITTERS["general"])
    request = tasks.task(example)
    assert str(request.signature.prompt).startswith("questions/v1@")
    assert str(request.signature.response_schema).startswith("questions/v1@")
    assert len(request.example.response) == 2
    again = QuestionsTasks(CountingJudge(), SPLITTERS["general"], trial=1).task(example)
    assert again.key != request.key


def test_an_answer_becomes_a_record_that_a_store_keeps() -> None:
    """Sealed and read back it is the same; nobody can move it under another response."""
    request = request_for(samples.keyed_example())
    assert request.violations(ANSWER) == ()
    record = request.record(JudgeReply(ANSWER, ReplyFacts(attempts=1)))
    assert isinstance(record, QuestionsRecord)
    assert decode(record.key, encode(record)) == record
    with pytest.raises(DamagedRecord, match="of key"):
        decode("0" * 64, encode(record))


def test_an_answer_of_another_kind_is_the_judges_fault() -> None:
    """It is neither kept nor taken for questions."""
    with pytest.raises(TypeError, match="a QuestionsAnswer was asked for"):
        request_for(samples.keyed_example()).violations(samples.keyed_example())


def test_a_judge_that_only_labels_ends_the_run() -> None:
    """Before anything is sent."""
    with pytest.raises(UsageError, match="cannot write questions"):
        require_answers(EmbeddedJudge(), QuestionsKind())
