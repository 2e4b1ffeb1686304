from __future__ import annotations

import json
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from import_rows import AGENT_ROW, import_rows
from labeler.api import open_rows
from labeler.data.lines import read_lines
from labeler.plugins.traces import TraceCounts
from labeler.plugins.traces.retrievals import supersedes
from labeler.sentences.example import Example
from support.command import Command
from support.trace_spans import ANSWER, HOUR, QUESTION, answer, joined, retriever, root, span, write

Join = Callable[..., tuple[list[dict[str, Any]], TraceCounts]]
"""Returns the rows of spans, and the counts."""


@pytest.fixture
def join(tmp_path: Path) -> Join:
    """Write spans to a file, and join them."""
    return lambda *spans, **choice: joined(write(tmp_path / "spans.jsonl", *spans), **choice)


def only(found: tuple[list[dict[str, Any]], TraceCounts]) -> dict[str, Any]:
    """Return the row of a trace that gives one."""
    [row], counts = found
    assert not counts.faults
    return row


def test_a_row_has_the_texts_of_its_spans_and_names_them(join: Join) -> None:
    """The root's texts, the retriever's documents, the call's model; evaluators change nothing."""
    call = span("call", "root", "LLM", llm__model_name="small", user__id="7", session__id="c1")
    judged = [span("judge", None, "EVALUATOR", start=1), retriever("gold", "judge", "B", start=1)]
    assert only(join(*answer(1), call, *judged)) == {
        "id": f"{1:032x}",
        "question": QUESTION,
        "documents": ["The quay is 90 m long."],
        "response": ANSWER,
        "metadata": {
            "trace_id": f"{1:032x}",
            "span_id": "726f6f7400000000",
            "time": "2024-10-04T00:00:00+00:00",
            "name": "root",
            "model": "small",
            "user": "7",
            "conversation_id": "c1",
        },
    }


def test_several_retrievals_stand_in_order_and_a_document_found_again_once(join: Join) -> None:
    """A retrieval inside a retrieval is part of it; a reranker replaces what it was given."""
    later = retriever("later", "root", "C", "A", "D", start=2)
    first = retriever("first", "root", "A", "B", "B", start=1)
    inner = retriever("inner", "first", "B", "Z", start=1)
    assert only(join(root(), later, first, inner))["documents"] == ["A", "B", "B", "C", "D"]
    reranked: dict[str, Any] = {
        f"reranker__{side}_documents__{n}__document__content": text
        for side, texts in {"input": "ABC", "output": "CA"}.items()
        for n, text in enumerate(texts)
    }
    ranker = span("rank", "root", "RERANKER", start=3, **reranked)
    assert only(join(root(), later, first, ranker))["documents"] == ["D", "C", "A"]


OAK = "The oak is old."
ALL = ["A", "B", OAK]


@pytest.mark.parametrize(
    ("inputs", "outputs", "answer", "documents"),
    [
        ({"documents": ALL}, {"documents": ["B"]}, ANSWER, ["B"]),
        ([{"text": "A"}, {"text": "B"}], [{"text": "B"}], ANSWER, [OAK, "B"]),
        ({"documents": ALL}, {"documents": []}, ANSWER, []),
        ({"documents": ["A", "B"]}, {"documents": ["B"], "answer": "Oak."}, ANSWER, ALL),
        ({"documents": ["A", "B"]}, {"documents": ["E"]}, ANSWER, ALL),
        ({"documents": ["A"]}, {"documents": ["A", "E"]}, ANSWER, ["B", OAK, "A", "E"]),
        ({"documents": ["A"]}, {"documents": ["A and more."]}, ANSWER, ["B", OAK, "A and more."]),
        (None, None, {"answer": ANSWER, "context": [OAK, "A"]}, [OAK, "A"]),
        (None, None, {"answer": ANSWER, "context": [f"{OAK} Yes."]}, [f"{OAK} Yes."]),
        (None, None, {"answer": ANSWER, "results": ["E"]}, ALL),
        (None, None, {"answer": ANSWER, "citations": [{"text": OAK}]}, ALL),
        (None, None, {"answer": ANSWER, "documents": ["The oak", "A"]}, ALL),  # shown shortened
    ],
)
def test_documents_that_a_step_changed_were_shown_so(
    join: Join, inputs: object, outputs: object, answer: object, documents: list[str]
) -> None:
    """Graders keep some documents, others add or widen; an answer may list those shown."""
    found = retriever("find", "root", *ALL, start=1)
    given: dict[str, Any] = {"input__value": inputs, "output__value": outputs}
    step = span("grade_documents", "root", "CHAIN", start=2, **given)
    assert only(join(root(output__value=answer), found, step))["documents"] == documents


