"""Checks of explanations, against texts that models write and texts that strangers would."""

from __future__ import annotations

import pytest

from labeler.audit.explanations import affirms, calls_wrong, denies, named_keys, unknown_keys
from labeler.labels.record import LabelRecord
from support.audited import found, judged

KEYS = frozenset(["0a", "0b", "0c", "0d", "1a", "1b", "12ab"])


DENIALS = (
    "Not supported.",
    "Not supported by any of the documents.",
    "This sentence is not supported by the documents.",
    "This claim isn't supported by Document 1, nor by another.",
    "The statement is unsupported.",
    "Unsupported: nobody says so.",
    "Partially supported by Document 2.",
    "This sentence is only partially supported.",
    "The claim is not fully supported.",
    "Document 1 gives the date, but no document supports the place.",
    "None of the documents state that the tower is red.",
    "There is no evidence for the height.",
    "The year is supported by 0a; however, the claim about the mayor is not supported.",
    "This contradicts the document.",
    "The sentence is contradicted by 0b.",
    "The sentence is inaccurate.",
    "The response incorrectly states that the tower is red.",
    "It cannot be verified.",
    "The claim lacks support.",
    "While the date is right, the documents do not support the place.",
    "THE CLAIM IS NOT SUPPORTED.",
    "The claim isn\u2019t supported by the context.",
    "The claim is not\nsupported.",
)
AFFIRMATIONS = (
    "Supported by Document 0.",
    "This sentence is supported by 0a and 0b.",
    "Directly supported: 0a has the same words.",
    "The year is mentioned in 0b.",
    "Document 1 confirms this.",
)
NO_DENIALS = (
    "",
    "Fully supported by 0a.",
    "This sentence is not only supported by 0a but also by 0b.",
    "Nothing contradicts the documents.",
    "No document contradicts the claim, and 0a supports it.",
    "The response does not contain any unsupported claims.",
    "There is nothing in the response that is unsupported.",
    "The claim is not unsupported: 0a says so.",
    "It is not incorrect.",
    "Although the exact words are not supported by 0b, 0a states the same.",
    "Supported by 0a, although the colour is not mentioned.",
    "0a is not supported on older models, says the manual.",
    "Document 1 states that USB memory sticks are not supported.",
    "The manual warns that unsupported formats are skipped.",
    "The response says 'this claim is not supported', as 0a does.",
    'Document 1 quotes the critic: "The sentence is not supported." That is what is said.',
    "The tower does not sway, which 0a confirms.",
    "An incorrect cable is one cause, says 0b.",
    "Supported by Document 0 and partially supported by Document 1.",
    "Document 0 partially supports it, and Document 1 supports the rest.",
)
"""Double negations, "not only", quoted words, concessions, and features of products."""
RESERVES = (
    "",
    "Generally supported by 0a.",
    "Indirectly supported by 0a.",
    "Supported by 0a, except for the year.",
    "Supported by 0a, but it is beside the point.",
    "It is not supported by 0a.",
    "The step is implied by what is mentioned in 0b.",
    "No document supports this.",
)
"""Half a support is why the flag is false."""


@pytest.mark.parametrize(
    ("text", "denied", "affirmed"),
    [
        *((text, True, False) for text in DENIALS),
        *((text, False, True) for text in AFFIRMATIONS),
        *((text, False, None) for text in NO_DENIALS),
        *((text, None, False) for text in RESERVES),
    ],
)
def test_a_denial_and_an_affirmation_are_read(
    text: str, denied: bool | None, affirmed: bool | None
) -> None:
    """In the words that judges use; only where nothing is held back."""
    assert denied in {None, denies(text)}
    assert affirmed in {None, affirms(text)}


def test_a_long_explanation_is_read_as_far_as_anybody_would() -> None:
    """What stands beyond is not looked at, and hostile repetition takes no time to speak of."""
    assert not denies("Fine. " * 5_000 + "This sentence is not supported.")
    for hostile in ("unsupported claim ", "'a ", "although ", "no no no ", "not ", "is ", '"'):
        denies(hostile * 20_000)
        affirms(hostile * 20_000)
        calls_wrong(hostile * 20_000)


def explained(text: str, keys: tuple[str, ...] = ("0a",)) -> LabelRecord:
    """A supported sentence with an explanation, beside another one."""
    return judged(
        {"The tower is high.": keys, "It was opened in 1931.": ["0b"]}, explained={"a": text}
    )


