"""A client of OpenAI's API with a fixed address, and readers of its responses.

By default, the library takes host, proxy and headers from the environment and follows redirects
with the documents. This client uses only the address that it is given and that was validated.
"""

from __future__ import annotations

import logging
import math
import re
import ssl
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from traceback import format_exception
from typing import Any

import msgspec
from httpx2 import ConnectError, ConnectTimeout, Response, create_ssl_context
from openai import (
    APIConnectionError,
    APIError,
    APIStatusError,
    APITimeoutError,
    AsyncOpenAI,
    DefaultAsyncHttpxClient,
    Timeout,
)
from openai.types import CompletionUsage
from openai.types.chat import ChatCompletion, ChatCompletionMessage
from pydantic import ValidationError

from labeler.judges.openai.error_rules import ErrorKind, ObservedError, retry_after
from labeler.judges.traffic.limits import Quota
from labeler.labels.logprobs import Token
from labeler.labels.record import Usage

_CONNECT_SECONDS = 10.0

WIRE_ERRORS = (
    APIError,
    TimeoutError,
    ValueError,  # no JSON, no UTF-8, a number with more digits than Python parses
    RecursionError,  # JSON nested too deeply
)
"""The errors of one request that are not bugs of this package."""


def open_client(
    base_url: str, key: str, *, timeout: float, organization: str | None, project: str | None
) -> AsyncOpenAI:
    """Open a client on the running event loop."""
    if len(key) >= _SHORTEST_KEY:
        _KEYS.add(key)
    client = AsyncOpenAI(
        api_key=key,
        base_url=base_url,
        max_retries=0,  # tenacity is the only retry layer
        http_client=DefaultAsyncHttpxClient(
            follow_redirects=False,
            trust_env=False,
            verify=_certificates(base_url.partition(":")[0].lower() == "http"),
            timeout=Timeout(timeout, connect=min(_CONNECT_SECONDS, timeout)),
        ),
    )
    # The constructor takes omitted values from the environment.
    client.organization, client.project = organization, project
    client._custom_headers = {}  # noqa: SLF001 - the only way to ignore OPENAI_CUSTOM_HEADERS
    return client


@cache
def _certificates(plain: bool) -> ssl.SSLContext:
    """Return the trusted certificates, read once because that is the slowest part of a client.

    Args:
        plain: true for an address without encryption; then no certificate is trusted.
    """
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if plain else create_ssl_context(trust_env=False)


async def send(client: AsyncOpenAI, body: Mapping[str, Any]) -> Response:
    """Request a chat completion; return the complete response with its headers.

    The client's own method searches the whole body for names to convert on every call, and
    serializes it many times slower.

    Raises:
        Exception: one of :data:`WIRE_ERRORS`.
    """
    return await client.post(
        "/chat/completions",
        cast_to=Response,
        content=msgspec.json.encode(body),
        options={"security": {"bearer_auth": True}},
    )


def completion_of(response: Response) -> ChatCompletion | None:
    """Return the completion of a response; ``None`` if it is no JSON object.

    Invalid parts are kept as they are: servers deviate from the API in many ways, and most parts of
    a completion are not used.
    """
    with suppress(ValidationError):
        return ChatCompletion.model_validate_json(response.content)
    try:
        body = response.json(object_hook=public_names)
    except (ValueError, RecursionError):  # see WIRE_ERRORS
        return None
    return ChatCompletion.construct(None, **body) if isinstance(body, dict) else None


def public_names(fields: dict[str, Any]) -> dict[str, Any]:
    """Drop the fields that the library's constructors would take for their own parameters."""
    return {name: value for name, value in fields.items() if not name.startswith("_")}