def test_very_many_documents_are_compared_in_bounded_memory() -> None:
    """Every pair of 20,000 texts would take gigabytes; a widened text is found."""
    many = [f"Document {number}." for number in range(20_000)]
    assert not supersedes([f"Page {number}." for number in range(20_000)], many)
    assert supersedes(["Document 0. And more."], many)


def test_tools_and_earlier_turns_stand_next_to_the_documents(join: Join) -> None:
    """A tool that retrieves texts is a retrieval; evaluators and system messages are left out."""
    talk = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hello."},
        {"role": "assistant", "content": [{"type": "text", "text": "Hello!"}]},
        {"role": "user", "content": QUESTION},
    ]
    book = {"type": "tool", "data": {"type": "tool", "content": "B"}}  # as LangChain's return it
    made = join(
        root(input__value={"messages": talk}),
        span("search", "root", "TOOL", output__value="A"),
        retriever("find", "search", "A"),
        span("clock", "root", "TOOL", start=2, output__value={"hour": 7}, tool__name="time"),
        span("book", "root", "TOOL", start=3, output__value=book),
        span("ids", "book", "RETRIEVER", start=3, retrieval__documents=[{"id": "7"}]),
        span("rate", "root", "EVALUATOR", input__value="q", output__value="0.5"),
    )
    row, turns = only(made), [("user", "Hello."), ("assistant", "Hello!")]
    assert row["history"] == [{"role": role, "text": text} for role, text in turns]
    tools = [("time", '{"hour": 7}'), ("book", "B")]
    assert row["tool_outputs"] == [{"name": name, "text": text} for name, text in tools]
    assert (row["question"], row["documents"]) == (QUESTION, ["A"])


def test_answers_below_a_request_are_rows_with_an_index(join: Join) -> None:
    """A span without texts stands for the answers below it."""
    turns = [
        (
            root(f"turn{n}", "request", start=n, output__value=f"{n}."),
            retriever(f"find{n}", f"turn{n}", f"D{n}", start=n),
        )
        for n in range(2)
    ]
    rows, _ = join(span("request", None, ""), *chain.from_iterable(turns))
    assert [(row["id"][-2:], row["documents"], row["response"]) for row in rows] == [
        ("/0", ["D0"], "0."),
        ("/1", ["D1"], "1."),
    ]


def test_parts_of_an_answer_are_joined_where_no_span_has_all(join: Join) -> None:
    """A step that retrieves, and a model that answers, below a request."""
    said = [{"role": "assistant", "parts": [{"type": "text", "content": ANSWER}]}]
    last: dict[str, Any] = {"gen_ai__operation__name": "chat", "gen_ai__output__messages": said}
    made = join(
        span("request", None, ""),
        span("step", "request", input__value={"query": QUESTION}, output__value=[{"text": "A"}]),
        retriever("find", "step", "A"),
        span("call", "request", "LLM", start=2, llm__output_messages__0__message__role="assistant"),
        span("last", "request", "", start=3, **last),
    )
    row = only(made)
    assert (row["question"], row["documents"], row["response"]) == (QUESTION, ["A"], ANSWER)


def found(**recorded: Any) -> dict[str, Any]:
    """Return the span of a retriever that recorded this."""
    return span("find", "root", "RETRIEVER", **recorded)


