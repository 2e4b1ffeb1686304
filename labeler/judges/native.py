"""Judges behind providers with an API of their own: Anthropic, Google's Gemini, Amazon Bedrock.

Each API is one :class:`~labeler.judges.openai.form.Form`. An answer becomes the chat completion
that says the same, so that one reader serves all of them. The providers' libraries and instructor's
clients of them are not used: they make the schema from a class, where the published one is sent
byte for byte, read bodies without a bound, and take addresses and headers from the environment.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from labeler.judges.openai.completion import Completion, read_completion, text_of
from labeler.judges.openai.form import Form, Request
from labeler.judges.openai.headers import seconds_until
from labeler.judges.openai.judge import HostedJudge
from labeler.judges.openai.reading import json_of, verbatim
from labeler.judges.openai.request import mode_of, request_parts, schema_name

_NO_TEXT = "{}"
"""Stands for an empty answer in a re-ask, because the providers reject an empty text."""


def _parts(asked: Request) -> tuple[str, list[tuple[str, str]], dict[str, Any] | None]:
    """Return the system prompt, roles and texts of the other messages, and the schema.

    The schema is ``None`` in the mode that shows it to the model.
    """
    messages, _ = request_parts(asked.task, asked.messages)
    system = "\n\n".join(one["content"] for one in messages if one["role"] == "system")
    others = [
        (one["role"], one["content"] if one["content"].strip() else _NO_TEXT)
        for one in messages
        if one["role"] != "system"
    ]
    is_tool = mode_of(asked.task.signature) == "tools"
    return system, others, dict(asked.task.schema.json_schema) if is_tool else None


def _given(**settings: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON values
    """Return the settings that are set."""
    return {name: value for name, value in settings.items() if value is not None}


def _completion_of(  # noqa: PLR0917 - made in one place for each API
    body: bytes,
    values: object,
    blocks: Sequence[str | int],
    call: Sequence[str],
    finish: str | None,
    usage: Mapping[str, Any],
    model: object = None,
) -> Completion | None:
    """Return the completion that an answer holds.

    Args:
        body: the answer.
        values: its JSON values; ``None`` if it is no JSON.
        blocks: path to the list of its texts and calls.
        call: path from a block to the arguments of a call. They are taken word for word, because
            an object with a duplicate name must be seen as such.
        finish: reason of its end in the words of chat completions; ``None`` if it is complete.
        usage: as in chat completions.
        model: the model that answered.
    """
    if values is None:
        return None
    listed = _at(values, *blocks)
    parts = list(enumerate(listed)) if isinstance(listed, list) else []
    texts = [text_of(_at(part, "text")) for _, part in parts if not _at(part, "thought")]
    called = [n for n, part in parts if _at(part, *call) is not None]
    # Only the arguments of a single call are read; each takes a pass over the body.
    calls = [verbatim(body, *blocks, n, *call) if len(called) == 1 else "" for n in called]
    message = {
        "content": "".join(texts),
        "tool_calls": [{"function": {"arguments": arguments}} for arguments in calls],
        "refusal": finish == "refusal",
    }
    choice = {"message": message, "finish_reason": finish}
    return read_completion(
        {
            "choices": [choice] if isinstance(listed, list) or finish else [],
            "usage": usage,
            "model": model,
            "error": _at(values, "error"),
        }
    )


def _at(values: object, *path: str | int) -> Any:  # noqa: ANN401 - a JSON value
    """Return the value at a path; ``None`` if there is none."""
    for step in path:
        try:
            values = values[step]  # type: ignore[index]  # anything that a server sends
        except (LookupError, TypeError):
            return None
    return values


def _total(counts: object, *names: str) -> int | None:
    """Return the sum of the counts that are there; ``None`` without any."""
    found = [_at(counts, name) for name in names]
    known = [count for count in found if isinstance(count, int) and count >= 0]
    return sum(known) if known else None


def _usage(
    counts: object,
    prompt: Sequence[str],
    answer: Sequence[str],
    read: str,
    written: Sequence[str] = (),
) -> dict[str, Any]:
    """Return usage as in chat completions, of counts by name.

    Args:
        counts: the counts of an answer.
        prompt: names of the counts that make up the prompt.
        answer: the same of the answer.
        read: name of the count of tokens that were read from the cache.
        written: name of the count of tokens that were written to it, if there is one.
    """
    return {
        "prompt_tokens": _total(counts, *prompt),
        "completion_tokens": _total(counts, *answer),
        "prompt_tokens_details": {
            "cached_tokens": _total(counts, read),
            "cache_write_tokens": _total(counts, *written),
        },
    }


# Anthropic

_MESSAGE_ENDS = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
}
_LIMIT = re.compile(r"anthropic-ratelimit-(requests|tokens)-(limit|remaining|reset)")


def _message_body(asked: Request) -> dict[str, Any]:
    system, messages, schema = _parts(asked)
    instructions: dict[str, Any] = {"type": "text", "text": system}
    if asked.cached:  # the tools stand before the system prompt, so both are cached
        instructions["cache_control"] = {"type": "ephemeral"}
    body: dict[str, Any] = {
        **asked.spec.parameters(),
        "max_tokens": asked.cap,
        "system": [instructions],
        "messages": [{"role": role, "content": text} for role, text in messages],
    }
    if schema is not None:
        name = schema_name(asked.task.schema)
        body["tools"] = [{"name": name, "input_schema": schema}]
        body["tool_choice"] = {"type": "tool", "name": name}
    return body


def _read_message(body: bytes, _: Request) -> Completion | None:
    values = json_of(body)
    read, written = "cache_read_input_tokens", "cache_creation_input_tokens"
    usage = _at(values, "usage")
    return _completion_of(
        body,
        values,
        ["content"],
        ["input"],
        _MESSAGE_ENDS.get(str(_at(values, "stop_reason"))),
        _usage(usage, ("input_tokens", read, written), ("output_tokens",), read, (written,)),
        _at(values, "model"),
    )


def limits_of(headers: Mapping[str, str]) -> Mapping[str, str]:
    """Return Anthropic's rate limits under the names that OpenAI gives them, resets in seconds."""
    found = ((_LIMIT.fullmatch(name.lower()), value) for name, value in headers.items())
    return {
        f"x-ratelimit-{limit[2]}-{limit[1]}": (
            _seconds(value, headers) if limit[2] == "reset" else value
        )
        for limit, value in found
        if limit
    }


