"""Answers that arrive damaged, late, twice, or in a form that was not asked for."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from wire.behaviors import Behavior, completion
from wire.calls import Call, Json, label_for
from wire.connections import Connection, Wire

Change = Callable[[Json], object]


def label_text(call: Call) -> str:
    """A good label whose explanation names the record that it is of."""
    return json.dumps(
        label_for(call) | {"relevance_explanation": call.data["DOCUMENTS"][0]["text"]}
    )


def body_of(call: Call, change: Change = lambda _: None) -> bytes:
    """The body of a good answer, after ``change`` was done to its completion."""
    value = completion(label_text(call))
    change(value)
    return json.dumps(value).encode()


def in_message(**fields: Any) -> Change:
    """Set fields of the message; a function gets the label's text."""

    def change(value: Json) -> None:
        message = value["choices"][0]["message"]
        text = message["content"]
        message |= {name: f(text) if callable(f) else f for name, f in fields.items()}

    return change


def sent(raw: Callable[[Wire, bytes], bytes], *, then_close: bool = False) -> Behavior:
    """Send what is made of the body of a good answer, byte for byte."""

    async def behave(call: Call, wire: Wire) -> None:
        assert isinstance(wire, Connection)
        await wire.send(raw(wire, body_of(call)))
        if then_close:
            wire.close()

    return behave


def whole(wire: Wire, body: bytes, **headers: str) -> bytes:
    """A response with its headers."""
    assert isinstance(wire, Connection)
    return wire.head(200, len(body), {n.replace("_", "-"): v for n, v in headers.items()}) + body


def packed(make: Callable[[bytes], bytes]) -> Behavior:
    """A body that is said to be gzip."""
    return sent(lambda wire, body: whole(wire, make(body), content_encoding="gzip"))


def stated(more: int) -> Callable[[Wire, bytes], bytes]:
    """A response whose stated length is that many bytes more than its body has."""

    def make(wire: Wire, body: bytes) -> bytes:
        assert isinstance(wire, Connection)
        return wire.head(200, len(body) + more) + body

    return make


def chunked(end: bytes) -> Callable[[Wire, bytes], bytes]:
    """A response in one chunk, and what follows it."""
    head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
    return lambda _, body: head + b"%x\r\n" % len(body) + body + b"\r\n" + end


def event_stream(line_end: str = "\n") -> Behavior:
    """The answer in events, as if it had been asked for so."""

    async def behave(call: Call, wire: Wire) -> None:
        text = label_text(call)
        parts: list[Json] = [{"role": "assistant"}, {"content": text[:40]}, {"content": text[40:]}]
        chunks = [{"choices": [{"index": 0, "delta": part}]} for part in parts]
        chunks += [{"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}]
        chunks += [{"choices": [], "usage": completion("")["usage"]}]
        lines = [": waiting", *(f"data: {json.dumps(chunk)}" for chunk in chunks), "data: [DONE]"]
        content = "".join(f"{line}{line_end}{line_end}" for line in lines).encode()
        await wire.respond(200, content, {"content-type": "text/event-stream"})

    return behave


# On the connection after an answer


def _later(wire: Connection, seconds: float, data: bytes) -> None:
    def send() -> None:
        if wire.open:
            wire.transport.write(data)

    asyncio.get_running_loop().call_later(seconds, send)


def behind(status: int, seconds: float, error: object = "upstream timed out") -> Behavior:
    """An error, and after a while the answer that it gave up."""

    async def behave(call: Call, wire: Wire) -> None:
        assert isinstance(wire, Connection)
        await wire.json(status, {"error": {"message": error}})
        _later(wire, seconds, whole(wire, body_of(call)))

    return behave


def followed(data: bytes = b"", seconds: float = 0.01) -> Behavior:
    """A good answer, and after a while stray bytes, by default the same once more."""

    async def behave(call: Call, wire: Wire) -> None:
        assert isinstance(wire, Connection)
        answer = whole(wire, body_of(call))
        await wire.send(answer)
        _later(wire, seconds, data or answer)

    return behave
