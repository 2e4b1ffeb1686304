"""Providers with an API of their own, before the made-up server: only the forms are theirs.

A request in a provider's form is held against what its documentation allows, turned into a chat
completions request, and answered by any behavior of the server; the answer is turned back. Sources:
platform.claude.com/docs/en/api/messages and /errors; ai.google.dev/api/generate-content;
docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html; all 2026.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar
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


class Form:
    """The form of a provider's requests and answers."""

    name: str
    key_header: str
    refused_key: tuple[int, str]
    """Status and words for a key that is wrong or has expired."""
    no_tools: str
    """Words of a model that cannot call any."""
    path: re.Pattern[str]
    """Path of a request for an answer; its group is the model, where the body names none."""
    finishes: ClassVar[Mapping[str, str]]
    """Reasons of the end, by the reasons of a chat completion."""
    call: ClassVar[Json]
    """A block of an answer that calls the tool."""

    def is_asked(self, call: Call) -> bool:
        """Whether a call asks for an answer."""
        return self.path.fullmatch(call.path) is not None

    def model(self, call: Call) -> str:
        """The model that the path names."""
        found = self.path.fullmatch(call.path)
        return unquote(found[1]) if found else ""

    def chat(self, call: Call) -> Json:
        """The request as one for a chat completion.

        Raises:
            Strange: the provider would refuse it.
        """
        raise NotImplementedError

    def answer(self, completion: Json) -> str:
        """A chat completion as the JSON text of the provider's answer."""
        message, finish = _read(completion)
        arguments = _arguments(message)
        blocks: list[Json] | None = None
        if message is not None:
            text = _text(message)
            blocks = [self.call] if arguments else [self.said(text)] if text else []
            finish = "tool_use" if arguments and finish == "stop" else finish
            finish = "content_filter" if message.get("refusal") else finish
        value = self.wrapped(completion.get("model"), blocks, self.finishes.get(finish, finish))
        usage = completion.get("usage")
        if isinstance(usage, dict) and isinstance(usage.get("prompt_tokens"), int):
            cached = usage["prompt_tokens_details"]["cached_tokens"]
            value |= self.usage(usage["prompt_tokens"], cached, usage["completion_tokens"])
        return json.dumps(value).replace(_SPLICE, arguments)

    def said(self, text: str) -> Json:
        """A block of text."""
        return {"text": text}

    def wrapped(self, model: object, blocks: list[Json] | None, finish: str) -> Json:
        """The answer around its blocks; ``None`` where there is no message."""
        raise NotImplementedError

    def usage(self, prompt: int, cached: int, answer: int) -> Json:
        """The field of the answer that counts tokens; the cached ones are part of the prompt's."""
        raise NotImplementedError

    def error(self, status: int, message: str) -> Json:
        """An error's body."""
        raise NotImplementedError

    def limits(self, headers: Mapping[str, str]) -> dict[str, str]:
        """The headers of rate limits, if it sends any."""
        del headers
        return {}


def require(holds: object, why: str) -> None:
    """Refuse a request unless something holds."""
    if not holds:
        raise Strange(why)


_ANTHROPIC_FIELDS = frozenset({
    *("model", "max_tokens", "system", "messages", "tools", "tool_choice"),
    *("temperature", "top_p", "top_k", "metadata", "stop_sequences", "thinking"),
})  # fmt: skip
_ANTHROPIC_TYPES = {
    400: "invalid_request_error", 401: "authentication_error", 402: "billing_error",
    403: "permission_error", 404: "not_found_error", 413: "request_too_large",
    429: "rate_limit_error", 529: "overloaded_error",
}  # fmt: skip


