"""What the wires over other providers' own libraries share.

Each provider has its own form of requests and answers. An answer becomes the chat completion that
says the same, so that one reader serves all of them. instructor's clients are not used here: they
make the schema from a class, and the published one is sent byte for byte.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from importlib import import_module
from typing import Any, ClassVar

from httpx2 import AsyncClient, Auth, Response

from labeler.errors import UsageError
from labeler.judges.openai.body import verbatim
from labeler.judges.openai.client import (
    WIRE_ERRORS,
    Server,
    charged_status,
    may_be_charged,
    observed_error,
)
from labeler.judges.openai.completion import Completion, read_completion, response_error
from labeler.judges.openai.headers import retry_after
from labeler.judges.openai.message import text_of
from labeler.judges.openai.preflight import PATIENCE, Preflight, failed_lookup
from labeler.judges.openai.request import mode_of, request_parts
from labeler.judges.openai.wire import FailedRequest, Request
from labeler.version import install_command

_NO_TEXT = "{}"
"""Stands for an empty answer in a re-ask, because the providers reject an empty text."""

_OVERLOADED = 529
"""Anthropic's status of a server without capacity: nothing was worked on."""


class NativeWire:
    """What wires share.

    Args:
        server: address and credentials.
        access: adds headers and key to each request.
        timeout: seconds between two pieces of a response.
    """

    errors: tuple[type[Exception], ...] = WIRE_ERRORS
    version: ClassVar[str] = ""
    """Begin of all paths of the API; an address may end with it."""

    def __init__(self, server: Server, access: Auth, timeout: float) -> None:
        self.base_url = server.base_url.rstrip("/").removesuffix(self.version)
        self.http: AsyncClient = server.open_http(timeout, access)
        self.http.params = self.http.params.merge(server.query)

    async def result_of(self, look_up: Awaitable[object]) -> Preflight:
        """Return the result of a look-up of the model."""
        try:
            async with asyncio.timeout(PATIENCE):
                await look_up
        except self.errors as error:
            return failed_lookup(self.observe(error).observed)
        return Preflight()

    def observe(self, error: Exception) -> FailedRequest:
        """Describe an error; those of the libraries hold the response, if there was one."""
        response: object = getattr(error, "response", None)
        if not isinstance(response, Response):
            return FailedRequest(observed_error(error), may_be_charged(error), {})
        status, headers = response.status_code, response.headers
        observed = response_error(response.content, status, retry_after(headers))
        charged = charged_status(status) and status != _OVERLOADED
        return FailedRequest(observed, charged, self.quotas(headers))

    def quotas(self, headers: Mapping[str, str]) -> Mapping[str, str]:
        """Return the rate limits of a response under the names that OpenAI gives them."""
        return headers

    async def aclose(self) -> None:
        """Close the connections."""
        await self.http.aclose()


def client_library(module: str, extra: str) -> Any:  # noqa: ANN401 - a module
    """Import the client library of a provider.

    Args:
        module: name of the module.
        extra: extra of this package that installs it, and the name of the judge.

    Raises:
        UsageError: it cannot be imported.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise UsageError(
            f"judge {extra} needs the package {module}, which cannot be imported ({error}): "
            f"{install_command(extra)}"
        ) from None


def parts_of(asked: Request) -> tuple[str, list[tuple[str, str]], Mapping[str, Any] | None]:
    """Return the system prompt, roles and texts of the other messages, and the schema.

    The schema is ``None`` in the mode that shows it to the model.
    """
    messages, _ = request_parts(asked.task, asked.messages)
    system = "\n\n".join(one["content"] for one in messages if one["role"] == "system")
    others = [
        (one["role"], one["content"] if one["content"].strip() else _NO_TEXT)
        for one in messages
        if one["role"] != "system"
    ]
    is_tool = mode_of(asked.task.signature) == "tools"
    return system, others, dict(asked.task.schema.json_schema) if is_tool else None


def completion_of(
    body: bytes,
    values: object,
    blocks: Sequence[str | int],
    call: Sequence[str],
    *,
    finish: str | None,
    usage: Mapping[str, Any],
    model: object,
) -> Completion | None:
    """Return the completion that an answer holds.

    Args:
        body: the answer.
        values: its JSON values.
        blocks: path to the list of its texts and calls.
        call: path from a block to the arguments of a call. They are taken word for word, because
            an object with a duplicate name must be seen as such.
        finish: reason of its end in the words of chat completions; ``None`` if it is complete.
        usage: as in chat completions.
        model: the model that answered.
    """
    listed = at(values, *blocks)
    parts = list(enumerate(listed)) if isinstance(listed, list) else []
    texts = [text_of(at(part, "text")) for _, part in parts if not at(part, "thought")]
    called = [n for n, part in parts if at(part, *call) is not None]
    # Only the arguments of a single call are read; each takes a pass over the body.
    calls = [verbatim(body, *blocks, n, *call) if len(called) == 1 else "" for n in called]
    message = {
        "content": "".join(texts),
        "tool_calls": [{"function": {"arguments": arguments}} for arguments in calls],
        "refusal": finish == "refusal",
    }
    choice = {"message": message, "finish_reason": finish}
    return read_completion(
        {
            "choices": [choice] if isinstance(listed, list) or finish else [],
            "usage": usage,
            "model": model,
            "error": at(values, "error"),
        }
    )


def at(values: object, *path: str | int) -> Any:  # noqa: ANN401 - a JSON value
    """Return the value at a path; ``None`` if there is none."""
    for step in path:
        try:
            values = values[step]  # type: ignore[index]  # anything that a server sends
        except (LookupError, TypeError):
            return None
    return values


def total(counts: object, *names: str) -> int | None:
    """Return the sum of the counts that are there; ``None`` without any."""
    found = [at(counts, name) for name in names]
    known = [count for count in found if isinstance(count, int) and count >= 0]
    return sum(known) if known else None


def usage_with_cache(
    counts: object, prompt: str, answer: str, read: str, written: str
) -> dict[str, Any]:
    """Return usage as in chat completions, of counts where cached tokens stand apart.

    Args:
        counts: the counts of an answer.
        prompt: name of the count of tokens that no cache was used for.
        answer: name of the count of the answer's tokens.
        read: name of the count of tokens that were read from the cache.
        written: name of the count of tokens that were written to it.
    """
    return {
        "prompt_tokens": total(counts, prompt, read, written),
        "completion_tokens": total(counts, answer),
        "prompt_tokens_details": {
            "cached_tokens": total(counts, read),
            "cache_write_tokens": total(counts, written),
        },
    }
