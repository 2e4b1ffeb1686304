"""Requests to a provider's API; their bodies are the same online and in a batch.

A task keeps the output mode of its signature: a judge may have changed its own since.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from urllib.parse import quote

from labeler.judges.openai.address import OFFICIAL_URL, host_of
from labeler.judges.openai.completion import Completion, parse_completion
from labeler.judges.providers import PROVIDERS
from labeler.judges.task import Task
from labeler.labels.schemas import ResponseSchema
from labeler.labels.signature import Signature, digest

if TYPE_CHECKING:
    from labeler.judges.openai.error_rules import ObservedError
    from labeler.judges.openai.spec import OpenAISpec

MODES = PROVIDERS["openai"].modes
FRAMED = frozenset({"json", "prompt"})
"""Modes in which the schema is part of the last message."""

FrameVersion = Literal["schema-frame/1"]
FRAME_VERSION: FrameVersion = "schema-frame/1"
"""Version of :data:`FRAME`. It is part of label keys: increment it whenever the text changes."""
FRAME = (
    "\n\nWrite one JSON object and nothing else: no Markdown, no other words. "
    "It must be valid by this JSON Schema:\n"
)
"""The words before the schema where the model reads it."""


def mode_of(signature: Signature) -> str:
    """Return the output mode in which an answer is asked for."""
    return str(signature.sampling.get("output_mode", "strict"))


def mode_facts(mode: str) -> dict[str, str]:
    """Return the sampling parameters that stand for an output mode; none for strict."""
    frame = {"schema_frame": FRAME_VERSION} if mode in FRAMED else {}
    return {} if mode == "strict" else {"output_mode": mode, **frame}


Messages = Sequence[Mapping[str, Any]]


class Request(NamedTuple):
    """The content of one request."""

    spec: OpenAISpec
    """Model and parameters."""
    task: Task[Any]
    """The task, which has the output mode."""
    messages: Messages | None = None
    """Messages other than the task's own, such as those of a re-ask."""
    cap: int | None = None
    """Most tokens of the answer, including reasoning; ``None`` without a cap."""
    cached: bool = True
    """False to send no fields for prompt caching."""


@dataclass(frozen=True)
class Form:
    """One API. Paths are those behind the address, in which ``{model}`` stands for the model."""

    path: str
    body: Callable[[Request], dict[str, Any]]
    """Returns the JSON body of a request."""
    read: Callable[[bytes, Request], Completion]
    """Reads the body of an answer."""
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


def request_body(request: Request) -> dict[str, Any]:
    """Return the JSON body of a chat completions request."""
    spec, task = request.spec, request.task
    asked, _ = request_parts(task, request.messages)
    body: dict[str, Any] = {
        **spec.parameters(),
        **task.parameters,
        "messages": asked,
        **_output_format(mode_of(task.signature), task.schema),
    }
    if request.cap is not None:
        body[spec.cap_field] = request.cap
    if request.cached and spec.prompt_cache != "off":
        body["prompt_cache_key"] = _cache_key(task)
        if marks_prefix(spec):
            body["messages"] = [_cacheable(asked[0]), *asked[1:]]
            body["prompt_cache_options"] = {"mode": "explicit"}
    return body


CHAT = Form(
    "/chat/completions",
    # Some servers send an event stream unless they are asked for none.
    lambda request: {**request_body(request), "stream": False},
    lambda body, _: parse_completion(body),
    model_path="/models/{model}",
    safe=":",
)
"""OpenAI's chat completions."""


def request_parts(
    task: Task, messages: Messages | None = None
) -> tuple[list[Mapping[str, Any]], str]:
    """Return the messages that are sent, and the schema's JSON if it is sent apart from them."""
    asked = list(task.messages if messages is None else messages)
    if mode_of(task.signature) not in FRAMED:
        return asked, task.sent_schema
    last = len(task.messages) - 1  # a re-ask follows the messages of the task
    asked[last] = {
        **asked[last],
        "content": asked[last]["content"] + FRAME + task.schema.compact,
    }
    return asked, ""


def _cache_key(task: Task) -> str:
    """Return a name for the part of a prompt that all records share; it holds none of a record."""
    prompt, schema = task.prompt.artifact, task.schema.artifact
    return _name_of(task.signature.model, prompt.digest, schema.digest)


@cache
def _name_of(*facts: str) -> str:
    return f"labeler-{digest(list(facts))[:32]}"


def marks_prefix(spec: OpenAISpec) -> bool:
    """Return true if requests mark the end of what all of them share."""
    if spec.prompt_cache == "auto":
        return spec.judge in _MARKED or charges_writes(spec)
    return spec.prompt_cache == "explicit" or (spec.prompt_cache == "key" and spec.judge in _MARKED)


_MARKED = frozenset({"anthropic", "bedrock"})
"""Providers whose API caches only what is marked; the mark is sent unless caching is off."""


def charges_writes(spec: OpenAISpec) -> bool:
    """Return true if a model caches no prefix but one whose end is marked, and charges for others.

    OpenAI's models do from gpt-5.6 on; other servers need not know how to mark it.
    """
    version = _VERSION.match(spec.model)
    if version is None or host_of(spec.base_url) != host_of(OFFICIAL_URL):
        return False
    return (int(version[1]), int(version[2])) >= _FIRST_EXPLICIT


_VERSION = re.compile(r"gpt-(\d{1,3})\.(\d{1,3})(?!\d)", re.ASCII)
_FIRST_EXPLICIT = (5, 6)


def rejects_caching(observed: ObservedError) -> bool:
    """Return true if an error names a field for prompt caching."""
    stated = f"{observed.param} {observed.message}"
    return observed.status in {400, 403, 422} and any(name in stated for name in _CACHING)


_CACHING = ("prompt_cache_", "cache_control", "prompt caching")


def _cacheable(message: Mapping[str, Any]) -> dict[str, Any]:
    """Mark the end of a message as the end of the prefix that all requests share."""
    text = {"type": "text", "text": message["content"]}
    return {**message, "content": [{**text, "prompt_cache_breakpoint": {"mode": "explicit"}}]}


@cache
def _output_format(mode: str, schema: ResponseSchema) -> dict[str, Any]:
    """Return the fields of a request that ask for an answer of a schema in an output mode."""
    if mode == "tools":
        name = schema_name(schema)
        function = {"name": name, "parameters": dict(schema.json_schema)}
        return {
            "tools": [{"type": "function", "function": function}],
            "tool_choice": {"type": "function", "function": {"name": name}},
        }
    if mode == "json":
        return {"response_format": {"type": "json_object"}}
    if mode == "prompt":
        return {}
    return {"response_format": response_format(schema, strict=mode == "strict")}


def response_format(schema: ResponseSchema, *, strict: bool = True) -> dict[str, Any]:
    """Return the response format of a published schema, in its property order."""
    return {
        "type": "json_schema",
        "json_schema": {
            "name": schema_name(schema),
            "strict": strict,
            "schema": dict(schema.json_schema),
        },
    }


def schema_name(schema: ResponseSchema) -> str:
    """Return a schema's name in the characters that the API allows."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", schema.name)[:64]
