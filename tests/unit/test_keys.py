"""Sentence keys."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labeler.sentences.keys import (
    document_key,
    index_of,
    is_key,
    letters,
    position,
    reference_key,
    response_key,
)

INDEX = st.integers(min_value=0, max_value=10**9)


@pytest.mark.parametrize(
    ("index", "text"),
    [
        (0, "a"),
        (25, "z"),
        (26, "aa"),
        (51, "az"),
        (52, "ba"),
        (549, "ud"),
        (701, "zz"),
        (702, "aaa"),
    ],
)
def test_letters_are_bijective_base_26(index: int, text: str) -> None:
    """After z comes aa, after az comes ba, and sentence 550 is ud, as in RAGBench."""
    assert letters(index) == text
    assert index_of(text) == index


@given(INDEX)
def test_every_index_has_one_name(index: int) -> None:
    """Reading what was written gives the index back."""
    assert index_of(letters(index)) == index


@given(st.text(alphabet="abcxyz", min_size=1, max_size=8))
def test_every_name_has_one_index(text: str) -> None:
    """Writing what was read gives the name back."""
    assert letters(index_of(text)) == text


@given(INDEX, INDEX)
def test_keys_round_trip(document: int, sentence: int) -> None:
    """A key names exactly the position that it was made of, in each part of a record."""
    assert position(document_key(document, sentence)) == (0, document, sentence)
    assert position(response_key(sentence)) == (1, 0, sentence)
    assert position(reference_key(sentence)) == (2, 0, sentence)


@given(INDEX, INDEX)
def test_what_is_written_is_a_key(document: int, sentence: int) -> None:
    """Whatever part it names a sentence of."""
    written = [document_key(document, sentence), response_key(sentence), reference_key(sentence)]
    assert all(map(is_key, written))


@given(st.lists(st.tuples(INDEX, INDEX), unique=True))
def test_reading_order_is_sort_order(places: list[tuple[int, int]]) -> None:
    """Sorting keys by position puts them in reading order."""
    keys = [document_key(*place) for place in places]
    assert sorted(keys, key=position) == [document_key(*place) for place in sorted(places)]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0",
        "A",
        "0A",
        "00a",
        "01a",
        "a0",
        "0a.",
        "[0a]",
        " 0a",
        "0a\n",
        "-1a",
        "ref.",
        "é",
        "٣a",
        "1" * 5000 + "a",
        "a" * 5000,
    ],
)
def test_no_second_spelling(text: str) -> None:
    """What is not the one spelling of a key is refused."""
    assert not is_key(text)
    with pytest.raises(ValueError, match="not a sentence key"):
        position(text)


@pytest.mark.parametrize("text", ["", "A", "a1", "é"])
def test_letters_only(text: str) -> None:
    """Only the letters a to z make a position."""
    with pytest.raises(ValueError, match="sentence letters"):
        index_of(text)


def test_negative_positions_are_refused() -> None:
    """There is no sentence before the first."""
    with pytest.raises(ValueError, match="0 or more"):
        letters(-1)
    with pytest.raises(ValueError, match="0 or more"):
        document_key(-1, 0)
