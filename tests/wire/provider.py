"""A chat completions server of our own, on loopback, that answers well or misbehaves on a script.

It is strict where the real provider is strict: a response format that the provider would refuse is
refused here. Every request is recorded as it came. Use it in tests as a context manager::

    with Provider(["500", "429", "ok"]) as provider:
        ...  # provider.url, provider.calls

or by hand: ``python tests/wire/provider.py --port 8080 500 429 ok``.

A behaviour is a coroutine that gets the call and the connection; named ones stand in BEHAVIOURS.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import re
import socket
import struct
import sys
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Self

MODEL = "stub-1-2026-11-01"
FINGERPRINT = "fp_stub"
COMPLETIONS = "/v1/chat/completions"

Json = dict[str, Any]


# What a request is


@dataclass(frozen=True)
class Call:
    """One request as it came."""

    number: int
    """Counts from 1."""
    method: str
    path: str
    headers: Mapping[str, str]
    """Names in lower case."""
    raw: bytes
    body: Json
    """The parsed body; empty where it is no JSON object."""

    @property
    def messages(self) -> list[Json]:
        """The chat messages."""
        messages: list[Json] = self.body.get("messages", [])
        return messages

    @property
    def data(self) -> dict[str, list[Json]]:
        """The JSON lines of each data block of the first user message, by the block's name."""
        users = [m["content"] for m in self.messages if m.get("role") == "user"]
        found = _BLOCK.findall(users[0]) if users else []
        return {
            name: [json.loads(line) for line in text.split("\n") if line] for name, text in found
        }

    def keys(self, block: str) -> list[str]:
        """The sentence keys of a data block."""
        return [line["key"] for line in self.data.get(block, [])]


_BLOCK = re.compile(r"^BEGIN (\w+) \w+\n(.*?)\n?^END \1 \w+$", re.DOTALL | re.MULTILINE)


def label_for(call: Call) -> Json:
    """A label that keeps the contract: the first document sentence is relevant and supports all."""
    first = call.keys("DOCUMENTS")[:1]
    support = [
        {
            "response_sentence_key": key,
            "explanation": f"{key} follows from {first}",
            "supporting_sentence_keys": [*first],
            "fully_supported": bool(first),
        }
        for key in call.keys("RESPONSE")
    ]
    return {
        "relevance_explanation": "the first sentence answers the question",
        "all_relevant_sentence_keys": [*first],
        "overall_supported_explanation": "every sentence follows from the first",
        "overall_supported": bool(first),
        "sentence_support_information": support,
        "all_utilized_sentence_keys": [*first],
    }


# What the provider refuses in a strict schema

_FORBIDDEN = {
    "default", "oneOf", "allOf", "not", "if", "then", "else", "patternProperties", "uniqueItems",
    "minLength", "maxLength", "dependentRequired", "dependentSchemas", "propertyNames",
    "minProperties", "maxProperties", "contains", "prefixItems", "unevaluatedProperties",
}  # fmt: skip
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)


def format_problems(response_format: Json) -> list[str]:
    """Why the provider would refuse a response format; empty if it would not."""
    if response_format.get("type") != "json_schema":
        return ["response_format.type must be json_schema"]
    declared = response_format.get("json_schema", {})
    problems = []
    if not _NAME.fullmatch(declared.get("name", "")):
        problems.append("json_schema.name must match ^[a-zA-Z0-9_-]{1,64}$")
    if declared.get("strict") is not True:
        problems.append("json_schema.strict must be true here")
    schema = declared.get("schema", {})
    if schema.get("type") != "object" or "anyOf" in schema:
        problems.append("the root must be an object and no anyOf")
    return problems + list(schema_problems(schema, "schema"))


def schema_problems(schema: Any, where: str) -> Iterator[str]:
    """What strict mode does not permit in a schema, and where."""
    if not isinstance(schema, dict):
        return
    yield from (f"{where}: '{word}' is not permitted" for word in sorted(_FORBIDDEN & set(schema)))
    if "$ref" in schema and set(schema) - {"$ref", "description"}:
        yield f"{where}: $ref cannot have siblings"
    if schema.get("type") == "object" or "properties" in schema:
        yield from _object_problems(schema, where)
    children = {**schema.get("properties", {}), **schema.get("$defs", {})}
    for name, child in children.items():
        yield from schema_problems(child, f"{where}.{name}")
    yield from schema_problems(schema.get("items"), f"{where}.items")
    for child in schema.get("anyOf", []):
        yield from schema_problems(child, f"{where}.anyOf")


