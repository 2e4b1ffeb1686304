"""HTTP without surprises: one address, bounded answers, nothing from the environment.

One session of aiohttp carries all requests; openai's client, for batches and embeddings, sends
through it as well. Each body is decoded and counted piece by piece, because a hostile server can
send gigabytes in kilobytes.

A connection is used again only if nothing arrived on it after its answer. An HTTP/1.1 answer does
not name its request: a doubled answer, or one that follows the server's own time-out, would be
taken for the answer to the next request on the connection.
"""

from __future__ import annotations

import asyncio
import math
import re
import zlib
from collections.abc import AsyncIterable, AsyncIterator, Iterator, Mapping
from functools import partial
from http import HTTPStatus
from io import BytesIO
from ssl import SSLCertVerificationError
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from aiohttp import (
    ClientConnectorError,
    ClientError,
    ClientHttpProxyError,
    ClientResponse,
    ClientResponseError,
    ClientSession,
    ClientTimeout,
    ConnectionTimeoutError,
    DummyCookieJar,
    TCPConnector,
    ThreadedResolver,
)
from openai import APIConnectionError, APIError, APIStatusError
from pydantic import SecretStr

from labeler.judges.limits import reset_after, retry_after
from labeler.judges.openai.error_rules import AttemptFailed, ErrorKind, ObservedError
from labeler.judges.openai.reading import begins_answer, json_of
from labeler.judges.openai.server import Access, NoKey, Server
from labeler.judges.openai.server_errors import response_error
from labeler.version import __version__

if TYPE_CHECKING:
    from aiohttp.client_proto import ResponseHandler
    from aiohttp.connector import Connection

_REST = 0.25
"""Seconds before a connection is used again, in which a doubled answer would arrive."""
_TURNS = 2
"""Turns of an event loop after which it has delivered all bytes that the system had received."""
_LONGEST_HEAD = 1 << 20
"""Bytes in which the end of the headers is looked for; the reader accepts fewer."""
_INTERIM = re.compile(rb"HTTP/1\.\d 1\d\d")
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d{1,18})[ \t]*(?:\r\n|$)", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding:", re.IGNORECASE)

LARGEST_BODY = 1 << 24
"""Bytes of a response at most, decompressed. A complete label takes kilobytes."""
LARGEST_FILE = 1 << 32
"""The same for a file of a batch's answers, which is written to disk as it arrives."""
MOST_CONTAINERS = 200_000
"""Brackets and braces that open in a response at most: each becomes an object of 60 bytes or
more, so that a body of 16 MB could become a gigabyte."""
_CHUNK = 1 << 14
"""Bytes of a response that are read at once."""
_ENCODINGS = frozenset({"", "identity", "gzip", "x-gzip", "deflate"})
"""Encodings that are decoded piece by piece; several layers of them are rejected. Gzip is known by
its first byte: proxies unpack it and leave the header, or drop the header."""
_SLICE = 1 << 10
"""Compressed bytes that are decoded at once: at most 1 MB of content."""
_PLAIN = re.compile(rb"\s*\{\s*\"")
"""Begin of a JSON object: some servers name an encoding that the body does not have."""
_GZIP = b"\x1f"
"""The first byte of gzip."""
_HEADERS = frozenset({8, 15})
"""Low halves of the first byte of the headers of zlib and gzip; deflate without one has others."""
_ANY_HEADER = zlib.MAX_WBITS | 32
"""Asks zlib to read the header of gzip or its own."""


class CleanConnector(TCPConnector):
    """Opens connections, and closes those on which anything arrives after their answer.

    After the first of them no connection is kept: later bytes may come too late to be noticed.
    """

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 - of the base
        super().__init__(**settings)
        self._resting: dict[Connection, asyncio.TimerHandle] = {}
        self.keeps = True

    async def connect(self, *args: Any, **kwargs: Any) -> Connection:  # noqa: ANN401 - of the base
        """Return a new connection, or one that has rested since its answer."""
        while True:
            connection, is_clean = await super().connect(*args, **kwargs), False
            try:
                for _ in range(_TURNS):
                    await asyncio.sleep(0)
                is_clean = _is_clean(connection)
            finally:  # a time-out may end this wait
                if not is_clean:
                    connection.close()
            if is_clean:
                transport: Any = connection.transport
                gate = transport.get_protocol()
                if not isinstance(gate, _Gate):
                    gate = _Gate(cast("ResponseHandler", gate), self)
                    transport.set_protocol(gate)
                gate.open()
                vars(connection)["release"] = partial(self._rest, connection, gate)
                return connection

    async def close(self, **kwargs: Any) -> None:  # noqa: ANN401 - of the base
        """Close all connections, resting ones too."""
        closed = []
        for connection, timer in self._resting.items():
            timer.cancel()
            protocol = cast("ResponseHandler", connection.protocol)
            closed.append(protocol.closed)
            protocol.abort()
            connection.close()
        self._resting.clear()
        await super().close(**kwargs)
        await asyncio.gather(*filter(None, closed), return_exceptions=True)

    def _rest(self, connection: Connection, gate: _Gate) -> None:
        """Keep a released connection from being used again for a while."""
        del vars(connection)["release"]
        if _is_clean(connection):
            gate.shut()
            loop = asyncio.get_running_loop()
            self._resting[connection] = loop.call_later(_REST, self._end_rest, connection)
        else:
            connection.close()

    def _end_rest(self, connection: Connection) -> None:
        del self._resting[connection]
        if self.keeps and _is_clean(connection):
            connection.release()
        else:
            connection.close()