def observed_error(error: Exception) -> ObservedError:
    """Describe one of :data:`WIRE_ERRORS` without the parts of the request that it holds."""
    if isinstance(error, APIStatusError):
        return stated_error(error.body, error.status_code, retry_after(error.response.headers))
    kind: ErrorKind = "not_json"
    if isinstance(error, TimeoutError | APITimeoutError):
        kind = "timeout"
    elif isinstance(error, APIConnectionError):
        kind = "connection"
    return ObservedError(kind)


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
        stated = _number(str(code)) or 0.0
        status = int(stated) if stated in _ERROR_STATUSES else _UNKNOWN_STATUS
    words = text_of(fields.get("message")) or text_of(fields.get("detail"))
    return ObservedError(
        "status",
        status=status,
        code=text_of(code) or text_of(fields.get("type")) or text_of(fields.get("status")),
        param=text_of(fields.get("param")),
        message=without_keys(words or (str(body)[:_LONGEST_MESSAGE] if body else "")),
        retry_after=wait if wait is not None else _stated_delay(fields.get("details")),
    )


_ERROR_STATUSES = range(300, 1000)
_UNKNOWN_STATUS = 500
_LONGEST_MESSAGE = 1000


def _stated_delay(details: object) -> float | None:
    """Return the seconds in Google's ``RetryInfo``."""
    listed = details if isinstance(details, list) else []
    delays = (text_of(one.get("retryDelay")) for one in listed if isinstance(one, Mapping))
    return next((_seconds(delay) for delay in delays if delay), None)


def answer_error(completion: object) -> ObservedError | None:
    """Return why a completion holds no answer; ``None`` if it holds one.

    The library does not validate responses: any part of a completion may be missing or of another
    type, here and below.
    """
    if not isinstance(completion, ChatCompletion):
        return ObservedError("not_json")
    choices: object = getattr(completion, "choices", None)
    choice = choices[0] if isinstance(choices, list) and choices else None
    stated: object = getattr(completion, "error", None) or getattr(choice, "error", None)
    if stated:
        return stated_error(stated)
    message = getattr(choice, "message", None)
    if not isinstance(message, ChatCompletionMessage):
        return ObservedError("no_choices")
    if message.refusal:
        return ObservedError("refusal")
    kind = _UNFINISHED.get(text_of(getattr(choice, "finish_reason", None)))
    return ObservedError(kind) if kind else None


_UNFINISHED: dict[str, ErrorKind] = {
    "length": "truncated",
    "content_filter": "content_filter",
    "error": "no_choices",
}


def usage_of(completion: ChatCompletion) -> Usage | None:
    """Return the tokens charged for a completion, if the server reports them."""
    usage: object = completion.usage
    if not isinstance(usage, CompletionUsage) or not _plausible(usage):
        return None
    return Usage(
        prompt_tokens=_count(usage.prompt_tokens),
        completion_tokens=_count(usage.completion_tokens),
        cached_tokens=_count(getattr(usage.prompt_tokens_details, "cached_tokens", 0)),
        cache_write_tokens=_count(getattr(usage.prompt_tokens_details, "cache_write_tokens", 0)),
    )


def tokens_of(completion: object) -> tuple[Token, ...]:
    """Return an answer's tokens with log-probabilities; empty if any of them is missing."""
    choices: object = getattr(completion, "choices", None)
    given: object = getattr(choices[0], "logprobs", None) if isinstance(choices, list) else None
    listed: object = getattr(given, "content", None)
    if not isinstance(listed, list):
        return ()
    tokens = [_token(one) for one in listed[:_MOST_READ]]
    return () if None in tokens else tuple(token for token in tokens if token is not None)


def _token(given: object) -> Token | None:
    chosen = _choice(given)
    if chosen is None:
        return None
    listed: object = getattr(given, "top_logprobs", None)
    others = [_choice(one) for one in (listed if isinstance(listed, list) else [])[:_MOST_OTHERS]]
    return Token(*chosen, tuple(other for other in others if other not in {None, chosen}))


def _choice(given: object) -> tuple[bytes, float] | None:
    """Return the bytes and the log-probability of a candidate token."""
    text: object = getattr(given, "token", None)
    logprob: object = getattr(given, "logprob", None)
    if not isinstance(text, str) or not isinstance(logprob, int | float):
        return None
    if isinstance(logprob, bool) or not logprob <= _ROUNDED_UP:
        return None
    raw: object = getattr(given, "bytes", None)  # exact, where the token is part of a character
    try:
        content = bytes(raw) if isinstance(raw, list) else text.encode("utf-8", "replace")
    except (TypeError, ValueError):
        return None
    return content, min(0.0, float(logprob))


