"""Errors of one request, described without the parts of the request that they hold."""

from __future__ import annotations

from collections.abc import Mapping
from ssl import SSLCertVerificationError

from aiohttp import (
    ClientConnectorError,
    ClientError,
    ClientHttpProxyError,
    ClientResponseError,
    ConnectionTimeoutError,
)
from openai import APIConnectionError, APIError, APIStatusError

from labeler.judges.openai.access import NoKey
from labeler.judges.openai.completion import response_error
from labeler.judges.openai.error_rules import ErrorKind, ObservedError
from labeler.judges.openai.headers import retry_after


class OversizedBody(Exception):
    """A response over a limit; the rest of it was not read."""


class DamagedBody(Exception):
    """A body in an encoding that was not asked for, or that cannot be decoded."""


WIRE_ERRORS = (
    APIError,  # openai's, of batches and embeddings
    ClientError,
    OSError,  # time-outs among them
    EOFError,
    NoKey,
    OversizedBody,
    DamagedBody,
    ValueError,  # no JSON, no UTF-8, a number with more digits than Python parses
    RecursionError,  # JSON nested too deeply
)
"""The errors of one request that are not bugs of this package."""

_KINDS: tuple[tuple[ErrorKind, tuple[type[BaseException], ...]], ...] = (
    ("no_key", (NoKey,)),
    ("proxy", (ClientHttpProxyError,)),
    ("oversized", (OversizedBody,)),
    ("untrusted", (SSLCertVerificationError,)),
    ("unconnected", (ClientConnectorError, ConnectionTimeoutError)),
    ("timeout", (TimeoutError,)),
    ("garbled", (ClientResponseError, DamagedBody)),
    ("connection", (APIConnectionError, ClientError, OSError, EOFError)),
)
"""Kinds of errors without a status, by the errors that they were raised from; the first counts."""
_UNSENT = frozenset({"no_key", "proxy", "untrusted", "unconnected"})
"""Kinds after which the server has seen nothing of the request."""
AFTER_WORK = frozenset({408, 500, 502, 504})
"""Statuses that a provider may send although it has answered."""
_GATEWAY_STATUSES = 520
"""First of the statuses that a gateway may send although its provider has answered."""
_OVERLOADED = 529
"""Status of a server without capacity, which has worked on nothing."""


def observed_error(error: Exception) -> ObservedError:
    """Describe one of :data:`WIRE_ERRORS`."""
    if isinstance(error, APIStatusError):
        response = error.response
        wait = retry_after(response.headers)
        return response_error(response.content, response.status_code, wait)
    kind, cause = _kind_of(error)
    if isinstance(cause, ClientHttpProxyError):
        return ObservedError(kind, status=cause.status)
    return ObservedError(kind, facts=str(cause) if kind == "no_key" else "")


def headers_of(error: Exception) -> Mapping[str, str]:
    """Return an error's response headers; their names are case-insensitive."""
    return error.response.headers if isinstance(error, APIStatusError) else {}


def may_be_charged(error: Exception) -> bool:
    """Return true if the provider may have answered although no complete response arrived."""
    if isinstance(error, APIStatusError):
        return charged_status(error.status_code)
    return _kind_of(error)[0] not in _UNSENT


def charged_status(status: int) -> bool:
    """Return true for an error status after which the provider may have answered."""
    return status in AFTER_WORK or (status >= _GATEWAY_STATUSES and status != _OVERLOADED)


def _kind_of(error: BaseException) -> tuple[ErrorKind, BaseException]:
    """Return the kind of an error without a status, and the cause that shows it."""
    causes = [error]
    while (cause := causes[-1].__cause__) is not None:
        causes.append(cause)
    found = ((kind, one) for kind, types in _KINDS for one in causes if isinstance(one, types))
    return next(found, ("not_json", error))
