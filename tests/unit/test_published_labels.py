"""Figures of RAGBench's published labels, which are read once for all tests of this file."""

from __future__ import annotations

import labeler
from labeler.audit import audit_labels, select_checks
from labeler.calculators.tally import unsupported_as_published
from labeler.comparing.compare import compare
from labeler.labels.record import LabelRecord
from support.real_data import needs_ragbench, published_labels

pytestmark = needs_ragbench

COLUMNS = {
    "relevance:ragbench": "relevance_score",
    "utilization:ragbench": "utilization_score",
    "completeness:ragbench": "completeness_score",
    "adherence:ragbench": "adherence_score",
}


def test_published_columns_are_reproduced_exactly() -> None:
    """All four metrics of all rows at hand are float-equal to the published columns."""
    outcomes = published_labels()
    assert len({outcome.id for outcome in outcomes}) == len(outcomes)
    wrong = []
    for outcome, row in zip(outcomes, labeler.metrics(outcomes, COLUMNS), strict=True):
        columns = outcome.example.metadata["published"]
        wrong += [
            (row.id, metric)
            for metric, column in COLUMNS.items()
            if row.metrics[metric].value != float(columns[column])
        ]
    assert wrong == []


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
