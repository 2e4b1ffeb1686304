from __future__ import annotations

import pytest

from labeler.plugins.ragbench.splitter import RAGBENCH
from labeler.sentences.keys import document_key, response_key
from support.real_data import needs_ragbench, ragbench_rows


def texts(text: str) -> list[str]:
    """Return the sentences without their spans."""
    return [piece.text for piece in RAGBENCH.split(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", [], id="empty"),
        pytest.param(" \n \n", [], id="blank"),
        pytest.param(
            "This line stops here\nand this line goes on",
            ["This line stops here", "and this line goes on"],
            id="rule_1_every_line_is_cut",
        ),
        pytest.param(
            "This is the first one. This is the second one.",
            ["This is the first one.", "This is the second one."],
            id="rule_2_punkt",
        ),
        pytest.param(
            "Some people like Mr. Brown very much. Others do not like him.",
            ["Some people like Mr. Brown very much.", "Others do not like him."],
            id="rule_2_knows_mr",
        ),
        pytest.param(
            " A line may be indented.\n  This one is, too. ",
            [" A line may be indented.", "  This one is, too."],
            id="rule_2_leading_spaces_stay",
        ),
        pytest.param(
            "He said “it is all over.” And then he went home.",
            ["He said “it is all over.” And then he went home."],
            id="rule_2_curly_quotes_close_nothing",
        ),
        pytest.param(
            'He said "it is all over." And then he went home.',
            ['He said "it is all over."', "And then he went home."],
            id="rule_2_straight_quotes_close",
        ),
        pytest.param(
            "Here are three words.\n\nTwo words\nAnd three words again.",
            ["Here are three words. Two words", "And three words again."],
            id="rule_3_short_joins_to_the_one_before",
        ),
        pytest.param(
            "One two three.\nFour five six.",
            ["One two three.", "Four five six."],
            id="rule_3_three_words_stand_alone",
        ),
        pytest.param(
            "Two words\nAnd three words again.",
            ["Two words And three words again."],
            id="rule_3_short_takes_the_one_after",
        ),
        pytest.param("Yes. No. Perhaps.", ["Yes. No. Perhaps."], id="rule_3_all_short"),
        pytest.param(
            "a b\nc d\nOne two three.",
            ["a b c d", "One two three."],
            id="rule_3_joined_words_count",
        ),
        pytest.param(
            "Words are counted by spaces.\n two words",
            ["Words are counted by spaces.", " two words"],
            id="rule_3_a_leading_space_counts_as_a_word",
        ),
        pytest.param(
            "We sell apples, pears, etc.\nThey are all very good.\nAnd they are cheap.",
            ["We sell apples, pears, etc. They are all very good.", "And they are cheap."],
            id="rule_3_etc",
        ),
        pytest.param(
            "It was shown by Smith et al.\nBut nobody has repeated it.",
            ["It was shown by Smith et al. But nobody has repeated it."],
            id="rule_3_al",
        ),
    ],
)
def test_the_three_rules(text: str, expected: list[str]) -> None:
    """Lines are cut, punkt cuts the lines, and what is short or shortened is joined."""
    assert texts(text) == expected


def test_a_joined_sentence_spans_its_parts() -> None:
    """The text has one space where the source has anything; the span covers the source."""
    (piece,) = RAGBENCH.split("Hello.  \n\n   Dear friend of mine.")
    assert piece.text == "Hello.    Dear friend of mine."
    assert (piece.start, piece.end) == (0, 33)


def test_looking_words_up_leaves_no_trace() -> None:
    """Memory does not grow with the vocabulary of the texts."""
    from labeler.plugins.ragbench.splitter import _punkt

    context = _punkt()._params.ortho_context
    before = len(context)
    RAGBENCH.split("Qwxyz e.g. Zyxwq came. B. Wqzyx left etc. Xqzwy stayed.")
    assert len(context) == before


@needs_ragbench
def test_the_published_sentences_and_keys_are_reproduced() -> None:
    """Every document and every response of the subsets at hand, byte for byte."""
    documents = responses = 0
    for row in ragbench_rows():
        published = zip(row["documents"], row["documents_sentences"], strict=True)
        for d, (document, pairs) in enumerate(published):
            assert [[document_key(d, s), t] for s, t in enumerate(texts(document))] == pairs
            documents += 1
        ours = [[response_key(s), t] for s, t in enumerate(texts(row["response"]))]
        assert ours == row["response_sentences"]
        responses += 1
    print(f"RAGBench reproduced: {documents} documents, {responses} responses")  # noqa: T201
    assert (documents, responses) == (13_864, 3_017)
