"""Attributes and events of spans, by the package that names them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.trace_spans import ANSWER, QUESTION, joined, span, write

FOUND = "The quay is 90 m long."
PROMPT = f"{FOUND}\n{QUESTION}"


def events(*given: tuple[str, dict[str, str]]) -> dict[str, Any]:
    """Return events as OTLP JSON has them, a name and attributes each."""
    made = [
        {
            "name": name,
            "attributes": [{"key": k, "value": {"stringValue": v}} for k, v in attributes.items()],
        }
        for name, attributes in given
    ]
    return {"events": made}


def turn(role: str, *parts: Any) -> dict[str, Any]:
    """Return a message of OpenTelemetry; texts become its parts."""
    read = [{"type": "text", "content": p} if isinstance(p, str) else p for p in parts]
    return {"role": role, "parts": read}


CALL = {"type": "tool_call", "id": "1", "name": "retrieve"}
RESULT = {"type": "tool_call_response", "id": "1", "name": "retrieve", "result": FOUND}
TURNS = [
    turn("user", QUESTION),
    turn("assistant", CALL),
    turn("user", RESULT),
    turn("assistant", ANSWER),
]
EVENTS = [
    {"event.name": "gen_ai.user.message", "role": "user", "content": QUESTION},
    {"event.name": "gen_ai.tool.message", "role": "tool", "name": "retrieve", "content": FOUND},
    {"event.name": "gen_ai.choice", "message": {"role": "assistant", "content": ANSWER}},
]
FLOW: dict[str, Any] = {
    "traceloop__entity__input": {"args": [QUESTION], "kwargs": {}},
    "traceloop__entity__output": f'"{ANSWER}"',
}
CHAT: dict[str, Any] = {
    "llm__request__type": "chat",
    "gen_ai__prompt__0__role": "user",
    "gen_ai__prompt__0__content": PROMPT,
    "gen_ai__completion__0__role": "assistant",
    "gen_ai__completion__0__content": ANSWER,
}


def component(kind: str, given: Any, made: Any) -> dict[str, Any]:
    """Return the span of a component of Haystack."""
    tags = {"type": kind, "input": given, "output": made}
    named: dict[str, Any] = {f"haystack__component__{k}": v for k, v in tags.items()}
    return span(kind, "root", "", **named)


SPANS: dict[str, list[dict[str, Any]]] = {
    "OpenLLMetry, a vector store": [
        span("root", None, "", traceloop__span__kind="workflow", **FLOW),
        span("find", "root", "", db__system="chroma")
        | events(("db.query.result", {"db.query.result.document": FOUND})),
        span("chat", "root", "", **CHAT),
    ],
    "OpenLLMetry, metadata of a vector store and arguments of a method": [
        span(
            "root",
            None,
            "",
            traceloop__entity__input={"args": [{"model": "m"}, QUESTION]},
            traceloop__entity__output={"generation": ANSWER},
        ),
        span("find", "root", "", db__system="pinecone")
        | events(("db.query.result", {"db.query.result.metadata": json.dumps({"text": FOUND})})),
    ],
    "OpenLLMetry, a task": [
        span("root", None, "", traceloop__span__kind="workflow", **FLOW),
        span(
            "find",
            "root",
            "",
            traceloop__span__kind="task",
            traceloop__entity__name="retrieve_documents",
            traceloop__entity__output=[FOUND],
        ),
        span("chat", "root", "", **CHAT),
    ],
    "Haystack": [
        span("root", None, "", haystack__pipeline__input_data={"retriever": {"query": QUESTION}}),
        component("BM25Retriever", {"query": QUESTION}, {"documents": [{"content": FOUND}]}),
        component("PromptBuilder", {"question": QUESTION}, {"prompt": PROMPT}),
        component("OpenAIGenerator", {"prompt": PROMPT}, {"replies": [ANSWER], "meta": [{}]}),
    ],
    "Pydantic AI": [
        span("root", None, "", pydantic_ai__all_messages=TURNS, final_result=ANSWER),
        span("find", "root", "", gen_ai__tool__name="retrieve", tool_response=FOUND),
    ],
    "Pydantic AI, before": [span("root", None, "", all_messages_events=EVENTS)],
    "messages as events": [
        span("root", None, "", gen_ai__operation__name="invoke_agent")
        | events(
            ("gen_ai.user.message", {"gen_ai.event.content": json.dumps({"content": QUESTION})}),
            ("gen_ai.choice", {"message": ANSWER}),
        ),
        span(
            "find",
            "root",
            "",
            gen_ai__operation__name="execute_tool",
            gen_ai__tool__name="retrieve",
        )
        | events(("gen_ai.choice", {"message": json.dumps([{"text": FOUND}])})),
    ],
    "an event of a model": [
        span(
            "find",
            None,
            "",
            gen_ai__operation__name="retrieval",
            gen_ai__retrieval__documents=[FOUND],
        ),
        span("chat", None, "", gen_ai__operation__name="chat")
        | events(
            (
                "gen_ai.client.inference.operation.details",
                {
                    "gen_ai.input.messages": json.dumps(TURNS[:1]),
                    "gen_ai.output.messages": json.dumps(TURNS[-1:]),
                },
            )
        ),
    ],
}


@pytest.mark.parametrize("source", SPANS)
def test_spans_become_rows(source: str, tmp_path: Path) -> None:
    """Question and response stand at the root or in its steps."""
    [row], counts = joined(write(tmp_path / "spans.jsonl", *SPANS[source]))
    assert (row["question"], row["response"]) == (QUESTION, ANSWER)
    found = row["documents"] or [one["text"] for one in row["tool_outputs"]]
    assert (found, counts.faults) == ([FOUND], {})


def test_records_of_logfire(tmp_path: Path) -> None:
    """Ids and times stand next to the attributes."""
    record = {
        "trace_id": f"{1:032x}",
        "span_id": f"{1:016x}",
        "parent_span_id": None,
        "start_timestamp": "2026-01-01T00:00:00Z",
        "attributes": json.dumps({"all_messages_events": EVENTS}),
    }
    (tmp_path / "records.json").write_text(json.dumps([record]))
    [row], _ = joined(str(tmp_path / "records.json"))
    assert (row["question"], row["metadata"]["time"][:10]) == (QUESTION, "2026-01-01")


def test_runs_of_langsmith(tmp_path: Path) -> None:
    """The root's trace id is its own id; a project does not count as a conversation."""
    common = {"trace_id": "t", "session_id": "project", "start_time": "2026-01-01T00:00:00"}
    runs = [
        {"id": "t", "run_type": "chain", "inputs": {"input": QUESTION}, "outputs": {"output": "A"}},
        {"id": "p", "parent_run_id": "t", "run_type": "prompt", "outputs": {"output": "x"}},
        {
            "id": "r",
            "parent_run_id": "t",
            "run_type": "retriever",
            "outputs": {"documents": [{"page_content": "90 m.", "metadata": {}}]},
        },
        {
            "id": "m",
            "parent_run_id": "t",
            "run_type": "llm",
            "inputs": {},
            "outputs": {},
            "extra": '{"metadata": {"ls_model_name": "model-1"}}',  # as in a table
        },
    ]
    (tmp_path / "runs.json").write_text(json.dumps([common | run for run in runs]))
    [row], _ = joined(str(tmp_path / "runs.json"))
    assert (row["id"], row["question"], row["documents"]) == ("t", QUESTION, ["90 m."])
    assert row["metadata"]["model"] == "model-1"
    assert "conversation_id" not in row["metadata"]


