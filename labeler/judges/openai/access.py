"""Credentials of each request: headers, and an API key that is fetched again when it expires."""

from __future__ import annotations

import asyncio
import os
import shlex
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from subprocess import DEVNULL, PIPE, Popen
from typing import IO, Protocol, TypeAlias, TypeVar

from httpx2 import Auth, Request, Response
from pydantic import SecretStr

from labeler.errors import UsageError
from labeler.judges.openai.address import NO_KEY, usable_key
from labeler.judges.openai.completion import response_error
from labeler.judges.openai.error_rules import find_rule, quote
from labeler.judges.openai.masking import masked, remember_key

KeySource: TypeAlias = Callable[[], str | Awaitable[str]]
"""Returns an API key: called before the first request, and again when the key has expired."""

_UNAUTHORIZED = 401
_MAYBE_UNAUTHORIZED = frozenset({400, 403})
"""Statuses whose body says whether the key is the fault: Google's and Amazon's."""
_SECONDS = 30.0
"""Seconds that a program may take to print a key."""
_LARGEST = 1 << 16
"""Bytes of a program's output that are read."""
_POLL = 0.05
"""Seconds between two looks at a program, and that the rest of its output may take."""


class Answered(Protocol):
    """The parts of a response that show if its key was accepted."""

    @property
    def status_code(self) -> int:
        """Its status."""

    @property
    def is_success(self) -> bool:
        """True for a status from 200 to 299."""

    async def aread(self) -> bytes:
        """Return the body."""
        ...


AnswerT = TypeVar("AnswerT", bound=Answered)


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
        try:
            program = Popen(  # noqa: ASYNC220, S603 - the user's own command, which starts at once
                self._words, stdin=DEVNULL, stdout=PIPE, stderr=PIPE
            )
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or type(error).__name__
            raise NoKey(f"{name} cannot be started: {why}") from None
        ended = threading.Event()
        try:
            return await asyncio.to_thread(_printed, program, name, ended)
        finally:
            ended.set()


def _printed(program: Popen[bytes], name: str, ended: threading.Event) -> str:
    """Return what a program prints until it ends, or until nobody waits for it.

    Its own children may keep its pipes open for ever, so their end is not waited for.

    Raises:
        NoKey: it fails, takes too long or prints too much.
    """
    output, errors = _Output(program.stdout), _Output(program.stderr)
    until = time.monotonic() + _SECONDS
    while program.poll() is None and time.monotonic() < until and not ended.wait(_POLL):
        if output.is_full or errors.is_full:
            break
    code = program.poll()
    for stream in (output, errors):
        stream.wait()
    program.kill()
    program.wait()
    if output.is_full or errors.is_full:
        raise NoKey(f"{name} printed more than {_LARGEST} bytes, which is no key")
    if code is None:
        raise NoKey(f"{name} did not end within {_SECONDS:g} s")
    if code:
        words = quote(masked(errors.text))
        raise NoKey(f"{name} ended with code {code}" + (f': "{words}"' if words else ""))
    return output.text.strip()


class _Output:
    """What a program prints, read on a thread up to a limit."""

    def __init__(self, stream: IO[bytes] | None) -> None:
        self._content = b""
        self.is_full = False
        self._thread = threading.Thread(target=self._read, args=(stream,), daemon=True)
        self._thread.start()

    @property
    def text(self) -> str:
        """What was printed so far."""
        return self._content.decode(errors="replace")

    def wait(self) -> None:
        """Wait a moment for the rest of what an ended program printed."""
        self._thread.join(_POLL)

    def _read(self, stream: IO[bytes]) -> None:
        with stream:
            while piece := os.read(stream.fileno(), _LARGEST):
                self._content += piece
                if len(self._content) > _LARGEST:
                    self.is_full = True
                    return


