"""The review app: one page, the requests that it sends, and their server on this machine."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from labeler.report.page import RECORD_SCRIPTS, RECORD_STYLES, Page, render_page
from labeler.review.access import API, AccessControl
from labeler.review.messages import PlanAnswer, ReviewAnswer, Withdrawal, check_name, read_message
from labeler.review.plan_reading import PlanReading
from labeler.review.session import ReviewSession
from labeler.review.statistics import ReviewStatistics
from labeler.sentences.characters import visible

ASSETS = Path(__file__).parent / "assets"
STYLES = (*RECORD_STYLES, "review.css")
SCRIPTS = (
    *RECORD_SCRIPTS,
    "review_state.js",
    "review_judgment.js",
    "review_bar.js",
    "review_statistics.js",
    "review.js",
)

PLAN_STYLES = ("base.css", "review.css", "plan.css")
PLAN_SCRIPTS = ("dom.js", "review_state.js", "plan.js")

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
    if isinstance(session, PlanReading):
        routes = _PlanHandlers(session, on_error).routes
    else:
        routes = _Handlers(session, on_error).routes
    # A Starlette application around the router would answer errors before the access control.
    router = Router(routes, redirect_slashes=False, default=_not_found)
    return AccessControl(router, port=port, token=token, on_error=on_error)


_RECORD = f"{API}records/{{position:int}}"


class _Pages(ABC):
    """The page of an app, and answers to its requests."""

    def __init__(self, page: Page, on_error: Callable[[str], None]) -> None:
        self._page, self._on_error = page, on_error

    @property
    def routes(self) -> list[Route]:
        """The addresses of the app."""
        return [
            Route("/", self.page, methods=["GET"]),
            Route(f"{API}overview", self.overview, methods=["GET"]),
            Route(_RECORD, self.show, methods=["GET"]),
            Route(_RECORD, self.save, methods=["POST"]),
        ]

    @abstractmethod
    async def overview(self, _: Request) -> Response:
        """Answer with the facts that the page starts with."""

    @abstractmethod
    async def show(self, request: Request) -> Response:
        """Answer with what is at a position."""

    @abstractmethod
    async def save(self, request: Request) -> Response:
        """Save what a person decided."""

    async def page(self, _: Request) -> Response:
        policy = f"{self._page.policy}; {_HEADER_POLICY}"
        return HTMLResponse(self._page.text, headers={"Content-Security-Policy": policy})

    async def _respond(self, work: Callable[[], Mapping[str, Any]]) -> Response:
        """Run blocking work in a thread, so one request does not delay another."""
        try:
            return JSONResponse(await run_in_threadpool(work))
        except (LabelerError, OSError) as error:
            # The message may name a path, so only the terminal shows it.
            self._on_error(str(error))
            raise HTTPException(
                500,
                "the file of answers could not be read or written; the terminal shows "
                "why. Your input is kept: try again",
            ) from error


def _rendered(template: str, title: str, styles: Sequence[str], scripts: Sequence[str]) -> Page:
    return render_page(
        template,
        {"title": title},
        styles=styles,
        scripts=scripts,
        connect="'self'",
        assets=ASSETS,
    )


class _PlanHandlers(_Pages):
    """Translate requests to calls of the reading of a plan."""

    def __init__(self, session: PlanReading, on_error: Callable[[str], None]) -> None:
        title = f"Read {visible(Path(session.plan).name)}"
        super().__init__(_rendered("plan.html.j2", title, PLAN_STYLES, PLAN_SCRIPTS), on_error)
        self._session = session

    async def overview(self, _: Request) -> Response:
        return await self._respond(self._session.overview)

    async def show(self, request: Request) -> Response:
        position = request.path_params["position"]
        return await self._respond(lambda: self._session.show(position))

    async def save(self, request: Request) -> Response:
        message = await read_message(request, PlanAnswer)
        position = request.path_params["position"]
        return await self._respond(lambda: self._session.save(position, message))


class _Handlers(_Pages):
    """Translate requests to calls of the session, and results to JSON."""

    def __init__(self, session: ReviewSession, on_error: Callable[[str], None]) -> None:
        title = f"Review {session.settings.name}"
        super().__init__(_rendered("review.html.j2", title, STYLES, SCRIPTS), on_error)
        self._session = session
        self._statistics = ReviewStatistics(session)

    @property
    def routes(self) -> list[Route]:
        """The addresses of the app."""
        return [
            *super().routes,
            Route(f"{API}statistics", self.statistics, methods=["GET"]),
            Route(f"{_RECORD}/withdrawal", self.withdraw, methods=["POST"]),
        ]

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
