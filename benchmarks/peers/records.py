"""Synthetic records: a question, four documents of five sentences, a response of four.

Half of what a response says stands in a document word for word, the rest in none. The texts mean
nothing; they are as long as those of a small question-answering set, and the same for every seed.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

_PLACES = ("Harbour Mill", "the east depot", "Cold Spring", "the old brickworks", "Lower Quay")
_PARTS = ("the intake pump", "the drying kiln", "the main conveyor", "the boiler", "the crane")
_ACTS = ("was replaced", "was inspected", "failed", "was repainted", "ran without a stop")
_CAUSES = ("a worn bearing", "a late delivery", "an open valve", "frost", "a planned shutdown")


def made_up(count: int, seed: int = 1) -> list[dict[str, Any]]:
    """Rows with ``id``, ``question``, ``documents`` and ``response``; each question is another."""
    draw = random.Random(seed)
    return [_row(number, draw) for number in range(count)]


def with_references(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same rows with a ``reference``: what their response says first, and one more sentence."""
    return [{**row, "reference": _reference(row)} for row in rows]


def _reference(row: dict[str, Any]) -> str:
    said, document = sentences(row["response"]), sentences(row["documents"][0])
    return f"{said[0]} {document[-1]}"


def sentences(text: str) -> list[str]:
    """The sentences of a made-up text."""
    return [f"{one}." for one in text.removesuffix(".").split(". ")]


def _row(number: int, draw: random.Random) -> dict[str, Any]:
    part, place = draw.choice(_PARTS), draw.choice(_PLACES)
    documents = [[_sentence(draw) for _ in range(5)] for _ in range(4)]
    said = [draw.choice(draw.choice(documents)) for _ in range(2)]
    response = [*said, _sentence(draw), _sentence(draw)]
    return {
        "id": f"made-{number}",
        "question": f"Case {number}: what happened to {part} at {place}, and why?",
        "documents": [" ".join(document) for document in documents],
        "response": " ".join(response),
    }


def _sentence(draw: random.Random) -> str:
    part, act = draw.choice(_PARTS), draw.choice(_ACTS)
    return (
        f"In week {draw.randint(1, 52)} of {draw.randint(1990, 2025)}, {part} at "
        f"{draw.choice(_PLACES)} {act} because of {draw.choice(_CAUSES)}."
    )