LOST = [
    *("__REDACTED__", "<truncated due to size exceeding limit>"),
    *('{"answer": "It is 90', '[{"role": "user", "content": "How lo'),
    *("<openai.Stream object at 0x7f3a>", 'data: {"choices": []}\n\ndata: [DONE]'),
]
"""What stands for texts that were hidden or cut off, or had none."""
JUDGED = [span("judge", None, "EVALUATOR", input__value="q", output__value="1")]
NO_ROW = [
    ("no_texts", [span("root"), found()]),
    ("no_retrieval", [root()]),
    ("no_question", [*JUDGED, span("call", "judge", "LLM", input__value="q", output__value="1")]),
    ("no_response", [root(output__value=""), retriever("find", "root", "A")]),
    ("attributes_dropped", [root(), retriever("f", "root", "D.") | {"droppedAttributesCount": 3}]),
    ("cyclic_parents", [*answer(1), span("a", "b"), span("b", "a")]),
    ("too_deep", [span(f"s{n}", f"s{n - 1}" if n else None) for n in range(202)]),
    # An adherence of 0 would be a guess.
    ("documents_without_text", [root(), found()]),
    ("documents_without_text", [root(), found(retrieval__documents="?")]),
    # Neither one that failed after it had found something, nor a number of another meaning.
    ("documents_without_text", [root(), found(output__value=[{"id": 7}]) | {"status": "ERROR"}]),
    ("documents_without_text", [root(), found() | {"level": 2}]),
    *(
        ("documents_without_text", [root(), found(output__value=output)])
        for output in ({"took": 3, "answer": 7}, {"error": "timeout"}, [{"id": 7}], *LOST)
    ),
    *(("no_question", [root(input__value=lost), found()]) for lost in LOST),
    *(
        ("no_response", [root(output__value=lost), *answer(1)[1:]])
        for lost in (*LOST, "null", "None", " null\n")
    ),
]


@pytest.mark.parametrize(("reason", "spans"), NO_ROW)
def test_a_trace_that_gives_no_row_is_counted_by_its_reason(
    reason: str, spans: list[dict[str, Any]], join: Join
) -> None:
    """The first one is named."""
    rows, counts = join(*spans)
    assert (rows, dict(counts.unjoined)) == ([], {reason: 1})
    assert counts.examples[reason] == f"{1:032x}"


@pytest.mark.parametrize("null", ["null", "None", " null\n"])
def test_a_recorded_null_is_nothing_found(null: str, join: Join) -> None:
    """Of a retriever or a tool; a retrieval that failed found nothing either."""
    tool = span("tool", "root", "TOOL", output__value=null)
    failed = span("failed", "root", "RETRIEVER") | {"status": {"code": 2}}
    row = only(join(root(), found(output__value=null), failed, tool))
    assert (row["documents"], row.get("tool_outputs")) == ([], None)


def test_streamed_chunks_are_one_answer(join: Join) -> None:
    """White space between them counts."""
    chunks = [{"type": "AIMessageChunk", "content": text} for text in ("It", " ", "is 90 m.", "")]
    assert only(join(root(output__value=chunks), *answer(1)[1:]))["response"] == "It is 90 m."


def test_documents_in_a_table_that_pandas_wrote(tmp_path: Path) -> None:
    """A cell of CSV holds the list as Python prints it."""
    (tmp_path / "spans.csv").write_text(
        "context.trace_id,context.span_id,parent_id,span_kind,attributes.input.value,"
        "attributes.output.value,attributes.retrieval.documents\n"
        f"aa,b1,,CHAIN,{QUESTION},{ANSWER},\n"
        """aa,b2,b1,RETRIEVER,,,"[{'document.content': '90 m.', 'document.score': 0.5}]"\n"""
    )
    [row], _ = joined(str(tmp_path / "spans.csv"))
    assert row["documents"] == ["90 m."]


