"""Metrics of RAGAS, DeepEval and RAGChecker, with the atomic claim as the unit.

Some compare the response and the documents with a reference answer. A claim of the response is
*correct* if the reference entails it. A document is a *relevant chunk* if it entails a claim of the
reference. A document entails a claim if it holds one of the claim's supporting sentences.
RAGChecker's *claim recall* is ``context_recall`` here, its *recall* ``claim_recall``. Without
claims the default definitions are undefined; those of RAGChecker are 0, as there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from labeler.calculators.ratio import Ratio, harmonic_mean
from labeler.calculators.registry import METRICS, C, metric
from labeler.calculators.tally import ClaimTally, Holds, Tally, count

_VERDICT = ("response_claims.verdict",)
_SUPPORTING = ("response_claims.supporting_sentence_keys", *_VERDICT)
_CONTRADICTING = ("response_claims.contradicting_sentence_keys",)
_ON_TOPIC = ("response_claims.relevant_to_question",)
_CORRECT = ("response_claims.reference_verdict",)
_IN_CONTEXT = ("reference_claims.supporting_sentence_keys",)
_IN_RESPONSE = ("reference_claims.response_verdict",)

_NEEDS_CLAIMS = Ratio.missing("needs_claims")
_claim = partial(metric, definition="claim", default=True)
_flaw = partial(_claim, higher_is_better=False)
_NONE = frozenset[ClaimTally]().__contains__


def _share_or(convention: float, tally: Tally, holds: Holds) -> Ratio:
    """Return the share of claims that satisfy a condition; the convention for no claims."""
    if tally.claims is None:
        return _NEEDS_CLAIMS
    return Ratio(count(tally.claims, holds), len(tally.claims), convention=convention)


@metric(
    "faithfulness",
    definition="claim",
    needs=_VERDICT,
    source="RAGAS and DeepEval faithfulness",
    formula="claims that the documents entail / claims of the response",
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
    definition="deepeval",
    needs=_VERDICT,
    source="DeepEval 4.3 faithfulness",
    formula="claims that the documents do not contradict / claims of the response; 1 without any",
    conventions=(("no_claims", 1.0),),
)
def faithfulness_deepeval(tally: Tally) -> Ratio:
    """Share of the response's claims that the documents do not contradict, as in DeepEval.

    Counts: claims with the verdict ``entailment`` or ``neutral`` over claims.
    Undefined when: the label has no claims (``needs_claims``); 1 by convention if the response
    makes none.
    """
    return _share_or(1.0, tally, lambda claim: not claim.contradicted)


@metric(
    "faithfulness",
    definition="ragchecker",
    version=2,
    needs=_SUPPORTING,
    source="RAGChecker faithfulness",
    formula="claims that a document entails / claims of the response; 0 without any",
    conventions=(("no_claims", 0.0),),
)
def faithfulness_ragchecker(tally: Tally) -> Ratio:
    """Share of the response's claims that can be traced to a document.

    Counts: claims with a supporting document sentence over claims. A claim with special support
    alone, such as a well-known fact, counts in ``faithfulness:claim`` and not here.
    Undefined when: the label has no claims (``needs_claims``); 0 by convention if the response
    makes none.
    """
    return _share_or(0.0, tally, lambda claim: claim.supporting)


@metric(
    "hallucination_rate",
    definition="claim",
    higher_is_better=False,
    needs=_VERDICT,
    source="generator-metrics guide, hallucination",
    formula="claims that the documents do not entail / claims of the response",
    same_as="1-faithfulness:claim",
)
def hallucination_rate_claim(tally: Tally) -> Ratio:
    """Share of the response's claims that the documents do not entail.

    Counts: claims with the verdict ``neutral`` or ``contradiction`` over claims.
    Undefined when: the label has no claims (``needs_claims``), or the response makes none
    (``no_claims``).
    """
    return tally.claim_share(lambda claim: not claim.entailed)


@_flaw(
    "hallucination_contexts",
    definition="document",
    needs=_CONTRADICTING,
    source="DeepEval hallucination, as the metric guides define it",
    formula="documents that contradict a claim of the response / C",
)
def hallucination_contexts(tally: Tally) -> Ratio:
    """Share of the documents that the response contradicts.

    Counts: documents with a sentence that contradicts a claim over documents. A document counts
    even if another one entails the claim; a response without claims contradicts none.
    Undefined when: the label has no claims (``needs_claims``), or there are no documents.
    """
    if tally.claims is None:
        return _NEEDS_CLAIMS
    return Ratio.of(_contradicted(tally), len(tally.documents), if_empty="no_documents")


@metric(
    "hallucination",
    definition="deepeval",
    needs=_CONTRADICTING,
    source="DeepEval 4.3 hallucination, which scores 1 as a pass, unlike earlier versions",
    formula="documents that contradict no claim of the response / C; 1 without documents",
)
def hallucination_deepeval(tally: Tally) -> Ratio:
    """Share of the documents that the response does not contradict, as in DeepEval.

    Its threshold is the lowest score that passes. Earlier versions scored the documents that are
    contradicted, which is ``hallucination_contexts``.

    Counts: documents without a sentence that contradicts a claim over documents.
    Undefined when: the label has no claims (``needs_claims``); 1 by convention without documents.
    """
    if tally.claims is None:
        return _NEEDS_CLAIMS
    documents = len(tally.documents)
    return Ratio(documents - _contradicted(tally), documents, convention=1.0)


@_claim(
    "answer_relevancy",
    needs=_ON_TOPIC,
    source="DeepEval answer relevancy; generator-metrics guide, response relevancy",
    formula="claims that help to answer the question / claims of the response",
)
def answer_relevancy(tally: Tally) -> Ratio:
    """Share of the response's claims that help to answer the question, true or not.

    Counts: claims relevant to the question over claims.
    Undefined when: the label has no claims (``needs_claims``), or the response makes none
    (``no_claims``).
    """
    return tally.claim_share(lambda claim: claim.relevant)


@_claim(
    "context_recall",
    needs=_IN_CONTEXT,
    source="DeepEval contextual recall; RAGAS context recall; RAGChecker claim recall",
    formula="reference claims that a document entails / claims of the reference",
)
def context_recall(tally: Tally) -> Ratio:
    """Share of the reference answer's claims that the retrieved documents entail.

    Counts: reference claims with a supporting document sentence over reference claims.
    Undefined when: the label has no reference (``needs_reference``), or it makes no claim
    (``no_reference_claims``).
    """
    return tally.reference_share(lambda claim: claim.entailed)


@_claim(
    "context_precision_claims",
    needs=_IN_CONTEXT,
    source="RAGChecker context precision: of a set, not of a ranking",
    formula="documents that entail a reference claim / C",
)
def context_precision_claims(tally: Tally) -> Ratio:
    """Share of the documents that hold a claim of the reference answer.

    Counts: relevant chunks over documents, regardless of rank.
    Undefined when: the label has no reference (``needs_reference``), it makes no claim
    (``no_reference_claims``), or there are no documents.
    """
    missing, chunks = tally.lacks_reference(), len(tally.relevant_chunks)
    share = Ratio.of(chunks, len(tally.documents), if_empty="no_documents")
    return share if missing is None else missing


@_claim(
    "context_utilization_claims",
    needs=(*_IN_CONTEXT, *_IN_RESPONSE),
    source="RAGChecker context utilization",
    formula="reference claims in documents and response / reference claims in documents",
)
def context_utilization_claims(tally: Tally) -> Ratio:
    """Share of the reference's claims in the documents that the response contains.

    Counts: reference claims that a document and the response entail over those that a document
    entails.
    Undefined when: the label has no reference (``needs_reference``), it makes no claim
    (``no_reference_claims``), or no document entails one (``no_reference_claim_in_documents``).
    """
    used, retrieved = _used_and_retrieved(tally)
    share = Ratio.of(used, retrieved, if_empty="no_reference_claim_in_documents")
    missing = tally.lacks_reference()
    return share if missing is None else missing


@_claim(
    "claim_precision",
    needs=_CORRECT,
    source="RAGChecker precision",
    formula="correct claims / claims of the response",
)
def claim_precision(tally: Tally) -> Ratio:
    """Share of the response's claims that the reference answer entails.

    Counts: correct claims over claims.
    Undefined when: the label has no reference (``needs_reference``), it makes no claim
    (``no_reference_claims``), or the response makes none (``no_claims``).
    """
    return tally.compared_share(lambda claim: claim.counterpart)


@_claim(
    "claim_recall",
    needs=_IN_RESPONSE,
    source="RAGChecker recall",
    formula="reference claims that the response entails / claims of the reference",
)
def claim_recall(tally: Tally) -> Ratio:
    """Share of the reference answer's claims that the response entails.

    Counts: reference claims found in the response over reference claims.
    Undefined when: the label has no reference (``needs_reference``), or it makes no claim
    (``no_reference_claims``).
    """
    return tally.reference_share(lambda claim: claim.counterpart)


@_claim(
    "claim_f1",
    needs=(*_CORRECT, *_IN_RESPONSE),
    source="RAGChecker F1",
    formula="2PR / (P + R), P = claim_precision, R = claim_recall; 0 if both are 0",
)
def claim_f1(tally: Tally) -> Ratio:
    """Harmonic mean of precision and recall of claims.

    Counts: an exact fraction over 1, so that the pooled value is the mean. 0 if both sides make
    claims and share none.
    Undefined when: precision or recall is undefined; the first gives the reason.
    """
    precision, recall = claim_precision(tally), claim_recall(tally)
    return precision if precision.undefined else harmonic_mean(precision, recall)


def _used_and_retrieved(tally: Tally) -> tuple[int, int]:
    """Count the reference claims in documents and response, and those in documents."""
    retrieved = [claim for claim in tally.reference_claims or () if claim.entailed]
    return count(retrieved, lambda claim: claim.counterpart), len(retrieved)


def _contradicted(tally: Tally) -> int:
    """Count the documents that contradict a claim of the response."""
    return len(set[int]().union(*(claim.contradicting for claim in tally.claims or ())))


def _is_relevant_noise(tally: Tally) -> Holds:
    """Return the condition of an incorrect claim that a relevant chunk entails."""
    chunks = tally.relevant_chunks
    return lambda claim: not claim.counterpart and claim.supporting & chunks


def _is_irrelevant_noise(tally: Tally) -> Holds:
    """Return the condition of an incorrect claim that irrelevant chunks alone entail."""
    chunks = tally.relevant_chunks
    return lambda claim: (
        not claim.counterpart and claim.supporting and not claim.supporting & chunks
    )


def _is_known(claim: ClaimTally) -> bool:
    """Return True for a correct claim that no document entails."""
    return bool(claim.counterpart) and not claim.supporting


@_flaw(
    "noise_sensitivity_relevant",
    needs=(*_CORRECT, *_SUPPORTING, *_IN_CONTEXT),
    source="RAGChecker and RAGAS noise sensitivity; generator-metrics guide",
    formula="incorrect claims that a relevant chunk entails / claims of the response",
)
def noise_sensitivity_relevant(tally: Tally) -> Ratio:
    """Share of the response's claims that are incorrect and entailed by a relevant chunk.

    Counts: claims that the reference does not entail and a relevant chunk does over claims.
    Undefined when: the label has no reference (``needs_reference``), it makes no claim
    (``no_reference_claims``), or the response makes none (``no_claims``).
    """
    return tally.compared_share(_is_relevant_noise(tally))


@_flaw(
    "noise_sensitivity_irrelevant",
    needs=(*_CORRECT, *_SUPPORTING, *_IN_CONTEXT),
    source="RAGChecker and RAGAS noise sensitivity; generator-metrics guide",
    formula="incorrect claims that irrelevant chunks alone entail / claims of the response",
)
def noise_sensitivity_irrelevant(tally: Tally) -> Ratio:
    """Share of the response's claims that are incorrect and entailed by irrelevant chunks alone.

    Counts: claims that neither the reference nor a relevant chunk entails but another document
    does, over claims. Claims that a relevant chunk entails count in
    ``noise_sensitivity_relevant``.
    Undefined when: the label has no reference (``needs_reference``), it makes no claim
    (``no_reference_claims``), or the response makes none (``no_claims``).
    """
    return tally.compared_share(_is_irrelevant_noise(tally))


@_flaw(
    "hallucination_incorrect",
    needs=(*_CORRECT, *_SUPPORTING),
    source="RAGChecker hallucination",
    formula="incorrect claims that no document entails / claims of the response",
)
def hallucination_incorrect(tally: Tally) -> Ratio:
    """Share of the response's claims that are incorrect and entailed by no document.

    Counts: claims that neither the reference nor a document entails over claims.
    Undefined when: the label has no reference (``needs_reference``), it makes no claim
    (``no_reference_claims``), or the response makes none (``no_claims``).
    """
    return tally.compared_share(lambda claim: not (claim.counterpart or claim.supporting))


@_flaw(
    "self_knowledge",
    needs=(*_CORRECT, *_SUPPORTING),
    source="RAGChecker self-knowledge",
    formula="correct claims that no document entails / claims of the response",
)
def self_knowledge(tally: Tally) -> Ratio:
    """Share of the response's claims that are correct and entailed by no document.

    Counts: claims that the reference entails and no document does over claims. Lower is better if
    the response should rest on the documents alone.
    Undefined when: the label has no reference (``needs_reference``), it makes no claim
    (``no_reference_claims``), or the response makes none (``no_claims``).
    """
    return tally.compared_share(_is_known)


def _ragchecker(name: str, *reasons: str) -> Callable[[C], C]:
    """Register RAGChecker's definition of a metric, which is 0 where the default is undefined."""
    default = METRICS[name]
    return metric(
        name,
        definition="ragchecker",
        higher_is_better=default.higher_is_better,
        needs=default.needs,
        source="RAGChecker 0.1, without claims as well",
        formula=f"{default.formula}; 0 without any",
        conventions=tuple((reason, 0.0) for reason in reasons),
    )


