"""How an answer leaves: over a connection, well or badly, or onto a sheet of a batch."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext
from http.client import responses
from urllib.parse import parse_qsl

from wire.accounts import Accounts
from wire.calls import Call, Json

Answerer = Callable[[Call, "Wire"], Awaitable[None]]


class Wire:
    """Where an answer goes, and what a behavior can do with it.

    By itself it takes an answer that goes over no connection: a line of a batch, or one that is
    lost.

    Args:
        accounts: what the provider charges.
        is_charged: whether answers that go here are charged.
    """

    def __init__(self, accounts: Accounts, *, is_charged: bool = True) -> None:
        self.accounts, self._is_charged = accounts, is_charged
        self.open = True
        """Whether another request may come."""
        self.extra_headers: Mapping[str, str] = {}
        """Headers of every response to the present call."""
        self.status: int | None = None
        """``None`` until, and unless, a whole response was kept."""
        self.body = b""

    async def respond(
        self, status: int, body: bytes, headers: Mapping[str, str] | None = None, gap: float = 0
    ) -> None:
        """Send a complete response; with a gap, its body a byte at a time, with pauses."""
        del headers, gap
        self.status, self.body = status, body

    async def half(self, status: int, body: bytes) -> None:
        """Promise a body, send half of it, close."""

    async def pause(self, seconds: float) -> None:
        """Let time pass."""

    async def gone(self) -> None:
        """Wait until nobody waits for the answer any more."""

    def close(self) -> None:
        """Close in good order."""

    def reset(self) -> None:
        """Drop the connection so that the peer gets a reset."""

    async def json(
        self, status: int, value: object, headers: Mapping[str, str] | None = None
    ) -> None:
        """Send a complete JSON response."""
        await self.respond(status, json.dumps(value).encode(), headers)

    async def complete(self, call: Call, value: Json, gap: float = 0) -> None:
        """Send a completion, a byte at a time if a gap is given, and charge for it."""
        with self.accounts.charging(call, value) if self._is_charged else nullcontext():
            await self.respond(200, json.dumps(value).encode(), gap=gap)


class Connection(Wire, asyncio.StreamReaderProtocol):
    """One HTTP connection, seen from the server; it knows at once when the peer leaves."""

    def __init__(self, accounts: Accounts, answer: Answerer, number: Callable[[], int]) -> None:
        Wire.__init__(self, accounts)
        asyncio.StreamReaderProtocol.__init__(self, asyncio.StreamReader(), self._begin)
        self._answer = answer
        self._number = number
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the connection is gone."""

    def _begin(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve; a buffer without depth makes "sent" mean handed over to the system."""
        self._writer = writer
        self.transport = writer.transport
        self.transport.set_write_buffer_limits(high=0)
        self._serving = asyncio.get_running_loop().create_task(self._serve(reader))

    async def _serve(self, reader: asyncio.StreamReader) -> None:
        try:
            while self.open and (call := await self._read(reader)):
                await self._answer(call, self)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the peer has gone
        finally:
            self.close()

    async def _read(self, reader: asyncio.StreamReader) -> Call | None:
        """The next request; ``None`` if it is not HTTP as we read it."""
        head = await reader.readuntil(b"\r\n\r\n")
        try:
            method, target, headers = _parse_head(head[:-4])
        except ValueError:
            return None
        raw = await reader.readexactly(int(headers.get("content-length", "0")))
        path, _, query = target.partition("?")
        return Call(self._number(), method, path, headers, raw, dict(parse_qsl(query)))

    def eof_received(self) -> bool:
        """Take the end of what a peer sends for its leave."""
        super().eof_received()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """End what was being answered: nobody waits for it."""
        super().connection_lost(exc)
        self.open = False
        if not self.lost.done():
            self.lost.set_result(None)
        self._serving.cancel()

    # What behaviors do

    async def send(self, data: bytes) -> None:
        """Hand bytes over to the system as they are."""
        self.transport.write(data)
        await self._writer.drain()
        if self.transport.is_closing():
            raise ConnectionResetError

    async def respond(
        self, status: int, body: bytes, headers: Mapping[str, str] | None = None, gap: float = 0
    ) -> None:
        """Send a complete response; with a gap, its body a byte at a time, with pauses."""
        await self.send(self.head(status, len(body), headers) + (b"" if gap else body))
        for byte in body if gap else b"":
            await self.send(bytes([byte]))
            await asyncio.sleep(gap)

    async def half(self, status: int, body: bytes) -> None:
        """Promise a body, send half of it, close."""
        await self.send(self.head(status, len(body)) + body[: len(body) // 2])
        self.close()

    def head(self, status: int, length: int, headers: Mapping[str, str] | None = None) -> bytes:
        """A response's status line and headers."""
        lines = {
            "content-type": "application/json",
            "x-request-id": "req_stub",
            **self.extra_headers,
            **(headers or {}),
            "content-length": str(length),
        }
        text = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        return f"HTTP/1.1 {status} {responses.get(status, 'Unknown')}\r\n{text}\r\n".encode(
            "latin-1"
        )

    async def pause(self, seconds: float) -> None:
        """Let time pass."""
        await asyncio.sleep(seconds)

    async def gone(self) -> None:
        """Wait until the peer leaves."""
        await asyncio.shield(self.lost)

    def close(self) -> None:
        """Close the connection in good order."""
        self.open = False
        self.transport.close()

    def reset(self) -> None:
        """Drop the connection so that the peer gets a reset."""
        self.open = False
        sock = self.transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()

    async def end(self) -> None:
        """Drop the connection from the server's side, and wait until it is gone."""
        self.transport.abort()
        await self.gone()
        await asyncio.gather(self._serving, return_exceptions=True)


def _parse_head(head: bytes) -> tuple[str, str, dict[str, str]]:
    """Method, target and headers.

    Raises:
        ValueError: it is no request, or one whose length is not stated.
    """
    first, *lines = head.decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ")
    pairs = (line.partition(":") for line in lines)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    if "transfer-encoding" in headers:
        raise ValueError("a request must state its length")
    return method, target, headers
