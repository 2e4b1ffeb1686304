"""Plain words for metrics, and the few metrics that a reader sees first."""

from __future__ import annotations

from collections.abc import Iterable

from labeler.calculators.registry import Metric

PLAIN_NAMES = {
    "adherence": "answers fully supported",
    "adherence_fraction": "answer sentences supported",
    "adherence_score": "chance of full support",
    "faithfulness": "answer sentences supported",
    "faithfulness:claims": "claims supported",
    "hallucination_rate": "answer sentences unsupported",
    "hallucination_rate:claims": "claims unsupported",
    "relevance": "retrieved sentences relevant",
    "context_relevancy": "retrieved sentences relevant",
    "utilization": "retrieved sentences used",
    "completeness": "relevant sentences used",
    "document_relevance": "documents relevant",
    "context_precision": "relevant documents ranked first",
    "context_utilization_precision": "used documents ranked first",
    "citation_coverage": "answer sentences backed by documents",
    "supported_by_history": "answer sentences supported by earlier turns",
    "citation_precision": "citations that hold",
    "citation_recall": "supported sentences fully cited",
    "citation_f1": "citations that hold and are complete",
    "abstention_rate": "answers that decline",
    "unneeded_abstention_rate": "answers that decline without need",
    "hallucination_contexts": "documents contradicted",
    "answer_relevancy": "claims that answer the question",
    "context_recall": "reference claims retrieved",
    "context_precision_claims": "documents with a reference claim",
    "context_utilization_claims": "retrieved reference claims used",
    "claim_precision": "claims correct",
    "claim_recall": "reference claims in the answer",
    "claim_f1": "claims correct and complete",
    "noise_sensitivity_relevant": "wrong claims from relevant documents",
    "noise_sensitivity_irrelevant": "wrong claims from irrelevant documents",
    "hallucination_incorrect": "wrong claims from no document",
    "self_knowledge": "correct claims from no document",
}
"""Words by metric id; each completes ``52 of 60 …`` or names a column of shares."""

HEADLINES = {
    "trace": (
        "adherence",
        "adherence_fraction",
        "relevance",
        "utilization",
        "completeness",
        "document_relevance",
    ),
    "claims": (
        "adherence",
        "adherence_fraction",
        "answer_relevancy",
        "relevance",
        "utilization",
        "completeness",
    ),
    "reference": (
        "adherence",
        "claim_precision",
        "claim_recall",
        "context_recall",
        "relevance",
        "completeness",
    ),
}
"""By profile, the ids of the metrics to show first, in their order."""

OF_WHOLE_ANSWERS = frozenset({"adherence", "abstention_rate", "unneeded_abstention_rate"})
"""Metrics with the value 0 or 1, so that their sums count answers."""


def plain_name(metric: Metric) -> str:
    """Return words for a metric, or its id where there are none.

    The name of another definition follows in parentheses.
    """
    if metric.id in PLAIN_NAMES:
        return PLAIN_NAMES[metric.id]
    if metric.name not in PLAIN_NAMES:
        return metric.id
    return f"{PLAIN_NAMES[metric.name]} ({metric.definition})"


def name_with_id(metric: Metric) -> str:
    """Return the plain words for a metric with its id in parentheses."""
    words = PLAIN_NAMES.get(metric.id) or PLAIN_NAMES.get(metric.name)
    return f"{words} ({metric.id})" if words else metric.id


def headline_metrics(metrics: Iterable[Metric]) -> list[Metric]:
    """Return the metrics to show first, at most six, in their order.

    Args:
        metrics: metrics with values. The richest profile that one of them needs decides.
    """
    given = {metric.id: metric for metric in metrics}
    profiles = {metric.profile.name for metric in given.values()}
    richest = next((name for name in reversed(HEADLINES) if name in profiles), "trace")
    first = [given[name] for name in HEADLINES[richest] if name in given]
    return first or list(given.values())[:6]
