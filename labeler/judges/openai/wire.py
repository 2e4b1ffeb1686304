"""What a judge needs of a provider: the only part of it that knows a client library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from labeler.judges.openai.completion import Completion
from labeler.judges.openai.error_rules import ObservedError
from labeler.judges.openai.preflight import Preflight
from labeler.judges.openai.spec import OpenAISpec
from labeler.judges.task import Task


class Request(NamedTuple):
    """What one request asks."""

    spec: OpenAISpec
    task: Task[Any]
    messages: Sequence[Mapping[str, Any]]
    cap: int | None
    """Most tokens of the answer, including reasoning; ``None`` without a cap."""
    cached: bool = True
    """False to send no fields for prompt caching."""


class Reply(NamedTuple):
    """A response with a status of success."""

    completion: Completion | None
    """``None`` if the body is no completion."""
    headers: Mapping[str, str]
    """Names are case-insensitive."""


class FailedRequest(NamedTuple):
    """A request without a reply."""

    observed: ObservedError
    charged: bool
    """True if the provider may have answered all the same."""
    headers: Mapping[str, str]
    """Of the response, if there was one."""


class Wire(Protocol):
    """A provider's API, with connections of one event loop."""

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """The errors of one request that are not bugs of this package."""

    async def send(self, asked: Request, /) -> Reply:
        """Send one request, which is not repeated.

        Raises:
            Exception: one of :attr:`errors`.
        """
        ...

    def observe(self, error: Exception, /) -> FailedRequest:
        """Describe one of :attr:`errors`, without the parts of the request that it holds."""
        ...

    async def look_up(self, model: str, /) -> Preflight:
        """Check key and model before the first record is sent, if the API can."""
        ...

    async def aclose(self) -> None:
        """Close the connections."""
        ...
