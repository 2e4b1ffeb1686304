"""What one judgement can decide otherwise than another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

Field = Literal[
    "relevant",
    "utilized",
    "supported",
    "supporting_keys",
    "overall_supported",
    "claims",
    "reference_claims",
    "as_given",
]
"""What a decision is about: a document sentence (``relevant``, ``utilized``), a response sentence
(``supported``: its verdict; ``supporting_keys``: the keys alone, where both verdicts are the same)
or the whole record. ``as_given`` is what normalisation took from the answer: spelling, duplicates,
unknown keys."""
FIELDS: tuple[Field, ...] = get_args(Field)
SENTENCE_FIELDS: tuple[Field, ...] = ("supported", "supporting_keys")
"""Flips of these take along the whole judgement of a response sentence."""

Direction = Literal["gained", "lost", "changed"]
"""``gained``: a yes in B that is none in A; ``lost``: the other way round; ``changed``: neither a
yes nor a no."""
DIRECTIONS: tuple[Direction, ...] = get_args(Direction)


@dataclass(frozen=True, slots=True)
class DecisionFlip:
    """One decision that B's label takes otherwise than A's.

    Attributes:
        field: what is decided.
        key: the sentence it is about; empty where it is about the whole record.
        direction: how it changed from A to B.
        gained: of a response sentence, the supporting keys that only B names.
        lost: those that only A names.
    """

    field: Field
    key: str
    direction: Direction
    gained: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The published form."""
        return {
            "field": self.field,
            "key": self.key or None,
            "direction": self.direction,
            "keys_gained": list(self.gained),
            "keys_lost": list(self.lost),
        }
