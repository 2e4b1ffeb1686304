"""HTTP without surprises: one address, bounded answers, nothing from the environment.

openai's aiohttp transport takes less processor time than its default. It is used below a layer that
decodes and counts each body, because a hostile server can send gigabytes in kilobytes.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from functools import cache

from aiohttp import (
    ClientConnectorError,
    ClientHttpProxyError,
    ClientSession,
    ConnectionTimeoutError,
    DummyCookieJar,
    TCPConnector,
    ThreadedResolver,
    encode_basic_auth,
)
from httpx2 import (
    AsyncBaseTransport,
    AsyncByteStream,
    AsyncClient,
    Auth,
    DecodingError,
    Request,
    RequestNotRead,
    Response,
    Timeout,
    TransportError,
    create_ssl_context,
)
from httpx2 import Proxy as HttpProxy
from openai._vendor.httpx_aiohttp import AiohttpTransport

from labeler.errors import UsageError
from labeler.judges.openai.access import NoKey
from labeler.judges.openai.masking import remember_key
from labeler.judges.openai.network import Proxy

LARGEST_BODY = 1 << 24
"""Bytes of a response at most, decompressed. A complete label takes kilobytes."""
LARGEST_FILE = 1 << 32
"""The same for a file of a batch's answers, which is written to disk as it arrives."""
MOST_CONTAINERS = 200_000
"""Brackets and braces that open in a response at most: each becomes an object of 60 bytes or
more, so that a body of 16 MB could become a gigabyte."""
_LONGEST_HEADER, _MOST_HEADERS = 8190, 128
"""Bytes of a header, and headers of a response, at most."""
_PIECE = 1 << 18
"""Bytes of a request that are sent at once."""
_CONNECT_SECONDS = 10.0
_ENCODINGS = frozenset({"", "identity", "gzip", "deflate"})
"""Encodings that are decoded piece by piece; several layers of them are rejected."""
_REPLACED = frozenset({b"content-encoding", b"content-length", b"set-cookie"})
"""Headers that do not hold for a decoded body, or that would be sent back."""
_NO_CONNECTION = (ClientConnectorError, ConnectionTimeoutError, ClientHttpProxyError)


class OversizedBody(TransportError):
    """A response over a limit; the rest of it was not read."""


