"""One chat completion, read from a server's JSON.

Servers deviate from the API in many ways: any part may be missing or of another type. Each is read
on its own here, once, so that a tokens count is kept although the answer next to it is unusable.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from labeler.judges.openai.error_rules import ErrorKind, ObservedError
from labeler.judges.openai.headers import number_of, seconds_of
from labeler.judges.openai.masking import masked
from labeler.judges.openai.reading import find_object
from labeler.labels.logprobs import Token
from labeler.labels.record import Usage

_MOST_READ, _MOST_OTHERS = 100_000, 100
"""Tokens and alternatives that are read; servers return fewer."""
_ROUNDED_UP = 1e-3
"""Highest log-probability that a server's rounding may produce."""
_MOST_TOKENS = 10**9
"""No request has more tokens; a larger count is invalid."""
_LONGEST_FACT = 200
_LONGEST_ANSWER = 1 << 20
"""Characters of an answer at most; more is not sent back for correction either."""
_LONGEST_PERIOD, _FEWEST_REPEATS, _SHORTEST_LOOP = 400, 10, 200
"""A loop: characters of the repeated text at most, its repeats, and characters of all of them."""
TOOL_CALL = "tool_call"
"""The repair of an answer in the arguments of a tool call; none if that was asked for."""
_UNFINISHED: dict[str, ErrorKind] = {
    "length": "truncated",
    "content_filter": "content_filter",
    "error": "no_choices",
}


class Completion(NamedTuple):
    """The parts of a completion that are used."""

    content: str
    """The JSON object of the answer; the whole answer if there is none in it. Empty if it is
    neither text, nor a list of text parts, nor a tool call."""
    repairs: tuple[str, ...]
    """What had to be done to find the object, see :func:`find_object`; also ``text_parts`` and
    ``tool_call``."""
    error: ObservedError | None
    """Why there is no answer; ``None`` if there is one."""
    usage: Usage | None
    """Tokens charged, if the server reports them."""
    input_tokens: int
    """Sum of all input counters; 0 if the server reports none."""
    model: str | None
    fingerprint: str | None
    tokens: tuple[Token, ...]
    """Tokens of the answer with log-probabilities; empty if any of them is missing."""

    @property
    def is_loop(self) -> bool:
        """True if the answer ends in the same text, ten times or more in a row."""
        for period in range(1, _LONGEST_PERIOD + 1):
            length = max(_FEWEST_REPEATS * period, _SHORTEST_LOOP)
            end = self.content[-length:]
            if len(end) == length and end.startswith(end[period:]):
                return True
        return False


def parse_completion(body: bytes) -> Completion | None:
    """Parse the body of a response; ``None`` if it is no JSON object."""
    try:
        return read_completion(json.loads(body))
    except (ValueError, RecursionError):  # no UTF-8, too many digits, nested too deeply
        return None


def read_completion(body: object) -> Completion | None:
    """Read a completion from JSON values; ``None`` if they are no object."""
    if not isinstance(body, dict):
        return None
    choices: object = body.get("choices")
    choice = _object(choices[0] if isinstance(choices, list) and choices else None)
    text, repairs = _content(_object(choice.get("message")))
    content, found = find_object(masked(text))
    error = _error(body, choice, content)
    if error is not None and error.kind == "oversized":
        content = ""
    return Completion(
        content=content,
        repairs=(*repairs, *found),
        error=error,
        usage=usage_of(body.get("usage")),
        input_tokens=_input_tokens(_object(body.get("usage"))),
        model=fact_of(body.get("model")),
        fingerprint=fact_of(body.get("system_fingerprint")),
        tokens=() if error else _tokens(_object(choice.get("logprobs")).get("content")),
    )


def _error(
    body: Mapping[str, Any], choice: Mapping[str, Any], content: str
) -> ObservedError | None:
    """Return why a completion holds no answer; ``None`` if it holds one."""
    if stated := body.get("error") or choice.get("error"):
        return stated_error(stated)
    if failed := _count(_object(body.get("base_resp")).get("status_code")):
        stated = {"message": _object(body["base_resp"]).get("status_msg")}
        return stated_error(stated, _MINIMAX.get(failed, _UNKNOWN_STATUS))
    message: object = choice.get("message")
    if not isinstance(message, dict):
        return ObservedError("no_choices")
    if message.get("refusal"):
        return ObservedError("refusal")
    if len(content) > _LONGEST_ANSWER:
        return ObservedError("oversized")
    kind = _UNFINISHED.get(text_of(choice.get("finish_reason")))
    return ObservedError(kind) if kind else None


def response_error(body: bytes, status: int, wait: float | None = None) -> ObservedError:
    """Describe a response with an error status, whatever its body is; see :func:`stated_error`."""
    try:
        stated: object = json.loads(body)
    except (ValueError, RecursionError):
        stated = body[:_LONGEST_MESSAGE].decode(errors="replace")
    return stated_error(stated, status, wait)


