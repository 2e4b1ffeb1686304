from __future__ import annotations

from typing import Any

import pytest

from labeler.api import open_rows
from labeler.labels.record import LabelFailure
from labeler.sentences.conversation import read_conversation
from labeler.sentences.example import Example

QUESTION, ANSWER, RESULT = "How long is the quay?", "It is 90 m long.", "The quay is 90 m long."
ASKED = {"role": "user", "content": QUESTION}
ANSWERED = {"role": "assistant", "content": ANSWER}


def text(value: str = RESULT) -> list[dict[str, str]]:
    """A content of one part."""
    return [{"type": "text", "text": value}]


FOUND = {"type": "search_result", "source": "u", "content": text()}
VALUE = {"type": "text", "value": RESULT}
MEASURE = {"name": "measure"}
CALLS: dict[str, list[Any]] = {
    "Anthropic": [
        {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "content": text()}]},
    ],
    "Anthropic, a text": [
        {"role": "user", "content": [{"type": "tool_result", "content": RESULT}, *text("Go on.")]}
    ],
    "Anthropic, search results": [
        {"role": "user", "content": [{"type": "tool_result", "content": [FOUND]}]}
    ],
    "Bedrock": [
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "1", "input": {}}}]},
        {"role": "user", "content": [{"toolResult": {"content": [{"text": RESULT}]}}]},
    ],
    "OpenAI": [
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]},
        {"role": "tool", "tool_call_id": "1", "content": RESULT},
    ],
    "OpenAI, responses": [
        {"type": "reasoning", "summary": []},
        {"type": "function_call", "call_id": "1", "arguments": "{}", **MEASURE},
        {"type": "function_call_output", "call_id": "1", "output": RESULT},
    ],
    "Haystack": [
        {"role": "tool", "content": [{"tool_call_result": {"result": RESULT, "origin": {}}}]}
    ],
    "MCP": [{"role": "tool", "content": [{"resource": {"text": RESULT}, "type": "resource"}]}],
    "ShareGPT": [
        {"from": "function_call", "value": "{}"},
        {"from": "observation", "value": RESULT},
    ],
    "Pydantic AI": [
        {"kind": "response", "parts": [{"part_kind": "tool-call", "args": "{}"}]},
        {"kind": "request", "parts": [{"part_kind": "tool-return", "content": RESULT}]},
    ],
    "Vercel, parts": [
        {"role": "assistant", "parts": [{"type": "tool-x", "toolCallId": "1", "output": RESULT}]}
    ],
    "Vercel, before": [
        {"role": "assistant", "toolInvocations": [{"toolCallId": "1", "result": RESULT}]}
    ],
    "Vercel": [{"role": "tool", "content": [{"type": "tool-result", "output": VALUE}]}],
    "Vercel, JSON": [
        {"role": "tool", "content": [{"type": "tool-result", "output": VALUE | {"type": "json"}}]}
    ],
    "Gemini": [
        {"role": "model", "parts": [{"functionCall": MEASURE | {"args": {}}}]},
        {
            "role": "user",
            "parts": [{"functionResponse": MEASURE | {"response": {"result": RESULT}}}],
        },
    ],
    "Gemini, code": [
        {
            "role": "model",
            "parts": [
                {"executableCode": {"code": "measure()"}},
                {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": RESULT}},
            ],
        }
    ],
    "OpenAI, code": [
        {"type": "code_interpreter_call", "outputs": [{"type": "logs", "logs": RESULT}]}
    ],
    "OpenAI, file search": [{"type": "file_search_call", "results": [{"text": RESULT}]}],
    "OpenAI, MCP": [{"type": "mcp_call", "name": "measure", "output": RESULT}],
    "OpenAI, an object": [{"role": "tool", "content": {"text": RESULT}}],
    "LangChain, pairs": [["tool", RESULT]],
    "LangChain, wrapped": [{"type": "tool", "data": {"content": RESULT}}],
    "LangChain": [{"type": "tool", "content": RESULT, "tool_call_id": "1"}],
    "OpenTelemetry": [
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "1", "response": RESULT}]}
    ],
}


def read(*turns: Any) -> Any:
    """The row of a list of messages."""
    (row,) = open_rows([{"messages": list(turns)}])
    return row.content


@pytest.mark.parametrize("system", CALLS)
def test_tool_results_are_tool_outputs_and_no_question(system: str) -> None:
    """Among messages that hold the row, and in a history."""
    found = read(ASKED, *CALLS[system], ANSWERED)
    assert isinstance(found, Example), found.message
    assert (found.question, found.response) == (QUESTION, ANSWER)
    assert [output["text"].strip('"') for output in found.tool_outputs] == [RESULT]
    _, outputs = read_conversation([ASKED, *CALLS[system]], None, "")
    assert [output.text.strip('"') for output in outputs] == [RESULT]


