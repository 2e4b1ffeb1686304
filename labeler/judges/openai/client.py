"""A client of OpenAI's API that goes where it is told and nowhere else, and what it reports.

Left alone, the library lets the environment choose host, proxy and headers, and sends documents on
to wherever a server redirects. Here the address is given, checked, and final.
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

from labeler.judges.openai.failures import ErrorKind, ObservedError, retry_after
from labeler.judges.traffic.limits import Quota
from labeler.labels.logprobs import Token
from labeler.labels.record import Usage

_CONNECT_SECONDS = 10.0

WIRE_ERRORS = (
    APIError,
    TimeoutError,
    ValueError,  # no JSON, no UTF-8, a number of more digits than Python reads
    RecursionError,  # JSON nested without end
)
"""All that one request may end in, besides an answer, without a bug on our side."""


def open_client(
    base_url: str, key: str, *, timeout: float, organization: str | None, project: str | None
) -> AsyncOpenAI:
    """Open a client on the running event loop."""
    if len(key) >= _SHORTEST_KEY:
        _KEYS.add(key)
    client = AsyncOpenAI(
        api_key=key,
        base_url=base_url,
        max_retries=0,  # tenacity repeats requests, alone
        http_client=DefaultAsyncHttpxClient(
            follow_redirects=False,
            trust_env=False,
            verify=_certificates(base_url.partition(":")[0].lower() == "http"),
            timeout=Timeout(timeout, connect=min(_CONNECT_SECONDS, timeout)),
        ),
    )
    # Where these are not given, the constructor takes them from the environment.
    client.organization, client.project = organization, project
    client._custom_headers = {}  # noqa: SLF001 - OPENAI_CUSTOM_HEADERS has no other off switch
    return client


@cache
def _certificates(plain: bool) -> ssl.SSLContext:
    """Whose certificates are believed: read once, which takes longer than the rest of a client.

    Args:
        plain: the address is one without encryption; then nobody's, should it ever come to that.
    """
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if plain else create_ssl_context(trust_env=False)


async def send(client: AsyncOpenAI, body: Mapping[str, Any]) -> Response:
    """Ask for a chat completion; what comes back, with its headers, is read in full.

    The client's own method for it walks through all of a body, on every call, in search of parts
    to rename, and writes it as JSON many times as slowly.

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
    """The completion that came back; ``None`` where it is no JSON, or can be none.

    What is not as it should be is passed on as it is: each server has ways of its own, and most
    of a completion is of no concern here.
    """
    with suppress(ValidationError):
        return ChatCompletion.model_validate_json(response.content)
    try:
        said = response.json(object_hook=public_names)
    except (
        ValueError,
        RecursionError,
    ):  # no UTF-8, a number of too many digits, nested without end
        return None
    return ChatCompletion.construct(None, **said) if isinstance(said, dict) else None


def public_names(said: dict[str, Any]) -> dict[str, Any]:
    """An object without names that the library's own constructors would take for theirs."""
    return {name: value for name, value in said.items() if not name.startswith("_")}


def observed_error(error: Exception) -> ObservedError:
    """Describe one of :data:`WIRE_ERRORS` without what it holds of the request."""
    if isinstance(error, APIStatusError):
        body = error.body if isinstance(error.body, Mapping) else {}
        return ObservedError(
            "status",
            status=error.status_code,
            code=text_of(error.code) or text_of(error.type),
            param=text_of(error.param),
            message=text_of(body.get("message")),
            retry_after=retry_after(error.response.headers),
        )
    kind: ErrorKind = "not_json"
    if isinstance(error, TimeoutError | APITimeoutError):
        kind = "timeout"
    elif isinstance(error, APIConnectionError):
        kind = "connection"
    return ObservedError(kind)


def answer_error(completion: object) -> ErrorKind | None:
    """Why a 2xx holds no answer; ``None`` if it holds one.

    The library does not check what it reads, here and below: any part of a completion may be
    missing or of another type.
    """
    if not isinstance(completion, ChatCompletion):
        return "not_json"
    choices: object = completion.choices
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = getattr(choice, "message", None)
    if not isinstance(message, ChatCompletionMessage):
        return "no_choices"
    if message.refusal:
        return "refusal"
    return _STOPS.get(text_of(getattr(choice, "finish_reason", None)))


_STOPS: dict[str, ErrorKind] = {"length": "truncated", "content_filter": "content_filter"}


