"""Rows of the table of faults in the words and headers of servers in service, 2025 and 2026."""

from __future__ import annotations

import datetime as dt
import gzip
import json
from typing import Any

from wire.behaviors import Behavior, changes, says
from wire.calls import Call
from wire.connections import Wire
from wire.damaged import label_text, sent, whole
from wire.dialects import Fault, flat, google, minimax, nested
from wire.fault_table import Row, answered, called, edited, responds

_AGAIN: dict[str, Any] = {"outcome": "transport", "requests": 3, "waits": (0, 0)}
_FAILED, _NO_ANSWER = "the server failed", "the server sent a completion without an answer"
_LIMITED: dict[str, Any] = {
    "outcome": "rate_limit", "requests": 3, "waits": (0, 0),
    "says": "the server is limiting the rate of requests",
}  # fmt: skip
_CUT_OFF: dict[str, Any] = {
    "outcome": "transport", "requests": 2, "waits": (0,), "says": "the server's answer is damaged",
}  # fmt: skip
_EMPTY, _FILTERED = "the account has no credit left", "the provider's filter blocked the request"
_LONG, _KEY = "the record is too long for the model", "the API key was not accepted"


def fails(fault: Fault, outcome: str, text: str) -> Row:
    """An error that is not asked again."""
    return Row(fault.behave(), outcome, 1, text)


def fails_for_a_while(fault: Fault, text: str = _FAILED) -> Row:
    """An error that may pass."""
    return Row(fault.behave(), says=text, **_AGAIN)


def limits(seconds: float, **headers: str) -> Row:
    """One 429 with headers, underscores for hyphens, and the pause after it.

    ``SECONDS``, ``MILLISECONDS`` and ``DATE`` stand for the moment half a second after the pause.
    """

    async def behave(_: Call, wire: Wire) -> None:
        named = {name.replace("_", "-"): dated(text, seconds) for name, text in headers.items()}
        await wire.json(429, {"error": {"message": "Slow down"}}, named)

    return Row((behave, "ok"), requests=2, waits=(seconds,))


def dated(text: str, seconds: float) -> str:
    """Put a moment into a text."""
    moment = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=seconds + 0.5)
    since = moment.timestamp()
    text = text.replace("MILLISECONDS", f"{1000 * since:.0f}")
    return text.replace("SECONDS", f"{since:.3f}").replace("DATE", moment.isoformat())


async def routed(_: Call, wire: Wire) -> None:
    """A 429 of OpenRouter, which passes a provider's headers on."""
    passed = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": dated("MILLISECONDS", 20)}
    stated = {"code": 429, "message": "free-models", "metadata": {"headers": passed}}
    await wire.json(429, {"error": stated})


def used_up(reset: str, prefix: str = "x_ratelimit") -> dict[str, str]:
    """Headers of a limit that is used up."""
    return {f"{prefix}_limit": "9", f"{prefix}_remaining": "0", f"{prefix}_reset": reset}


def streamed(*lines: str) -> Behavior:
    """Events, each with a piece of the answer in place of ``HEAD`` and ``REST``."""

    async def behave(call: Call, wire: Wire) -> None:
        text = label_text(call)
        head, rest = json.dumps(text[:40])[1:-1], json.dumps(text[40:])[1:-1]
        events = "".join(f"{line}\n\n" for line in lines)
        content = events.replace("HEAD", head).replace("REST", rest).encode()
        await wire.respond(200, content, {"content-type": "text/event-stream"})

    return behave


def _piece(text: str) -> str:
    return f'data: {{"choices": [{{"index": 0, "delta": {{"content": "{text}"}}}}]}}'


def ended(reason: str) -> Behavior:
    """Half an answer that ends so."""
    return says('{"relevance_expl', finish=reason)


_BURST = "the record alone exceeds the limit of tokens per minute"
_TPM = "Request too large for model `m` on tokens per minute (TPM): Limit 6000, Requested 7000"
_FIREWALL = b"<!DOCTYPE html>\n<html><title>Attention Required! | Cloudflare</title></html>"
_HARMONY = "<|channel|>analysis<|message|>Is {0a} it?<|end|><|channel|>final<|message|>"
_REDACTED = {"type": "redacted_thinking", "data": "x"}

