from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import labeler
from labeler.api import write_labels
from labeler.audit import audit_labels
from labeler.labels.record import LabelFailure, LabelRecord
from labeler.plugins.traces.retrievals import documents_of
from support.command import Command
from support.labeled import record
from support.rows import contents, examples, failed, write_lines

QUAY, OAK = "The quay is 90 m long.", "It was built of oak."
PLAIN, TITLED = (QUAY, OAK), (f"Harbour\n\n{QUAY}", OAK)
SNIPPETS = [{"snippet": QUAY}]
HITS = [
    {"_id": "1", "_source": {"title": "Harbour", "body": QUAY}},
    {"_id": "2", "fields": {"text": [OAK]}},
]
SHAPES: dict[str, tuple[Any, tuple[str, ...]]] = {
    "LangChain": ([{"page_content": t, "metadata": {"source": "a"}} for t in PLAIN], PLAIN),
    "LangChain.js": ([{"pageContent": t, "metadata": {}} for t in PLAIN], PLAIN),
    "LangChain, dumped": (
        [{"lc": 1, "type": "constructor", "kwargs": {"page_content": t}} for t in PLAIN],
        PLAIN,
    ),
    "with scores": ([[{"page_content": t}, 0.5] for t in PLAIN], PLAIN),
    "text in the metadata": ([{"page_content": "", "metadata": {"text": t}} for t in PLAIN], PLAIN),
    "with titles": ([{"heading": "Harbour", "text": QUAY}, {"text": OAK}], TITLED),
    "title in the text": ([{"title": "The quay", "text": QUAY}, {"text": OAK}], PLAIN),
    "chunk_text": ([{"chunk_id": "c1", "chunk_text": t} for t in PLAIN], PLAIN),
    "Chinese": ([{"标题": "Harbour", "内容": QUAY}, {"正文": OAK}], TITLED),
    "LlamaIndex": ([{"node": {"id_": "1", "text": t}, "score": 0.5} for t in PLAIN], PLAIN),
    "searches at once": (
        {"responses": [{"hits": {"hits": [{"_source": {"text": t}}]}} for t in PLAIN]},
        PLAIN,
    ),
    "a table": ({"columns": ["id", "text"], "rows": [["1", QUAY], ["2", OAK]]}, PLAIN),
    "fields by type": ([{"id": "1", "text_t": [QUAY]}, {"Description": OAK}], PLAIN),
    "segments": ({"records": [{"segment": {"content": t}, "score": 1} for t in PLAIN]}, PLAIN),
    "Haystack": ({"retriever": {"documents": [{"content": t, "meta": {}} for t in PLAIN]}}, PLAIN),
    "Elasticsearch": (
        {
            "took": 3,
            "aggregations": {"kinds": {"buckets": [{"key": "a"}]}},
            "hits": {"total": {"value": 2}, "hits": HITS},
        },
        TITLED,
    ),
    "Bedrock": ({"retrievalResults": [{"content": {"text": t}} for t in PLAIN]}, PLAIN),
    "Bedrock, generated": (
        {"citations": [{"retrievedReferences": [{"content": {"text": t}}]} for t in PLAIN]},
        PLAIN,
    ),
    "Azure AI Search": (
        {
            "@odata.context": "x",
            "@search.answers": [{"key": "1", "text": "90 m"}],
            "value": [{"title": "Harbour", "chunk": QUAY}, {"@search.score": 1, "content": OAK}],
        },
        TITLED,
    ),
    "Weaviate": ({"data": {"Get": {"Passage": [{"text": t} for t in PLAIN]}}}, PLAIN),
    "Weaviate 4": ({"objects": [{"uuid": "1", "properties": {"body": t}} for t in PLAIN]}, PLAIN),
    "Vertex": (
        {
            "results": [
                {"document": {"derivedStructData": {"title": "Harbour", "snippets": SNIPPETS}}},
                {"chunk": {"content": OAK, "documentMetadata": {"uri": "x"}}},
            ]
        },
        TITLED,
    ),
    "Vertex RAG": ({"contexts": {"contexts": [{"uri": "x", "text": t} for t in PLAIN]}}, PLAIN),
    "Pinecone": ({"matches": [{"id": "1", "metadata": {"text": t}} for t in PLAIN]}, PLAIN),
    "Pinecone, records": (
        {"result": {"hits": [{"_id": "1", "fields": {"chunk_text": t}} for t in PLAIN]}},
        PLAIN,
    ),
    "Qdrant": ({"result": {"points": [{"payload": {"document": t}} for t in PLAIN]}}, PLAIN),
    "a query without any": ([[], [{"text": t} for t in PLAIN]], PLAIN),
    "Milvus": ([[{"id": 1, "entity": {"text": t}} for t in PLAIN]], PLAIN),
    "Chroma": ({"ids": [["1", "2"]], "documents": [list(PLAIN)], "distances": [[0.1, 0.2]]}, PLAIN),
    "Kendra": (
        {
            "ResultItems": [
                {"DocumentTitle": {"Text": "Harbour"}, "DocumentExcerpt": {"Text": QUAY}}
            ]
        },
        TITLED[:1],
    ),
    "OpenAI": ({"data": [{"content": [{"type": "text", "text": t}]} for t in PLAIN]}, PLAIN),
    "Solr": ({"response": {"docs": [{"id": "1", "content": [t]} for t in PLAIN]}}, PLAIN),
    "Vespa": ({"root": {"children": [{"fields": {"text": t}} for t in PLAIN]}}, PLAIN),
    "Gemini": (
        {"groundingMetadata": {"groundingChunks": [{"retrievedContext": {"text": QUAY}}]}},
        PLAIN[:1],
    ),
    "MCP": ({"content": [{"type": "text", "text": t} for t in PLAIN], "isError": False}, PLAIN),
    "columns": ({"title": ["Harbour", ""], "passage_text": list(PLAIN), "n": [0, 1]}, TITLED),
    "HotpotQA": (
        [["Harbour", ["A.", "B."]], ["Quay", ["C."]]],
        ("Harbour\n\nA.\nB.", "Quay\n\nC."),
    ),
    "sentences": ({"title": ["Harbour"], "sentences": [["A.", "B."]]}, ("Harbour\n\nA.\nB.",)),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_documents_are_read_in_the_shape_of_their_retriever(shape: str) -> None:
    """In a row under any name of documents, and in the output of a span."""
    value, texts = SHAPES[shape]
    assert documents_of(value) == (texts, 0)
    names = ("documents", "contexts", "retrieved_contexts")
    rows = examples([{"question": "Q?", name: value, "response": "R."} for name in names])
    assert [row.documents for row in rows] == [texts] * 3


@pytest.mark.parametrize(
    ("value", "textless"),
    [
        (None, 0),
        ([], 0),
        ({"hits": {"total": 0, "hits": []}}, 0),
        ({"ids": [[]], "documents": [[]]}, 0),
        ([{"id": "7", "score": 0.5}] * 2, 2),
        ({"nearestNeighbors": [{"neighbors": [{"datapoint": {"datapointId": "1"}}]}]}, 1),
        ({"error": "timeout"}, 1),
        (7, 1),
    ],
)
def test_a_value_without_documents_is_empty_or_unknown(value: object, textless: int) -> None:
    """An empty list is a retrieval that found nothing; another shape is counted."""
    assert documents_of(value) == ((), textless)


def test_what_stands_next_to_a_text_stays_metadata() -> None:
    """Under the column of the documents."""
    rows = [
        {"question": "Q?", "response": "R.", "documents": [{"text": QUAY, "score": 0.5}, OAK]},
        {"query": "Q?", "response": "R.", "contexts": {"took": 3, "hits": [{"text": QUAY}]}},
    ]
    kept = [{"documents": [{"score": 0.5}, None]}, {"contexts": {"took": 3}}]
    assert [one.metadata for one in examples(rows)] == kept


@pytest.mark.parametrize(
    ("documents", "says"),
    [
        ([{"text": "D."}, {"id": "7", "score": 1}], r"documents\[1\] has no text under a known"),
        ([{"text": "D."}, None], r"documents\[1\] must be a text, got null"),
        ({"error": "timeout"}, "must be a list of texts, got an object with error"),
        (7, "must be a list of texts, got a number"),
        (
            [[1, "D."]],
            r"documents\[0\] must be a text, got a list; .*'documents': 'documents\[\]\[0\]'",
        ),
        ({"hits": [{"id": "7", "overview": "D."}]}, r"it is an object with id, overview; name the"),
        # They would be one document, with the title of another.
        ({"text": ["D.", "E."], "title": ["T"]}, "of texts, got an object with text, title"),
        # A doubled quote stands for one in SQL, and for nothing in Python and numpy.
        ("['It''s 90 m.']", "a quote in it is not escaped"),
    ],
)
def test_documents_without_a_text_fail_their_row(documents: object, says: str) -> None:
    """With the fields that are there, and how to name one."""
    found = failed([{"question": "Q?", "documents": documents, "response": "R."}])
    assert re.search(says, found.message), found.message


Keys = Sequence[str]


def answers(*verdicts: tuple[Keys, Keys]) -> list[LabelRecord]:
    """Labels of responses to one question: their relevant and their utilized sentences."""
    return [
        record(
            id=f"r{n}",
            relevant=relevant,
            utilized=used,
            support={"a": ["0a"]},
            citing=(f" [{n}]",),  # another response
        )
        for n, (relevant, used) in enumerate(verdicts)
    ]


def named(label: LabelRecord, name: str) -> LabelRecord:
    """A label under another id."""
    return label.model_copy(update={"example": label.example.model_copy(update={"id": name})})


@pytest.mark.parametrize(
    ("verdicts", "sentences", "flipped", "lean"),
    [
        # Each label calls relevant what its response uses.
        ([(["0a"], ["0a"]), (["0b"], ["0b"])], 3, 2, 1.0),
        ([(["0a"], ["0b"]), ([], ["0a"])], 3, 1, -1.0),
        # Used by both or by none: flips that say nothing about a lean.
        ([(["0a", "1a"], ["0a"]), ([], ["0a"])], 3, 2, None),
        ([(["0a"], ["0a"]), (["0a"], ["0b"])], 3, 0, None),
        # Three pairs of labels.
        ([(["0a"], ["0a"]), ([], []), ([], ["0a"])], 9, 2, 1.0),
    ],
)
def test_flips_lean_to_what_a_response_uses(
    verdicts: list[tuple[Keys, Keys]], sentences: int, flipped: int, lean: float | None
) -> None:
    """Every pair of labels counts once; compare says the same of one pair."""
    labels = answers(*verdicts)
    [found] = audit_labels(labels).same_documents
    assert (found.retrievals, found.answers) == (1, len(labels))
    assert (found.sentences, found.lean) == (sentences, lean)
    assert found.flipped == pytest.approx(flipped / sentences)
    assert found.differing == bool(flipped)
    if len(labels) == 2:
        one, other = ([named(each, "r")] for each in labels)
        [row] = labeler.compare(one, other, metrics="relevance").rows
        assert row.judge_inconsistency is not None
        assert row.judge_inconsistency.flipped == pytest.approx(found.flipped)
        assert row.judge_inconsistency.lean == found.lean


def test_other_documents_and_copies_are_nothing_to_compare() -> None:
    """A label under two ids is one label; other documents are another retrieval."""
    [label] = answers((["0a"], ["0a"]))
    other = record(id="other", documents=(1, 2), relevant=[], utilized=[])
    assert audit_labels([label, named(label, "copy"), other]).same_documents == ()


def test_the_command_says_how_far_the_judge_leans(tmp_path: Path, labeler_command: Command) -> None:
    """In the text and in JSON."""
    path = tmp_path / "labels.jsonl"
    write_labels(answers((["0a"], ["0a"]), (["0b"], ["0b"])), path)
    out = labeler_command("audit", path)[1]
    assert "different in 1 of 1 retrieval with several responses" in out
    assert "66.7 % of 3 sentences flipped, lean to used sentences +1.00 (-1 to 1)" in " ".join(
        out.split()
    )
    assert '"lean": 1.0' in labeler_command("audit", path, "--json")[1]


def test_lists_nested_without_end_fail_their_row_alone(tmp_path: Path) -> None:
    """A file cannot stop a run by them."""
    nested: dict[str, Any] = {"documents": [{"a": 1}]}
    for _ in range(450):
        nested = {"documents": [nested]}
    rows = [{"question": "Q?", "documents": one, "response": "R."} for one in (nested, [nested])]
    found = contents(write_lines(tmp_path / "rows.jsonl", rows))
    assert [one.kind for one in found if isinstance(one, LabelFailure)] == ["failure"] * 2
