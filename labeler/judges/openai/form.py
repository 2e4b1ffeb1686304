"""The form in which a provider's API takes requests and gives answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import quote

from labeler.judges.openai.completion import Completion, parse_completion
from labeler.judges.openai.request import request_body
from labeler.judges.openai.spec import OpenAISpec
from labeler.judges.task import Task

Messages = Sequence[Mapping[str, Any]]


class Request(NamedTuple):
    """The content of one request."""

    spec: OpenAISpec
    task: Task[Any]
    messages: Messages
    cap: int | None
    """Most tokens of the answer, including reasoning; ``None`` without a cap."""
    cached: bool = True
    """False to send no fields for prompt caching."""


@dataclass(frozen=True)
class Form:
    """One API. Paths are those behind the address, in which ``{model}`` stands for the model."""

    path: str
    body: Callable[[Request], dict[str, Any]]
    """Returns the JSON body of a request."""
    read: Callable[[bytes, Request], Completion | None]
    """Reads the body of an answer; ``None`` if it is not a completion."""
    model_path: str = ""
    """Path of the look-up of a model; empty where models are not listed at this address."""
    version: str = ""
    """Begin of all paths, which an address may end with."""
    key: tuple[str, str] = ("authorization", "Bearer ")
    """Header that holds the key, and the words before it."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Further headers of each request."""
    quotas: Callable[[Mapping[str, str]], Mapping[str, str]] = dict
    """Returns the rate limits of a response under the names that OpenAI gives them."""
    name: Callable[[str], str] = str
    """Returns a model's name as it stands in a path."""
    safe: str = ""
    """Characters of it that stay as they are."""

    def url(self, address: str, path: str, model: str) -> str:
        """Return the address of a request."""
        base = address.rstrip("/").removesuffix(self.version)
        named = quote(self.name(model), safe=self.safe)
        return f"{base}{self.version}{path.format(model=named)}"


def _chat_body(asked: Request) -> dict[str, Any]:
    # Some servers send an event stream unless they are asked for none.
    return {**request_body(*asked[:4], cached=asked.cached), "stream": False}


CHAT = Form(
    "/chat/completions",
    _chat_body,
    lambda body, _: parse_completion(body),
    model_path="/models/{model}",
    safe=":",
)
"""OpenAI's chat completions."""
