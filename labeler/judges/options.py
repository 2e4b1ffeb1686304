"""Options that describe a judge, and the providers of hosted models: what options each takes.

A new setting of a hosted model is one field of :class:`ModelOptions`: the specification of the
OpenAI judge has the same fields, so that the setting is checked, enters the label's key if it is
marked ``InKey``, and is sent; the command line and the Python functions derive theirs from here.
Annotations are evaluated, as in :mod:`labeler.data.options`.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeAlias

from annotated_types import Ge, Gt, Le, MinLen

from labeler.catalog import Catalog
from labeler.data.options import JUDGE, LIMITS, Option, given
from labeler.errors import UsageError
from labeler.judges.pricing import Price, find_price

if TYPE_CHECKING:
    from labeler.judges.judge import Judge

    JudgeLike: TypeAlias = str | Judge
    PriceLike: TypeAlias = str | Price
    JsonFile: TypeAlias = str | Path | Mapping[str, Any]
else:  # the types of the command line
    JudgeLike = PriceLike = JsonFile = str


@dataclass(frozen=True, kw_only=True)
class Provider:
    """A provider, as far as options concern it: nothing of its API."""

    base_url: str
    """Address of the API; ``{region}`` stands for a region."""
    key_variables: tuple[str, ...]
    """Variables of the environment that may hold the key, in order; empty if it needs none."""
    address_variables: tuple[str, ...] = ()
    """Variables by which the provider's own library is sent to another address."""
    region_variables: tuple[str, ...] = ()
    """Variables that may hold the region, in order, if the address has one."""
    modes: tuple[str, ...] = ("strict", "schema", "tools", "json", "prompt")
    """Output modes in the order in which ``auto`` tries them."""
    preset: Mapping[str, Any] = field(default_factory=dict)
    """Settings whose default differs from :class:`ModelOptions`."""
    requires_cap: bool = False
    """True if each request must have a cap on the answer."""
    lacks: frozenset[str] = frozenset()
    """Options that it does not know."""
    prefix: str = ""
    """Start of a model's full name, which may be left out: both names are one model."""
    decides: bool = False
    """True if its models answer questions with probabilities and write no text."""

    def short(self, model: str) -> str:
        """Return a model's name without spaces around it, and the start that may be left out."""
        return model.strip().removeprefix(self.prefix)

    @property
    def address(self) -> str:
        """The address of the API, in the region that the environment names if it has one.

        Raises:
            UsageError: no region is named, or the name is none; so the host stays the provider's.
        """
        if not self.region_variables:
            return self.base_url
        region = next(filter(None, map(os.environ.get, self.region_variables)), "")
        if not _REGION.fullmatch(region):
            fault = f"{region!r:.40} is not a region" if region else "no region is named"
            raise UsageError(
                f"{fault}: give --base-url {self.base_url.format(region='REGION')}, or "
                f"set {self.region_variables[0]}, such as to eu-central-1"
            )
        return self.base_url.format(region=region)


_REGION = re.compile(r"[a-z]{2,4}(-[a-z]{2,12}){1,3}-\d{1,2}", re.ASCII)


NATIVE_MODES = ("tools", "prompt")
"""Output modes of APIs unlike chat completions, in the order in which ``auto`` tries them."""
OPENAI_ONLY = frozenset({"cap_field", "logprobs", "organization", "project", "reasoning_effort"})
"""Options that none of these APIs knows."""
_DECIDING: Mapping[str, Any] = {
    "modes": ("strict",),
    "preset": {"prompt_cache": "off", "reask": None, "reasks": 0},
    "lacks": frozenset(
        {
            *("cap_field", "logprobs", "max_output_tokens", "output_mode", "prompt_cache"),
            *("reasoning_effort", "seed", "temperature", "top_p"),
        }
    ),
    "decides": True,
}
_CLASSIC: Mapping[str, Any] = {"cap_field": "max_tokens", "prompt_cache": "off"}

PROVIDERS: Catalog[Provider] = Catalog("provider", group="providers", of=Provider)
"""Providers by name, which is the kind of judge in label keys."""
_OPENAI = Provider(
    base_url="https://api.openai.com/v1",
    key_variables=("OPENAI_API_KEY",),
    address_variables=("OPENAI_BASE_URL",),
)
for _name, _provider in {
    "openai": _OPENAI,
    "mistral": Provider(
        base_url="https://api.mistral.ai/v1",
        key_variables=("MISTRAL_API_KEY",),
        modes=("tools", "schema", "json", "prompt"),
        preset=_CLASSIC,
        lacks=frozenset({"seed"}),  # it has another name there, for --extra-body
    ),
    "decisions": replace(_OPENAI, **_DECIDING),
    "systemone": Provider(
        base_url="https://api.typesafe.ai",
        key_variables=("TYPESAFE_API_KEY",),
        address_variables=("TYPESAFE_BASE_URL",),
        **_DECIDING,
    ),
    "ollama": Provider(base_url="http://localhost:11434/v1", key_variables=(), preset=_CLASSIC),
}.items():
    PROVIDERS.add(_name, _provider)


