"""Providers with an API of their own, before the made-up server: only the forms are theirs.

A request in a provider's form is held against what its documentation allows, turned into a chat
completions request, and answered by any behavior of the server; the answer is turned back. Sources:
platform.claude.com/docs/en/api/messages and /errors; ai.google.dev/api/generate-content;
docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html; all 2026.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import unquote

from labeler.judges.limits import seconds_of
from wire.calls import COMPLETIONS, Call, Json
from wire.connections import Wire
from wire.provider import Provider

KEY = "sk-SENTINEL-0123456789"
_SPLICE = '"<arguments>"'
"""Place of a tool call's arguments, which are sent as the model wrote them."""


class Strange(Exception):
    """A request that the provider does not take, and why."""


def require(holds: object, why: str) -> None:
    """Refuse a request unless something holds."""
    if not holds:
        raise Strange(why)


@dataclass(frozen=True)
class Form:
    """The form of a provider's requests and answers."""

    key_header: str
    refused_key: tuple[int, str]  # status and words for a key that is wrong or has expired
    no_tools: str  # words of a model that cannot call any
    path: str  # of a request for an answer; its group is the model, where the body names none
    known: Mapping[str, str]  # fields of the body, and of an object within it, by its name
    unknown: str  # words for another field
    finishes: Mapping[str, str]  # reasons of the end, by those of a chat completion
    said: Callable[[str], Json]  # makes a block of text
    call: Json  # a block that calls the tool
    chat: Callable[[Call, str], Json]  # makes a request for a chat completion, with this model
    wrapped: Callable[[object, list[Json] | None, str], Json]  # model, blocks if any, and end
    usage: Callable[[int, int, int], Json]  # tokens: prompt, cached ones among them, answer
    error: Callable[[int, str], Json]  # an error's body
    limits: Callable[[Mapping[str, str]], dict[str, str]] = lambda _: {}  # headers, if any

    def require_known(self, body: Json) -> None:
        """Refuse a request with other fields."""
        for part, known in self.known.items():
            for name in sorted({*(body.get(part, {}) if part else body)} - {*known.split()}):
                raise Strange(self.unknown.format(name))

    def answer(self, completion: Json) -> str:
        """A chat completion as the JSON text of the provider's answer."""
        message, finish = _read(completion)
        blocks: list[Json] | None = None
        arguments = ""
        if message is not None:
            text = _text(message)
            arguments = text if message.get("tool_calls") and _is_object(text) else ""
            blocks = [self.call] if arguments else [self.said(text)] if text else []
            finish = "tool_use" if arguments and finish == "stop" else finish
            finish = "content_filter" if message.get("refusal") else finish
        value = self.wrapped(completion.get("model"), blocks, self.finishes.get(finish, finish))
        usage = completion.get("usage")
        if isinstance(usage, dict) and isinstance(usage.get("prompt_tokens"), int):
            cached = usage["prompt_tokens_details"]["cached_tokens"]
            value |= self.usage(usage["prompt_tokens"], cached, usage["completion_tokens"])
        return json.dumps(value).replace(_SPLICE, arguments)


def _read(completion: Json) -> tuple[Json | None, str]:
    """The message of a completion, if it has one, and how it ended."""
    try:
        choice = completion["choices"][0]
        message, finish = choice["message"], choice["finish_reason"]
    except (LookupError, TypeError):
        return None, "stop"
    return (message if isinstance(message, dict) else None), str(finish)


def _is_object(text: str) -> bool:
    """Whether a text can be the arguments of a tool call: no provider sends others."""
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def _text(message: Json) -> str:
    calls = message.get("tool_calls")
    content = calls[0]["function"]["arguments"] if calls else message.get("content")
    return content if isinstance(content, str) else ""


def _chat(model: object, system: str, turns: Iterable[tuple[str, str]], tools: list[Json]) -> Json:
    """A request for a chat completion, with tools if there are any."""
    messages = [{"role": role, "content": text} for role, text in (("system", system), *turns)]
    return {"model": model, "messages": messages} | ({"tools": tools} if tools else {})


def _tool(name: str, schema: Json) -> Json:
    return {"type": "function", "function": {"name": name, "parameters": schema}}


def _joined(parts: list[Json]) -> str:
    text = "".join(part["text"] for part in parts if "cachePoint" not in part)
    require(text.strip(), "Unable to submit request because it must have a text parameter.")
    return text


def _apart(names: str) -> Callable[[int, int, int], Json]:
    """The usage of a provider that counts cached tokens apart."""
    return lambda prompt, cached, answer: {
        "usage": dict(zip(names.split(), (prompt - cached, answer, cached, 0), strict=True))
    }


# Anthropic: the Messages API

_ANTHROPIC_TYPES = {
    400: "invalid_request_error", 401: "authentication_error", 402: "billing_error",
    403: "permission_error", 404: "not_found_error", 413: "request_too_large",
    429: "rate_limit_error", 529: "overloaded_error",
}  # fmt: skip


