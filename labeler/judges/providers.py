"""Providers of hosted models: the address of each, the variables of its key, what it takes."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from labeler.catalog import Catalog
from labeler.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class Provider:
    """A provider, as far as options concern it: nothing of its API."""

    base_url: str
    """Address of the API; ``{region}`` stands for a region."""
    key_variables: tuple[str, ...]
    """Variables of the environment that may hold the key, in order; empty if it needs none."""
    address_variable: str | None = None
    """Variable by which the provider's own library is sent to another address."""
    region_variables: tuple[str, ...] = ()
    """Variables that may hold the region, in order, if the address has one."""
    modes: tuple[str, ...] = ("strict", "schema", "tools", "json", "prompt")
    """Output modes in the order in which ``auto`` tries them."""
    preset: Mapping[str, Any] = field(default_factory=dict)
    """Settings whose default differs from that of :class:`~labeler.judges.options.ModelOptions`."""
    requires_cap: bool = False
    """True if each request must have a cap on the answer."""
    lacks: frozenset[str] = frozenset()
    """Options that it does not know."""
    decides: bool = False
    """True if its models answer questions with probabilities and write no text."""

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
PROVIDERS.add(
    "openai",
    Provider(
        base_url="https://api.openai.com/v1",
        key_variables=("OPENAI_API_KEY",),
        address_variable="OPENAI_BASE_URL",
    ),
)
PROVIDERS.add(
    "mistral",
    Provider(
        base_url="https://api.mistral.ai/v1",
        key_variables=("MISTRAL_API_KEY",),
        modes=("tools", "schema", "json", "prompt"),
        preset=_CLASSIC,
        lacks=frozenset({"seed"}),  # it has another name there, for --extra-body
    ),
)
PROVIDERS.add(
    "decisions",
    Provider(
        base_url="https://api.openai.com/v1",
        key_variables=("OPENAI_API_KEY",),
        address_variable="OPENAI_BASE_URL",
        **_DECIDING,
    ),
)
PROVIDERS.add(
    "systemone",
    Provider(
        base_url="https://api.typesafe.ai",
        key_variables=("TYPESAFE_API_KEY",),
        address_variable="TYPESAFE_BASE_URL",
        **_DECIDING,
    ),
)
PROVIDERS.add(
    "ollama",
    Provider(
        base_url="http://localhost:11434/v1",
        key_variables=(),
        preset=_CLASSIC,
    ),
)


def provider_of(judge: str) -> Provider | None:
    """Return the provider with a name; ``None`` for a judge of another kind."""
    return PROVIDERS[judge] if judge in PROVIDERS else None  # noqa: SIM401 - get raises UnknownName


def split_name(judge: str) -> tuple[str, str]:
    """Return the kind of judge and the model of ``PROVIDER:MODEL``; "" if it names no model.

    Raises:
        UsageError: a provider's name and a colon, and no model.
    """
    kind, colon, model = judge.partition(":")
    if not colon or kind not in PROVIDERS:  # package.module:Name is a class
        return judge, ""
    if not model:
        raise UsageError(f"judge {judge!r} names no model: write {kind}:MODEL")
    return kind, model