def _object_problems(schema: Json, where: str) -> Iterator[str]:
    if schema.get("additionalProperties") is not False:
        yield f"{where}: 'additionalProperties' is required to be supplied and to be false"
    if missing := sorted(set(schema.get("properties", {})) - set(schema.get("required", []))):
        yield f"{where}: 'required' is required to include every key in properties: {missing}"


# What a connection can do


@dataclass
class Wire:
    """One HTTP connection, seen from the server."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    open: bool = True
    """Whether another request may come."""

    async def send(self, data: bytes) -> None:
        """Send bytes as they are."""
        self.writer.write(data)
        await self.writer.drain()

    async def respond(
        self, status: int, body: bytes, headers: Mapping[str, str] | None = None
    ) -> None:
        """Send a complete response."""
        await self.send(self.head(status, len(body), headers) + body)

    async def json(
        self,
        status: int,
        value: object,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Send a complete JSON response."""
        await self.respond(status, json.dumps(value).encode(), headers)

    def head(self, status: int, length: int, headers: Mapping[str, str] | None = None) -> bytes:
        """A response's status line and headers."""
        lines = {"content-type": "application/json", "x-request-id": "req_stub", **(headers or {})}
        lines["content-length"] = str(length)
        text = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        return f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n{text}\r\n".encode("latin-1")

    def close(self) -> None:
        """Close the connection in good order."""
        self.open = False
        self.writer.close()

    def reset(self) -> None:
        """Drop the connection so that the peer gets a reset."""
        self.open = False
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


Behaviour = Callable[[Call, Wire], Awaitable[None]]
Answer = Callable[[Call], Json]
"""Computes what the model writes; the default is :func:`label_for`."""


# Good answers


def completion(content: str | None, *, finish: str = "stop", refusal: str | None = None) -> Json:
    """A completion object."""
    return {
        "id": "chatcmpl-stub",
        "object": "chat.completion",
        "created": 1,
        "model": MODEL,
        "system_fingerprint": FINGERPRINT,
        "choices": [
            {
                "index": 0,
                "finish_reason": finish,
                "logprobs": None,
                "message": {"role": "assistant", "content": content, "refusal": refusal},
            }
        ],
        "usage": {
            "prompt_tokens": 100,
            "completion_tokens": 10,
            "total_tokens": 110,
            "prompt_tokens_details": {"cached_tokens": 40},
        },
    }


def says(content: str | None, **facts: Any) -> Behaviour:
    """The model writes this."""

    async def behave(_: Call, wire: Wire) -> None:
        await wire.json(200, completion(content, **facts))

    return behave


def answers(
    change: Callable[[Json], object] = lambda _: None, *, label: Answer = label_for
) -> Behaviour:
    """The model writes a label, after ``change`` was done to it."""

    async def behave(call: Call, wire: Wire) -> None:
        value = label(call)
        change(value)
        await wire.json(200, completion(json.dumps(value)))

    return behave


def changes(change: Callable[[Json], object]) -> Behaviour:
    """The server sends a good completion object, after ``change`` was done to it."""

    async def behave(call: Call, wire: Wire) -> None:
        value = completion(json.dumps(label_for(call)))
        change(value)
        await wire.json(200, value)

    return behave


def late(seconds: float, then: Behaviour | None = None) -> Behaviour:
    """Another behaviour after a pause."""

    async def behave(call: Call, wire: Wire) -> None:
        await asyncio.sleep(seconds)
        await (then or answers())(call, wire)

    return behave


# Errors by status


