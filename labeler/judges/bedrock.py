"""The judge behind Amazon Bedrock's Converse API, which needs no library.

Converse has one form for all models of Bedrock; its endpoint for OpenAI's clients lacks Claude and
Nova. An API key of Bedrock is a bearer token, so no request is signed.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import msgspec
from httpx2 import HTTPStatusError

from labeler.judges.native import NativeWire, at, completion_of, parts_of, usage_with_cache
from labeler.judges.openai.access import Access
from labeler.judges.openai.client import Server
from labeler.judges.openai.completion import Completion
from labeler.judges.openai.hosted import HostedJudge
from labeler.judges.openai.preflight import Preflight
from labeler.judges.openai.request import schema_name
from labeler.judges.openai.spec import OpenAISpec
from labeler.judges.openai.wire import Reply, Request

_FINISH = {
    **dict.fromkeys(("max_tokens", "model_context_window_exceeded"), "length"),
    **dict.fromkeys(("content_filtered", "guardrail_intervened"), "content_filter"),
    **dict.fromkeys(("malformed_model_output", "malformed_tool_use"), "error"),
    "refusal": "refusal",
}
_CACHE = "cacheReadInputTokens", "cacheWriteInputTokens"


class BedrockJudge(HostedJudge):
    """Labels records with a model on Amazon Bedrock; arguments are those of its base.

    Raises:
        UsageError: neither ``base_url`` nor ``AWS_REGION`` names a region, or as for its base.

    Example:
        >>> judge = labeler.BedrockJudge("MODEL", api_key="key")  # doctest: +SKIP
    """

    provider = "bedrock"

    @staticmethod
    def wires() -> Callable[[Server, OpenAISpec], BedrockWire]:
        """Return the wire."""
        return BedrockWire


class BedrockWire(NativeWire):
    """Converse over HTTP."""

    def __init__(self, server: Server, spec: OpenAISpec) -> None:
        super().__init__(server, Access(server.key, server.headers), spec.timeout)
        self._host = server.host

    async def send(self, asked: Request) -> Reply:
        """Request a message.

        Raises:
            HTTPStatusError: the status is not one of success.
        """
        response = await self.http.post(
            f"{self.base_url}/model/{quote(asked.spec.model, safe='')}/converse",
            content=msgspec.json.encode(request_body(asked)),
            headers={"content-type": "application/json"},
        )
        if not response.is_success:
            raise HTTPStatusError("status", request=response.request, response=response)
        return Reply(read_message(response.content), response.headers)

    async def look_up(self, model: str) -> Preflight:
        """Name the region's host; nothing is sent, because models are listed at another one."""
        return Preflight(warning=f"model {model!r} is asked at {self._host}")


def request_body(asked: Request) -> dict[str, Any]:
    """Return the JSON body of a request."""
    instructions, messages, schema = parts_of(asked)
    spec = asked.spec
    sampling = {"temperature": spec.temperature, "topP": spec.top_p, "maxTokens": asked.cap}
    system: list[dict[str, Any]] = [{"text": instructions}]
    if asked.cached and spec.prompt_cache != "off":
        system.append({"cachePoint": {"type": "default"}})  # the tools stand before it
    body: dict[str, Any] = {
        **(spec.extra_body or {}),
        "system": system,
        "messages": [{"role": role, "content": [{"text": text}]} for role, text in messages],
        "inferenceConfig": {name: value for name, value in sampling.items() if value is not None},
    }
    if schema is not None:
        name = schema_name(asked.task.schema)
        body["toolConfig"] = {
            "tools": [{"toolSpec": {"name": name, "inputSchema": {"json": schema}}}],
            "toolChoice": {"tool": {"name": name}},
        }
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
        ["output", "message", "content"],
        ["toolUse", "input"],
        finish=_FINISH.get(str(at(values, "stopReason"))),
        usage=usage_with_cache(at(values, "usage"), "inputTokens", "outputTokens", *_CACHE),
        model=None,  # it is not stated
    )
