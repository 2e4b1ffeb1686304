"""Checks of the audit, against records worked out by hand, and texts that models write."""

from __future__ import annotations

from typing import Any

import pytest

from labeler.audit import CHECKS, Subject, findings_of
from labeler.audit.explanations import affirms, calls_wrong, denies, named_keys, unknown_keys
from labeler.labels.contract import Violation
from labeler.labels.record import LabelRecord, ReplyFacts, RetrievalBasis, SentenceScores
from support.audited import found, judged
from support.labeled import claims_output, expects, record, reference_output, relabeled, right, says

SOUND = judged({"The tower is 120 metres high.": ["0a"], "It was opened in 1931.": ["0b"]})


FERRIES = "Passenger ferries sail across the lake."
NO_FERRIES = "Passenger ferries do not sail across the lake in winter."
STATED = [[f"In summer {FERRIES.lower()}"], ["Lake across the sail, ferries; passenger."]]


def test_a_sound_label_has_no_findings() -> None:
    """No check of the catalog sees anything."""
    assert {name: found(SOUND, name) for name in CHECKS if found(SOUND, name)} == {}


def said(*support: str, **more: Any) -> LabelRecord:
    """A label of short sentences, each with the keys that support it."""
    texts = ("A b.", "C d.", "E f.", "G h.")
    pairs = zip(texts, map(str.split, support), strict=False)
    return judged(dict(pairs), **more)


def five(*relevant: str) -> LabelRecord:
    """A label of a document of five sentences."""
    return said("0a", documents=[list("vwxyz")], relevant=relevant)


UNFOUNDED = said("0a", relevant=[])
BLIND = UNFOUNDED.model_copy(
    update={
        "retrieval": RetrievalBasis(
            key="0" * 64,
            signature=UNFOUNDED.signature,
            relevance_explanation="",
            all_relevant_sentence_keys=(),
        )
    }
)
SOURCES = judged({"A b.": ["0a"], "C d.": ["0b"], "E f.": ["0b"], "Sources: [1]": []})
LISTED = judged({"A b.": ["0a"], "C d.": ["general"], "Sources: [1]": ["general"]})
WONDERS = judged({"Of the 7 wonders the tower is one.": ["0a"]})
ASKED = relabeled(WONDERS, {"question": "What are the 7 wonders?"})
OPENED = judged({"The tower was opened in 1931.": ["0a"]})
TWO_CLAIMS = claims_output([says("a", ["0a"]), says("a", ["0b"])])
HALF = claims_output([says("a", ["0a"]), says("a")])
(WHOLE,) = TWO_CLAIMS.sentence_support_information
SHORT = WHOLE.model_copy(update={"supporting_sentence_keys": ("0a",)})
GAP = TWO_CLAIMS.model_copy(update={"sentence_support_information": (SHORT,)})
BROKEN = Violation(kind="unknown_key", field="all_relevant_sentence_keys", keys=("9z", "0a"))
IN_BOTH = judged({"It was opened in 1931.": ["0a", "0b"]})
WORKED_OUT = judged({"The tower is 60 storeys high.": ["0a", "numerical_reasoning"]})


def lemons(*, found: bool) -> LabelRecord:
    """A label by which the response makes a claim of the reference, or does not."""
    claim = expects(found=found, claim="Lemons grow near Sorrento.")
    return record(answer=reference_output([right("a", ["0a"])], [claim]))


def scored(*thresholds: float, **support: float) -> LabelRecord:
    """A label with scores of support; with thresholds of the reply, and of the signature."""
    made = SOUND.model_copy(update={"scores": SentenceScores(support=support)})
    named = [{"support": one} for one in thresholds]
    if named:
        made = made.model_copy(update={"reply": ReplyFacts(thresholds=named[0])})
    return relabeled(made, thresholds=named[1]) if named[1:] else made


