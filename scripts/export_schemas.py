"""Writes schemas/ from the classes. A published version never changes: change it, and add v2."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pydantic import TypeAdapter

from labeler.calculators.measuring import MetricsRowJSON
from labeler.calculators.summary import SummaryRowJSON
from labeler.corrections import Correction
from labeler.profiles import PROFILES
from labeler.questions import QuestionsAnswer
from labeler.record import LabelFailure, LabelRecord, ScoreRecord, StepsRecord
from labeler.scores import FivePointAnswer, StepsAnswer

SCHEMAS: dict[str, type] = {
    **{profile.schema: profile.output for profile in PROFILES.values()},
    "score/v1": FivePointAnswer,
    "steps/v1": StepsAnswer,
    "questions/v1": QuestionsAnswer,
    "record/v1": LabelRecord,
    "score-record/v1": ScoreRecord,
    "steps-record/v1": StepsRecord,
    "failure/v1": LabelFailure,
    "correction/v1": Correction,
    "metrics-row/v1": MetricsRowJSON,
    "summary-row/v1": SummaryRowJSON,
}


def rendered(model: type) -> str:
    """The schema of a class, as the file holds it."""
    return json.dumps(TypeAdapter(model).json_schema(), indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    """Write every schema below the folder given, by default ``schemas/``."""
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent / "schemas")
    for name, model in SCHEMAS.items():
        path = root / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(rendered(model), encoding="utf-8")


if __name__ == "__main__":
    main()