class Anthropic(Form):
    """The Messages API."""

    name = "anthropic"
    key_header = "x-api-key"
    refused_key = 401, "invalid x-api-key"
    no_tools = "This model does not support tool use."
    path = re.compile("/v1/messages")
    finishes: ClassVar = {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal"}
    call: ClassVar = {"type": "tool_use", "id": "t1", "name": "n", "input": "<arguments>"}

    def chat(self, call: Call) -> Json:
        """The request as one for a chat completion."""
        body = call.body
        require("anthropic-version" in call.headers, "anthropic-version: header is required")
        for name in sorted(body.keys() - _ANTHROPIC_FIELDS):
            raise Strange(f"{name}: Extra inputs are not permitted")
        require(isinstance(body.get("max_tokens"), int), "max_tokens: Field required")
        roles = [message["role"] for message in body["messages"]]
        require({*roles} <= {"user", "assistant"}, "messages: Input should be 'user'")
        require(
            all(message["content"].strip() for message in body["messages"]),
            "messages: text content blocks must be non-empty",
        )
        chat = {"model": body["model"], "messages": [_system(body["system"]), *body["messages"]]}
        for tool in body.get("tools", []):
            require(
                body["tool_choice"] == {"type": "tool", "name": tool["name"]},
                "tool_choice: Tool not found in provided tools",
            )
            chat["tools"] = [_tool(tool["name"], tool["input_schema"])]
        return chat

    def said(self, text: str) -> Json:
        """A block of text."""
        return {"type": "text", "text": text}

    def wrapped(self, model: object, blocks: list[Json] | None, finish: str) -> Json:
        """A message."""
        head = {"id": "msg_stub", "type": "message", "role": "assistant", "model": model}
        return {**head, "content": blocks, "stop_reason": finish}

    def usage(self, prompt: int, cached: int, answer: int) -> Json:
        """Cached tokens are counted apart."""
        return {
            "usage": {
                "input_tokens": prompt - cached,
                "cache_read_input_tokens": cached,
                "cache_creation_input_tokens": 0,
                "output_tokens": answer,
            }
        }

    def error(self, status: int, message: str) -> Json:
        """An error's body."""
        kind = _ANTHROPIC_TYPES.get(status, "api_error")
        return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "r"}

    def limits(self, headers: Mapping[str, str]) -> dict[str, str]:
        """The headers of rate limits, with the moment of the reset."""
        limits = {}
        for name, value in headers.items():
            amount, unit = name.removeprefix("x-ratelimit-").split("-")
            reset = datetime.now(UTC) + timedelta(seconds=seconds_of(value) or 0)
            text = reset.isoformat() if amount == "reset" else value
            limits[f"anthropic-ratelimit-{unit}-{amount}"] = text
        return limits


def _system(system: Any) -> Json:
    text = system if isinstance(system, str) else "".join(block["text"] for block in system)
    return {"role": "system", "content": text}


def _tool(name: str, schema: Json) -> Json:
    return {"type": "function", "function": {"name": name, "parameters": schema}}


def _read(completion: Json) -> tuple[Json | None, str]:
    """The message of a completion, if it has one, and how it ended."""
    try:
        choice = completion["choices"][0]
        message, finish = choice["message"], choice["finish_reason"]
    except (LookupError, TypeError):
        return None, "stop"
    return (message if isinstance(message, dict) else None), str(finish)


def _arguments(message: Json | None) -> str:
    """The arguments of a tool call; "" unless they are an object: no provider sends others."""
    try:
        arguments: str = (message or {})["tool_calls"][0]["function"]["arguments"]
        return arguments if isinstance(json.loads(arguments), dict) else ""
    except (LookupError, ValueError):
        return ""


def _text(message: Json) -> str:
    calls = message.get("tool_calls")
    content = calls[0]["function"]["arguments"] if calls else message.get("content")
    return content if isinstance(content, str) else ""


_GEMINI_FIELDS = frozenset({
    *("contents", "systemInstruction", "generationConfig", "tools", "toolConfig"),
    *("safetySettings", "cachedContent"),
})  # fmt: skip
_GEMINI_CONFIG = frozenset({"temperature", "topP", "topK", "seed", "maxOutputTokens"})
_GEMINI_STATUS = {
    400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE",
}  # fmt: skip


