"""Figures of RAGBench's published labels, which are read once for all tests of this file."""

from __future__ import annotations

from labeler.audit import audit_labels, select_checks
from labeler.calculators.tally import unsupported_as_published
from labeler.comparing.compare import compare
from labeler.labels.record import LabelRecord
from labeler.sentences.example import document_key, letters
from labeler.sentences.splitting import SPLITTERS
from support.real_data import needs_ragbench, published_labels, ragbench_rows

pytestmark = needs_ragbench


def texts(text: str) -> list[str]:
    """The sentences of a text."""
    return [piece.text for piece in SPLITTERS["ragbench"].split(text)]


def test_the_published_sentences_and_keys_are_reproduced() -> None:
    """Every document and every response of the subsets at hand, byte for byte."""
    documents = responses = 0
    for row in ragbench_rows():
        published = zip(row["documents"], row["documents_sentences"], strict=True)
        for d, (document, pairs) in enumerate(published):
            assert [[document_key(d, s), t] for s, t in enumerate(texts(document))] == pairs
            documents += 1
        ours = [[letters(s), t] for s, t in enumerate(texts(row["response"]))]
        assert ours == row["response_sentences"]
        responses += 1
    assert (documents, responses) == (13_864, 3_017)


def test_the_unsupported_list_is_reproduced_too() -> None:
    """The published list of unsupported sentences follows from the sentences' verdicts."""
    for outcome in published_labels():
        stored = outcome.verbatim or outcome.label
        expected = outcome.example.metadata["published"]["unsupported_response_sentence_keys"]
        assert unsupported_as_published(stored) == expected


def test_the_rates_of_published_labels_are_the_known_ones() -> None:
    """Counted once by hand from the columns of the data set."""
    names = (
        "overall_against_sentences,support_not_utilized,utilized_not_relevant,relevant_nothing,"
        "contract_broken"
    )
    found_in = audit_labels(published_labels(), checks=select_checks(names))
    flagged: dict[str, int] = dict.fromkeys(names.split(","), 0)
    for row in found_in.rows:
        flagged[row.check.id] += row.flagged
    assert len(found_in.records) == 3017
    assert list(flagged.values()) == [62, 119, 503, 8, 33]


def test_two_generators_of_one_retrieval_differ_by_the_judge_alone() -> None:
    """Published labels of 842 questions with two answers each give the longer one +.05."""
    sides: dict[str, list[LabelRecord]] = {"gpt": [], "claude": []}
    for made in published_labels():
        name, _, generator = made.id.rpartition("/")
        if generator != "gpt-3.5-turbo-1106":
            example = made.example.model_copy(update={"id": name})
            sides[generator.partition("-")[0]].append(made.model_copy(update={"example": example}))
    found = compare(sides["gpt"], sides["claude"], "relevance,context_relevancy")
    assert found.counts.pairs == 842
    for one in found.rows:
        assert isinstance(one.difference, float)
        assert 0.05 < -one.difference < 0.06 or 0.05 < one.difference < 0.06
        assert one.verdict == "judge inconsistency"
        assert one.judge_inconsistency is not None
        assert one.judge_inconsistency.lean is not None
        assert one.judge_inconsistency.lean > 0.9
