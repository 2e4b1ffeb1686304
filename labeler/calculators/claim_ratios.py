"""Metrics of RAGAS, DeepEval and RAGChecker, with the atomic claim as the unit.

Some compare the response and the documents with a reference answer. A claim of the response is
*correct* if the reference entails it. A document is a *relevant chunk* if it entails a claim of the
reference. A document entails a claim if it holds one of the claim's supporting sentences.
RAGChecker's *claim recall* is ``context_recall`` here, its *recall* ``claim_recall``. Without
claims the default definitions are undefined; those of RAGChecker are 0, as there.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from labeler.calculators.registry import METRICS, C, vectorized
from labeler.calculators.tally import BaseTally, Countable, Number, Q, Subset

_VERDICT = ("response_claims.verdict",)
_SUPPORTING = ("response_claims.supporting_sentence_keys", *_VERDICT)
_CONTRADICTING = ("response_claims.contradicting_sentence_keys",)
_ON_TOPIC = ("response_claims.relevant_to_question",)
_CORRECT = ("response_claims.reference_verdict",)
_IN_CONTEXT = ("reference_claims.supporting_sentence_keys",)
_IN_RESPONSE = ("reference_claims.response_verdict",)

_claim = partial(vectorized, definition="claim", default=True)
_flaw = partial(_claim, higher_is_better=False)


@vectorized(
    "faithfulness",
    definition="claim",
    needs=_VERDICT,
    source="RAGAS and DeepEval faithfulness",
    formula="claims that the documents entail / claims of the response",
)
def faithfulness_claim(tally: BaseTally[Q]) -> Q:
    """Share of the response's claims that the documents entail.

    Counts: claims with the verdict ``entailment``, special support included, over claims.
    Undefined when: the label has no claims (``needs_claims``), or the response makes none
    (``no_claims``).
    """
    return tally.claim_share(tally.entailed_claims)


@vectorized(
    "faithfulness",
    definition="deepeval",
    needs=_VERDICT,
    source="DeepEval 4.3 faithfulness",
    formula="claims that the documents do not contradict / claims of the response; 1 without any",
    conventions=(("no_claims", 1.0),),
)
def faithfulness_deepeval(tally: BaseTally[Q]) -> Q:
    """Share of the response's claims that the documents do not contradict, as in DeepEval.

    Counts: claims with the verdict ``entailment`` or ``neutral`` over claims.
    Undefined when: the label has no claims (``needs_claims``); 1 by convention if the response
    makes none.
    """
    claims = tally.response_claims
    share = tally.plain(claims - tally.contradicted_claims, claims, convention=1.0)
    return share.unless(tally.has_claims == 0, "needs_claims")


@vectorized(
    "faithfulness",
    definition="ragchecker",
    version=2,
    needs=_SUPPORTING,
    source="RAGChecker faithfulness",
    formula="claims that a document entails / claims of the response; 0 without any",
    conventions=(("no_claims", 0.0),),
)
def faithfulness_ragchecker(tally: BaseTally[Q]) -> Q:
    """Share of the response's claims that can be traced to a document.

    Counts: claims with a supporting document sentence over claims. A claim with special support
    alone, such as a well-known fact, counts in ``faithfulness:claim`` and not here.
    Undefined when: the label has no claims (``needs_claims``); 0 by convention if the response
    makes none.
    """
    share = tally.plain(tally.supported_claims, tally.response_claims, convention=0.0)
    return share.unless(tally.has_claims == 0, "needs_claims")


@vectorized(
    "hallucination_rate",
    definition="claim",
    higher_is_better=False,
    needs=_VERDICT,
    source="generator-metrics guide, hallucination",
    formula="claims that the documents do not entail / claims of the response",
    same_as="1-faithfulness:claim",
)
def hallucination_rate_claim(tally: BaseTally[Q]) -> Q:
    """Share of the response's claims that the documents do not entail.

    Counts: claims with the verdict ``neutral`` or ``contradiction`` over claims.
    Undefined when: the label has no claims (``needs_claims``), or the response makes none
    (``no_claims``).
    """
    return tally.claim_share(tally.response_claims - tally.entailed_claims)


@_flaw(
    "hallucination_contexts",
    definition="document",
    needs=_CONTRADICTING,
    source="DeepEval hallucination, as the metric guides define it",
    formula="documents that contradict a claim of the response / C",
)
def hallucination_contexts(tally: BaseTally[Q]) -> Q:
    """Share of the documents that the response contradicts.

    Counts: documents with a sentence that contradicts a claim over documents. A document counts
    even if another one entails the claim; a response without claims contradicts none.
    Undefined when: the label has no claims (``needs_claims``), or there are no documents.
    """
    found = tally.contradicted_documents
    share = tally.ratio(found, tally.documents, if_empty="no_documents")
    return share.unless(tally.has_claims == 0, "needs_claims")


@vectorized(
    "hallucination",
    definition="deepeval",
    needs=_CONTRADICTING,
    source="DeepEval 4.3 hallucination, which scores 1 as a pass, unlike earlier versions",
    formula="documents that contradict no claim of the response / C; 1 without documents",
)
def hallucination_deepeval(tally: BaseTally[Q]) -> Q:
    """Share of the documents that the response does not contradict, as in DeepEval.

    Its threshold is the lowest score that passes. Earlier versions scored the documents that are
    contradicted, which is ``hallucination_contexts``.

    Counts: documents without a sentence that contradicts a claim over documents.
    Undefined when: the label has no claims (``needs_claims``); 1 by convention without documents.
    """
    contradicted = tally.count(tally.contradicted_documents)
    agreeing = tally.count(tally.documents) - contradicted
    share = tally.plain(agreeing, tally.documents, convention=1.0)
    return share.unless(tally.has_claims == 0, "needs_claims")


@_claim(
    "answer_relevancy",
    needs=_ON_TOPIC,
    source="DeepEval answer relevancy; generator-metrics guide, response relevancy",
    formula="claims that help to answer the question / claims of the response",
)
def answer_relevancy(tally: BaseTally[Q]) -> Q:
    """Share of the response's claims that help to answer the question, true or not.

    Counts: claims relevant to the question over claims.
    Undefined when: the label has no claims (``needs_claims``), or the response makes none
    (``no_claims``).
    """
    return tally.claim_share(tally.on_topic_claims)


@_claim(
    "context_recall",
    needs=_IN_CONTEXT,
    source="DeepEval contextual recall; RAGAS context recall; RAGChecker claim recall",
    formula="reference claims that a document entails / claims of the reference",
)
def context_recall(tally: BaseTally[Q]) -> Q:
    """Share of the reference answer's claims that the retrieved documents entail.

    Counts: reference claims with a supporting document sentence over reference claims.
    Undefined when: the label has no reference (``needs_reference``), or it makes no claim
    (``no_reference_claims``).
    """
    return tally.reference_share(tally.retrieved_claims)


@_claim(
    "context_precision_claims",
    needs=_IN_CONTEXT,
    source="RAGChecker context precision: of a set, not of a ranking",
    formula="documents that entail a reference claim / C",
)
def context_precision_claims(tally: BaseTally[Q]) -> Q:
    """Share of the documents that hold a claim of the reference answer.

    Counts: relevant chunks over documents, regardless of rank.
    Undefined when: the label has no reference (``needs_reference``), it makes no claim
    (``no_reference_claims``), or there are no documents.
    """
    share = tally.ratio(tally.relevant_chunks, tally.documents, if_empty="no_documents")
    return tally.with_reference(share)


@_claim(
    "context_utilization_claims",
    needs=(*_IN_CONTEXT, *_IN_RESPONSE),
    source="RAGChecker context utilization",
    formula="reference claims in documents and response / reference claims in documents",
)
def context_utilization_claims(tally: BaseTally[Q]) -> Q:
    """Share of the reference's claims in the documents that the response contains.

    Counts: reference claims that a document and the response entail over those that a document
    entails.
    Undefined when: the label has no reference (``needs_reference``), it makes no claim
    (``no_reference_claims``), or no document entails one (``no_reference_claim_in_documents``).
    """
    retrieved, used = tally.retrieved_claims, tally.retrieved_claims & tally.recalled_claims
    share = tally.ratio(used, retrieved, if_empty="no_reference_claim_in_documents")
    return tally.with_reference(share)


@_claim(
    "claim_precision",
    needs=_CORRECT,
    source="RAGChecker precision",
    formula="correct claims / claims of the response",
)
def claim_precision(tally: BaseTally[Q]) -> Q:
    """Share of the response's claims that the reference answer entails.

    Counts: correct claims over claims.
    Undefined when: the label has no reference (``needs_reference``), it makes no claim
    (``no_reference_claims``), or the response makes none (``no_claims``).
    """
    return tally.compared_share(tally.correct_claims)


@_claim(
    "claim_recall",
    needs=_IN_RESPONSE,
    source="RAGChecker recall",
    formula="reference claims that the response entails / claims of the reference",
)
def claim_recall(tally: BaseTally[Q]) -> Q:
    """Share of the reference answer's claims that the response entails.

    Counts: reference claims found in the response over reference claims.
    Undefined when: the label has no reference (``needs_reference``), or it makes no claim
    (``no_reference_claims``).
    """
    return tally.reference_share(tally.recalled_claims)


@_claim(
    "claim_f1",
    needs=(*_CORRECT, *_IN_RESPONSE),
    source="RAGChecker F1",
    formula="2PR / (P + R), P = claim_precision, R = claim_recall; 0 if both are 0",
)
def claim_f1(tally: BaseTally[Q]) -> Q:
    """Harmonic mean of precision and recall of claims.

    Counts: an exact fraction over 1, so that the pooled value is the mean. 0 if both sides make
    claims and share none.
    Undefined when: precision or recall is undefined; the reason is that of the first.
    """
    return tally.with_reference(tally.with_claims(_f1(tally)))


def _f1(tally: BaseTally[Q]) -> Q:
    correct, claims = tally.count(tally.correct_claims), tally.count(tally.response_claims)
    found, expected = tally.count(tally.recalled_claims), tally.count(tally.all_reference_claims)
    # With a/n and b/m for precision and recall, 2ab / (am + bn).
    parts = correct * expected + found * claims
    return tally.plain(2 * correct * found, 1, parts=parts)


@_flaw(
    "noise_sensitivity_relevant",
    needs=(*_CORRECT, *_SUPPORTING, *_IN_CONTEXT),
    source="RAGChecker and RAGAS noise sensitivity; generator-metrics guide",
    formula="incorrect claims that a relevant chunk entails / claims of the response",
)
def noise_sensitivity_relevant(tally: BaseTally[Q]) -> Q:
    """Share of the response's claims that are incorrect and entailed by a relevant chunk.

    Counts: claims that the reference does not entail and a relevant chunk does over claims.
    Undefined when: the label has no reference (``needs_reference``), it makes no claim
    (``no_reference_claims``), or the response makes none (``no_claims``).
    """
    return tally.compared_share(tally.chunk_claims - tally.correct_claims)


@_flaw(
    "noise_sensitivity_irrelevant",
    needs=(*_CORRECT, *_SUPPORTING, *_IN_CONTEXT),
    source="RAGChecker and RAGAS noise sensitivity; generator-metrics guide",
    formula="incorrect claims that irrelevant chunks alone entail / claims of the response",
)
def noise_sensitivity_irrelevant(tally: BaseTally[Q]) -> Q:
    """Share of the response's claims that are incorrect and entailed by irrelevant chunks alone.

    Counts: claims that neither the reference nor a relevant chunk entails but another document
    does, over claims. Claims that a relevant chunk entails count in
    ``noise_sensitivity_relevant``.
    Undefined when: the label has no reference (``needs_reference``), it makes no claim
    (``no_reference_claims``), or the response makes none (``no_claims``).
    """
    elsewhere = tally.supported_claims - tally.chunk_claims
    return tally.compared_share(elsewhere - tally.correct_claims)


@_flaw(
    "hallucination_incorrect",
    needs=(*_CORRECT, *_SUPPORTING),
    source="RAGChecker hallucination",
    formula="incorrect claims that no document entails / claims of the response",
)
def hallucination_incorrect(tally: BaseTally[Q]) -> Q:
    """Share of the response's claims that are incorrect and entailed by no document.

    Counts: claims that neither the reference nor a document entails over claims.
    Undefined when: the label has no reference (``needs_reference``), it makes no claim
    (``no_reference_claims``), or the response makes none (``no_claims``).
    """
    unsupported = tally.response_claims - tally.supported_claims
    return tally.compared_share(unsupported - tally.correct_claims)


@_flaw(
    "self_knowledge",
    needs=(*_CORRECT, *_SUPPORTING),
    source="RAGChecker self-knowledge",
    formula="correct claims that no document entails / claims of the response",
)
def self_knowledge(tally: BaseTally[Q]) -> Q:
    """Share of the response's claims that are correct and entailed by no document.

    Counts: claims that the reference entails and no document does over claims. Lower is better if
    the response should rest on the documents alone.
    Undefined when: the label has no reference (``needs_reference``), it makes no claim
    (``no_reference_claims``), or the response makes none (``no_claims``).
    """
    return tally.compared_share(tally.correct_claims - tally.supported_claims)


def _ragchecker(name: str, *reasons: str) -> Callable[[C], C]:
    """Register RAGChecker's definition of a metric, which is 0 where the default is undefined."""
    default = METRICS[name]
    return vectorized(
        name,
        definition="ragchecker",
        higher_is_better=default.higher_is_better,
        needs=default.needs,
        source="RAGChecker 0.1, without claims as well",
        formula=f"{default.formula}; 0 without any",
        conventions=tuple((reason, 0.0) for reason in reasons),
    )


