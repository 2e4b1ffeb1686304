from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import labeler
from labeler.errors import BadRow
from labeler.labels.record import LabelFailure
from labeler.plugins.ragbench import read_ragbench, to_record
from support.command import Command
from support.rows import write_lines


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


def supported(*entries: dict[str, Any]) -> dict[str, Any]:
    """The change to other entries of the support list."""
    return {"sentence_support_information": [*entries]}


GENERAL = support("b", ["general"], verdict=True)
OPEN = supported(support("a.", ["0a"], verdict=None), support("b", [], verdict=None))
QUIRKS: dict[str, tuple[dict[str, Any], dict[str, int], list[str]]] = {
    "trailing dot": ({"all_relevant_sentence_keys": ["0a."]}, {"spelling": 1}, []),
    "joined keys": ({"all_relevant_sentence_keys": ["0a, 0b"]}, {"joined_keys": 1}, []),
    "repeated key": ({"all_relevant_sentence_keys": ["0a", "0a"]}, {"duplicate_key": 1}, []),
    "past the end": ({"all_utilized_sentence_keys": ["0a", "0z"]}, {}, ["unknown_key"]),
    "misplaced": ({"all_utilized_sentence_keys": ["general"]}, {}, ["special_not_allowed"]),
    "open verdict": (OPEN, {"fully_supported_null": 2, "spelling": 1}, []),
    "sentence left out": (
        supported(support("a", ["0a"], verdict=True)),
        {},
        ["missing_response_sentence"],
    ),
    "support without keys": (
        supported(support("a", [], verdict=True), GENERAL),
        {},
        ["supported_without_support"],
    ),
}


@pytest.mark.parametrize(
    ("changes", "normalised", "violations"), QUIRKS.values(), ids=QUIRKS.keys()
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
    assert (first.kind, second.kind, third.kind) == ("label", "failure", "label")
    assert isinstance(second, LabelFailure)
    assert second.reason == "invalid_json"


def write_parquet(path: Path, *rows: dict[str, Any]) -> Path:
    """Rows in the form of the published files."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist([*rows]), path)
    return path


def test_parquet_gives_the_records_of_json_lines(tmp_path: Path) -> None:
    """Lists in lists, open verdicts, nulls and numbers that are none included."""
    rows = [
        published(trulens_groundedness=None, ragas_faithfulness=1.0),
        published(id="18", trulens_groundedness=0.25, ragas_faithfulness=None),
        published(id="19", **supported(support("a", [], verdict=None))),
    ]
    nan = [
        row | {"trulens_groundedness": row["trulens_groundedness"] or float("nan")} for row in rows
    ]
    found = list(read_ragbench(write_parquet(tmp_path / "rows.parquet", *nan)))
    assert found == list(read_ragbench(write_lines(tmp_path / "rows.jsonl", rows)))
    assert [outcome.kind for outcome in found] == ["label"] * 3


def test_files_folders_and_patterns_are_read_one_after_the_other(
    tmp_path: Path, labeler_command: Command
) -> None:
    """What is no row is named by its file and row."""
    first = write_parquet(tmp_path / "in" / "test.parquet", published(), published(id=None))
    write_parquet(tmp_path / "in" / "train.parquet", published(id="18"))
    lines = write_lines(tmp_path / "more.jsonl", [published(id="19")])
    ids = ["lamps_test/17/gen-1", f"{first}:row 2", "lamps_test/18/gen-1", "lamps_test/19/gen-1"]
    for names in ([tmp_path / "in", lines], [tmp_path / "in" / "t*.parquet", lines]):
        code, out, _ = labeler_command("import", "ragbench", *names, "-o", "l.jsonl")
        assert (code, out) == (1, "")
        assert [outcome.id for outcome in labeler.api.read_labels("l.jsonl")] == ids
    failed = list(read_ragbench(first))[1]
    assert isinstance(failed, LabelFailure)
    assert failed.reason == "missing_field"
    assert f"{first}:row 2" in failed.message
