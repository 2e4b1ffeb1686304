"""The settings of the OpenAI judge, and which of them are part of label keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from labeler.data.lines import load_json
from labeler.errors import UsageError, describe_faults, validation_faults
from labeler.judges.judge import JudgeSpec
from labeler.judges.openai.address import OFFICIAL_URL, safe_url
from labeler.judges.openai.reask import REASK_VERSION, ReaskVersion
from labeler.judges.openai.request import FrameVersion, mode_facts
from labeler.judges.options import InKey, ModelOptions, NotInKey, is_in_key
from labeler.judges.providers import PROVIDERS, Provider
from labeler.judges.task import MODE_FACTS
from labeler.labels.schemas import ResponseSchema
from labeler.labels.signature import canonical_json

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
    """Return the parameters of a file, or those given by a Python caller.

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
    try:
        size = len(canonical_json(dict(body)))
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"{where} holds a value that is not JSON: {error}") from None
    if size > _LARGEST:
        raise UsageError(f"{where} has {size} bytes; at most {_LARGEST} are allowed")
    config: object = body.get(_CONFIG, {})
    if not isinstance(config, Mapping):
        raise UsageError(f"{where}: {_CONFIG} must be a JSON object; got {config!r:.40}")
    names = [str(name) for name in (*body, *config)]
    if taken := sorted(n for n in names if n != _CONFIG and _plain(n) in _OURS):
        raise UsageError(
            f"{where} sets {', '.join(taken)}, which labeler sets itself: use its own option if it "
            "has one, and drop it here"
        )
    return dict(body)


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

    model_config = ConfigDict(hide_input_in_errors=True, allow_inf_nan=False)

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

    @property
    def provider(self) -> Provider:
        """The facts of the provider."""
        return PROVIDERS[self.judge]

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of every request."""
        sampling = {name: value for name, value in self.sampling().items() if name not in _NOT_SENT}
        return {"model": self.model, **sampling.pop("extra_body", {}), **sampling}

    def in_mode(self, mode: str, schema: str | None = None) -> Self:
        """Return the same settings with another output mode, for one schema or the others."""
        if schema is not None:
            return self.model_copy(update={"schema_modes": {**self.schema_modes, schema: mode}})
        other = dict.fromkeys(MODE_FACTS) | mode_facts(mode)
        return self.model_copy(update=other)

    def in_modes(self, known: Mapping[str, str], others: str | None) -> Self:
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
        if mode not in {"auto", *provider.modes}:
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
    if lacking := sorted(PROVIDERS[provider].lacks & settings.keys()):
        raise UsageError(
            f"judge {provider} takes no {', '.join(lacking)}: its API has no such setting"
        )
    try:
        return OpenAISpec(judge=provider, model=model, **settings)
    except ValidationError as error:
        faults = describe_faults(error, most=error.error_count())
        unknown = any(fault["type"] == "extra_forbidden" for fault in validation_faults(error))
    allowed = ", ".join(name for name in OpenAISpec.model_fields if name not in _NOT_GIVEN)
    known = f"; settings are {allowed}" if unknown else ""
    raise UsageError(f"judge {provider} does not accept these settings: {faults}{known}")