class Gemini(Form):
    """The method generateContent."""

    name = "gemini"
    key_header = "x-goog-api-key"
    refused_key = 400, "API key expired. Please renew the API key."
    no_tools = "Function calling is not enabled for this model"
    path = re.compile(r"/v1beta/models/([^/:]+):generateContent")
    finishes: ClassVar = {
        "stop": "STOP", "tool_use": "STOP", "length": "MAX_TOKENS", "content_filter": "SAFETY",
    }  # fmt: skip
    call: ClassVar = {"functionCall": {"name": "n", "args": "<arguments>"}}

    def chat(self, call: Call) -> Json:
        """The request as one for a chat completion."""
        body, config = call.body, call.body.get("generationConfig", {})
        for name in [
            *sorted(body.keys() - _GEMINI_FIELDS),
            *sorted(config.keys() - _GEMINI_CONFIG),
        ]:
            raise Strange(
                f'Invalid JSON payload received. Unknown name "{name}": Cannot find field.'
            )
        messages = [{"role": "system", "content": _joined(body["systemInstruction"]["parts"])}]
        for content in body["contents"]:
            require(content["role"] in {"user", "model"}, "Please use a valid role: user, model.")
            role = "assistant" if content["role"] == "model" else "user"
            messages.append({"role": role, "content": _joined(content["parts"])})
        chat: Json = {"model": self.model(call), "messages": messages}
        for tool in body.get("tools", []):
            (declared,) = tool["functionDeclarations"]
            require("parameters" not in declared, 'Unknown name "additionalProperties"')
            calling = body["toolConfig"]["functionCallingConfig"]
            require(calling["allowedFunctionNames"] == [declared["name"]], "allowedFunctionNames")
            chat["tools"] = [_tool(declared["name"], declared["parametersJsonSchema"])]
        return chat

    def wrapped(self, model: object, blocks: list[Json] | None, finish: str) -> Json:
        """A response with a candidate, if there is a message."""
        answer: Json = {"modelVersion": model, "responseId": "r"}
        if blocks is not None:
            content = {"role": "model", "parts": blocks}
            answer["candidates"] = [{"content": content, "finishReason": finish}]
        return answer

    def usage(self, prompt: int, cached: int, answer: int) -> Json:
        """Cached tokens are part of the prompt's."""
        return {
            "usageMetadata": {
                "promptTokenCount": prompt,
                "candidatesTokenCount": answer,
                "cachedContentTokenCount": cached,
            }
        }

    def error(self, status: int, message: str) -> Json:
        """An error's body."""
        kind = _GEMINI_STATUS.get(status, "INTERNAL")
        return {"error": {"code": status, "message": message, "status": kind, "details": []}}


def _joined(parts: list[Json]) -> str:
    text = "".join(part["text"] for part in parts)
    require(text.strip(), "Unable to submit request because it must have a text parameter.")
    return text


_BEDROCK_FIELDS = frozenset({
    *("system", "messages", "inferenceConfig", "toolConfig", "guardrailConfig", "serviceTier"),
    *("additionalModelRequestFields", "performanceConfig", "requestMetadata"),
})  # fmt: skip
_BEDROCK_CONFIG = frozenset({"maxTokens", "temperature", "topP", "stopSequences"})


