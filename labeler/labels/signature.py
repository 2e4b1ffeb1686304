"""What made a label: the facts that can change it, their digest, and their printed form."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from pydantic import BaseModel, ConfigDict, Field


def canonical_json(value: object) -> bytes:
    """Write a JSON value in its one canonical form: sorted keys, no spaces, UTF-8.

    Raises:
        ValueError: the value holds NaN or an infinity, or text with a lone surrogate.
    """
    text = json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    return text.encode("utf-8")


def digest(value: object) -> str:
    """SHA-256 of the canonical JSON, as 64 hexadecimal digits."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


class Artifact(BaseModel):
    """A released prompt or schema: its name and the digest of its content."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    """Path-like name with version, such as ``trace/v1``."""
    digest: str
    """SHA-256 of the content, 64 hexadecimal digits."""

    def __str__(self) -> str:
        return f"{self.name}@{self.digest[:8]}"


class Windows(BaseModel):
    """How a label came about that was merged of judgements of parts of a record."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    number: int
    """How many windows there were."""
    limit: int
    """Tokens that the prompt of each could have."""
    version: str
    """Of the rules by which records are cut and labels merged."""


class Signature(BaseModel):
    """The facts, besides the sentences, that can change a label.

    All of it enters the label's key. Keys, addresses, time-outs, concurrency and the package's
    version do not change what is asked and are not here.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    judge: str
    """Kind of judge: ``openai``, ``embedded``, ``ragbench`` for published labels, …"""
    model: str
    """The model that was asked for; the one that answered is in the reply's facts."""
    sampling: dict[str, Any] = Field(default_factory=dict)
    """The sampling parameters that are sent, and what else of the judge can change a label."""
    prompt: Artifact | None = None
    """The prompt; ``None`` where the label was made elsewhere."""
    response_schema: Artifact
    """The schema of the label."""
    splitter: str
    """The splitter that made the sentences, such as ``general/1``."""
    source: str | None = None
    """The published row that an imported label comes from. Nobody was asked, so equal sentences do
    not make equal labels. Not printed: it would part numbers that belong together."""
    trial: int = 0
    """0 for the first judgement of a record; repeats count up and are stored apart."""
    canary: str | None = Field(default=None, exclude_if=lambda value: value is None)
    """Version of the sentences that were planted in the record to test the judge; such a label
    enters no number. ``None`` for a record as it is."""
    part: str | None = Field(default=None, exclude_if=lambda value: value is None)
    """Version of the cutting where the record is one window of a longer one; such a label enters no
    number. ``None`` for a whole record."""
    windows: Windows | None = Field(default=None, exclude_if=lambda value: value is None)
    """Set where the label was merged of those of windows. Their number is not printed: it would
    part numbers that belong together."""

    @property
    def counts(self) -> bool:
        """Whether labels so made are of rows: one of a twin or of a window enters no number."""
        return self.canary is None and self.part is None

    def facts(self) -> dict[str, Any]:
        """What enters a key, as a JSON value.

        A fact at its default is left out: one that a later version adds changes no key of today.
        """
        return self.model_dump(mode="json", exclude_defaults=True)

    def __str__(self) -> str:
        """For people to read and compare; never parsed."""
        parts = [
            f"judge:{_plain(self.judge)}/{_plain(self.model)}",
            f"prompt:{self.prompt or 'none'}",
            f"schema:{self.response_schema}",
            f"splitter:{_plain(self.splitter)}",
        ]
        parts += [f"{name}:{_plain(str(value))}" for name, value in sorted(self.sampling.items())]
        if self.trial:
            parts.append(f"trial:{self.trial}")
        if self.canary:
            parts.append(f"canary:{_plain(self.canary)}")
        if self.part:
            parts.append(f"part:{_plain(self.part)}")
        if self.windows:
            parts.append(f"windows:{self.windows.limit}/{_plain(self.windows.version)}")
        return "|".join(parts)


def _plain(text: str) -> str:
    """Keep a part of a printed signature from reading as two parts."""
    return text.replace("|", "%7C").replace("\n", "%0A")
