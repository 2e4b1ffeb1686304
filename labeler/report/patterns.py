"""What the four TRACe metrics of a record, read together, say of a RAG system.

The first three patterns and their remedies are those of the GPT labeling guide of the RAG capstone
project; the last is their counterpart, which the guide describes without naming it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

HIGH = 0.7
"""From here on a value is high: the guide's ideal for relevance, utilization and completeness."""
LOW = 0.5
"""Up to here a value is low. The guide draws no line; the low values in its examples are 0.3 to
0.5, and what lies between low and high belongs to no pattern."""

RELEVANCE = "relevance"
"""The guide's definition, relevant sentences over retrieved ones, not the fixed 20 of its code."""
UTILIZATION = "utilization:capstone"
"""The guide's own: utilized sentences over relevant ones. Over all retrieved ones, as RAGBench
counts, it could never be low where relevance is low and never be told from it."""
COMPLETENESS = "completeness"
ADHERENCE = "adherence"

METRICS = (RELEVANCE, UTILIZATION, COMPLETENESS, ADHERENCE)
"""Ids of what patterns are read from."""


@dataclass(frozen=True, slots=True)
class Condition:
    """What a pattern asks of one metric.

    Attributes:
        metric: the metric's id.
        least: the value is this or more.
        most: the value is this or less.
    """

    metric: str
    least: float = float("-inf")
    most: float = float("inf")

    def holds(self, value: float | None) -> bool | None:
        """Whether a value fits; ``None`` where there is none."""
        return None if value is None else self.least <= value <= self.most

    def __str__(self) -> str:
        if self.least == self.most:
            return f"{self.metric} = {self.least:g}"
        if self.most == float("inf"):
            return f"{self.metric} ≥ {self.least:g}"
        return f"{self.metric} ≤ {self.most:g}"


@dataclass(frozen=True)
class Pattern:
    """A pattern; a record may fit none, one or several.

    Attributes:
        id: such as ``retrieved_but_unused``.
        title: what it is, in a few words.
        conditions: all of them hold in a record that fits.
        meaning: what it says of the system.
        advice: what to do about it.
        good: whether it is what one hopes for.
    """

    id: str
    title: str
    conditions: tuple[Condition, ...]
    meaning: str
    advice: str
    good: bool = False

    def fits(self, values: Mapping[str, float | None]) -> bool | None:
        """Whether a record fits; ``None`` where a value that would decide it is undefined.

        A record that misses one condition does not fit, whatever its undefined values might be.

        Args:
            values: of :data:`METRICS`, by id; ``None``, or no entry, where undefined.
        """
        met = [condition.holds(values.get(condition.metric)) for condition in self.conditions]
        if False in met:
            return False
        return None if None in met else True


PATTERNS = (
    Pattern(
        "retrieved_but_unused",
        "Good retrieval, unused",
        (Condition(RELEVANCE, least=HIGH), Condition(UTILIZATION, most=LOW)),
        "What was retrieved is to the point, but the response makes little of it.",
        "Improve the prompt: ask for an answer that draws on all the documents have to say.",
    ),
    Pattern(
        "grounded_but_incomplete",
        "Grounded, incomplete",
        (Condition(COMPLETENESS, most=LOW), Condition(ADHERENCE, least=1, most=1)),
        "All that the response says is supported, but much that is relevant is missing.",
        "Improve the coverage of the retrieval, or the way in which the response sums up.",
    ),
    Pattern(
        "comprehensive_and_grounded",
        "Comprehensive and grounded",
        (
            Condition(RELEVANCE, least=HIGH),
            Condition(UTILIZATION, least=HIGH),
            Condition(COMPLETENESS, least=HIGH),
            Condition(ADHERENCE, least=1, most=1),
        ),
        "Retrieval is to the point, the response uses it, and everything in it is supported.",
        "Nothing to mend: watch that it stays so.",
        good=True,
    ),
    Pattern(
        "ungrounded",
        "Ungrounded",
        (Condition(ADHERENCE, least=0, most=0),),
        "At least one sentence of the response has no full support in the documents.",
        "Read the sentences without support. Have the generator answer from the documents alone "
        "and say where they do not tell; where the documents lack it, mend the retrieval.",
    ),
)


def patterns_of(values: Mapping[str, float | None]) -> tuple[bool | None, ...]:
    """For each of :data:`PATTERNS`, whether a record fits; ``None`` where that is undefined."""
    return tuple(pattern.fits(values) for pattern in PATTERNS)