def stated_error(
    body: object, status: int | None = None, wait: float | None = None
) -> ObservedError:
    """Describe the error in a response's body.

    Args:
        body: the error, or a list that holds it.
        status: HTTP status; ``None`` for a 200, whose body states the status or a code.
        wait: seconds to wait, as the headers ask.
    """
    if isinstance(body, list) and body:  # as Gemini sends it
        body = body[0]
    fields: Mapping[str, object] = body if isinstance(body, Mapping) else {}
    inner = fields.get("error")
    fields = inner if isinstance(inner, Mapping) else fields
    code = fields.get("code")
    if status is None:
        stated = number_of(str(code)) or 0.0
        status = int(stated) if stated in _ERROR_STATUSES else _UNKNOWN_STATUS
    words = next(filter(None, (text_of(fields.get(name)) for name in _WORDS)), "")
    return ObservedError(
        "status",
        status=status,
        code=_word(code) or _word(fields.get("type")) or _word(fields.get("status")),
        param=_word(fields.get("param")),
        message=masked(words or (str(body)[:_LONGEST_MESSAGE] if body else "")).partition(
            " expected one of "  # a list of all fields names more than the wrong one
        )[0],
        retry_after=wait if wait is not None else _stated_delay(fields.get("details")),
    )


def _word(value: object) -> str:
    """Return a code; "" for what LiteLLM's proxy sends without one: a status, or "None"."""
    text = text_of(value)
    return "" if text == "None" or text.isdigit() else text


_WORDS = ("message", "Message", "detail")
_ERROR_STATUSES = range(300, 1000)
_UNKNOWN_STATUS = 500
_MINIMAX = {1002: 429, 1004: 401, 1008: 402, 2013: 400, 2049: 401}
"""HTTP statuses of the codes that MiniMax states in a 200."""
_LONGEST_MESSAGE = 1000


def _stated_delay(details: object) -> float | None:
    """Return the seconds in Google's ``RetryInfo``."""
    listed = details if isinstance(details, list) else []
    delays = (text_of(one.get("retryDelay")) for one in listed if isinstance(one, Mapping))
    return next((seconds_of(delay) for delay in delays if delay), None)


def usage_of(found: object) -> Usage | None:
    """Return the tokens charged; ``None`` if a server reports none, or impossible counts."""
    usage = _object(found)
    counts = [usage.get("prompt_tokens"), usage.get("completion_tokens")]
    known = [count for count in counts if isinstance(count, int)]
    if not known or max(known) > _MOST_TOKENS:
        return None
    details = _object(usage.get("prompt_tokens_details"))
    return Usage(
        prompt_tokens=_count(counts[0]),
        completion_tokens=_count(counts[1]),
        cached_tokens=_count(details.get("cached_tokens")),
        cache_write_tokens=_count(details.get("cache_write_tokens")),
    )


def _input_tokens(usage: Mapping[str, Any]) -> int:
    """Return the sum of all input counters; 0 without a count of the prompt.

    Cached tokens of the details are part of the prompt's, unless they are more than it.
    """
    prompt = _count(usage.get("prompt_tokens"))
    details = _object(usage.get("prompt_tokens_details"))
    cached = _count(details.get("cached_tokens")) + _count(details.get("cache_write_tokens"))
    apart = sum(_count(usage.get(name)) for name in _APART)
    return prompt and prompt + (cached if cached > prompt else 0) + apart


_APART = ("cache_read_input_tokens", "cache_creation_input_tokens")
"""Input counters that never are part of the prompt's."""


def text_of(value: object) -> str:
    """Return an external value if it is a string, else an empty string."""
    return value if isinstance(value, str) else ""


def _content(message: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    """Return the text of an answer, and its form if that is not a plain text."""
    content: object = message.get("content")
    calls: object = message.get("tool_calls")
    called = calls[0] if isinstance(calls, list) and len(calls) == 1 else None
    arguments = text_of(_object(_object(called).get("function")).get("arguments"))
    if arguments:
        return arguments, (TOOL_CALL,)
    if isinstance(content, list):
        parts = [_object(part) for part in content if _object(part).get("type") not in _THOUGHTS]
        whole = all(part.get("type") == "text" for part in parts)
        repairs = ("text_parts", "think") if len(parts) < len(content) else ("text_parts",)
        return "".join(text_of(part.get("text")) for part in parts) if whole else "", repairs
    return text_of(content), ()


_THOUGHTS = ("thinking", "reasoning")
"""Kinds of parts in which models think."""


def _object(value: object) -> Mapping[str, Any]:
    """Return an external value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def _count(value: object) -> int:
    return value if isinstance(value, int) and 0 < value <= _MOST_TOKENS else 0


def fact_of(value: object) -> str | None:
    """Return a server-supplied text that can be stored, or ``None``."""
    return masked(text_of(value)).encode("utf-8", "replace").decode()[:_LONGEST_FACT] or None


def _tokens(listed: object) -> tuple[Token, ...]:
    if not isinstance(listed, list):
        return ()
    tokens = [_token(_object(one)) for one in listed[:_MOST_READ]]
    return () if None in tokens else tuple(token for token in tokens if token is not None)


def _token(given: Mapping[str, Any]) -> Token | None:
    chosen = _candidate(given)
    if chosen is None:
        return None
    listed: object = given.get("top_logprobs")
    others = [
        _candidate(_object(one))
        for one in (listed if isinstance(listed, list) else [])[:_MOST_OTHERS]
    ]
    return Token(*chosen, tuple(other for other in others if other not in {None, chosen}))


def _candidate(given: Mapping[str, Any]) -> tuple[bytes, float] | None:
    """Return the bytes and the log-probability of a candidate token."""
    text, logprob = given.get("token"), given.get("logprob")
    if not isinstance(text, str) or not isinstance(logprob, int | float):
        return None
    if isinstance(logprob, bool) or not logprob <= _ROUNDED_UP:
        return None
    raw: object = given.get("bytes")  # exact, where the token is part of a character
    try:
        content = bytes(raw) if isinstance(raw, list) else text.encode("utf-8", "replace")
    except (TypeError, ValueError):
        return None
    return content, min(0.0, float(logprob))
