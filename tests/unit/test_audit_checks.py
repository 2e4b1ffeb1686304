"""Checks of the audit, each against records worked out by hand."""

from __future__ import annotations

import pytest

from labeler.audit import CHECKS, Subject, findings_of
from labeler.labels.contract import Violation
from labeler.labels.record import LabelRecord, ReplyFacts, RetrievalBasis, SentenceScores
from support.audited import found, judged
from support.labeled import claims_output, expects, record, reference_output, relabeled, right, says

SOUND = judged({"The tower is 120 metres high.": ["0a"], "It was opened in 1931.": ["0b"]})


def test_a_sound_label_has_no_findings() -> None:
    """No check of the catalog sees anything."""
    assert {name: found(SOUND, name) for name in CHECKS if found(SOUND, name)} == {}


# -- a label against itself -----------------------------------------------------------------------


def five(*relevant: str) -> LabelRecord:
    """A label of a document of five sentences."""
    return judged({"A b.": ["0a"]}, documents=[list("vwxyz")], relevant=relevant)


GENERAL, KNOWN = ["general"], ["well_known_fact"]
UNFOUNDED = judged({"A b.": ["0a"]}, relevant=[])
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
WONDERS = judged({"Of the 7 wonders the tower is one.": ["0a"]})
OPENED = judged({"The tower was opened in 1931.": ["0a"]})


@pytest.mark.parametrize(
    ("check", "made", "keys"),
    [
        # The keys of the unsupported sentences; where all are supported, none is to blame.
        (
            "overall_against_sentences",
            judged({"It is high.": ["0a"], "It is red.": []}, overall=True),
            [("b",)],
        ),
        ("overall_against_sentences", judged({"It is high.": ["0a"]}, overall=False), [()]),
        # Of two sentences it would be half, and of two unsupported ones neither decides alone.
        ("verdict_hangs_on_one", judged({"A b.": ["0a"], "C d.": [], "E f.": ["0b"]}), [("b",)]),
        ("verdict_hangs_on_one", judged({"A b.": ["0a"], "C d.": []}), []),
        # A list of sources claims nothing, so no metric counts it.
        (
            "verdict_hangs_on_one",
            judged({"A b.": ["0a"], "C d.": ["0b"], "E f.": ["0b"], "Sources: [1]": []}),
            [],
        ),
        ("verdict_hangs_on_one", judged({"A b.": ["0a"], "C d.": [], "E f.": []}), []),
        # Only what is missing is named; special strings are no sentences.
        (
            "support_not_utilized",
            judged({"A b.": ["0a", "0b", "general"]}, utilized=["0b"]),
            [("0a",)],
        ),
        ("support_not_utilized", judged({"A b.": ["0a"]}, utilized=[]), [("0a",)]),
        ("support_not_utilized", judged({"Hello there.": GENERAL}), []),
        # In reading order.
        (
            "utilized_not_relevant",
            judged({"A b.": ["0a"]}, relevant=["0a"], utilized=["1a", "0b", "0a"]),
            [("0b", "1a")],
        ),
        # Told once. Where nothing is used either, nothing relevant is an honest answer; and where
        # relevance was judged blind, the response may name what the other call found irrelevant.
        ("relevant_nothing", UNFOUNDED, [("0a",)]),
        ("utilized_not_relevant", UNFOUNDED, []),
        ("relevant_nothing", judged({"I cannot say.": []}, relevant=[]), []),
        ("relevant_nothing", BLIND, []),
        # A context of one sentence may well be relevant as a whole.
        (
            "relevant_everything",
            judged({"A b.": ["0a"]}, documents=[["The tower is high."]], relevant=["0a"]),
            [],
        ),
        ("relevant_everything", five("0a", "0b", "0c", "0d"), []),
        ("relevant_everything", five("0a", "0b", "0c", "0d", "0e"), [()]),
        # Most of three; two of four are not most, and two sentences are too few.
        (
            "special_strings_only",
            judged({"A b.": GENERAL, "C d.": ["0a"], "E f.": KNOWN}),
            [("a", "c")],
        ),
        (
            "special_strings_only",
            judged({"A b.": GENERAL, "C d.": ["0a"], "E f.": GENERAL, "G h.": ["0b"]}),
            [],
        ),
        ("special_strings_only", judged({"A b.": GENERAL, "C d.": GENERAL}), []),
        # The sentence with what it names; about what documents do not say, leading up to a list,
        # without content, and other endings of the same words there is nothing to share.
        *(
            ("support_shares_no_word", judged({"The tower is high.": ["0a"], text: ["1a"]}), keys)
            for text, keys in (
                ("Lemons grow near Sorrento.", [("b", "1a")]),
                ("The context does not mention who built the tower.", []),
                ("The steps are:", []),
                ("It is.", []),
                ("Sailing ferries rest.", []),
            )
        ),
        # The response may repeat a number of the question, or say that it was worked out.
        ("number_in_no_document", relabeled(WONDERS, {"question": "What are the 7 wonders?"}), []),
        (
            "number_in_no_document",
            judged({"The tower is 60 storeys high.": ["0a", "numerical_reasoning"]}),
            [],
        ),
        # It stands in 0b, and 0a is named; that is not told as an invention too.
        ("number_not_in_support", OPENED, [("a", "0a")]),
        ("number_in_no_document", OPENED, []),
        ("number_not_in_support", judged({"It was opened in 1931.": ["0a", "0b"]}), []),
    ],
)
def test_a_check_finds_what_it_is_about(
    check: str, made: LabelRecord, keys: list[tuple[str, ...]]
) -> None:
    """The keys of each finding."""
    assert found(made, check) == keys