class Access(Auth):
    """Adds the key and the user's headers to each request of one client.

    A key from a source is fetched before the first request. If the server rejects a key that it
    accepted before, one request fetches it again while the others wait, and each is sent once more.
    The answer to that is final.

    Args:
        key: the key, or its source.
        headers: names in lower case. With them and without a key, no key's header is sent.
        name: header that holds the key, in lower case.
        scheme: what stands before the key.
    """

    def __init__(
        self,
        key: SecretStr | KeySource,
        headers: Mapping[str, str],
        *,
        name: str = "authorization",
        scheme: str = "Bearer ",
    ) -> None:
        self._headers = headers
        self._name, self._scheme = name, scheme
        self._source = None if isinstance(key, SecretStr) else key
        self._key = key if isinstance(key, SecretStr) else None
        self._is_accepted = False
        self._lock = asyncio.Lock()

    async def async_auth_flow(self, request: Request) -> AsyncGenerator[Request, Response]:
        """Send a request of an HTTP client, once more if its key had expired.

        Raises:
            NoKey: the source returns no key.
        """
        request = self.prepared(request)
        key = await self._first_key()
        response = yield self._with_key(request, key)
        if (newer := await self._newer_key(key, response)) is not None:
            key = newer
            response = yield self._with_key(request, key)
        self._settle(key, response)

    async def send(self, post: Callable[[Mapping[str, str]], Awaitable[AnswerT]]) -> AnswerT:
        """Send a request, once more if its key had expired.

        Args:
            post: sends it with these headers.

        Raises:
            NoKey: the source returns no key.
        """
        key = await self._first_key()
        response = await post(self._credentials(key))
        if (newer := await self._newer_key(key, response)) is not None:
            key = newer
            response = await post(self._credentials(key))
        self._settle(key, response)
        return response

    def prepared(self, request: Request) -> Request:
        """Return the request to send, before headers and key."""
        return request

    def _with_key(self, request: Request, key: SecretStr | None) -> Request:
        request.headers.pop(self._name, None)
        request.headers.update(self._credentials(key))
        return request

    def _credentials(self, key: SecretStr | None) -> dict[str, str]:
        if key is None:
            return {**self._headers}
        return {**self._headers, self._name: f"{self._scheme}{key.get_secret_value()}"}

    async def _first_key(self) -> SecretStr | None:
        """Return the key to send; ``None`` if the user's headers take its place."""
        if self._name in self._headers:
            return None
        key = await self._key_after(None)
        is_missing = key is not None and key.get_secret_value() == NO_KEY
        return None if is_missing and self._headers else key

    async def _newer_key(self, key: SecretStr | None, response: Answered) -> SecretStr | None:
        """Return the key to send instead if a server rejects this one; ``None`` otherwise."""
        if key is None or self._source is None or not await _rejects_key(response):
            return None
        return await self._key_after(key)

    def _settle(self, key: SecretStr | None, response: Answered) -> None:
        if key is not None and key is self._key and response.is_success:
            self._is_accepted = True

    async def _key_after(self, rejected: SecretStr | None) -> SecretStr | None:
        """Return the present key, fetched if it is the rejected one; ``None`` if that is final."""
        async with self._lock:
            if self._key is not rejected:
                return self._key  # another request has fetched it meanwhile
            if self._source is None or (rejected is not None and not self._is_accepted):
                return None
            key = await _call(self._source)
            if rejected is not None and key == rejected.get_secret_value():
                return None
            remember_key(key)
            self._key, self._is_accepted = SecretStr(key), False
            return self._key


async def _rejects_key(response: Answered) -> bool:
    """Return true if a response says that the key is wrong or has expired."""
    status = response.status_code
    if status not in _MAYBE_UNAUTHORIZED:
        return status == _UNAUTHORIZED
    return find_rule(response_error(await response.aread(), status)).reason == "authentication"


async def _call(source: KeySource) -> str:
    """Return the key of a source, which may block."""
    try:
        made = await asyncio.to_thread(_guarded, source)
        key = made if isinstance(made, str) else await made
        return usable_key(key)
    except NoKey:
        raise
    except UsageError as error:
        raise NoKey(str(error)) from None
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # noqa: BLE001 - of the user's own function
        raise _failed_source(error) from None


def _guarded(source: KeySource) -> str | Awaitable[str]:
    """Call a source; what would end its thread is an error of it."""
    try:
        return source()
    except BaseException as error:  # noqa: BLE001 - KeyboardInterrupt would end the event loop
        raise _failed_source(error) from None


def _failed_source(error: BaseException) -> NoKey:
    if isinstance(error, NoKey):
        return error
    words = quote(masked(str(error)))
    return NoKey(f"api_key() raised {type(error).__name__}: {words}")
