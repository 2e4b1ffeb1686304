"""The rows of the table of faults: what a server does, and what comes of it.

They state outcomes, requests and waits, and nothing of how these come about: the table judges
whatever carries requests. ``test_faults`` runs it, and compares it with the pages of the docs.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

from wire.behaviors import Behavior, body, error, limited, says, sets
from wire.calls import Call
from wire.connections import Connection, Wire
from wire.damaged import body_of, chunked, event_stream, in_message, packed, sent, stated, whole
from wire.runs import KEY

LIMIT = 440_000
"""Most bytes of a body, while the table runs."""


Steps = str | Behavior | tuple[str | Behavior, ...]
"""Behaviors in their order, a text of names or values; the last one repeats."""


class Row(NamedTuple):
    """One row of the table: a fault that a single record meets."""

    steps: Steps
    outcome: str = "label"
    """``label``, the reason of the failure, or ``stop`` and the reason that ends the run."""
    requests: int = 1
    says: str = ""
    """Part of the message; of failures, with what ``docs/failures.md`` calls them."""
    waits: tuple[float, ...] = ()
    """Seconds of each pause, at least."""
    judge: Mapping[str, Any] = MappingProxyType({})
    """Settings of the judge."""


def ending(
    outcome: str, says: str, behaviors: str | Mapping[str, Steps], **row: Any
) -> dict[str, Row]:
    """Rows of behaviors that end alike, by their names; a text holds names alone."""
    named = {n: n for n in behaviors.split()} if isinstance(behaviors, str) else behaviors
    return {name: Row(steps, outcome, says=says, **row) for name, steps in named.items()}


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


async def endless(_: Call, wire: Wire) -> None:
    """A body without end and without a length."""
    assert isinstance(wire, Connection)
    await wire.send(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n")
    while wire.open:
        await wire.send(b" " * 4096)


def called(text: str) -> list[dict[str, Any]]:
    """A call of a tool."""
    return [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": text}}]


def chosen(value: dict[str, Any], **fields: object) -> None:
    """The first choice has these fields."""
    value["choices"][0].update(fields)


def escaped(text: str) -> str:
    """Repeat the API key in escapes within the label."""
    return text.replace("Item", "".join(f"\\u{ord(letter):04x}" for letter in KEY))


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
DAMAGED: dict[str, Any] = {
    "outcome": "transport", "requests": 2, "says": "the server's answer is damaged", "waits": (0,),
}  # fmt: skip
FAILING, LIMITED = "the server failed", "the server is limiting the rate of requests"
NO_CREDIT, WRONG_KEY = "the account has no credit left", "the API key was not accepted"
TOO_LONG, NO_ACCESS = "the record is too long for the model", "the API key may not use this model"
BLOCKED, BLOCKED_ANSWER = (
    f"the provider's filter blocked the {it}" for it in ("request", "answer")
)
CUT_OFF, REFUSED = "the answer was cut off", "the model refused to answer"
UNFIT = "the answer does not fit the label's schema"
NOT_PASSED_ON = "the model wrote nothing that its provider passes on"
NO_JSON, NO_COMPLETION = (
    "the model wrote no valid JSON", "the server answered with something that is not a completion"
)  # fmt: skip
NO_MODEL, NO_ADDRESS = "no such model", "no such model or address"
REDIRECTS = "the server redirects elsewhere, and documents are not sent on"
OTHER_MODE = "the server does not accept the response schema in this output mode"
_BROKEN, _EMPTY = "the answer broke the label contract: ", "the answer is empty"
_CAPPED: dict[str, Any] = {"judge": {"max_output_tokens": 50}}
AGAIN: dict[str, Any] = {"requests": 3, "waits": (0, 0)}
"""Of what is asked again until the attempts run out."""

ANSWERS = {
    # Answers in another place
    "arguments as an object": Row(
        answered(content=None, tool_calls=lambda text: called(json.loads(text)))
    ),
    "two identical calls": Row(
        answered(content=None, tool_calls=lambda text: called(text) + called(text))
    ),
    "function_call": Row(answered(content=None, function_call=lambda text: {"arguments": text})),
    "content as an object": Row(answered(content=json.loads)),
    "a call that nobody read": Row(answered(content=lambda text: f'[CALL]{{"arguments": {text}}}')),
    "a text in a call": Row(answered(content=lambda text: json.dumps({"name": "f", "in": text}))),
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
    "a second value after the first": Row(raw_body(lambda b: b + b'{"error": "x"}')),
    "a byte order mark": Row(raw_body(lambda body: b"\xef\xbb\xbf" + body)),
    "a byte that is not UTF-8": Row(raw_body(lambda body: body.replace(b"Item", b"Item \xff"))),
    "an error of empty fields": Row(edited(lambda v: v.update(error={"code": 0, "message": ""}))),
    "a whole answer at the cap": Row(edited(partial(chosen, finish_reason="length"))),
    "bytes that are no text, after it": Row(raw_body(lambda b: b + b"\xff\xfe")),
    "half of gzip": Row(packed(lambda body: gzip.compress(body)[:60]), **DAMAGED),
    "a shorter length": Row(sent(stated(-5)), **DAMAGED),
    "a wrong checksum": Row(packed(lambda b: gzip.compress(b)[:-8] + b"\1" * 8), **DAMAGED),
    "a bad chunk": Row(sent(chunked(b"zz\r\n\r\n")), **DAMAGED),
    "two lengths": Row(
        sent(lambda w, b: whole(w, b).replace(b"\r\n\r\n", b"\r\ncontent-length: 7\r\n\r\n", 1)),
        **DAMAGED,
    ),
    "cut-off JSON": Row(raw_body(lambda b: b[:-9]), **DAMAGED),
    # Counters of tokens
    **{
        f"counters {counters}": Row(sets(usage={"completion_tokens": 9, **counters}))
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
    **ending("malformed", _EMPTY, "empty no-content list-content", requests=2),
    **ending("malformed", _EMPTY, {
        "blank": says(" \n"),
        "a number": answered(content=7),
        "parts of an odd type": answered(content=lambda text: [{"type": [], "text": text}]),
    }, requests=2),
    **ending("malformed", f"{_EMPTY}: the model wrote into reasoning_content only", {
        "empty next to thoughts": answered(content="", reasoning_content="Is it 0a?"),
    }, requests=2),
    **ending("content_filter", BLOCKED_ANSWER, "filtered"),
    **ending("content_filter", BLOCKED_ANSWER, {
        reason: says("", finish=reason)
        for reason in ("SAFETY", "RECITATION", "IMAGE_SAFETY", "LANGUAGE", "PROHIBITED_CONTENT")
    }),
    **ending("refusal", REFUSED, "refusal"),
    **ending("truncated", CUT_OFF, "truncated"),
    "cut off once": Row("truncated ok", requests=2, **_CAPPED),
    "cut off at twice the cap": Row("truncated", "truncated", 2, CUT_OFF, **_CAPPED),
    "cut off in an endless text": Row(
        says("and so on, " * 100, finish="length"), "truncated", says=CUT_OFF, **_CAPPED
    ),
    "cut off around a bad answer": Row(
        "truncated malformed truncated", "truncated", 3, CUT_OFF, **_CAPPED
    ),
    "a cap above what the model allows": Row(
        ("truncated", error(400, "invalid_value", param="max_completion_tokens")),
        "parameter", 2, "the model does not accept max_output_tokens", **_CAPPED,
    ),
    **ending("cut_prompt", "the server has cut the prompt: it reports 300 input tokens", {
        f"a cut prompt, {cached} cached": sets(
            usage={"prompt_tokens": 300, "prompt_tokens_details": {"cached_tokens": cached}}
        )
        for cached in (0, 200)
    }),
    # Answers that break the rules are sent back once
    **ending("malformed", UNFIT, "malformed fenced twice-name lone-surrogate", requests=2),
    **ending("malformed", f"{UNFIT}: extra_forbidden in answer.score", "extra-field", requests=2),
    "half a character": Row(says('{"relevance_explanation": "\ud800"}'), "malformed", 2, UNFIT),
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
    "unreadable once": Row("malformed ok", requests=2),
    "broken once": Row("unknown-key ok", requests=2),
    "unreadable, then broken": Row("malformed unknown-key", "contract", 2, _BROKEN),
    "broken, then unreadable": Row("unknown-key malformed", "malformed", 2, UNFIT),
    "broken, without re-asks": Row("unknown-key", "contract", 1, _BROKEN, judge={"reasks": 0}),
    "failures around a broken answer": Row("500 unknown-key reset ok", requests=4, waits=(0, 0)),
    # Limits
    **ending("oversized", "the server's answer is over a limit of size", {
        "a gzip bomb": body(gzip.compress(b" " * 2 * LIMIT), content_encoding="gzip"),
        "a deflated bomb": body(_DEFLATED, content_encoding="Deflate"),
        "a long body": body(b" " * 2 * LIMIT),
        "an endless body": endless,
        "very many parts": body(b"[" + b"{}," * 120_000 + b"{}]"),
    }),
    **ending("permission", NO_ACCESS, {"a long error": body(b" " * 2 * LIMIT, 403)}),
    **ending("stop authentication", WRONG_KEY, {
        "an error in another encoding": body(b"\x1b", 401, content_encoding="br"),
    }),
    **{
        f"encoding {name}": Row(body(b"{}", content_encoding=name), **DAMAGED)
        for name in ("br", "zstd", "gzip, gzip", "unknown")
    },
    "a long header": Row(body(b"{}", x="y" * 9000), **DAMAGED),
    "many headers": Row(body(b"{}", 200, **{f"x{n}": "y" for n in range(200)}), **DAMAGED),
}  # fmt: skip
"""Answers of status 200 that are none."""

STATUSES = {
    # What surely concerns every record
    **ending("stop authentication", WRONG_KEY, "401"),
    "407": Row(error(407), "stop authentication", says="the proxy asks for a user and a password"),
    **ending("stop quota", NO_CREDIT, "402 429-quota"),
    **ending("stop not_found", NO_MODEL, "404"),
    **ending("stop parameter", "the model does not accept temperature", "400-parameter"),
    **ending("stop parameter", OTHER_MODE, "400-schema"),
    # What may pass
    **ending("transport", FAILING, "408 409 500 503 json-error", **AGAIN),
    **ending("transport", FAILING, {"425": error(425)}, **AGAIN),
    **ending("malformed", NO_JSON, {"400, no JSON": error(400, "json_validate_failed")}, **AGAIN),
    "seven faults": Row(
        "500 503 reset html no-choices 429 408 ok", requests=8, waits=(0,) * 7,
        judge={"max_attempts": 9},
    ),
    # Waits
    **ending("rate_limit", LIMITED, "429", **AGAIN),
    **ending("rate_limit", LIMITED, {
        "quota, in words": error(429, message="You exceeded your current quota, please check"),
    }, **AGAIN),
    **ending("rate_limit", LIMITED, {
        "seconds": "429-wait",
        "a date, an hour ahead": limited(7, 3600),
        "a date, an hour behind": limited(7, -3600),
    }, requests=3, waits=(7, 7)),
    **ending("rate_limit", LIMITED, "429-wait-ms", requests=3, waits=(0.12, 0.12)),
    **ending("rate_limit", LIMITED, {
        "Google's delay": body(json.dumps(GOOGLE_BUSY).encode(), 429),
    }, requests=3, waits=(3, 3)),
}  # fmt: skip
"""Errors by status that concern every record, or may pass; ``server_rows`` has the others."""

CONNECTIONS = {
    **ending("transport", "the connection failed", "reset close", **AGAIN),
    **ending("transport", NO_COMPLETION, "html json-list json-null deep-json", **AGAIN),
    **ending("transport", "the server answers as another API does", {
        "Ollama's": body(b'{"response": "{}"}'),
        "Responses": body(b'{"output": [{}], "usage": {"input_tokens": 9, "output_tokens": 9}}'),
        "text-generation-inference's": body(b'[{"generated_text": "{}"}]'),
    }, requests=2, waits=(0,)),
    **{kind: Row(kind, **DAMAGED) for kind in ("bad-json", "bad-utf8", "short")},
    **ending(
        "malformed", NOT_PASSED_ON, "no-choices null-choices no-message text-message text-choice",
        requests=2, waits=(0,),
    ),
    "choices left out": Row(
        edited(lambda value: value.pop("choices")), "malformed", 2, NOT_PASSED_ON, waits=(0,)
    ),
    **ending(
        "timeout", "no complete answer within 0.3 s", "hang", judge={"timeout": 0.3}, **AGAIN
    ),
    **ending("timeout", "the answer had begun and did not end within 0.3 s", "slow",
             requests=2, waits=(0,), judge={"timeout": 0.3}),
}  # fmt: skip
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
    "reset in mid-answer": End("stop transport", 2 * FEW),
    "failing, 500": End("stop transport", _AGAIN),
    "overloaded, 529, ends": End("label", 20),
}
"""By the names of ``docs/measured/reliability.md``; where some rows meet it, requests for each."""
