"""The settings of a hosted judge, and its requests; bodies are the same online and in a batch."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Self
from urllib.parse import quote

from pydantic import BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from labeler.data.lines import load_json
from labeler.errors import UsageError, describe_faults, validation_faults
from labeler.judges.judge import JudgeSpec
from labeler.judges.openai.address import OFFICIAL_URL, host_of, safe_url
from labeler.judges.openai.attempts import REASK_VERSION, ReaskVersion
from labeler.judges.openai.completion import Completion, parse_completion
from labeler.judges.openai.error_rules import ObservedError
from labeler.judges.options import PROVIDERS, InKey, ModelOptions, NotInKey, Provider, is_in_key
from labeler.judges.task import MODE_FACTS, FrameVersion, Messages, Task, mode_facts
from labeler.labels.signature import ResponseSchema, digest, storable_json

_LARGEST = 1 << 16
"""Bytes of the file at most: its content is kept with each label."""
_CONFIG = "generationConfig"
"""Gemini's object of parameters, in the only spelling that is read."""


def _plain(name: str) -> str:
    """Return a name as Google reads it, with or without underscores."""
    return name.replace("_", "").lower()


_OURS = frozenset(map(_plain, (
    *("model", "messages", "stream", "stream_options", "n"),
    *("response_format", "tools", "tool_choice", "functions", "function_call"),
    *("max_tokens", "max_completion_tokens", "logprobs", "top_logprobs"),
    *("prompt_cache_key", "prompt_cache_options"),
    # Of other providers:
    *("system", "systemInstruction", "contents", "toolConfig", "inferenceConfig", "outputConfig"),
    *(_CONFIG, "candidateCount", "maxOutputTokens", "responseLogprobs"),
    *("responseMimeType", "responseSchema", "responseJsonSchema"),
    *(option.name for option in fields(ModelOptions) if is_in_key(option)),
)))  # fmt: skip
"""Parameters that have an option of their own, or that an answer is read by."""


def read_extra_body(given: object) -> dict[str, Any] | None:
    """Return the parameters of a file, or those given by a Python caller; ``None`` without any.

    Args:
        given: a path, a mapping, or ``None``.

    Raises:
        UsageError: the file cannot be read, is too large or is not a JSON object, or it sets a
            parameter that labeler sets itself.
    """
    if given is None:
        return None
    where = "extra_body" if isinstance(given, Mapping) else f"--extra-body {given}"
    body = given if isinstance(given, Mapping) else _read(str(given), where)
    if not isinstance(body, Mapping):
        raise UsageError(
            f'{where} must hold one JSON object, such as {{"top_k": 20}}; got {body!r:.40}'
        )
    text = storable_json(where, dict(body))
    if len(text) > _LARGEST:
        raise UsageError(f"{where} has {len(text)} bytes; at most {_LARGEST} are allowed")
    config: object = body.get(_CONFIG, {})
    if not isinstance(config, Mapping):
        raise UsageError(f"{where}: {_CONFIG} must be a JSON object; got {config!r:.40}")
    names = [str(name) for name in (*body, *config)]
    if taken := sorted(n for n in names if n != _CONFIG and _plain(n) in _OURS):
        raise UsageError(
            f"{where} sets {', '.join(taken)}, which labeler sets itself: use its own option if it "
            "has one, and drop it here"
        )
    return dict(body) or None  # an empty one changes no request


def _read(path: str, where: str) -> object:
    try:
        with Path(path).open("rb") as file:
            content = file.read(_LARGEST + 1)
        if len(content) > _LARGEST:
            raise UsageError(f"{where} is larger than the {_LARGEST} bytes that are allowed")
        return load_json(content.decode(), is_strict=True)
    except OSError as error:
        raise UsageError(f"{where} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{where} is not JSON: {error}") from None


