"""Lists and objects written as text: read in every format, or refused by name."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from labeler.api import open_rows
from labeler.data.written_values import Unreadable, written_value
from labeler.labels.record import LabelFailure
from labeler.sentences.example import Example

DOCUMENTS = ["The quay is 90 m long.", 'It\'s built of "oak".\nSee [1].']
WRITTEN = {
    "JSON": json.dumps(DOCUMENTS),
    "a list": str(DOCUMENTS),
    "a tuple": str(tuple(DOCUMENTS)),
    "an array": f"array({DOCUMENTS!s}, dtype=object)",
    "an array in print": str(DOCUMENTS).replace("', ", "'\n "),
    "objects in JSON": json.dumps([{"page_content": text, "metadata": {}} for text in DOCUMENTS]),
}
WRITTEN["objects of LangChain"] = (
    "[" + ", ".join(f"Document(metadata={{'p': 1}}, page_content={d!r})" for d in DOCUMENTS) + "]"
)
WRITTEN["nodes of LlamaIndex"] = (
    "["
    + ", ".join(
        f"NodeWithScore(node=TextNode(id_='a', relationships={{<Kind.SOURCE: '1'>: Info(id='2', "
        f"type=<Kind.DOCUMENT: '4'>)}}, text={d!r}), score=0.5)"
        for d in DOCUMENTS
    )
    + "]"
)
WRITTEN["scored pairs"] = str([(text, 0.5) for text in DOCUMENTS])


def only(source: Any, **options: Any) -> Example:
    """What the one row of a source becomes."""
    (row,) = open_rows(source, **options)
    assert isinstance(row.content, Example), row.content
    return row.content


def jsonl(row: dict[str, str], folder: Path) -> Any:
    """A file of JSON Lines."""
    path = folder / "rows.jsonl"
    path.write_text(json.dumps(row))
    return path


def csv_file(row: dict[str, str], folder: Path) -> Any:
    """A CSV file."""
    path = folder / "rows.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([list(row), list(row.values())])
    return path


def parquet(row: dict[str, str], folder: Path) -> Any:
    """A Parquet file."""
    pl.DataFrame([row]).write_parquet(folder / "rows.parquet")
    return folder / "rows.parquet"


SOURCES: dict[str, Callable[[dict[str, str], Path], Any]] = {
    "JSON Lines": jsonl,
    "CSV": csv_file,
    "Parquet": parquet,
    "mappings": lambda row, _: [row],
    "frame": lambda row, _: pl.DataFrame([row]),
}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("form", WRITTEN)
def test_documents_written_as_text_are_read(form: str, source: str, tmp_path: Path) -> None:
    """In every format, under the names of presets and of users, with a separator and without."""
    for name, options in (
        ("documents", {}),
        ("documents", {"split_documents": "|"}),
        ("contexts", {}),
        ("mine", {"columns": {"documents": "mine"}}),
        ("mine", {"columns": {"documents": "mine,"}}),
    ):
        row = {"question": "Q?", name: WRITTEN[form], "response": "R."}
        read = only(SOURCES[source](row, tmp_path), **options)
        assert list(read.documents) == DOCUMENTS


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('["The quay is 90 m long.", "It was bu', "cut off"),
        ("['The quay is 90 m long', 'It", "cut off"),
        ("['It's long.', 'b']", "continues with"),
        ("['It's long [1] and", "continues with"),
        ("[\u201ca\u201d, \u201cb\u201d]", "continues with"),
        ("['a', nan]", r"documents\[1\] must be a text, got null"),
        ("[1, 2]", r"documents\[0\] must be a text, got a number"),
        ("['a' ... 'b']", "continues with"),
        ("['a' 'b', 'c']", "without a comma"),
        ("[Document(id=7, content: 'The quay is…...', score: 1)]", "shortened to '...'"),
        ("[<Document object at 0x7f>]", "continues with"),
        ("[b'a']", "cannot be read"),
        ("[__import__('os').getcwd()]", "cannot be read"),
        ("{'a': 1, 'a': 2}", "stands twice"),
        ("['\\U00110000']", "cannot be read"),
        ("[" * 33 + "'a'" + "]" * 33, "nested more than 32"),
    ],
)
def test_a_list_that_cannot_be_read_is_refused_by_name(text: str, says: str) -> None:
    """Also where a separator would make documents of its pieces."""
    row = {"question": "Q?", "documents": text, "response": "R."}
    for split in (None, ","):
        (read,) = open_rows([row], split_documents=split)
        assert isinstance(read.content, LabelFailure)
        assert re.search(says, read.content.message), read.content.message


@pytest.mark.parametrize(
    "text",
    [
        "[1] Harbour rules, see 2.",
        '["Harbour" rules] are known',
        '("Quay" in English) is long',
        "f(x=3) is a call",
        "[Note] The quay is long.",
        "[1, 2] show it.",
        "[[1]] says so",
        "['Oak'] is the label.",
        '["Oak"](https://example.org) is long.',
        "(see below) it is long",
        "{name} is long",
        "arrays (see [2])",
        "'quoted'",
    ],
)
def test_a_text_that_merely_begins_with_a_bracket_stays_a_text(text: str) -> None:
    """It is one document, or several where a separator says so."""
    assert written_value(text) == text
    for options in ({"split_documents": "|"}, {"columns": {"documents": "mine,"}}):
        row = {"question": "Q?", "response": "R.", "documents": text, "mine": text}
        assert only([row], **options).documents == (text,)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("['\\\\ \\' \\t\\x00\\u2028\\U0001f600']", ["\\ ' \t\x00\u2028\U0001f600"]),
        ("[{'n': -1.5e-05, 'x': None, 'y': True}]", [{"n": -1.5e-05, "x": None, "y": True}]),
        ("[u'a', u\"b\"]", ["a", "b"]),
        ('["a", NaN, null]', ["a", None, None]),
        ("{'a', 'b'}", ["a", "b"]),
        ("('a',)", ["a"]),
        ("[]", []),
        ('"[\\"a\\", \\"b\\"]"', ["a", "b"]),
        ("[<Document: {'content': 'a', 'meta': {}}>]", [{"content": "a", "meta": {}}]),
        ("deque(['a', 'b'])", ["a", "b"]),
        ("Index(['a'], dtype='object')", ["a"]),
        ("Document(page_content='a', metadata={})", {"page_content": "a", "metadata": {}}),
        ("[{'text': 'a'}\n {'text': None}]", [{"text": "a"}, {"text": None}]),
        ("page_content='a' metadata={'n': 1}", {"page_content": "a", "metadata": {"n": 1}}),
    ],
)
def test_values_are_those_that_were_written(text: str, value: object) -> None:
    """Escapes, numbers, names of nothing, sets and tuples."""
    assert written_value(text) == value


@pytest.mark.parametrize("text", ["[" + "1," * 2_000_001 + "]", "['" + "a" * (1 << 24) + "']"])
def test_a_list_beyond_the_limits_is_not_built(text: str) -> None:
    """It is refused before anything is read."""
    with pytest.raises(Unreadable, match="too large"):
        written_value(text)


def test_other_fields_are_read_from_texts_too() -> None:
    """References as lists, metadata as an object or a text, turns and paths."""
    turns = [{"role": "user", "text": "Hi."}]
    row = {
        "question": "Q?",
        "found": str({"hits": [{"text": "D."}]}),
        "response": "R.",
        "reference": "['90 m.', 'Ninety metres.']",
        "metadata": '{"run": 3}',
        "history": str(turns),
    }
    read = only([row], columns={"documents": "found.hits[].text"})
    assert (read.documents, read.reference) == (("D.",), "90 m.\nNinety metres.")
    assert (read.metadata, read.history) == ({"run": 3}, turns)
    read = only([{**row, "documents": ["D."], "metadata": "a remark"}])
    assert read.metadata["metadata"] == "a remark"
    blank = {**row, "documents": ["D."], "metadata": "[1, 2]"}
    for nothing in (" ", [None]):
        read = only([blank | {"reference": nothing}])
        assert (read.metadata["metadata"], read.reference) == ("[1, 2]", None)


def test_lists_on_both_sides_of_a_separator() -> None:
    """Each part is a list, an object with a text, or a text; a list that is cut off is refused."""
    row = {"question": "q", "response": "r"}
    parts = ['["a", "b"]', "{'text': 'c'}", "[1] d", '[["x", "y"], ["1", "2"]]', '{"n": 1}']
    rows = [{**row, "documents": "|".join(parts)}, {**row, "documents": '["a"]|["b'}]
    read, failed = (one.content for one in open_rows(rows, split_documents="|"))
    assert isinstance(read, Example)
    assert read.documents == ("a", "b", "c", *parts[2:])
    assert isinstance(failed, LabelFailure)


@pytest.mark.parametrize("text", ['\ufeff["a"]', "<Document: {'content': 'a'}>"])
def test_marks_around_a_list_are_no_part_of_it(text: str) -> None:
    """A byte order mark, and the name of the only object."""
    assert isinstance(written_value(text), list | dict)


@pytest.mark.parametrize("text", [r"[\"a\", \"b\"]", "[&quot;a&quot;]", "[&#39;a&#39;]"])
def test_lists_with_escaped_quotes_are_refused(text: str) -> None:
    """With their quotes, they would be a document."""
    with pytest.raises(Unreadable):
        written_value(text)


@pytest.mark.parametrize(
    ("documents", "path"),
    [
        (['["D.", "E."]'], "documents[][]"),
        ([str({"text": "D."}), '{"text": "E."}'], "documents[].text"),
        (["page_content='D.' metadata={}", "page_content='E.'"], "documents[].page_content"),
    ],
)
def test_documents_that_are_written_values_are_counted(documents: list[str], path: str) -> None:
    """They stay texts, as documents may hold JSON; the path of the notice reads what is in them."""
    row = {"question": "Q?", "documents": documents, "response": "R."}
    rows = open_rows([row, row | {"documents": ["[1] D."]}, row])
    assert [getattr(read.content, "documents", None) for read in rows][::2] == [(*documents,)] * 2
    assert "2 rows have a document that is a list" in rows.notices["printed document"]
    assert only([row], columns={"documents": path}).documents == ("D.", "E.")