def error(
    status: int,
    code: str | None = None,
    message: str = "stub error",
    *,
    param: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Behaviour:
    """An error response in the provider's form."""
    body = {"error": {"message": message, "type": "stub_error", "param": param, "code": code}}

    async def behave(_: Call, wire: Wire) -> None:
        await wire.json(status, body, headers)

    return behave


def page(status: int, headers: Mapping[str, str] | None = None) -> Behaviour:
    """An HTML page, as gateways and login portals send it."""

    async def behave(_: Call, wire: Wire) -> None:
        html = b"<html><body>not what you asked for</body></html>"
        await wire.respond(status, html, {"content-type": "text/html", **(headers or {})})

    return behave


# Broken connections


async def reset(_: Call, wire: Wire) -> None:
    """Reset the connection."""
    wire.reset()


async def close(_: Call, wire: Wire) -> None:
    """Close the connection without a word."""
    wire.close()


async def short_body(call: Call, wire: Wire) -> None:
    """Promise a body, send half of it, close."""
    body = json.dumps(completion(json.dumps(label_for(call)))).encode()
    await wire.send(wire.head(200, len(body)) + body[: len(body) // 2])
    wire.close()


def slow_body(gap: float) -> Behaviour:
    """Send a good answer a byte at a time, so that no single read takes long."""

    async def behave(call: Call, wire: Wire) -> None:
        body = json.dumps(completion(json.dumps(label_for(call)))).encode()
        await wire.send(wire.head(200, len(body)))
        for byte in body:
            await wire.send(bytes([byte]))
            await asyncio.sleep(gap)

    return behave


async def hang(_: Call, __: Wire) -> None:
    """Never answer."""
    await asyncio.Event().wait()


def body(content: bytes) -> Behaviour:
    """A 200 that says it is JSON, with any body."""

    async def behave(_: Call, wire: Wire) -> None:
        await wire.respond(200, content)

    return behave


def _first_support(label: Json) -> Json:
    entry: Json = label["sentence_support_information"][0]
    return entry


BEHAVIOURS: dict[str, Behaviour] = {
    "ok": answers(),
    "latency": late(0.05),
    # statuses
    "400": error(400, "stub_unknown"),
    "400-parameter": error(400, "unsupported_value", param="temperature"),
    "400-context": error(400, "context_length_exceeded", param="messages"),
    "400-filter": error(400, "content_filter"),
    "400-schema": error(400, "invalid_json_schema", param="response_format"),
    "401": error(401, "invalid_api_key"),
    "402": error(402, None),
    "403": error(403, "model_forbidden"),
    "404": error(404, "model_not_found", param="model"),
    "408": error(408),
    "409": error(409),
    "413": error(413),
    "429": error(429, "rate_limit_exceeded"),
    "429-wait": error(429, "rate_limit_exceeded", headers={"retry-after": "7"}),
    "429-wait-long": error(429, "rate_limit_exceeded", headers={"retry-after": "10800"}),
    "429-quota": error(429, "insufficient_quota"),
    "500": error(500, "server_error"),
    "503": page(503),
    "redirect": page(307, {"location": "http://127.0.0.1:9/v1/chat/completions"}),
    # connections
    "html": page(200),
    "bad-json": body(b'{"choices": ['),
    "bad-utf8": body(b'{"model": "\xff"}'),
    "deep-json": body(b"[" * 100_000),
    "json-list": body(b"[]"),
    "json-null": body(b"null"),
    "json-error": body(b'{"error": {"code": 502, "message": "upstream"}}'),
    "reset": reset,
    "close": close,
    "short": short_body,
    "slow": slow_body(0.05),
    "hang": hang,
    # completions
    "truncated": says('{"relevance_expl', finish="length"),
    "refusal": says(None, refusal="I can't help with that."),
    "filtered": says(None, finish="content_filter"),
    "empty": says(""),
    "no-content": says(None),
    "list-content": changes(lambda value: value["choices"][0]["message"].update(content=[])),
    "no-choices": changes(lambda value: value.update(choices=[])),
    "null-choices": changes(lambda value: value.update(choices=None)),
    "no-message": changes(lambda value: value["choices"][0].pop("message")),
    "text-message": changes(lambda value: value["choices"][0].update(message="hello")),
    "text-choice": changes(lambda value: value.update(choices=["hello"])),
    "no-usage": changes(lambda value: value.pop("usage")),
    "text-usage": changes(lambda value: value.update(usage="many")),
    "null-usage": changes(lambda value: value["usage"].update(prompt_tokens=None)),
    "odd-model": changes(lambda value: value.update(model=7, system_fingerprint=[])),
    "odd-finish": changes(lambda value: value["choices"][0].update(finish_reason=None)),
    # labels
    "malformed": says("Sure! Here is the label: {"),
    "fenced": says("```json\n{}\n```"),
    "extra-field": answers(lambda label: label.update(score=1)),
    "lone-surrogate": says('{"relevance_explanation": "\\ud800"}'),
    "unknown-key": answers(lambda label: label["all_relevant_sentence_keys"].append("9z")),
    "special-key": answers(lambda label: label["all_utilized_sentence_keys"].append("general")),
    "missing-sentence": answers(lambda label: label["sentence_support_information"].pop()),
    "twice-sentence": answers(
        lambda label: label["sentence_support_information"].append(_first_support(label))
    ),
    "empty-support": answers(
        lambda label: _first_support(label).update(supporting_sentence_keys=[])
    ),
}
"""Every behaviour that has a name."""


# The server


@dataclass(frozen=True)
class Route:
    """One address of the server."""

    refusal: Callable[[Call], Behaviour | None]
    """What is refused before anything else happens."""
    answer: Behaviour
    """What it does when no script says otherwise."""


def _refuse_completion(call: Call) -> Behaviour | None:
    if not call.body.get("model") or not call.messages:
        return error(400, "missing_required_parameter", param="messages")
    problems = format_problems(call.body.get("response_format", {}))
    if problems:
        return error(400, "invalid_json_schema", "; ".join(problems), param="response_format")
    return None


ROUTES: dict[tuple[str, str], Route] = {
    ("POST", COMPLETIONS): Route(_refuse_completion, answers()),
}

Script = Iterable[str | Behaviour] | Callable[[Call], str | Behaviour]


class Provider:
    """The server, running on a thread of its own while its context is entered.

    Args:
        script: behaviours for the first calls, by name or as such, after which each route answers
            as usual; or a function that picks one for each call.
        port: 0 for any free one.
    """

    def __init__(self, script: Script = (), *, port: int = 0) -> None:
        self.port = port
        self.calls: list[Call] = []
        """Every request, in the order of arrival."""
        self.in_flight = 0
        """Requests that are being answered now."""
        self._script = script if callable(script) else _in_turn(script)
        self._loop = asyncio.new_event_loop()
        self._listening = threading.Event()
        self._connections: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._run, name="provider", daemon=True)

    @property
    def url(self) -> str:
        """The base URL to give to a client."""
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        self._listening.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def _run(self) -> None:
        self._loop.run_until_complete(self._listen())
        self._listening.set()
        self._loop.run_forever()

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _stop(self) -> None:
        self._server.close()
        for connection in list(self._connections):
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        wire = Wire(reader, writer)
        try:
            while wire.open and (call := await self._read(reader)):
                self.calls.append(call)
                await self._answer(call, wire)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the peer has gone, or the server stops
        finally:
            self._connections.discard(task)
            with contextlib.suppress(ConnectionError):
                writer.close()

    async def _read(self, reader: asyncio.StreamReader) -> Call | None:
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").strip().split("\r\n")
        method, path, _ = first.split(" ")
        pairs = (line.split(":", 1) for line in lines)
        headers = {name.strip().lower(): value.strip() for name, value in pairs}
        raw = await reader.readexactly(int(headers.get("content-length", "0")))
        try:
            body = json.loads(raw or b"{}")
        except ValueError:
            body = {}
        return Call(len(self.calls) + 1, method, path, headers, raw, body)

    async def _answer(self, call: Call, wire: Wire) -> None:
        """Answer one call; a peer that leaves meanwhile ends it, as it does with a hanging one."""
        behave = asyncio.ensure_future(self._behaviour(call)(call, wire))
        gone = asyncio.ensure_future(self._peer_gone(wire))
        self.in_flight += 1
        try:
            await asyncio.wait({behave, gone}, return_when=asyncio.FIRST_COMPLETED)
            if behave.done():
                behave.result()
        finally:
            self.in_flight -= 1
            for task in (behave, gone):
                task.cancel()
            await asyncio.gather(behave, gone, return_exceptions=True)

    @staticmethod
    async def _peer_gone(wire: Wire) -> None:
        while not wire.reader.at_eof():  # noqa: ASYNC110 - a reader has no event for its end
            await asyncio.sleep(0.02)
        wire.close()

    def _behaviour(self, call: Call) -> Behaviour:
        route = ROUTES.get((call.method, call.path))
        if route is None:
            return error(404, "unknown_url", f"{call.method} {call.path}")
        if not call.headers.get("authorization", "").startswith("Bearer "):
            return error(401, "missing_api_key")
        picked = route.refusal(call) or self._script(call) or route.answer
        return BEHAVIOURS[picked] if isinstance(picked, str) else picked


def _in_turn(script: Iterable[str | Behaviour]) -> Callable[[Call], str | Behaviour | None]:
    rest = iter(script)
    return lambda _: next(rest, None)


def main() -> None:
    """Serve until interrupted; behaviours are arguments, taken in turn."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("script", nargs="*", help=f"from: {' '.join(BEHAVIOURS)}")
    parser.add_argument("--port", type=int, default=0)
    options = parser.parse_args()
    if unknown := sorted(set(options.script) - set(BEHAVIOURS)):
        parser.error(f"unknown behaviours {unknown}")
    with Provider(options.script, port=options.port) as provider:
        sys.stdout.write(f"{provider.url}\n")
        sys.stdout.flush()
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()


if __name__ == "__main__":
    main()
