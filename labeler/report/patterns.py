"""Diagnosis patterns: combinations of a record's four TRACe metrics that suggest a remedy.

The first three patterns come from the GPT labeling guide of the RAG capstone project; the last is
their counterpart, which the guide describes without a name. Advice follows from the formulas: a
document sentence that was not retrieved enters none of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

HIGH = 0.7
"""Minimum of a high value: the guide's ideal for relevance, utilization and completeness."""
LOW = 0.5
"""Maximum of a low value. The guide sets no threshold; the low values in its examples are 0.3 to
0.5. Values between low and high belong to no pattern."""

RELEVANCE = "relevance"
"""The guide's definition, relevant sentences over retrieved ones, not the fixed 20 of its code."""
UTILIZATION = "utilization:capstone"
"""The guide's definition: utilized sentences over relevant ones. RAGBench divides by all retrieved
sentences, so its utilization is low wherever relevance is low."""
COMPLETENESS = "completeness"
ADHERENCE = "adherence"

METRICS = (RELEVANCE, UTILIZATION, COMPLETENESS, ADHERENCE)
"""Metric ids that the patterns depend on."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A pattern's condition on one metric.

    Attributes:
        metric: the metric's id.
        least: minimum of the value.
        most: maximum of the value.
    """

    metric: str
    least: float = float("-inf")
    most: float = float("inf")

    def holds(self, value: float | None) -> bool | None:
        """Return whether a value meets the condition; ``None`` without a value."""
        return None if value is None else self.least <= value <= self.most

    def __str__(self) -> str:
        if self.least == self.most:
            return f"{self.metric} = {self.least:g}"
        if self.most == float("inf"):
            return f"{self.metric} ≥ {self.least:g}"
        return f"{self.metric} ≤ {self.most:g}"


@dataclass(frozen=True)
class Pattern:
    """A pattern; a record may match none, one or several.

    Attributes:
        id: such as ``retrieved_but_unused``.
        title: name for readers.
        conditions: conditions that a matching record meets, all of them.
        meaning: what the pattern says about the system.
        advice: the remedy.
    """

    id: str
    title: str
    conditions: tuple[Condition, ...]
    meaning: str
    advice: str

    def matches(self, values: Mapping[str, float | None]) -> bool | None:
        """Return whether a record matches; ``None`` if that depends on an undefined value.

        A record that misses one condition does not match, whatever its undefined values.

        Args:
            values: values of :data:`METRICS` by id; undefined ones are ``None`` or missing.
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
        "Most retrieved sentences are relevant, but the response uses few of them.",
        "Change the generator's prompt: ask it to use all relevant facts.",
    ),
    Pattern(
        "grounded_but_incomplete",
        "Grounded, incomplete",
        (Condition(COMPLETENESS, most=LOW), Condition(ADHERENCE, least=1, most=1)),
        "The response is supported, but leaves out relevant sentences that were retrieved.",
        "Change the generator's prompt: ask for complete answers. Sentences that the retriever "
        "missed are not in completeness; context_recall measures them.",
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
        "Most retrieved sentences are relevant, the response uses them, and all of it is "
        "supported.",
        "No corrections.",
    ),
    Pattern(
        "ungrounded",
        "Ungrounded",
        (Condition(ADHERENCE, least=0, most=0),),
        "At least one response sentence lacks full support in the documents.",
        "Change the generator's prompt: answer from the documents only, and decline where they "
        "lack the answer. Where relevance is 0, check the retriever.",
    ),
)


def match_patterns(values: Mapping[str, float | None]) -> tuple[bool | None, ...]:
    """Return :meth:`Pattern.matches` for each of :data:`PATTERNS`."""
    return tuple(pattern.matches(values) for pattern in PATTERNS)
