"""The judge behind Anthropic's Messages API."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from types import ModuleType
from typing import Any
from urllib.parse import quote

import msgspec
from httpx2 import Response

from labeler.judges.native import (
    NativeWire,
    at,
    client_library,
    completion_of,
    parts_of,
    usage_with_cache,
)
from labeler.judges.openai.access import Access
from labeler.judges.openai.address import NO_KEY
from labeler.judges.openai.client import Server, guard_logs
from labeler.judges.openai.completion import Completion
from labeler.judges.openai.headers import seconds_until
from labeler.judges.openai.hosted import HostedJudge
from labeler.judges.openai.preflight import Preflight
from labeler.judges.openai.request import schema_name
from labeler.judges.openai.spec import OpenAISpec
from labeler.judges.openai.wire import Reply, Request

_FINISH = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
}
_LIMIT = re.compile(r"anthropic-ratelimit-(requests|tokens)-(limit|remaining|reset)")
_CACHE = "cache_read_input_tokens", "cache_creation_input_tokens"


class AnthropicJudge(HostedJudge):
    """Labels records with a model of Anthropic; arguments are those of its base.

    Raises:
        UsageError: the extra ``anthropic`` is not installed, or as for its base.

    Example:
        >>> judge = labeler.AnthropicJudge("MODEL", api_key="key")  # doctest: +SKIP
    """

    provider = "anthropic"

    @staticmethod
    def wires() -> Callable[[Server, OpenAISpec], AnthropicWire]:
        """Return the wire with its library."""
        return partial(AnthropicWire, client_library("anthropic", "anthropic"))


class AnthropicWire(NativeWire):
    """Messages through anthropic."""

    version = "/v1"

    def __init__(self, library: ModuleType, server: Server, spec: OpenAISpec) -> None:
        super().__init__(server, Access(server.key, server.headers), spec.timeout)
        self.errors = (*NativeWire.errors, library.APIError)
        self._client = library.AsyncAnthropic(
            api_key=NO_KEY,  # the real one is added to each request
            base_url=self.base_url,
            max_retries=0,  # tenacity is the only retry layer
            http_client=self.http,
            open_telemetry=False,  # its spans may hold documents
        )
        # The constructor takes headers from the environment, and has no argument against it.
        self._client._custom_headers = {}  # noqa: SLF001
        guard_logs("anthropic", "anthropic._base_client", "anthropic._response")

    async def send(self, asked: Request) -> Reply:
        """Request a message."""
        response: Response = await self._client.post(
            "/v1/messages", cast_to=Response, content=msgspec.json.encode(request_body(asked))
        )
        return Reply(read_message(response.content), self.quotas(response.headers))

    async def look_up(self, model: str) -> Preflight:
        """Look the model up."""
        path = f"/v1/models/{quote(model, safe='')}"
        return await self.result_of(self._client.get(path, cast_to=Response))

    def quotas(self, headers: Mapping[str, str]) -> Mapping[str, str]:
        """Return the rate limits."""
        return limits_of(headers)


def request_body(asked: Request) -> dict[str, Any]:
    """Return the JSON body of a request."""
    system, messages, schema = parts_of(asked)
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


def read_message(body: bytes) -> Completion | None:
    """Read an answer; ``None`` if it is no message.

    Raises:
        ValueError: it is no JSON.
        RecursionError: it is nested too deeply.
    """
    values: object = json.loads(body)
    return completion_of(
        body,
        values,
        ["content"],
        ["input"],
        finish=_FINISH.get(str(at(values, "stop_reason"))),
        usage=usage_with_cache(at(values, "usage"), "input_tokens", "output_tokens", *_CACHE),
        model=at(values, "model"),
    )


def limits_of(headers: Mapping[str, str]) -> Mapping[str, str]:
    """Return the rate limits under the names that OpenAI gives them, resets in seconds."""
    found = ((_LIMIT.fullmatch(name), value) for name, value in headers.items())
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
