"""Records as JSON for the pages, with every text safe to show.

The report, the review app and the label diff draw the same views.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NotRequired

from typing_extensions import TypedDict

from labeler.audit.registry import Finding
from labeler.calculators import Ratio
from labeler.labels.answers import (
    ClaimsLabelingOutput,
    ComparedClaim,
    ReferenceLabelingOutput,
    judged_sentences,
)
from labeler.labels.record import LabelFailure, LabelRecord
from labeler.sentences.characters import visible
from labeler.sentences.citations import Citation, locate_citations
from labeler.sentences.example import Sentence


class CitationView(TypedDict):
    """A citation marker of a response sentence."""

    marker: str
    documents: list[int]
    """Indices of the cited documents."""
    missing: list[int]
    """Numbers without a document, as written."""


class SentenceView(TypedDict):
    """A sentence."""

    key: str
    text: str
    cites: NotRequired[list[CitationView]]
    """The citation markers of a response sentence that has some, in order."""


class TurnView(TypedDict):
    """An earlier turn."""

    role: str
    sentences: list[SentenceView]


class ToolOutputView(TypedDict):
    """A tool output."""

    name: str
    """Name of the tool; empty if unknown."""
    sentences: list[SentenceView]


class SupportView(TypedDict):
    """The judgment of one response sentence."""

    supported: bool
    keys: list[str]
    """Document sentences and special strings."""
    explanation: str


class ClaimView(TypedDict):
    """A claim of the response or of the reference answer."""

    sentence: str
    claim: str
    verdict: str
    """Verdict by the documents; for a claim of the reference answer, by the response."""
    supporting: list[str]
    contradicting: list[str]
    relevant: bool | None
    reference_verdict: str | None


class LabelView(TypedDict):
    """A label."""

    relevant: list[str]
    utilized: list[str]
    support: dict[str, SupportView]
    """By response sentence, without unjudged ones."""
    overall: bool
    overall_explanation: str
    relevance_explanation: str
    claims: list[ClaimView] | None
    reference_claims: list[ClaimView] | None


class MetricView(TypedDict):
    """A metric's value."""

    value: float | None
    text: str
    """The value as printed, ``0.2500 (1/4)``, or ``undefined: no_relevant_sentences``."""


class FindingView(TypedDict):
    """A finding of the audit."""

    check: str
    severity: str
    message: str
    keys: list[str]


class RecordView(TypedDict):
    """A record."""

    id: str
    key: str
    signature: str
    question: str
    documents: list[list[SentenceView]]
    response: list[SentenceView]
    reference: list[SentenceView] | None
    label: LabelView | None
    """``None`` if hidden from the reader."""
    metrics: dict[str, MetricView]
    findings: list[FindingView]
    doubt: float | None
    metadata: dict[str, str]
    made: dict[str, str]
    """Facts about the label's creation, for readers: model, time, requests, repairs, relevance."""
    history: NotRequired[list[TurnView]]
    """Earlier turns, if there are some."""
    tool_outputs: NotRequired[list[ToolOutputView]]
    """Tool outputs, if there are some."""


def record_view(
    record: LabelRecord,
    *,
    metrics: Mapping[str, Ratio] | None = None,
    findings: Sequence[Finding] = (),
    doubt: float | None = None,
) -> RecordView:
    """Return a record's view, with control and direction characters written out.

    Args:
        record: the record.
        metrics: its metrics by id.
        findings: its audit findings.
        doubt: its suspicion score, from 0 to 1.
    """
    example = record.example
    reply = record.reply
    made = {
        "model": reply.served_model,
        "at": reply.created_at,
        "requests": str(reply.attempts),
        "repairs": ", ".join(f"{count} {name}" for name, count in record.normalised.items()),
        "relevance": record.retrieval and str(record.retrieval),
        "answers": record.UNEXPLAINED if record.lacks_explanations else "",
    }
    view: RecordView = {
        "id": visible(record.id),
        "key": record.key,
        "signature": visible(str(record.signature)),
        "question": visible(example.question),
        "documents": [_sentence_views(document) for document in example.documents],
        "response": _response_views(example.response, len(example.documents)),
        "reference": None if example.reference is None else _sentence_views(example.reference),
        "label": label_view(record),
        "metrics": {name: _metric_view(ratio) for name, ratio in (metrics or {}).items()},
        "findings": [finding_view(finding) for finding in findings],
        "doubt": doubt,
        "metadata": {visible(n): visible(str(v)) for n, v in example.metadata.items()},
        "made": {name: visible(fact) for name, fact in made.items() if fact},
    }
    if example.history:
        view["history"] = [
            {"role": turn.role, "sentences": _sentence_views(turn.sentences)}
            for turn in example.history
        ]
    if example.tool_outputs:
        view["tool_outputs"] = [
            {"name": visible(one.name or ""), "sentences": _sentence_views(one.sentences)}
            for one in example.tool_outputs
        ]
    return view


