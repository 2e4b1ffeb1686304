from __future__ import annotations

import pytest

from labeler.errors import BadRow
from labeler.sentences.example import Example, Piece
from labeler.sentences.splitting import SPLITTERS, align, key_example

GENERAL = SPLITTERS["general"]


def test_a_given_sentence_is_kept_as_it_is() -> None:
    """The piece has the sentence with its spaces, and the span without them."""
    assert align("One.\n\n Two  words. ", ["One.", " Two words. "]) == [
        Piece(text="One.", start=0, end=4),
        Piece(text=" Two words. ", start=7, end=18),
    ]


def test_a_sentence_may_differ_in_white_space_alone() -> None:
    """A line break, a tab, a wide or a hard space and no space at all are the same."""
    text = "a\tb\u3000c\u00a0d\u2028e"
    assert align(text, ["a b", "cd e"]) == [
        Piece(text="a b", start=0, end=3),
        Piece(text="cd e", start=4, end=9),
    ]


def test_a_zero_width_space_is_no_white_space() -> None:
    """What ``str.isspace`` does not call white space has to be in the sentence."""
    with pytest.raises(BadRow, match="at character 1 the text has"):
        align("a\u200bb", ["ab"])


@pytest.mark.parametrize("text", ["", " \n\t\u2029 "])
def test_a_blank_text_has_no_sentences(text: str) -> None:
    """No sentence is what goes with a text that has nothing visible."""
    assert align(text, []) == []


@pytest.mark.parametrize(
    ("text", "sentences", "message"),
    [
        pytest.param(
            "One. Two.",
            ["One.", "Tow."],
            "document 3: given sentence 1 is not in it: at character 6 the text has 'wo.', the "
            "sentence 'ow.'; they may differ in white space alone",
            id="other_letters",
        ),
        pytest.param(
            "One.",
            ["One. More"],
            "document 3: given sentence 0 is not in it: at character 4 the text has ended, the "
            "sentence 'More'; they may differ in white space alone",
            id="longer_than_the_text",
        ),
        pytest.param(
            "One. Two.",
            ["One.", "Two.", "Two."],
            "document 3: given sentence 2 is not in it: at character 9 the text has ended, the "
            "sentence 'Two.'; they may differ in white space alone",
            id="one_too_many",
        ),
        pytest.param(
            "One. Two.",
            ["One."],
            "document 3: the given sentences end before it does: at character 5 it continues with "
            "'Two.'; give all of its sentences",
            id="one_too_few",
        ),
        pytest.param(
            "One.",
            ["One.", " \t"],
            "document 3: given sentence 1 is blank; leave it out",
            id="blank",
        ),
        pytest.param(
            "Two. One.",
            ["One.", "Two."],
            "document 3: given sentence 0 is not in it: at character 0 the text has 'Two. One.', "
            "the sentence 'One.'; they may differ in white space alone",
            id="out_of_order",
        ),
    ],
)
def test_sentences_that_do_not_fit_are_refused(
    text: str, sentences: list[str], message: str
) -> None:
    """The error says where, what the text has and what the sentence has."""
    with pytest.raises(BadRow) as caught:
        align(text, sentences, where="document 3")
    assert str(caught.value) == message
    assert caught.value.reason == "given_sentences_mismatch"


def _example(**fields: object) -> Example:
    row = {
        "id": "1",
        "question": "Q?",
        "documents": ("Doc one. Doc two.", " "),
        "response": "Yes. No.",
    }
    return Example.model_validate(row | fields)


def test_an_example_without_sentences_is_split() -> None:
    """The splitter cuts documents, response and reference, and is named."""
    keyed = key_example(_example(reference="It is so. It was.", metadata={"k": 1}), GENERAL)
    assert keyed.splitter == "general/1"
    assert keyed.document_keys() == ["0a", "0b"]
    assert keyed.documents[1] == ()
    assert [(s.key, s.text, s.start) for s in keyed.response] == [("a", "Yes.", 0), ("b", "No.", 5)]
    assert keyed.reference is not None
    assert [(s.key, s.text) for s in keyed.reference] == [
        ("ref.a", "It is so."),
        ("ref.b", "It was."),
    ]
    assert (keyed.id, keyed.question, keyed.metadata) == ("1", "Q?", {"k": 1})


def test_an_example_without_reference_has_none() -> None:
    """An absent reference stays absent, and a blank one is a reference without sentences."""
    assert key_example(_example(), GENERAL).reference is None
    assert key_example(_example(reference=" "), GENERAL).reference == ()


def test_an_examples_own_sentences_win() -> None:
    """Given sentences are used whatever splitter is asked for, and the record says so."""
    keyed = key_example(
        _example(
            documents_sentences=(("Doc", "one. Doc two."), ()),
            response_sentences=("Yes. No.",),
            reference="It is so. It was.",
        ),
        SPLITTERS["ragbench"],
    )
    assert keyed.splitter == "given/1"
    assert [s.text for s in keyed.document_sentences()] == ["Doc", "one. Doc two."]
    assert keyed.response_keys() == ["a"]
    assert keyed.reference is not None
    assert [s.text for s in keyed.reference] == ["It is so.", "It was."]


@pytest.mark.parametrize(
    ("fields", "reason", "message"),
    [
        (
            {"documents_sentences": (("Doc one. Doc two.",), ())},
            "given_sentences_incomplete",
            "no response_sentences",
        ),
        ({"response_sentences": ("Yes. No.",)}, "given_sentences_incomplete", "no documents_"),
        (
            {"documents_sentences": (("Doc one. Doc two.",),), "response_sentences": ("Yes. No.",)},
            "given_sentences_incomplete",
            "1 lists for 2 documents",
        ),
        (
            {"documents_sentences": ((), ()), "response_sentences": ("Yes. No.",)},
            "given_sentences_mismatch",
            "^document 0: the given sentences end",
        ),
        (
            {"documents_sentences": (("Doc one. Doc two.",), ()), "response_sentences": ("Yes.",)},
            "given_sentences_mismatch",
            "^response: the given sentences end",
        ),
    ],
)
def test_incomplete_given_sentences_are_refused(
    fields: dict[str, object], reason: str, message: str
) -> None:
    """A row brings all of its sentences or none."""
    with pytest.raises(BadRow, match=message) as caught:
        key_example(_example(**fields), GENERAL)
    assert caught.value.reason == reason
