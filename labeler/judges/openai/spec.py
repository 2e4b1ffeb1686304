"""The settings of the OpenAI judge: which there are, and which of them can change a label."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, ValidationError, field_validator

from labeler.errors import UsageError
from labeler.judges.judge import JudgeSpec
from labeler.judges.openai.address import OFFICIAL_URL, safe_url
from labeler.judges.openai.reask import REASK_VERSION, ReaskVersion
from labeler.judges.options import InKey, ModelOptions, NotInKey


class OpenAISpec(JudgeSpec, ModelOptions):  # type: ignore[misc]  # JudgeSpec is frozen too
    """Identity and settings of the judge: those of :class:`ModelOptions` and these."""

    model_config = ConfigDict(hide_input_in_errors=True, allow_inf_nan=False)

    judge: Annotated[Literal["openai"], InKey] = "openai"
    model: Annotated[str, Field(min_length=1), InKey]
    """Requested model; pin a snapshot, because an alias changes under its name."""
    reask: Annotated[ReaskVersion, InKey] = REASK_VERSION
    """The wording of a re-ask; there is one, and it is not sent as a parameter."""
    base_url: Annotated[str, NotInKey] = OFFICIAL_URL
    """Where requests go; no environment variable changes it."""
    timeout: Annotated[float, Field(gt=0), NotInKey] = 180.0
    """Seconds that one attempt may take in all, from connecting to the last byte."""
    max_attempts: Annotated[int, Field(ge=1), NotInKey] = 6
    """Requests at most for one answer; a re-ask counts anew, and what concerns all records (rate
    limits, outages) does not count."""
    preflight: Annotated[bool, NotInKey] = True
    """Whether the model is looked up once before the first record is sent."""
    reasks: Annotated[int, Field(ge=0, le=1), NotInKey] = 1
    """How often an answer that broke the contract or the schema is sent back."""

    def parameters(self) -> dict[str, Any]:
        """The parameters that every request carries."""
        sampling = {name: value for name, value in self.sampling().items() if name != "reask"}
        return {"model": self.model, **sampling}

    @field_validator("base_url")
    @classmethod
    def _refuse_unsafe_url(cls, url: str) -> str:
        return safe_url(url)


def spec_of(model: str, settings: dict[str, Any]) -> OpenAISpec:
    """Make a specification of what a user gave.

    Raises:
        UsageError: a setting is unknown or out of range, or the address is not safe.
    """
    try:
        return OpenAISpec(model=model, **settings)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_context=False, include_input=False)
    said = "; ".join(f"{'.'.join(map(str, p['loc']))}: {p['msg']}" for p in problems)
    have = ", ".join(name for name in OpenAISpec.model_fields if name not in {"judge", "reask"})
    raise UsageError(f"judge openai does not accept these settings: {said}; settings are {have}")
