"""Metrics of RAGAS, DeepEval and RAGChecker, with the atomic claim as the unit.

Some compare the response and the documents with a reference answer. A claim of the response is
*correct* if the reference entails it. A document is a *relevant chunk* if it entails a claim of the
reference. A document entails a claim if it holds one of the claim's supporting sentences.
RAGChecker's *claim recall* is ``context_recall`` here, its *recall* ``claim_recall``. RAGChecker
returns 0 without claims; these metrics are undefined then.
"""

from __future__ import annotations

from fractions import Fraction
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
_CORRECT = ("response_claims.reference_verdict",)
_IN_CONTEXT = ("reference_claims.supporting_sentence_keys",)
_IN_RESPONSE = ("reference_claims.response_verdict",)


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


@metric(
    "context_recall",
    definition="claim",
    default=True,
    needs=_IN_CONTEXT,
    source="DeepEval contextual recall; RAGAS context recall; RAGChecker claim recall",
    formula="reference claims that a document entails / claims of the reference",
    vector=lambda c: c.reference_share(c.reference_entailed),
)
def context_recall(tally: Tally) -> Ratio:
    """Share of the reference answer's claims that the retrieved documents entail.

    Counts: reference claims with a supporting document sentence over reference claims.
    Undefined when: the label has no reference (``needs_reference``), or it makes no claim
    (``no_reference_claims``).
    """
    return tally.reference_share(lambda claim: claim.entailed)


@metric(
    "context_precision_claims",
    definition="claim",
    default=True,
    needs=_IN_CONTEXT,
    source="RAGChecker context precision: of a set, not of a ranking",
    formula="documents that entail a reference claim / C",
    vector=lambda c: c.with_reference(
        c.ratio(c.chunks, c.documents.sizes, if_empty="no_documents")
    ),
)
def context_precision_claims(tally: Tally) -> Ratio:
    """Share of the documents that hold a claim of the reference answer.

    Counts: relevant chunks over documents, regardless of rank.
    Undefined when: the label has no reference (``needs_reference``), it makes no claim
    (``no_reference_claims``), or there are no documents.
    """
    missing = tally.without_reference
    if missing:
        return Ratio.missing(missing)
    found = len(tally.relevant_chunks)
    return Ratio.of(found, len(tally.documents), if_empty="no_documents")


def _context_utilization_claims(columns: TallyColumns) -> RatioColumn:
    retrieved, sums = columns.reference_entailed, columns.reference_claims.sums
    used = sums(retrieved & columns.reference_found)
    share = columns.ratio(used, sums(retrieved), if_empty="no_reference_claim_in_documents")
    return columns.with_reference(share)


@metric(
    "context_utilization_claims",
    definition="claim",
    default=True,
    needs=(*_IN_CONTEXT, *_IN_RESPONSE),
    source="RAGChecker context utilization",
    formula="reference claims in documents and response / reference claims in documents",
    vector=_context_utilization_claims,
)
def context_utilization_claims(tally: Tally) -> Ratio:
    """Share of the reference's claims in the documents that the response contains.

    Counts: reference claims that a document and the response entail over those that a document
    entails.
    Undefined when: the label has no reference (``needs_reference``), it makes no claim
    (``no_reference_claims``), or no document entails one (``no_reference_claim_in_documents``).
    """
    missing = tally.without_reference
    if missing:
        return Ratio.missing(missing)
    retrieved = [claim for claim in tally.reference_claims or () if claim.entailed]
    used = sum(claim.counterpart is True for claim in retrieved)
    return Ratio.of(used, len(retrieved), if_empty="no_reference_claim_in_documents")


@metric(
    "claim_precision",
    definition="claim",
    default=True,
    needs=_CORRECT,
    source="RAGChecker precision",
    formula="correct claims / claims of the response",
    vector=lambda c: c.compared_share(c.claim_correct),
)
def claim_precision(tally: Tally) -> Ratio:
    """Share of the response's claims that the reference answer entails.

    Counts: correct claims over claims.
    Undefined when: the label has no reference (``needs_reference``), it makes no claim
    (``no_reference_claims``), or the response makes none (``no_claims``).
    """
    return tally.compared_share(lambda claim: claim.counterpart is True)


@metric(
    "claim_recall",
    definition="claim",
    default=True,
    needs=_IN_RESPONSE,
    source="RAGChecker recall",
    formula="reference claims that the response entails / claims of the reference",
    vector=lambda c: c.reference_share(c.reference_found),
)
def claim_recall(tally: Tally) -> Ratio:
    """Share of the reference answer's claims that the response entails.

    Counts: reference claims found in the response over reference claims.
    Undefined when: the label has no reference (``needs_reference``), or it makes no claim
    (``no_reference_claims``).
    """
    return tally.reference_share(lambda claim: claim.counterpart is True)


