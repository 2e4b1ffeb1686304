"""Judges of providers with APIs of their own: Anthropic, Amazon Bedrock and Google's Gemini.

Each API is one :class:`~labeler.judges.openai.request.Form`. An answer becomes the chat completion
that says the same, so that one reader serves all of them. The providers' libraries and instructor's
clients of them are not used: they make the schema from a class, where the published one is sent
byte for byte, read bodies without a bound, and take addresses and headers from the environment.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from labeler.judges.openai.completion import Completion, read_completion, unfinished, unreadable
from labeler.judges.openai.judge import HostedJudge
from labeler.judges.openai.reading import at, json_of, list_of, text_of, verbatim
from labeler.judges.openai.request import Form, Request, schema_name
from labeler.judges.openai.server_errors import error_in
from labeler.judges.options import NATIVE_MODES, OPENAI_ONLY, Provider

_NO_TEXT = "{}"
"""Stands for an empty answer in a re-ask, because the providers reject an empty text."""


def _texts_of(asked: Request) -> tuple[str, list[tuple[str, str]], dict[str, Any] | None]:
    """Return the system prompt, roles and texts of the other messages, and the schema.

    The schema is ``None`` in the mode that shows it to the model.
    """
    messages, _ = asked.task.sent(asked.messages)
    system = "\n\n".join(one["content"] for one in messages if one["role"] == "system")
    others = [
        (one["role"], one["content"] if one["content"].strip() else _NO_TEXT)
        for one in messages
        if one["role"] != "system"
    ]
    is_tool = asked.task.mode == "tools"
    return system, others, dict(asked.task.schema.json_schema) if is_tool else None


def _set_only(**settings: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON values
    """Return the settings that are set."""
    return {name: value for name, value in settings.items() if value is not None}


class _Answers(NamedTuple):
    """The places of an answer's parts, by which it becomes a chat completion."""

    blocks: Sequence[str]
    """Path to the list of its texts and calls."""
    call: Sequence[str]
    """Path from a block to the arguments of a call. They are taken word for word, because an object
    with a duplicate name must be seen as such."""
    end: Sequence[str]
    """Path to the reason of its end."""
    model: str = ""
    """Name of the model that answered, if it is named."""
    blocked: Sequence[str] = ()
    """Path to the reason why a filter blocked the request, if there is one."""
    candidates: str = ""
    """Name of the list of answers, if they stand in one. Paths begin in the first of them."""

    def completion(self, body: bytes, _: Request) -> Completion:
        """Return the completion that an answer holds."""
        values = json_of(body)
        if not isinstance(values, dict):
            return Completion(error=unreadable(body))
        path = (self.candidates, 0) if self.candidates else ()
        finish = text_of(at(values, *path, *self.end))
        if self.blocked and at(values, *self.blocked) is not None:
            finish = "content_filter"
        blocks = at(values, *path, *self.blocks)
        parts = list_of(blocks)
        texts = [text_of(at(part, "text")) for part in parts if not at(part, "thought")]
        # Providers close the arguments of a call that was cut off: they would look complete.
        called = [] if unfinished(finish) else [at(part, *self.call) for part in parts]
        calls = {n: one for n, one in enumerate(called) if one not in (None, "", {})}
        first = next(iter(calls), -1)
        # Equal calls are one, whose arguments take a pass over the body.
        is_one = bool(calls) and all(one == calls[first] for one in calls.values())
        arguments = verbatim(body, *path, *self.blocks, first, *self.call) if is_one else ""
        message = {
            "content": "".join(texts),
            "tool_calls": [{"function": {"arguments": arguments}}],
        }
        choice = {"message": message, "finish_reason": finish}
        # Gemini leaves the parts of an empty answer out.
        has_end = finish if self.candidates else unfinished(finish)
        has_choice = isinstance(blocks, list) or has_end
        completion = read_completion(
            {
                "choices": [choice] if has_choice else [],
                "usage": values.get("usage") or values.get("usageMetadata"),
                "model": at(values, self.model),
            }
        )
        error = error_in(values, self.candidates or self.blocks[0])
        return completion._replace(error=error) if error else completion


# Anthropic's Messages API

ANTHROPIC = Provider(
    base_url="https://api.anthropic.com",
    key_variables=("ANTHROPIC_API_KEY",),
    address_variables=("ANTHROPIC_BASE_URL",),
    modes=NATIVE_MODES,
    requires_cap=True,
    lacks=OPENAI_ONLY | {"seed"},
)

_LIMIT = re.compile(r"anthropic-ratelimit-(requests|tokens)-(limit|remaining|reset)")


