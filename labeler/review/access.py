"""Access control of the review app: only its own page, on this machine, gets an answer.

Any page that a browser has open can send requests to this machine. A request is therefore answered
only if it names this server by its own address (a rebound DNS name is rejected), comes from the
page that this server sent, and, except for the page itself, carries the token of the printed
address.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

API = "/api/"
"""Prefix of the paths that need the token."""

LONGEST_PATH = 200
"""Maximum characters of a path; a path of the app is far shorter."""

METHODS = ("GET", "POST")

LOCAL_NAMES = ("127.0.0.1", "localhost")

_HTTP_PORT = 80

_HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Headers of every response; the page replaces the policy with its own."""


class AccessControl:
    """ASGI middleware that rejects foreign requests and adds security headers to every response.

    Args:
        app: the protected application.
        port: port that the server listens on.
        token: token that a request to the API must carry.
        on_error: called with each internal error; responses never contain its details.
    """

    def __init__(
        self, app: ASGIApp, *, port: int, token: str, on_error: Callable[[str], None]
    ) -> None:
        self._app = app
        hosts = {f"{name}:{port}" for name in LOCAL_NAMES}
        # Browsers omit the default port from the Host header.
        self._hosts = hosts.union(LOCAL_NAMES) if port == _HTTP_PORT else hosts
        self._token = token.encode()
        self._on_error = on_error

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer or reject one request."""
        if scope["type"] != "http":
            return  # the app speaks HTTP only
        started = False

        async def send_guarded(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            self._check(scope)
            await self._app(scope, receive, send_guarded)
        except HTTPException as rejection:
            response = _error(rejection.status_code, rejection.detail, rejection.headers)
            await response(scope, receive, send_guarded)
        except Exception as error:  # noqa: BLE001 - no detail of an error may reach the response
            self._on_error(f"the review app failed to answer: {type(error).__name__}: {error}")
            if not started:
                message = "the review app failed; its terminal shows why. Saved judgments are safe"
                await _error(500, message)(scope, receive, send_guarded)

    def _check(self, scope: Scope) -> None:
        """Check that the app's own page sent a request.

        Raises:
            HTTPException: another page or program sent it.
        """
        headers = Headers(scope=scope)
        host = _single(headers, "host")
        if host is None or host.lower() not in self._hosts:
            raise HTTPException(421, "open the review app at the address that it printed")
        method: str = scope["method"]
        if method not in METHODS:
            allowed = ", ".join(METHODS)
            raise HTTPException(405, f"the method must be {allowed}", {"Allow": allowed})
        _check_origin(headers, host.lower(), writes=method == "POST")
        if scope["path"].startswith(API):
            self._check_token(headers)
        if len(scope["path"]) > LONGEST_PATH:
            raise HTTPException(404, "there is nothing here")

    def _check_token(self, headers: Headers) -> None:
        sent = (_single(headers, "authorization") or "").encode("utf-8", "replace")
        if not hmac.compare_digest(sent, b"Bearer " + self._token):
            raise HTTPException(
                401,
                "the address lacks the token of the review app; open the whole address that the "
                "terminal shows",
                {"WWW-Authenticate": "Bearer"},
            )


def _single(headers: Headers, name: str) -> str | None:
    """Return a header's value; ``None`` if it is missing or repeated."""
    values = headers.getlist(name)
    return values[0] if len(values) == 1 else None


def _check_origin(headers: Headers, host: str, *, writes: bool) -> None:
    """Reject requests from pages of another origin.

    Raises:
        HTTPException: the request comes from another origin, or writes without naming one.
    """
    site = headers.get("sec-fetch-site")
    sites = ("same-origin",) if writes else ("same-origin", "none")
    own = not writes and "origin" not in headers
    if not own:
        own = _single(headers, "origin") == f"http://{host}"
    if not own or (site is not None and site not in sites):
        raise HTTPException(
            403,
            "another site asks for this; copy the address that the terminal shows into the "
            "browser's address bar",
        )


def _error(status: int, message: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"error": message}, status, headers=headers)
