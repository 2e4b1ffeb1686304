"""The embedded judge: plain text, probabilities, weights."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import labeler
from labeler.errors import UnknownName, UsageError
from labeler.judges.embedded.features import RANK, SUPPORT
from labeler.judges.embedded.judge import EmbeddedJudge
from labeler.judges.embedded.plain_text import PlainText
from labeler.judges.embedded.weights import FILE, load_weights
from labeler.judges.opening import open_judge
from labeler.judges.options import JudgeOptions
from labeler.judges.task import JudgeReply
from labeler.labels.answers import ClaimsLabelingOutput, GPTLabelingOutput
from labeler.labels.contract import check_label
from labeler.labels.record import LabelRecord, SentenceScores
from labeler.sentences.example import KeyedExample
from support.samples import keyed_example, request

TOWER = [
    ["The Kestrel Tower was opened in 1931.", "It stands in the harbour of Aldmoor."],
    ["A day ticket weighs nothing but costs 12 crowns."],
]


def keyed(response: Sequence[str], documents: Sequence[Sequence[str]] = TOWER) -> KeyedExample:
    """A response about the tower."""
    return keyed_example(
        question="How old is the Kestrel Tower?", documents=documents, response=response
    )


def judged(example: KeyedExample) -> JudgeReply[GPTLabelingOutput]:
    """The reply of the judge."""
    return asyncio.run(EmbeddedJudge().label(request(example)))


def probabilities(example: KeyedExample) -> SentenceScores:
    """The stored probabilities of an example."""
    scores = judged(example).scores
    assert scores is not None
    return scores


@pytest.mark.parametrize(
    ("text", "compared"),
    [
        ("It opened in 1931 [1].", "It opened in 1931."),
        ("It opened in 1931 [2, 6], they say (Document 1).", "It opened in 1931, they say."),
        ("Twelve of 12,500 or 1,234,567", "12 of 12500 or 1234567"),
        ("twenty-one, Ninety nine and nineteen", "21, 99 and 19"),
        ("one of them, 1,23 and 2,3456", "one of them, 1.23 and 2.3456"),
        ("someten tenfold", "someten tenfold"),
    ],
)
def test_texts_are_compared_without_markers_and_with_digits(text: str, compared: str) -> None:
    """Numbers are equal however they are written; a pronoun is no number."""
    assert PlainText()(text) == compared


@pytest.mark.parametrize("end", [" [1].", " [2, 6].", " (Document 1).", ".\u00b9"])
def test_a_citation_marker_changes_no_probability(end: str) -> None:
    """A verbatim copy is supported whatever it cites."""
    copy = "The Kestrel Tower was opened in 1931"
    bare, cited = (probabilities(keyed([f"{copy}{one}"])) for one in (".", end))
    assert bare == cited
    assert judged(keyed([f"{copy}{end}"])).answer.overall_supported


def test_numbers_are_equal_however_they_are_written() -> None:
    """12,500 and twelve in a response are 12500 and 12 of a document."""
    documents = [["The harbour has 12500 visitors and 12 piers."]]
    written = keyed(["The harbour has 12,500 visitors and twelve piers."], documents)
    assert probabilities(written) == probabilities(keyed(documents[0], documents))


@pytest.mark.parametrize(
    "wrong",
    [
        "The Kestrel Tower was opened in 1874.",
        "The Kestrel Tower was not opened in 1931.",
        "The Kestrel Tower was opened in Quendale in 1931.",
        "Green penguins assembled quartz violins yesterday.",
    ],
)
def test_an_error_lowers_the_probability(wrong: str) -> None:
    """Another number, a negation, an unknown name, unknown words: each below the copy."""
    right = probabilities(keyed(["The Kestrel Tower was opened in 1931."]))
    found = probabilities(keyed([wrong]))
    assert found.support["a"] < right.support["a"]
    assert (found.adherence or 0) < (right.adherence or 0)


def test_the_record_leans_to_its_weakest_sentence() -> None:
    """One unsupported sentence of many lowers the record's probability."""
    good = ["The Kestrel Tower was opened in 1931."] * 6
    whole = probabilities(keyed(good)).adherence
    broken = probabilities(keyed([*good, "Green penguins assembled quartz violins."])).adherence
    assert whole is not None
    assert broken is not None
    assert broken < whole - 0.1


def test_a_response_without_claims_has_no_support() -> None:
    """Empty talk is not supported."""
    found = judged(keyed(["Solution:", "Done."]))
    assert not found.answer.overall_supported
    assert found.scores is not None
    assert found.scores.adherence == 0


def test_claims_keep_their_text() -> None:
    """Texts are made plain for the comparison only."""
    found = labeler.label(
        [
            {
                "question": "?",
                "documents": ["It has 12 piers."],
                "response": "It has twelve piers [1].",
            }
        ],
        judge="embedded",
        profile="claims",
        store=labeler.MemoryStore(),
    )
    (label,) = (one.label for one in found if isinstance(one, LabelRecord))
    assert isinstance(label, ClaimsLabelingOutput)
    (claim,) = label.response_claims
    assert (claim.claim, claim.verdict) == ("It has twelve piers [1].", "entailment")


def test_the_judge_takes_no_options() -> None:
    """An option that changes nothing is refused by name, and so is another version."""
    with pytest.raises(UsageError, match="no seed"):
        open_judge(JudgeOptions(judge="embedded", seed=1))
    with pytest.raises(UnknownName, match="did you mean 'embedded'"):
        open_judge(JudgeOptions(judge="embedded:lexical-0"))


def test_the_weights_say_where_they_come_from() -> None:
    """Every data set has its license and attribution; the models fit the features."""
    stored = json.loads(FILE.read_text(encoding="utf-8"))
    assert all({"name", "license", "attribution"} <= set(source) for source in stored["data"])
    assert set(stored["left_out"]) == {"msmarco"}
    assert list(stored["support"]["weights"]) == list(SUPPORT)
    for model in ("relevance", "utilization"):
        assert list(stored[model]["weights"]) == list(RANK)
    assert all(0 < threshold < 1 for threshold in load_weights().thresholds.values())


_FRAGMENTS = st.sampled_from(
    ["tower", "not", "300", "twelve", "[1]", "the documents do not say", ":", "Solution", "塔", "%"]
)
_TEXT = st.one_of(st.text(max_size=40), st.lists(_FRAGMENTS, max_size=8).map(" ".join))


@settings(max_examples=60)
@given(
    question=_TEXT,
    documents=st.lists(st.lists(_TEXT, max_size=4), max_size=3),
    response=st.lists(_TEXT, max_size=4),
)
def test_any_text_keeps_the_contract(
    question: str, documents: list[list[str]], response: list[str]
) -> None:
    """The label needs no repair, and every number is a probability."""
    example = keyed_example(question=question, documents=documents, response=response)
    reply = judged(example)
    checked = check_label(reply.answer, example)
    assert not checked.violations
    assert checked.answer == reply.answer
    scores = reply.scores
    assert scores is not None
    values = [scores.support, scores.relevance, scores.utilization]
    assert [list(one) for one in values] == [
        example.response_keys(),
        *[example.document_keys()] * 2,
    ]
    numbers = itertools.chain(*(one.values() for one in values), [scores.adherence])
    assert all(value is not None and 0 <= value <= 1 for value in numbers)
