# ruff: noqa: RUF001  # letters and quotation marks of many scripts are the point
"""Laws that hold for every splitter and every text."""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from labeler.errors import BadRow
from labeler.labels.signature import canonical_json, texts_json
from labeler.sentences import characters
from labeler.sentences.characters import inert_json, plain_json
from labeler.sentences.splitting import SPLITTERS, align
from labeler.sentences.splitting.general import LONGEST, flatten

# What retrieved text is made of, so that chance puts it together in ways nobody thought of.
_FRAGMENTS = (
    *("A short sentence. ", "and so it goes", "Dr. Brown left at 5 p.m. ", "e.g. "),
    *("U.S. ", "No. 5"),
    *("- ", "• ", "1. ", "2.3.1 ", "(a) ", "# ", "**Bold**", "| a | b |", "|---|---|"),
    *("```", "~~~"),
    *("Title: ", "[12]", "(Smith et al., 2020). ", "3.14", "https://a.example/b?c=d.E"),
    "x@y.example",
    *("end.Next ", "np.Array", ".", "?", "!", "...", "…", ", ", '"', "“", "”", "‘", "«", "(", ")"),
    *("你好。", "本当?", "। ", "؟ ", "คำ", "Это г. Москва. ", "Τι; ", "é", "e\u0301", "\u0301"),
    *("😀", "👍🏽"),
    *("\u200d", "\u200b", "\ufeff", "\u00a0", "\u3000", "\u2028", "\u2029", "\x85", "\x1c", "\0"),
    *("<p>", "</li>\n<li>", "<br/>", "<td", "<sup>3</sup>", ".¹ ", ".12 Next", "“我去过。”他说。"),
    " 1. A 2. B",
    *("a,b,c\n", "a\tb\n", "Anna: yes. ", "[00:12] ", "2026-01-01 10:00:00 x\n"),
    *("EE. UU. ", "am 3. Mai "),
    *("\n", "\r\n", "\r", "\n\n", " ", "   ", "\t", "a" * 300, "word " * 100, "\n---\n", "\n> "),
)
_UNICODE = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)
_RAG_LIKE = st.lists(st.sampled_from(_FRAGMENTS), max_size=40).map("".join)
# Longer than the longest sentence.
_LONG = st.builds(str.__mul__, _RAG_LIKE, st.integers(2, 40))
TEXTS = st.one_of(_UNICODE, _RAG_LIKE, _LONG)

# The first text pays for loading the models.
unhurried = settings(deadline=None)


NAMES = sorted(SPLITTERS.keys() - {"given"})
"""Every splitter that cuts text; ``given`` has the row do it."""


def visible(text: str, splitter: str = "") -> str:
    """Leave out white space, which no splitter answers for.

    The general splitter may also repeat what it takes for white space
    (``test_general_repeats_invisible_characters_after_a_line_break``).
    """
    return "".join((flatten(text) if splitter == "general" else text).split())


@pytest.mark.parametrize("name", NAMES)
@unhurried
@given(text=TEXTS)
@example("\ud800 lone. \udfff Surrogates")
def test_no_visible_character_is_lost_or_doubled(name: str, text: str) -> None:
    """The pieces hold the text's visible characters in order, and so do their spans.

    Every span is inside the text, shares nothing visible with the one before it, and has something
    to label. A splitter remembers nothing from the texts it has seen.
    """
    pieces, end = SPLITTERS[name].split(text), 0
    for piece in pieces:
        assert 0 <= piece.start < piece.end <= len(text)
        assert not visible(text[piece.start : end], name)
        assert piece.text.strip()
        end = piece.end
    everything = visible(text, name)
    assert visible("".join(piece.text for piece in pieces), name) == everything
    assert visible("".join(text[p.start : p.end] for p in pieces), name) == everything
    assert SPLITTERS[name].split(text) == pieces


def test_general_repeats_invisible_characters_after_a_line_break() -> None:
    """They also end the sentence before."""
    pieces = SPLITTERS["general"].split("It is done.\n\u200bNext one.")
    assert [piece.text for piece in pieces] == ["It is done.\n\u200b", "\u200bNext one."]


@unhurried
@given(text=TEXTS)
def test_a_piece_is_its_span(text: str) -> None:
    """The general splitter shows the judge the source as it stands, without outer space.

    Joining by the splitter of RAGBench changes nothing but white space between the joined parts.
    """
    for piece in SPLITTERS["general"].split(text):
        assert piece.text == text[piece.start : piece.end] == piece.text.strip()
        assert len(piece.text) <= LONGEST
    for piece in SPLITTERS["ragbench"].split(text):
        assert visible(piece.text) == visible(text[piece.start : piece.end])


@pytest.mark.parametrize("name", NAMES)
@unhurried
@given(text=TEXTS)
def test_a_splitters_sentences_align_with_their_text(name: str, text: str) -> None:
    """Given back as given sentences, they are found with the visible part of their spans."""
    pieces = SPLITTERS[name].split(text)
    assume(all(one.end <= other.start for one, other in pairwise(pieces)))
    aligned = align(text, [piece.text for piece in pieces])
    found, given = (
        [(one.text, text[one.start : one.end].strip()) for one in some]
        for some in (aligned, pieces)
    )
    assert found == given


@unhurried
@given(text=TEXTS, position=st.integers(min_value=0), char=st.sampled_from("x。\0"))
def test_sentences_with_one_more_character_are_refused(text: str, position: int, char: str) -> None:
    """Not one visible character may be added to the text."""
    at = position % (len(text) + 1)
    with pytest.raises(BadRow):
        align(text, [text[:at] + char + text[at:]])


NESTED = st.recursive(
    st.text() | st.integers(-(2**40), 2**40),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)
ODD = st.text(alphabet="ab<>[]|/~!e\u200c\u200d\u00ad\ufe0e\uff5c\u202e \n\x7f\U000e0041")


@given(NESTED)
def test_texts_are_encoded_as_canonical_json(value: object) -> None:
    """Keys of labels do not depend on the encoder; a lone surrogate is an error of either."""
    assert texts_json(value) == canonical_json(value)
    for encode in (texts_json, canonical_json):
        with pytest.raises(ValueError, match="surrogates"):
            encode(["\ud800"])


@given(ODD | st.text())
def test_control_tokens_are_found_by_their_first_characters(text: str) -> None:
    """Searching for candidates first escapes the same characters."""
    with suppress(UnicodeEncodeError):
        whole = characters._CONTROL_TOKEN.sub(characters._escape, plain_json(text))
        assert inert_json(text) == whole
