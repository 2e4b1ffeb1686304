"""Verdicts at other thresholds, recomputed from stored probabilities."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import labeler
from labeler.errors import UsageError
from labeler.labels.contract import check_label
from labeler.labels.record import LabelFailure, LabelRecord
from labeler.labels.thresholds import at_thresholds, read_thresholds
from support.fakes import CountingJudge

EXAMPLES = Path(__file__).parents[2] / "examples" / "rows.jsonl"


def labeled(rows: Any = str(EXAMPLES), **options: Any) -> labeler.Labels:
    """Labels of the embedded judge, kept nowhere else."""
    return labeler.label(rows, judge="embedded", store=labeler.MemoryStore(), **options)


@pytest.fixture(scope="module")
def labels() -> labeler.Labels:
    """Those of the examples, and a failure."""
    failure = LabelFailure(id="none", reason="refusal", message="It was refused.")
    return labeled() + labeler.Labels([failure])


def records(labels: labeler.Labels) -> list[LabelRecord]:
    """The labels without failures."""
    return [one for one in labels if isinstance(one, LabelRecord)]


@pytest.mark.parametrize(
    "moved",
    [
        *({"support": least} for least in (0.0, 0.3, 0.5, 0.9, 0.95, 1.0)),
        {"relevance": 0.1, "utilization": 0.7},
    ],
)
def test_verdicts_follow_their_own_thresholds(
    labels: labeler.Labels, moved: dict[str, float]
) -> None:
    """A sentence loses its keys below; above, it keeps them, or names no sentence."""
    for before, after in zip(records(labels), records(labels.at(**moved)), strict=True):
        scores, support = before.scores, after.label.sentence_support_information
        assert scores is not None
        for was, now in zip(before.label.sentence_support_information, support, strict=True):
            probability = scores.support[now.response_sentence_key]
            assert now.fully_supported == (probability >= moved.get("support", 0.82))
            kept = was.supporting_sentence_keys or ("supported_without_sentence",)
            assert now.supporting_sentence_keys == (kept if now.fully_supported else ())
        assert after.label.overall_supported == all(entry.fully_supported for entry in support)
        for field in ("relevance", "utilization"):
            name = f"all_{'relevant' if field == 'relevance' else 'utilized'}_sentence_keys"
            likely = [key for key, p in getattr(scores, field).items() if p >= moved.get(field, 0)]
            expected = likely if field in moved else list(getattr(before.label, name))
            assert list(getattr(after.label, name)) == expected


def test_a_view_is_another_configuration(labels: labeler.Labels, tmp_path: Path) -> None:
    """Its signatures name what was moved; it is read again, and stricter is stricter."""
    view = labels.at(support=0.9)
    assert all(str(one.signature).endswith("|threshold:support=0.9") for one in records(view))
    assert {one.key for one in records(view)}.isdisjoint(one.key for one in records(labels))
    assert labeler.load(view.save(tmp_path / "view.jsonl")) == view
    means = [each.summary("adherence")["adherence"].mean for each in (labels, view)]
    assert means[1] is not None
    assert means[0] is not None
    assert means[1] < means[0]
    assert view[-1] == labels[-1]
    # Thresholds by which the labels were judged move nothing.
    assert labels.at(support=0.82, relevance=0.35, utilization=0.35) == labels


def test_relevance_that_was_judged_alone_moves_with_its_label() -> None:
    """The retrieval label that a view names is one at the same threshold."""
    [before, *_] = records(labeled(relevance="blind"))
    after = at_thresholds(before, {"relevance": 0.01})
    assert before.retrieval is not None
    assert after.retrieval is not None
    assert after.fault() is None
    assert after.retrieval.key != before.retrieval.key
    assert len(after.label.all_relevant_sentence_keys) > len(
        before.label.all_relevant_sentence_keys
    )


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "give at least one threshold"),
        ({"support": 1.01}, "from 0 to 1, got 1.01"),
        ({"relevance": -0.1}, "from 0 to 1, got -0.1"),
        ({"utilization": float("nan")}, "from 0 to 1, got nan"),
        ({"support": "0.5"}, "from 0 to 1, got '0.5'"),
        ({"suport": 0.5}, "did you mean 'support'"),
    ],
)
def test_a_threshold_is_a_probability(given: dict[str, Any], says: str) -> None:
    """Of a verdict that there is."""
    with pytest.raises(labeler.LabelerError, match=says):
        read_thresholds(given)


def test_labels_without_probabilities_are_refused(labels: labeler.Labels) -> None:
    """A judge that writes, shares of votes, claims, and a view of a view."""
    row = {"id": "r", "question": "Why?", "documents": ["It is."], "response": "It is."}
    written = labeler.label([row], judge=CountingJudge(), store=labeler.MemoryStore())
    votes = labeled([row], repeat=2)
    for without in (written, votes):
        with pytest.raises(UsageError, match=r"'r': judge .* gave no probabilities"):
            without.at(support=0.5)
    claims = labeled([row], profile="claims")
    with pytest.raises(UsageError, match="its claims have no probabilities"):
        claims.at(support=0.5)
    assert len(claims.at(relevance=0.5)) == 1
    with pytest.raises(UsageError, match="moved already"):
        labels.at(support=0.5).at(relevance=0.5)


_TEXTS = st.lists(st.sampled_from(["The tower is 300 m.", "Not so.", ":", "It is so [1]."]))


@settings(max_examples=50)
@given(
    documents=st.lists(_TEXTS.map(" ".join), max_size=3),
    response=_TEXTS.map(" ".join),
    moved=st.dictionaries(
        st.sampled_from(["support", "relevance", "utilization"]), st.floats(0, 1), min_size=1
    ),
)
def test_every_view_keeps_the_contract(
    documents: list[str], response: str, moved: dict[str, float]
) -> None:
    """Whatever the texts and the thresholds are."""
    row = {"id": "1", "question": "How high?", "documents": documents, "response": response}
    for record in records(labeled([row])):
        view = at_thresholds(record, moved)
        assert check_label(view.label, view.example) == (view.label, {}, ())
        assert view.fault() is None
