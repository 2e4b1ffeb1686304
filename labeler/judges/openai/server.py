"""A server as options describe it, and the credentials of each request to it.

Options are checked and read, and nothing is sent. An API key is fetched again when it expires.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import ssl
from asyncio.subprocess import DEVNULL
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, TypeAlias

from httpx2 import create_ssl_context
from pydantic import SecretStr, TypeAdapter, ValidationError

from labeler.errors import UsageError, describe_faults
from labeler.judges.openai.address import (
    NO_KEY,
    OFFICIAL_URL,
    Proxy,
    environment_key,
    host_of,
    masked,
    read_headers,
    read_proxy,
    read_query,
    remember_key,
    require_named_server,
    safe_url,
    usable_key,
)
from labeler.judges.openai.error_rules import ObservedError, find_rule
from labeler.judges.openai.server_errors import response_error
from labeler.judges.options import PROVIDERS, ServerOptions
from labeler.sentences.characters import visible

if TYPE_CHECKING:
    from labeler.judges.openai.sender import LentResponse

KeySource: TypeAlias = Callable[[], str | Awaitable[str]]
"""Returns an API key: called before the first request, and again when the key has expired."""

_PROXY_ACCESS = 407
_UNAUTHORIZED = 401
_MAYBE_UNAUTHORIZED = frozenset({400, 403})
"""Statuses whose body says whether the key is the fault: Google's and Amazon's."""
_SECONDS = 30.0
"""Seconds that a program may take to print a key."""
_LARGEST = 1 << 16
"""Bytes of a program's output that are read."""
_REST = 0.1
"""Seconds that the rest of an ended program's output may take."""


@dataclass(frozen=True)
class Server:
    """Address, credentials, and the network before a server."""

    base_url: str
    host: str
    key: SecretStr | KeySource
    headers: Mapping[str, str] = field(repr=False)
    query: Mapping[str, str]
    proxy: Proxy | None
    context: ssl.SSLContext
    account: Mapping[str, str] = field(default_factory=dict)
    """Headers that name the organization and the project that pay."""
    key_variables: tuple[str, ...] = ()
    """Variables of the environment that may hold the key."""

    def key_hint(self, observed: ObservedError) -> str:
        """Return what is missing if a server rejects requests without a key; "" otherwise."""
        is_sent = not isinstance(self.key, SecretStr) or self.key.get_secret_value() != NO_KEY
        reason = find_rule(observed).reason if observed.kind == "status" else ""
        refused = reason in {"authentication", "permission"}
        if is_sent or self.headers or not refused or observed.status == _PROXY_ACCESS:
            return ""
        if not self.key_variables or any(map(os.environ.get, self.key_variables)):
            return "no key was sent: give --api-key-command"
        named = " or ".join(self.key_variables)
        return f"{named} is not set, so no key was sent: set it, or give --api-key-command"


def read_server(key: str | KeySource | None, **settings: Any) -> Server:  # noqa: ANN401 - checked here
    """Return the server that a user's options describe; see :func:`server_of`.

    Raises:
        UsageError: an option has a wrong type, or as for :func:`server_of`.
    """
    try:
        options = TypeAdapter(ServerOptions).validate_python(vars(ServerOptions(**settings)))
    except ValidationError as error:
        faults = describe_faults(error, most=error.error_count())
        raise UsageError(f"the server does not accept these options: {faults}") from None
    return server_of(options, key)


def server_of(options: ServerOptions, key: str | KeySource | None) -> Server:
    """Return the server that options describe.

    Args:
        options: of the server.
        key: the API key or a function that returns it; by default from the options' command,
            else from the environment, for OpenAI.

    Raises:
        UsageError: the environment names another address, the address is not safe, the key is
            malformed, missing or given twice, an option is malformed, or a file or a variable that
            it names cannot be read.
    """
    require_named_server(options.base_url)
    url = options.base_url or OFFICIAL_URL
    safe_url(url, options.allow_http or ())
    proxy = read_proxy(options.proxy, url)
    plain = all(
        address.lower().startswith("http:") for address in (url, proxy.url if proxy else url)
    )
    return Server(
        base_url=url,
        host=host_of(url),
        key=_key_of(options, key),
        headers=read_headers(options.header or ()),
        query=read_query(options.query or ()),
        proxy=proxy,
        context=certificates(plain, options.ca_file),
        account={
            f"openai-{name}": value
            for name in ("organization", "project")
            if (value := getattr(options, name)) is not None
        },
        key_variables=PROVIDERS[getattr(options, "judge", "openai")].key_variables,
    )


