"""The settings of the OpenAI judge, and which of them are part of label keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from labeler.errors import UsageError, describe_faults, validation_faults
from labeler.judges.judge import JudgeSpec
from labeler.judges.openai.address import OFFICIAL_URL, safe_url
from labeler.judges.openai.extra_body import read_extra_body
from labeler.judges.openai.reask import REASK_VERSION, ReaskVersion
from labeler.judges.openai.request import FrameVersion, mode_facts
from labeler.judges.options import InKey, ModelOptions, NotInKey
from labeler.judges.providers import PROVIDERS, Provider
from labeler.judges.task import MODE_FACTS
from labeler.labels.schemas import ResponseSchema


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
        # A version of the frame that is given is that of a stored signature.
        return mode_facts(first if mode == "auto" else mode) | settings

    @model_validator(mode="after")
    def _refuse_unsafe_url(self) -> Self:
        safe_url(self.base_url, self.allow_http or ())
        return self


_NOT_SENT = MODE_FACTS | {"reask"}
"""Settings in the key that are no parameters of a request."""
_NOT_GIVEN = frozenset({"judge", "reask", "schema_frame", "schema_modes"})
"""Fields that no user sets."""


def spec_of(model: str, settings: dict[str, Any], provider: str = "openai") -> OpenAISpec:
    """Validate a user's settings.

    Raises:
        UsageError: a setting is unknown or out of range, the provider lacks it, or the address is
            unsafe.
    """
    if lacking := sorted(PROVIDERS[provider].lacks & settings.keys()):
        raise UsageError(f"judge {provider} takes no {', '.join(lacking)}: the API has none")
    try:
        return OpenAISpec(judge=provider, model=model, **settings)
    except ValidationError as error:
        faults = describe_faults(error, most=error.error_count())
        unknown = any(fault["type"] == "extra_forbidden" for fault in validation_faults(error))
    allowed = ", ".join(name for name in OpenAISpec.model_fields if name not in _NOT_GIVEN)
    known = f"; settings are {allowed}" if unknown else ""
    raise UsageError(f"judge {provider} does not accept these settings: {faults}{known}")