SPECIAL = "It is not supported by any document and needs none."
LACKING = judged(
    {"The context does not say who built the tower.": ["0a"]},
    explained={"a": "None of the documents states who built it."},
)
BOTH = judged({"A b.": ["0a"], "C d.": []}, explained={"a": "As said.", "b": "AS  said."})
OVERALL = "overall_explanation_against_verdict"
PARTLY = "The response is partially supported by the documents."
WHOLLY = "The response is supported by the documents."
OTHERS, MORE = "explanation_names_other_keys", "explanation_names_more_keys"
TEXTS = ("The tower is high.", "It was opened.", "Ferries rest.")
COPIES = dict.fromkeys("abc", "Directly supported.")
APART = dict(zip(TEXTS, (("0a",), ("0b",), ("1a",)), strict=True))


@pytest.mark.parametrize(
    ("check", "made", "keys"),
    [
        ("explanation_denies", explained("Not supported by any document."), ["a 0a"]),
        ("explanation_denies", explained("Supported by 0a."), []),
        # A special string stands for what no document supports, but must not be false.
        ("explanation_denies", explained(SPECIAL, ("general",)), []),
        ("explanation_denies", explained("The sentence is incorrect.", ("general",)), ["a"]),
        # What the documents do not say is the very claim.
        ("explanation_denies", LACKING, []),
        ("explanation_affirms", explained("This sentence is supported by 0a.", ()), ["a"]),
        ("explanation_affirms", explained("No document says so.", ()), []),
        # The keys that it names, and those that are listed.
        (OTHERS, explained("Sentence 1a says so."), ["a 0a 1a"]),
        (MORE, explained("Sentence 1a says so."), []),
        # Some of them are listed.
        (MORE, explained("Sentences 0a and 1a say so."), ["a 1a"]),
        (OTHERS, explained("Sentences 0a and 1a say so."), []),
        (MORE, explained("Sentence 0a says so."), []),
        ("explanation_names_unknown_key", explained("See sentence 9z."), ["a"]),
        # Spaces and capitals make no other explanation.
        ("explanation_for_both_verdicts", BOTH, ["a b"]),
        # One for three sentences; where they rest on the same sentence it may be right for all.
        ("explanation_copied", judged(APART, explained=COPIES), ["a b c"]),
        ("explanation_copied", judged(dict.fromkeys(TEXTS, ("0a",)), explained=COPIES), []),
        # In both directions.
        (OVERALL, judged({"A b.": ["0a"]}, overall_explained=PARTLY), [""]),
        (OVERALL, judged({"A b.": ["0a"]}, overall_explained=WHOLLY), []),
        (OVERALL, judged({"A b.": []}, overall_explained=WHOLLY), [""]),
        (OVERALL, judged({"A b.": []}, overall_explained=PARTLY), []),
    ],
)
def test_an_explanation_is_held_against_its_verdict(
    check: str, made: LabelRecord, keys: list[str]
) -> None:
    """The keys of each finding."""
    assert found(made, check) == [tuple(each.split()) for each in keys]


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("Sentence 0a says so.", "0a"),
        ("[0A] and (1b).", "0a 1b"),
        ("See '12ab'.", "12ab"),
        ("Sentences 0b-0d say so.", "0b 0c 0d"),
        ("From '0a' through '0c'.", "0a 0b 0c"),
        ("Document 1, sentence 'b', says so.", "1b"),
        ("Document 0 sentence a.", "0a"),
        # Words like "a", amounts and names of products are none.
        ("A sentence is a sentence.", ""),
        ("Document 1 is clear.", ""),
        ("B-1a cells cost $2a and 10.1b.", ""),
        ("It has 100a of them, and 9z.", ""),
        # No range goes across documents.
        ("0b-9999z and 1a-0b", "0b 1a"),
    ],
)
def test_keys_are_read_as_judges_write_them(text: str, keys: str) -> None:
    """A word of the explained sentence is none, as in "the 1a protein"."""
    assert named_keys(text, KEYS) == set(keys.split())
    assert named_keys("It says that 1a rises.", KEYS, "The 1a protein rises.") == set()


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("Sentence 9z says so, sentence 9y too.", ["9z", "9y"]),
        ("[7b] says so.", ["7b"]),
        ("Sentence 0a says so.", []),
        ("It was the 5th, at 10am, of 5kg.", []),
        ("In sentence 2nd to none.", []),
    ],
)
def test_keys_of_no_sentence_are_told_from_other_things(text: str, keys: list[str]) -> None:
    """Only where a key is plainly meant."""
    assert unknown_keys(text, KEYS) == keys
