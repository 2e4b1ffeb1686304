"""Options that describe a judge.

A new setting of a hosted model is one field of :class:`ModelOptions`: the specification of the
OpenAI judge has the same fields, so that the setting is checked, enters the label's key if it is
marked ``InKey``, and is sent; the command line and the Python functions derive theirs from here.
Annotations are evaluated, as in :mod:`labeler.data.options`.
"""

import os
from collections.abc import Mapping
from dataclasses import Field, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeAlias

from annotated_types import Ge, Gt, Le, MinLen

from labeler.data.options import JUDGE, LIMITS, Option, given
from labeler.errors import UsageError
from labeler.judges.pricing import Price, find_price
from labeler.judges.providers import PROVIDERS, provider_of, split_name

if TYPE_CHECKING:
    from labeler.judges.judge import Judge

    JudgeLike: TypeAlias = str | Judge
    PriceLike: TypeAlias = str | Price
    JsonFile: TypeAlias = str | Path | Mapping[str, Any]
else:  # the types of the command line
    JudgeLike = PriceLike = JsonFile = str

CapField = Literal["max_completion_tokens", "max_tokens"]
PromptCache = Literal["auto", "key", "explicit", "off"]
PACE = frozenset({"requests_per_minute", "tokens_per_minute", "budget"})
"""Options of a run that hold back requests to a hosted model."""


class InKey:
    """Marks a field of a judge specification that can change the label."""


class NotInKey:
    """Marks a field that changes how a judge is reached, never what it is asked."""


def is_in_key(option: "Field[Any]") -> bool:
    """Return True if an option of a hosted model enters the label's key."""
    return InKey in option.type.__metadata__  # type: ignore[union-attr] # annotations are evaluated


@dataclass(frozen=True, kw_only=True)
class ServerOptions:
    """How a server is reached: its address, the network before it, and credentials.

    A secret is named by its variable of the environment, never given: everyone on a machine can
    read a command line.
    """

    PANEL: ClassVar = JUDGE

    base_url: Annotated[
        str | None, Option("Address of the API, if not the provider's own."), NotInKey
    ] = None
    allow_http: Annotated[
        list[str] | None, Option("Allow unencrypted http to this host; repeatable."), NotInKey
    ] = None
    ca_file: Annotated[
        str | None,
        Option("PEM file of additional certificate authorities to trust.", takes=(Path,)),
        NotInKey,
    ] = None
    proxy: Annotated[
        str | None,
        Option("Proxy: a URL, @VARIABLE that holds one, or env to read HTTPS_PROXY."),
        NotInKey,
    ] = None
    header: Annotated[
        list[str] | None,
        Option("Header of each request: NAME=@VARIABLE, read from the environment; repeatable."),
        NotInKey,
    ] = None
    query: Annotated[
        list[str] | None,
        Option("Query parameter of each request, such as api-version=1; repeatable."),
        NotInKey,
    ] = None
    api_key_command: Annotated[
        str | None,
        Option("Command that prints the API key; run again when the key expires."),
        NotInKey,
    ] = None
    organization: Annotated[
        str | None, Option("Organization that pays, if the key has several."), NotInKey
    ] = None
    project: Annotated[
        str | None, Option("Project that pays, if the key has several."), NotInKey
    ] = None

    @property
    def server(self) -> "ServerOptions":
        """The options of the server alone."""
        return ServerOptions(**{one.name: getattr(self, one.name) for one in fields(ServerOptions)})


