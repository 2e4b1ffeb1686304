"""HTTP without surprises: one address, bounded answers, nothing from the environment.

One session of aiohttp carries all requests; openai's client, for batches and embeddings, sends
through it as well.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Mapping
from io import BytesIO
from ssl import SSLCertVerificationError
from types import MappingProxyType
from typing import cast

from aiohttp import (
    ClientConnectorError,
    ClientError,
    ClientHttpProxyError,
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
from labeler.judges.openai.connections import (
    CleanConnector,
    DamagedBody,
    LentResponse,
    OversizedBody,
)
from labeler.judges.openai.error_rules import AttemptFailed, ErrorKind, ObservedError
from labeler.judges.openai.headers import retry_after
from labeler.judges.openai.server import Access, NoKey, Server
from labeler.version import __version__

_KINDS: tuple[tuple[ErrorKind, tuple[type[Exception], ...]], ...] = (
    ("no_key", (NoKey,)),
    ("proxy", (ClientHttpProxyError,)),
    ("oversized", (OversizedBody,)),
    ("untrusted", (SSLCertVerificationError,)),
    ("unconnected", (ClientConnectorError, ConnectionTimeoutError)),
    ("timeout", (TimeoutError,)),
    ("garbled", (ClientResponseError, DamagedBody)),
    ("connection", (APIConnectionError, ClientError, OSError, EOFError)),
    # No JSON, no UTF-8, a number with more digits than Python parses, too deep a nesting.
    ("not_json", (APIError, ValueError, RecursionError)),
)
"""Kinds of errors without a status, by the errors that they were raised from; the first counts."""
WIRE_ERRORS = tuple(error for _, errors in _KINDS for error in errors)
"""The errors of one request that are not bugs of this package."""
_UNSENT = frozenset({"no_key", "proxy", "untrusted", "unconnected"})
"""Kinds after which the server has seen nothing of the request."""
_AFTER_WORK = frozenset({408, 500, 502, 504}) | set(range(520, 1000)) - {529}
"""Statuses that a provider may send although it has answered, those of gateways among them; a
server without capacity, 529, has worked on nothing."""
_LONGEST_HEADER, _MOST_HEADERS = 8190, 128
"""Bytes of a header, and headers of a response, at most."""
_LARGE = 1 << 18
"""Bytes of a request that is not sent at once."""
_CONNECT_SECONDS = 10.0


def failed_request(error: Exception) -> AttemptFailed:
    """Describe one of :data:`WIRE_ERRORS`; holds no part of the request."""
    if isinstance(error, APIStatusError):
        response = error.response
        return _rejected(response.content, response.status_code, response.headers)
    causes: list[BaseException] = [error]
    while (cause := causes[-1].__cause__) is not None:
        causes.append(cause)
    kind, cause = next(
        (kind, one) for kind, types in _KINDS for one in causes if isinstance(one, types)
    )
    status = cause.status if isinstance(cause, ClientHttpProxyError) else 0
    observed = ObservedError(kind, status=status, facts=str(cause) if kind == "no_key" else "")
    return AttemptFailed(observed, charged=kind not in _UNSENT)


def _rejected(body: bytes, status: int, headers: Mapping[str, str]) -> AttemptFailed:
    """Describe a response with an error status."""
    observed = response_error(body, status, retry_after(headers))
    return AttemptFailed(observed, headers=headers, charged=status in _AFTER_WORK)


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
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._server, self._timeout = server, timeout
        self._access = Access(server, *key)
        self._headers = {
            "accept": "application/json",
            "accept-encoding": "gzip, deflate",
            "user-agent": f"rag-labeler/{__version__}",
            **server.account,
            **headers,
        }
        self._opened: ClientSession | None = None

    async def send(self, method: str, url: str, content: bytes | None = None) -> LentResponse:
        """Send a request, which is not repeated, and read the answer up to the limits of a body.

        Raises:
            AttemptFailed: there is no response with a status of success.
        """
        headers = {} if content is None else {"content-type": "application/json"}
        try:
            # The session's own limits of time restart with every byte; this one does not.
            async with asyncio.timeout(self._timeout):
                response = await self.open(method, url, headers, content)
                async with response:
                    await response.read()
        except WIRE_ERRORS as error:
            failed = failed_request(error)
        else:
            if response.is_success:
                return response
            failed = _rejected(response.whole, response.status, response.headers)
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
            newer = await access.newer_key(key, lent)
            if newer is None:
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
