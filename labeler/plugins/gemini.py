"""A judge behind Google's Gemini API."""

from __future__ import annotations

from typing import Any

from labeler.judges.native import NativeAnswers, set_only, texts_of
from labeler.judges.openai.judge import HostedJudge
from labeler.judges.openai.request import Form, Request, schema_name
from labeler.judges.providers import NATIVE_MODES, OPENAI_ONLY, Provider

GEMINI = Provider(
    base_url="https://generativelanguage.googleapis.com",
    key_variables=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    address_variable="GOOGLE_GEMINI_BASE_URL",
    modes=NATIVE_MODES,
    preset={"prompt_cache": "off"},  # it caches unasked
    lacks=OPENAI_ONLY | {"prompt_cache"},
)

_CANDIDATE_ENDS = {
    "MAX_TOKENS": "length",
    **dict.fromkeys(
        ("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE"),
        "content_filter",
    ),
    **dict.fromkeys(("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "OTHER"), "error"),
}


def _candidate_body(asked: Request) -> dict[str, Any]:
    """Return the body of a request, the schema where the API takes JSON Schema."""
    system, messages, schema = texts_of(asked)
    spec, extra = asked.spec, dict(asked.spec.extra_body or {})
    given = set_only(
        temperature=spec.temperature, topP=spec.top_p, seed=spec.seed, maxOutputTokens=asked.cap
    )
    body: dict[str, Any] = {
        **extra,
        "systemInstruction": {"parts": [{"text": system}]},
        "contents": [
            {"role": "model" if role == "assistant" else role, "parts": [{"text": text}]}
            for role, text in messages
        ],
        "generationConfig": {**extra.get("generationConfig", {}), **given},
    }
    if schema is not None:
        name = schema_name(asked.task.schema)
        body["tools"] = [{"functionDeclarations": [{"name": name, "parametersJsonSchema": schema}]}]
        calling = {"mode": "ANY", "allowedFunctionNames": [name]}
        body["toolConfig"] = {"functionCallingConfig": calling}
    return body


_ANSWERS = NativeAnswers(
    blocks=["candidates", 0, "content", "parts"],
    call=["functionCall", "args"],
    end=["candidates", 0, "finishReason"],
    ends=_CANDIDATE_ENDS,
    usage="usageMetadata",
    prompt=["promptTokenCount"],
    answer=["candidatesTokenCount", "thoughtsTokenCount"],
    read="cachedContentTokenCount",
    model="modelVersion",
    blocked=["promptFeedback", "blockReason"],
)


class GeminiJudge(HostedJudge):
    """Labels records with a model of Google's Gemini API; arguments are those of its base.

    Example:
        >>> labeler.GeminiJudge("MODEL", api_key="key").spec.model
        'MODEL'
    """

    provider = "gemini"
    form = Form(
        "/{model}:generateContent",
        _candidate_body,
        _ANSWERS.completion,
        model_path="/{model}",
        version="/v1beta",
        name=lambda model: model if "/" in model else f"models/{model}",
        safe="/",
        key=("x-goog-api-key", ""),
    )
