"""Who may speak to the desk: the page that it handed out itself, on this machine, and nobody else.

Any page that a browser has open can send requests to this machine. So a request is answered only
where it names us by our own address (a name that was made to point here is refused), comes from our
own page, and, but for the page itself, brings the token that stands in the address we printed.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

API = "/api/"
"""Where the paths begin that need the token."""

LONGEST_PATH = 200
"""Characters of a path at most: ours are far shorter, and thousands of digits are no number."""

METHODS = ("GET", "POST")

LOCAL_NAMES = ("127.0.0.1", "localhost")

_USUAL_PORT = 80

_HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""What every answer carries; a page brings a policy of its own."""


class Refused(Exception):
    """A request that is not answered.

    Attributes:
        status: HTTP status.
        headers: what the answer carries besides.
    """

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.headers = dict(headers or {})


class Gate:
    """Refuses what is not ours before anything else sees it, and guards every answer.

    Args:
        app: what lies behind.
        port: where the desk listens.
        token: what a request to the API must bring.
        complain: told of what went wrong inside, which no answer repeats.
    """

    def __init__(
        self, app: ASGIApp, *, port: int, token: str, complain: Callable[[str], None]
    ) -> None:
        self._app = app
        named = {f"{name}:{port}" for name in LOCAL_NAMES}
        # Browsers leave out the port that every address without one means.
        self._hosts = frozenset(named.union(LOCAL_NAMES) if port == _USUAL_PORT else named)
        self._token = token.encode()
        self._complain = complain

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            return  # there is nothing but HTTP here, and no more than this to say to anything else
        begun = False

        async def guarded(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            self._check(scope)
            await self._app(scope, receive, guarded)
        except Refused as refused:
            answer = _error(refused.status, str(refused), refused.headers)
            await answer(scope, receive, guarded)
        except Exception as error:  # noqa: BLE001 - nothing of an error may reach the answer
            self._complain(f"the desk failed to answer: {type(error).__name__}: {error}")
            if not begun:
                message = "the desk failed; its terminal says why. What was saved before is safe"
                await _error(500, message)(scope, receive, guarded)

    def _check(self, scope: Scope) -> None:
        """See that a request is ours.

        Raises:
            Refused: it is not.
        """
        headers = Headers(scope=scope)
        host = _only(headers, "host")
        if host is None or host.lower() not in self._hosts:
            raise Refused(421, "open the desk at the address that it printed")
        method: str = scope["method"]
        if method not in METHODS:
            allowed = ", ".join(METHODS)
            raise Refused(405, f"the desk knows no method but {allowed}", {"Allow": allowed})
        _check_origin(headers, host.lower(), writes=method == "POST")
        if scope["path"].startswith(API):
            self._check_token(headers)
        if len(scope["path"]) > LONGEST_PATH:
            raise Refused(404, "there is nothing here")

    def _check_token(self, headers: Headers) -> None:
        given = (_only(headers, "authorization") or "").encode("utf-8", "replace")
        if not hmac.compare_digest(given, b"Bearer " + self._token):
            raise Refused(
                401,
                "the address lacks the desk's token; open the whole address that the terminal "
                "shows",
                {"WWW-Authenticate": "Bearer"},
            )


def _only(headers: Headers, name: str) -> str | None:
    """A header that stands once; twice is as good as not at all."""
    found = headers.getlist(name)
    return found[0] if len(found) == 1 else None


def _check_origin(headers: Headers, host: str, *, writes: bool) -> None:
    """Refuse what a page of another origin asks for.

    Raises:
        Refused: it is not our own page that asks.
    """
    site = headers.get("sec-fetch-site")
    sites = ("same-origin",) if writes else ("same-origin", "none")
    own = "origin" not in headers if not writes else False
    if not own:
        own = _only(headers, "origin") == f"http://{host}"
    if not own or (site is not None and site not in sites):
        raise Refused(
            403,
            "another site asks for this; copy the address that the terminal shows into the "
            "browser's address bar",
        )


def _error(status: int, message: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"error": message}, status, headers=headers)