def explained(text: str, keys: tuple[str, ...] = ("0a",)) -> LabelRecord:
    """A supported sentence with an explanation, next to another one."""
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
        # The keys of the unsupported sentences; where all are supported, none is to blame.
        ("overall_against_sentences", said("0a", "", overall=True), ["b"]),
        ("overall_against_sentences", said("0a", overall=False), [""]),
        # Of two sentences it would be half, and of two unsupported ones neither decides alone.
        ("verdict_hangs_on_one", said("0a", "", "0b"), ["b"]),
        ("verdict_hangs_on_one", said("0a", ""), []),
        ("verdict_hangs_on_one", said("0a", "", ""), []),
        # A list of sources claims nothing, so no metric counts it.
        ("verdict_hangs_on_one", SOURCES, []),
        # Only what is missing is named; special strings are no sentences.
        ("support_not_utilized", said("0a 0b general", utilized=["0b"]), ["0a"]),
        ("support_not_utilized", said("0a", utilized=[]), ["0a"]),
        ("support_not_utilized", said("general"), []),
        # In reading order.
        ("utilized_not_relevant", said("0a", utilized=["1a", "0b", "0a"]), ["0b 1a"]),
        # Told once. Where nothing is used either, nothing relevant is an honest answer; and where
        # relevance was judged blind, the response may name what the other call found irrelevant.
        ("relevant_nothing", UNFOUNDED, ["0a"]),
        ("utilized_not_relevant", UNFOUNDED, []),
        ("relevant_nothing", said("", relevant=[]), []),
        ("relevant_nothing", BLIND, []),
        # A context of one sentence may well be relevant as a whole.
        ("relevant_everything", said("0a", documents=[["A b."]], relevant=["0a"]), []),
        ("relevant_everything", five("0a", "0b", "0c", "0d"), []),
        ("relevant_everything", five("0a", "0b", "0c", "0d", "0e"), [""]),
        # Most of three; two of four are not most, and two sentences are too few.
        ("special_strings_only", said("general", "0a", "well_known_fact"), ["a c"]),
        ("special_strings_only", said("general", "0a", "general", "0b"), []),
        ("special_strings_only", said("general", "general"), []),
        ("special_strings_only", LISTED, []),
        # The sentence with what it names; about what documents do not say, leading up to a list,
        # without content, and other endings of the same words there is nothing to share.
        *(
            ("support_shares_no_word", judged({"The tower is high.": ["0a"], text: ["1a"]}), keys)
            for text, keys in (
                ("Lemons grow near Sorrento.", ["b 1a"]),
                ("The context does not mention who built the tower.", []),
                ("The steps are:", []),
                ("It is.", []),
                ("Sailing ferries rest.", []),
            )
        ),
        # The response may repeat a number of the question, or say that it was worked out.
        ("number_in_no_document", WONDERS, ["a 0a"]),
        ("number_in_no_document", ASKED, []),
        ("number_in_no_document", WORKED_OUT, []),
        # It stands in 0b, and 0a is named; that is not reported as an invention too.
        ("number_not_in_support", OPENED, ["a 0a"]),
        ("number_in_no_document", OPENED, []),
        ("number_not_in_support", IN_BOTH, []),
        # Numbers of documents, and the same in another unit, are none.
        *(
            ("number_in_no_document", judged({text: ["0a"]}), keys)
            for text, keys in (
                ("The tower is 130 metres high.", ["a 0a"]),
                ("The tower is 120.0 metres high.", []),
                ("As document 7 says, the tower is 120 metres high.", []),
                ("The tower is 120 metres (394 feet) high.", []),
            )
        ),
        # Thousands, pieces, rounding and smaller coins spell a number of the document.
        *(
            ("number_in_no_document", judged({text: ["0a"]}, documents=[[source]]), [])
            for source, text in (
                ("It cost $99K.", "It cost $99,000."),
                ("A share of 39 6 % was paid.", "A share of 39.6 % was paid."),
                ("It has 13, 134 bases.", "It has 13,134 bases."),
                ("It takes 15.3 days.", "It takes 15 days."),
                ("It costs 0.39 pounds.", "It costs 39 pence."),
            )
        ),
        # Another way to deny, a "no" that answers, and a condition are not the contrary.
        *(
            ("negation_mismatch", judged({text: ["0a"]}, documents=[[NO_FERRIES]]), keys)
            for text, keys in (
                ("Passenger ferries sail across the lake in winter.", ["a 0a"]),
                ("Passenger ferries never sail across the lake in winter.", []),
                ("No, passenger ferries do not sail across the lake in winter.", []),
                ("Passenger ferries may sail across the lake in winter.", []),
                ("Avoid passenger ferries across the lake in winter, which sail.", []),
            )
        ),
        # Words strewn over a sentence are not the same; nor is the contrary.
        ("unsupported_but_stated", judged({FERRIES: []}, documents=STATED), ["a 0a"]),
        ("unsupported_but_stated", judged({FERRIES: []}, documents=[[NO_FERRIES]]), []),
        # The list of the sentence lacks 0b, which supports a claim of it.
        ("claim_support_not_listed", record(answer=GAP), ["a 0b"]),
        ("claim_support_not_listed", record(answer=TWO_CLAIMS), []),
        ("claim_support_not_listed", record(answer=HALF), []),
        ("reference_claim_not_in_response", lemons(found=True), ["ref.a"]),
        ("reference_claim_not_in_response", lemons(found=False), []),
        # Only keys that there are can be shown.
        ("contract_broken", SOUND.model_copy(update={"violations": (BROKEN,)}), ["0a"]),
        # Half, or what the reply names, or what the signature says that it was moved to.
        ("undecided_score", scored(a=0.52, b=0.9), ["a"]),
        ("undecided_score", scored(a=0.6, b=0.9), []),
        ("undecided_score", scored(0.9, a=0.52, b=0.9), ["b"]),
        ("undecided_score", scored(0.9, 0.5, a=0.52, b=0.9), ["a"]),
        # A verdict that the source left open is no repair.
        *(
            (check, SOUND.model_copy(update={"normalised": {repair: 2}}), keys)
            for repair, of_repair, of_open in (
                ("spelling", [""], []),
                ("duplicate_key", [""], []),
                ("degenerate_support", [""], []),
                ("fully_supported_null", [], [""]),
            )
            for check, keys in (("answer_repaired", of_repair), ("verdict_left_open", of_open))
        ),
        # An explanation against its verdict.
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
def test_a_check_finds_what_it_is_about(check: str, made: LabelRecord, keys: list[str]) -> None:
    """The keys of each finding."""
    assert found(made, check) == [tuple(each.split()) for each in keys]


