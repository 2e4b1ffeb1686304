"""HTTP without surprises: one address, bounded answers, nothing from the environment.

One session of aiohttp carries all requests; openai's client, for batches and embeddings, sends
through it as well. Each body is decoded and counted piece by piece, because a hostile server can
send gigabytes in kilobytes.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterable, AsyncIterator, Callable, Mapping
from functools import partial
from io import BytesIO
from ssl import SSLCertVerificationError
from typing import Any, NamedTuple, cast

from aiohttp import (
    ClientConnectorError,
    ClientError,
    ClientHttpProxyError,
    ClientPayloadError,
    ClientResponseError,
    ClientSession,
    ClientTimeout,
    ConnectionTimeoutError,
    DummyCookieJar,
    ThreadedResolver,
)
from openai import APIConnectionError, APIError, APIStatusError
from pydantic import SecretStr

from labeler.judges.openai.completion import response_error
from labeler.judges.openai.connections import CleanConnector, LentResponse
from labeler.judges.openai.error_rules import ErrorKind, ObservedError
from labeler.judges.openai.headers import retry_after
from labeler.judges.openai.reading import json_of
from labeler.judges.openai.server import Access, NoKey, Server
from labeler.version import __version__


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


class RequestFailed(Exception):
    """A request without a usable response; holds no part of the request.

    Attributes:
        observed: the error.
        headers: headers of the response, if there was one; names are case-insensitive.
        charged: True if the provider may have answered all the same.
    """

    def __init__(
        self, observed: ObservedError, headers: Mapping[str, str], *, charged: bool
    ) -> None:
        super().__init__(observed.kind)
        self.observed, self.headers, self.charged = observed, headers, charged


def failed_request(error: Exception) -> RequestFailed:
    """Describe one of :data:`WIRE_ERRORS`."""
    if isinstance(error, APIStatusError):
        response = error.response
        return _rejected(response.content, response.status_code, response.headers)
    kind, cause = _kind_of(error)
    status = cause.status if isinstance(cause, ClientHttpProxyError) else 0
    observed = ObservedError(kind, status=status, facts=str(cause) if kind == "no_key" else "")
    return RequestFailed(observed, {}, charged=kind not in _UNSENT)


def _rejected(body: bytes, status: int, headers: Mapping[str, str]) -> RequestFailed:
    """Describe a response with an error status."""
    after_work = status in AFTER_WORK or (status >= _GATEWAY_STATUSES and status != _OVERLOADED)
    observed = response_error(body, status, retry_after(headers))
    return RequestFailed(observed, headers, charged=after_work)


def _kind_of(error: BaseException) -> tuple[ErrorKind, BaseException]:
    """Return the kind of an error without a status, and the cause that shows it."""
    causes = [error]
    while (cause := causes[-1].__cause__) is not None:
        causes.append(cause)
    found = ((kind, one) for kind, types in _KINDS for one in causes if isinstance(one, types))
    return next(found, ("not_json", error))


LARGEST_BODY = 1 << 24
"""Bytes of a response at most, decompressed. A complete label takes kilobytes."""
LARGEST_FILE = 1 << 32
"""The same for a file of a batch's answers, which is written to disk as it arrives."""
MOST_CONTAINERS = 200_000
"""Brackets and braces that open in a response at most: each becomes an object of 60 bytes or
more, so that a body of 16 MB could become a gigabyte."""
_LONGEST_HEADER, _MOST_HEADERS = 8190, 128
"""Bytes of a header, and headers of a response, at most."""
_LARGE, _CHUNK = 1 << 18, 1 << 14
"""Bytes of a request that is not sent at once, and of a response that are read at once."""
_CONNECT_SECONDS = 10.0
_COMPRESSED = frozenset({"gzip", "deflate"})
_ENCODINGS = _COMPRESSED | {"", "identity"}
"""Encodings that are decoded piece by piece; several layers of them are rejected."""
_SLICE = 1 << 10
"""Compressed bytes that are decoded at once: at most 1 MB of content."""
_GZIP = b"\x1f\x8b"
"""The first bytes of a member of gzip."""
_HEADERS = frozenset({8, 15})
"""Low halves of the first byte of the headers of zlib and gzip; deflate without one has others."""
_ANY_HEADER = zlib.MAX_WBITS | 32
"""Asks zlib to read the header of gzip or its own."""


class Answer(NamedTuple):
    """A response with a status of success, read to its end."""

    content: bytes
    headers: Mapping[str, str]
    """Names are case-insensitive."""
    spoil: Callable[[], object]
    """Closes the connection, on which more may come."""


