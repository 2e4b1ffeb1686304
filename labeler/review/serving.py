"""Serves the desk on this machine until it is interrupted."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import uvicorn

from labeler.errors import UsageError
from labeler.review.app import desk_app
from labeler.review.figures import Figures
from labeler.review.session import Desk

HOST = "127.0.0.1"

TOKEN_BYTES = 32

_PATIENCE = 5
"""Seconds that answers under way may take after a signal."""


@dataclass(frozen=True)
class Address:
    """Where a desk listens.

    Attributes:
        port: on this machine.
        token: what every request must bring.
    """

    port: int
    token: str

    def __str__(self) -> str:
        """What a person opens: browsers send nothing behind the ``#``."""
        return f"http://{HOST}:{self.port}/#token={self.token}"


@contextlib.contextmanager
def listening(port: int = 0) -> Iterator[tuple[socket.socket, Address]]:
    """Take a port of this machine, which no other can reach.

    Args:
        port: 0 takes any that is free.

    Raises:
        UsageError: the port is taken, or not ours to take.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as taken:
        if os.name == "posix":  # elsewhere it would let others take the port too
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind((HOST, port))
            taken.listen()  # from here on whoever opens the address is answered, if late
        except (OSError, OverflowError) as error:
            raise UsageError(
                f"cannot listen on port {port}: {error}; choose another with --port, or leave it "
                "out for one that is free"
            ) from error
        found: int = taken.getsockname()[1]
        yield taken, Address(found, secrets.token_urlsafe(TOKEN_BYTES))


def desk_server(
    desk: Desk, figures: Figures, *, address: Address, complain: Callable[[str], None]
) -> uvicorn.Server:
    """What answers requests until a signal comes; what is under way then is finished first.

    Args:
        desk: what is shown and stored.
        figures: what follows from all that was said.
        address: where it will listen.
        complain: told of what went wrong inside.
    """
    app = desk_app(desk, figures, port=address.port, token=address.token, complain=complain)
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
        timeout_graceful_shutdown=_PATIENCE,
    )
    return uvicorn.Server(config)
