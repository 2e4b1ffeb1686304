"""Citation markers: their forms, what is none, and the documents that they name."""

from __future__ import annotations

import pytest

from labeler.sentences.citations import Cited, find_markers, read_citations, without_markers

FORMS = {
    "It rains [1].": (["[1]"], [1]),
    "It rains [2, 6]; it pours【4†source】.": (["[2, 6]", "【4†source】"], [2, 6, 4]),
    "It rains[1][2] and [^3]": (["[1]", "[2]", "[^3]"], [1, 2, 3]),
    "It rains [1-3, 7] or [4 and 5].": (["[1-3, 7]", "[4 and 5]"], [1, 2, 3, 7, 4, 5]),
    "It rains [1]\u2013[3].": (["[1]\u2013[3]"], [1, 2, 3]),
    "It rains [1](https://a.example/b_2).": (["[1](https://a.example/b_2)"], [1]),
    "It rains (Document 1) [Doc 2, Doc 3].": (["(Document 1)", "[Doc 2, Doc 3]"], [1, 2, 3]),
    "It rains (source: 1), it pours (chunks 2, 3).": (["(source: 1)", "(chunks 2, 3)"], [1, 2, 3]),
    "Documents 1, 2 and 4 say so, as Passage 3.": (
        ["Documents 1, 2 and 4", "Passage 3"],
        [1, 2, 4, 3],
    ),
    "According to document 2, 3 people died.": (["document 2"], [2]),
    "It rains.¹² It pours¹,³ and snows<sup>4</sup>.": (
        ["¹²", "¹,³", "<sup>4</sup>"],
        [12, 1, 3, 4],
    ),
}


@pytest.mark.parametrize("text", FORMS)
def test_forms_of_markers(text: str) -> None:
    """Brackets, footnotes, superscripts and names, with lists and ranges."""
    found = find_markers(text)
    numbers = [number for marker in found for number in marker.numbers]
    assert ([text[one.start : one.end] for one in found], numbers) == FORMS[text]


@pytest.mark.parametrize(
    "text",
    [
        "6 km², 10⁶ m³, x², Ca²⁺ and ¹⁴C; 4 m<sup>2</sup>, 10<sup>6</sup>",
        "The act of [2019], [sic] and [a], in section 3 (1).",
        "Read `args[0]` first.",
        "The right to be forgotten (Article 17), with a [sic] (note 2).",
        "Document 1.5 and Document1 of the document 2 years ago.",
    ],
)
def test_what_is_no_marker(text: str) -> None:
    """Exponents, years, code, versions and counts."""
    assert find_markers(text) == []
    assert without_markers(text) == text


def test_a_text_without_its_markers() -> None:
    """Each goes with the space before it."""
    assert without_markers("It rains [1, 2].¹ It pours (Document 3)!") == "It rains. It pours!"


def test_numbers_count_from_1_or_from_0() -> None:
    """From 0 in a record that uses 0; a number without a document is missing."""
    assert read_citations(["A [1, 3].", "B."], 2) == [
        Cited(frozenset([0]), frozenset([3])),
        Cited(),
    ]
    assert read_citations(["A [1, 2].", "B [0]."], 2) == [
        Cited(frozenset([1]), frozenset([2])),
        Cited(frozenset([0])),
    ]
