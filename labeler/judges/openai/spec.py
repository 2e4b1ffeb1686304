"""The settings of the OpenAI judge: which there are, and which of them can change a label."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, ValidationError, field_validator

from labeler.errors import UsageError
from labeler.judges.judge import InKey, JudgeSpec, NotInKey
from labeler.judges.openai.address import OFFICIAL_URL, safe_url
from labeler.judges.openai.reask import REASK_VERSION, ReaskVersion


class OpenAISpec(JudgeSpec):
    """Identity and settings of the judge.

    A sampling parameter that is not set is not sent: reasoning models refuse some of them, and the
    server's default then applies.
    """

    model_config = ConfigDict(hide_input_in_errors=True, allow_inf_nan=False)

    judge: Annotated[Literal["openai"], InKey] = "openai"
    model: Annotated[str, Field(min_length=1), InKey]
    """Requested model; pin a snapshot, because an alias changes under its name."""
    temperature: Annotated[float | None, Field(ge=0, le=2), InKey] = None
    top_p: Annotated[float | None, Field(gt=0, le=1), InKey] = None
    seed: Annotated[int | None, InKey] = None
    """Best effort of the server, where it supports seeds at all."""
    reasoning_effort: Annotated[str | None, Field(min_length=1), InKey] = None
    """How long a reasoning model thinks: ``none``, ``low``, … as the model allows."""
    reask: Annotated[ReaskVersion, InKey] = REASK_VERSION
    """The wording of a re-ask; there is one, and it is not sent as a parameter."""
    base_url: Annotated[str, NotInKey] = OFFICIAL_URL
    """Where requests go; no environment variable changes it."""
    organization: Annotated[str | None, NotInKey] = None
    project: Annotated[str | None, NotInKey] = None
    timeout: Annotated[float, Field(gt=0), NotInKey] = 180.0
    """Seconds that one attempt may take in all, from connecting to the last byte."""
    max_attempts: Annotated[int, Field(ge=1), NotInKey] = 6
    """Requests at most for one answer; a re-ask counts anew, and what concerns all records (rate
    limits, outages) does not count."""
    preflight: Annotated[bool, NotInKey] = True
    """Whether the model is looked up once before the first record is sent."""
    max_output_tokens: Annotated[int | None, Field(ge=1), NotInKey] = None
    """Cap on an answer, reasoning included. Left out of the key because a complete answer does not
    depend on it, as long as the provider does not derive a thinking budget from it."""
    cache_prefix: Annotated[bool, NotInKey] = False
    """Whether the provider is told to keep the instructions, which all requests share, in its
    prompt cache, and nothing else. For OpenAI's models from gpt-5.6 on, which otherwise charge for
    writing each whole prompt to the cache; older models and most other servers refuse it, and cache
    by themselves."""
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
