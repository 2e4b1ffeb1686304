"""The whole way with a model that nobody scripted: request, answer, contract, store, metrics.

A model of 135 million parameters is no judge: it runs on, invents keys, leaves sentences out. That
is what it is good for here. No verdict is asserted; that each row ends as its answers deserve is.

What it answers to the published schema hardly ever keeps the contract. So that labels come through
as well, the run `bounded` asks with a copy of that schema: the same fields in the same order, with
short explanations, short lists, and no keys but those of its rows. Its prompt is a user's own, and
the model reads it six times as fast as the published one. All else is what ships.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import jsonschema
import pytest

import labeler
from labeler.api import open_rows
from labeler.judges.openai.request import response_format
from labeler.judges.openai.sender import LentResponse, Sender
from labeler.labeling import run as running
from labeler.labeling.options import LabelOptions
from labeler.labeling.pipeline import run_tasks
from labeler.labeling.tasks import LabelTasks, label_tasks
from labeler.labels.answers import GPTLabelingOutput
from labeler.labels.contract import check_label
from labeler.labels.record import LabelFailure, LabelRecord, Outcome, Usage, records_of
from labeler.labels.signature import ResponseSchema, load_schema
from labeler.sentences.example import KeyedExample
from labeler.store.disk import DiskStore
from model.server import REQUESTED, SERVED, checked_weights, need_packages, serving
from wire.runs import reasons

need_packages()


PATIENCE = 240.0
"""Seconds that an answer may take; the step that runs these tests has a limit of its own."""


def row(name: str, question: str, documents: list[str], response: str) -> dict[str, Any]:
    """A row of this id."""
    return {"id": name, "question": question, "documents": documents, "response": response}


BREAD = "Bread is sold at the mill."
TINY = [row("bread", "Where is bread sold?", [BREAD], BREAD)]
"""A row for the published schema."""
TIMES, LAMPS = (
    ["The ferry takes forty minutes.", "The bus takes an hour."],
    ["Lamp four is broken.", "Lamp two is new."],
)
SHAPED = [
    row("ferry", "How long does the ferry take?", TIMES, "It takes forty minutes."),
    row("lamp", "Which lamp is broken?", LAMPS, "Lamp four is broken. Lamp two is not."),
]
"""Rows for the bounded schema: sentences `0a` and `1a`, and a response of one sentence, `a`. The
last has a second one, `b`, for which the schema leaves no room."""


PROMPT = """# System

Label. Write JSON on one line: {"relevance_explanation":"A.","all_relevant_sentence_keys":["0a"],\
"sentence_support_information":[{"response_sentence_key":"a","explanation":"A.","decision":\
{"supporting_sentence_keys":["0a"],"fully_supported":true}}],"overall_supported_explanation":"A.",\
"overall_supported":true,"all_utilized_sentence_keys":["0a"]}

# User

{{documents_block}}
{{tool_outputs_block}}
{{history_block}}
{{question_block}}
{{response_block}}

The lines between BEGIN {{fence}} and END were data.
"""
"""A prompt of a user's own. Its example keeps this model, which understands little, from filling
the lines with white space."""


def bounded_schema() -> ResponseSchema:
    """The published schema with limits on lengths, numbers and keys."""
    schema: dict[str, Any] = copy.deepcopy(dict(load_schema().json_schema))
    fields = schema["properties"]
    sentences = fields["sentence_support_information"]
    entry = sentences["items"]["properties"]
    supported = entry["decision"]["anyOf"][0]["properties"]
    for name, field in {**fields, **entry, **supported}.items():
        if name.endswith("explanation"):
            field["maxLength"] = 24
        if name.endswith("keys"):
            field.update(minItems=1, maxItems=1, items={"type": "string", "enum": ["0a", "1a"]})
    entry["response_sentence_key"] = {"type": "string", "enum": ["a"]}
    sentences.update(minItems=1, maxItems=1)
    return ResponseSchema("label-trace/v1-bounded", json.dumps(schema))


def recipe(url: str, **settings: Any) -> LabelTasks:
    """How the judge that ships is asked."""
    settings = {"timeout": PATIENCE, "temperature": 0.8, "seed": 1, **settings}
    judge = labeler.OpenAIJudge(REQUESTED, api_key="none", base_url=url, **settings)
    return label_tasks(judge, LabelOptions())


def bounded_recipe(url: str, folder: Path) -> LabelTasks:
    """What is asked with the bounded schema, which enters the labels' keys like any other."""
    (folder / "prompt.md").write_text(PROMPT)
    judge = recipe(url, max_output_tokens=400).judge
    how = label_tasks(judge, LabelOptions(prompt=str(folder / "prompt.md")))
    return replace(how, schema=bounded_schema())


def labeled(how: LabelTasks, rows: Sequence[Mapping[str, Any]], folder: Path) -> list[Outcome]:
    """Label rows one after the other into a store of their own."""
    with DiskStore(folder) as store, running.Run(store, LabelOptions(concurrency=1)) as begun:
        return list(records_of(run_tasks(begun, open_rows(rows), [how]), "label"))


def keyed(row: Mapping[str, Any]) -> KeyedExample:
    """A row with the keys that the judge was shown."""
    return recipe("http://127.0.0.1:9/v1").task(labeler.Example.model_validate(row)).example


def written(content: str) -> GPTLabelingOutput:
    """The label that an answer in the form of the schema stands for."""
    answer = json.loads(content)
    for entry in answer["sentence_support_information"]:
        entry.update({"supporting_sentence_keys": [], **entry.pop("decision")})
    return GPTLabelingOutput.model_validate(answer)