class LimitedTransport(AsyncBaseTransport):
    """Decodes the responses of another transport, up to a limit."""

    def __init__(self, inner: AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: Request) -> Response:
        """Send a request; the body of its response is read later, piece by piece."""
        response = await self._inner.handle_async_request(_in_pieces(request))
        response.request = request
        if response.headers.get("content-encoding", "").strip().lower() not in _ENCODINGS:
            await response.aclose()
            raise DecodingError("the body has an encoding that was not asked for", request=request)
        return Response(
            response.status_code,
            headers=[pair for pair in response.headers.raw if pair[0].lower() not in _REPLACED],
            stream=_LimitedStream(response),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        """Close all connections."""
        await self._inner.aclose()


def _in_pieces(request: Request) -> Request:
    """Return a request whose large body is sent in pieces, so that no other request waits for it.

    aiohttp warns of a large body in one piece, and where warnings are errors, fails.
    """
    try:
        content = request.content
    except RequestNotRead:
        return request
    if len(content) < _PIECE:
        return request
    return Request(
        request.method,
        request.url,
        headers=request.headers,
        stream=_Pieces(content),
        extensions=request.extensions,
    )


@dataclass(frozen=True)
class _Pieces(AsyncByteStream):
    """A body in memory."""

    content: bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for start in range(0, len(self.content), _PIECE):
            yield self.content[start : start + _PIECE]


class _LimitedStream(AsyncByteStream):
    """The decoded body of a response."""

    def __init__(self, response: Response) -> None:
        self._response = response
        self._is_file = response.is_success and response.request.url.path.endswith("/content")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        limit = LARGEST_FILE if self._is_file else LARGEST_BODY
        size = containers = 0
        async for piece in self._response.aiter_bytes():
            size += len(piece)
            containers += 0 if self._is_file else piece.count(b"{") + piece.count(b"[")
            if size > limit or containers > MOST_CONTAINERS:
                raise OversizedBody("the body is over a limit", request=self._response.request)
            yield piece

    async def aclose(self) -> None:
        await self._response.aclose()


def open_http(
    timeout: float, context: ssl.SSLContext, *, proxy: Proxy | None = None, auth: Auth | None = None
) -> AsyncClient:
    """Open an HTTP client on the running event loop.

    Args:
        timeout: seconds between two pieces of a response; a part of it is for connecting.
        context: the trusted certificates (:func:`certificates`).
        proxy: by default, connections are direct.
        auth: adds credentials to each request.
    """

    def session() -> ClientSession:
        opened = ClientSession(
            # Traffic control limits the connections.
            connector=TCPConnector(ssl=context, limit=0, resolver=ThreadedResolver()),
            cookie_jar=DummyCookieJar(),
            trust_env=False,
            max_line_size=_LONGEST_HEADER,
            max_field_size=_LONGEST_HEADER,
            max_headers=_MOST_HEADERS,
        )
        opened._retry_connection = False  # noqa: SLF001 - tenacity is the only retry layer
        return opened

    return AsyncClient(
        transport=LimitedTransport(
            AiohttpTransport(verify=context, client=session, proxy=_http_proxy(proxy))
        ),
        auth=auth,
        headers={"accept-encoding": "gzip, deflate"},
        follow_redirects=False,
        trust_env=False,
        timeout=Timeout(timeout, connect=min(_CONNECT_SECONDS, timeout)),
    )


def _http_proxy(proxy: Proxy | None) -> HttpProxy | None:
    if proxy is None:
        return None
    if not proxy.user and not proxy.password:
        return HttpProxy(proxy.url)
    credentials = encode_basic_auth(proxy.user, proxy.password)
    remember_key(proxy.password)
    remember_key(credentials.removeprefix("Basic "))
    # aiohttp sends it as Proxy-Authorization, and to the proxy alone.
    return HttpProxy(proxy.url, headers={"authorization": credentials})


@cache
def certificates(plain: bool, ca_file: str | None = None) -> ssl.SSLContext:
    """Return the trusted certificates, read once because that is the slowest part of a client.

    Args:
        plain: true if nothing is encrypted; then no certificate is trusted.
        ca_file: PEM file of further authorities.

    Raises:
        UsageError: the file cannot be read, or holds no certificate.
    """
    context = (
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if plain else create_ssl_context(trust_env=False)
    )
    if ca_file is not None:
        try:
            context.load_verify_locations(ca_file)
        except OSError as error:  # ssl.SSLError among them
            fault = "holds no certificate" if isinstance(error, ssl.SSLError) else error.strerror
            raise UsageError(
                f"--ca-file {ca_file}: {fault}; give a PEM file with the certificate of the "
                "authority, which begins with -----BEGIN CERTIFICATE-----"
            ) from None
    return context


def is_unconnected(error: BaseException) -> bool:
    """Return true if no connection was made, so that the server saw nothing of the request.

    The transport's own classes do not show it: each of these is a timeout.
    """
    return any(isinstance(cause, _NO_CONNECTION) for cause in causes(error))


def refused_by_proxy(error: BaseException) -> int | None:
    """Return the status with which a proxy rejected the connection, if it did."""
    refusals = (cause for cause in causes(error) if isinstance(cause, ClientHttpProxyError))
    return next((refusal.status for refusal in refusals), None)


def is_untrusted(error: BaseException) -> bool:
    """Return true if no connection was made because the server's certificate is not trusted."""
    return any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes(error))


def missing_key(error: BaseException) -> NoKey | None:
    """Return why there was no key to send, if that is the cause of an error."""
    return next((cause for cause in causes(error) if isinstance(cause, NoKey)), None)


def is_timeout(error: BaseException) -> bool:
    """Return true if a time limit passed."""
    return any(isinstance(cause, TimeoutError) for cause in causes(error))


def is_oversized(error: BaseException) -> bool:
    """Return true if a response was over a limit."""
    return any(isinstance(cause, OversizedBody) for cause in causes(error))


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and those that it was raised from."""
    while error is not None:
        yield error
        error = error.__cause__