def _seconds(moment: str, headers: Mapping[str, str]) -> str:
    """Return the seconds until a moment; "" if it is none."""
    try:
        return f"{seconds_until(datetime.fromisoformat(moment), headers):.3f}"
    except (ValueError, TypeError):  # a date without a zone cannot be subtracted
        return ""


# Gemini

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
    system, messages, schema = _parts(asked)
    spec, extra = asked.spec, dict(asked.spec.extra_body or {})
    given = _given(
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


def _read_candidate(body: bytes, _: Request) -> Completion | None:
    values = json_of(body)
    blocked = _at(values, "promptFeedback", "blockReason") is not None
    ended = _CANDIDATE_ENDS.get(str(_at(values, "candidates", 0, "finishReason")))
    answer = "candidatesTokenCount", "thoughtsTokenCount"
    usage = _at(values, "usageMetadata")
    return _completion_of(
        body,
        values,
        ["candidates", 0, "content", "parts"],
        ["functionCall", "args"],
        "content_filter" if blocked else ended,
        _usage(usage, ("promptTokenCount",), answer, "cachedContentTokenCount"),
        _at(values, "modelVersion"),
    )


# Bedrock

_CONVERSE_ENDS = {
    **dict.fromkeys(("max_tokens", "model_context_window_exceeded"), "length"),
    **dict.fromkeys(("content_filtered", "guardrail_intervened"), "content_filter"),
    **dict.fromkeys(("malformed_model_output", "malformed_tool_use"), "error"),
    "refusal": "refusal",
}


def _converse_body(asked: Request) -> dict[str, Any]:
    instructions, messages, schema = _parts(asked)
    spec = asked.spec
    system: list[dict[str, Any]] = [{"text": instructions}]
    if asked.cached:
        system.append({"cachePoint": {"type": "default"}})  # the tools stand before it
    body: dict[str, Any] = {
        **(spec.extra_body or {}),
        "system": system,
        "messages": [{"role": role, "content": [{"text": text}]} for role, text in messages],
        "inferenceConfig": _given(
            temperature=spec.temperature, topP=spec.top_p, maxTokens=asked.cap
        ),
    }
    if schema is not None:
        name = schema_name(asked.task.schema)
        body["toolConfig"] = {
            "tools": [{"toolSpec": {"name": name, "inputSchema": {"json": schema}}}],
            "toolChoice": {"tool": {"name": name}},
        }
    return body


def _read_converse(body: bytes, _: Request) -> Completion | None:
    values = json_of(body)
    read, written = "cacheReadInputTokens", "cacheWriteInputTokens"
    usage = _at(values, "usage")
    return _completion_of(
        body,
        values,
        ["output", "message", "content"],
        ["toolUse", "input"],
        _CONVERSE_ENDS.get(str(_at(values, "stopReason"))),
        _usage(usage, ("inputTokens", read, written), ("outputTokens",), read, (written,)),
    )


class AnthropicJudge(HostedJudge):
    """Labels records with a model of Anthropic; arguments are those of its base.

    Example:
        >>> labeler.AnthropicJudge("MODEL", api_key="key").spec.model
        'MODEL'
    """

    provider = "anthropic"
    form = Form(
        "/messages",
        _message_body,
        _read_message,
        model_path="/models/{model}",
        version="/v1",
        key=("x-api-key", ""),
        headers={"anthropic-version": "2023-06-01"},
        quotas=limits_of,
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
        _read_candidate,
        model_path="/{model}",
        version="/v1beta",
        name=lambda model: model if "/" in model else f"models/{model}",
        safe="/",
        key=("x-goog-api-key", ""),
    )


class BedrockJudge(HostedJudge):
    """Labels records with a model on Amazon Bedrock, by its Converse API.

    An API key of Bedrock is a bearer token, so no request is signed. Arguments are those of its
    base.

    Raises:
        UsageError: neither ``base_url`` nor ``AWS_REGION`` names a region, or as for its base.

    Example:
        >>> url = "https://bedrock-runtime.eu-central-1.amazonaws.com"
        >>> labeler.BedrockJudge("MODEL", api_key="key", base_url=url).spec.model
        'MODEL'
    """

    provider = "bedrock"
    form = Form("/model/{model}/converse", _converse_body, _read_converse)
