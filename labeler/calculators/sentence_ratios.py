"""Metrics of RAGAS and DeepEval, with the sentence as the unit."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, partial

from labeler.calculators.ratio import Ratio, harmonic_mean
from labeler.calculators.registry import alias, metric
from labeler.calculators.tally import Tally
from labeler.calculators.trace_ratios import RELEVANT, SUPPORT, UTILIZED

_UNJUDGED = Ratio.missing("unjudged_response_sentence")
_default = partial(metric, default=True)
_of_response = partial(_default, definition="sentence", needs=SUPPORT)
_of_ranking = partial(_default, definition="rank")


alias(
    "faithfulness",
    "adherence_fraction",
    definition="sentence",
    default=True,
    source="RAGAS and DeepEval faithfulness, with sentences for claims",
)


@metric(
    "faithfulness",
    definition="without_general",
    needs=SUPPORT,
    source="faithfulness over the sentences that make a claim",
    formula="supported response sentences, general ones left out / |A| without general ones",
)
def faithfulness_without_general(tally: Tally) -> Ratio:
    """Share of the claim-making response sentences that the documents support.

    Counts: as ``faithfulness``, leaving out sentences whose only support is ``general``.
    Undefined when: no sentence makes a claim, or one has no verdict.
    """
    if not tally.response:
        return Ratio.missing("empty_response")
    if tally.unjudged:
        return _UNJUDGED
    supported = len(tally.supported - tally.general)
    return Ratio.of(supported, _in_need(tally), if_empty="no_claiming_sentences")


@_of_response(
    "hallucination_rate",
    higher_is_better=False,
    source="generator-metrics guide, with sentences for claims",
    formula="unsupported response sentences / |A|",
    same_as="1-adherence_fraction",
)
def hallucination_rate(tally: Tally) -> Ratio:
    """Share of the response sentences that the documents do not support.

    Counts: unsupported sentences over response sentences.
    Undefined when: the response has no sentences, or one has no verdict.
    """
    return tally.response_share(tally.unsupported)


@_of_ranking(
    "context_precision",
    needs=RELEVANT,
    source="DeepEval contextual precision; RAGAS context precision",
    formula="(1/Σr_k) Σ_k (relevant documents up to k / k)·r_k",
)
def context_precision(tally: Tally) -> Ratio:
    """Average precision of the ranking of documents by relevance.

    Counts: the sum of the precisions at the rank of each relevant document over relevant
    documents; a document is relevant if it holds a relevant sentence.
    Undefined when: no document is relevant.
    """
    if not tally.relevant_documents:
        return Ratio.missing("no_relevant_sentences")
    return _average_precision(tally.relevant_documents)


@metric(
    "context_precision",
    definition="ragas",
    needs=RELEVANT,
    source="RAGAS 0.4 context precision, without its 1e-10",
    formula="as context_precision; 0 if no document is relevant",
    conventions=(("no_relevant_sentences", 0.0),),
)
def context_precision_ragas(tally: Tally) -> Ratio:
    """Average precision of the ranking of documents; 0 where none is relevant, as in RAGAS.

    RAGAS adds 1e-10 to the number of relevant documents, so its values are lower by as little.

    Counts: as ``context_precision``.
    Undefined when: never; 0 by convention if no document is relevant.
    """
    precision = _average_precision(tally.relevant_documents)
    return replace(precision, convention=0.0)


alias(
    "context_precision",
    "context_precision:ragas",
    definition="deepeval",
    source="DeepEval 4.3 contextual precision",
)


@_of_ranking(
    "context_utilization_precision",
    needs=UTILIZED,
    source="RAGAS context precision without reference",
    formula="as context_precision, with utilized sentences for relevant ones",
)
def context_utilization_precision(tally: Tally) -> Ratio:
    """Average precision of the ranking of documents by use in the response.

    Counts: the sum of the precisions at the rank of each used document over used documents.
    Undefined when: the response uses no document.
    """
    if not tally.utilized_documents:
        return Ratio.missing("no_utilized_sentences")
    return _average_precision(tally.utilized_documents)


alias(
    "context_relevancy",
    "relevance",
    definition="sentence",
    default=True,
    source="DeepEval contextual relevancy, with sentences for statements",
)


@_default(
    "document_relevance",
    definition="document",
    needs=RELEVANT,
    source="precision of retrieval, with documents as the unit",
    formula="documents with a sentence of R / C",
)
def document_relevance(tally: Tally) -> Ratio:
    """Share of the retrieved documents that hold a relevant sentence.

    Counts: relevant documents over documents.
    Undefined when: there are no documents.
    """
    relevant = len(tally.relevant_documents)
    return Ratio.of(relevant, len(tally.documents), if_empty="no_documents")


@_of_response(
    "citation_coverage",
    source="share of sentences that can be traced to a document sentence",
    formula="response sentences whose support names a document sentence / |A|",
)
def citation_coverage(tally: Tally) -> Ratio:
    """Share of the response sentences that can be traced to a document sentence.

    Counts: sentences whose support names at least one real key over response sentences.
    Undefined when: the response has no sentences, or one has no verdict.
    """
    return tally.response_share(tally.citing)


@_of_response(
    "supported_by_history",
    source="share of sentences that rest on the conversation instead of the documents",
    formula="supported response sentences whose support names a turn or tool output / |A|",
)
def supported_by_history(tally: Tally) -> Ratio:
    """Share of the response sentences that an earlier turn or a tool output supports.

    These sentences count as supported in every metric; documents may support them as well.

    Counts: supported sentences whose support names a sentence of the history or of a tool output
    over response sentences.
    Undefined when: the row has neither history nor tool outputs (``no_history``), the response has
    no sentences, or one has no verdict.
    """
    if not tally.has_conversation:
        return Ratio.missing("no_history")
    return tally.response_share(tally.by_conversation)


_abstention = partial(
    _default,
    definition="response",
    higher_is_better=False,
    source="over-refusal of answerable questions, from the wording of the response",
)


@_abstention(
    "abstention_rate",
    needs=SUPPORT,
    formula="1 if the response says that it has no answer and gives none, else 0",
)
def abstention_rate(tally: Tally) -> Ratio:
    """Return 1 if the response abstains, such as with "I don't know".

    The wording decides, in some twenty languages: a sentence says that the speaker does not know or
    that the documents lack the answer, and all others are ``general``, or apologize or refer the
    reader elsewhere without a document.

    Counts: 1 if the response abstains, else 0.
    Undefined when: the response has no sentences.
    """
    if not tally.response:
        return Ratio.missing("empty_response")
    return Ratio.flag(tally.abstains)


@_abstention(
    "unneeded_abstention_rate",
    needs=(*SUPPORT, *RELEVANT),
    formula="1 if it abstains, else 0; of responses whose documents hold a relevant sentence",
)
def unneeded_abstention_rate(tally: Tally) -> Ratio:
    """Return 1 if the response abstains although the documents help to answer the question.

    Counts: 1 if the response abstains, else 0.
    Undefined when: no document sentence is relevant, so that abstaining is right
    (``nothing_to_answer_from``), or the response has no sentences.
    """
    if not tally.relevant:
        return Ratio.missing("nothing_to_answer_from")
    return abstention_rate(tally)


_citation = partial(_default, definition="document", needs=SUPPORT)


@_citation(
    "citation_precision",
    source="modeled on ALCE citation precision; from markers and named support",
    formula="cited documents that hold a key of the citing sentence's support / cited documents",
)
def citation_precision(tally: Tally) -> Ratio:
    """Share of the citations whose document supports the citing sentence.

    Counts: pairs of a sentence and a number that it cites whose document holds a key of the
    sentence's support over such pairs. A number without a document is a wrong citation.
    Undefined when: the response has no citation marker (``no_citations``), or a sentence has no
    verdict.
    """
    missing = _lacks_citations(tally)
    return Ratio(tally.correct_citations, tally.citations) if missing is None else missing


@_citation(
    "citation_recall",
    source="modeled on ALCE citation recall; from markers and named support",
    formula="supported sentences that cite all documents of their support / |A| without general",
)
def citation_recall(tally: Tally) -> Ratio:
    """Share of the sentences in need of support that cite all of it.

    Counts: supported sentences with support that lies in cited documents only over all but those
    whose only support is ``general``. A sentence without a marker counts as not cited.
    Undefined when: the response has no citation marker (``no_citations``), no sentence needs
    support, or one has no verdict.
    """
    missing = _lacks_citations(tally)
    if missing is not None:
        return missing
    return Ratio.of(len(tally.well_cited), _in_need(tally), if_empty="no_claiming_sentences")


@_citation(
    "citation_f1",
    source="harmonic mean of citation_precision and citation_recall",
    formula="2PR / (P + R), P = citation_precision, R = citation_recall; 0 if both are 0",
)
def citation_f1(tally: Tally) -> Ratio:
    """Harmonic mean of citation precision and recall.

    Counts: an exact fraction over 1, so that the pooled value is the mean.
    Undefined when: precision or recall is undefined.
    """
    precision, recall = citation_precision(tally), citation_recall(tally)
    return recall if recall.undefined else harmonic_mean(precision, recall)


def _in_need(tally: Tally) -> int:
    """Return the number of sentences that need support: all but general ones."""
    return len(tally.response) - len(tally.general)


def _lacks_citations(tally: Tally) -> Ratio | None:
    """Return the undefined ratio of a label without citations, or with an unjudged sentence."""
    if not tally.citations:
        return Ratio.missing("no_citations")
    return _UNJUDGED if tally.unjudged else None


@lru_cache(maxsize=1 << 12)
def _average_precision(documents: frozenset[int]) -> Ratio:
    """Return the average precision of a ranking as an exact fraction.

    Args:
        documents: ranks of the documents that count, from 0.
    """
    precisions = (Fraction(n, rank + 1) for n, rank in enumerate(sorted(documents), start=1))
    return Ratio(sum(precisions, Fraction()), len(documents))
