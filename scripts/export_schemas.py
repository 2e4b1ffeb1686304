"""Write schemas/ from the classes. Published versions never change: add the next one instead."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import ConfigDict, Field, TypeAdapter

from labeler.calculators.metrics_row import MetricsRowJSON
from labeler.calculators.summary import SummaryRowJSON
from labeler.data.corrections import Correction
from labeler.labels.answers import PROFILES, SPECIAL_SUPPORT, Verdict
from labeler.labels.record import LabelFailure, LabelRecord
from labeler.labels.retrieval_record import RetrievalRecord
from labeler.plugins.scores.records import ScoreAnswer, ScoreRecord, StepsAnswer, StepsRecord
from labeler.plugins.similarity.records import QuestionsAnswer

Json = dict[str, Any]


class FivePointAnswer(ScoreAnswer):
    """The score of one record by one criterion."""

    # The published schema has this scale; a criterion replaces the numbers only.
    model_config = ConfigDict(title="ScoreAnswer")

    score: Literal[1, 2, 3, 4, 5] = Field(
        description="The score on the scale; it follows from the reasoning."
    )


SCHEMAS: dict[str, type] = {
    "score/v1": FivePointAnswer,
    "steps/v1": StepsAnswer,
    "questions/v1": QuestionsAnswer,
    "record/v1": LabelRecord,
    "retrieval-record/v1": RetrievalRecord,
    "score-record/v1": ScoreRecord,
    "steps-record/v1": StepsRecord,
    "failure/v1": LabelFailure,
    "correction/v1": Correction,
    "metrics-row/v1": MetricsRowJSON,
    "summary-row/v1": SummaryRowJSON,
}


def rendered(name: str) -> str:
    """A schema, as its file holds it."""
    schema = LABELS.get(name) or TypeAdapter(SCHEMAS[name]).json_schema()
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


# The schemas of labels go to a judge with every record; prompts explain the fields. They keep to
# the keywords that OpenAI lists for strict mode. Objects in an anyOf differ in their first names,
# as it also requires.

_DOCUMENT = "[0-9]{1,4}[a-z]{1,4}"
_EVIDENCE = f"[ht]?{_DOCUMENT}"
_SPECIAL = "|".join(SPECIAL_SUPPORT)
_TEXT: Json = {"type": "string"}
_FLAG: Json = {"type": "boolean"}
_MOST_SUPPORT = 64
"""Keys that support one sentence at most; GPT-4's labels of RAGBench name up to 27. The lists of a
whole record have no limit of their own, because strict mode would cut a long one silently."""


def _key(pattern: str) -> Json:
    return {"type": "string", "pattern": f"^({pattern})$" if "|" in pattern else f"^{pattern}$"}


def _keys(pattern: str, **limits: int) -> Json:
    return {"type": "array", "items": _key(pattern), **limits}


def _object(**fields: Json) -> Json:
    return {
        "type": "object",
        "properties": fields,
        "required": list(fields),
        "additionalProperties": False,
    }


_RESPONSE_KEY, _REFERENCE_KEY = "[a-z]{1,4}", "ref[.][a-z]{1,4}"
_SUPPORTING = _keys(f"{_EVIDENCE}|{_SPECIAL}", minItems=1, maxItems=_MOST_SUPPORT)
_CONTRADICTING = _keys(_EVIDENCE, maxItems=_MOST_SUPPORT)


def _verdict(*allowed: str) -> Json:
    return {"type": "string", "enum": list(allowed)}


_ANY_VERDICT = _verdict(*get_args(Verdict))


_RELEVANCE = {"relevance_explanation": _TEXT, "all_relevant_sentence_keys": _keys(_DOCUMENT)}


def _label(profile: str) -> Json:
    """A schema that no answer fits whose verdict and keys exclude each other."""
    supported = _object(
        supporting_sentence_keys=_SUPPORTING, fully_supported=_FLAG | {"enum": [True]}
    )
    unsupported = _object(fully_supported=_FLAG | {"enum": [False]})
    sentence = _object(
        response_sentence_key=_key(_RESPONSE_KEY),
        explanation=_TEXT,
        decision={"anyOf": [supported, unsupported]},
    )
    fields: dict[str, Json] = {
        **_RELEVANCE,
        "sentence_support_information": {"type": "array", "items": sentence, "minItems": 1},
        "overall_supported_explanation": _TEXT,
        "overall_supported": _FLAG,
        "all_utilized_sentence_keys": _keys(_DOCUMENT),
    }
    if profile in {"claims", "reference"}:
        fields |= _claims(profile)
    if profile == "reference":
        fields |= _reference()
    return _object(**fields)


def _claims(profile: str) -> dict[str, Json]:
    decisions = [
        _object(
            supporting_sentence_keys=_SUPPORTING,
            contradicting_sentence_keys=_CONTRADICTING,
            verdict=_verdict("entailment"),
        ),
        _object(
            contradicting_sentence_keys={**_CONTRADICTING, "minItems": 1},
            verdict=_verdict("contradiction"),
        ),
        _object(verdict=_verdict("neutral")),
    ]
    claim: dict[str, Json] = {
        "response_sentence_key": _key(_RESPONSE_KEY),
        "claim": _TEXT,
        "decision": {"anyOf": decisions},
        "relevant_to_question": _FLAG,
    }
    if profile == "reference":
        claim["reference_verdict"] = _ANY_VERDICT
    return {
        "response_claims": {"type": "array", "items": _object(**claim)},
        "response_sentences_without_claims": _keys(_RESPONSE_KEY),
    }


def _reference() -> dict[str, Json]:
    claim = _object(
        reference_sentence_key=_key(_REFERENCE_KEY),
        claim=_TEXT,
        supporting_sentence_keys=_keys(_DOCUMENT, maxItems=_MOST_SUPPORT),
        response_verdict=_ANY_VERDICT,
    )
    return {
        "reference_claims": {"type": "array", "items": claim},
        "reference_sentences_without_claims": _keys(_REFERENCE_KEY),
    }


def _support(profile: str) -> Json:
    """A schema without relevance."""
    fields: Json = _label(profile)["properties"]
    return _object(**{name: field for name, field in fields.items() if name not in _RELEVANCE})


LABELS = {
    **{f"{each.families[0]}/v1": _label(each.name) for each in PROFILES.values()},
    **{f"{each.families[1]}/v1": _support(each.name) for each in PROFILES.values()},
    "retrieval/v1": _object(**_RELEVANCE),
}


def main() -> None:
    """Write every schema below the folder given, by default ``schemas/``."""
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent / "schemas")
    for name in [*SCHEMAS, *LABELS]:
        path = root / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(rendered(name), encoding="utf-8")


if __name__ == "__main__":
    main()