@dataclass(frozen=True, kw_only=True)
class ModelOptions(ServerOptions):
    """Settings of a hosted model.

    A sampling parameter is omitted from the request unless set: reasoning models reject some of
    them, and the server's default then applies.
    """

    temperature: Annotated[
        float | None,
        Option("Sampling temperature, 0 to 2; omitted from the request unless set."),
        Ge(0),
        Le(2),
        InKey,
    ] = None
    top_p: Annotated[
        float | None,
        Option("Nucleus sampling share; omitted from the request unless set."),
        Gt(0),
        Le(1),
        InKey,
    ] = None
    seed: Annotated[
        int | None, Option("Sampling seed; omitted from the request unless set."), InKey
    ] = None
    reasoning_effort: Annotated[
        str | None,
        Option("Reasoning effort; omitted from the request unless set."),
        MinLen(1),
        InKey,
    ] = None
    output_mode: Annotated[
        str | None,
        Option("How the answer's schema is sent: auto, strict, schema, tools, json or prompt."),
        InKey,
    ] = "auto"
    """``auto`` is what the server accepts and the store has."""
    extra_body: Annotated[
        JsonFile | None,
        Option("JSON file of additional request parameters.", takes=(Path, Mapping)),
        InKey,
    ] = None
    """Kept with each label, and part of its key."""
    prompt_cache: Annotated[
        PromptCache, Option("Prompt cache fields to send; off sends none."), NotInKey
    ] = "auto"
    """``key`` names the prompt, so that requests that share it meet the same cache; ``explicit``
    also marks the end of the shared part; ``auto`` does so where the model needs it."""
    max_output_tokens: Annotated[
        int | None,
        Option(
            "Maximum tokens of an answer, doubled once if reached; --budget sets one.",
            min=1,
            panel=LIMITS,
        ),
        Ge(1),
        NotInKey,
    ] = None
    """Includes reasoning. Not in the key because a complete answer does not depend on it, as long
    as the provider does not derive a thinking budget from it."""
    cap_field: Annotated[CapField, Option("Request field for --max-output-tokens."), NotInKey] = (
        "max_completion_tokens"
    )
    timeout: Annotated[
        float | None, Option("Total seconds for one attempt.", panel=LIMITS), Gt(0), NotInKey
    ] = None


@dataclass(frozen=True, kw_only=True)
class JudgeOptions(ModelOptions):
    """Choice of a judge, its settings and its price."""

    judge: Annotated[
        JudgeLike | None,
        Option(
            "embedded, replay, or PROVIDER:MODEL: openai, anthropic, bedrock, gemini, mistral or "
            "ollama; decisions or systemone for probabilities.",
            first=True,
            takes=(object,),
        ),
    ] = None
    model: Annotated[
        str | None, Option("Same as --judge openai:MODEL.", envvar="LABELER_MODEL", first=True)
    ] = None
    recorded: Annotated[
        str | None,
        Option("Label file that the replay judge takes its answers from.", takes=(Path,)),
    ] = None
    price: Annotated[
        PriceLike | None,
        Option(
            "US dollars per million tokens: IN,OUT such as 0.25,2; then CACHED,CACHE_WRITE.",
            panel=LIMITS,
            takes=(Price,),
        ),
    ] = None
    prices: Annotated[
        str | None, Option("JSON file of prices by model.", panel=LIMITS, takes=(Path,))
    ] = None

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of a hosted model that were given."""
        return given(self, ModelOptions)

    def resolved(self) -> Self:
        """Return the same options with ``PROVIDER:MODEL`` as a judge and a model.

        Raises:
            UsageError: the judge names no model, or another one than ``model``.
        """
        if not isinstance(self.judge, str):
            return self
        kind, model = split_name(self.judge)
        if model and self.model not in {None, model, os.environ.get("LABELER_MODEL")}:
            raise UsageError(
                f"--judge {self.judge} and --model {self.model} name two models: give one"
            )
        return replace(self, judge=kind, model=model or self.model)

    def find_price(self) -> Price | None:
        """Return what the model's tokens cost, if that is known.

        Raises:
            UsageError: ``price`` and ``prices`` are both given, or cannot be read.
        """
        if isinstance(self.price, Price):
            return self.price
        named = self.resolved()
        if named.model is None:
            return None
        provider = provider_of(str(named.judge)) or PROVIDERS["openai"]
        url = self.base_url or provider.address
        found = find_price(named.model, url, given=self.price, file=self.prices)
        is_listed = self.price is None and self.prices is None
        return found.of_input() if found and is_listed and provider.decides else found
