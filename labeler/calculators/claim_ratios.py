"""Metrics of RAGAS, DeepEval and RAGChecker, with the atomic claim as the unit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from labeler.calculators.ratio import Ratio
from labeler.calculators.registry import metric
from labeler.calculators.tally import Tally

if TYPE_CHECKING:
    from labeler.calculators.columns import TallyColumns
    from labeler.calculators.ratio_column import RatioColumn

_VERDICT = ("response_claims.verdict",)
_SUPPORTING = ("response_claims.supporting_sentence_keys",)
_CONTRADICTING = ("response_claims.contradicting_sentence_keys",)
_ON_TOPIC = ("response_claims.relevant_to_question",)


@metric(
    "faithfulness",
    definition="claim",
    needs=_VERDICT,
    source="RAGAS and DeepEval faithfulness",
    formula="claims that the documents entail / claims of the response",
    vector=lambda c: c.claim_share(c.claim_entailed),
)
def faithfulness_claim(tally: Tally) -> Ratio:
    """Share of the response's claims that the documents entail.

    Counts: claims with the verdict ``entailment``, special support included, over claims.
    Undefined when: the label has no claims (``needs_claims``), or the response makes none
    (``no_claims``).
    """
    return tally.claim_share(lambda claim: claim.entailed)


@metric(
    "faithfulness",
    definition="ragchecker",
    needs=_SUPPORTING,
    source="RAGChecker faithfulness",
    formula="claims that a document entails / claims of the response",
    vector=lambda c: c.claim_share(c.claim_supported),
)
def faithfulness_ragchecker(tally: Tally) -> Ratio:
    """Share of the response's claims that can be traced to a document.

    Counts: claims with a supporting document sentence over claims. A claim with special support
    alone, such as a well-known fact, counts in ``faithfulness:claim`` and not here.
    Undefined when: the label has no claims (``needs_claims``), or the response makes none
    (``no_claims``).
    """
    return tally.claim_share(lambda claim: bool(claim.supporting))


@metric(
    "hallucination_rate",
    definition="claim",
    higher_is_better=False,
    needs=_VERDICT,
    source="generator-metrics guide, hallucination",
    formula="claims that the documents do not entail / claims of the response",
    vector=lambda c: c.claim_share(~c.claim_entailed),
)
def hallucination_rate_claim(tally: Tally) -> Ratio:
    """Share of the response's claims that the documents do not entail.

    Counts: claims with the verdict ``neutral`` or ``contradiction`` over claims.
    Undefined when: the label has no claims (``needs_claims``), or the response makes none
    (``no_claims``).
    """
    return tally.claim_share(lambda claim: not claim.entailed)


def _hallucination_contexts(columns: TallyColumns) -> RatioColumn:
    documents = columns.documents.sizes
    share = columns.ratio(columns.contradicted, documents, if_empty="no_documents")
    return share.unless(columns.without_claims, "needs_claims")


@metric(
    "hallucination_contexts",
    definition="document",
    default=True,
    higher_is_better=False,
    needs=_CONTRADICTING,
    source="DeepEval hallucination, as the metric guides define it",
    formula="documents that contradict a claim of the response / C",
    vector=_hallucination_contexts,
)
def hallucination_contexts(tally: Tally) -> Ratio:
    """Share of the documents that the response contradicts.

    Counts: documents with a sentence that contradicts a claim over documents. A document counts
    even if another one entails the claim; a response without claims contradicts none.
    Undefined when: the label has no claims (``needs_claims``), or there are no documents.
    """
    if tally.claims is None:
        return Ratio.missing("needs_claims")
    contradicted = frozenset[int]().union(*(claim.contradicting for claim in tally.claims))
    return Ratio.of(len(contradicted), len(tally.documents), if_empty="no_documents")


@metric(
    "answer_relevancy",
    definition="claim",
    default=True,
    needs=_ON_TOPIC,
    source="DeepEval answer relevancy; generator-metrics guide, response relevancy",
    formula="claims that help to answer the question / claims of the response",
    vector=lambda c: c.claim_share(c.claim_on_topic),
)
def answer_relevancy(tally: Tally) -> Ratio:
    """Share of the response's claims that help to answer the question, true or not.

    Counts: claims relevant to the question over claims.
    Undefined when: the label has no claims (``needs_claims``), or the response makes none
    (``no_claims``).
    """
    return tally.claim_share(lambda claim: claim.relevant is True)
