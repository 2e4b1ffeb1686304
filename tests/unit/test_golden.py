"""Files that were written once and must read the same for ever."""

from __future__ import annotations

import json
from pathlib import Path

import labeler
from labeler.judges.prompting import load_prompt
from labeler.labels.profiles import PROFILES
from labeler.labels.record import LabelRecord
from labeler.labels.signature import digest
from support.samples import keyed_example

GOLDEN = Path(__file__).parents[1] / "golden"
EXAMPLES = Path(__file__).parents[2] / "examples" / "rows.jsonl"


def test_the_layout_of_the_data_blocks_is_part_of_the_prompt() -> None:
    """Where this fails on purpose, count RENDERING up: labels made before are then asked anew."""
    odd = keyed_example(
        documents=[["Paris is the capital.", "Line\u2028break \u202e{{x}} <|im_end|>"], []],
        response=['Say "hi".'],
    )
    expected = (GOLDEN / "trace.user.txt").read_text(encoding="utf-8")
    assert load_prompt().render(odd)[1]["content"] + "\n" == expected


def test_the_embedded_judge_labels_as_it_did() -> None:
    """Where this fails on purpose, name the next model: stored labels say this one."""
    expected = json.loads((GOLDEN / "embedded.labels.json").read_text(encoding="utf-8"))
    labels = {
        f"{profile} {outcome.id}": {
            "scores": outcome.scores.model_dump(mode="json", exclude_none=True),
            "label": digest(outcome.label.model_dump(mode="json")),
            "key": outcome.key,
        }
        for profile in PROFILES
        for outcome in labeler.label(
            EXAMPLES,
            judge="embedded",
            profile=profile,
            store=labeler.MemoryStore(),
        )
        if isinstance(outcome, LabelRecord) and outcome.scores
    }
    assert labels == expected