def _message_body(asked: Request) -> dict[str, Any]:
    system, messages, schema = _texts_of(asked)
    instructions: dict[str, Any] = {"type": "text", "text": system}
    if asked.cached:  # the tools stand before the system prompt, so both are cached
        instructions["cache_control"] = {"type": "ephemeral"}
    body: dict[str, Any] = {
        **asked.spec.parameters,
        "max_tokens": asked.cap,
        "system": [instructions],
        "messages": [{"role": role, "content": text} for role, text in messages],
    }
    if schema is not None:
        name = schema_name(asked.task.schema)
        body["tools"] = [{"name": name, "input_schema": schema}]
        body["tool_choice"] = {"type": "tool", "name": name}
    return body


_ANTHROPIC_ANSWERS = _Answers(
    blocks=["content"], call=["input"], end=["stop_reason"], model="model"
)


def limits_of(headers: Mapping[str, str]) -> Mapping[str, str]:
    """Return Anthropic's rate limits under the names that OpenAI gives them, and the date."""
    found = ((_LIMIT.fullmatch(name.lower()), value) for name, value in headers.items())
    limits = {f"x-ratelimit-{limit[2]}-{limit[1]}": value for limit, value in found if limit}
    return limits | {"date": headers.get("date", "")}


class AnthropicJudge(HostedJudge):
    """Labels records with a model of Anthropic; arguments as for :class:`OpenAIJudge`.

    Example:
        >>> labeler.AnthropicJudge("MODEL", api_key="key").spec.model
        'MODEL'
    """

    provider = "anthropic"
    form = Form(
        "/messages",
        _message_body,
        _ANTHROPIC_ANSWERS.completion,
        model_path="/models/{model}",
        version="/v1",
        key=("x-api-key", ""),
        headers={"anthropic-version": "2023-06-01"},
        quotas=limits_of,
    )


# Amazon Bedrock's Converse API

BEDROCK = Provider(
    base_url="https://bedrock-runtime.{region}.amazonaws.com",
    key_variables=("AWS_BEARER_TOKEN_BEDROCK",),
    address_variables=("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "AWS_ENDPOINT_URL"),
    region_variables=("AWS_REGION", "AWS_DEFAULT_REGION"),
    modes=NATIVE_MODES,
    lacks=OPENAI_ONLY | {"seed"},
)


def _converse_body(asked: Request) -> dict[str, Any]:
    instructions, messages, schema = _texts_of(asked)
    spec = asked.spec
    system: list[dict[str, Any]] = [{"text": instructions}]
    if asked.cached:
        system.append({"cachePoint": {"type": "default"}})  # the tools stand before it
    body: dict[str, Any] = {
        **(spec.extra_body or {}),
        "system": system,
        "messages": [{"role": role, "content": [{"text": text}]} for role, text in messages],
        "inferenceConfig": _set_only(
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


_BEDROCK_ANSWERS = _Answers(
    blocks=["output", "message", "content"], call=["toolUse", "input"], end=["stopReason"]
)


class BedrockJudge(HostedJudge):
    """Labels records with a model on Amazon Bedrock, by its Converse API.

    An API key of Bedrock is a bearer token, so no request is signed. Takes the
    arguments of :class:`OpenAIJudge`.

    Raises:
        UsageError: neither ``base_url`` nor ``AWS_REGION`` names a region; else as there.

    Example:
        >>> url = "https://bedrock-runtime.eu-central-1.amazonaws.com"
        >>> labeler.BedrockJudge("MODEL", api_key="key", base_url=url).spec.model
        'MODEL'
    """

    provider = "bedrock"
    form = Form("/model/{model}/converse", _converse_body, _BEDROCK_ANSWERS.completion)


# Google's Gemini API

GEMINI = Provider(
    base_url="https://generativelanguage.googleapis.com",
    key_variables=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    address_variables=("GOOGLE_GEMINI_BASE_URL",),
    modes=NATIVE_MODES,
    preset={"prompt_cache": "off"},  # it caches unasked
    prefix="models/",
    lacks=OPENAI_ONLY | {"prompt_cache"},
)


def _candidate_body(asked: Request) -> dict[str, Any]:
    """Return the body of a request, the schema where the API takes JSON Schema."""
    system, messages, schema = _texts_of(asked)
    spec, extra = asked.spec, dict(asked.spec.extra_body or {})
    given = _set_only(
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


_GEMINI_ANSWERS = _Answers(
    blocks=["content", "parts"],
    call=["functionCall", "args"],
    end=["finishReason"],
    model="modelVersion",
    blocked=["promptFeedback", "blockReason"],
    candidates="candidates",
)


class GeminiJudge(HostedJudge):
    """Labels records with a model of Google's Gemini API.

    Takes the arguments of :class:`OpenAIJudge`.

    Example:
        >>> labeler.GeminiJudge("MODEL", api_key="key").spec.model
        'MODEL'
    """

    provider = "gemini"
    form = Form(
        "/{model}:generateContent",
        _candidate_body,
        _GEMINI_ANSWERS.completion,
        model_path="/{model}",
        version="/v1beta",
        name=lambda model: model if "/" in model else f"models/{model}",
        safe="/",
        key=("x-goog-api-key", ""),
    )