class OpenAISpec(JudgeSpec, ModelOptions):  # type: ignore[misc]  # JudgeSpec is frozen too
    """Identity and settings of the judge: those of :class:`ModelOptions` and these."""

    model_config = ConfigDict(
        hide_input_in_errors=True, allow_inf_nan=False, str_strip_whitespace=True
    )

    judge: Annotated[str, InKey] = "openai"
    model: Annotated[str, Field(min_length=1), InKey]
    """Requested model; pin a snapshot, because an alias may refer to another model later."""
    reask: Annotated[ReaskVersion | None, InKey] = REASK_VERSION
    """Version of the re-ask texts; not sent as a parameter. ``None`` if nothing is asked again."""
    output_mode: Annotated[Literal["schema", "tools", "json", "prompt"] | None, InKey] = None
    """How the schema is sent; ``None`` for strict, so that keys of strict labels stay."""
    schema_frame: Annotated[FrameVersion | None, InKey] = None
    """Version of the words around the schema, in the modes that show it to the model."""
    schema_modes: Annotated[dict[str, str], NotInKey] = Field(default_factory=dict)
    """Output modes by schema, where known: a server may accept one for a small schema only."""
    base_url: Annotated[str, NotInKey] = OFFICIAL_URL
    """Address of the API; no environment variable changes it."""
    extra_body: Annotated[dict[str, Any] | None, BeforeValidator(read_extra_body), InKey] = None
    timeout: Annotated[float, Field(gt=0), NotInKey] = 180.0
    """Seconds for one attempt, from connecting to the last byte."""
    max_attempts: Annotated[int, Field(ge=1), NotInKey] = 6
    """Requests at most for one answer. A re-ask starts a new count; rate limits and outages do not
    count."""
    preflight: Annotated[bool, NotInKey] = True
    """True to look the model up once before the first record is sent."""
    reasks: Annotated[int, Field(ge=0, le=1), NotInKey] = 1
    """Re-asks at most after an answer that broke the contract or the schema."""

    # What follows does not depend on the output mode, so that copies in other modes may share it.
    @cached_property
    def provider(self) -> Provider:
        """The facts of the provider."""
        return PROVIDERS[self.judge]

    @cached_property
    def parameters(self) -> Mapping[str, Any]:
        """The parameters of every request."""
        sampling = {name: value for name, value in self.sampling().items() if name not in _NOT_SENT}
        return {"model": self.model, **sampling.pop("extra_body", {}), **sampling}

    @cached_property
    def marks_prefix(self) -> bool:
        """True if requests mark the end of what all of them share.

        By default where nothing else is cached: at some providers, and at OpenAI from gpt-5.6 on,
        which charges for other prefixes. Other servers need not know how to mark it.
        """
        is_marked = self.judge in _MARKED
        if self.prompt_cache != "auto":
            return self.prompt_cache == "explicit" or (self.prompt_cache == "key" and is_marked)
        version = _VERSION.match(self.model)
        if version is None or host_of(self.base_url) != host_of(OFFICIAL_URL):
            return is_marked
        return (int(version[1]), int(version[2])) >= _FIRST_EXPLICIT

    def in_mode(self, mode: str) -> Self:
        """Return the same settings with another output mode."""
        return self.model_copy(update=dict.fromkeys(MODE_FACTS) | mode_facts(mode))

    def in_modes(self, known: Mapping[str, str], others: str | None = None) -> Self:
        """Return the same settings with output modes by schema, and one for others if known."""
        own = self if others is None else self.in_mode(others)
        return own.model_copy(update={"schema_modes": {**self.schema_modes, **known}})

    def asked_for(self, schema: ResponseSchema) -> Self:
        """Return the settings with the output mode of a schema."""
        mode = self.schema_modes.get(schema.name)
        return self if mode is None else self.in_mode(mode)

    @model_validator(mode="before")
    @classmethod
    def _read_mode(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        provider = PROVIDERS[given.get("judge", "openai")]
        settings = {**provider.preset, **given}
        if "base_url" not in settings:
            settings["base_url"] = provider.address
        first = provider.modes[0]
        mode = settings.pop("output_mode", None) or first
        if mode not in ("auto", *provider.modes):
            raise ValueError(f"output_mode is one of auto, {', '.join(provider.modes)}")
        # A given version of the frame comes from a stored signature.
        return mode_facts(first if mode == "auto" else mode) | settings

    @model_validator(mode="after")
    def _refuse_unsafe_url(self) -> Self:
        safe_url(self.base_url, self.allow_http or ())
        return self


_NOT_SENT = MODE_FACTS | {"reask"}
"""Settings in the key that are not parameters of a request."""
_NOT_GIVEN = frozenset({"judge", "reask", "schema_frame", "schema_modes"})
"""Fields that no user sets."""


def spec_of(model: str, settings: dict[str, Any], provider: str = "openai") -> OpenAISpec:
    """Validate a user's settings.

    Raises:
        UsageError: a setting is unknown or out of range, the provider lacks it, or the address is
            unsafe.
    """
    if not isinstance(model, str):
        raise UsageError(f"model must be a text, the name of a model, got {model!r:.40}")
    if lacking := sorted(PROVIDERS[provider].lacks & settings.keys()):
        raise UsageError(
            f"judge {provider} takes no {', '.join(lacking)}: its API has no such setting"
        )
    try:
        return OpenAISpec(judge=provider, model=PROVIDERS[provider].short(model), **settings)
    except ValidationError as error:
        faults = describe_faults(error, most=error.error_count())
        unknown = any(fault["type"] == "extra_forbidden" for fault in validation_faults(error))
    allowed = ", ".join(name for name in OpenAISpec.model_fields if name not in _NOT_GIVEN)
    known = f"; settings are {allowed}" if unknown else ""
    raise UsageError(f"judge {provider} does not accept these settings: {faults}{known}")


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
    quotas: Callable[[Mapping[str, str]], Mapping[str, str]] = lambda headers: headers
    """Returns the rate limits of a response under the names that OpenAI gives them; the headers
    that it gets have names in any case, and find them by any."""
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
    asked, _ = task.sent(request.messages)
    body: dict[str, Any] = {
        **spec.parameters,
        **task.kind.parameters(task.signature),
        "messages": asked,
        **_output_format(task.mode, task.schema),
    }
    if request.cap is not None:
        body[spec.cap_field] = request.cap
    if request.cached and spec.prompt_cache != "off":
        shared = (task.prompt.artifact.digest, task.schema.artifact.digest)
        body["prompt_cache_key"] = _cache_key(task.signature.model, *shared)
        if spec.marks_prefix:
            body["messages"] = [_cacheable(asked[0]), *asked[1:]]
            body["prompt_cache_options"] = {"mode": "explicit"}
    return body


CHAT = Form(
    "/chat/completions",
    # Some servers send an event stream unless they are asked for none.
    lambda request: {**request_body(request), "stream": False},
    parse_completion,
    model_path="/models/{model}",
    safe=":",
)
"""OpenAI's chat completions."""


@cache
def _cache_key(*facts: str) -> str:
    """Return a name for the part of a prompt that all records share; it holds none of a record."""
    return f"labeler-{digest(list(facts))[:32]}"


_MARKED = frozenset({"anthropic", "bedrock"})
"""Providers whose API caches only what is marked; the mark is sent unless caching is off."""


_VERSION = re.compile(r"gpt-(\d{1,3})\.(\d{1,3})(?!\d)", re.ASCII)
_FIRST_EXPLICIT = (5, 6)


def rejects_caching(observed: ObservedError) -> bool:
    """Return true if an error names a field for prompt caching."""
    stated = f"{observed.param} {observed.message}"
    return observed.status in {400, 403, 422} and any(name in stated for name in _CACHING)


_CACHING = ("prompt_cache_", "cache_control", "cachePoint", "prompt caching")


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