def _or_0(tally: BaseTally[Q], numerator: Subset | Number, denominator: Countable) -> Q:
    """Return a ratio that is 0 for the denominator 0, undefined without a reference answer."""
    share = tally.plain(numerator, denominator, convention=0.0)
    return share.unless(tally.has_reference == 0, "needs_reference")


@_ragchecker("context_recall", "no_reference_claims")
def context_recall_ragchecker(tally: BaseTally[Q]) -> Q:
    """Return RAGChecker's claim recall.

    Counts: as ``context_recall``; 0 if the reference makes no claim.
    Undefined when: the label has no reference (``needs_reference``).
    """
    return _or_0(tally, tally.retrieved_claims, tally.all_reference_claims)


@_ragchecker("context_precision_claims", "no_reference_claims", "no_documents")
def context_precision_claims_ragchecker(tally: BaseTally[Q]) -> Q:
    """Return RAGChecker's context precision.

    Counts: as ``context_precision_claims``; 0 if there are no documents, or the reference makes no
    claim.
    Undefined when: the label has no reference (``needs_reference``).
    """
    return _or_0(tally, tally.relevant_chunks, tally.documents)


@_ragchecker("context_utilization_claims", "no_reference_claims", "no_reference_claim_in_documents")
def context_utilization_claims_ragchecker(tally: BaseTally[Q]) -> Q:
    """Return RAGChecker's context utilization.

    Counts: as ``context_utilization_claims``; 0 if no document entails a claim of the reference.
    Undefined when: the label has no reference (``needs_reference``).
    """
    retrieved = tally.retrieved_claims
    return _or_0(tally, retrieved & tally.recalled_claims, retrieved)


