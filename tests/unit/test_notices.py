"""What is counted about rows because it may not be what is meant."""

from __future__ import annotations

from typing import Any

import pytest

from labeler.api import open_rows
from labeler.sentences.example import Example

ROW: dict[str, Any] = {"question": "Q?", "documents": ["D."], "response": "R."}
NAMES = "documents that are names, such as "
PROMPT = "a question that holds a document, as if it were a whole prompt"
FAULT = "a response such as "
WRITTEN = "a response that is a list or object written as text"
CHOICES = "a response of several choices that differ; the first is judged"
LANGUAGES = ["Es ist schön.", "Причал долог.", "岸は長い。", "رصيف طويل جدا", "घाट", "ท่าเรือ"]
IMAGE = {"type": "image_url", "image_url": {"url": "data:"}}


def further(name: str) -> str:
    """The notice about another text of a document."""
    return f"documents with another text ({name}), which is not judged"


def asked(last: str, *parts: Any) -> dict[str, Any]:
    """A question of messages that end with a turn of the assistant."""
    said = [{"type": "text", "text": "Q?"}, *parts]
    turns = [{"role": "user", "content": said}, {"role": "assistant", "content": last}]
    return {"question": turns}


def earlier(**turn: Any) -> dict[str, Any]:
    """A history of one turn."""
    return {"history": [{"role": "assistant", **turn}]}


NOTED: list[tuple[dict[str, Any], str]] = [
    ({}, ""),
    # documents
    ({"documents": ["doc_17", "doc_3"]}, f"{NAMES}'doc_17'"),
    ({"documents": ["quay.pdf", "OAK.PDF"]}, NAMES),
    ({"documents": [{"content": "https://example.org/quay"}]}, NAMES),
    ({"documents": ["The quay is long.", "swg17"]}, f"{NAMES}'swg17'"),
    ({"documents": ["2024-05-01", "3.5"]}, ""),
    ({"documents": ["Quay.", "文档中没有提到"]}, ""),
    ({"documents": []}, ""),
    ({"documents": ["D.", " "]}, "an empty document"),
    ({"documents": [{"content": "D.", "raw_content": "E.", "url": "u"}]}, further("raw_content")),
    ({"documents": [{"text": "D.", "context": "E."}]}, further("context")),
    ({"documents": {"results": [{"text": "D.", "raw_content": "E."}]}}, further("raw_content")),
    ({"documents": [{"doc": "Quay.", "chunks": [{"text": "D."}]}]}, further("chunks")),
    ({"documents": [{"text": "D.", "citations": ["7"]}]}, ""),
    ({"documents": {"@odata.context": "u", "value": [{"text": "D."}]}}, ""),
    ({"documents": [{"page_content": "D.", "metadata": {"text": "E."}, "id": "7"}]}, ""),
    ({"documents": [{"title": "Quay", "text": "D.", "text_template": "{x}"}]}, ""),
    ({"documents": [{"text": "D.", "metadata": {"window": "A B C D E"}}]}, further("window")),
    ({"documents": {"data": [{"title": "Quay", "description": "D.", "markdown": "# Quay"}]}}, ""),
    # texts
    ({"response": " "}, ""),
    ({"question": '{"text": "Q?"}'}, "a question that is a list or object written as text"),
    ({"response": "AIMessage(content='R.', additional_kwargs={})"}, WRITTEN),
    ({"response": "content='R.' additional_kwargs={}"}, WRITTEN),
    ({"response": '{"reasoning": "Hm.", "answer": "R."}'}, WRITTEN),
    ({"response": '{"answer": "R.", "answer": "S."}'}, WRITTEN),
    ({"response": '```json\n{"answer": "R."}\n```'}, WRITTEN),
    ({"response": "f(x) is 3."}, ""),
    ({"response": "[1] says so."}, ""),
    ({"response": "b'R.'"}, WRITTEN),
    ({"question": "Is it long?", "response": "Is it long? Yes."}, "a response that begins"),
    ({"question": " "}, "an empty question, as merged cells"),
    ({"question": "Use this:\nThe quay is long.\nQ?", "documents": ["The quay is long."]}, PROMPT),
    ({"response": "Error code: 429 - {'error': {}}"}, FAULT),
    ({"response": "openai.APITimeoutError: Request timed out."}, FAULT),
    ({"response": 'data: {"choices": []}\n\ndata: [DONE]'}, FAULT),
    ({"response": "Error 429 says that too many asked."}, ""),
    ({"response": "R.<|return|>"}, "a text with '<|'"),
    ({"response": "I know it.\nFinal Answer: R."}, "a text with '\\nFinal Answer:'"),
    ({"response": r"R.\n\nS."}, r"a text with '\\n\\n' or the like"),
    ({"response": "It&#39;s R."}, "a text with '&#39;' or the like"),
    ({"response": "It\u00e2\u0080\u0099s R."}, "a text with "),
    ({"response": "Over \u0120the lazy"}, "a text with 'Ġthe'"),
    *(({"response": text.encode().decode("latin-1")}, "a text with ") for text in LANGUAGES),
    ({"response": "É à Ñandú, São Ãs, Øya, ï: “così è”."}, ""),
    ({"response": "Ça."}, ""),
    ({"response": {"choices": [{"text": "R."}, {"text": "S."}]}}, CHOICES),
    ({"response": {"output": {"generations": [[{"text": "R."}, {"text": "S."}]]}}}, CHOICES),
    ({"response": {"choices": [{"text": "R."}, {"text": "R."}]}}, ""),
    # messages
    (asked("S."), "a last turn (assistant) that no judge is shown"),
    (asked("R."), ""),
    (asked("R.", IMAGE), "messages with parts that no judge is shown (image_url)"),
    (earlier(text="R."), "a history that ends with the response"),
    (earlier(phrase="How heavy is it?"), "messages with parts that no judge is shown (phrase)"),
    (earlier(reasoning_content="They ask for its weight."), ""),
    (earlier(at="Sat Nov 29", tool_calls=[{"id": "1"}]), ""),
    # columns
    ({"id": "1.0"}, "an id such as '1.0'"),
    ({"id": "1,2E+17"}, "an id such as '1,2E+17'"),
    ({"id": '="007"'}, "an id such as"),
    ({"id": "1.01"}, ""),
    ({"id": "2-Jan"}, "an id such as '2-Jan'"),
    ({"id": "Okt-17"}, "an id such as 'Okt-17'"),
    ({"_id": "7"}, "'_id' and no 'id': --map id=_id reads it"),
    ({"_id": {"$oid": "7"}}, "'_id' and no 'id': --map 'id=_id.$oid' reads it"),
    ({"_id": "7", "id": "8"}, ""),
    ({"questionId": "7"}, "'questionId' and no 'id': --map id=questionId reads it"),
    ({"__index_level_0__": 7}, "'__index_level_0__' and no 'id'"),
    ({"chat_history": "7"}, "'chat_history' and no 'history'"),
    ({"toolOutputs": "7"}, "'toolOutputs' and no 'tool_outputs'"),
    ({"expectedAnswers": "7"}, "'expectedAnswers' and no 'reference'"),
    ({"Reference": "7"}, "'Reference' and no 'reference'"),
    ({"ground_truth": "7", "reference": "8"}, ""),
    ({"answer": ["7"]}, "'answer' and no 'reference': --map reference=answer reads it"),
    ({"Response": "S."}, "'Response' next to 'response', which alone is read"),
    ({"response.1": "S."}, "'response.1' next to 'response', which alone is read"),
    ({"Response": "R."}, ""),
    ({"model": "a", "metadata": {"model": "b"}}, "'model' as a column and in its metadata"),
]


