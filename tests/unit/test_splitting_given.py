from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labeler.errors import BadRow
from labeler.plugins.ragbench.splitter import RAGBENCH
from labeler.sentences.example import (
    Example,
    Piece,
    document_key,
    index_of,
    is_key,
    letters,
    position,
)
from labeler.sentences.splitting import SPLITTERS, align, key_example

GENERAL = SPLITTERS["general"]


def test_a_given_sentence_is_kept_and_may_differ_in_white_space_alone() -> None:
    """The piece has its spaces, the span none; a tab, a wide or hard space or none are the same."""
    assert align("One.\n\n Two  words. ", ["One.", " Two words. "]) == [
        Piece(text="One.", start=0, end=4),
        Piece(text=" Two words. ", start=7, end=18),
    ]
    assert align("a\tb\u3000c\u00a0d\u2028e", ["a b", "cd e"]) == [
        Piece(text="a b", start=0, end=3),
        Piece(text="cd e", start=4, end=9),
    ]
    assert align("", []) == align(" \n\t\u2029 ", []) == []


AT = "given sentence {} is not in it: at character {} the text has {}, the sentence '{}'; they may"


@pytest.mark.parametrize(
    ("text", "sentences", "says"),
    [
        ("One. Two.", ["One.", "Tow."], AT.format(1, 6, "'wo.'", "ow.")),
        # What ``str.isspace`` does not call white space has to be in the sentence.
        ("a\u200bb", ["ab"], AT.format(0, 1, r"'\u200bb'", "b")),
        ("One.", ["One. More"], AT.format(0, 4, "ended", "More")),
        ("One. Two.", ["One.", "Two.", "Two."], AT.format(2, 9, "ended", "Two.")),
        ("Two. One.", ["One.", "Two."], AT.format(0, 0, "'Two. One.'", "One.")),
        ("One. Two.", ["One.", " \t"], "given sentence 1 is blank; leave it out"),
        ("One. Two.", ["One."], "at character 5 it continues with 'Two.'; give all of"),
    ],
)
def test_sentences_that_do_not_fit_are_refused(text: str, sentences: list[str], says: str) -> None:
    """The error says where, what the text has and what the sentence has."""
    with pytest.raises(BadRow) as caught:
        align(text, sentences, where="document 3")
    assert str(caught.value).startswith("document 3: ")
    assert says in str(caught.value)
    assert caught.value.reason == "given_sentences_mismatch"


def _example(**fields: object) -> Example:
    row = {"id": "1", "question": "Q?", "documents": ("Doc one. Doc two.", " ")}
    return Example.model_validate(row | {"response": "Yes. No."} | fields)


def test_an_example_without_sentences_is_split() -> None:
    """By the splitter, which is named; given sentences are used whatever splitter is asked for."""
    keyed = key_example(_example(reference="It is so. It was.", metadata={"k": 1}), GENERAL)
    assert (keyed.splitter, keyed.document_keys()) == ("general/1", ["0a", "0b"])
    assert keyed.documents[1] == ()
    assert [(s.key, s.text, s.start) for s in keyed.response] == [("a", "Yes.", 0), ("b", "No.", 5)]
    reference = [(s.key, s.text) for s in keyed.reference or ()]
    assert reference == [("ref.a", "It is so."), ("ref.b", "It was.")]
    assert (keyed.id, keyed.question, keyed.metadata) == ("1", "Q?", {"k": 1})
    assert key_example(_example(), GENERAL).reference is None
    assert key_example(_example(reference=" "), GENERAL).reference == ()
    given = {"documents_sentences": (("Doc", "one. Doc two."), ()), "reference": "It is. It was."}
    own = key_example(_example(**given, response_sentences=("Yes. No.",)), SPLITTERS["ragbench"])
    assert (own.splitter, own.response_keys()) == ("given/1", ["a"])
    assert [s.text for s in own.document_sentences()] == ["Doc", "one. Doc two."]
    assert [s.text for s in own.reference or ()] == ["It is.", "It was."]


ALL = {"documents_sentences": (("Doc one. Doc two.",), ()), "response_sentences": ("Yes. No.",)}


@pytest.mark.parametrize(
    ("changes", "reason", "message"),
    [
        ({"response_sentences": None}, "incomplete", "no response_sentences"),
        ({"documents_sentences": None}, "incomplete", "no documents_"),
        ({"documents_sentences": (("Doc",),)}, "incomplete", "1 lists for 2 documents"),
        ({"documents_sentences": ((), ())}, "mismatch", "^document 0: the given sentences end"),
        ({"response_sentences": ("Yes.",)}, "mismatch", "^response: the given sentences end"),
    ],
)
def test_incomplete_given_sentences_are_refused(
    changes: dict[str, object], reason: str, message: str
) -> None:
    """A row brings all of its sentences or none."""
    with pytest.raises(BadRow, match=message) as caught:
        key_example(_example(**ALL | changes), GENERAL)
    assert caught.value.reason == f"given_sentences_{reason}"