def _or_0(tally: Tally, numerator: int, denominator: int) -> Ratio:
    """Return a ratio that is 0 for the denominator 0, undefined without a reference answer."""
    if tally.reference_claims is None:
        return Ratio.missing("needs_reference")
    return Ratio(numerator, denominator, convention=0.0)


def _share_or_0(tally: Tally, claims: Sequence[ClaimTally] | None, holds: Holds) -> Ratio:
    return _or_0(tally, count(claims, holds), len(claims or ()))


@_ragchecker("context_recall", "no_reference_claims")
def context_recall_ragchecker(tally: Tally) -> Ratio:
    """Return RAGChecker's claim recall.

    Counts: as ``context_recall``; 0 if the reference makes no claim.
    Undefined when: the label has no reference (``needs_reference``).
    """
    return _share_or_0(tally, tally.reference_claims, lambda claim: claim.entailed)


@_ragchecker("context_precision_claims", "no_reference_claims", "no_documents")
def context_precision_claims_ragchecker(tally: Tally) -> Ratio:
    """Return RAGChecker's context precision.

    Counts: as ``context_precision_claims``; 0 if there are no documents, or the reference makes no
    claim.
    Undefined when: the label has no reference (``needs_reference``).
    """
    return _or_0(tally, len(tally.relevant_chunks), len(tally.documents))


