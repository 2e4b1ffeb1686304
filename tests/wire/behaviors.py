"""What the provider does with a call: well, badly, or not at all.

A behavior is a coroutine that gets the call and where its answer goes; named ones stand in
BEHAVIOURS.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Awaitable, Callable, Mapping
from email.utils import format_datetime
from types import MappingProxyType
from typing import Any

from wire.accounts import FIXED_USAGE
from wire.calls import Call, Json, label_for, written
from wire.connections import Wire
from wire.refusals import error_body

MODEL = "stub-1-2026-11-01"
"""The model that answers state, whichever was asked."""
FINGERPRINT = "fp_stub"
DRIFTED = "stub-2-2026-11-20"
"""The model that an answer states where the name has come to mean another model."""

Behavior = Callable[[Call, Wire], Awaitable[None]]
Answer = Callable[[Call], Json]
"""Computes what the model writes; the default is :func:`label_for`."""


# Good answers


def completion(
    content: str | None,
    *,
    finish: str = "stop",
    refusal: str | None = None,
    usage: Json = FIXED_USAGE,
) -> Json:
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
        "usage": {**usage},
    }


def _completed(call: Call, wire: Wire, content: str | None, **facts: Any) -> Json:
    """The completion object of a call, with its usage."""
    value = completion(content, usage=wire.accounts.usage(call, content), **facts)
    if call.mode == "tools" and content is not None:
        name = call.body["tools"][0]["function"]["name"]
        called = {"id": "c1", "type": "function", "function": {"name": name, "arguments": content}}
        value["choices"][0]["message"].update(content=None, tool_calls=[called])
    return value


def says_of(
    write: Callable[[Call], str | None],
    change: Callable[[Json], object] = lambda _: None,
    *,
    gap: float = 0,
    **facts: Any,
) -> Behavior:
    """The model writes what is made of the call, and ``change`` is done to its completion.

    With a gap, the answer is sent a byte at a time.
    """

    async def behave(call: Call, wire: Wire) -> None:
        value = _completed(call, wire, write(call), **facts)
        change(value)
        await wire.complete(call, value, gap)

    return behave


def says(content: str | None, **facts: Any) -> Behavior:
    """The model writes this."""
    return says_of(lambda _: content, **facts)


def answers(
    change: Callable[[Json], object] = lambda _: None, *, label: Answer = label_for
) -> Behavior:
    """The model writes a label, after ``change`` was done to it."""

    def write(call: Call) -> str:
        value = label(call)
        change(value)
        return json.dumps(written(call, value))

    return says_of(write)


def good_label(call: Call) -> str:
    """What a good model writes."""
    return json.dumps(written(call, label_for(call)))


def changes(change: Callable[[Json], object]) -> Behavior:
    """The server sends a good completion object, after ``change`` was done to it."""
    return says_of(good_label, change)


def sets(**fields: object) -> Behavior:
    """The server sends a good completion object with other fields."""
    return changes(lambda value: value.update(fields))


def sets_choice(**fields: object) -> Behavior:
    """The same with other fields of its choice."""
    return changes(lambda value: value["choices"][0].update(fields))


def late(seconds: float, then: Behavior | None = None) -> Behavior:
    """Another behavior after a pause."""

    async def behave(call: Call, wire: Wire) -> None:
        await wire.pause(seconds)
        await (then or answers())(call, wire)

    return behave


def twice_named(call: Call) -> str:
    """A label whose first member stands in it twice, the second time with another value."""
    label = label_for(call)
    name = next(iter(label))
    return f"{json.dumps(label)[:-1]}, {json.dumps(name)}: {json.dumps('said again')}}}"


# Errors by status


def error(
    status: int,
    code: str | None = None,
    message: str = "stub error",
    *,
    param: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Behavior:
    """An error response in the provider's form."""
    body = error_body(code, message, param=param)

    async def behave(_: Call, wire: Wire) -> None:
        await wire.json(status, body, headers)

    return behave


