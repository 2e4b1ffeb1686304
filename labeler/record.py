"""The stored label, the failure that takes its place, and the label's key."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, FiniteFloat, TypeAdapter

from labeler.contract import Violation, check_label
from labeler.example import Frozen, KeyedExample
from labeler.labels import Label, Verbatim
from labeler.profiles import PROFILES
from labeler.signature import Signature, digest


class Usage(Frozen):
    """Tokens that the provider charged for, summed over every attempt of one record."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    """Part of the prompt tokens that the provider served from its own prompt cache."""
    cache_write_tokens: int = 0
    """Part of the prompt tokens that the provider wrote to its prompt cache, where it says so."""

    def __add__(self, other: Usage) -> Usage:
        """Both together."""
        mine, theirs = self.model_dump(), other.model_dump()
        return Usage(**{name: count + theirs[name] for name, count in mine.items()})


class ReplyFacts(Frozen):
    """What happened when the judge was asked; none of it enters the key."""

    served_model: str | None = None
    """The model that answered, as the server names it."""
    system_fingerprint: str | None = None
    host: str | None = None
    """Host of the server that answered, without credentials or path."""
    usage: Usage | None = None
    attempts: int = 1
    """Requests sent for this record, re-asks and retries included; 0 where nobody was asked."""
    reasks: int = 0
    """Answers that were sent back to be mended."""
    broken_contracts: dict[str, int] = Field(default_factory=dict)
    """Violations by kind in the answers that were re-asked."""
    seconds: float | None = None
    """Wall time from the first request to the answer."""
    created_at: str | None = None
    """When the answer came, ISO 8601 in UTC."""
    labeler_version: str | None = None


class SentenceScores(Frozen):
    """A scoring judge's numbers behind its verdicts, by sentence key; higher means more."""

    support: dict[str, FiniteFloat] = Field(default_factory=dict)
    relevance: dict[str, FiniteFloat] = Field(default_factory=dict)
    utilization: dict[str, FiniteFloat] = Field(default_factory=dict)


class LabelRecord(Frozen):
    """A label with everything that is needed to read, recompute and audit it again."""

    kind: Literal["label"] = "label"
    version: Literal[1] = 1
    key: str
    """Identity of the judgement: :func:`label_key` of the sentences and the signature."""
    example: KeyedExample
    label: Label
    """The answer with canonical keys."""
    verbatim: Verbatim | None = None
    """The answer as it was given, where normalisation changed it."""
    normalised: dict[str, int] = Field(default_factory=dict)
    """Trivial repairs by kind."""
    violations: tuple[Violation, ...] = ()
    """Broken contracts that an importer kept; a judge's record has none."""
    signature: Signature
    reply: ReplyFacts = ReplyFacts()
    scores: SentenceScores | None = None

    @property
    def id(self) -> str:
        """The row's id."""
        return self.example.id


class LabelFailure(Frozen):
    """A row that has no label, and why; it stands in the stream where its label would."""

    kind: Literal["failure"] = "failure"
    version: Literal[1] = 1
    id: str
    """The row's id, or ``FILE:LINE`` where the line could not be read."""
    reason: str
    """Machine-readable code, such as ``empty_response``, ``refusal``, ``contract``."""
    message: str
    """What, where, got, allowed, and what to do."""
    attempts: int = 0
    """Requests that were sent for it."""
    reasks: int = 0
    """Answers that were sent back to be mended."""
    usage: Usage | None = None
    """Tokens that were charged all the same."""
    violations: tuple[Violation, ...] = ()
    """What the last answer broke, where the reason is ``contract``."""
    lasting: bool = False
    """Whether asking the same again would most likely end the same, as after a refusal: then it is
    stored, and asked again only on request. ``False`` where the network or the server failed."""
    key: str | None = None
    """Identity of the judgement that was asked for in vain; ``None`` where nothing was asked."""
    signature: Signature | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)


Outcome = LabelRecord | LabelFailure
OUTCOME: TypeAdapter[Outcome] = TypeAdapter(
    Annotated[LabelRecord | LabelFailure, Field(discriminator="kind")]
)
"""Reads either kind of line back."""


def label_key(example: KeyedExample, signature: Signature) -> str:
    """Name a judgement by all that can change it and nothing else.

    In it: the question, every keyed sentence, and the signature. Not in it: the row's id and
    metadata, offsets, and a reference answer that the judge is not shown, which is one of the
    profile that the signature's schema belongs to.

    Returns:
        64 hexadecimal digits.
    """
    # A fact at its default is left out: a fact that a later version adds changes no key of today.
    facts = signature.model_dump(mode="json", exclude_defaults=True)
    referenced = shows_reference(signature)
    return digest({"shown": shown(example, reference=referenced), "signature": facts})


def fault_of(record: LabelRecord) -> str | None:
    """Why a record cannot be what was stored, or ``None`` for a sound one.

    Whoever edits a file can also make it sound again: this finds damage and careless edits.
    """
    if label_key(record.example, record.signature) != record.key:
        return "its key is not that of its question, sentences and signature (see label_key)"
    if check_label(record.label, record.example).label != record.label:
        return "its label names keys that its sentences do not have, or a key twice"
    return None


def shows_reference(signature: Signature) -> bool:
    """Whether the judge was shown the reference answer."""
    return signature.response_schema.name.startswith(_SHOWS_REFERENCE)


_SHOWS_REFERENCE = tuple(f"{p.family}/" for p in PROFILES.values() if p.shows_reference)


def shown(example: KeyedExample, *, reference: bool = False) -> dict[str, Any]:
    """What a judge is shown of an example, as a JSON value.

    Args:
        example: the sentences.
        reference: whether the reference answer is shown too.
    """
    value: dict[str, Any] = {
        "question": example.question,
        "documents": [[[s.key, s.text] for s in document] for document in example.documents],
        "response": [[s.key, s.text] for s in example.response],
    }
    if reference:
        value["reference"] = [[s.key, s.text] for s in example.reference or ()]
    return value
