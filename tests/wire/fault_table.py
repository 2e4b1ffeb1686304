"""The rows of the table of faults: what a server does, and what comes of it.

They state outcomes, requests and waits, and nothing of how these come about: the table judges
whatever carries requests. ``test_faults`` runs it, and compares it with the pages of the docs.
"""

from __future__ import annotations

import datetime as dt
import gzip
import json
import zlib
from collections.abc import Callable, Mapping
from email.utils import format_datetime
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

from wire.behaviors import Behavior, body, changes, error, says
from wire.calls import Call
from wire.connections import Connection, Wire
from wire.damaged import body_of, chunked, event_stream, in_message, packed, sent, stated, whole
from wire.runs import KEY

LIMIT = 440_000
"""Most bytes of a body, while the table runs."""


class Row(NamedTuple):
    """One row of the table: a fault that a single record meets."""

    steps: str | Behavior | tuple[str | Behavior, ...]
    """Behaviors in their order, a text of names or values; the last one repeats."""
    outcome: str = "label"
    """``label``, the reason of the failure, or ``stop`` and the reason that ends the run."""
    requests: int = 1
    says: str = ""
    """Part of the message; of failures, with what ``docs/failures.md`` calls them."""
    waits: tuple[float, ...] = ()
    """Seconds of each pause, at least."""
    judge: Mapping[str, Any] = MappingProxyType({})
    """Settings of the judge."""


def edited(change: Callable[[dict[str, Any]], object]) -> Behavior:
    """A good answer with another completion around it."""

    async def behave(call: Call, wire: Wire) -> None:
        await wire.respond(200, body_of(call, change))

    return behave


def answered(**fields: Any) -> Behavior:
    """A good answer in other fields of the message."""
    return edited(in_message(**fields))


def raw_body(make: Callable[[bytes], bytes]) -> Behavior:
    """A good answer with another body."""
    return sent(lambda wire, content: whole(wire, make(content)))


def responds(content: bytes, status: int = 200, **headers: str) -> Behavior:
    """A complete response with these headers."""

    async def behave(_: Call, wire: Wire) -> None:
        named = {name.replace("_", "-"): text for name, text in headers.items()}
        await wire.respond(status, content, named)

    return behave


