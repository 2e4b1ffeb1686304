"""Editions: the defaults of splitter, prompts and schemas, which change together.

A versioned name, such as ``general/2`` or ``trace/v1``, never changes its meaning. A new version
becomes a default in a new edition only, so that a store says which defaults made its labels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from labeler.data.options import ExampleOptions
from labeler.errors import UsageError
from labeler.labels.profiles import version_of
from labeler.labels.signature import Signature
from labeler.sentences.splitting import SPLITTERS, Splitter

OptionsT = TypeVar("OptionsT", bound=ExampleOptions)


@dataclass(frozen=True)
class Edition:
    """The defaults of one edition."""

    splitter: str
    """Name of the sentence splitter."""
    prompts: str
    """Version of the prompts of all profiles; a prompt's version is also that of its schema."""


EDITIONS: Mapping[int, Edition] = {
    1: Edition("general", "v1"),
    2: Edition("general/2", "v2"),
}
DEFAULT_EDITION = max(EDITIONS)


def edition_of(options: ExampleOptions) -> int:
    """Return the edition of a run.

    The default edition gives way to that of a named splitter or prompt, so that naming one of them
    mixes nothing. Both named, each means what it says.

    Args:
        options: of the run.

    Raises:
        UsageError: the edition does not exist, or a named splitter or prompt is of another one.
    """
    prompt: str | None = getattr(options, "prompt", None)
    version = prompt and version_of(prompt)
    by_prompt = next((n for n, one in EDITIONS.items() if one.prompts == version), None)
    by_splitter = next((n for n, one in EDITIONS.items() if one.splitter == options.splitter), None)
    if options.edition is None:
        return by_prompt or by_splitter or DEFAULT_EDITION
    if options.edition not in EDITIONS:
        have = ", ".join(map(str, EDITIONS))
        raise UsageError(f"unknown edition {options.edition!r:.40}; have: {have}")
    for name, value, other in (
        ("prompt", prompt, by_prompt),
        ("splitter", options.splitter, by_splitter),
    ):
        if other not in {None, options.edition}:
            raise UsageError(
                f"--{name} {value} is of edition {other} and --edition names {options.edition}: "
                "one run mixes no editions; leave one of the two out"
            )
    return options.edition


def splitter_of(options: ExampleOptions) -> Splitter:
    """Return the splitter that options name, else that of their edition.

    Raises:
        UnknownName: there is no such splitter.
        UsageError: as for :func:`edition_of`.
    """
    edition = edition_of(options)
    return SPLITTERS[options.splitter or EDITIONS[edition].splitter]


def prompts_of(options: ExampleOptions) -> str:
    """Return the prompt that options name, else the version of their edition's prompts.

    Raises:
        UsageError: as for :func:`edition_of`.
    """
    edition = edition_of(options)
    return getattr(options, "prompt", None) or EDITIONS[edition].prompts


def in_edition(options: OptionsT, edition: int) -> OptionsT:
    """Return options with what they leave open as in an edition.

    A named splitter stays, and the prompts alone are those of the edition.
    """
    if options.splitter is None:
        return replace(options, edition=edition)
    chosen: dict[str, Any] = {"prompt": EDITIONS[edition].prompts}
    return replace(options, **chosen)


def edition_in(signature: Signature) -> int | None:
    """Return the edition that made a record; ``None`` if none did.

    The prompt of a label says it, and the splitter of a score or of questions.
    """
    version = version_of(signature.prompt.name) if signature.prompt else None
    labeled = signature.response_schema.name.startswith(("label-", "retrieval/"))
    for number, one in EDITIONS.items():
        if one.prompts == version if labeled else _is_of(signature.splitter, one):
            return number
    return None


def _is_of(splitter: str, edition: Edition) -> bool:
    return splitter == str(SPLITTERS[edition.splitter])
