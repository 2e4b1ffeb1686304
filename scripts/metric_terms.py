"""The names of other systems' metrics and their names here."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from itertools import starmap
from pathlib import Path

from labeler.calculators import METRICS


@dataclass(frozen=True)
class Term:
    """One metric of another system.

    Attributes:
        name: what it is called there.
        id: the metric here that has its definition.
    """

    name: str
    id: str


SYSTEMS: dict[str, tuple[Term, ...]] = {
    system: tuple(starmap(Term, terms.items()))
    for system, terms in tomllib.loads(
        Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
    ).items()
}
"""By system, in the order of its own list."""

_RUBRIC = "1 rubric call"
ASKED_APART = {
    "rubric_faithfulness": _RUBRIC,
    "rubric_answer_relevancy": _RUBRIC,
    "rubric_context_recall": _RUBRIC,
    "g_eval": f"{_RUBRIC}, and 1 for its steps",
    "answer_relevancy_similarity": "1 question call + embeddings",
}
"""Metrics that no label gives, and what each of them is asked with."""


def system_table() -> str:
    """Each metric of each system: id here, and the call that it needs."""
    lines = [
        "| system | metric there | id here | needs |",
        "|---|---|---|---|",
    ]
    for system, terms in SYSTEMS.items():
        for number, term in enumerate(terms):
            named = "" if number else system
            lines.append(f"| {named} | {term.name} | `{term.id}` | {_cost(term.id)} |")
    return "\n".join(lines)


def _cost(metric_id: str) -> str:
    """The profile of the label that has a metric, or its own calls for a record."""
    return ASKED_APART.get(metric_id) or f"`{METRICS[metric_id].profile.name}`"