@_ragchecker("context_utilization_claims", "no_reference_claims", "no_reference_claim_in_documents")
def context_utilization_claims_ragchecker(tally: Tally) -> Ratio:
    """Return RAGChecker's context utilization.

    Counts: as ``context_utilization_claims``; 0 if no document entails a claim of the reference.
    Undefined when: the label has no reference (``needs_reference``).
    """
    return _or_0(tally, *_used_and_retrieved(tally))


@_ragchecker("claim_precision", "no_claims")
def claim_precision_ragchecker(tally: Tally) -> Ratio:
    """Return RAGChecker's precision.

    Counts: as ``claim_precision``, also if the reference makes no claim; 0 if the response makes
    none.
    Undefined when: the label has no reference (``needs_reference``).
    """
    return _share_or_0(tally, tally.claims, lambda claim: claim.counterpart)


@_ragchecker("claim_recall", "no_reference_claims")
def claim_recall_ragchecker(tally: Tally) -> Ratio:
    """Return RAGChecker's recall.

    Counts: as ``claim_recall``; 0 if the reference makes no claim.
    Undefined when: the label has no reference (``needs_reference``).
    """
    return _share_or_0(tally, tally.reference_claims, lambda claim: claim.counterpart)


@_ragchecker("claim_f1", "no_claims", "no_reference_claims")
def claim_f1_ragchecker(tally: Tally) -> Ratio:
    """Return RAGChecker's F1.

    Counts: as ``claim_f1``; 0 if a side makes no claim.
    Undefined when: the label has no reference (``needs_reference``).
    """
    precision, recall = claim_precision_ragchecker(tally), claim_recall_ragchecker(tally)
    return precision if precision.undefined else harmonic_mean(precision, recall)


