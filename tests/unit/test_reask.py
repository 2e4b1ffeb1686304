from __future__ import annotations

from dataclasses import replace

import pytest

from labeler.calculators import METRICS, select_metrics
from labeler.calculators.headline import HEADLINES, headline_metrics, plain_name
from labeler.judges.openai.attempts import NOT_A_LABEL, REASK_VERSION, brief, complaint, key_ranges
from labeler.labels.answers import ClaimsLabelingOutput, GPTLabelingOutput, ReferenceLabelingOutput
from labeler.labels.contract import Violation
from labeler.sentences.example import key_sentences
from support import samples


@pytest.mark.parametrize(
    ("keys", "ranges"),
    [
        ([], ""),
        (["a"], "a"),
        (["a", "b"], "a-b"),
        (["0a", "0b", "0c", "1a", "1b", "3a"], "0a-0c, 1a-1b, 3a"),
        (["1a", "0b", "0a", "0a"], "0a-0b, 1a"),
        (["0y", "0z", "0aa", "0ac"], "0y-0aa, 0ac"),
        (["9a", "10a", "ref.a", "ref.b", "a"], "9a, 10a, a, ref.a-ref.b"),
    ],
)
def test_keys_are_written_as_ranges(keys: list[str], ranges: str) -> None:
    """A range never crosses documents, and reading order is kept."""
    assert key_ranges(keys) == ranges


def test_a_complaint_stays_short() -> None:
    """Thousands of wrong keys, or keys as long as a page, do not make a long message."""
    many = tuple(f"9{'a' * n}" for n in range(1, 1000))
    found = [Violation(kind="unknown_key", field=f"f{n}", keys=many) for n in range(100)]
    text = complaint(found, samples.keyed_example())
    assert "and 979 more" in text
    assert "and 80 more" in text
    assert len(text) < 20_000


def test_a_text_in_place_of_a_key_is_not_repeated() -> None:
    """It may be a sentence of the document."""
    found = [Violation(kind="unknown_key", field="f", keys=("9z", "Paris is nice."))]
    assert brief(found) == "unknown_key in f: '9z', a text"


def test_the_words_of_a_reask_belong_to_their_version() -> None:
    """Golden texts: if one changes, count REASK_VERSION up, and here too.

    Another wording may bring another label. The version is in the key of every label, so labels
    that were made with the old words are not taken for labels made with the new ones.
    """
    found = [
        Violation(
            kind="unknown_key", field="all_relevant_sentence_keys", keys=("9z", "Not a key.")
        ),
        Violation(kind="missing_response_sentence", field="response_sentence_key", keys=("b",)),
    ]
    assert {REASK_VERSION: [complaint(found, samples.keyed_example()), NOT_A_LABEL]} == {
        "reask/1": [
            (
                "That label broke the rules: unknown_key in all_relevant_sentence_keys: '9z', "
                "a text; missing_response_sentence in response_sentence_key: 'b'. "
                "Document sentence keys are 0a-0b, 1a. Response sentence keys, each judged exactly "
                "once, are a-b. Only supporting_sentence_keys may also hold "
                "supported_without_sentence, general, well_known_fact, numerical_reasoning; a "
                "decision has it exactly when fully_supported is true. "
                "Write the whole label again, as JSON alone."
            ),
            (
                "That was not a JSON object of the required schema. "
                "Write the whole label again, as JSON alone."
            ),
        ]
    }


OF_CLAIMS = (
    "Each response sentence has at least one entry in response_claims or stands in "
    "response_sentences_without_claims, never both. Among response_claims, entailment needs "
    "supporting_sentence_keys, and contradiction needs contradicting_sentence_keys. A sentence is "
    "fully_supported exactly when all its claims are entailment. "
)
OF_THE_REFERENCE = (
    "Reference sentence keys are ref.a-ref.b: each has at least one entry in reference_claims or "
    "stands in reference_sentences_without_claims, never both. In reference_claims, "
    "supporting_sentence_keys holds document sentence keys alone. "
)


@pytest.mark.parametrize(
    ("output", "rules"),
    [
        (GPTLabelingOutput, ""),
        (ClaimsLabelingOutput, OF_CLAIMS),
        (ReferenceLabelingOutput, OF_CLAIMS + OF_THE_REFERENCE),
    ],
)
def test_a_reask_for_claims_names_the_rules_for_claims(
    output: type[GPTLabelingOutput], rules: str
) -> None:
    """Golden texts too: they stand before the last sentence, and nothing else changes."""
    reference = key_sentences("ref.", samples.pieces(["Paris.", "It is up north."]))
    example = samples.keyed_example().model_copy(update={"reference": reference})
    found = [Violation(kind="claims_and_none", field="f", keys=("ref.a",))]
    plain = complaint(found, samples.keyed_example())
    last = "Write the whole label again, as JSON alone."
    assert REASK_VERSION == "reask/1"
    assert complaint(found, example, output) == plain.removesuffix(last) + rules + last


def test_every_default_metric_has_plain_words() -> None:
    """Words of their own, without signs; another definition says which, a stranger keeps its id."""
    names = [plain_name(metric) for metric in select_metrics()]
    assert len(set(names)) == len(names)
    assert not any("_" in name or ":" in name for name in names)
    assert plain_name(METRICS["relevance:length"]) == "retrieved sentences relevant (length)"
    stranger = replace(METRICS["relevance"], name="ours")
    assert plain_name(stranger) == "ours"


def test_the_richest_profile_decides_what_is_shown_first() -> None:
    """At most six metrics of it; the metrics themselves where none of them is among those."""
    assert [m.id for m in headline_metrics(select_metrics())] == [*HEADLINES["reference"]]
    few = select_metrics("relevance, answer_relevancy, citation_f1")
    assert [m.id for m in headline_metrics(few)] == ["answer_relevancy", "relevance"]
    assert [m.id for m in headline_metrics(select_metrics("citation_f1"))] == ["citation_f1"]
    assert max(map(len, HEADLINES.values())) == 6
