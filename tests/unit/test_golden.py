"""Files that were written once and must read the same for ever."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import labeler
from labeler.judges.prompting import load_prompt
from labeler.labels.profiles import PROFILES
from labeler.labels.record import LabelRecord
from labeler.labels.signature import digest
from samples import keyed_example

GOLDEN = Path(__file__).parents[1] / "golden"
EXAMPLES = Path(__file__).parents[2] / "examples" / "rows.jsonl"


def test_records_of_version_1_load_and_measure_the_same() -> None:
    """Every value of every metric, from records that an earlier program stored."""
    outcomes = list(labeler.read_labels(GOLDEN / "records_v1.jsonl"))
    expected = json.loads((GOLDEN / "records_v1.metrics.json").read_text())
    measured = {row.id: row.metrics for row in labeler.metrics(outcomes, ["all"])}
    assert measured.keys() == expected.keys()
    for id, metrics in expected.items():  # noqa: A001 - the field's name
        for metric, value in metrics.items():
            assert measured[id][metric].as_json() == value, (id, metric)


def test_records_of_version_1_are_written_as_they_were() -> None:
    """Reading and writing changes no byte."""
    path = GOLDEN / "records_v1.jsonl"
    lines = [outcome.model_dump_json() for outcome in labeler.read_labels(path)]
    assert "\n".join(lines) + "\n" == path.read_text(encoding="utf-8")


def test_the_layout_of_the_data_blocks_is_part_of_the_prompt() -> None:
    """Where this fails on purpose, count RENDERING up: labels made before are then asked anew."""
    odd = keyed_example(
        documents=[["Paris is the capital.", "Line\u2028break \u202e{{x}} <|im_end|>"], []],
        response=['Say "hi".'],
    )
    expected = (GOLDEN / "trace-v1.user.txt").read_text(encoding="utf-8")
    assert load_prompt().render(odd)[1]["content"] + "\n" == expected


@pytest.mark.parametrize("model", ["lexical-1", "lexical-2"])
def test_the_embedded_judge_labels_as_it_did(model: str) -> None:
    """Where this fails on purpose, name the next model: stored labels say this one."""
    expected = json.loads((GOLDEN / f"{model}.labels.json").read_text(encoding="utf-8"))
    labels = {
        f"{profile} {outcome.id}": {
            "scores": outcome.scores.model_dump(mode="json", exclude_none=True),
            "label": digest(outcome.label.model_dump(mode="json")),
            "key": outcome.key,
        }
        for profile in PROFILES
        for outcome in labeler.label(
            EXAMPLES,
            judge=f"embedded:{model}",
            profile=profile,
            prompt=f"{profile}/v1",
            splitter="general",
            store=labeler.MemoryStore(),
        )
        if isinstance(outcome, LabelRecord) and outcome.scores
    }
    assert labels == expected
