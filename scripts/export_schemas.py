"""Write schemas/ from the classes. Published versions never change: add v2 instead."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import ConfigDict, Field, TypeAdapter

from labeler.calculators.metrics_row import MetricsRowJSON
from labeler.calculators.summary import SummaryRowJSON
from labeler.data.corrections.correction import Correction
from labeler.integrations.embeddings.records import QuestionsAnswer
from labeler.labels.answers import SPECIAL_SUPPORT, RetrievalLabel, Verdict, without_relevance
from labeler.labels.criteria import ScoreAnswer, StepsAnswer
from labeler.labels.profiles import PROFILES
from labeler.labels.record import LabelFailure, LabelRecord
from labeler.labels.retrieval_record import RetrievalRecord
from labeler.labels.score_record import ScoreRecord, StepsRecord

Json = dict[str, Any]


class FivePointAnswer(ScoreAnswer):
    """The score of one record by one criterion."""

    # The published schema has this scale; a criterion replaces the numbers only.
    model_config = ConfigDict(title="ScoreAnswer")

    score: Literal[1, 2, 3, 4, 5] = Field(
        description="The score on the scale; it follows from the reasoning."
    )


LABELS: dict[str, type] = {
    **{f"{p.families[0]}/v1": p.output for p in PROFILES.values()},
    **{f"{p.families[1]}/v1": without_relevance(p.output) for p in PROFILES.values()},
    "retrieval/v1": RetrievalLabel,
}
"""Sent to a judge with every record: prompts explain the fields, so these do not."""
SCHEMAS: dict[str, type] = {
    **LABELS,
    "score/v1": FivePointAnswer,
    "steps/v1": StepsAnswer,
    "questions/v1": QuestionsAnswer,
    "record/v4": LabelRecord,
    "retrieval-record/v2": RetrievalRecord,
    "score-record/v3": ScoreRecord,
    "steps-record/v1": StepsRecord,
    "failure/v1": LabelFailure,
    "correction/v1": Correction,
    "metrics-row/v1": MetricsRowJSON,
    "summary-row/v2": SummaryRowJSON,
}


def rendered(name: str) -> str:
    """A schema, as its file holds it."""
    if name in LABELS_V2:
        return json.dumps(LABELS_V2[name], indent=2, ensure_ascii=False) + "\n"
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


# Version 2 of the labels' schemas, within the keywords that OpenAI lists for strict mode. Objects
# in an anyOf differ in their first names, as it also requires.

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


def _labels_v2(profile: str) -> Json:
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
        fields |= _claims_v2(profile)
    if profile == "reference":
        fields |= _reference_v2()
    return _object(**fields)


def _claims_v2(profile: str) -> dict[str, Json]:
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


def _reference_v2() -> dict[str, Json]:
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


def _support_v2(profile: str) -> Json:
    """A schema of version 2 without relevance."""
    fields: Json = _labels_v2(profile)["properties"]
    return _object(**{name: field for name, field in fields.items() if name not in _RELEVANCE})


LABELS_V2 = {
    **{f"{each.families[0]}/v2": _labels_v2(each.name) for each in PROFILES.values()},
    **{f"{each.families[1]}/v2": _support_v2(each.name) for each in PROFILES.values()},
    "retrieval/v2": _object(**_RELEVANCE),
}


def main() -> None:
    """Write every schema below the folder given, by default ``schemas/``."""
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent / "schemas")
    for name in [*SCHEMAS, *LABELS_V2]:
        path = root / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(rendered(name), encoding="utf-8")


if __name__ == "__main__":
    main()