def _claim_f1(columns: TallyColumns) -> RatioColumn:
    precision = columns.compared_share(columns.claim_correct)
    recall = columns.reference_share(columns.reference_found)
    # With a/n and b/m for the two, 2ab/(am + bn).
    top = 2 * precision.numerator * recall.numerator
    bottom = precision.numerator * recall.denominator + recall.numerator * precision.denominator
    f1 = columns.plain(top, 1, parts=bottom.clip(min=1))
    return f1.undefined_like(recall).undefined_like(precision)


@metric(
    "claim_f1",
    definition="claim",
    default=True,
    needs=(*_CORRECT, *_IN_RESPONSE),
    source="RAGChecker F1",
    formula="2PR / (P + R), P = claim_precision, R = claim_recall; 0 if both are 0",
    vector=_claim_f1,
)
def claim_f1(tally: Tally) -> Ratio:
    """Harmonic mean of precision and recall of claims.

    Counts: an exact fraction over 1, so that the pooled value is the mean. 0 if both sides make
    claims and share none.
    Undefined when: precision or recall is undefined; the reason is that of the first.
    """
    precision, recall = claim_precision(tally), claim_recall(tally)
    undefined = precision.undefined or recall.undefined
    if undefined:
        return Ratio.missing(undefined)
    p, r = precision.exact, recall.exact
    return Ratio(2 * p * r / (p + r) if p + r else Fraction(), 1)


@metric(
    "noise_sensitivity_relevant",
    definition="claim",
    default=True,
    higher_is_better=False,
    needs=(*_CORRECT, *_SUPPORTING, *_IN_CONTEXT),
    source="RAGChecker and RAGAS noise sensitivity; generator-metrics guide",
    formula="incorrect claims that a relevant chunk entails / claims of the response",
    vector=lambda c: c.compared_share(~c.claim_correct & c.claim_in_chunks),
)
def noise_sensitivity_relevant(tally: Tally) -> Ratio:
    """Share of the response's claims that are incorrect and entailed by a relevant chunk.

    Counts: claims that the reference does not entail and a relevant chunk does over claims.
    Undefined when: the label has no reference (``needs_reference``), it makes no claim
    (``no_reference_claims``), or the response makes none (``no_claims``).
    """
    chunks = tally.relevant_chunks
    return tally.compared_share(
        lambda claim: not claim.counterpart and not claim.supporting.isdisjoint(chunks)
    )


@metric(
    "noise_sensitivity_irrelevant",
    definition="claim",
    default=True,
    higher_is_better=False,
    needs=(*_CORRECT, *_SUPPORTING, *_IN_CONTEXT),
    source="RAGChecker and RAGAS noise sensitivity; generator-metrics guide",
    formula="incorrect claims that irrelevant chunks alone entail / claims of the response",
    vector=lambda c: c.compared_share(~c.claim_correct & c.claim_supported & ~c.claim_in_chunks),
)
def noise_sensitivity_irrelevant(tally: Tally) -> Ratio:
    """Share of the response's claims that are incorrect and entailed by irrelevant chunks alone.

    Counts: claims that neither the reference nor a relevant chunk entails but another document
    does, over claims. Claims that a relevant chunk entails count in
    ``noise_sensitivity_relevant``.
    Undefined when: the label has no reference (``needs_reference``), it makes no claim
    (``no_reference_claims``), or the response makes none (``no_claims``).
    """
    chunks = tally.relevant_chunks
    return tally.compared_share(
        lambda claim: (
            not claim.counterpart and bool(claim.supporting) and claim.supporting.isdisjoint(chunks)
        )
    )


@metric(
    "hallucination_incorrect",
    definition="claim",
    default=True,
    higher_is_better=False,
    needs=(*_CORRECT, *_SUPPORTING),
    source="RAGChecker hallucination",
    formula="incorrect claims that no document entails / claims of the response",
    vector=lambda c: c.compared_share(~c.claim_correct & ~c.claim_supported),
)
def hallucination_incorrect(tally: Tally) -> Ratio:
    """Share of the response's claims that are incorrect and entailed by no document.

    Counts: claims that neither the reference nor a document entails over claims.
    Undefined when: the label has no reference (``needs_reference``), it makes no claim
    (``no_reference_claims``), or the response makes none (``no_claims``).
    """
    return tally.compared_share(lambda claim: not claim.counterpart and not claim.supporting)


@metric(
    "self_knowledge",
    definition="claim",
    default=True,
    higher_is_better=False,
    needs=(*_CORRECT, *_SUPPORTING),
    source="RAGChecker self-knowledge",
    formula="correct claims that no document entails / claims of the response",
    vector=lambda c: c.compared_share(c.claim_correct & ~c.claim_supported),
)
def self_knowledge(tally: Tally) -> Ratio:
    """Share of the response's claims that are correct and entailed by no document.

    Counts: claims that the reference entails and no document does over claims. Lower is better if
    the response should rest on the documents alone.
    Undefined when: the label has no reference (``needs_reference``), it makes no claim
    (``no_reference_claims``), or the response makes none (``no_claims``).
    """
    return tally.compared_share(lambda claim: claim.counterpart is True and not claim.supporting)
