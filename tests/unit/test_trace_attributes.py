from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.trace_spans import ANSWER, FOUND, QUESTION, joined, span, write

PROMPT = f"{FOUND}\n{QUESTION}"


def top(**attributes: Any) -> dict[str, Any]:
    """Return the root of a trace, without a kind of OpenInference."""
    return span("root", None, "", **attributes)


def part(name: str, **attributes: Any) -> dict[str, Any]:
    """Return a span below the root, without a kind of OpenInference."""
    return span(name, "root", "", **attributes)


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
FLOW = top(
    traceloop__span__kind="workflow",
    traceloop__entity__input={"args": [QUESTION], "kwargs": {}},
    traceloop__entity__output=f'"{ANSWER}"',
)
CHAT = part(
    "chat",
    llm__request__type="chat",
    gen_ai__prompt__0__role="user",
    gen_ai__prompt__0__content=PROMPT,
    gen_ai__completion__0__role="assistant",
    gen_ai__completion__0__content=ANSWER,
)
TASK: dict[str, Any] = {
    "traceloop__span__kind": "task",
    "traceloop__entity__name": "retrieve_documents",
    "traceloop__entity__output": [FOUND],
}
METHOD: dict[str, Any] = {
    "traceloop__entity__input": {"args": [{"model": "m"}, QUESTION]},
    "traceloop__entity__output": {"generation": ANSWER},
}
METADATA = {"db.query.result.metadata": json.dumps({"text": FOUND})}
DETAILS = {
    "gen_ai.input.messages": json.dumps(TURNS[:1]),
    "gen_ai.output.messages": json.dumps(TURNS[-1:]),
}
RETRIEVAL: dict[str, Any] = {
    "gen_ai__operation__name": "retrieval",
    "gen_ai__retrieval__documents": [FOUND],
}
ASKED = [{"role": "user", "content": [{"type": "text", "text": QUESTION}]}]


def component(kind: str, given: Any, made: Any) -> dict[str, Any]:
    """Return the span of a component of Haystack."""
    tags = {"type": kind, "input": given, "output": made}
    return part(kind, **{f"haystack__component__{name}": tag for name, tag in tags.items()})


def vercel(operation: str, **attributes: Any) -> dict[str, Any]:
    """Return a span of Vercel's SDK below the root."""
    return part(operation, ai__operationId=operation, **attributes)


def run(kind: str, name: str, **more: Any) -> dict[str, Any]:
    """Return a run of LangSmith; the trace's id is its root's."""
    above = {} if name == "t" else {"parent_run_id": "t"}
    known = {"id": name, "trace_id": "t", "run_type": kind, "session_id": "project"}
    times = {"start_time": "2024-10-04T00:00:00", "events": [{"role": "assistant", "content": "x"}]}
    return {**known, **times, **above, **more}


