"""Metrics of RAGAS and DeepEval, with the sentence as the unit."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

from labeler.calculators.ratio import Ratio
from labeler.calculators.registry import metric
from labeler.calculators.tally import Tally

if TYPE_CHECKING:
    from labeler.calculators.columns import TallyColumns
    from labeler.calculators.ratio_column import RatioColumn

_RELEVANT = ("all_relevant_sentence_keys",)
_UTILIZED = ("all_utilized_sentence_keys",)
_SUPPORT = ("sentence_support_information",)


@metric(
    "faithfulness",
    definition="sentence",
    default=True,
    needs=_SUPPORT,
    source="RAGAS and DeepEval faithfulness, with sentences for claims",
    formula="supported response sentences / |A|",
    vector=lambda c: c.response_share(c.supported),
)
def faithfulness(tally: Tally) -> Ratio:
    """Share of the response sentences that the documents support.

    Counts: supported sentences over response sentences.
    Undefined when: the response has no sentences, or one has no verdict.
    """
    return tally.response_share(tally.supported)


def _without_general(columns: TallyColumns) -> RatioColumn:
    numerator = columns.supported - columns.general
    denominator = columns.response - columns.general
    share = columns.ratio(numerator, denominator, if_empty="no_claiming_sentences")
    made = share.unless(columns.unjudged, "unjudged_response_sentence")
    return made.unless(columns.response == 0, "empty_response")


@metric(
    "faithfulness",
    definition="without_general",
    needs=_SUPPORT,
    source="faithfulness over the sentences that make a claim",
    formula="supported response sentences, general ones left out / |A| without general ones",
    vector=_without_general,
)
def faithfulness_without_general(tally: Tally) -> Ratio:
    """Share of the claim-making response sentences that the documents support.

    Counts: as ``faithfulness``, leaving out sentences whose only support is ``general``.
    Undefined when: no sentence makes a claim, or one has no verdict.
    """
    if not tally.response:
        return Ratio.missing("empty_response")
    if tally.unjudged:
        return Ratio.missing("unjudged_response_sentence")
    claiming = len(tally.response) - len(tally.general)
    return Ratio.of(
        len(tally.supported - tally.general), claiming, if_empty="no_claiming_sentences"
    )


@metric(
    "hallucination_rate",
    definition="sentence",
    default=True,
    higher_is_better=False,
    needs=_SUPPORT,
    source="generator-metrics guide, with sentences for claims",
    formula="unsupported response sentences / |A|",
    vector=lambda c: c.response_share(c.unsupported),
)
def hallucination_rate(tally: Tally) -> Ratio:
    """Share of the response sentences that the documents do not support.

    Counts: unsupported sentences over response sentences.
    Undefined when: the response has no sentences, or one has no verdict.
    """
    return tally.response_share(tally.unsupported)


@metric(
    "context_precision",
    definition="rank",
    default=True,
    needs=_RELEVANT,
    source="DeepEval contextual precision; RAGAS context precision",
    formula="(1/Σr_k) Σ_k (relevant documents up to k / k)·r_k",
    vector=lambda c: c.by_hits(c.relevant_ranks, _of_relevant),
)
def context_precision(tally: Tally) -> Ratio:
    """Average precision of the ranking of documents by relevance.

    Counts: the sum of the precisions at the rank of each relevant document over relevant
    documents; a document is relevant if it holds a relevant sentence.
    Undefined when: no document is relevant.
    """
    return _of_relevant(tally.ranks(tally.relevant))


@metric(
    "context_utilization_precision",
    definition="rank",
    default=True,
    needs=_UTILIZED,
    source="RAGAS context precision without reference",
    formula="as context_precision, with utilized sentences for relevant ones",
    vector=lambda c: c.by_hits(c.utilized_ranks, _of_utilized),
)
def context_utilization_precision(tally: Tally) -> Ratio:
    """Average precision of the ranking of documents by use in the response.

    Counts: the sum of the precisions at the rank of each used document over used documents.
    Undefined when: the response uses no document.
    """
    return _of_utilized(tally.ranks(tally.utilized))


@lru_cache(maxsize=1 << 14)
def _average_precision(hits: tuple[bool, ...], *, if_empty: str) -> Ratio:
    """Return the average precision of a ranked list as an exact fraction."""
    found = 0
    total = Fraction()
    for rank, hit in enumerate(hits, start=1):
        if hit:
            found += 1
            total += Fraction(found, rank)
    return Ratio.of(total, found, if_empty=if_empty)


def _of_relevant(hits: tuple[bool, ...]) -> Ratio:
    return _average_precision(hits, if_empty="no_relevant_sentences")


def _of_utilized(hits: tuple[bool, ...]) -> Ratio:
    return _average_precision(hits, if_empty="no_utilized_sentences")


@metric(
    "context_relevancy",
    definition="sentence",
    default=True,
    needs=_RELEVANT,
    source="DeepEval contextual relevancy, with sentences for statements",
    formula="|R| / N",
    vector=lambda c: c.document_share(c.relevant),
)
def context_relevancy(tally: Tally) -> Ratio:
    """Share of the statements in the documents that are relevant to the question.

    Counts: relevant sentences over document sentences.
    Undefined when: there are no document sentences.
    """
    return tally.document_share(tally.relevant)


@metric(
    "document_relevance",
    definition="document",
    default=True,
    needs=_RELEVANT,
    source="precision of retrieval, with documents as the unit",
    formula="documents with a sentence of R / C",
    vector=lambda c: c.ratio(
        c.documents.sums(c.relevant_ranks), c.documents.sizes, if_empty="no_documents"
    ),
)
def document_relevance(tally: Tally) -> Ratio:
    """Share of the retrieved documents that hold a relevant sentence.

    Counts: relevant documents over documents.
    Undefined when: there are no documents.
    """
    hits = tally.ranks(tally.relevant)
    return Ratio.of(sum(hits), len(hits), if_empty="no_documents")


@metric(
    "citation_coverage",
    definition="sentence",
    default=True,
    needs=_SUPPORT,
    source="share of sentences that can be traced to a document sentence",
    formula="response sentences whose support names a document sentence / |A|",
    vector=lambda c: c.response_share(c.citing),
)
def citation_coverage(tally: Tally) -> Ratio:
    """Share of the response sentences that can be traced to a document sentence.

    Counts: sentences whose support names at least one real key over response sentences.
    Undefined when: the response has no sentences, or one has no verdict.
    """
    return tally.response_share(tally.citing)
