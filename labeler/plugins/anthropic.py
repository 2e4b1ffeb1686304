"""A judge behind Anthropic's Messages API."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from labeler.judges.limits import seconds_until
from labeler.judges.native import NativeAnswers, texts_of
from labeler.judges.openai.judge import HostedJudge
from labeler.judges.openai.request import Form, Request, schema_name
from labeler.judges.providers import NATIVE_MODES, OPENAI_ONLY, Provider

ANTHROPIC = Provider(
    base_url="https://api.anthropic.com",
    key_variables=("ANTHROPIC_API_KEY",),
    address_variable="ANTHROPIC_BASE_URL",
    modes=NATIVE_MODES,
    requires_cap=True,
    lacks=OPENAI_ONLY | {"seed"},
)

_MESSAGE_ENDS = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
}
_LIMIT = re.compile(r"anthropic-ratelimit-(requests|tokens)-(limit|remaining|reset)")


def _message_body(asked: Request) -> dict[str, Any]:
    system, messages, schema = texts_of(asked)
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


_READ, _WRITTEN = "cache_read_input_tokens", "cache_creation_input_tokens"
_ANSWERS = NativeAnswers(
    blocks=["content"],
    call=["input"],
    end=["stop_reason"],
    ends=_MESSAGE_ENDS,
    usage="usage",
    prompt=("input_tokens", _READ, _WRITTEN),
    answer=["output_tokens"],
    read=_READ,
    written=_WRITTEN,
    model="model",
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
        _ANSWERS.completion,
        model_path="/models/{model}",
        version="/v1",
        key=("x-api-key", ""),
        headers={"anthropic-version": "2023-06-01"},
        quotas=limits_of,
    )