def test_an_answer_in_another_language_is_not_compared() -> None:
    """No word of the whole response stands in the documents."""
    made = judged({"Der Turm wurde vom Bürgermeister eröffnet.": ["0b"]})
    assert not CHECKS["support_shares_no_word"].applies(Subject(made))


def test_wrong_citations_are_found() -> None:
    """Of a document without the support, of none, and behind a sentence without support."""
    texts = ("The tower is 120 metres high [1].", "It was opened in 1931 [2, 7].", "It is red [1].")
    made = judged(dict(zip(texts, (["0a"], ["0b"], []), strict=True)))
    assert found(made, "wrong_citation") == [("b",), ("b", "0b"), ("c",)]


def test_a_sentence_that_is_judged_twice_counts_once() -> None:
    """Imported labels may do so: two verdicts are on the sentence without support."""
    made = said("0a", "0a", "")
    entries = made.label.sentence_support_information
    twice = {"sentence_support_information": (*entries, entries[-1])}
    found = findings_of(made.model_copy(update={"label": made.label.model_copy(update=twice)}))
    (one,) = [each for each in found if each.check == "verdict_hangs_on_one"]
    assert one.message == "Of its 3 sentences, only this one is not supported."
    assert one.keys == ("c",)


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


@pytest.mark.parametrize(
    ("text", "named", "unknown"),
    [
        ("Sentence 0a says so.", "0a", ""),
        ("[0A] and (1b).", "0a 1b", ""),
        ("See '12ab'.", "12ab", ""),
        ("Sentences 0b-0d say so.", "0b 0c 0d", ""),
        ("From '0a' through '0c'.", "0a 0b 0c", ""),
        ("Document 1, sentence 'b', says so.", "1b", ""),
        ("Document 0 sentence a.", "0a", ""),
        # Words like "a", amounts and names of products are none.
        ("A sentence is a sentence. Document 1 is clear.", "", ""),
        ("B-1a cells cost $2a and 10.1b.", "", ""),
        ("It has 100a of them, and 9z.", "", ""),
        ("It was the 5th, at 10am, of 5kg. In sentence 2nd to none.", "", ""),
        # No range goes across documents.
        ("0b-9999z and 1a-0b", "0b 1a", ""),
        # Only where a key is plainly meant it is missing.
        ("Sentence 9z says so, sentence 9y too.", "", "9z 9y"),
        ("[7b] says so.", "", "7b"),
    ],
)
def test_keys_are_read_as_judges_write_them(text: str, named: str, unknown: str) -> None:
    """A word of the explained sentence is none, as in "the 1a protein"."""
    assert named_keys(text, KEYS) == set(named.split())
    assert unknown_keys(text, KEYS) == unknown.split()
    assert named_keys("It says that 1a rises.", KEYS, "The 1a protein rises.") == set()