def usage_of(completion: ChatCompletion) -> Usage | None:
    """The tokens charged for a completion, where the server says."""
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
    """The tokens of an answer with their log-probabilities; empty where any of it is not given."""
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
    """A token that might stand at one place: its bytes and its log-probability."""
    text: object = getattr(given, "token", None)
    logprob: object = getattr(given, "logprob", None)
    if not isinstance(text, str) or not isinstance(logprob, int | float):
        return None
    if isinstance(logprob, bool) or not logprob <= _ROUNDED_UP:
        return None
    raw: object = getattr(given, "bytes", None)  # part of a character is no text, and stands here
    try:
        content = bytes(raw) if isinstance(raw, list) else text.encode("utf-8", "replace")
    except (TypeError, ValueError):
        return None
    return content, min(0.0, float(logprob))


_MOST_READ, _MOST_OTHERS = 100_000, 100
"""No server gives more."""
_ROUNDED_UP = 1e-3
"""What a server's rounding may make of a probability of 1."""


def quota_of(headers: Mapping[str, str], unit: str) -> Quota | None:
    """What a server's headers say of one of its limits, if they say it readably.

    Args:
        headers: names in lower case.
        unit: ``requests`` or ``tokens``.
    """
    limit, remaining = (_number(headers.get(f"x-ratelimit-{n}-{unit}")) for n in _AMOUNTS)
    reset = _seconds(headers.get(f"x-ratelimit-reset-{unit}", ""))
    if limit is None or remaining is None or reset is None or limit <= 0 or reset > _DAY:
        return None  # a reset beyond a day is a date, or a limit that no run can follow
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
    """A duration such as ``6m0s``, ``120ms`` or ``1.5``."""
    if re.fullmatch(f"(?:{_PART})+", text, re.ASCII):
        return sum(float(n) * _UNITS[unit] for n, unit in re.findall(_PART, text, re.ASCII))
    return _number(text)


def headers_of(error: Exception) -> Mapping[str, str]:
    """The headers that came with an error, names in any case."""
    return error.response.headers if isinstance(error, APIStatusError) else {}


_AFTER_WORK = frozenset({408, 500, 502, 504})
_GATEWAYS_OWN = 520
"""Statuses that a gateway may send though the provider behind it has answered."""


def may_be_charged(error: Exception) -> bool:
    """Whether the provider may have answered, though nothing whole arrived."""
    if isinstance(error, APIStatusError):
        return error.status_code in _AFTER_WORK or error.status_code >= _GATEWAYS_OWN
    return not isinstance(error.__cause__, ConnectError | ConnectTimeout)


def text_of(value: object) -> str:
    """A text that came from outside; empty where it is none."""
    return value if isinstance(value, str) else ""


_MOST_TOKENS = 10**9
"""No request has more: a larger count is nonsense, and sums with it would be."""


def _plausible(usage: CompletionUsage) -> bool:
    counts = (usage.prompt_tokens, usage.completion_tokens)
    return all(not isinstance(count, int) or count <= _MOST_TOKENS for count in counts)


def _count(value: object) -> int:
    return value if isinstance(value, int) and 0 < value <= _MOST_TOKENS else 0


class _WithoutBodies(logging.Filter):
    """Keeps documents out of the logs: at DEBUG the library writes whole request bodies."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not (isinstance(record.args, Mapping) and _BODIES & record.args.keys())


_BODIES = {"content", "json_data"}


class _WithoutKeys(logging.Filter):
    """Keeps keys out of the logs: the libraries write headers and errors that a server chose."""

    def filter(self, record: logging.LogRecord) -> bool:
        said = text = record.getMessage()
        for key in _KEYS:
            text = text.replace(key, "[key]")
        if text != said:
            record.msg, record.args = text, None
        error = record.exc_info[1] if record.exc_info else None
        if error and any(key in line for line in format_exception(error) for key in _KEYS):
            record.exc_info = None
        return True


_KEYS: set[str] = set()
"""Keys that clients were opened with."""
_SHORTEST_KEY = 8
"""What is shorter is a placeholder for servers that want none."""

logging.getLogger("openai._base_client").addFilter(_WithoutBodies())
for _name in ("openai._base_client", "openai._response", "openai._legacy_response", "httpx2"):
    logging.getLogger(_name).addFilter(_WithoutKeys())
for _name in ("connection", "http11", "http2"):
    logging.getLogger(f"httpcore2.{_name}").addFilter(_WithoutKeys())
