"""The names of other systems' metrics and their names here."""

from __future__ import annotations

from dataclasses import dataclass

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


_GUIDES_IN_DEEPEVALS_TERMS = (
    Term("Contextual Precision", "context_precision"),
    Term("Contextual Recall", "context_recall"),
    Term("Contextual Relevancy", "context_relevancy"),
    Term("Answer Relevancy, LLM-based", "answer_relevancy"),
    Term("Answer Relevancy, similarity-based", "answer_relevancy_similarity"),
    Term("Faithfulness", "faithfulness:claim"),
    Term("Hallucination", "hallucination_contexts"),
    Term("Custom LLM judge, G-Eval", "g_eval"),
)

SYSTEMS: dict[str, tuple[Term, ...]] = {
    "TRACe labeling guide": (
        Term("Context Relevance", "relevance:capstone"),
        Term("Context Utilization", "utilization:capstone"),
        Term("Completeness", "completeness:capstone"),
        Term("Adherence", "adherence:capstone"),
        Term("Average Score", "trace_mean:capstone"),
    ),
    "RAG metric guides, short and comprehensive (DeepEval)": _GUIDES_IN_DEEPEVALS_TERMS,
    "RAG generator metrics guide (RAGAS)": (
        Term("Faithfulness", "faithfulness:claim"),
        Term("Hallucination", "hallucination_rate:claim"),
        Term("Response Relevancy, LLM-based", "answer_relevancy"),
        Term("Response Relevancy, string-based", "answer_relevancy_similarity"),
        Term("Relevant Noise Sensitivity", "noise_sensitivity_relevant"),
        Term("Irrelevant Noise Sensitivity", "noise_sensitivity_irrelevant"),
    ),
    "DeepEval 4.3": (
        Term("Contextual Precision", "context_precision:deepeval"),
        Term("Faithfulness", "faithfulness:deepeval"),
        Term("Hallucination", "hallucination:deepeval"),
    ),
    "RAGChecker": (
        Term("precision", "claim_precision:ragchecker"),
        Term("recall", "claim_recall:ragchecker"),
        Term("f1", "claim_f1:ragchecker"),
        Term("claim_recall", "context_recall:ragchecker"),
        Term("context_precision", "context_precision_claims:ragchecker"),
        Term("context_utilization", "context_utilization_claims:ragchecker"),
        Term("noise_sensitivity_in_relevant", "noise_sensitivity_relevant:ragchecker"),
        Term("noise_sensitivity_in_irrelevant", "noise_sensitivity_irrelevant:ragchecker"),
        Term("hallucination", "hallucination_incorrect:ragchecker"),
        Term("self_knowledge", "self_knowledge:ragchecker"),
        Term("faithfulness", "faithfulness:ragchecker"),
    ),
    "omk rubric": (
        Term("faithfulness", "rubric_faithfulness"),
        Term("answer_relevancy", "rubric_answer_relevancy"),
        Term("context_recall", "rubric_context_recall"),
    ),
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