def _sentence_views(sentences: Sequence[Sentence]) -> list[SentenceView]:
    """Return sentences with their keys."""
    return [{"key": sentence.key, "text": visible(sentence.text)} for sentence in sentences]


def _response_views(sentences: Sequence[Sentence], documents: int) -> list[SentenceView]:
    """Return response sentences with their keys and citation markers."""
    views = _sentence_views(sentences)
    texts = [sentence.text for sentence in sentences]
    for view, text, row in zip(views, texts, locate_citations(texts, documents), strict=True):
        if row:
            view["cites"] = [_citation_view(text, one) for one in row]
    return views


def _citation_view(text: str, citation: Citation) -> CitationView:
    marker, cited = citation
    return {
        "marker": visible(text[marker.start : marker.end]),
        "documents": sorted(cited.documents),
        "missing": sorted(cited.missing),
    }


def label_view(record: LabelRecord) -> LabelView:
    """Return the view of a label of any profile."""
    label = record.label
    return {
        "relevant": list(label.all_relevant_sentence_keys),
        "utilized": list(label.all_utilized_sentence_keys),
        "support": {
            key: {
                "supported": entry.fully_supported,
                "keys": list(entry.supporting_sentence_keys),
                "explanation": visible(record.why(entry)),
            }
            for key, entry in judged_sentences(label).items()
        },
        "overall": label.overall_supported,
        "overall_explanation": visible(label.overall_supported_explanation),
        "relevance_explanation": visible(label.relevance_explanation),
        "claims": _claims(label) if isinstance(label, ClaimsLabelingOutput) else None,
        "reference_claims": (
            _reference_claims(label) if isinstance(label, ReferenceLabelingOutput) else None
        ),
    }


def _claims(label: ClaimsLabelingOutput) -> list[ClaimView]:
    return [
        {
            "sentence": claim.response_sentence_key,
            "claim": visible(claim.claim),
            "verdict": claim.verdict,
            "supporting": list(claim.supporting_sentence_keys),
            "contradicting": list(claim.contradicting_sentence_keys),
            "relevant": claim.relevant_to_question,
            "reference_verdict": (
                claim.reference_verdict if isinstance(claim, ComparedClaim) else None
            ),
        }
        for claim in label.response_claims
    ]


def _reference_claims(label: ReferenceLabelingOutput) -> list[ClaimView]:
    return [
        {
            "sentence": claim.reference_sentence_key,
            "claim": visible(claim.claim),
            "verdict": claim.response_verdict,
            "supporting": list(claim.supporting_sentence_keys),
            "contradicting": [],
            "relevant": None,
            "reference_verdict": None,
        }
        for claim in label.reference_claims
    ]


def _metric_view(ratio: Ratio) -> MetricView:
    value = ratio.value
    if value is None:
        text = f"undefined: {ratio.undefined or 'no value'}"
    elif isinstance(ratio.numerator, int) and ratio.denominator:
        text = f"{value:.4f} ({ratio.numerator}/{ratio.denominator})"
    else:
        text = f"{value:.4f}"
    return {"value": value, "text": visible(text)}


def finding_view(finding: Finding) -> FindingView:
    """Return the view of a finding, whose message may quote a judge."""
    return {
        "check": finding.check,
        "severity": finding.severity,
        "message": visible(finding.message),
        "keys": list(finding.keys),
    }


def failure_view(failure: LabelFailure) -> dict[str, Any]:
    """Return the view of a failed row; a file from elsewhere may give no reason."""
    reason = visible(failure.reason) or "(none)"
    return {
        "id": visible(failure.id),
        "failed": {"reason": reason, "message": visible(failure.message)},
    }