@pytest.mark.parametrize(
    ("name", "output", "is_one"),
    [
        ("retrieval", [{"page_content": FOUND}], True),
        ("retrieve_docs", [FOUND], True),
        ("DocumentRetriever", {"hits": 7}, False),
        ("retriever", [], None),
        ("retriever", None, False),
        ("RetrievalQA", FOUND, False),
        ("retrieve_and_generate", FOUND, False),
    ],
)
def test_a_step_named_after_a_retrieval_is_one_if_it_returns_documents(
    name: str, output: Any, is_one: bool | None, tmp_path: Path
) -> None:
    """A step that answers as well is none; one may find nothing."""
    texts: dict[str, Any] = {"input__value": QUESTION, "output__value": ANSWER}
    spans = [span("root", None, "", **texts), span(name, "root", "", output__value=output)]
    rows, _ = joined(write(tmp_path / "spans.jsonl", *spans))
    assert [row["documents"] for row in rows] == ([[]] if is_one is None else [[FOUND]] * is_one)


def test_spans_of_vercels_sdk(tmp_path: Path) -> None:
    """What a tool found is a tool's output; the model's steps have their model."""
    messages = [{"role": "user", "content": [{"type": "text", "text": QUESTION}]}]
    made = [
        span(
            "ai.generateText",
            kind="",
            ai__operationId="ai.generateText",
            ai__response__text=ANSWER,
            ai__prompt={"system": "Be brief.", "messages": messages},
        ),
        span(
            "doGenerate",
            "ai.generateText",
            "",
            ai__operationId="ai.generateText.doGenerate",
            ai__prompt__messages=messages,
            gen_ai__request__model="model-1",
        ),
        span(
            "ai.toolCall",
            "ai.generateText",
            "",
            ai__operationId="ai.toolCall",
            ai__toolCall__name="find",
            ai__toolCall__result='"The quay is 90 m long."',
        ),
    ]
    [row], _ = joined(write(tmp_path / "spans.jsonl", *made))
    assert (row["question"], row["response"]) == (QUESTION, ANSWER)
    assert row["tool_outputs"] == [{"name": "find", "text": "The quay is 90 m long."}]
    assert row["metadata"]["model"] == "model-1"
