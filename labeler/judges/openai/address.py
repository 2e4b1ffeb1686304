"""Addresses, keys, headers, queries and proxies, checked before anything is sent.

Secrets come from variables of the environment that the user names; no message repeats a value.
"""

from __future__ import annotations

import asyncio
import ipaddress
import math
import os
import re
from base64 import b64encode
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit
from urllib.request import getproxies_environment, proxy_bypass

from aiohttp import ClientResponse, TCPConnector

from labeler.errors import UsageError
from labeler.judges.providers import PROVIDERS

if TYPE_CHECKING:
    from aiohttp.client_proto import ResponseHandler
    from aiohttp.connector import Connection

OFFICIAL_URL = PROVIDERS["openai"].base_url
NO_KEY = "none"
"""The key of a server that needs none."""
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_RESERVED = frozenset(
    {
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization"),
        *("proxy-connection", "te", "trailer", "transfer-encoding", "upgrade", "expect"),
        *("host", "content-length", "content-type", "content-encoding", "accept-encoding"),
    }
)
"""Headers of one connection or one body."""
_LONGEST = 8000
"""Characters of a value at most."""


def safe_url(url: str, allow_http: Collection[str] = ()) -> str:
    """Return the address of an API if it is encrypted or stays here, and holds no credentials.

    Args:
        url: HTTPS, or HTTP to this machine.
        allow_http: other hosts that may be reached by HTTP.

    Raises:
        UsageError: the address is anything else; it is not repeated, because it may hold a secret.
    """
    try:
        parts = urlsplit(url)
        host = parts.hostname
        _ = parts.port  # reading it validates it
    except ValueError:
        raise UsageError("base_url is not a URL; give one such as " + OFFICIAL_URL) from None
    if not host or parts.scheme not in {"http", "https"}:
        raise UsageError(f"base_url must start with https:// and a host, such as {OFFICIAL_URL}")
    if parts.username is not None or parts.password is not None:
        raise UsageError("base_url must hold no user or password: pass the key as api_key")
    if parts.query or parts.fragment:
        raise UsageError("base_url must end with its path: it takes no ? and no #")
    allowed = {name.lower() for name in allow_http}
    if parts.scheme == "http" and not is_loopback(host) and host not in allowed:
        raise UsageError(
            f"base_url would send documents and the API key to {host!r} in the clear: use https, "
            f"or give --allow-http {host} (allow_http) if you trust the network up to there"
        )
    return url


def host_of(url: str) -> str:
    """Return host and port of an address, without credentials and path."""
    parts: SplitResult = urlsplit(url)
    return parts.netloc.rpartition("@")[2]


def environment_key(base_url: str | None, provider: str = "openai", instead: str = "") -> str:
    """Return the API key of a provider's variables; ``none`` for a named server without a key.

    Args:
        base_url: the named server; ``None`` for that of the provider.
        provider: name of the provider.
        instead: the alternative to name where there is no key.

    Raises:
        UsageError: there is no key, or the environment names another server.
    """
    elsewhere = PROVIDERS[provider].address_variable
    if elsewhere and base_url is None and os.environ.get(elsewhere):
        raise UsageError(
            f"{elsewhere} is set, and labeler sends documents to addresses on the command line "
            "only: give --base-url (base_url), or unset the variable"
        )
    variables = PROVIDERS[provider].key_variables
    key = next(filter(None, map(os.environ.get, variables)), None)
    if not key and variables and base_url is None:
        raise UsageError(
            f"a hosted model needs a key in {' or '.join(variables)} or from --api-key-command, or "
            f"--base-url for a server that needs none{instead}"
        )
    return key or NO_KEY


def usable_key(key: str) -> str:
    """Return an API key if it can be sent in a header.

    Raises:
        UsageError: the key is empty or has invalid characters; it is not repeated.
    """
    if not key:
        raise UsageError("the API key is empty: pass api_key, for example from OPENAI_API_KEY")
    if not key.isascii() or not key.isprintable() or " " in key:
        raise UsageError(
            "the API key holds a space, a line break or a non-ASCII letter: check how it was read"
        )
    return key