class OversizedBody(Exception):
    """A response over a limit; the rest of it was not read."""


class DamagedBody(Exception):
    """A body in an encoding that was not asked for, or that cannot be decoded."""


class LentResponse(ClientResponse):
    """A response that closes its connection unless its status is one of success.

    Attributes:
        whole: its decoded body in UTF-8, as far as :meth:`read` has come.
    """

    whole = b""
    _is_read = False

    @property
    def is_success(self) -> bool:
        """True for a status from 200 to 299."""
        return HTTPStatus.OK <= self.status < HTTPStatus.MULTIPLE_CHOICES

    async def start(self, connection: Connection) -> ClientResponse:
        """Read status and headers."""
        self._reader = connection.protocol
        await super().start(connection)
        if not self.is_success:
            self.spoil()
        return self

    def spoil(self) -> None:
        """Never use the connection again: more may come on it."""
        if self._reader is not None:
            self._reader.force_close()

    async def read(self) -> bytes:
        """Return the decoded body in UTF-8, up to the limits of a body.

        A body whose end is lost or damaged counts if it suffices, see :meth:`keep`.

        Raises:
            OversizedBody: as for :meth:`pieces`.
            DamagedBody: the same.
        """
        pieces = list[bytes]()
        try:
            try:
                async for piece in self.pieces(LARGEST_BODY):
                    pieces.append(piece)
            finally:  # also if time is up
                self.whole = b"".join(pieces)
        except (ClientError, OSError, DamagedBody):
            if not self.keep():
                if begins_answer(self.whole):  # its sender had finished it, and was paid
                    raise DamagedBody("the body breaks off") from None
                raise
        self._is_read = True
        return self.whole

    def keep(self) -> bool:
        """Return True if what was read suffices: a complete JSON value, or any error's status."""
        self.spoil()
        return not self.is_success or json_of(self.whole) is not None

    async def pieces(self, limit: int) -> AsyncIterator[bytes]:
        """Yield the decoded pieces of the body, up to a number of bytes.

        Raises:
            OversizedBody: it has more, or more containers than a body may have.
            DamagedBody: it cannot be decoded.
        """
        if self._is_read:
            yield self.whole
            return
        size = containers = 0
        unpacker, is_first = None, True
        async for received in self.content.iter_chunked(_CHUNK):
            if is_first:
                unpacker, is_first = self._unpacker(received), False
            for piece in _unpacked(unpacker, received) if unpacker else (received,):
                size += len(piece)
                if limit == LARGEST_BODY:
                    containers += piece.count(b"{") + piece.count(b"[")
                if size > limit or containers > MOST_CONTAINERS:
                    raise OversizedBody("the body is over a limit")
                yield piece
        if unpacker is not None and not unpacker.eof:
            raise DamagedBody("the body ends before its encoding does")

    def _unpacker(self, first: bytes) -> Any:  # noqa: ANN401 - zlib's type has no name
        """Return what decodes a body with a first piece; ``None`` if it is plain."""
        name = ", ".join(self.headers.getall("content-encoding", ())).strip().lower()
        is_plain = _PLAIN.match(first) is not None
        if name not in _ENCODINGS and not is_plain:
            raise DamagedBody("the body has an encoding that was not asked for")
        if is_plain or not (name == "deflate" or first[:1] == _GZIP):
            return None
        has_header = first[0] & 15 in _HEADERS
        return zlib.decompressobj(_ANY_HEADER if has_header else -zlib.MAX_WBITS)


def _unpacked(unpacker: Any, packed: bytes) -> Iterator[bytes]:  # noqa: ANN401 - as above
    """Yield the decoded slices of a piece, without what follows the end of its encoding."""
    for start in range(0, len(packed), _SLICE):
        if unpacker.eof:  # it would keep all that follows
            break
        try:
            yield unpacker.decompress(packed[start : start + _SLICE])
        except zlib.error as error:
            raise DamagedBody(str(error)) from None


