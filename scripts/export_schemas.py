"""Write schemas/ from the classes. Published versions never change: add v2 instead."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, Field, TypeAdapter

from labeler.calculators.metrics_row import MetricsRowJSON
from labeler.calculators.summary import SummaryRowJSON
from labeler.data.corrections.correction import Correction
from labeler.integrations.embeddings.records import QuestionsAnswer
from labeler.labels.criteria import ScoreAnswer, StepsAnswer
from labeler.labels.profiles import PROFILES
from labeler.labels.record import LabelFailure, LabelRecord
from labeler.labels.score_record import ScoreRecord, StepsRecord


class FivePointAnswer(ScoreAnswer):
    """The score of one record by one criterion."""

    # The published schema has this scale; a criterion replaces the numbers only.
    model_config = ConfigDict(title="ScoreAnswer")

    score: Literal[1, 2, 3, 4, 5] = Field(
        description="The score on the scale; it follows from the reasoning."
    )


LABELS: dict[str, type] = {profile.schema: profile.output for profile in PROFILES.values()}
"""What a judge is sent with every record: prompts say what the fields mean, so these do not."""
SCHEMAS: dict[str, type] = {
    **LABELS,
    "score/v1": FivePointAnswer,
    "steps/v1": StepsAnswer,
    "questions/v1": QuestionsAnswer,
    "record/v1": LabelRecord,
    "score-record/v2": ScoreRecord,
    "steps-record/v1": StepsRecord,
    "failure/v1": LabelFailure,
    "correction/v1": Correction,
    "metrics-row/v1": MetricsRowJSON,
    "summary-row/v2": SummaryRowJSON,
}


def rendered(name: str) -> str:
    """A schema, as its file holds it."""
    schema = TypeAdapter(SCHEMAS[name]).json_schema()
    shown = bare(schema, schema.get("$defs", {})) if name in LABELS else schema
    return json.dumps(shown, indent=2, ensure_ascii=False) + "\n"


def bare(part: Any, classes: Mapping[str, Any]) -> Any:  # noqa: ANN401 - any part of a schema
    """A part of a schema with what binds an answer alone: each class where its name stood.

    Args:
        part: of the schema.
        classes: what the schema defines, by name.
    """
    if isinstance(part, list):
        return [bare(one, classes) for one in part]
    if not isinstance(part, dict):
        return part
    if "$ref" in part:
        return bare(classes[part["$ref"].removeprefix("#/$defs/")], classes)
    return {
        word: (
            {name: bare(one, classes) for name, one in value.items()}
            if word == "properties"  # whose names may be any words
            else bare(value, classes)
        )
        for word, value in part.items()
        if word not in {"title", "description", "$defs"}
    }


def main() -> None:
    """Write every schema below the folder given, by default ``schemas/``."""
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent / "schemas")
    for name in SCHEMAS:
        path = root / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(rendered(name), encoding="utf-8")


if __name__ == "__main__":
    main()
