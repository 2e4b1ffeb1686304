"""The review app: one page, the requests that it sends, and their server on this machine."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from labeler.errors import LabelerError, UsageError
from labeler.report.page import RECORD_SCRIPTS, RECORD_STYLES, Page, render_page
from labeler.report.views import View
from labeler.review.access import (
    API,
    AccessControl,
    M,
    PlanAnswer,
    ReviewAnswer,
    read_message,
)
from labeler.review.plan_reading import PlanReading
from labeler.review.session import ReviewSession
from labeler.review.statistics import ReviewStatistics

ASSETS = Path(__file__).parent / "assets"
STYLES: Sequence[str] = (*RECORD_STYLES, "review.css")
SCRIPTS: Sequence[str] = (
    *RECORD_SCRIPTS,
    "review_state.js",
    "review_judgment.js",
    "review_bar.js",
    "review_statistics.js",
    "review.js",
)

PLAN_STYLES: Sequence[str] = ("base.css", "review.css", "plan.css")
PLAN_SCRIPTS: Sequence[str] = ("dom.js", "review_state.js", "plan.js")

_HEADER_POLICY = "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
"""Rules that only a header can set, or that a page opened from a file does not need."""


def review_app(
    session: ReviewSession | PlanReading,
    *,
    port: int,
    token: str,
    on_error: Callable[[str], None],
) -> ASGIApp:
    """Return the application behind its access control.

    Args:
        session: the labels under review and the corrections, or a plan and its answers.
        port: port that the server listens on; requests that name another are rejected.
        token: token that every request except that for the page must carry.
        on_error: called with each internal error.
    """
    page = _page(session)

    async def show_page(_: Request) -> Response:
        policy = f"{page.policy}; {_HEADER_POLICY}"
        return HTMLResponse(page.text, headers={"Content-Security-Policy": policy})

    routes = [Route("/", show_page, methods=["GET"])]
    routes += [
        Route(f"{API}{path}", _answering(work, readers, on_error), methods=[method])
        for method, path, work, *readers in _requests(session)
    ]
    # A Starlette application around the router would answer errors before the access control.
    router = Router(routes, redirect_slashes=False, default=_not_found)
    return AccessControl(router, port=port, token=token, on_error=on_error)


_RECORD = "records/{position:int}"


def _requests(session: ReviewSession | PlanReading) -> Iterator[tuple[Any, ...]]:
    """Yield method, path and function of each request, and what reads its arguments."""
    yield "GET", "overview", session.overview
    yield "GET", _RECORD, session.show, _position
    if isinstance(session, PlanReading):
        yield "POST", _RECORD, session.save, _position, _message(PlanAnswer)
    else:
        yield "GET", "statistics", ReviewStatistics(session).view
        yield "POST", _RECORD, session.save, _position, _message(ReviewAnswer)


def _answering(
    work: Callable[..., View],
    readers: Sequence[Callable[[Request], Awaitable[object]]],
    on_error: Callable[[str], None],
) -> Callable[[Request], Awaitable[Response]]:
    """Return what answers a request in a thread, so that it delays no other one."""

    async def respond(request: Request) -> Response:
        given = [await read(request) for read in readers]
        try:
            return JSONResponse(await run_in_threadpool(work, *given))
        except (LabelerError, OSError) as error:
            # The message may name a path, so only the terminal shows it.
            on_error(str(error))
            raise HTTPException(
                500,
                "the file of answers could not be read or written; the terminal shows "
                "why. Your input is kept: try again",
            ) from error

    return respond


async def _position(request: Request) -> int:
    position: int = request.path_params["position"]
    return position


def _message(kind: type[M]) -> Callable[[Request], Awaitable[M]]:
    return lambda request: read_message(request, kind)


def _page(session: ReviewSession | PlanReading) -> Page:
    if isinstance(session, PlanReading):
        template, title = "plan.html.j2", f"Read {Path(session.plan).name}"
        styles, scripts = PLAN_STYLES, PLAN_SCRIPTS
    else:
        template, title = "review.html.j2", f"Review {session.settings.name}"
        styles, scripts = STYLES, SCRIPTS
    values = {"title": title}
    return render_page(
        template, values, styles=styles, scripts=scripts, connect="'self'", assets=ASSETS
    )


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
    session: ReviewSession | PlanReading, *, address: Address, on_error: Callable[[str], None]
) -> uvicorn.Server:
    """Return a server that runs until a signal, and then finishes open requests.

    Args:
        session: the review of labels, or the reading of a plan.
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