def test_tool_results_in_messages_stand_in_for_spans_of_tools(join: Join) -> None:
    """Of the root or of the last model; images in them are counted."""
    result = {"type": "tool_result", "content": [{"type": "text", "text": "90 m"}]}
    image = {"type": "image", "source": {}}
    talk = [
        {"role": "user", "content": [{"type": "text", "text": QUESTION}, image]},
        {"role": "assistant", "content": [{"type": "tool_use", "name": "measure"}]},
        {"role": "user", "content": [result, {"type": "text", "text": "Be brief."}]},
    ]
    [row], counts = join(root(input__value={"messages": talk}))
    assert (row["question"], row["tool_outputs"]) == (QUESTION, [{"text": "90 m"}])
    assert (row["metadata"]["left_out"], counts.notes["with_media"]) == (["image"], 1)
    call = span("call", "root", "LLM", input__value={"messages": talk}, output__value=ANSWER)
    assert only(join(root(), call))["tool_outputs"] == [{"text": "90 m"}]
    clock = span("clock", "root", "TOOL", output__value="21:10")
    assert only(join(root(), call, clock))["tool_outputs"] == [{"name": "clock", "text": "21:10"}]


def test_spans_that_occur_twice_or_lack_their_root_are_noted(tmp_path: Path) -> None:
    """Of unlike ones the last counts; without the root the parts do."""
    again = write(tmp_path / "again.jsonl", *answer(1, output__value="Yes."))
    rows, counts = joined(write(tmp_path / "spans.jsonl", *answer(1)), again)
    assert [row["response"] for row in rows] == ["Yes."]
    assert (counts.notes["repeated"], counts.notes["replaced"]) == (1, 1)
    rows, counts = joined(write(tmp_path / "rootless.jsonl", root(parent="gone"), *answer(1)[1:]))
    assert (len(rows), counts.notes["without_root"]) == (1, 1)


def test_hostile_lines_are_counted_and_cost_no_other_trace(tmp_path: Path) -> None:
    """Of any kind; NaN in a text of MLflow, as Python's JSON writes it, is no fault."""
    path, deep = tmp_path / "spans.jsonl", root(name="deep", trace=2, input__value="[" * 100_000)
    bare = {"spanId": "1", "attributes": []}
    name = write(path, 7, bare, root(input__value="\ud800"), *answer(1), deep)
    odd = '{"input.value": "Q?", "output.value": "A.", "x": NaN, "y": -Infinity}'
    mlflow = {"info": {"trace_id": "tr-1"}, "spans": [{"span_id": "a", "attributes": odd}]}
    with path.open("a", encoding="utf-8") as end:
        end.write(f'{json.dumps(mlflow)}\n{{"question": "no span"}}\n{{"resourceSpans": [{{"scope')
    rows, counts = joined(name)
    assert (len(rows), dict(counts.unjoined)) == (1, {"no_retrieval": 1, "no_question": 1})
    faults = ("not_an_object", "without_ids", "lone_surrogate", "unknown_format", "invalid_json")
    assert counts.faults == dict.fromkeys(faults, 1)
    assert counts.examples["not_an_object"].startswith(f"{name}:1: ")


def test_a_sample_follows_the_ids_alone(join: Join) -> None:
    """Greater shares contain smaller ones; another seed gives other traces."""
    spans = [one for trace in range(200) for one in answer(trace)]
    half, third, other = (
        {row["id"] for row in join(*spans, sample=share, seed=seed)[0]}
        for share, seed in ((0.5, 1), (0.3, 1), (0.3, 2))
    )
    assert third < half
    assert third != other
    assert (len(third), len(half)) == (54, 109)


def test_a_limit_per_day_counts_traces_with_rows(join: Join) -> None:
    """Days are those of UTC."""
    spans = [one for trace in range(60) for one in answer(trace, start=trace * HOUR)]
    rows, counts = join(*spans, root("alone", trace=99), per_day=2)
    days = [row["metadata"]["time"][:10] for row in rows]
    assert days == ["2024-10-04"] * 2 + ["2024-10-05"] * 2 + ["2024-10-06"] * 2
    assert counts.notes["over_limit"] + len(rows) + counts.unjoined["no_retrieval"] == counts.traces