RULES = {
    "": [],
    " \n \n": [],
    # Every line is cut.
    "This line stops here\nthis one goes on": ["This line stops here", "this one goes on"],
    # Punkt cuts the lines; curly quotes close nothing.
    "This is the first one. This is the other.": ["This is the first one.", "This is the other."],
    "Some people like Mr. Brown very much. Others do not like him.": [
        "Some people like Mr. Brown very much.",
        "Others do not like him.",
    ],
    " A line may be indented.\n  This one is, too. ": [
        " A line may be indented.",
        "  This one is, too.",
    ],
    "He said “it is all over.” And then he went home.": [
        "He said “it is all over.” And then he went home."
    ],
    'He said "it is all over." And then he went home.': [
        'He said "it is all over."',
        "And then he went home.",
    ],
    # What is short or shortened is joined; joined words and leading spaces count as words.
    "Here are three words.\n\nTwo words\nAnd three words again.": [
        "Here are three words. Two words",
        "And three words again.",
    ],
    "One two three.\nFour five six.": ["One two three.", "Four five six."],
    "Two words\nAnd three words again.": ["Two words And three words again."],
    "Yes. No. Perhaps.": ["Yes. No. Perhaps."],
    "a b\nc d\nOne two three.": ["a b c d", "One two three."],
    "Words are counted by spaces.\n two words": ["Words are counted by spaces.", " two words"],
    "We sell apples, pears, etc.\nThey are all very good.\nAnd they are cheap.": [
        "We sell apples, pears, etc. They are all very good.",
        "And they are cheap.",
    ],
    "It was shown by Smith et al.\nBut nobody has repeated it.": [
        "It was shown by Smith et al. But nobody has repeated it."
    ],
}


@pytest.mark.parametrize("text", RULES)
def test_the_three_rules(text: str) -> None:
    """Lines are cut, punkt cuts the lines, and what is short or shortened is joined."""
    assert [piece.text for piece in RAGBENCH.split(text)] == RULES[text]


def test_a_joined_sentence_spans_its_parts() -> None:
    """The text has one space where the source has anything; the span covers the source."""
    (piece,) = RAGBENCH.split("Hello.  \n\n   Dear friend of mine.")
    assert piece.text == "Hello.    Dear friend of mine."
    assert (piece.start, piece.end) == (0, 33)


INDEX = st.integers(min_value=0, max_value=10**9)
LETTERS = {0: "a", 25: "z", 26: "aa", 51: "az", 52: "ba", 549: "ud", 701: "zz", 702: "aaa"}


@given(INDEX, INDEX, st.text(alphabet="abcxyz", min_size=1, max_size=8))
def test_keys_round_trip(document: int, sentence: int, text: str) -> None:
    """A key names exactly the position that it was made of; letters go on as in RAGBench."""
    assert [letters(index) for index in LETTERS] == [*LETTERS.values()]
    assert index_of(letters(sentence)) == sentence
    assert letters(index_of(text)) == text
    own, answer = document_key(document, sentence), letters(sentence)
    keys = [own, answer, f"ref.{answer}", f"t{own}", f"h{own}"]
    places = [document, 0, 0, document, document]
    assert [*map(position, keys)] == [(n, place, sentence) for n, place in enumerate(places)]
    assert all(map(is_key, keys))


@given(st.lists(st.tuples(INDEX, INDEX), unique=True))
def test_reading_order_is_sort_order(places: list[tuple[int, int]]) -> None:
    """Sorting keys by position puts them in reading order."""
    keys = [document_key(*place) for place in places]
    assert sorted(keys, key=position) == [document_key(*place) for place in sorted(places)]


@pytest.mark.parametrize(
    "text",
    [
        *("", "0", "A", "0A", "00a", "01a", "a0", "0a.", "[0a]", " 0a", "0a\n", "-1a", "ref.", "é"),
        *("٣a", "1" * 5000 + "a", "a" * 5000),
    ],
)
def test_no_second_spelling(text: str) -> None:
    """What is not the one spelling of a key is refused; no position is negative."""
    assert not is_key(text)
    with pytest.raises(ValueError, match="not a sentence key"):
        position(text)
    with pytest.raises(ValueError, match="0 or more"):
        letters(-1)
    with pytest.raises(ValueError, match="0 or more"):
        document_key(-1, 0)
    for odd in ("", "A", "a1", "é"):
        with pytest.raises(ValueError, match="sentence letters"):
            index_of(odd)
