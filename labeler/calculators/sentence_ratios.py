"""Ratios in the manner of RAGAS and DeepEval, with the sentence as the unit."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from labeler.calculators.definition import metric
from labeler.calculators.ratio import Ratio
from labeler.calculators.tally import Tally

_RELEVANT = ("all_relevant_sentence_keys",)
_UTILIZED = ("all_utilized_sentence_keys",)
_SUPPORT = ("sentence_support_information",)


@metric(
    "faithfulness",
    dialect="sentence",
    default=True,
    needs=_SUPPORT,
    source="RAGAS and DeepEval faithfulness, with sentences for claims",
    formula="supported response sentences / |A|",
)
def faithfulness(tally: Tally) -> Ratio:
    """Share of the response sentences that the documents support.

    Counts: supported sentences over response sentences.
    Undefined when: the response has no sentences, or one was left unjudged.
    """
    return tally.response_share(tally.supported)


@metric(
    "faithfulness",
    dialect="without_general",
    needs=_SUPPORT,
    source="faithfulness over the sentences that make a claim",
    formula="supported response sentences, general ones left out / |A| without general ones",
)
def faithfulness_without_general(tally: Tally) -> Ratio:
    """Share of the claim-making response sentences that the documents support.

    Counts: as ``faithfulness``, leaving out sentences whose only support is ``general``.
    Undefined when: no sentence makes a claim, or one was left unjudged.
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
    dialect="sentence",
    default=True,
    higher_is_better=False,
    needs=_SUPPORT,
    source="generator-metrics guide, with sentences for claims",
    formula="unsupported response sentences / |A|",
)
def hallucination_rate(tally: Tally) -> Ratio:
    """Share of the response sentences that the documents do not support.

    Counts: unsupported sentences over response sentences.
    Undefined when: the response has no sentences, or one was left unjudged.
    """
    return tally.response_share(tally.unsupported)


@metric(
    "context_precision",
    dialect="rank",
    default=True,
    needs=_RELEVANT,
    source="DeepEval contextual precision; RAGAS context precision",
    formula="(1/Σr_k) Σ_k (relevant documents up to k / k)·r_k",
)
def context_precision(tally: Tally) -> Ratio:
    """How far relevant documents stand before irrelevant ones.

    Counts: precision at the rank of each relevant document, summed, over relevant documents; a
    document is relevant where it holds a relevant sentence.
    Undefined when: no document is relevant.
    """
    return _average_precision(tally.ranks(tally.relevant), if_empty="no_relevant_sentences")


@metric(
    "context_utilization_precision",
    dialect="rank",
    default=True,
    needs=_UTILIZED,
    source="RAGAS context precision without reference",
    formula="as context_precision, with utilized sentences for relevant ones",
)
def context_utilization_precision(tally: Tally) -> Ratio:
    """How far documents that the response uses stand before those that it does not.

    Counts: precision at the rank of each used document, summed, over used documents.
    Undefined when: the response uses no document.
    """
    return _average_precision(tally.ranks(tally.utilized), if_empty="no_utilized_sentences")


def _average_precision(hits: Sequence[bool], *, if_empty: str) -> Ratio:
    """Average precision of a ranked list, kept as an exact fraction."""
    found = 0
    total = Fraction()
    for rank, hit in enumerate(hits, start=1):
        if hit:
            found += 1
            total += Fraction(found, rank)
    return Ratio.of(total, found, if_empty=if_empty)


@metric(
    "context_relevancy",
    dialect="sentence",
    default=True,
    needs=_RELEVANT,
    source="DeepEval contextual relevancy, with sentences for statements",
    formula="|R| / N",
)
def context_relevancy(tally: Tally) -> Ratio:
    """Share of the statements in the documents that are relevant to the question.

    Counts: relevant sentences over document sentences.
    Undefined when: there are no document sentences.
    """
    return tally.document_share(tally.relevant)


@metric(
    "document_relevance",
    dialect="document",
    default=True,
    needs=_RELEVANT,
    source="precision of retrieval, with documents as the unit",
    formula="documents with a sentence of R / C",
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
    dialect="sentence",
    default=True,
    needs=_SUPPORT,
    source="share of sentences that can be traced to a document sentence",
    formula="response sentences whose support names a document sentence / |A|",
)
def citation_coverage(tally: Tally) -> Ratio:
    """Share of the response sentences that can be traced to a document sentence.

    Counts: sentences whose support names at least one real key over response sentences.
    Undefined when: the response has no sentences, or one was left unjudged.
    """
    return tally.response_share(tally.citing)