class Sender:
    """Sends requests to one server, on one event loop; connects when it is used first.

    Args:
        server: address, credentials and the network before it.
        timeout: seconds for one request, from connecting to the last byte.
        key: header that holds the key, in lower case, and what stands before the key.
        headers: further headers of each request.
    """

    def __init__(
        self,
        server: Server,
        timeout: float,
        key: tuple[str, str] = ("authorization", "Bearer "),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._server, self._timeout = server, timeout
        self._access = Access(server.key, server.headers, *key)
        self._headers = {
            "accept": "application/json",
            "accept-encoding": "gzip, deflate",
            "user-agent": f"rag-labeler/{__version__}",
            **server.account,
            **(headers or {}),
        }
        self._opened: ClientSession | None = None

    async def send(self, method: str, url: str, content: bytes | None = None) -> Answer:
        """Send a request, which is not repeated, and read the answer up to the limits of a body.

        Raises:
            RequestFailed: there is no response with a status of success.
        """
        headers = {} if content is None else {"content-type": "application/json"}
        try:
            # The session's own limits of time restart with every byte; this one does not.
            async with asyncio.timeout(self._timeout):
                response = await self.open(method, url, headers, content)
                async with response:
                    found = await content_of(response)
        except WIRE_ERRORS as error:
            failed = failed_request(error)
        else:
            if response.is_success:
                return Answer(found, response.headers, response.spoil)
            failed = _rejected(found, response.status, response.headers)
        # Raised here, so that no exception that holds the key or documents is chained to it.
        raise failed

    async def open(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        content: bytes | AsyncIterable[bytes] | None,
    ) -> LentResponse:
        """Send a request, once more if its key had expired; the body of the answer is not read.

        Raises:
            Exception: one of :data:`WIRE_ERRORS`.
        """
        # aiohttp sends a file piece by piece, and so lets others send meanwhile.
        is_large = isinstance(content, bytes) and len(content) >= _LARGE
        session, proxy, access = self._session(), self._server.proxy, self._access
        key: SecretStr | None = await access.first_key()
        while True:
            response = await session.request(
                method,
                url,
                headers={**self._headers, **headers, **access.headers(key)},
                data=BytesIO(cast("bytes", content)) if is_large else content,
                params=self._server.query or None,
                allow_redirects=False,
                proxy=proxy.url if proxy else None,
                proxy_headers=proxy.headers if proxy else None,
            )
            lent = cast("LentResponse", response)
            newer = await access.newer_key(key, lent.status, partial(content_of, lent))
            if newer is None:
                access.settle(key, is_accepted=lent.is_success)
                return lent
            lent.spoil()
            lent.release()
            key = newer

    async def aclose(self) -> None:
        """Close all connections."""
        opened, self._opened = self._opened, None
        if opened is not None:
            await opened.close()

    def _session(self) -> ClientSession:
        if self._opened is None:
            connect = min(_CONNECT_SECONDS, self._timeout)
            self._opened = ClientSession(
                # The run's pace limits the connections.
                connector=CleanConnector(
                    ssl=self._server.context, limit=0, resolver=ThreadedResolver()
                ),
                response_class=LentResponse,
                cookie_jar=DummyCookieJar(),
                trust_env=False,
                auto_decompress=False,
                timeout=ClientTimeout(sock_connect=connect, sock_read=self._timeout),
                max_line_size=_LONGEST_HEADER,
                max_field_size=_LONGEST_HEADER,
                max_headers=_MOST_HEADERS,
            )
        return self._opened


async def content_of(response: LentResponse) -> bytes:
    """Return the decoded body of a response, up to the limits of a body.

    A body whose end is lost or damaged counts if it begins with a complete JSON value.

    Raises:
        Exception: one of :data:`WIRE_ERRORS`.
    """
    if response.whole is None:
        pieces = list[bytes]()
        try:
            async for piece in limited(response, LARGEST_BODY):
                pieces.append(piece)
        except (ClientPayloadError, DamagedBody):
            if json_of(b"".join(pieces)) is None:
                raise
            response.spoil()
        response.whole = b"".join(pieces)
    return response.whole


async def limited(response: LentResponse, limit: int) -> AsyncIterator[bytes]:
    """Yield the decoded pieces of a body, up to a number of bytes.

    Raises:
        OversizedBody: it has more, or more containers than a body may have.
        DamagedBody: it cannot be decoded.
    """
    size = containers = 0
    encoding = ", ".join(response.headers.getall("content-encoding", ()))
    async for piece in _decoded(response.content.iter_chunked(_CHUNK), encoding):
        size += len(piece)
        if limit == LARGEST_BODY:
            containers += piece.count(b"{") + piece.count(b"[")
        if size > limit or containers > MOST_CONTAINERS:
            raise OversizedBody("the body is over a limit")
        yield piece


async def _decoded(pieces: AsyncIterable[bytes], encoding: str) -> AsyncIterator[bytes]:
    """Yield the decoded pieces of a body; gzip may have several members, and padding after them."""
    name = encoding.strip().lower()
    if name not in _ENCODINGS:
        raise DamagedBody("the body has an encoding that was not asked for")
    member: Any = None
    async for piece in pieces:
        if name not in _COMPRESSED:
            yield piece
            continue
        for start in range(0, len(piece), _SLICE):
            rest = piece[start : start + _SLICE]
            while rest and (member is None or not member.eof or _GZIP.startswith(rest[:2])):
                if member is None or member.eof:
                    has_header = rest[0] & 15 in _HEADERS
                    member = zlib.decompressobj(_ANY_HEADER if has_header else -zlib.MAX_WBITS)
                try:
                    yield member.decompress(rest)
                except zlib.error as error:
                    raise DamagedBody(str(error)) from None
                rest = member.unused_data
    if member is not None and not member.eof:
        raise DamagedBody("the body ends before its encoding does")