async def endless(_: Call, wire: Wire) -> None:
    """A body without end and without a length."""
    assert isinstance(wire, Connection)
    await wire.send(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n")
    while wire.open:
        await wire.send(b" " * 4096)


def called(text: str) -> list[dict[str, Any]]:
    """A call of a tool."""
    return [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": text}}]


def object_of(text: str) -> Any:
    """A text of JSON as the value that it holds."""
    return json.loads(text)


def at_the_cap(value: dict[str, Any]) -> None:
    """The answer is whole, and said to be cut off."""
    value["choices"][0]["finish_reason"] = "length"


def escaped(text: str) -> str:
    """Repeat the API key in escapes within the label."""
    return text.replace("Item", "".join(f"\\u{ord(letter):04x}" for letter in KEY))


def limited(seconds: float, ahead: float) -> Behavior:
    """A 429 with a date, of a server whose clock is ahead."""

    async def behave(call: Call, wire: Wire) -> None:
        now = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=ahead)
        headers = {
            "date": format_datetime(now, usegmt=True),
            "retry-after": format_datetime(now + dt.timedelta(seconds=seconds), usegmt=True),
        }
        await error(429, "rate_limit_exceeded", headers=headers)(call, wire)

    return behave


def waits(text: str, header: str = "retry-after") -> Behavior:
    """A 429 that asks to wait."""
    return error(429, "rate_limit_exceeded", headers={header: text})


def used(**counters: Any) -> Behavior:
    """A good answer with other counters of tokens."""
    return changes(lambda value: value.update(usage=counters))


GOOGLE_BUSY = {
    "error": {
        "code": 429,
        "status": "RESOURCE_EXHAUSTED",
        "message": "You exceeded your current quota",
        "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "3s"}],
    }
}

_RAW = zlib.compressobj(wbits=-15)
_DEFLATED = _RAW.compress(b" " * 2 * LIMIT) + _RAW.flush()
_OVERSIZED: dict[str, Any] = {
    "outcome": "oversized",
    "says": "the server's answer is over a limit of size",
}
_RETRIED: dict[str, Any] = {"outcome": "transport", "requests": 3, "waits": (0, 0)}
_DAMAGED: dict[str, Any] = {
    "outcome": "transport", "requests": 2, "says": "the server's answer is damaged", "waits": (0,),
}  # fmt: skip
_FAILED, _CUT = "the connection failed", "the answer was cut off"
_NO_COMPLETION = "the server answered with something that is not a completion"
_NO_ANSWER = "the model wrote nothing that its provider passes on"
_UNFIT = "the answer does not fit the label's schema"
_BROKEN = "the answer broke the label contract: "
_FILTERED, _TOO_LONG = "the provider's filter blocked the answer", "the record is too long for the"
_LIMITED = "the server is limiting the rate of requests"
_SLOW = {"timeout": 0.3, "max_attempts": 2}
_CAPPED = {"max_output_tokens": 50}

ANSWERS = {
    # Answers in another place
    "arguments as an object": Row(
        answered(content=None, tool_calls=lambda text: called(object_of(text)))
    ),
    "two identical calls": Row(
        answered(content=None, tool_calls=lambda text: called(text) + called(text))
    ),
    "function_call": Row(answered(content=None, function_call=lambda text: {"arguments": text})),
    "content as an object": Row(answered(content=object_of)),
    "one part": Row(answered(content=lambda text: {"type": "text", "text": text})),
    "parts without a type": Row(answered(content=lambda t: [{"text": t[:9]}, {"text": t[9:]}])),
    "texts for parts": Row(answered(content=lambda text: [text[:9], text[9:]])),
    "reasoning_content": Row(answered(content="", reasoning_content=lambda text: text)),
    "reasoning, after thoughts": Row(
        answered(content=None, reasoning=lambda text: f"I see.\n{text}")
    ),
    "an event stream": Row(event_stream()),
    "an event stream with other line ends": Row(event_stream("\r\n")),
    # Paid answers in a damaged body
    "bytes after gzip": Row(packed(lambda body: gzip.compress(body) + b"\0junk")),
    "gzip without its end": Row(packed(lambda body: gzip.compress(body)[:-8])),
    "bytes after the length": Row(sent(lambda wire, body: whole(wire, body) + b"}} more")),
    "a chunk's end after the length": Row(sent(lambda w, body: whole(w, body) + b"\r\n0\r\n\r\n")),
    "a longer length": Row(sent(stated(50), then_close=True)),
    "a longer length, without an end": Row(sent(stated(50)), judge={"timeout": 0.5}),
    **{
        f"{name} that is stated only": Row(sent(partial(whole, content_encoding=name)))
        for name in ("br", "deflate", "utf-8")
    },
    "no last chunk": Row(sent(chunked(b""), then_close=True)),
    "a second value after the first": Row(raw_body(lambda body: body + b'{"error": "x"}')),
    "a byte order mark": Row(raw_body(lambda body: b"\xef\xbb\xbf" + body)),
    "a byte that is not UTF-8": Row(raw_body(lambda body: body.replace(b"Item", b"Item \xff"))),
    "an object around it": Row(raw_body(lambda body: b'{"msg": "success", "data": %s}' % body)),
    "objects around it": Row(raw_body(lambda b: b'{"response": {"body": %s}, "id": "x"}' % b)),
    "a list around it": Row(raw_body(lambda body: b"[%s]" % body)),
    "a text around it": Row(raw_body(lambda body: json.dumps(body.decode()).encode())),
    "a text in an object": Row(
        raw_body(lambda b: json.dumps({"statusCode": 200, "body": b.decode()}).encode())
    ),
    "one choice for a list": Row(edited(lambda v: v.update(choices=v["choices"][0]))),
    "choices by number": Row(edited(lambda v: v.update(choices={"0": v["choices"][0]}))),
    "an error of empty fields": Row(edited(lambda v: v.update(error={"code": 0, "message": ""}))),
    "a whole answer at the cap": Row(edited(at_the_cap)),
    "bytes that are no text, after it": Row(raw_body(lambda body: body + b"\xff\xfe")),
    "half of gzip": Row(packed(lambda body: gzip.compress(body)[:60]), **_DAMAGED),
    "a shorter length": Row(sent(stated(-5)), **_DAMAGED),
    "a wrong checksum": Row(packed(lambda b: gzip.compress(b)[:-8] + b"\1" * 8), **_DAMAGED),
    "a bad chunk": Row(sent(chunked(b"zz\r\n\r\n")), **_DAMAGED),
    "two lengths": Row(
        sent(lambda w, b: whole(w, b).replace(b"\r\n\r\n", b"\r\ncontent-length: 7\r\n\r\n", 1)),
        **_DAMAGED,
    ),
    "cut-off JSON": Row(raw_body(lambda body: body[:-9]), **_DAMAGED),
    # Counters of tokens
    **{
        f"counters {counters}": Row(used(completion_tokens=9, **counters))
        for counters in (
            {"prompt_tokens": 300, "prompt_tokens_details": {"cached_tokens": 3000}},
            {"prompt_tokens": 300, "cache_read_input_tokens": 3000},
            {"prompt_tokens": 300, "cache_creation_input_tokens": 3000},
            {"prompt_tokens": 255},
            {"prompt_tokens": 0, "cache_read_input_tokens": 300},
            {},
        )
    },
    # A secret
    "a key in escapes": Row(answered(content=escaped)),
}  # fmt: skip
"""Good answers, most of them paid for, in an odd form."""

ENDS = {
    # No answer
    "empty": Row("empty", "malformed", 2, "the answer is empty"),
    "empty next to thoughts": Row(
        answered(content="", reasoning_content="Is it 0a?"), "malformed", 2,
        "the answer is empty: the model wrote into reasoning_content only",
    ),
    "blank": Row(says(" \n"), "malformed", 2, "the answer is empty"),
    "no-content": Row("no-content", "malformed", 2, "the answer is empty"),
    "list-content": Row("list-content", "malformed", 2, "the answer is empty"),
    "parts of an odd type": Row(
        answered(content=lambda text: [{"type": [], "text": text}]), "malformed", 2,
        "the answer is empty",
    ),
    **{
        reason: Row(says("", finish=reason), "content_filter", says=_FILTERED)
        for reason in ("SAFETY", "RECITATION", "IMAGE_SAFETY", "LANGUAGE", "PROHIBITED_CONTENT")
    },
    "filtered": Row("filtered", "content_filter", says=_FILTERED),
    "refusal": Row("refusal", "refusal", says="the model refused to answer"),
    "MAX_TOKENS": Row(says("", finish="MAX_TOKENS"), "truncated", says=_CUT),
    "cut off without a cap": Row("truncated", "truncated", says=_CUT),
    "cut off once": Row("truncated ok", requests=2, judge=_CAPPED),
    "cut off at twice the cap": Row("truncated", "truncated", 2, _CUT, judge=_CAPPED),
    "cut off in an endless text": Row(
        says("and so on, " * 100, finish="length"), "truncated", says=_CUT, judge=_CAPPED
    ),
    "cut off around a bad answer": Row(
        "truncated malformed truncated", "truncated", 3, _CUT, judge=_CAPPED
    ),
    "a cap above what the model allows": Row(
        ("truncated", error(400, "invalid_value", param="max_completion_tokens")),
        "parameter", 2, "the model does not accept max_output_tokens", judge=_CAPPED,
    ),
    **{
        f"a cut prompt, {cached} cached": Row(
            used(prompt_tokens=300, prompt_tokens_details={"cached_tokens": cached}), "cut_prompt",
            says="the server has cut the prompt: it reports 300 input tokens of at least",
        )
        for cached in (0, 200)
    },
    # Answers that break the rules are sent back once
    **{
        behavior: Row(behavior, "malformed", 2, _UNFIT)
        for behavior in ("malformed", "fenced", "extra-field", "lone-surrogate", "twice-name")
    },
    **{
        behavior: Row(behavior, "contract", 2, f"{_BROKEN}{kind}")
        for behavior, kind in {
            "unknown-key": "unknown_key",
            "special-key": "special_not_allowed",
            "missing-sentence": "missing_response_sentence",
            "twice-sentence": "duplicate_response_sentence",
            "empty-support": "supported_without_support",
        }.items()
    },
    "half a character": Row(says('{"relevance_explanation": "\ud800"}'), "malformed", 2, _UNFIT),
    "unreadable once": Row("malformed ok", requests=2),
    "broken once": Row("unknown-key ok", requests=2),
    "unreadable, then broken": Row("malformed unknown-key", "contract", 2, _BROKEN),
    "broken, then unreadable": Row("unknown-key malformed", "malformed", 2, _UNFIT),
    "broken, without re-asks": Row("unknown-key", "contract", 1, _BROKEN, judge={"reasks": 0}),
    "failures around a broken answer": Row(
        "500 unknown-key reset ok", requests=4, waits=(0, 0)
    ),
    # Limits
    "a gzip bomb": Row(
        responds(gzip.compress(b" " * 2 * LIMIT), content_encoding="gzip"), **_OVERSIZED
    ),
    "a deflated bomb": Row(responds(_DEFLATED, content_encoding="Deflate"), **_OVERSIZED),
    "a long body": Row(responds(b" " * 2 * LIMIT), **_OVERSIZED),
    "an endless body": Row(endless, **_OVERSIZED),
    "a long error": Row(
        responds(b" " * 2 * LIMIT, 403), "permission", 1, "the API key may not use this model"
    ),
    "an error in another encoding": Row(
        responds(b"\x1b", 401, content_encoding="br"), "stop authentication", 1,
        "the API key was not accepted",
    ),
    "very many parts": Row(responds(b"[" + b"{}," * 120_000 + b"{}]"), **_OVERSIZED),
    **{
        f"encoding {name}": Row(responds(b"{}", content_encoding=name), **_DAMAGED)
        for name in ("br", "zstd", "gzip, gzip", "unknown")
    },
    "a long header": Row(responds(b"{}", x="y" * 9000), **_DAMAGED),
    "many headers": Row(responds(b"{}", 200, **{f"x{n}": "y" for n in range(200)}), **_DAMAGED),
}  # fmt: skip
"""Answers of status 200 that are none."""

STATUSES = {
    # What surely concerns every record
    "401": Row("401", "stop authentication", says="the API key was not accepted"),
    "402": Row("402", "stop quota", says="the account has no credit left"),
    "429-quota": Row("429-quota", "stop quota", says="the account has no credit left"),
    "404": Row("404", "stop not_found", says="no such model"),
    "400-parameter": Row(
        "400-parameter", "stop parameter", says="the model does not accept temperature"
    ),
    "400-schema": Row(
        "400-schema", "stop parameter",
        says="the server does not accept the response schema in this output mode",
    ),
    "407": Row(error(407), "stop authentication", says="the proxy asks for a user and a password"),
    # What may be the fault of one record
    "400": Row("400", "bad_request", says="the server did not accept the request"),
    "418": Row(error(418), "bad_request", says="the server did not accept the request"),
    "422, unknown words": Row(
        error(422, message="Extra inputs are not permitted"), "bad_request",
        says="the server did not accept the request",
    ),
    "400-context": Row("400-context", "context_length", says=f"{_TOO_LONG} model"),
    "413": Row("413", "context_length", says=f"{_TOO_LONG} model"),
    "422, too long": Row(
        error(422, message="This model's maximum context length is 8192"), "context_length",
        says=f"{_TOO_LONG} model",
    ),
    "429, too large": Row(
        error(429, message="Request too large for m: Limit 30000, Requested 40000"),
        "context_length", says="the record alone exceeds the limit of tokens per minute",
    ),
    "400-filter": Row(
        "400-filter", "content_filter", says="the provider's filter blocked the request"
    ),
    "403, filter": Row(
        error(403, "content_filter"), "content_filter",
        says="the provider's filter blocked the request",
    ),
    "400, no balance": Row(
        error(400, message="Your credit balance is too low"), "quota",
        says="the account has no credit left",
    ),
    "403": Row("403", "permission", says="the API key may not use this model"),
    "403, wrong key": Row(
        error(403, message="API key expired"), "authentication",
        says="the API key was not accepted",
    ),
    "404, another": Row(
        error(404, "not_found"), "not_found", says="no such model or address"
    ),
    "405": Row(error(405), "not_found", says="no such model or address"),
    "400, no model": Row(
        error(400, message="The model m does not exist"), "not_found", says="no such model"
    ),
    "400, a schema in words": Row(
        error(400, message="json_schema is not supported"), "parameter",
        says="the server does not accept the response schema in this output mode",
    ),
    "500, a grammar": Row(
        error(500, message="failed to parse grammar"), "parameter",
        says="the server does not accept the response schema in this output mode",
    ),
    "422, a parameter": Row(
        error(422, "unsupported_parameter"), "parameter",
        says="the model does not accept a parameter of the request",
    ),
    "400, a field": Row(
        error(400, message='Unknown name "top_k": Cannot find field.'), "parameter",
        says="the server does not know a field of the request",
    ),
    "400, the cap's field": Row(
        error(400, message="Unknown parameter: max_completion_tokens"), "parameter",
        says="the server does not know max_completion_tokens",
    ),
    "redirect": Row(
        "redirect", "redirect", says="the server redirects elsewhere, and documents are not sent on"
    ),
    # What may pass
    **{status: Row(status, **_RETRIED, says="the server failed") for status in ("408", "409", "500",
                                                                             "503")},
    "425": Row(error(425), **_RETRIED, says="the server failed"),
    "400, no JSON": Row(
        error(400, "json_validate_failed"), "malformed", 3, "the model wrote no valid JSON", (0, 0)
    ),
    "an error in a 200": Row("json-error", **_RETRIED, says="the server failed"),
    "seven faults": Row(
        "500 503 reset html no-choices 429 408 ok", requests=8, waits=(0,) * 7,
        judge={"max_attempts": 9},
    ),
    # Waits
    "a limit without a wait": Row("429", "rate_limit", 3, _LIMITED, (0, 0)),
    "words of a quota, a limit": Row(
        error(429, message="You exceeded your current quota, please check"),
        "rate_limit", 3, _LIMITED, (0, 0),
    ),
    "seconds": Row("429-wait", "rate_limit", 3, _LIMITED, (7, 7)),
    "milliseconds": Row("429-wait-ms", "rate_limit", 3, _LIMITED, (0.12, 0.12)),
    "one and two seconds": Row((waits("1"), waits("2"), "ok"), requests=3, waits=(1, 2)),
    "an unreadable wait": Row((waits("soon"), "ok"), requests=2, waits=(0,)),
    "Google's delay": Row(
        body(json.dumps(GOOGLE_BUSY).encode(), 429), "rate_limit", 3, _LIMITED, (3, 3)
    ),
    "a date, an hour ahead": Row(limited(7, 3600), "rate_limit", 3, _LIMITED, (7, 7)),
    "a date, an hour behind": Row(limited(7, -3600), "rate_limit", 3, _LIMITED, (7, 7)),
}  # fmt: skip
"""Errors by status."""

CONNECTIONS = {
    **{kind: Row(kind, **_RETRIED, says=_FAILED) for kind in ("reset", "close", "short")},
    **{
        kind: Row(kind, **_RETRIED, says=_NO_COMPLETION)
        for kind in ("html", "json-list", "json-null", "deep-json")
    },
    **{kind: Row(kind, **_DAMAGED) for kind in ("bad-json", "bad-utf8")},
    **{
        kind: Row(kind, "malformed", 2, _NO_ANSWER, (0,))
        for kind in ("no-choices", "null-choices", "no-message", "text-message", "text-choice")
    },
    "silence": Row("hang", "timeout", 2, "no complete answer within 0.3 s", (0,), _SLOW),
    "a byte at a time": Row("slow", "timeout", 2, "no complete answer within 0.3 s", (0,), _SLOW),
}
"""Faults below HTTP, and bodies that are no completion."""

TABLE = {**ANSWERS, **ENDS, **STATUSES, **CONNECTIONS}


class End(NamedTuple):
    """What comes of a fault that all rows meet, or a share of them, or the first requests."""

    outcome: str
    """``stop`` and the reason that ends the run, or the reason of the failed rows, or ``label``."""
    most: int
    """Requests for rows until then, at most."""
    judge: Mapping[str, Any] = MappingProxyType({})
    """Settings of the judge."""


FEW = 8
"""Rows that are asked before the first label."""
_AGAIN = 6 * FEW
ALL_ROWS = {
    "`response_format` refused, 400": End("stop parameter", FEW),
    "wrong key, 401": End("stop authentication", 0),
    "wrong key, 401 at completions only": End("stop authentication", FEW),
    "wrong key at Gemini, 400": End("stop authentication", 0),
    "unknown field at Mistral, 422": End("stop bad_request", FEW),
    "no credit, 402 in a 200": End("stop quota", FEW),
    "no credit, 402": End("stop quota", FEW),
    "forbidden, 403": End("stop permission", FEW),
    "unknown model, 404": End("stop not_found", FEW),
    "wrong path, 404": End("stop not_found", FEW),
    "`insufficient_quota`, 429": End("stop quota", FEW),
    "redirect, 307": End("stop redirect", FEW),
    "`json_validate_failed`, 400, 5 % of rows": End("malformed", 6),
    "time-out below the latency": End("stop timeout", FEW, {"timeout": 0.4}),
    '`finish_reason: "error"` in a 200': End("stop transport", _AGAIN),
    "HTML page, 200": End("stop transport", _AGAIN),
    "no choices": End("stop malformed", 2 * FEW),
    "content filter on all rows": End("stop content_filter", 100 + FEW),
    "too long, 400, 10 % of rows": End("context_length", 1),
    "prompt cut": End("stop cut_prompt", FEW),
    "oversized answers": End("stop oversized", FEW),
    "gzip bomb": End("stop oversized", FEW),
    "cut-off JSON": End("stop truncated", FEW),
    "broken contract": End("stop contract", 2 * (100 + FEW)),
    "broken contract, 10 % of rows": End("contract", 2),
    "connection refused": End("stop transport", 0),
    "reset in mid-answer": End("stop transport", _AGAIN),
    "failing, 500": End("stop transport", _AGAIN),
    "overloaded, 529, ends": End("label", 20),
}
"""By the names of ``docs/measured/reliability.md``; where some rows meet it, requests for each."""
