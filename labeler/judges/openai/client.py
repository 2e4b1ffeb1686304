"""A client of OpenAI's API with a fixed address, and readers of its responses.

By default, the library takes host, proxy and headers from the environment and follows redirects
with the documents. This client uses only the address that it is given and that was validated.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from traceback import format_exception
from typing import Any

import msgspec
from httpx2 import HTTPError, Response
from openai import APIConnectionError, APIError, APIStatusError, AsyncOpenAI

from labeler.judges.openai.completion import stated_error
from labeler.judges.openai.error_rules import ErrorKind, ObservedError, retry_after
from labeler.judges.openai.masking import masked, remember_key
from labeler.judges.openai.transport import (
    is_oversized,
    is_timeout,
    is_unconnected,
    is_untrusted,
    open_http,
)

WIRE_ERRORS = (
    APIError,
    HTTPError,  # in the middle of a stream, where the library wraps none
    TimeoutError,
    ValueError,  # no JSON, no UTF-8, a number with more digits than Python parses
    RecursionError,  # JSON nested too deeply
)
"""The errors of one request that are not bugs of this package."""


def open_client(
    base_url: str, key: str, *, timeout: float, organization: str | None, project: str | None
) -> AsyncOpenAI:
    """Open a client on the running event loop."""
    remember_key(key)
    client = AsyncOpenAI(
        api_key=key,
        base_url=base_url,
        max_retries=0,  # tenacity is the only retry layer
        http_client=open_http(base_url, timeout),
    )
    # The constructor takes omitted values from the environment.
    client.organization, client.project = organization, project
    client._custom_headers = {}  # noqa: SLF001 - the only way to ignore OPENAI_CUSTOM_HEADERS
    return client


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


def observed_error(error: Exception) -> ObservedError:
    """Describe one of :data:`WIRE_ERRORS` without the parts of the request that it holds."""
    if isinstance(error, APIStatusError):
        return stated_error(error.body, error.status_code, retry_after(error.response.headers))
    return ObservedError(_kind_of(error))


def _kind_of(error: Exception) -> ErrorKind:
    """Return the kind of an error without a status, from its causes."""
    if is_oversized(error):
        return "oversized"
    if is_untrusted(error):
        return "untrusted"
    if is_unconnected(error):
        return "unconnected"
    if is_timeout(error):
        return "timeout"
    return "connection" if isinstance(error, APIConnectionError | HTTPError) else "not_json"


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
    return not is_unconnected(error)


class _WithoutBodies(logging.Filter):
    """Keeps documents out of the logs: at DEBUG the library logs request bodies."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not (isinstance(record.args, Mapping) and _BODIES & record.args.keys())


_BODIES = {"content", "json_data"}


class _WithoutKeys(logging.Filter):
    """Keeps keys out of the logs: the libraries log headers and errors from the server."""

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        if (text := masked(message)) != message:
            record.msg, record.args = text, None
        error = record.exc_info[1] if record.exc_info else None
        if error and any(masked(line) != line for line in format_exception(error)):
            record.exc_info = None
        return True


logging.getLogger("openai._base_client").addFilter(_WithoutBodies())
for _name in ("openai._base_client", "openai._response", "openai._legacy_response", "httpx2"):
    logging.getLogger(_name).addFilter(_WithoutKeys())
for _name in ("client", "internal"):
    logging.getLogger(f"aiohttp.{_name}").addFilter(_WithoutKeys())
