"""The review app: one page, the requests that it sends, and their server on this machine."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from labeler.errors import LabelerError, UsageError
from labeler.report.page import RECORD_SCRIPTS, RECORD_STYLES, render_page
from labeler.review.access import API, AccessControl
from labeler.review.messages import ReviewAnswer, Withdrawal, check_name, read_message
from labeler.review.session import ReviewSession
from labeler.review.statistics import ReviewStatistics

ASSETS = Path(__file__).parent / "assets"
STYLES = (*RECORD_STYLES, "review.css")
SCRIPTS = (
    *RECORD_SCRIPTS,
    "review_state.js",
    "review_judgement.js",
    "review_bar.js",
    "review_statistics.js",
    "review.js",
)

_HEADER_POLICY = "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
"""Rules that only a header can set, or that a page opened from a file does not need."""


def review_app(
    session: ReviewSession, *, port: int, token: str, on_error: Callable[[str], None]
) -> ASGIApp:
    """Return the application behind its access control.

    Args:
        session: the labels under review and the corrections.
        port: port that the server listens on; requests that name another are rejected.
        token: token that every request except that for the page must carry.
        on_error: called with each internal error.
    """
    handlers = _Handlers(session, on_error)
    record = f"{API}records/{{position:int}}"
    routes = [
        Route("/", handlers.page, methods=["GET"]),
        Route(f"{API}overview", handlers.overview, methods=["GET"]),
        Route(f"{API}statistics", handlers.statistics, methods=["GET"]),
        Route(record, handlers.show, methods=["GET"]),
        Route(record, handlers.save, methods=["POST"]),
        Route(f"{record}/withdrawal", handlers.withdraw, methods=["POST"]),
    ]
    # A Starlette application around the router would answer errors before the access control.
    router = Router(routes, redirect_slashes=False, default=_not_found)
    return AccessControl(router, port=port, token=token, on_error=on_error)


class _Handlers:
    """Translate requests to calls of the session, and results to JSON."""

    def __init__(self, session: ReviewSession, on_error: Callable[[str], None]) -> None:
        self._session, self._on_error = session, on_error
        self._statistics = ReviewStatistics(session)
        self._page = render_page(
            "review.html.j2",
            {"title": f"Review {session.settings.name}"},
            styles=STYLES,
            scripts=SCRIPTS,
            connect="'self'",
            assets=ASSETS,
        )

    async def page(self, _: Request) -> Response:
        policy = f"{self._page.policy}; {_HEADER_POLICY}"
        return HTMLResponse(self._page.text, headers={"Content-Security-Policy": policy})

    async def overview(self, _: Request) -> Response:
        return await self._respond(self._session.overview)

    async def statistics(self, _: Request) -> Response:
        return await self._respond(self._statistics.view)

    async def show(self, request: Request) -> Response:
        annotator = _annotator(request)
        position = request.path_params["position"]
        return await self._respond(lambda: self._session.show(position, annotator))

    async def save(self, request: Request) -> Response:
        answer = await read_message(request, ReviewAnswer)
        position = request.path_params["position"]
        return await self._respond(lambda: self._session.save(position, answer))

    async def withdraw(self, request: Request) -> Response:
        withdrawal = await read_message(request, Withdrawal)
        position = request.path_params["position"]
        return await self._respond(lambda: self._session.withdraw(position, withdrawal))

    async def _respond(self, work: Callable[[], Mapping[str, Any]]) -> Response:
        """Run blocking work in a thread, so one request does not delay another."""
        try:
            return JSONResponse(await run_in_threadpool(work))
        except (LabelerError, OSError) as error:
            # The message may name a path, so only the terminal shows it.
            self._on_error(str(error))
            raise HTTPException(
                500,
                "the file of corrections could not be read or written; the terminal shows "
                "why. Your input is kept: try again",
            ) from error


def _annotator(request: Request) -> str:
    names = request.query_params.getlist("annotator")
    if len(names) != 1 or len(request.query_params.multi_items()) != 1:
        raise HTTPException(422, "name one annotator")
    try:
        return check_name(names[0])
    except ValidationError:
        raise HTTPException(422, "an annotator's name is a short text in one line") from None


async def _not_found(_scope: Scope, _receive: Receive, _send: Send) -> None:
    raise HTTPException(404, "there is nothing here")


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