def limited(seconds: float, ahead: float = 0) -> Behavior:
    """A 429 whose Retry-After is a date, of a server whose clock may be ahead."""

    async def behave(call: Call, wire: Wire) -> None:
        now = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=ahead)
        until = now + dt.timedelta(seconds=seconds)
        dates = {"date": now, "retry-after": until}
        headers = {name: format_datetime(date, usegmt=True) for name, date in dates.items()}
        await error(429, "rate_limit_exceeded", headers=headers)(call, wire)

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
    await wire.half(200, json.dumps(completion(json.dumps(label_for(call)))).encode())


async def hang(_: Call, wire: Wire) -> None:
    """Never answer."""
    await wire.gone()


def body(content: bytes, status: int = 200, **headers: str) -> Behavior:
    """A response with any body, JSON by its headers unless they say otherwise."""
    named = {name.replace("_", "-"): text for name, text in headers.items()}

    async def behave(_: Call, wire: Wire) -> None:
        await wire.respond(status, content, named)

    return behave


def page(status: int, headers: Mapping[str, str] = MappingProxyType({})) -> Behavior:
    """An HTML page, as gateways and login portals send it."""
    return body(b"<html>not what you asked for</html>", status, content_type="text/html", **headers)


def _first_support(label: Json) -> Json:
    entry: Json = label["sentence_support_information"][0]
    return entry


BEHAVIOURS: dict[str, Behavior] = {
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
    "429-wait-ms": error(429, "rate_limit_exceeded", headers={"retry-after-ms": "120"}),
    "429-date": limited(7),
    "429-wait-long": error(429, "rate_limit_exceeded", headers={"retry-after": "10800"}),
    "429-quota": error(429, "insufficient_quota"),
    "500": error(500, "server_error"),
    "503": page(503),
    "redirect": page(307, {"location": "http://127.0.0.1:9/v1/chat/completions"}),
    # connections
    "html": page(200),
    "bad-json": body(b'{"choices": ['),
    "bad-utf8": body(b'{"model": \xff}'),
    "deep-json": body(b"[" * 100_000),
    "json-list": body(b"[]"),
    "json-null": body(b"null"),
    "json-error": body(b'{"error": {"code": 502, "message": "upstream"}}'),
    "reset": reset,
    "close": close,
    "short": short_body,
    "slow": says_of(good_label, gap=0.05),
    "slow-loris": says_of(good_label, gap=1),
    "hang": hang,
    # completions
    "truncated": says('{"relevance_expl', finish="length"),
    "refusal": says(None, refusal="I can't help with that."),
    "filtered": says(None, finish="content_filter"),
    "empty": says(""),
    "no-content": says(None),
    "list-content": sets_choice(message={"role": "assistant", "content": []}),
    "no-choices": sets(choices=[]),
    "null-choices": sets(choices=None),
    "no-message": changes(lambda value: value["choices"][0].pop("message")),
    "text-message": sets_choice(message="hello"),
    "text-choice": sets(choices=["hello"]),
    "no-usage": changes(lambda value: value.pop("usage")),
    "text-usage": sets(usage="many"),
    "null-usage": changes(lambda value: value["usage"].update(prompt_tokens=None)),
    "drift": sets(model=DRIFTED),
    "odd-model": sets(model=7, system_fingerprint=[]),
    "odd-finish": sets_choice(finish_reason=None),
    # labels
    "malformed": says("Sure! Here is the label: {"),
    "fenced": says("```json\n{}\n```"),
    "extra-field": answers(lambda label: label.update(score=1)),
    "twice-name": says_of(twice_named),
    "word-verdict": answers(lambda label: label.update(overall_supported="true")),
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
"""Every behavior that has a name."""


def named(behavior: str | Behavior) -> Behavior:
    """A behavior by its name, or itself."""
    return BEHAVIOURS[behavior] if isinstance(behavior, str) else behavior
