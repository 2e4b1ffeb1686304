"""Serve the review app on this machine until it is interrupted."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import uvicorn

from labeler.errors import UsageError
from labeler.review.app import review_app
from labeler.review.session import ReviewSession

HOST = "127.0.0.1"

TOKEN_BYTES = 32

_SHUTDOWN_TIMEOUT = 5
"""Seconds that open requests may take after a signal."""


@dataclass(frozen=True)
class Address:
    """The address of a review app.

    Attributes:
        port: port on this machine.
        token: token that every request must carry.
    """

    port: int
    token: str

    def __str__(self) -> str:
        """Return the address to open: browsers never send the part after ``#``."""
        return f"http://{HOST}:{self.port}/#token={self.token}"


@contextlib.contextmanager
def listening(port: int = 0) -> Iterator[tuple[socket.socket, Address]]:
    """Listen on a loopback port, which no other machine can reach.

    Args:
        port: the port; 0 takes any free one.

    Raises:
        UsageError: the port is taken, or may not be used.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as taken:
        if os.name == "posix":  # elsewhere it lets other programs take the port too
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind((HOST, port))
            taken.listen()  # a page opened from now on is answered, if late
        except (OSError, OverflowError) as error:
            raise UsageError(
                f"cannot listen on port {port}: {error}; choose another with --port, or leave it "
                "out for one that is free"
            ) from error
        found: int = taken.getsockname()[1]
        yield taken, Address(found, secrets.token_urlsafe(TOKEN_BYTES))


def review_server(
    session: ReviewSession, *, address: Address, on_error: Callable[[str], None]
) -> uvicorn.Server:
    """Return a server that runs until a signal, and then finishes open requests.

    Args:
        session: the review session.
        address: the address to listen on.
        on_error: called with each internal error.
    """
    app = review_app(session, port=address.port, token=address.token, on_error=on_error)
    config = uvicorn.Config(
        app,
        http="h11",
        ws="none",
        loop="asyncio",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=_SHUTDOWN_TIMEOUT,
    )
    return uvicorn.Server(config)
