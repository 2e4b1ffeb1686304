"""Facts of a row, besides its metrics, by which rows are found, chosen and compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from labeler.calculators.tally import Tally
from labeler.labels.profiles import (
    BY_FAMILY,
    BY_OUTPUT,
    DEFAULT_PROFILE,
    PROFILES,
    Profile,
    family_of,
)
from labeler.labels.record import AnyOutcome, LabelFailure, LabelRecord, Outcome
from labeler.labels.signature import CORRECTIONS, digest, shown
from labeler.sentences.example import KeyedExample

PARTS = ("question", "documents", "response", "history", "tool_outputs")
"""Parts of a record that two labels of it can share."""
COUNTED = ("relevant", "utilized", "supported")
"""Sets of sentences that a label counts."""


@dataclass(frozen=True, slots=True)
class Retrieved:
    """The documents and earlier turns of a record, by which relevance is judged.

    Attributes:
        texts: digest of the set of the documents' texts, and of the earlier turns.
        sentences: number of their sentences.
    """

    texts: str
    sentences: int

    @classmethod
    def of(cls, example: KeyedExample) -> Self:
        """Return the documents of a record."""
        texts = {" ".join(sentence.text for sentence in part) for part in example.documents}
        turns = shown(example).get("history")
        return cls(_short([sorted(texts), turns]), sum(map(len, example.documents)))


def part_digests(example: KeyedExample) -> tuple[str, ...]:
    """Return a digest of each of :data:`PARTS`; empty for an absent part."""
    texts = shown(example) | {"question": example.question}
    return tuple(_short(texts[part]) if texts.get(part) is not None else "" for part in PARTS)


def _short(value: object) -> str:
    """Return 64 bits of the digest of a JSON value: enough for the rows of one file."""
    return digest(value)[:16]


Counted = tuple[tuple[str, frozenset[str]], ...]
"""By field, the keys of the sentences that a label counts."""


def counted_sets(tally: Tally) -> Counted:
    """Return the sentences of each of :data:`COUNTED`."""
    return tuple((name, getattr(tally, name)) for name in COUNTED)


def outcome_profile(outcome: Outcome) -> Profile:
    """Return the profile of a row's label; the leanest if it failed before one was chosen."""
    if isinstance(outcome, LabelRecord):
        return BY_OUTPUT[type(outcome.label)]
    schema = outcome.signature.response_schema.name if outcome.signature else ""
    return BY_FAMILY.get(family_of(schema), PROFILES[DEFAULT_PROFILE])


@dataclass(frozen=True, slots=True)
class RowFacts:
    """The facts of a row; facts of labels are empty for other rows.

    Attributes:
        position: the place among all rows, from 0.
        kind: ``label``, ``questions`` or ``score``: what was asked for.
        trial: the trial of its judgment.
        corrected: True if people corrected the label.
        profile: name of the profile of the label, or of the failed row.
        digests: digests of :data:`PARTS`.
        retrieved: the documents.
        counted: the sentences that the label counts.
        copies: further records of its id and key, which are left out.
    """

    position: int
    kind: str
    trial: int = 0
    corrected: bool = False
    profile: str = ""
    digests: tuple[str, ...] = ("",) * len(PARTS)
    retrieved: Retrieved = Retrieved("", 0)
    counted: Counted = ()
    copies: int = 0

    @classmethod
    def of(cls, position: int, outcome: AnyOutcome, kind: str, tally: Tally | None = None) -> Self:
        """Return the facts of an outcome.

        Args:
            position: its place.
            outcome: a label, generated questions or a failure.
            kind: what was asked for.
            tally: the tally of a label.
        """
        signature, example = outcome.signature, getattr(outcome, "example", None)
        profile = ""
        if kind == "label" and isinstance(outcome, LabelRecord | LabelFailure):
            profile = outcome_profile(outcome).name
        if signature is None or example is None:
            return cls(position, kind, signature.trial if signature else 0, profile=profile)
        return cls(
            position,
            kind,
            signature.trial,
            CORRECTIONS in signature.sampling,
            profile,
            part_digests(example),
            Retrieved.of(example),
            counted_sets(tally) if tally else (),
        )
