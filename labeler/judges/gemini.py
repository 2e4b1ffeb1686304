"""The judge behind Google's Gemini API."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from types import ModuleType
from typing import Any
from urllib.parse import quote

import msgspec
from httpx2 import Client, HTTPStatusError
from httpx2 import Request as HttpRequest

from labeler.judges.native import NativeWire, at, client_library, completion_of, parts_of, total
from labeler.judges.openai.access import Access
from labeler.judges.openai.address import NO_KEY
from labeler.judges.openai.client import Server, guard_logs
from labeler.judges.openai.completion import Completion
from labeler.judges.openai.hosted import HostedJudge
from labeler.judges.openai.preflight import Preflight
from labeler.judges.openai.request import schema_name
from labeler.judges.openai.spec import OpenAISpec
from labeler.judges.openai.wire import Reply, Request

_FINISH = {
    "MAX_TOKENS": "length",
    **dict.fromkeys(
        ("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE"),
        "content_filter",
    ),
    **dict.fromkeys(("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "OTHER"), "error"),
}
_PLACEHOLDER = "-"
"""The library wants contents of its own types; those of the request replace them."""


class GeminiJudge(HostedJudge):
    """Labels records with a model of Google's Gemini API; arguments are those of its base.

    Raises:
        UsageError: the extra ``gemini`` is not installed, or as for its base.

    Example:
        >>> judge = labeler.GeminiJudge("MODEL", api_key="key")  # doctest: +SKIP
    """

    provider = "gemini"

    @staticmethod
    def wires() -> Callable[[Server, OpenAISpec], GeminiWire]:
        """Return the wire with its library."""
        return partial(GeminiWire, client_library("google.genai", "gemini"))


class GeminiWire(NativeWire):
    """generateContent through google-genai."""

    version = "/v1beta"

    def __init__(self, library: ModuleType, server: Server, spec: OpenAISpec) -> None:
        super().__init__(
            server,
            _Access(server.key, server.headers, name="x-goog-api-key", scheme=""),
            spec.timeout,
        )
        self.http.request = _request(self.http.request)  # type: ignore[method-assign]
        self._types = types = library.types
        self.errors = (*NativeWire.errors, library.errors.APIError)
        self._client = library.Client(
            vertexai=False,  # no variable of the environment chooses another service
            api_key=NO_KEY,  # the real one is added to each request
            http_options=types.HttpOptions(
                base_url=self.base_url,
                api_version=self.version[1:],
                httpx_async_client=self.http,
                # Unused, but made otherwise with files and proxies of the environment.
                httpx_client=Client(verify=server.context, trust_env=False),
                async_client_args={"ssl": server.context},
            ),
        )
        guard_logs("google_genai", "google_genai._api_client", "google_genai.models")

    async def send(self, asked: Request) -> Reply:
        """Request a candidate."""
        types = self._types
        response = await self._client.aio.models.generate_content(
            model=asked.spec.model,
            contents=_PLACEHOLDER,
            config=types.GenerateContentConfig(
                http_options=types.HttpOptions(extra_body=request_body(asked)),
                should_return_http_response=True,
                automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
            ),
        )
        sent = response.sdk_http_response
        return Reply(read_candidate((sent.body or "").encode()), sent.headers or {})

    async def look_up(self, model: str) -> Preflight:
        """Look the model up, without the library: it reads an odd answer as a wrong type."""
        path = model if "/" in model else f"models/{model}"
        return await self.result_of(self.http.get(f"{self.base_url}{self.version}/{quote(path)}"))


def _request(send: Callable[..., Any]) -> Callable[..., Any]:
    """Return a client's request without the library's own limits of time and reading of errors."""

    async def request(method: str, url: str, *, timeout: object = None, **rest: Any) -> Any:  # noqa: ANN401, ARG001, ASYNC109 - the library's arguments
        response = await send(method, url, **rest)
        if response.status_code != HTTPStatus.OK:  # the library would lose the status
            raise HTTPStatusError("status", request=response.request, response=response)
        return response

    return request


class _Access(Access):
    """Adds the key, and writes the body without the library's spaces between its parts.

    So the published schema is sent byte for byte.
    """

    def prepared(self, request: HttpRequest) -> HttpRequest:
        """Return a request with a compact body."""
        if not request.content:
            return request
        body = msgspec.json.encode(msgspec.json.decode(request.content))
        headers = {**request.headers, "content-length": str(len(body))}
        return HttpRequest(
            request.method,
            request.url,
            headers=headers,
            content=body,
            extensions=request.extensions,
        )


def request_body(asked: Request) -> dict[str, Any]:
    """Return the JSON body of a request.

    The schema goes where the API takes JSON Schema: its own dialect refuses parts of it.
    """
    system, messages, schema = parts_of(asked)
    spec, extra = asked.spec, dict(asked.spec.extra_body or {})
    sampling = {
        "temperature": spec.temperature,
        "topP": spec.top_p,
        "seed": spec.seed,
        "maxOutputTokens": asked.cap,
    }
    given = {name: value for name, value in sampling.items() if value is not None}
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


def read_candidate(body: bytes) -> Completion | None:
    """Read an answer; ``None`` if it holds none.

    Raises:
        ValueError: it is no JSON.
        RecursionError: it is nested too deeply.
    """
    values: object = json.loads(body)
    usage = at(values, "usageMetadata")
    blocked = at(values, "promptFeedback", "blockReason") is not None
    ended = _FINISH.get(str(at(values, "candidates", 0, "finishReason")))
    return completion_of(
        body,
        values,
        ["candidates", 0, "content", "parts"],
        ["functionCall", "args"],
        finish="content_filter" if blocked else ended,
        usage={
            "prompt_tokens": total(usage, "promptTokenCount"),
            "completion_tokens": total(usage, "candidatesTokenCount", "thoughtsTokenCount"),
            "prompt_tokens_details": {"cached_tokens": total(usage, "cachedContentTokenCount")},
        },
        model=at(values, "modelVersion"),
    )