def test_traces_are_chosen_by_attributes_and_metadata(join: Join) -> None:
    """All must hold."""
    spans = [one for trace in range(4) for one in answer(trace, user__id=str(trace % 2), tier="a")]
    rows, counts = join(*spans, where=["user=1", "tier=a", "user.id=1"])
    assert sorted(row["id"][-1] for row in rows) == ["1", "3"]
    assert counts.notes["filtered"] == 2


def test_the_command_writes_rows_and_says_what_gave_none(
    labeler_command: Command, tmp_path: Path
) -> None:
    """A file that gives no row leaves the output as it was."""
    rows = tmp_path / "rows.jsonl"
    good = write(tmp_path / "good.jsonl", *answer(1), root(trace=2), 7)
    code, _, err = labeler_command("import", "traces", good, "-o", rows)
    assert code == 1
    assert "1 trace without a retrieval: " in err
    assert f"1 unreadable (not_an_object); the first: {good}:4: " in err
    assert "1 row of 2 traces written" in err
    before = rows.read_text(encoding="utf-8")
    bad = write(tmp_path / "bad.jsonl", root())
    code, _, err = labeler_command("import", "traces", bad, "-o", rows)
    assert (code, rows.read_text(encoding="utf-8")) == (2, before)
    assert "no trace gives a row: 1 trace without a retrieval" in err
    for wrong in (["-o", "rows.parquet"], ["--sample", "2"], ["--where", "user"]):
        assert labeler_command("import", "traces", good, *wrong)[0] == 2


FILES = sorted((Path(__file__).parents[1] / "traces").iterdir())
TEXTS = ("question", "documents", "response", "history", "tool_outputs")
ONLY_IDS = "genai_ids.jsonl.gz"
"""OpenTelemetry's default: documents without texts."""


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_traces_of_another_package_become_the_rows_that_were_asked(path: Path) -> None:
    """The same chain or agent, watched by each instrumentation, gives the same rows."""
    rows, counts = joined(str(path))
    found = sorted(([row.get(name) for name in TEXTS] for row in rows), key=str)
    asked = [AGENT_ROW] if "agent" in path.name else import_rows()[:2]
    if path.name == ONLY_IDS:
        assert (found, counts.unjoined) == ([], {"documents_without_text": 2})
    else:
        assert found == [[row.get(name) for name in TEXTS] for row in asked]
        assert not counts.faults


def test_one_trace_of_mlflow_in_a_json_file_keeps_its_id(tmp_path: Path) -> None:
    """As ``Trace.to_json`` writes it, in one line or several."""
    (line, *_) = read_lines(FILES[0].parent / "mlflow.jsonl.gz")
    (tmp_path / "trace.json").write_text(json.dumps(json.loads(line.content), indent=2))
    rows, counts = joined(str(tmp_path / "trace.json"))
    assert (len(rows), rows[0]["id"][:3], counts.faults) == (1, "tr-", {})


def test_ids_of_langfuse_are_texts_of_any_kind(join: Join) -> None:
    """A trace and its observations, exported apart, have the id that the application gave."""
    trace = {"id": "0xabc", "timestamp": "2026-01-01T00:00:00Z", "input": QUESTION}
    one = {"id": "o1", "traceId": "0xabc", "type": "RETRIEVER", "output": ["One."]}
    row = only(join(trace | {"output": ANSWER}, one))
    assert (row["id"], row["documents"]) == ("0xabc", ["One."])


IMPORTS = sorted((Path(__file__).parents[1] / "imports").iterdir())
JOINED = ("deepeval.csv", "deepeval.jsonl")
"""Files whose documents are one text."""


@pytest.mark.parametrize("path", IMPORTS, ids=lambda path: path.name)
def test_a_file_of_another_package_is_read_as_it_was_written(path: Path) -> None:
    """Without a preset; quotes, line breaks and separators in texts included."""
    split = "|" if path.name in JOINED else None
    found = [row.content for row in open_rows(path, split_documents=split)]
    texts = ("question", "documents", "response")
    assert all(isinstance(one, Example) for one in found), found[0]
    assert [{name: getattr(one, name) for name in texts} for one in found] == [
        {name: row[name] if name != "documents" else tuple(row[name]) for name in texts}
        for row in import_rows()
    ]