def _anthropic_chat(call: Call, _: str) -> Json:
    body = call.body
    require("anthropic-version" in call.headers, "anthropic-version: header is required")
    require(isinstance(body.get("max_tokens"), int), "max_tokens: Field required")
    turns = [(message["role"], message["content"]) for message in body["messages"]]
    for role, text in turns:
        require(role in {"user", "assistant"}, "messages: Input should be 'user'")
        require(text.strip(), "messages: text content blocks must be non-empty")
    tools = body.get("tools", [])
    for tool in tools:
        chosen = {"type": "tool", "name": tool["name"]}
        require(body["tool_choice"] == chosen, "tool_choice: Tool not found in provided tools")
    made = [_tool(tool["name"], tool["input_schema"]) for tool in tools]
    return _chat(body["model"], _joined(body["system"]), turns, made)


def _anthropic_limits(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers of rate limits, with the moment of the reset."""
    limits = {}
    for name, value in headers.items():
        amount, unit = name.removeprefix("x-ratelimit-").split("-")
        reset = datetime.now(UTC) + timedelta(seconds=seconds_of(value) or 0)
        text = reset.isoformat() if amount == "reset" else value
        limits[f"anthropic-ratelimit-{unit}-{amount}"] = text
    return limits


_ANTHROPIC = Form(
    key_header="x-api-key",
    refused_key=(401, "invalid x-api-key"),
    no_tools="This model does not support tool use.",
    path="/v1/messages()",
    known={"": "model max_tokens system messages tools tool_choice temperature top_p"},
    unknown="{}: Extra inputs are not permitted",
    finishes={"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal"},
    said=lambda text: {"type": "text", "text": text},
    call={"type": "tool_use", "id": "t1", "name": "n", "input": "<arguments>"},
    chat=_anthropic_chat,
    wrapped=lambda model, blocks, end: {"model": model, "content": blocks, "stop_reason": end},
    usage=_apart("input_tokens output_tokens cache_read_input_tokens cache_creation_input_tokens"),
    error=lambda status, message: {
        "type": "error",
        "error": {"type": _ANTHROPIC_TYPES.get(status, "api_error"), "message": message},
    },
    limits=_anthropic_limits,
)


# Gemini: the method generateContent, whose cached tokens are part of the prompt's

_GEMINI_STATUS = {
    400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE",
}  # fmt: skip


def _gemini_chat(call: Call, model: str) -> Json:
    body, roles = call.body, {"user": "user", "model": "assistant"}
    turns = [(roles[each["role"]], _joined(each["parts"])) for each in body["contents"]]
    tools = [one for tool in body.get("tools", []) for one in tool["functionDeclarations"]]
    for tool in tools:
        require("parameters" not in tool, 'Unknown name "additionalProperties"')
        calling = body["toolConfig"]["functionCallingConfig"]
        require(calling["allowedFunctionNames"] == [tool["name"]], "allowedFunctionNames")
    made = [_tool(tool["name"], tool["parametersJsonSchema"]) for tool in tools]
    return _chat(model, _joined(body["systemInstruction"]["parts"]), turns, made)


def _gemini_answer(model: object, blocks: list[Json] | None, finish: str) -> Json:
    """A response with a candidate, if there is a message."""
    candidate = {"content": {"role": "model", "parts": blocks}, "finishReason": finish}
    return {"modelVersion": model} | ({} if blocks is None else {"candidates": [candidate]})


_GEMINI = Form(
    key_header="x-goog-api-key",
    refused_key=(400, "API key expired. Please renew the API key."),
    no_tools="Function calling is not enabled for this model",
    path=r"/v1beta/models/([^/:]+):generateContent",
    known={
        "": "contents systemInstruction generationConfig tools toolConfig",
        "generationConfig": "temperature topP topK seed maxOutputTokens",
    },
    unknown='Invalid JSON payload received. Unknown name "{}": Cannot find field.',
    finishes={
        "stop": "STOP", "tool_use": "STOP", "length": "MAX_TOKENS", "content_filter": "SAFETY",
    },
    said=lambda text: {"text": text},
    call={"functionCall": {"name": "n", "args": "<arguments>"}},
    chat=_gemini_chat,
    wrapped=_gemini_answer,
    usage=lambda prompt, cached, answer: {
        "usageMetadata": {
            "promptTokenCount": prompt,
            "candidatesTokenCount": answer,
            "cachedContentTokenCount": cached,
        }
    },
    error=lambda status, message: {"error": {
        "code": status, "message": message, "status": _GEMINI_STATUS.get(status, "INTERNAL"),
    }},
)  # fmt: skip


# Bedrock: the operation Converse


def _bedrock_chat(call: Call, model: str) -> Json:
    body, roles = call.body, {"user": "user", "assistant": "assistant"}
    turns = [(roles[each["role"]], _joined(each["content"])) for each in body["messages"]]
    given = body.get("toolConfig", {})
    tools = [tool["toolSpec"] for tool in given.get("tools", [])]
    for tool in tools:
        chosen = {"tool": {"name": tool["name"]}}
        require(given["toolChoice"] == chosen, "The tool that is chosen is not among the tools")
    made = [_tool(tool["name"], tool["inputSchema"]["json"]) for tool in tools]
    return _chat(model, _joined(body["system"]), turns, made)


_BEDROCK = Form(
    key_header="authorization",
    refused_key=(403, "Bearer Token has expired"),
    no_tools="This model doesn't support the toolConfig.toolChoice.tool field. "
    "Remove toolConfig.toolChoice.tool and try again.",
    path=r"/model/([^/]+)/converse",
    known={
        "": "system messages inferenceConfig toolConfig",
        "inferenceConfig": "maxTokens temperature topP stopSequences",
    },
    unknown="The model returned the following errors: {}: not permitted",
    finishes={"stop": "end_turn", "length": "max_tokens", "content_filter": "content_filtered"},
    said=lambda text: {"text": text},
    call={"toolUse": {"toolUseId": "t1", "name": "n", "input": "<arguments>"}},
    chat=_bedrock_chat,
    wrapped=lambda _, blocks, finish: {
        "output": {"message": {"role": "assistant", "content": blocks}},
        "stopReason": finish,
        "metrics": {"latencyMs": 1},
    },
    usage=_apart("inputTokens outputTokens cacheReadInputTokens cacheWriteInputTokens"),
    error=lambda status, message: {"Message" if status == 403 else "message": message},
)


class Translated(Wire):
    """A connection whose peer expects another form."""

    def __init__(self, inner: Wire, form: Form) -> None:
        self._inner, self._form = inner, form
        super().__init__(inner.accounts)
        for name in ("pause", "gone", "close", "reset"):
            setattr(self, name, getattr(inner, name))

    def _body(self, status: int, body: bytes) -> bytes:
        try:
            value = json.loads(body)
        except (ValueError, RecursionError):
            return body
        if isinstance(value, dict) and status == 200 and "choices" in value:
            return self._form.answer(value).encode()
        if isinstance(value, dict) and isinstance(stated := value.get("error"), dict):
            return json.dumps(self._form.error(status, str(stated["message"]))).encode()
        return body

    async def respond(
        self, status: int, body: bytes, headers: Mapping[str, str] | None = None, gap: float = 0
    ) -> None:
        """Send a complete response."""
        self._inner.extra_headers = self._form.limits(self.extra_headers)
        await self._inner.respond(status, self._body(status, body), headers, gap)

    async def half(self, status: int, body: bytes) -> None:
        """Promise a body, send half of it, close."""
        await self._inner.half(status, self._body(status, body))


class NativeProvider(Provider):
    """The made-up server in the form of a provider.

    Args:
        form: that of the provider.
        script: as for the base, and so are the settings.
        tools: whether the model can call tools.
        key: the key that is taken.
    """

    def __init__(
        self,
        form: Form,
        script: Any = (),
        *,
        tools: bool = True,
        key: Callable[[Call], str] = lambda _: KEY,
        **settings: Any,
    ) -> None:
        self._form, self._has_tools, self._key = form, tools, key
        self.native: list[Call] = []
        """Requests for answers as they came."""
        super().__init__(script, modes=("tools", "prompt"), **settings)

    @property
    def url(self) -> str:
        """The base URL to give to a client."""
        return f"http://127.0.0.1:{self.port}"

    async def _answer(self, call: Call, wire: Wire) -> None:
        """Take a call in the provider's form."""
        key = call.headers.get(self._form.key_header, "").removeprefix("Bearer ")
        if call.path == "/stats":
            await super()._answer(call, wire)
        elif key != self._key(call):
            self.requests.append(call)
            status, words = self._form.refused_key
            await wire.json(status, self._form.error(status, words))
        else:
            await self._translate(call, wire)

    async def _translate(self, call: Call, wire: Wire) -> None:
        headers = {**call.headers, "authorization": f"Bearer {KEY}"}
        path = call.path.replace("/v1beta/", "/v1/")
        call = replace(call, headers=headers, path=call.path if ":" in path else path)
        if asked := re.fullmatch(self._form.path, call.path):
            self.native.append(call)
            try:
                self._form.require_known(call.body)
                chat = self._form.chat(call, unquote(asked[1]))
                require("tools" not in chat or self._has_tools, self._form.no_tools)
            except Strange as strange:
                await wire.json(400, self._form.error(400, str(strange)))
                return
            call = replace(call, path=COMPLETIONS, raw=json.dumps(chat).encode())
        await super()._answer(call, Translated(wire, self._form))


FORMS = {"anthropic": _ANTHROPIC, "gemini": _GEMINI, "bedrock": _BEDROCK}
"""Every form, by the name of its judge."""