WAITS = {
    "RateLimit, IETF": limits(30, ratelimit='"default";r=0;t=30'),
    "RateLimit of two, one of them left": limits(0, ratelimit='"a";r=4;t=30, "b";r=9;t=50'),
    "ratelimit-reset, IETF of 2021": limits(30, **used_up("30", "ratelimit")),
    "x-ratelimit-reset, Together": limits(20, **used_up("20")),
    "x-ratelimit-reset, since 1970": limits(20, **used_up("SECONDS")),
    "x-ratelimit-reset, a date": limits(20, **used_up("DATE")),
    "a reset of a limit that is not used up": limits(
        0, x_ratelimit_remaining="5", x_ratelimit_reset="30"
    ),
    "x-ratelimit-reset, passed on by OpenRouter": Row((routed, "ok"), requests=2, waits=(20,)),
    "retry-after with a unit": limits(9, retry_after="9s"),
    "retry-after since 1970": limits(20, retry_after="SECONDS"),
    "retry-after as an ISO date": limits(20, retry_after="DATE"),
    "x-ms-retry-after-ms": limits(9, x_ms_retry_after_ms="9000"),
}

ACCOUNTS = {
    "Zhipu, 1113": fails(nested(429, "余额不足或无可用资源包,请充值。", "1113"), "quota", _EMPTY),
    "Z.ai, 1113": fails(
        nested(429, "Insufficient balance or no resource package.", "1113"), "quota", _EMPTY
    ),
    "SiliconFlow, 30001": fails(
        Fault(403, {"code": 30001, "message": "your account balance is insufficient"}),
        "quota", _EMPTY,
    ),
    "OpenRouter, limit of a key": fails(
        nested(403, "Key limit exceeded (total limit).", 403), "quota", _EMPTY
    ),
    "xAI, a new team": fails(
        Fault(403, {"error": "Your newly created team doesn't have any credits yet."}),
        "quota", _EMPTY,
    ),
    "xAI, a used budget": fails(
        Fault(429, {"error": "Your team has either used all available credits or …"}),
        "quota", _EMPTY,
    ),
    "Fireworks, suspended": fails(
        nested(412, "Account is suspended, possibly due to reaching the monthly spending limit"),
        "quota", _EMPTY,
    ),
    "LiteLLM, budget": fails(
        nested(400, "Budget has been exceeded!", "budget_exceeded"), "stop quota", _EMPTY
    ),
    "Perplexity, 401": fails(
        nested(401, "You exceeded your quota", "insufficient_quota"), "stop quota", _EMPTY
    ),
    "DashScope, free tier": fails(
        nested(403, "The free tier is exhausted", "AllocationQuota.FreeTierOnly"),
        "stop quota", _EMPTY,
    ),
    "API Management, 403": Row(
        Fault(403, {"statusCode": 403, "message": "Out of call volume quota."}).behave(), **_LIMITED
    ),
    "GitHub, 403": Row(
        Fault(403, {"message": "You have exceeded a secondary rate limit."}).behave(), **_LIMITED
    ),
    "Gemini, leaked key": fails(
        google(403, "Your API key was reported as leaked."), "authentication", _KEY
    ),
    "Gemini, no key": fails(
        google(403, "Method doesn't allow unregistered callers"), "authentication", _KEY
    ),
    "Cloudflare, wrong key": fails(
        Fault(403, {"success": False, "errors": [{"message": "Authentication error"}]}),
        "authentication", _KEY,
    ),
    "Databricks, wrong key": fails(
        Fault(403, {"error_code": 403, "message": "Invalid access token."}), "authentication", _KEY
    ),
}  # fmt: skip