class Bedrock(Form):
    """The operation Converse."""

    name = "bedrock"
    key_header = "authorization"
    refused_key = 403, "Bearer Token has expired"
    no_tools = (
        "This model doesn't support the toolConfig.toolChoice.tool field. "
        "Remove toolConfig.toolChoice.tool and try again."
    )
    path = re.compile(r"/model/([^/]+)/converse")
    finishes: ClassVar = {
        "stop": "end_turn", "length": "max_tokens", "content_filter": "content_filtered",
    }  # fmt: skip
    call: ClassVar = {"toolUse": {"toolUseId": "t1", "name": "n", "input": "<arguments>"}}

    def chat(self, call: Call) -> Json:
        """The request as one for a chat completion."""
        body, config = call.body, call.body.get("inferenceConfig", {})
        for name in [
            *sorted(body.keys() - _BEDROCK_FIELDS),
            *sorted(config.keys() - _BEDROCK_CONFIG),
        ]:
            raise Strange(f"The model returned the following errors: {name}: not permitted")
        texts = [block["text"] for block in body["system"] if "cachePoint" not in block]
        messages = [{"role": "system", "content": "".join(texts)}]
        for message in body["messages"]:
            require(message["role"] in {"user", "assistant"}, "Member must satisfy enum value set")
            messages.append({"role": message["role"], "content": _joined(message["content"])})
        chat: Json = {"model": self.model(call), "messages": messages}
        for tool in body.get("toolConfig", {}).get("tools", []):
            spec = tool["toolSpec"]
            require(
                body["toolConfig"]["toolChoice"] == {"tool": {"name": spec["name"]}},
                "The tool that is chosen is not among the tools",
            )
            chat["tools"] = [_tool(spec["name"], spec["inputSchema"]["json"])]
        return chat

    def wrapped(self, model: object, blocks: list[Json] | None, finish: str) -> Json:
        """A message."""
        del model
        message = {"role": "assistant", "content": blocks}
        return {"output": {"message": message}, "stopReason": finish, "metrics": {"latencyMs": 1}}

    def usage(self, prompt: int, cached: int, answer: int) -> Json:
        """Cached tokens are counted apart, and in the total."""
        return {
            "usage": {
                "inputTokens": prompt - cached,
                "cacheReadInputTokens": cached,
                "cacheWriteInputTokens": 0,
                "outputTokens": answer,
                "totalTokens": prompt + answer,
            }
        }

    def error(self, status: int, message: str) -> Json:
        """An error's body; its type is in a header."""
        return {"Message" if status == self.refused_key[0] else "message": message}


class Translated(Wire):
    """A connection whose peer expects another form."""

    def __init__(self, inner: Wire, form: Form) -> None:
        self._inner, self._form = inner, form
        super().__init__(inner.accounts, inner.models, inner.book)
        vars(self).update(
            {name: getattr(inner, name) for name in ("pause", "gone", "close", "reset")}
        )

    def _body(self, status: int, body: bytes) -> bytes:
        try:
            value = json.loads(body)
        except (ValueError, RecursionError):
            return body
        if not isinstance(value, dict):
            return body
        if status == 200 and "choices" in value:
            return self._form.answer(value).encode()
        stated = value.get("error")
        if isinstance(stated, dict):
            return json.dumps(self._form.error(status, str(stated["message"]))).encode()
        return body

    async def respond(
        self, status: int, body: bytes, headers: Mapping[str, str] | None = None
    ) -> None:
        """Send a complete response."""
        self._inner.extra_headers = self._form.limits(self.extra_headers)
        await self._inner.respond(status, self._body(status, body), headers)

    async def trickle(self, status: int, body: bytes, gap: float) -> None:
        """Send a complete response, its body a byte at a time."""
        await self._inner.trickle(status, self._body(status, body), gap)

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
        if self._form.is_asked(call):
            self.native.append(call)
            try:
                chat = self._form.chat(call)
                require("tools" not in chat or self._has_tools, self._form.no_tools)
            except Strange as strange:
                await wire.json(400, self._form.error(400, str(strange)))
                return
            call = replace(call, path=COMPLETIONS, raw=json.dumps(chat).encode())
        await super()._answer(call, Translated(wire, self._form))


FORMS: dict[str, Form] = {"anthropic": Anthropic(), "gemini": Gemini(), "bedrock": Bedrock()}
"""Every form, by the name of its judge."""
