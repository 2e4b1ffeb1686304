"""The settings of the OpenAI judge, and which of them are part of label keys."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, ValidationError, field_validator

from labeler.errors import UsageError, describe_faults
from labeler.judges.judge import JudgeSpec
from labeler.judges.openai.address import OFFICIAL_URL, safe_url
from labeler.judges.openai.reask import REASK_VERSION, ReaskVersion
from labeler.judges.options import InKey, ModelOptions, NotInKey


class OpenAISpec(JudgeSpec, ModelOptions):  # type: ignore[misc]  # JudgeSpec is frozen too
    """Identity and settings of the judge: those of :class:`ModelOptions` and these."""

    model_config = ConfigDict(hide_input_in_errors=True, allow_inf_nan=False)

    judge: Annotated[Literal["openai"], InKey] = "openai"
    model: Annotated[str, Field(min_length=1), InKey]
    """Requested model; pin a snapshot, because an alias may refer to another model later."""
    reask: Annotated[ReaskVersion, InKey] = REASK_VERSION
    """Version of the re-ask texts; not sent as a parameter."""
    base_url: Annotated[str, NotInKey] = OFFICIAL_URL
    """Address of the API; no environment variable changes it."""
    timeout: Annotated[float, Field(gt=0), NotInKey] = 180.0
    """Seconds for one attempt, from connecting to the last byte."""
    max_attempts: Annotated[int, Field(ge=1), NotInKey] = 6
    """Requests at most for one answer. A re-ask starts a new count; rate limits and outages do not
    count."""
    preflight: Annotated[bool, NotInKey] = True
    """True to look the model up once before the first record is sent."""
    reasks: Annotated[int, Field(ge=0, le=1), NotInKey] = 1
    """Re-asks at most after an answer that broke the contract or the schema."""

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of every request."""
        sampling = {name: value for name, value in self.sampling().items() if name != "reask"}
        return {"model": self.model, **sampling}

    @field_validator("base_url")
    @classmethod
    def _refuse_unsafe_url(cls, url: str) -> str:
        return safe_url(url)


def spec_of(model: str, settings: dict[str, Any]) -> OpenAISpec:
    """Validate a user's settings.

    Raises:
        UsageError: a setting is unknown or out of range, or the address is unsafe.
    """
    try:
        return OpenAISpec(model=model, **settings)
    except ValidationError as error:
        faults = describe_faults(error, most=error.error_count())
    allowed = ", ".join(name for name in OpenAISpec.model_fields if name not in {"judge", "reask"})
    raise UsageError(
        f"judge openai does not accept these settings: {faults}; settings are {allowed}"
    )
