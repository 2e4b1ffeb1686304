"""HTTP without surprises: one address, bounded answers, nothing from the environment.

openai's aiohttp transport takes less processor time than its default. Chat completions go straight
to its session, which takes least. Each body is decoded and counted piece by piece, because a
hostile server can send gigabytes in kilobytes.
"""

from __future__ import annotations

import ssl
import zlib
from collections.abc import AsyncIterable, AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from typing import Any, NamedTuple, cast

from aiohttp import (
    ClientPayloadError,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
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
from openai._vendor.httpx_aiohttp.transport import AiohttpTransport

from labeler.errors import UsageError
from labeler.judges.openai.body import has_value
from labeler.judges.openai.connections import CleanConnector, LentResponse
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
_PIECE, _CHUNK = 1 << 18, 1 << 14
"""Bytes of a request that are sent at once, and of a response that are read at once."""
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
_REPLACED = frozenset({b"content-encoding", b"content-length", b"set-cookie"})
"""Headers that do not hold for a decoded body, or that would be sent back."""


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
        return Response(
            response.status_code,
            headers=[pair for pair in response.headers.raw if pair[0].lower() not in _REPLACED],
            stream=_LimitedStream(response),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        """Close all connections."""
        await self._inner.aclose()


class ReadResponse(NamedTuple):
    """A complete response with its decoded body."""

    status_code: int
    headers: Mapping[str, str]
    """Names are case-insensitive."""
    content: bytes
    spoil: Callable[[], object] = lambda: None
    """Closes the connection, on which more may come."""

    @property
    def is_success(self) -> bool:
        """True for a status from 200 to 299."""
        return HTTPStatus.OK <= self.status_code < HTTPStatus.MULTIPLE_CHOICES

    async def aread(self) -> bytes:
        """Return the body."""
        return self.content

    def to(self, request: Request) -> Response:
        """Return it as a response of an HTTP client, with the standard reason phrase."""
        pairs = [(name.lower().encode(), value) for name, value in self.headers.items()]
        kept = [(n, v.encode(errors="surrogateescape")) for n, v in pairs if n not in _REPLACED]
        return Response(self.status_code, headers=kept, content=self.content, request=request)


class Posts:
    """Posts bodies through the connections of a transport.

    An HTTP client takes more time than the request itself: it copies headers and address several
    times, and reads the body through five generators.

    Args:
        connections: open connections, and the proxy.
        timeout: as for :func:`open_http`.
    """

    def __init__(self, connections: AiohttpTransport, timeout: float) -> None:
        proxy, limits = connections.proxy, _limits(timeout)
        self._connections = connections
        self._settings: Any = {
            "allow_redirects": False,
            "auto_decompress": False,
            "timeout": ClientTimeout(
                sock_connect=limits.connect, sock_read=limits.read, connect=limits.pool
            ),
            "proxy": str(proxy.url) if proxy else None,
            "proxy_headers": proxy.headers if proxy else None,
        }

    async def post(self, url: str, headers: Mapping[str, str], content: bytes) -> ReadResponse:
        """Post a body; read the whole response, up to the limits of a body."""
        data: bytes | _Pieces = content
        if len(content) >= _PIECE:
            data, headers = _Pieces(content), {**headers, "content-length": str(len(content))}
        session = self._connections.client
        if not isinstance(session, ClientSession):
            session = self._connections.client = self._connections.get_client()
        async with session.post(url, headers=headers, data=data, **self._settings) as response:
            encoding = ", ".join(response.headers.getall("content-encoding", ()))
            spoil = cast("LentResponse", response).spoil
            pieces = []
            try:
                arriving = response.content.iter_chunked(_CHUNK)
                async for piece in _limited(arriving, encoding, LARGEST_BODY):
                    pieces.append(piece)  # noqa: PERF401 - they are kept if the next one is missing
            except (ClientPayloadError, DecodingError):
                if not has_value(b"".join(pieces)):
                    raise
                spoil()
            return ReadResponse(response.status, response.headers, b"".join(pieces), spoil)


async def _decoded(pieces: AsyncIterable[bytes], encoding: str) -> AsyncIterator[bytes]:
    """Yield the decoded pieces of a body; gzip may have several members, and padding after them.

    Raises:
        DecodingError: it has an encoding that was not asked for, or cannot be decoded.
    """
    name = encoding.strip().lower()
    if name not in _ENCODINGS:
        raise DecodingError("the body has an encoding that was not asked for")
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
                    raise DecodingError(str(error)) from None
                rest = member.unused_data
    if member is not None and not member.eof:
        raise DecodingError("the body ends before its encoding does")


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
        is_file = response.is_success and response.request.url.path.endswith("/content")
        self._limit = LARGEST_FILE if is_file else LARGEST_BODY

    async def __aiter__(self) -> AsyncIterator[bytes]:
        encoding = self._response.headers.get("content-encoding", "")
        async for piece in _limited(self._response.aiter_raw(), encoding, self._limit):
            yield piece

    async def aclose(self) -> None:
        await self._response.aclose()


async def _limited(pieces: AsyncIterable[bytes], encoding: str, limit: int) -> AsyncIterator[bytes]:
    """Yield the decoded pieces of a body, up to its limits."""
    size = containers = 0
    async for piece in _decoded(pieces, encoding):
        size += len(piece)
        if limit == LARGEST_BODY:
            containers += piece.count(b"{") + piece.count(b"[")
        if size > limit or containers > MOST_CONTAINERS:
            raise OversizedBody("the body is over a limit")
        yield piece


def open_connections(context: ssl.SSLContext, proxy: Proxy | None = None) -> AiohttpTransport:
    """Return a transport that connects when it is used first, on the event loop that uses it.

    Args:
        context: the trusted certificates (:func:`certificates`).
        proxy: by default, connections are direct.
    """

    def session() -> ClientSession:
        opened = ClientSession(
            # Pace control limits the connections.
            connector=CleanConnector(ssl=context, limit=0, resolver=ThreadedResolver()),
            response_class=LentResponse,
            cookie_jar=DummyCookieJar(),
            trust_env=False,
            max_line_size=_LONGEST_HEADER,
            max_field_size=_LONGEST_HEADER,
            max_headers=_MOST_HEADERS,
        )
        opened._retry_connection = False  # noqa: SLF001 - tenacity is the only retry layer
        return opened

    return AiohttpTransport(verify=context, client=session, proxy=_http_proxy(proxy))


def open_http(connections: AiohttpTransport, timeout: float, auth: Auth) -> AsyncClient:
    """Open an HTTP client.

    Args:
        connections: closed with the client.
        timeout: seconds between two pieces of a response; a part of it is for connecting.
        auth: adds credentials to each request.
    """
    return AsyncClient(
        transport=LimitedTransport(connections),
        auth=auth,
        headers={"accept-encoding": "gzip, deflate"},
        follow_redirects=False,
        trust_env=False,
        timeout=_limits(timeout),
    )


def _limits(timeout: float) -> Timeout:
    return Timeout(timeout, connect=min(_CONNECT_SECONDS, timeout))


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