@_ragchecker("noise_sensitivity_relevant", "no_claims", "no_reference_claims")
def noise_sensitivity_relevant_ragchecker(tally: Tally) -> Ratio:
    """Return RAGChecker's noise sensitivity in relevant chunks.

    Counts: as ``noise_sensitivity_relevant``; 0 if a side makes no claim.
    Undefined when: the label has no reference (``needs_reference``).
    """
    return _share_or_0(tally, tally.claims, _is_relevant_noise(tally))


@_ragchecker("noise_sensitivity_irrelevant", "no_claims", "no_reference_claims")
def noise_sensitivity_irrelevant_ragchecker(tally: Tally) -> Ratio:
    """Return RAGChecker's noise sensitivity in irrelevant chunks.

    Counts: as ``noise_sensitivity_irrelevant``; 0 if a side makes no claim.
    Undefined when: the label has no reference (``needs_reference``).
    """
    is_noise = _is_irrelevant_noise(tally) if tally.reference_claims else _NONE
    return _share_or_0(tally, tally.claims, is_noise)


@_ragchecker("hallucination_incorrect", "no_claims")
def hallucination_incorrect_ragchecker(tally: Tally) -> Ratio:
    """Return RAGChecker's hallucination.

    Counts: as ``hallucination_incorrect``, also if the reference makes no claim; 0 if the response
    makes none, and without documents.
    Undefined when: the label has no reference (``needs_reference``).
    """
    made_up = (one for one in tally.claims or () if not (one.counterpart or one.supporting))
    return _or_0(tally, sum(1 for _ in made_up) if tally.documents else 0, len(tally.claims or ()))


@_ragchecker("self_knowledge", "no_claims")
def self_knowledge_ragchecker(tally: Tally) -> Ratio:
    """Return RAGChecker's self-knowledge.

    Counts: as ``self_knowledge``, also if the reference makes no claim; 0 if the response makes
    none, and without documents.
    Undefined when: the label has no reference (``needs_reference``).
    """
    return _share_or_0(tally, tally.claims, _is_known if tally.documents else _NONE)