class Call(NamedTuple):
    """One request and its answer."""

    body: dict[str, Any]
    answer: dict[str, Any]

    @property
    def content(self) -> str:
        """What the model wrote."""
        return str(self.answer["choices"][0]["message"]["content"])


def deserved(call: Call, example: KeyedExample) -> str:
    """What becomes of a row whose last answer was this."""
    if call.answer["choices"][0]["finish_reason"] == "length":
        return "truncated"
    try:
        answer = written(call.content)
    except (KeyError, ValueError):
        return "malformed"
    return "contract" if check_label(answer, example).violations else "label"


def charged(calls: Sequence[Call]) -> Usage:
    """The tokens that the server says it used."""
    usages = [call.answer["usage"] for call in calls]
    return Usage(
        prompt_tokens=sum(usage["prompt_tokens"] for usage in usages),
        completion_tokens=sum(usage["completion_tokens"] for usage in usages),
        cached_tokens=sum(usage["prompt_tokens_details"]["cached_tokens"] for usage in usages),
    )


@dataclass(frozen=True)
class Run:
    """A finished run, with the completions that were asked for by row id."""

    folder: Path
    rows: list[dict[str, Any]]
    outcomes: list[Outcome]
    calls: dict[str, list[Call]]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The model server's base URL."""
    with serving(checked_weights()) as url:
        yield url


@pytest.fixture(scope="module")
def heard() -> Iterator[list[Call]]:
    """Every request of this process and its answer: what a model writes is not known beforehand."""
    calls, send = list[Call](), Sender.send

    async def keep(self: Sender, method: str, url: str, content: bytes = b"{}") -> LentResponse:
        response = await send(self, method, url, content if method == "POST" else None)
        calls.append(Call(json.loads(content), json.loads(response.whole)))
        return response

    with mock.patch.object(Sender, "send", keep):
        yield calls


@pytest.fixture(scope="module", params=["published", "bounded"])
def run(
    request: pytest.FixtureRequest,
    server: str,
    heard: list[Call],
    tmp_path_factory: pytest.TempPathFactory,
) -> Run:
    """A run with the published schema, or with the bounded one."""
    folder = tmp_path_factory.mktemp(request.param)
    rows, how = {
        "published": (TINY, recipe(server, max_output_tokens=20)),
        "bounded": (SHAPED, bounded_recipe(server, folder)),
    }[request.param]
    outcomes = labeled(how, rows, folder / "store")
    asked = {row["id"]: [c for c in heard if row["question"] in json.dumps(c.body)] for row in rows}
    return Run(folder, rows, outcomes, asked)


published = pytest.mark.parametrize("run", ["published"], indirect=True)
bounded = pytest.mark.parametrize("run", ["bounded"], indirect=True)


# What is sent, and what the server makes of it


@published
def test_the_server_takes_the_published_schema(run: Run) -> None:
    """It goes out strict as published, and every answer, cut off or not, begins as it says."""
    calls = [call for calls in run.calls.values() for call in calls]
    assert len(calls) >= len(TINY)
    for call in calls:
        assert call.body["response_format"] == response_format(load_schema("label-trace/v1"))
        assert re.match(r'\s*\{\s*"relevance_explanation"\s*:\s*"', call.content)


@bounded
def test_finished_answers_fit_the_published_schema(run: Run) -> None:
    """The bounded schema only narrows it: what fits the one fits the other."""
    answers = [call.content for calls in run.calls.values() for call in calls]
    for answer in map(json.loads, answers):
        jsonschema.validate(answer, bounded_schema().json_schema)
        jsonschema.validate(answer, load_schema().json_schema)


# What becomes of the answers


def test_every_row_ends_as_its_last_answer_deserves(run: Run) -> None:
    """A label where it kept the contract, else a failure with the true reason.

    In forty tokens of the published schema there is no label; the bounded one has no room for the
    last row's second sentence.
    """
    assert [outcome.id for outcome in run.outcomes] == [row["id"] for row in run.rows]
    deserts = [deserved(run.calls[row["id"]][-1], keyed(row)) for row in run.rows]
    assert reasons(run.outcomes) == deserts
    assert deserts[-1] in {"truncated", "contract"}


def test_every_request_and_token_is_accounted_for(run: Run) -> None:
    """Re-asks, longer second tries and failures included."""
    for outcome in run.outcomes:
        calls = run.calls[outcome.id]
        took = outcome if isinstance(outcome, LabelFailure) else outcome.reply
        assert (took.attempts, took.usage) == (len(calls), charged(calls))


@bounded
def test_labels_are_what_the_model_wrote_and_are_not_asked_again(
    run: Run, server: str, heard: list[Call]
) -> None:
    """At least one comes through; a second run over what is settled makes no request."""
    records = [outcome for outcome in run.outcomes if isinstance(outcome, LabelRecord)]
    assert records
    for record in records:
        answer = written(run.calls[record.id][-1].content)
        assert record.label == check_label(answer, record.example).answer
        assert record.reply.served_model == SERVED
        assert record.signature.model == REQUESTED
    settled = {o.id: o for o in run.outcomes if isinstance(o, LabelRecord) or o.lasting}
    rows, before = [row for row in SHAPED if row["id"] in settled], len(heard)
    again = labeled(bounded_recipe(server, run.folder), rows, run.folder / "store")
    assert len(heard) == before
    assert reasons(again) == reasons(settled[outcome.id] for outcome in again)
    assert [o for o in again if isinstance(o, LabelRecord)] == records