class _Gate(asyncio.Protocol):
    """Passes one answer on to its reader, up to the length that its headers state.

    The reader would discard an answer with the bytes after it.
    """

    def __init__(self, reader: ResponseHandler, connector: CleanConnector) -> None:
        self._reader, self._connector = reader, connector
        for name in ("pause_writing", "resume_writing", "eof_received", "connection_lost"):
            setattr(self, name, getattr(reader, name))

    def open(self) -> None:
        """Let the next answer pass."""
        self._head = b""
        self._left: float | None = None

    def shut(self) -> None:
        """Let nothing pass."""
        self._left = 0

    def data_received(self, data: bytes) -> None:
        """Pass on what belongs to the answer."""
        if self._left is None:
            self._head += data
            self._left = _left_after(self._head)
        else:
            self._left -= len(data)
        excess = -int(min(0, self._left or 0))
        if excess:
            self._connector.keeps = False
            self._reader.force_close()
        self._reader.data_received(data[: max(0, len(data) - excess)])


def _left_after(received: bytes) -> float | None:
    """Return the bytes of an answer that are to come, negative for bytes after it.

    Args:
        received: the answer from its first byte on.

    Returns:
        Infinity if no length is stated; ``None`` before the end of the headers.
    """
    head, end, body = received.partition(b"\r\n\r\n")
    while end and _INTERIM.match(head):
        head, end, body = body.partition(b"\r\n\r\n")
    if not end:
        return math.inf if len(received) > _LONGEST_HEAD else None
    length = None if _CHUNKED.search(head) else _LENGTH.search(head)
    return int(length[1]) - len(body) if length else math.inf


def _is_clean(connection: Connection) -> bool:
    """Return True if a connection is open, and its reader has no bytes left."""
    reader = connection.protocol
    return reader is not None and reader.is_connected() and not reader.should_close


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
_AFTER_WORK = frozenset({408, 424, 499, 500, 502, 504}) | set(range(520, 1000)) - {529}
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
    why = getattr(cause, "certificate_error", cause)  # aiohttp's error holds ssl's
    facts = str(cause) if kind == "no_key" else getattr(why, "verify_message", "").rstrip(".")
    observed = ObservedError(kind, status=status, facts=facts)
    return AttemptFailed(observed, charged=kind not in _UNSENT)


def _rejected(body: bytes, status: int, headers: Mapping[str, str]) -> AttemptFailed:
    """Describe a response with an error status."""
    wait = retry_after(headers)
    if wait is None and status == HTTPStatus.TOO_MANY_REQUESTS:
        wait = reset_after(headers)
    observed = response_error(body, status, wait)
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
        connect = min(_CONNECT_SECONDS, timeout)
        self._connecting = ClientTimeout(sock_connect=connect)
        self._reading = ClientTimeout(sock_connect=connect, sock_read=timeout)
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
        response: LentResponse | None = None
        failed: AttemptFailed | None = None
        try:
            async with asyncio.timeout(self._timeout):
                response = await self.open(method, url, headers, content, is_timed=True)
                async with response:
                    await response.read()
        except WIRE_ERRORS as error:
            failed = failed_request(error)
        # An answer is paid for, also if its end is lost, damaged or late.
        if response is not None and (failed is None or response.keep()):
            if response.is_success:
                return response
            failed = _rejected(response.whole, response.status, response.headers)
        elif response and failed and failed.observed.kind == "timeout":
            began = begins_answer(response.whole)  # the model was writing it
            failed = AttemptFailed(ObservedError("late")) if began else failed
        # Raised here, so that no exception that holds the key or documents is chained to it.
        raise cast("AttemptFailed", failed)

    async def open(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        content: bytes | AsyncIterable[bytes] | None,
        *,
        is_timed: bool = False,
    ) -> LentResponse:
        """Send a request, once more if its key had expired; the body of the answer is not read.

        The time limit holds between two pieces of the answer, unless the caller sees to it
        (``is_timed``).

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
                timeout=self._connecting if is_timed else self._reading,
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
            self._opened = ClientSession(
                # The run's pace limits the connections.
                connector=CleanConnector(
                    ssl=self._server.context, limit=0, resolver=ThreadedResolver()
                ),
                response_class=LentResponse,
                cookie_jar=DummyCookieJar(),
                trust_env=False,
                auto_decompress=False,
                max_line_size=_LONGEST_HEADER,
                max_field_size=_LONGEST_HEADER,
                max_headers=_MOST_HEADERS,
            )
        return self._opened