@_ragchecker("claim_precision", "no_claims")
def claim_precision_ragchecker(tally: BaseTally[Q]) -> Q:
    """Return RAGChecker's precision.

    Counts: as ``claim_precision``, also if the reference makes no claim; 0 if the response makes
    none.
    Undefined when: the label has no reference (``needs_reference``).
    """
    return _or_0(tally, tally.correct_claims, tally.response_claims)


@_ragchecker("claim_recall", "no_reference_claims")
def claim_recall_ragchecker(tally: BaseTally[Q]) -> Q:
    """Return RAGChecker's recall.

    Counts: as ``claim_recall``; 0 if the reference makes no claim.
    Undefined when: the label has no reference (``needs_reference``).
    """
    return _or_0(tally, tally.recalled_claims, tally.all_reference_claims)


@_ragchecker("claim_f1", "no_claims", "no_reference_claims")
def claim_f1_ragchecker(tally: BaseTally[Q]) -> Q:
    """Return RAGChecker's F1.

    Counts: as ``claim_f1``; 0 if a side makes no claim.
    Undefined when: the label has no reference (``needs_reference``).
    """
    return _f1(tally).unless(tally.has_reference == 0, "needs_reference")


@_ragchecker("noise_sensitivity_relevant", "no_claims", "no_reference_claims")
def noise_sensitivity_relevant_ragchecker(tally: BaseTally[Q]) -> Q:
    """Return RAGChecker's noise sensitivity in relevant chunks.

    Counts: as ``noise_sensitivity_relevant``; 0 if a side makes no claim.
    Undefined when: the label has no reference (``needs_reference``).
    """
    return _or_0(tally, tally.chunk_claims - tally.correct_claims, tally.response_claims)


