"""Access control of the review app, and the messages that its page may send.

Any page that a browser has open can send requests to this machine. A request is therefore answered
only if it names this server by its own address (a rebound DNS name is rejected), comes from the
page that this server sent, and, except for the page itself, carries the token of the printed
address. Messages are parsed strictly: an unknown name or a value of another type is rejected.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from typing import Annotated, Literal, TypeVar

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from labeler.data.corrections import Judgment, one_line
from labeler.errors import describe_faults
from labeler.sentences.example import Frozen

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
        headers, method, path = Headers(scope=scope), scope["method"], scope["path"]
        host = (_single(headers, "host") or "").lower()
        if host not in self._hosts:
            raise HTTPException(421, "open the review app at the address that it printed")
        if method not in METHODS:
            allowed = ", ".join(METHODS)
            raise HTTPException(405, f"the method must be {allowed}", {"Allow": allowed})
        if not _is_own_page(headers, host, writes=method == "POST"):
            raise HTTPException(
                403,
                "another site asks for this; copy the address that the terminal shows into the "
                "browser's address bar",
            )
        sent = (_single(headers, "authorization") or "").encode("utf-8", "replace")
        if path.startswith(API) and not hmac.compare_digest(sent, b"Bearer " + self._token):
            raise HTTPException(
                401,
                "the address lacks the token of the review app; open the whole address that the "
                "terminal shows",
                {"WWW-Authenticate": "Bearer"},
            )
        if len(path) > LONGEST_PATH:
            raise HTTPException(404, "there is nothing here")


def _single(headers: Headers, name: str) -> str | None:
    """Return a header's value; ``None`` if it is missing or repeated."""
    values = headers.getlist(name)
    return values[0] if len(values) == 1 else None


def _is_own_page(headers: Headers, host: str, *, writes: bool) -> bool:
    """Return True unless another origin sends a request, or one that writes names no origin."""
    site = headers.get("sec-fetch-site", "same-origin")
    if site != "same-origin" and (writes or site != "none"):
        return False
    if "origin" in headers or writes:
        return _single(headers, "origin") == f"http://{host}"
    return True


def _error(status: int, message: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"error": message}, status, headers=headers)


# Messages.

MOST_BYTES = 1_000_000
"""Maximum size of a request body."""
MOST_NAME, MOST_COMMENT = 100, 10_000
"""Maximum characters of a name and of a comment."""

_LONGEST_FAULTS = 500
"""Maximum characters of the faults of a message."""
_JSON = "application/json"

Name = Annotated[
    str,
    Field(max_length=MOST_NAME, pattern=r"^\S(?:.*\S)?$"),
    AfterValidator(one_line),
]
"""An annotator's name: a non-empty line without surrounding space."""


class ReviewAnswer(Frozen):
    """A person's answer to the label shown."""

    key: str = Field(max_length=MOST_NAME)
    """Key of the label, so an outdated page is noticed."""
    before: str | None = Field(default=None, max_length=MOST_NAME)
    """Time of the answer that the page showed, so nobody overwrites an answer unseen."""

    answer: Literal["agree", "judged", "unsure"] | None
    """``agree`` adopts the judge's judgment, ``judged`` brings the person's own; ``null`` withdraws
    the answer before.
    """
    judgment: Judgment | None = None
    comment: str = Field(default="", max_length=MOST_COMMENT)


class PlanAnswer(Frozen):
    """A person's answer to the sentence of a plan."""

    id: str = Field(max_length=MOST_COMMENT)
    sentence: str = Field(max_length=MOST_NAME)
    """Record and sentence, so an outdated page is noticed."""
    answer: Literal["yes", "no", "not relevant"] | None
    """``null`` withdraws the answer."""
    before: str = Field(max_length=MOST_NAME)
    """Answer that the page showed, so nobody overwrites an answer unseen."""


_NAME: TypeAdapter[str] = TypeAdapter(Name)


def check_name(name: str) -> str:
    """Validate an annotator's name and return it.

    Raises:
        ValueError: it is empty, too long, or has several lines.
    """
    return _NAME.validate_python(name)


M = TypeVar("M", ReviewAnswer, PlanAnswer)


async def read_message(request: Request, kind: type[M]) -> M:
    """Read and validate the body of a request.

    Raises:
        HTTPException: the body is too long, or not a message of this kind.
    """
    content = request.headers.get("content-type", "")
    if content.partition(";")[0].strip().lower() != _JSON:
        raise HTTPException(415, f"send {_JSON}")
    text = await _body(request)
    try:
        return kind.model_validate_json(text, strict=True)
    except ValidationError as error:
        faults = describe_faults(error, most=3, whole="body")
        raise HTTPException(
            422, f"this is not what the page would send: {faults:.{_LONGEST_FAULTS}}"
        ) from None


async def _body(request: Request) -> bytes:
    """Read a body, and stop at the maximum size."""
    text = b""
    async for part in request.stream():
        text += part
        if len(text) > MOST_BYTES:
            raise HTTPException(413, f"send at most {MOST_BYTES:,} bytes at once")
    return text