RECORDS = {
    "DeepSeek, filter": fails(nested(400, "Content Exists Risk"), "content_filter", _FILTERED),
    "Zhipu, 1301": fails(
        nested(400, "内容可能包含不安全或敏感内容", "1301"), "content_filter", _FILTERED
    ),
    "MiniMax, 1026": fails(minimax(1026, "input new_sensitive"), "content_filter", _FILTERED),
    "MiniMax, 1039": Row(minimax(1039, "token limit").behave(), **_LIMITED),
    "OpenRouter, moderation": fails(
        nested(403, "Input was flagged", 403), "content_filter", _FILTERED
    ),
    "a reason of the end with details": Row(
        says("", finish="content_filter: PROHIBITED_CONTENT"), "content_filter", 1,
        "the provider's filter blocked the answer",
    ),
    "a page of a firewall": Row(
        responds(_FIREWALL, 403, content_type="text/html"), "permission", 1,
        "a firewall before the server rejected the request",
    ),
    "Groq, tokens per minute": fails(
        nested(413, _TPM, "rate_limit_exceeded"), "context_length", _BURST
    ),
    "Moonshot, too long": fails(
        nested(400, "Your request exceeded model token limit: 8192"), "context_length", _LONG
    ),
    "Zhipu, too long": fails(nested(400, "Prompt 超长", "1261"), "context_length", _LONG),
    "410": fails(
        Fault(410, {"error": "The model is deprecated"}), "not_found", "no such model or address"
    ),
}  # fmt: skip

PASSING = {
    "text-generation-inference, 424": fails_for_a_while(
        Fault(424, {"error": "Request failed during generation", "error_type": "generation"})
    ),
    "499": fails_for_a_while(google(499, "The operation was cancelled.")),
    "a flat error in a 200": Row(flat(200, "too many").behave(), says=_FAILED, **_AGAIN),
    "a code in a 200": fails(
        Fault(200, {"code": 401, "msg": "token invalid", "success": False}),
        "stop authentication", _KEY,
    ),
    "a status in a 200": Row(Fault(200, {"error": {"status": 429}}).behave(), **_LIMITED),
    "a limit in a 200, without a status": Row(
        nested(200, "Too many", "rate_limit_exceeded").behave(), **_LIMITED
    ),
    "a detail in a 200": fails_for_a_while(Fault(200, {"detail": "model overloaded"})),
    "an error event": Row(
        streamed(_piece("HEAD"), 'event: error\ndata: {"message": "busy", "code": 503}'),
        says=_FAILED, **_AGAIN,
    ),
    **{
        f"ended by {reason}": Row(ended(reason), says=_NO_ANSWER, **_AGAIN)
        for reason in ("abort", "insufficient_system_resource", "network_error")
    },
    "a whole answer, ended by abort": Row(
        edited(lambda value: value["choices"][0].update(finish_reason="abort"))
    ),
    "ended by the context": Row(
        ended("model_context_window_exceeded"), "truncated", 1, "the answer was cut off"
    ),
    "events that break off": Row(streamed(_piece("HEAD")), **_CUT_OFF),
    "events that break off in one": Row(
        streamed(": waiting", _piece("HEAD"), 'data: {"choi'), **_CUT_OFF
    ),
    "whole events without an end": Row(streamed(_piece("HEAD"), _piece("REST"))),
}  # fmt: skip

FORMS = {
    "thoughts of gpt-oss": Row(answered(content=lambda text: f"{_HARMONY}{text}<|return|>")),
    **{
        f"thoughts, {first}": Row(
            answered(content=lambda t, a=first, z=last: f"{a}Is {{0a}} it?{z}{t}")
        )
        for first, last in (
            ("<thought>", "</thought>"), ("<seed:think>", "</seed:think>"), ("◁think▷", "◁/think▷")
        )
    },
    "thoughts that are hidden": Row(
        answered(content=lambda text: [_REDACTED, {"type": "text", "text": text}])
    ),
    "arguments in a text of a text": Row(
        answered(content=None, tool_calls=lambda text: called(json.dumps(text)))
    ),
    "a text of a text": Row(answered(content=json.dumps)),
    "an empty call next to the answer": Row(answered(tool_calls=called("{}"))),
    "x-gzip": Row(sent(lambda w, body: whole(w, gzip.compress(body), content_encoding="x-gzip"))),
    "gzip that is stated only": Row(sent(lambda w, body: whole(w, body, content_encoding="gzip"))),
    "gzip that is not stated": Row(sent(lambda w, body: whole(w, gzip.compress(body)))),
    "early hints": Row(sent(
        lambda w, body: b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n" + whole(w, body)
    )),
    "usage without details": Row(changes(lambda v: v["usage"].update(prompt_tokens_details=None))),
}  # fmt: skip

SERVER_ROWS = {**WAITS, **ACCOUNTS, **RECORDS, **PASSING, **FORMS}