def _key_of(options: ServerOptions, key: str | KeySource | None) -> SecretStr | KeySource:
    if options.api_key_command is not None:
        if key is not None:
            raise UsageError("api_key and api_key_command (--api-key-command) are both given")
        return KeyCommand(options.api_key_command)
    if key is None or isinstance(key, str):
        usable = usable_key(environment_key(options.base_url) if key is None else key)
        remember_key(usable)
        return SecretStr(usable)
    if not callable(key):
        raise UsageError(f"api_key must be a text or a function, got a {type(key).__name__}")
    return key


@cache
def certificates(plain: bool, ca_file: str | None = None) -> ssl.SSLContext:
    """Return the trusted certificates, read once because that is the slowest part of a client.

    Args:
        plain: true if nothing is encrypted; then no certificate is trusted.
        ca_file: PEM file of further authorities.

    Raises:
        UsageError: the file cannot be read, or holds no certificate.
    """
    context = (
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if plain else create_ssl_context(trust_env=False)
    )
    if ca_file is not None:
        try:
            context.load_verify_locations(ca_file)
        except OSError as error:  # ssl.SSLError among them
            fault = "holds no certificate" if isinstance(error, ssl.SSLError) else error.strerror
            raise UsageError(
                f"--ca-file {ca_file}: {fault}; give a PEM file with the certificate of the "
                "authority, which begins with -----BEGIN CERTIFICATE-----"
            ) from None
    return context


class NoKey(Exception):
    """There is no API key to send; the message says why and holds no secret."""


class KeyCommand:
    """A program that prints an API key, run without a shell.

    Args:
        command: the program and its arguments, quoted as for a POSIX shell.

    Raises:
        UsageError: the command is empty, or a quotation mark is not closed.
    """

    def __init__(self, command: str) -> None:
        try:
            self._words = shlex.split(command)
        except ValueError as error:
            raise UsageError(f"--api-key-command cannot be parsed: {error}") from None
        if not self._words:
            raise UsageError("--api-key-command is empty: name a program that prints the key")

    async def __call__(self) -> str:
        """Run the program and return the key.

        Raises:
            NoKey: the program cannot be started, fails, takes too long or prints too much.
        """
        name = f"--api-key-command: {self._words[0]}"
        loop = asyncio.get_running_loop()
        try:
            transport, program = await loop.subprocess_exec(_Program, *self._words, stdin=DEVNULL)
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or type(error).__name__
            raise NoKey(f"{name} cannot be started: {why}") from None
        try:
            async with asyncio.timeout(_SECONDS):
                await program.ended.wait()
            code = transport.get_returncode()
        except TimeoutError:
            raise NoKey(f"{name} did not end within {_SECONDS:g} s") from None
        finally:
            transport.close()  # ends the program; its children may keep the pipes open
            await program.exited.wait()
        if max(map(len, program.printed.values())) > _LARGEST:
            raise NoKey(f"{name} printed more than {_LARGEST} bytes, which is not a key")
        if code:
            words = quote(masked(program.printed[2].decode(errors="replace")))
            raise NoKey(f"{name} ended with code {code}" + (f': "{words}"' if words else ""))
        return program.printed[1].decode(errors="replace").strip()