def is_loopback(host: str) -> bool:
    """Return true if a host is this machine, judged by its name alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@dataclass(frozen=True)
class Proxy:
    """A proxy."""

    url: str
    """Without credentials."""
    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)

    @property
    def credentials(self) -> str:
        """User and password as the proxy takes them; empty without any."""
        if not self.user and not self.password:
            return ""
        return b64encode(f"{self.user}:{self.password}".encode()).decode()

    @property
    def headers(self) -> dict[str, str] | None:
        """Headers that are sent to the proxy alone; aiohttp gives them their name there."""
        return {"authorization": f"Basic {self.credentials}"} if self.credentials else None


def read_headers(pairs: Sequence[str]) -> dict[str, str]:
    """Return the headers of ``NAME=@VARIABLE`` texts, names in lower case.

    Raises:
        UsageError: a text has another form, a name is invalid, reserved or given twice, or a
            variable is not set or holds no header value.
    """
    headers: dict[str, str] = {}
    for pair in pairs:
        name, _, source = pair.partition("=")
        lowered = name.lower()
        if not _NAME.fullmatch(name) or not source.startswith("@"):
            raise UsageError(
                f"--header {name!r:.80} must be NAME=@VARIABLE, such as api-key=@AZURE_API_KEY: "
                "values come from the environment, because everyone can read a command line"
            )
        if lowered in _RESERVED or lowered in headers:
            fault = "is given twice" if lowered in headers else "belongs to the connection"
            raise UsageError(f"--header {name} {fault}: drop it")
        headers[lowered] = _variable(f"--header {name}", source[1:])
    return headers


def read_query(pairs: Sequence[str]) -> dict[str, str]:
    """Return the query parameters of ``NAME=VALUE`` texts.

    Raises:
        UsageError: a text has another form, or a name is given twice.
    """
    query: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not name or not equals or name in query:
            fault = "is given twice" if name in query else "must be NAME=VALUE"
            raise UsageError(f"--query {name!r:.80} {fault}: write --query api-version=2024-10-21")
        query[name] = value
    return query


def read_proxy(choice: str | None, base_url: str) -> Proxy | None:
    """Return the proxy before an address; ``None`` for a direct connection.

    Args:
        choice: a URL, ``@VARIABLE`` that holds one, or ``env`` for the usual variables, which are
            ignored otherwise.
        base_url: the address. With ``env``, ``NO_PROXY`` may exempt it, and this machine is exempt.

    Raises:
        UsageError: it is no address of an HTTP proxy, or a URL on the command line holds
            credentials.
    """
    if choice is None:
        return None
    if choice == "env":
        address = urlsplit(base_url)
        proxies = getproxies_environment()
        url = proxies.get(address.scheme) or proxies.get("all")
        exempt = is_loopback(address.hostname or "") or proxy_bypass(host_of(base_url))
        where = f"--proxy env: {address.scheme.upper()}_PROXY"
        return None if not url or exempt else _parse_proxy(url, where, secret=True)
    if choice.startswith("@"):
        url = _variable("--proxy", choice[1:])
        return _parse_proxy(url, f"--proxy {choice}", secret=True)
    return _parse_proxy(choice, "--proxy", secret=False)


def _parse_proxy(url: str, where: str, *, secret: bool) -> Proxy:
    """Return the proxy of a URL, which no message repeats.

    Args:
        url: the URL.
        where: where it was given.
        secret: true if it may hold credentials.
    """
    fault = f"{where} must be the address of an HTTP proxy, such as http://proxy.example.org:3128"
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        _ = parts.port  # reading it validates it
    except ValueError:
        raise UsageError(fault) from None
    rest = parts.path.strip("/") or parts.query or parts.fragment
    if parts.scheme not in {"http", "https"} or not parts.hostname or rest:
        raise UsageError(fault)
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    if "@" in parts.netloc and not secret:
        raise UsageError(
            f"{where} holds credentials, and everyone can read a command line: put the URL into a "
            "variable of the environment, and give --proxy @VARIABLE"
        )
    if ":" in user or not f"{user}{password}".isprintable():
        raise UsageError(f"{where}: its user or password has a character that none may have")
    bare = SplitResult(parts.scheme, parts.netloc.rpartition("@")[2], "", "", "")
    return Proxy(urlunsplit(bare), user, password)


def _variable(option: str, name: str) -> str:
    """Return the value of a variable that can be sent in a header."""
    value = os.environ.get(name, "")
    if not value:
        raise UsageError(f"{option}: the environment has no variable {name!r:.80}, or it is empty")
    if not value.isascii() or not value.isprintable() or len(value) > _LONGEST:
        raise UsageError(
            f"{option}: the variable {name} holds a line break or a non-ASCII letter, or more than "
            f"{_LONGEST} characters"
        )
    return value


_REST = 0.25
"""Seconds before a connection is used again, in which a doubled answer would arrive."""
_TURNS = 2
"""Turns of an event loop after which it has delivered all bytes that the system had received."""
_LONGEST_HEAD = 1 << 20
"""Bytes in which the end of the headers is looked for; the reader accepts fewer."""
_INTERIM = re.compile(rb"HTTP/1\.\d 1\d\d")
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d{1,18})[ \t]*(?:\r\n|$)", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding:", re.IGNORECASE)


class CleanConnector(TCPConnector):
    """Opens connections, and closes those on which anything arrives after their answer.

    After the first of them no connection is kept: later bytes may come too late to be noticed.
    """

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 - of the base
        super().__init__(**settings)
        self._resting: dict[LentConnection, asyncio.TimerHandle] = {}
        self.keeps = True

    async def connect(self, *args: Any, **kwargs: Any) -> Connection:  # noqa: ANN401 - of the base
        """Return a new connection, or one that has rested since its answer."""
        while True:
            connection = await super().connect(*args, **kwargs)
            for _ in range(_TURNS):
                await asyncio.sleep(0)
            if _is_clean(connection):
                return cast("Connection", LentConnection(connection, self))
            connection.close()

    async def close(self, **kwargs: Any) -> None:  # noqa: ANN401 - of the base
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
        """Keep a connection from being used again for a while."""
        loop = asyncio.get_running_loop()
        self._resting[lent] = loop.call_later(_REST, self._end_rest, lent)

    def _end_rest(self, lent: LentConnection) -> None:
        del self._resting[lent]
        if self.keeps and _is_clean(lent.connection):
            lent.connection.release()
        else:
            lent.connection.close()


class LentConnection:
    """A connection for one answer; its release begins its rest, everything else is its own."""

    def __init__(self, connection: Connection, connector: CleanConnector) -> None:
        self.connection, self._connector = connection, connector
        found = self.transport.get_protocol()
        self._gate = found if isinstance(found, _Gate) else _Gate(self.protocol, connector)
        self._gate.open()
        self.transport.set_protocol(self._gate)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - of the connection
        return getattr(self.connection, name)

    def release(self) -> None:
        """Begin the rest, unless the connection is to be closed."""
        if _is_clean(self.connection):
            self._gate.shut()
            self._connector.rest(self)
        else:
            self.connection.close()


class LentResponse(ClientResponse):
    """A response that closes its connection unless its status is one of success.

    Attributes:
        whole: its decoded body, once it was read.
    """

    whole: bytes | None = None

    @property
    def is_success(self) -> bool:
        """True for a status from 200 to 299."""
        return HTTPStatus.OK <= self.status < HTTPStatus.MULTIPLE_CHOICES

    async def start(self, connection: Connection) -> ClientResponse:
        """Read status and headers."""
        self._reader = connection.protocol
        await super().start(connection)
        if not self.is_success:
            self.spoil()
        return self

    def spoil(self) -> None:
        """Never use the connection again: more may come on it."""
        if self._reader is not None:
            self._reader.force_close()


class _Gate(asyncio.Protocol):
    """Passes one answer on to its reader, up to the length that its headers state.

    The reader would discard an answer with the bytes after it.
    """

    def __init__(self, reader: ResponseHandler, connector: CleanConnector) -> None:
        self._reader, self._connector = reader, connector
        for name in ("pause_writing", "resume_writing", "eof_received", "connection_lost"):
            setattr(self, name, getattr(reader, name))

    def open(self) -> None:
        """Let the next answer pass."""
        self._head = b""
        self._left: float | None = None

    def shut(self) -> None:
        """Let nothing pass."""
        self._left = 0

    def data_received(self, data: bytes) -> None:
        """Pass on what belongs to the answer."""
        if self._left is None:
            self._head += data
            self._left = _left_after(self._head)
        else:
            self._left -= len(data)
        excess = -int(min(0, self._left or 0))
        if excess:
            self._left = 0
            self._connector.keeps = False
            self._reader.force_close()
        if excess < len(data):
            self._reader.data_received(data[: len(data) - excess])
        else:
            self._reader.close()


def _left_after(received: bytes) -> float | None:
    """Return the bytes of an answer that are to come, negative for bytes after it.

    Args:
        received: the answer from its first byte on.

    Returns:
        Infinity if no length is stated; ``None`` before the end of the headers.
    """
    head, end, body = received.partition(b"\r\n\r\n")
    while end and _INTERIM.match(head):
        head, end, body = body.partition(b"\r\n\r\n")
    if not end:
        return math.inf if len(received) > _LONGEST_HEAD else None
    length = None if _CHUNKED.search(head) else _LENGTH.search(head)
    return int(length[1]) - len(body) if length else math.inf


def _is_clean(connection: Connection) -> bool:
    """Return True if a connection is open, and its reader has no bytes left."""
    reader = connection.protocol
    return reader is not None and reader.is_connected() and not reader.should_close