_MOST_READ, _MOST_OTHERS = 100_000, 100
"""Tokens and alternatives that are read; servers return fewer."""
_ROUNDED_UP = 1e-3
"""Highest log-probability that a server's rounding may produce."""


def quota_of(headers: Mapping[str, str], unit: str) -> Quota | None:
    """Return one of a server's rate limits from its headers; ``None`` if they are unusable.

    Args:
        headers: names in lower case.
        unit: ``requests`` or ``tokens``.
    """
    limit, remaining = (_number(headers.get(f"x-ratelimit-{n}-{unit}")) for n in _AMOUNTS)
    reset = _seconds(headers.get(f"x-ratelimit-reset-{unit}", ""))
    if limit is None or remaining is None or reset is None or limit <= 0 or reset > _DAY:
        return None  # a reset beyond a day is a date, or too long for a run
    return Quota(limit, remaining, reset)


_DAY = 86400.0
_AMOUNTS = ("limit", "remaining")
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_PART = r"(\d+(?:\.\d+)?)(ms|h|m|s)"


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _seconds(text: str) -> float | None:
    """Parse a duration such as ``6m0s``, ``120ms`` or ``1.5``."""
    if re.fullmatch(f"(?:{_PART})+", text, re.ASCII):
        return sum(float(n) * _UNITS[unit] for n, unit in re.findall(_PART, text, re.ASCII))
    return _number(text)


def headers_of(error: Exception) -> Mapping[str, str]:
    """Return an error's response headers; their names are case-insensitive."""
    return error.response.headers if isinstance(error, APIStatusError) else {}


_AFTER_WORK = frozenset({408, 500, 502, 504})
_GATEWAY_STATUSES = 520
"""First of the statuses that a gateway may send although its provider has answered."""


def may_be_charged(error: Exception) -> bool:
    """Return true if the provider may have answered although no complete response arrived."""
    if isinstance(error, APIStatusError):
        return error.status_code in _AFTER_WORK or error.status_code >= _GATEWAY_STATUSES
    return not isinstance(error.__cause__, ConnectError | ConnectTimeout)


def text_of(value: object) -> str:
    """Return an external value if it is a string, else an empty string."""
    return value if isinstance(value, str) else ""


_MOST_TOKENS = 10**9
"""No request has more tokens; a larger count is invalid."""


def _plausible(usage: CompletionUsage) -> bool:
    counts = (usage.prompt_tokens, usage.completion_tokens)
    return all(not isinstance(count, int) or count <= _MOST_TOKENS for count in counts)


def _count(value: object) -> int:
    return value if isinstance(value, int) and 0 < value <= _MOST_TOKENS else 0


def without_keys(text: str) -> str:
    """Return a text without the API keys of this process."""
    for key in _KEYS:
        text = text.replace(key, "[key]")
    return text


class _WithoutBodies(logging.Filter):
    """Keeps documents out of the logs: at DEBUG the library logs request bodies."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not (isinstance(record.args, Mapping) and _BODIES & record.args.keys())


_BODIES = {"content", "json_data"}


class _WithoutKeys(logging.Filter):
    """Keeps keys out of the logs: the libraries log headers and errors from the server."""

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        text = without_keys(message)
        if text != message:
            record.msg, record.args = text, None
        error = record.exc_info[1] if record.exc_info else None
        if error and any(key in line for line in format_exception(error) for key in _KEYS):
            record.exc_info = None
        return True


_KEYS: set[str] = set()
"""API keys of all clients."""
_SHORTEST_KEY = 8
"""Length of a real key at least; a shorter one is a placeholder for servers without keys."""

logging.getLogger("openai._base_client").addFilter(_WithoutBodies())
for _name in ("openai._base_client", "openai._response", "openai._legacy_response", "httpx2"):
    logging.getLogger(_name).addFilter(_WithoutKeys())
for _name in ("connection", "http11", "http2"):
    logging.getLogger(f"httpcore2.{_name}").addFilter(_WithoutKeys())
