"""Credentials of each request: headers, and an API key that is fetched again when it expires."""

from __future__ import annotations

import asyncio
import shlex
from asyncio.subprocess import DEVNULL
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

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
_REST = 0.1
"""Seconds that the rest of an ended program's output may take."""


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
            transport.close()  # ends the program; its children may keep the pipes open for ever
            await program.exited.wait()
        if program.is_full:
            raise NoKey(f"{name} printed more than {_LARGEST} bytes, which is not a key")
        if code:
            words = quote(masked(program.text(2)))
            raise NoKey(f"{name} ended with code {code}" + (f': "{words}"' if words else ""))
        return program.text(1).strip()


class _Program(asyncio.SubprocessProtocol):
    """What a program prints, up to a limit, until it ends."""

    def __init__(self) -> None:
        self.ended, self.exited = asyncio.Event(), asyncio.Event()
        self._printed = {1: b"", 2: b""}

    @property
    def is_full(self) -> bool:
        """True if it printed more than is read."""
        return max(map(len, self._printed.values())) > _LARGEST

    def text(self, descriptor: int) -> str:
        """Return what it printed to a descriptor."""
        return self._printed[descriptor].decode(errors="replace")

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Keep it."""
        self._printed[fd] += data
        if self.is_full:
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

    def headers(self, key: SecretStr | None) -> dict[str, str]:
        """Return the user's headers, and the one that holds the key."""
        if key is None:
            return {**self._headers}
        return {**self._headers, self._name: f"{self._scheme}{key.get_secret_value()}"}

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

    async def newer_key(
        self, key: SecretStr | None, status: int, body: Callable[[], Awaitable[bytes]]
    ) -> SecretStr | None:
        """Return the key to send instead if a response rejects this one; ``None`` otherwise.

        Raises:
            NoKey: the source returns no key.
        """
        if key is None or self._source is None:
            return None
        is_rejected = status == _UNAUTHORIZED
        if status in _MAYBE_UNAUTHORIZED:
            rule = find_rule(response_error(await body(), status))
            is_rejected = rule.reason == "authentication"
        return await self._key_after(key) if is_rejected else None

    def settle(self, key: SecretStr | None, *, is_accepted: bool) -> None:
        """Record if the server has accepted a key."""
        if key is not None and key is self._key and is_accepted:
            self._is_accepted = True

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
        return usable_key(made if isinstance(made, str) else await made)
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