# -- a label against the texts --------------------------------------------------------------------


def test_an_answer_in_another_language_is_not_compared() -> None:
    """No word of the whole response stands in the documents."""
    made = judged({"Der Turm wurde vom Bürgermeister eröffnet.": ["0b"]})
    assert not CHECKS["support_shares_no_word"].applies(Subject(made))


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("The tower is 130 metres high.", [("a", "0a")]),
        ("The tower is 120.0 metres high.", []),
        ("Step 4: the tower is 120 metres high.", []),
        ("As document 7 says, the tower is 120 metres high.", []),
        ("The tower is 120 metres (394 feet) high.", []),
        ("The tower, in the days of COVID-19, is 120 metres high.", []),
        ("3. The tower is 120 metres high. 4.", []),
    ],
)
def test_a_number_that_no_document_has_is_found(text: str, keys: list[tuple[str, ...]]) -> None:
    """Numbers of steps, documents and list items, and the same in another unit, are none."""
    assert found(judged({text: ["0a"]}), "number_in_no_document") == keys


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("It cost 1,500 dollars.", "It cost $1500."),
        ("It cost $99K.", "It cost $99,000."),
        ("It cost 2.5 million.", "It cost 2,500,000."),
        ("There are two gates.", "There are 2 gates."),
        ("A share of 39 6 % was paid.", "A share of 39.6 % was paid."),
        ("It has 13, 134 bases.", "It has 13,134 bases."),
        ("It takes 15.3 days.", "It takes 15 days."),
        ("It costs 0.39 pounds.", "It costs 39 pence."),
        ("A dozen eggs.", "There are 12 eggs."),
    ],
)
def test_a_number_is_known_in_another_spelling(source: str, text: str) -> None:
    """Commas, thousands, words, pieces, rounding."""
    assert found(judged({text: ["0a"]}, documents=[[source]]), "number_in_no_document") == []


def test_wrong_citations_are_found() -> None:
    """Of a document without the support, of none, and behind a sentence without support."""
    said = {
        "The tower is 120 metres high [1].": ["0a"],
        "It was opened in 1931 [2, 7].": ["0b"],
        "It is red [1].": [],
    }
    made = judged(said)
    assert found(made, "wrong_citation") == [("b",), ("b", "0b"), ("c",)]
    messages = [one.message for one in findings_of(made, "wrong_citation")]
    assert messages[:2] == [
        "Cites [7], but the record has 2 documents.",
        "Cites document 1 with none of its support.",
    ]


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("Passenger ferries sail across the lake in winter.", [("a", "0a")]),
        ("Passenger ferries never sail across the lake in winter.", []),
        ("No, passenger ferries do not sail across the lake in winter.", []),
        ("Passenger ferries may sail across the lake in winter.", []),
        ("Avoid passenger ferries across the lake in winter, which sail.", []),
    ],
)
def test_the_contrary_of_the_only_support_is_found(text: str, keys: list[tuple[str, ...]]) -> None:
    """Another way to deny, a "no" that answers, and a condition are not the contrary."""
    documents = [["Passenger ferries do not sail across the lake in winter."]]
    assert found(judged({text: ["0a"]}, documents=documents), "negation_mismatch") == keys


def test_what_a_document_says_word_for_word_is_hardly_unsupported() -> None:
    """Words strewn over a sentence are not the same; nor is the contrary."""
    said = "Passenger ferries sail across the lake."
    documents = [[f"In summer {said.lower()}"], ["Lake across the sail, ferries; passenger."]]
    assert found(judged({said: []}, documents=documents), "unsupported_but_stated") == [("a", "0a")]
    denied = [["Passenger ferries do not sail across the lake."]]
    assert found(judged({said: []}, documents=denied), "unsupported_but_stated") == []


# -- claims ---------------------------------------------------------------------------------------