@pytest.mark.parametrize(
    "answer",
    [
        {"content": None, "refusal": ANSWER},
        {"content": [{"type": "refusal", "refusal": ANSWER}]},
        {"content": [{"type": "audio", "transcript": ANSWER}]},
        {"blocks": [{"block_type": "thinking", "content": "Hm."}, {"text": ANSWER}]},
        {"content": [{"reasoning": {"reasoning_text": "Hm."}}, {"text": ANSWER}]},
    ],
)
def test_a_refusal_and_speech_are_responses_and_a_thought_is_none(answer: dict[str, Any]) -> None:
    """As OpenAI, LlamaIndex and Haystack write them; speech by its transcript."""
    given = {"messages": [ASKED, {"role": "assistant", **answer}], "documents": ["D."]}
    (row,) = rows = open_rows([given])
    assert isinstance(row.content, Example)
    assert (row.content.response, "media" in rows.notices) == (ANSWER, False)


def failed(turns: list[Any]) -> str:
    """Why a row of messages has no example, for lack of a field."""
    given = {"messages": turns, "documents": ["D."]}
    content = next(iter(open_rows([given], preset="openai_messages"))).content
    assert isinstance(content, LabelFailure)
    assert content.reason == "missing_field"
    return content.message


@pytest.mark.parametrize(
    "end",
    [
        [{"role": "assistant", "content": "", "tool_calls": [{"id": "1"}]}],
        [{"type": "function_call", "name": "measure"}, {"role": "tool", "content": RESULT}],
    ],
)
def test_no_earlier_answer_stands_for_one_without_a_text(end: list[dict[str, Any]]) -> None:
    """The last question has no answer: it is not judged by the first one's."""
    turns = [ASKED, ANSWERED, {"role": "user", "content": "And how old?"}, *end]
    assert "after the last question" in failed(turns)


def test_a_result_without_a_text_is_json() -> None:
    """Objects, as Bedrock's ``json`` and MCP's structured content are."""
    part = {"toolResult": {"content": [{"json": {"metres": 90}}, {"text": "Measured."}]}}
    found = read(ASKED, {"role": "user", "content": [part]}, ANSWERED)
    assert found.tool_outputs[0]["text"] == '{"metres": 90}\nMeasured.'
    found = read(ASKED, {"role": "tool", "content": {"metres": 90}}, ANSWERED)
    assert found.tool_outputs[0]["text"] == '{"metres": 90}'


@pytest.mark.parametrize(
    "part",
    [
        FOUND | {"title": "Harbour"},
        {"type": "document", "title": "Harbour", "source": {"type": "text", "data": RESULT}},
        {"searchResult": {"source": "u", "title": "Harbour", "content": [{"text": RESULT}]}},
        {"document": {"name": "Harbour", "format": "txt", "source": {"text": RESULT}}},
    ],
)
def test_evidence_next_to_a_question_leaves_it_the_question(part: dict[str, Any]) -> None:
    """It has its title, and is a tool output."""
    found = read({"role": "user", "content": [part, *text(QUESTION)]}, ANSWERED)
    assert found.question == QUESTION
    assert found.tool_outputs == [{"name": "Harbour", "text": f"Harbour\n{RESULT}"}]


def test_a_comment_on_results_is_the_question_where_there_is_no_other() -> None:
    """And an earlier turn where there is one."""
    comment = {
        "role": "user",
        "content": [{"type": "tool_result", "content": RESULT}, *text("So?")],
    }
    assert read(comment, ANSWERED).question == "So?"
    assert read(ASKED, comment, ANSWERED).history == [{"role": "user", "text": "So?"}]


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image", "source": {"type": "base64", "data": "AA=="}},
        {"type": "image_url", "image_url": {"url": "data:"}},
        {"type": "input_image", "image_url": "data:"},
        {"image": {"format": "png", "source": {"bytes": "AA=="}}},
        {"inlineData": {"mimeType": "image/png", "data": "AA=="}},
        {"type": "input_audio", "input_audio": {"data": ""}},
        {"type": "document", "source": {"type": "base64", "data": "AA=="}},
        {"document": {"name": "d", "format": "pdf", "source": {"bytes": "AA=="}}},
    ],
)
def test_images_are_counted_by_a_notice(part: dict[str, Any]) -> None:
    """In messages and in a history; a question of an image alone is no question."""
    shown = {"role": "user", "content": [part, *text(QUESTION)]}
    plain = {"question": "Q?", "documents": ["D."], "response": "R.", "history": [shown]}
    for given in ([{"messages": [shown, ANSWERED], "documents": ["D."]}] * 2, [plain] * 2):
        rows = open_rows(given)
        assert all(isinstance(row.content, Example) for row in rows)
        assert "2 rows have messages with parts that no judge is shown" in rows.notices["media"]
    assert "no turn of the user with a text" in failed(
        [{"role": "user", "content": [part]}, ANSWERED]
    )
