"""The desk as a web application: one page, and the few requests that it sends."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from labeler.errors import LabelerError
from labeler.report.page import RECORD_SCRIPTS, RECORD_STYLES, render_page
from labeler.review.access import API, Gate, Refused
from labeler.review.figures import Figures
from labeler.review.messages import Said, TakenBack, check_name, read_message
from labeler.review.session import Desk

STYLES = (*RECORD_STYLES, "desk.css")
SCRIPTS = (*RECORD_SCRIPTS, "desk.js")

_POLICY = re.compile(r'Content-Security-Policy" content="([^"]*)"')
_HARDER = "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
"""What a page's own tag cannot ask for, or need not where it is a file."""


def desk_app(
    desk: Desk, figures: Figures, *, port: int, token: str, complain: Callable[[str], None]
) -> ASGIApp:
    """The application behind its gate.

    Args:
        desk: what it shows and stores.
        figures: what follows from all that was said.
        port: where it will listen; requests that name another are refused.
        token: what every request but that for the page must bring.
        complain: told, on the terminal, of what went wrong inside.
    """
    handlers = _Handlers(desk, figures, complain)
    routes = [
        Route("/", handlers.page, methods=["GET"]),
        Route(f"{API}desk", handlers.overview, methods=["GET"]),
        Route(f"{API}figures", handlers.figures, methods=["GET"]),
        Route(f"{API}records/{{position:int}}", handlers.turn, methods=["GET"]),
        Route(f"{API}records/{{position:int}}", handlers.judge, methods=["POST"]),
        Route(f"{API}records/{{position:int}}/withdrawal", handlers.take_back, methods=["POST"]),
    ]
    # No application around the router: it would answer errors itself, before the gate can.
    router = Router(routes, redirect_slashes=False, default=_nothing)
    return Gate(router, port=port, token=token, complain=complain)


class _Handlers:
    """Translates requests to what the desk does, and its answers to JSON."""

    def __init__(self, desk: Desk, figures: Figures, complain: Callable[[str], None]) -> None:
        self._desk, self._figures, self._complain = desk, figures, complain
        self._page = render_page(
            "desk.html.j2",
            {"title": f"Review {desk.terms.name}"},
            styles=STYLES,
            scripts=SCRIPTS,
            connect="'self'",
        )
        self._policy = f"{_policy_of(self._page)}; {_HARDER}"

    async def page(self, _: Request) -> Response:
        return HTMLResponse(self._page, headers={"Content-Security-Policy": self._policy})

    async def overview(self, _: Request) -> Response:
        return await self._answer(self._desk.overview)

    async def figures(self, _: Request) -> Response:
        return await self._answer(self._figures.view)

    async def turn(self, request: Request) -> Response:
        annotator = _annotator(request)
        position = request.path_params["position"]
        return await self._answer(lambda: self._desk.turn(position, annotator))

    async def judge(self, request: Request) -> Response:
        said = await read_message(request, Said)
        position = request.path_params["position"]
        return await self._answer(lambda: self._desk.judge(position, said))

    async def take_back(self, request: Request) -> Response:
        taken = await read_message(request, TakenBack)
        position = request.path_params["position"]
        return await self._answer(lambda: self._desk.take_back(position, taken))

    async def _answer(self, work: Callable[[], Mapping[str, Any]]) -> Response:
        """Do the work in a thread of its own, so that one request holds up no other."""
        try:
            return JSONResponse(await run_in_threadpool(work))
        except (LabelerError, OSError) as error:
            # It may name a path: that is for the terminal.
            self._complain(str(error))
            raise Refused(
                500,
                "the file of corrections could not be read or written; the desk's terminal says "
                "why. Nothing that you entered here is lost: try again",
            ) from error


def _annotator(request: Request) -> str:
    given = request.query_params.getlist("annotator")
    if len(given) != 1 or len(request.query_params.multi_items()) != 1:
        raise Refused(422, "name one annotator")
    try:
        return check_name(given[0])
    except ValidationError:
        raise Refused(422, "an annotator's name is a short text in one line") from None


def _policy_of(page: str) -> str:
    """The policy that a page brings in its own tag."""
    found = _POLICY.search(page)
    if found is None:
        raise LookupError("the page has no policy")
    return html.unescape(found[1])


async def _nothing(_scope: Scope, _receive: Receive, _send: Send) -> None:
    raise Refused(404, "there is nothing here")
