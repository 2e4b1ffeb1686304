"""RAGBench rows: their sentences, their labels, their quirks."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import labeler
from labeler.errors import BadRow
from labeler.importers.ragbench import read_ragbench, to_record
from labeler.record import LabelFailure, LabelRecord
from real_data import needs_ragbench, ragbench_files


def published(**changes: Any) -> dict[str, Any]:
    """A row in the published form, written for this test."""
    row: dict[str, Any] = {
        "id": "17",
        "dataset_name": "lamps_test",
        "generation_model_name": "gen-1",
        "annotating_model_name": "judge-1",
        "question": "What colour is the lamp?",
        "documents": ["The lamp is red. It is old.", "Chairs are brown."],
        "response": "The lamp is red. Good luck!",
        "documents_sentences": [
            [["0a", "The lamp is red."], ["0b", "It is old."]],
            [["1a", "Chairs are brown."]],
        ],
        "response_sentences": [["a", "The lamp is red."], ["b", "Good luck!"]],
        "sentence_support_information": [
            support("a", ["0a"], verdict=True),
            support("b", ["general"], verdict=True),
        ],
        "unsupported_response_sentence_keys": [],
        "adherence_score": True,
        "overall_supported_explanation": "Yes.",
        "relevance_explanation": "Document 0.",
        "all_relevant_sentence_keys": ["0a"],
        "all_utilized_sentence_keys": ["0a"],
        "relevance_score": 1 / 3,
        "utilization_score": 1 / 3,
        "completeness_score": 1.0,
        "trulens_groundedness": 0.5,
    }
    return row | changes


def support(key: str, keys: list[str], *, verdict: bool | None) -> dict[str, Any]:
    """One entry of the support list."""
    return {
        "response_sentence_key": key,
        "explanation": "Because.",
        "supporting_sentence_keys": keys,
        "fully_supported": verdict,
    }


def test_a_plain_row_becomes_a_record() -> None:
    """Its id names data set, row and generator; nothing is repaired, nothing is left over."""
    record = to_record(published())
    assert record.id == "lamps_test/17/gen-1"
    assert record.example.splitter == "given/1"
    assert str(record.signature).startswith("judge:ragbench/judge-1|prompt:none|")
    assert (record.verbatim, record.normalised, record.violations) == (None, {}, ())
    assert record.example.metadata["dataset_name"] == "lamps_test"
    assert record.example.metadata["published"]["trulens_groundedness"] == 0.5


QUIRKS: list[tuple[str, dict[str, Any], dict[str, int], list[str]]] = [
    ("trailing dot", {"all_relevant_sentence_keys": ["0a."]}, {"spelling": 1}, []),
    ("joined keys", {"all_relevant_sentence_keys": ["0a, 0b"]}, {"joined_keys": 1}, []),
    ("repeated key", {"all_relevant_sentence_keys": ["0a", "0a"]}, {"duplicate_key": 1}, []),
    ("past the end", {"all_utilized_sentence_keys": ["0a", "0z"]}, {}, ["unknown_key"]),
    ("misplaced string", {"all_utilized_sentence_keys": ["general"]}, {}, ["special_not_allowed"]),
    (
        "open verdict",
        {
            "sentence_support_information": [
                support("a.", ["0a"], verdict=None),
                support("b", [], verdict=None),
            ]
        },
        {"fully_supported_null": 2, "spelling": 1},
        [],
    ),
    (
        "sentence left out",
        {"sentence_support_information": [support("a", ["0a"], verdict=True)]},
        {},
        ["missing_response_sentence"],
    ),
    (
        "support without keys",
        {
            "sentence_support_information": [
                support("a", [], verdict=True),
                support("b", ["general"], verdict=True),
            ]
        },
        {},
        ["supported_without_support"],
    ),
]


@pytest.mark.parametrize(
    ("changes", "normalised", "violations"),
    [quirk[1:] for quirk in QUIRKS],
    ids=[quirk[0] for quirk in QUIRKS],
)
def test_a_quirk_is_repaired_or_kept(
    changes: dict[str, Any], normalised: dict[str, int], violations: list[str]
) -> None:
    """What is spelled oddly is counted, what cannot be is named; the answer stays as stored."""
    record = to_record(published(**changes))
    assert record.normalised == normalised
    assert [violation.kind for violation in record.violations] == violations
    stored = record.verbatim or record.label
    for name, given in changes.items():
        if name.startswith("all_"):
            assert list(getattr(stored, name)) == given


def test_the_same_row_by_two_generators_is_two_records() -> None:
    """An id alone occurs twice."""
    first, second = to_record(published()), to_record(published(generation_model_name="gen-2"))
    assert first.id != second.id


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"dataset_name": None}, "missing_field"),
        ({"documents_sentences": [["The lamp is red."]]}, "wrong_type"),
        ({"response_sentences": None}, "wrong_type"),
        ({"response_sentences": [["b", "The lamp is red."], ["c", "Good luck!"]]}, "wrong_keys"),
        ({"response_sentences": [["a", "The lamp is blue."]]}, "given_sentences_mismatch"),
        ({"sentence_support_information": [{"fully_supported": True}]}, "wrong_type"),
        ({"all_relevant_sentence_keys": None}, "wrong_type"),
        ({"adherence_score": None}, "wrong_type"),
        ({"question": 7}, "wrong_type"),
    ],
)
def test_what_is_no_row_says_so(changes: dict[str, Any], reason: str) -> None:
    """The error names the place and carries a code."""
    with pytest.raises(BadRow, match="here:1") as error:
        to_record(published(**changes), "here:1")
    assert error.value.reason == reason


def test_a_bad_line_fails_alone(tmp_path: Path) -> None:
    """The others are imported, packed or not."""
    path = tmp_path / "rows.jsonl.gz"
    lines = [json.dumps(published()), "{", json.dumps(published(id="18"))]
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    first, second, third = read_ragbench(path)
    assert isinstance(first, LabelRecord)
    assert isinstance(second, LabelFailure)
    assert second.reason == "invalid_json"
    assert isinstance(third, LabelRecord)


COLUMNS = {
    "relevance:ragbench": "relevance_score",
    "utilization:ragbench": "utilization_score",
    "completeness:ragbench": "completeness_score",
    "adherence:ragbench": "adherence_score",
}


@needs_ragbench
def test_published_columns_are_reproduced_exactly() -> None:
    """All four metrics of all rows at hand are float-equal to the published columns."""
    outcomes = [outcome for file in ragbench_files() for outcome in read_ragbench(file)]
    assert all(isinstance(outcome, LabelRecord) for outcome in outcomes)
    assert len({outcome.id for outcome in outcomes}) == len(outcomes)
    wrong = []
    for outcome, row in zip(outcomes, labeler.metrics(outcomes, COLUMNS), strict=True):
        assert isinstance(outcome, LabelRecord)
        columns = outcome.example.metadata["published"]
        wrong += [
            (row.id, metric)
            for metric, column in COLUMNS.items()
            if row.metrics[metric].value != float(columns[column])
        ]
    assert wrong == []


@needs_ragbench
def test_the_unsupported_list_is_reproduced_too() -> None:
    """The published list of unsupported sentences follows from the sentences' verdicts."""
    from labeler.calculators.trace import unsupported_as_published

    for file in ragbench_files():
        for outcome in read_ragbench(file):
            assert isinstance(outcome, LabelRecord)
            stored = outcome.verbatim or outcome.label
            expected = outcome.example.metadata["published"]["unsupported_response_sentence_keys"]
            assert unsupported_as_published(stored) == expected
