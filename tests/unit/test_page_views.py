"""What a page is told of a label."""

from __future__ import annotations

from dataclasses import replace

from labeler.labels.answers import SentenceSupport
from labeler.report.views import label_view, record_view
from support.labeled import record


def test_a_sentence_that_was_judged_twice_shows_the_no() -> None:
    """As metrics count it, whichever came last; labels from elsewhere may judge one twice."""
    judged = record(support={"a": ["0a"]})
    no = SentenceSupport(
        response_sentence_key="a",
        explanation="Nowhere.",
        supporting_sentence_keys=(),
        fully_supported=False,
    )
    (yes,) = judged.label.sentence_support_information
    for entries in ((yes, no), (no, yes)):
        label = judged.label.model_copy(update={"sentence_support_information": entries})
        twice = judged.model_copy(update={"label": label})
        assert label_view(twice)["support"]["a"] == {
            "supported": False,
            "keys": [],
            "explanation": "Nowhere.",
        }


def test_citation_markers_name_their_documents() -> None:
    """By index; a sentence without a marker says nothing of it."""
    made = record(documents=[1, 1], support={"a": ["0a"], "b": ["1a"]}, citing=[" [2][9]"])
    first, second = record_view(made)["response"]
    assert first["cites"] == [
        {"marker": "[2]", "documents": [1], "missing": []},
        {"marker": "[9]", "documents": [], "missing": [9]},
    ]
    assert "cites" not in second


def test_a_view_has_the_conversation_only_where_there_is_one() -> None:
    """Turns with their speakers, tool outputs with the tool's name, controls written out."""
    made = record(turns=1, support={"a": ["h0b", "t0a"]})
    tool = replace(made.example.tool_outputs[0], name="cl\u202eock")
    example = made.example.model_copy(update={"tool_outputs": (tool,)})
    view = record_view(made.model_copy(update={"example": example}))
    [turn], [output] = view["history"], view["tool_outputs"]
    assert (turn["role"], [one["key"] for one in turn["sentences"]]) == ("user", ["h0a", "h0b"])
    assert output == {"name": "cl<U+202E>ock", "sentences": [{"key": "t0a", "text": "18"}]}
    assert view.keys() - record_view(record()).keys() == {"history", "tool_outputs"}