def provider_of(judge: str) -> Provider | None:
    """Return the provider with a name; ``None`` for a judge of another kind."""
    return PROVIDERS[judge] if judge in PROVIDERS else None  # noqa: SIM401 - get raises UnknownName


def split_name(judge: str) -> tuple[str, str]:
    """Return the kind of judge and the model of ``PROVIDER:MODEL``; "" if it names no model.

    Raises:
        UsageError: a provider's name and a colon, and no model.
    """
    kind, colon, model = (part.strip() for part in judge.partition(":"))
    if not colon or kind not in PROVIDERS:  # package.module:Name is a class
        return judge.strip(), ""
    if not model:
        raise UsageError(f"judge {judge!r} names no model: write {kind}:MODEL")
    return kind, model


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
        list[str] | None,
        Option(
            "Allow unencrypted http to this host; repeatable.",
            python="Hosts to which unencrypted http is allowed: a list.",
        ),
        NotInKey,
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
        Option(
            "Header of each request: NAME=@VARIABLE, read from the environment; repeatable.",
            python="Headers of each request: a list of NAME=@VARIABLE, read from the environment.",
        ),
        NotInKey,
    ] = None
    query: Annotated[
        list[str] | None,
        Option(
            "Query parameter of each request, such as api-version=1; repeatable.",
            python="Query parameters of each request: a list such as ['api-version=1'].",
        ),
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
        Option("Nucleus sampling share, above 0 to 1; omitted from the request unless set."),
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
        Option(
            "JSON file of additional request parameters.",
            takes=(Path, Mapping),
            python="Additional request parameters: a mapping, or a JSON file.",
        ),
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
            python="Maximum tokens of an answer, doubled once if reached; budget sets one.",
        ),
        Ge(1),
        NotInKey,
    ] = None
    """Includes reasoning. Not in the key because a complete answer does not depend on it, as long
    as the provider does not derive a thinking budget from it."""
    cap_field: Annotated[
        CapField,
        Option(
            "Request field for --max-output-tokens.",
            python="Request field for max_output_tokens.",
        ),
        NotInKey,
    ] = "max_completion_tokens"
    timeout: Annotated[
        float | None,
        Option("Total seconds for one attempt; by default 180.", panel=LIMITS),
        Gt(0),
        NotInKey,
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
            python="A judge such as OpenAIJudge(…), a function of @labeler.judge, or a name: "
            "embedded, replay, or PROVIDER:MODEL as for --judge.",
        ),
    ] = None
    model: Annotated[
        str | None,
        Option(
            "Same as --judge openai:MODEL.",
            envvar="LABELER_MODEL",
            first=True,
            python="Same as judge='openai:MODEL'.",
        ),
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

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of a hosted model that were given."""
        return given(self, ModelOptions)

    def resolved(self) -> Self:
        """Return the same options with ``PROVIDER:MODEL`` as a judge and a model.

        Raises:
            UsageError: the judge is empty, names no model, or another one than ``model``.
        """
        if not isinstance(self.judge, str):
            return self
        if not self.judge:
            raise UsageError("--judge is empty: name a judge, such as openai:MODEL or embedded")
        kind, model = split_name(self.judge)
        if model and self.model not in {None, model, os.environ.get("LABELER_MODEL")}:
            raise UsageError(
                f"--judge {self.judge} and --model {self.model} name two models: give one"
            )
        return replace(self, judge=kind, model=model or self.model)

    def find_price(self) -> Price | None:
        """Return what the model's tokens cost, if that is known.

        Raises:
            UsageError: ``price`` cannot be read.
        """
        if isinstance(self.price, Price):
            return self.price
        named = self.resolved()
        if named.model is None:
            return None
        provider = provider_of(str(named.judge)) or PROVIDERS["openai"]
        url = self.base_url or provider.address
        model = provider.short(named.model)
        found = find_price(model, url, given=self.price)
        return found.of_input() if found and self.price is None and provider.decides else found