@_ragchecker("noise_sensitivity_irrelevant", "no_claims", "no_reference_claims")
def noise_sensitivity_irrelevant_ragchecker(tally: BaseTally[Q]) -> Q:
    """Return RAGChecker's noise sensitivity in irrelevant chunks.

    Counts: as ``noise_sensitivity_irrelevant``; 0 if a side makes no claim.
    Undefined when: the label has no reference (``needs_reference``).
    """
    elsewhere = tally.supported_claims - tally.chunk_claims
    compared = tally.count(tally.all_reference_claims) > 0
    incorrect = tally.count(elsewhere - tally.correct_claims) * compared
    return _or_0(tally, incorrect, tally.response_claims)


@_ragchecker("hallucination_incorrect", "no_claims")
def hallucination_incorrect_ragchecker(tally: BaseTally[Q]) -> Q:
    """Return RAGChecker's hallucination.

    Counts: as ``hallucination_incorrect``, also if the reference makes no claim; 0 if the response
    makes none, and without documents.
    Undefined when: the label has no reference (``needs_reference``).
    """
    unsupported = tally.response_claims - tally.supported_claims
    incorrect = tally.count(unsupported - tally.correct_claims) * (tally.count(tally.documents) > 0)
    return _or_0(tally, incorrect, tally.response_claims)


@_ragchecker("self_knowledge", "no_claims")
def self_knowledge_ragchecker(tally: BaseTally[Q]) -> Q:
    """Return RAGChecker's self-knowledge.

    Counts: as ``self_knowledge``, also if the reference makes no claim; 0 if the response makes
    none, and without documents.
    Undefined when: the label has no reference (``needs_reference``).
    """
    known = tally.correct_claims - tally.supported_claims
    correct = tally.count(known) * (tally.count(tally.documents) > 0)
    return _or_0(tally, correct, tally.response_claims)
