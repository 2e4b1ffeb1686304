"""Connections that are used again only if nothing arrived on them after their answer.

An HTTP/1.1 answer does not name its request. A doubled answer, or one that follows the server's own
time-out, would be taken for the answer to the next request on the connection.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any, cast

from aiohttp import ClientResponse, TCPConnector
from aiohttp.connector import Connection

_REST = 0.25
"""Seconds before a connection is used again, in which a doubled answer would arrive."""
_TURNS = 2
"""Turns of an event loop after which it has delivered all bytes that the system had received."""


class CleanConnector(TCPConnector):
    """Opens connections, and closes those on which anything arrives after their answer.

    After the first of them no connection is kept: later bytes may come too late to be noticed.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._resting: dict[LentConnection, asyncio.TimerHandle] = {}
        self._keeps = True

    async def connect(self, *args: Any, **kwargs: Any) -> Connection:
        """Return a new connection, or one that has rested since its answer."""
        while True:
            connection = await super().connect(*args, **kwargs)
            for _ in range(_TURNS):
                await asyncio.sleep(0)
            if _is_clean(connection):
                cast("asyncio.Transport", connection.transport).set_protocol(connection.protocol)  # type: ignore[arg-type]
                return cast("Connection", LentConnection(connection, self))
            connection.close()

    async def close(self, **kwargs: Any) -> None:
        """Close all connections, resting ones too."""
        closed = []
        for lent, timer in self._resting.items():
            timer.cancel()
            closed.append(lent.protocol.closed)
            lent.protocol.abort()
            lent.connection.close()
        self._resting.clear()
        await super().close(**kwargs)
        await asyncio.gather(*filter(None, closed), return_exceptions=True)

    def rest(self, lent: LentConnection) -> None:
        """Keep a connection from being used again for a while, and watch it until then."""
        lent.transport.set_protocol(_Watch(lent.protocol, self))
        loop = asyncio.get_running_loop()
        self._resting[lent] = loop.call_later(_REST, self._end_rest, lent)

    def keep_none(self) -> None:
        """Use no connection again from now on."""
        self._keeps = False

    def _end_rest(self, lent: LentConnection) -> None:
        del self._resting[lent]
        if self._keeps and _is_clean(lent.connection):
            lent.connection.release()
        else:
            lent.connection.close()


class LentConnection:
    """A connection whose release begins its rest; everything else is its own."""

    def __init__(self, connection: Connection, connector: CleanConnector) -> None:
        self.connection, self._connector = connection, connector

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - of the connection
        return getattr(self.connection, name)

    def release(self) -> None:
        """Begin the rest, unless the connection is to be closed."""
        if _is_clean(self.connection):
            self._connector.rest(self)
        else:
            self.connection.close()


class LentResponse(ClientResponse):
    """A response that closes its connection unless its status is one of success."""

    async def start(self, connection: Connection) -> ClientResponse:
        """Read status and headers."""
        self._reader = connection.protocol
        await super().start(connection)
        if not HTTPStatus.OK <= self.status < HTTPStatus.MULTIPLE_CHOICES:
            self.spoil()
        return self

    def spoil(self) -> None:
        """Never use the connection again: more may come on it."""
        if self._reader is not None:
            self._reader.force_close()


class _Watch(asyncio.Protocol):
    """Closes a connection on which anything arrives while no answer is due."""

    def __init__(self, reader: asyncio.Protocol, connector: CleanConnector) -> None:
        self._reader, self._connector = reader, connector

    def data_received(self, data: bytes) -> None:
        del data
        self._connector.keep_none()
        cast("Any", self._reader).close()

    def eof_received(self) -> bool | None:
        return self._reader.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._reader.connection_lost(exc)


def _is_clean(connection: Connection) -> bool:
    """Return True if a connection is open, and its reader has no bytes left."""
    reader = connection.protocol
    return reader is not None and reader.is_connected() and not reader.should_close
