"""Errors as servers state them, in a response of any status.

The form differs by server: the error is an object, a list, a text, or fields next to others.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from labeler.judges.limits import LONGEST_WAIT, number_of, reset_after, seconds_of
from labeler.judges.openai.address import masked, masked_json
from labeler.judges.openai.error_rules import ObservedError
from labeler.judges.openai.reading import at, list_of, object_of, text_of

_WORDS = ("message", "Message", "detail", "msg")
_CODES = ("code", "type", "status", "error_code", "error_type")
_STATUS_NAMES = ("code", "status", "statusCode", "status_code")
_ERROR_STATUSES = range(300, 1000)
_UNKNOWN_STATUS = 500
_MINIMAX: Mapping[float, int] = {
    1002: 429, 1004: 401, 1008: 402, 1026: 400, 1027: 400, 1039: 429, 2013: 400, 2049: 401,
}  # fmt: skip
"""HTTP statuses of the codes that MiniMax states in a 200."""
_LONGEST_MESSAGE, _MOST_WORDS = 1000, 100_000
"""Characters of a value in place of a text, and of a text: each rule searches all of it."""
_AGAIN_IN = re.compile(
    r"(?:(?:try again|retry) (?:in|after)|please wait) ([\d.hms]++)(?![-:/]| ?(?:min|hour|day))",
    re.IGNORECASE | re.ASCII,
)


def error_in(values: Mapping[str, Any], answers: str) -> ObservedError | None:
    """Return the error in a body of status 200; ``None`` if it states none.

    Args:
        values: the body.
        answers: field of the answers.
    """
    error: object = values.get("error") or values.get("errors")
    if error and (not isinstance(error, dict) or any(error.values())):  # else fields without one
        return stated_error(error)
    outcome = object_of(values.get("base_resp"))
    if outcome and (code := number_of(str(outcome.get("status_code")))):
        stated = {"message": outcome.get("status_msg")}
        return stated_error(stated, _MINIMAX.get(code, _UNKNOWN_STATUS))
    if values.get(answers):
        return None
    is_error = status_in(values) or any(text_of(values.get(name)) for name in _WORDS)
    return stated_error(values) if is_error else None


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
    body = _first(body)  # Gemini sends a list, and Cloudflare one within the body
    body = object_of(at(body, "detail")) or body  # as FastAPI wraps it
    inner = (object_of(_first(at(body, name))) for name in ("error", "errors"))
    fields = next(filter(None, inner), None) or object_of(body)
    if status is None:
        status = status_in(fields) or _UNKNOWN_STATUS
    words = next(filter(None, (text_of(fields.get(name)) for name in _WORDS)), "")[:_MOST_WORDS]
    raw = at(fields, "metadata", "raw")  # the words of OpenRouter's provider
    words += f" {raw}"[:_LONGEST_MESSAGE] if raw else ""
    return ObservedError(
        "status",
        status=status,
        code=next(filter(None, (_word(fields.get(name)) for name in _CODES)), ""),
        param=_word(fields.get("param")),
        message=masked_json(words or (str(body)[:_LONGEST_MESSAGE] if body else "")).partition(
            " expected one of "  # a list of all fields names more than the wrong one
        )[0],
        retry_after=wait if wait is not None else _stated_wait(fields, status, words),
    )


def status_in(fields: object) -> int:
    """Return the error status that an object states; 0 if it states none."""
    stated = (number_of(str(at(fields, name))) for name in _STATUS_NAMES)
    return next((int(n) for n in stated if n and n in _ERROR_STATUSES), 0)


def _first(value: object) -> object:
    """Return the first item of a list; another value as it is."""
    return value[0] if isinstance(value, list) and value else value


def _word(value: object) -> str:
    """Return a code; "" for what LiteLLM's proxy sends without one: a status, or "None"."""
    text = masked(text_of(value))
    return "" if text == "None" or text.isdigit() else text


def _stated_wait(fields: Mapping[str, Any], status: int, words: str) -> float | None:
    """Return the seconds to wait in an error.

    They stand in Google's ``RetryInfo``; of a rate limit also in headers that OpenRouter passes
    on, or in words, such as "try again in 7.66s" and "retry after 26 seconds".
    """
    delays = (text_of(at(one, "retryDelay")) for one in list_of(fields.get("details")))
    stated = next((seconds_of(delay) for delay in delays if delay), None)
    if stated is None and status == HTTPStatus.TOO_MANY_REQUESTS:
        passed = object_of(at(fields, "metadata", "headers"))
        stated = reset_after({name.lower(): text_of(text) for name, text in passed.items()})
        if stated is None and (found := _AGAIN_IN.search(words)):
            stated = seconds_of(found[1].rstrip("."))
    return None if stated is None else min(LONGEST_WAIT, stated)
