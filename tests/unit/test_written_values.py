from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from labeler.api import open_rows
from labeler.data.written_values import written_value
from support.rows import contents, failed, only, write_csv, write_lines

DOCUMENTS = ["The quay is 90 m long.", 'It\'s built of "oak".\nSee [1].']
WRITTEN = {
    "JSON": json.dumps(DOCUMENTS),
    "a list": str(DOCUMENTS),
    "a tuple": str(tuple(DOCUMENTS)),
    "an array": f"array({DOCUMENTS!s}, dtype=object)",
    "an array in print": str(DOCUMENTS).replace("', ", "'\n "),
    "objects in JSON": json.dumps([{"page_content": text, "metadata": {}} for text in DOCUMENTS]),
}
for name, form in {
    "objects of LangChain": "Document(metadata={'p': 1}, page_content=TEXT)",
    "nodes of LlamaIndex": "NodeWithScore(node=TextNode(id_='a', relationships={<Kind.SOURCE: "
    "'1'>: Info(id='2', type=<Kind.DOCUMENT: '4'>)}, text=TEXT), score=0.5)",
    "scored pairs": "(TEXT, 0.5)",
}.items():
    WRITTEN[name] = f"[{', '.join(form.replace('TEXT', repr(text)) for text in DOCUMENTS)}]"


def parquet(row: dict[str, str], folder: Path) -> Any:
    """A Parquet file."""
    pl.DataFrame([row]).write_parquet(folder / "rows.parquet")
    return folder / "rows.parquet"


SOURCES: dict[str, Callable[[dict[str, str], Path], Any]] = {
    "JSON Lines": lambda row, folder: write_lines(folder / "rows.jsonl", [row]),
    "CSV": lambda row, folder: write_csv(folder / "rows.csv", [row]),
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
        ("[" + "1," * 2_000_001 + "]", "too large"),
        ("['" + "a" * (1 << 24) + "']", "too large"),
        (r"[\"a\", \"b\"]", "continues with"),
        ("[&quot;a&quot;]", "continues with"),
        ("[&#39;a&#39;]", "continues with"),
    ],
    ids=lambda text: text[:30],
)
def test_a_list_that_cannot_be_read_is_refused_by_name(text: str, says: str) -> None:
    """Also where a separator would make documents of its pieces."""
    row = {"question": "Q?", "documents": text, "response": "R."}
    for split in (None, ","):
        found = failed([row], split_documents=split)
        assert re.search(says, found.message), found.message


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
        ('\ufeff["a"]', ["a"]),
        ("<Document: {'content': 'a'}>", {"content": "a"}),
    ],
)
def test_values_are_those_that_were_written(text: str, value: object) -> None:
    """Escapes, numbers, names of nothing, sets and tuples."""
    assert written_value(text) == value


def test_other_fields_are_read_from_texts_too() -> None:
    """References as lists, metadata as an object or a text, turns and paths."""
    turns = [{"role": "user", "text": "Hi."}]
    row: dict[str, Any] = {
        "question": "Q?",
        "found": str({"hits": [{"text": "D."}]}),
        "response": "R.",
        "reference": "['90 m.', 'Ninety metres.']",
        "metadata": '{"run": 3}',
        "history": str(turns),
    }
    columns = {"documents": "found.hits[].text"}
    read = only([row], columns=columns)
    assert (read.documents, read.reference) == (("D.",), "90 m.\nNinety metres.")
    assert (read.metadata, read.history) == ({"run": 3}, turns)
    for text, nothing in (("a remark", " "), ("[1, 2]", [None])):
        read = only([row | {"metadata": text, "reference": nothing}], columns=columns)
        assert (read.metadata["metadata"], read.reference) == (text, None)


def test_lists_on_both_sides_of_a_separator() -> None:
    """Each part is a list, an object with a text, or a text; a list that is cut off is refused."""
    row = {"question": "q", "response": "r"}
    parts = ['["a", "b"]', "{'text': 'c'}", "[1] d", '[["x", "y"], ["1", "2"]]', '{"n": 1}']
    read = only([{**row, "documents": "|".join(parts)}], split_documents="|")
    assert read.documents == ("a", "b", "c", *parts[2:])
    assert failed([{**row, "documents": '["a"]|["b'}], split_documents="|")


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
    assert [getattr(one, "documents", None) for one in contents(rows)][::2] == [(*documents,)] * 2
    assert "2 rows have a document that is a list" in rows.notices["printed document"]
    assert only([row], columns={"documents": path}).documents == ("D.", "E.")