@pytest.mark.parametrize(("changes", "notice"), NOTED)
def test_what_may_not_be_meant_is_counted(changes: dict[str, Any], notice: str) -> None:
    """The row is read all the same, and another notice is not given."""
    rows = open_rows([ROW | changes])
    (row,) = rows
    assert isinstance(row.content, Example), row.content
    given = changes.get("response")
    assert row.content.response == (given if isinstance(given, str) else "R.")
    found = [text.removeprefix("1 row has ") for text in rows.notices.values()]
    assert [text[: len(notice)] for text in found] == [notice] * bool(notice)


@pytest.mark.parametrize(("path", "count"), [("found", 1), ("found[].snippet", 0)])
def test_another_text_in_a_named_column_is_noticed(path: str, count: int) -> None:
    """But for a path to the text that is meant; a question of another form is not an empty one."""
    found = [{"snippet": "D.", "page": "The whole text of the page."}]
    row = {"question": {"id": "7"}, "found": found, "response": "R."}
    rows = open_rows([row], columns={"documents": path})
    list(rows)
    assert list(rows.notices) == ["further"] * count


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        ([{"documents": ["D."]}, {"documents": ["E."]}, {"documents": ["F."]}], 2),
        ([{"documents": ["D."]}, {"documents": ["E."], "response": ""}], 1),
        ([{"documents": ["D."]}, {"documents": ["D."]}], 0),
        ([{"documents": ["D."]}, {"documents": ["E."], "response": "S."}], 0),
        ([{"documents": ["D."]}, {"documents": ["E.", "F."]}], 0),
    ],
)
def test_rows_of_one_passage_each_are_counted(changes: list[dict[str, Any]], count: int) -> None:
    """Each would be judged, and paid for, by that passage alone."""
    rows = open_rows([ROW | one for one in changes])
    list(rows)
    said = [text for text in rows.notices.values() if "put all of a question into one list" in text]
    assert [text.split()[0] for text in said] == [str(count)] * bool(count)