CHAIN = run("chain", "t", inputs={"input": QUESTION}, outputs={"output": ANSWER})
RETRIEVER = run("retriever", "r", outputs={"documents": [{"page_content": FOUND, "metadata": {}}]})
LOGFIRE = {
    "trace_id": f"{1:032x}",
    "span_id": f"{1:016x}",
    "parent_span_id": None,
    "start_timestamp": "2024-10-04T00:00:00Z",
    "attributes": json.dumps({"all_messages_events": EVENTS}),
}
SPANS: dict[str, list[dict[str, Any]]] = {
    "OpenLLMetry, a vector store": [
        FLOW,
        part("find", db__system="chroma")
        | events(("db.query.result", {"db.query.result.document": FOUND})),
        CHAT,
    ],
    "OpenLLMetry, metadata of a vector store and arguments of a method": [
        top(**METHOD),
        part("find", db__system="pinecone") | events(("db.query.result", METADATA)),
    ],
    "OpenLLMetry, a task": [FLOW, part("find", **TASK), CHAT],
    "Haystack": [
        top(haystack__pipeline__input_data={"retriever": {"query": QUESTION}}),
        component("BM25Retriever", {"query": QUESTION}, {"documents": [{"content": FOUND}]}),
        component("PromptBuilder", {"question": QUESTION}, {"prompt": PROMPT}),
        component("OpenAIGenerator", {"prompt": PROMPT}, {"replies": [ANSWER], "meta": [{}]}),
    ],
    "Pydantic AI": [
        top(pydantic_ai__all_messages=TURNS, final_result=ANSWER),
        part("find", gen_ai__tool__name="retrieve", tool_response=FOUND),
    ],
    "messages as events": [
        top(gen_ai__operation__name="invoke_agent")
        | events(
            ("gen_ai.user.message", {"gen_ai.event.content": json.dumps({"content": QUESTION})}),
            ("gen_ai.choice", {"message": ANSWER}),
        ),
        part("find", gen_ai__operation__name="execute_tool", gen_ai__tool__name="retrieve")
        | events(("gen_ai.choice", {"message": json.dumps([{"text": FOUND}])})),
    ],
    "an event of a model": [
        span("find", None, "", **RETRIEVAL),
        span("chat", None, "", gen_ai__operation__name="chat")
        | events(("gen_ai.client.inference.operation.details", DETAILS)),
    ],
    "Vercel's SDK": [
        top(
            ai__operationId="ai.generateText",
            ai__response__text=ANSWER,
            ai__prompt={"system": "Be brief.", "messages": ASKED},
        ),
        vercel("ai.generateText.doGenerate", gen_ai__request__model="model-1"),
        vercel("ai.toolCall", ai__toolCall__name="find", ai__toolCall__result=f'"{FOUND}"'),
    ],
    "records of Logfire": [LOGFIRE],
    "runs of LangSmith": [
        CHAIN,
        run("prompt", "p", outputs={"output": "x"}),
        RETRIEVER,
        # As in a table.
        run("llm", "m", extra='{"metadata": {"ls_model_name": "model-1"}}'),
    ],
    "runs of LangSmith, an answer of the model": [
        run("chain", "t", inputs={"input": QUESTION}),
        RETRIEVER,
        run("llm", "m", inputs={"input": PROMPT}, outputs={"output": ANSWER}),
    ],
    "child runs of LangSmith": [CHAIN | {"child_runs": [RETRIEVER]}],
}


@pytest.mark.parametrize("source", SPANS)
def test_spans_become_rows(source: str, tmp_path: Path) -> None:
    """Question and response stand at the root or in its steps, what a tool found in its output.

    A project does not count as a conversation.
    """
    (tmp_path / "spans.json").write_text(json.dumps(SPANS[source]))
    [row], counts = joined(str(tmp_path / "spans.json"))
    assert (row["question"], row["response"]) == (QUESTION, ANSWER)
    found = row["documents"] or [one["text"] for one in row["tool_outputs"]]
    assert (found, counts.faults) == ([FOUND], {})
    assert row["id"] == ("t" if "LangSmith" in source else f"{1:032x}")
    metadata = row["metadata"]
    assert (metadata["time"][:10], "conversation_id" in metadata) == ("2024-10-04", False)
    named = source in ("Vercel's SDK", "runs of LangSmith")
    assert metadata.get("model") == ("model-1" if named else None)


@pytest.mark.parametrize(
    ("name", "output", "documents"),
    [
        ("retrieval", [{"page_content": FOUND}], [FOUND]),
        ("retrieve_docs", [FOUND], [FOUND]),
        ("retriever", [], []),
        ("DocumentRetriever", {"hits": 7}, None),
        ("retriever", None, None),
        ("RetrievalQA", FOUND, None),
        ("retrieve_and_generate", FOUND, None),
    ],
)
def test_a_step_named_after_a_retrieval_is_one_if_it_returns_documents(
    name: str, output: Any, documents: list[str] | None, tmp_path: Path
) -> None:
    """A step that answers as well is none; one may find nothing."""
    spans = [top(input__value=QUESTION, output__value=ANSWER), part(name, output__value=output)]
    rows, _ = joined(write(tmp_path / "spans.jsonl", *spans))
    assert [row["documents"] for row in rows] == ([] if documents is None else [documents])