def test_a_claim_with_more_support_than_its_sentence_is_found() -> None:
    """The list of the sentence lacks 0b."""
    answer = claims_output([says("a", ["0a"]), says("a", ["0b"])])
    short = answer.sentence_support_information[0].model_copy(
        update={"supporting_sentence_keys": ("0a",)}
    )
    odd = answer.model_copy(update={"sentence_support_information": (short,)})
    assert found(record(answer=odd), "claim_support_not_listed") == [("a", "0b")]
    assert found(record(answer=answer), "claim_support_not_listed") == []
    in_part = claims_output([says("a", ["0a"]), says("a")])
    assert found(record(answer=in_part), "claim_support_not_listed") == []


def test_a_reference_claim_that_the_response_has_no_word_of_is_found() -> None:
    """It is said to be there."""
    there = expects(found=True, claim="Lemons grow near Sorrento.")
    made = record(answer=reference_output([right("a", ["0a"])], [there]))
    assert found(made, "reference_claim_not_in_response") == [("ref.a",)]
    absent = expects(found=False, claim="Lemons grow near Sorrento.")
    made = record(answer=reference_output([right("a", ["0a"])], [absent]))
    assert found(made, "reference_claim_not_in_response") == []


def test_checks_of_claims_apply_to_labels_with_claims_alone() -> None:
    """The base of their rate is not every record."""
    assert not CHECKS["claim_support_not_listed"].applies(Subject(SOUND))
    assert CHECKS["claim_support_not_listed"].applies(
        Subject(record(answer=claims_output([says()])))
    )


# -- repairs and scores ---------------------------------------------------------------------------


def test_what_an_importer_kept_is_found() -> None:
    """Only keys that there are can be shown."""
    broken = Violation(kind="unknown_key", field="all_relevant_sentence_keys", keys=("9z", "0a"))
    assert found(SOUND.model_copy(update={"violations": (broken,)}), "contract_broken") == [("0a",)]
    assert found(SOUND, "contract_broken") == []


@pytest.mark.parametrize(
    ("repair", "check"),
    [
        ("spelling", "answer_repaired"),
        ("duplicate_key", "answer_repaired"),
        ("fully_supported_null", "verdict_left_open"),
        ("degenerate_support", "answer_repaired"),
    ],
)
def test_each_repair_is_told_by_one_check(repair: str, check: str) -> None:
    """A verdict that the source left open is no repair."""
    made = SOUND.model_copy(update={"normalised": {repair: 2}})
    of_repairs = ("answer_repaired", "verdict_left_open")
    assert [name for name in of_repairs if found(made, name)] == [check]


def scored(**support: float) -> LabelRecord:
    """A label with scores of support."""
    return SOUND.model_copy(update={"scores": SentenceScores(support=support)})


def test_a_score_next_to_the_threshold_is_found() -> None:
    """Half, or what the reply names, or what the signature says that it was moved to."""
    made = scored(a=0.52, b=0.9)
    assert found(made, "undecided_score") == [("a",)]
    assert found(scored(a=0.6, b=0.9), "undecided_score") == []
    own = made.model_copy(update={"reply": ReplyFacts(thresholds={"support": 0.9})})
    assert found(own, "undecided_score") == [("b",)]
    assert found(relabeled(own, thresholds={"support": 0.5}), "undecided_score") == [("a",)]


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (
            judged({"A b.": []}, overall=True),
            "Supported as a whole, but 1 of its 1 sentence is not.",
        ),
        (
            judged({"A b.": ["0a"]}, relevant=["0b"], utilized=["0a"]),
            "1 of 1 utilized sentence is not called relevant.",
        ),
        (
            judged({"A b [3].": ["0a"]}, documents=[["A b."]]),
            "Cites [3], but the record has 1 document.",
        ),
        (
            judged({"A b.": ["0a"]}, explained={"a": "Sentence 7a says so, sentence 8b too."}),
            "The explanation names 7a, 8b, which are not sentences here.",
        ),
    ],
)
def test_a_message_agrees_with_its_number(record: LabelRecord, message: str) -> None:
    """One sentence, one document, and two keys."""
    assert message in [found.message for found in findings_of(record)]


def test_a_sentence_that_is_judged_twice_counts_once() -> None:
    """Imported labels may do so: two verdicts are on the sentence without support."""
    made = judged({"A b.": ["0a"], "C d.": ["0a"], "E f.": []})
    entries = made.label.sentence_support_information
    twice = {"sentence_support_information": (*entries, entries[-1])}
    found = findings_of(made.model_copy(update={"label": made.label.model_copy(update=twice)}))
    (one,) = [each for each in found if each.check == "verdict_hangs_on_one"]
    assert one.message == "Of its 3 sentences, only this one is not supported."
    assert one.keys == ("c",)