class _Program(asyncio.SubprocessProtocol):
    """A running program and what it prints, up to a limit."""

    def __init__(self) -> None:
        self.ended, self.exited = asyncio.Event(), asyncio.Event()
        self.printed = {1: b"", 2: b""}
        """By descriptor."""

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Keep it."""
        self.printed[fd] += data
        if len(self.printed[fd]) > _LARGEST:
            self.ended.set()

    def process_exited(self) -> None:
        """Wait a moment for the rest of what it printed."""
        self.exited.set()
        asyncio.get_running_loop().call_later(_REST, self.ended.set)

    def connection_lost(self, exc: Exception | None) -> None:
        """Note that all was read."""
        del exc
        self.ended.set()


class Access:
    """The key and the user's headers of each request of one client.

    A key from a source is fetched before the first request. If the server rejects a key that it
    accepted before, one request fetches it again while the others wait, and each is sent once more.
    The answer to that is final.

    Args:
        server: with its key and headers. With headers and without a key, no key's header is sent.
        name: header that holds the key, in lower case.
        scheme: what stands before the key.
    """

    def __init__(self, server: Server, name: str, scheme: str) -> None:
        self._headers, self._name, self._scheme = server.headers, name, scheme
        self._source = None if isinstance(server.key, SecretStr) else server.key
        self._key = server.key if isinstance(server.key, SecretStr) else None
        self._is_accepted = False
        self._lock = asyncio.Lock()

    def headers(self, key: SecretStr | None) -> dict[str, str]:
        """Return the user's headers, and the one that holds the key."""
        own = {} if key is None else {self._name: f"{self._scheme}{key.get_secret_value()}"}
        return {**self._headers, **own}

    async def first_key(self) -> SecretStr | None:
        """Return the key to send; ``None`` if the user's headers take its place.

        Raises:
            NoKey: the source returns no key.
        """
        if self._name in self._headers:
            return None
        key = self._key or await self._key_after(None)
        is_missing = key is not None and key.get_secret_value() == NO_KEY
        return None if is_missing and self._headers else key

    async def newer_key(self, key: SecretStr | None, response: LentResponse) -> SecretStr | None:
        """Return the key to send instead if a response rejects this one; ``None`` otherwise.

        Raises:
            NoKey: the source returns no key.
        """
        if key is None or self._source is None:
            return None
        status = response.status
        is_rejected = status == _UNAUTHORIZED
        if status in _MAYBE_UNAUTHORIZED:
            rule = find_rule(response_error(await response.read(), status))
            is_rejected = rule.reason == "authentication"
        self._is_accepted |= response.is_success
        return await self._key_after(key) if is_rejected else None

    async def _key_after(self, rejected: SecretStr | None) -> SecretStr | None:
        """Return the present key, fetched if it is the rejected one; ``None`` if that is final."""
        async with self._lock:
            if self._key is not rejected:
                return self._key  # another request has fetched it
            if self._source is None or (rejected is not None and not self._is_accepted):
                return None
            key = await _call(self._source)
            if rejected is not None and key == rejected.get_secret_value():
                return None
            remember_key(key)
            self._key, self._is_accepted = SecretStr(key), False
            return self._key


async def _call(source: KeySource) -> str:
    """Return the key of a source, which may block."""
    try:
        made = await asyncio.to_thread(_guarded, source)
        return usable_key(await made if isawaitable(made) else made)
    except UsageError as error:
        raise NoKey(str(error)) from None
    except (NoKey, asyncio.CancelledError):
        raise
    except BaseException as error:  # noqa: BLE001 - of the user's own function
        raise NoKey(_fault(error)) from None


def _guarded(source: KeySource) -> str | Awaitable[str]:
    """Call a source; KeyboardInterrupt and such would end the event loop that waits for it."""
    try:
        return source()
    except BaseException as error:  # noqa: BLE001 - as above
        raise NoKey(_fault(error)) from None


def _fault(error: BaseException) -> str:
    return f"api_key() raised {type(error).__name__}: {quote(masked(str(error)))}"


def quote(text: str) -> str:
    """Return a server's words in one line, safe to show and cut; "" if there are none."""
    line = visible(" ".join(text.split()))
    return f"{line[:_LONGEST_QUOTE]}…" if len(line) > _LONGEST_QUOTE else line


_LONGEST_QUOTE = 200
