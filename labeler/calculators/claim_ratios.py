"""Metrics of RAGAS, DeepEval and RAGChecker, with the atomic claim as the unit.

Some compare the response and the documents with a reference answer. A claim of the response is
*correct* if the reference entails it. A document is a *relevant chunk* if it entails a claim of the
reference. A document entails a claim if it holds one of the claim's supporting sentences.
RAGChecker's *claim recall* is ``context_recall`` here, its *recall* ``claim_recall``. Without
claims the default definitions are undefined; RAGChecker's definitions are 0, as there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from labeler.calculators.ratio import Ratio, harmonic_mean
from labeler.calculators.registry import METRICS, metric
from labeler.calculators.tally import ClaimTally, Tally

_VERDICT = ("response_claims.verdict",)
_SUPPORTING = ("response_claims.supporting_sentence_keys", *_VERDICT)
_CONTRADICTING = ("response_claims.contradicting_sentence_keys",)
_ON_TOPIC = ("response_claims.relevant_to_question",)
_CORRECT = ("response_claims.reference_verdict",)
_IN_CONTEXT = ("reference_claims.supporting_sentence_keys",)
_IN_RESPONSE = ("reference_claims.response_verdict",)

_NEEDS_CLAIMS = Ratio.missing("needs_claims")
_claim = partial(metric, definition="claim", default=True)

Holds = Callable[[ClaimTally, frozenset[int]], object]
"""A condition on a claim, given the relevant chunks."""
Parts = Callable[[Tally], tuple[int, int]]
"""A function that returns the numerator and the denominator of a metric."""
Compute = Callable[[Tally], Ratio]


def _documented(compute: Compute, summary: str, counts: str, undefined: str) -> Compute:
    """Give a metric's function the docstring that the catalog of metrics shows.

    ``counts`` is empty where the formula says all.
    """
    counted = f"Counts: {counts}\n" if counts else ""
    compute.__doc__ = f"{summary}\n\n{counted}Undefined when: {undefined}"
    return compute


def _number(claims: Iterable[ClaimTally] | None, holds: Holds, chunks: frozenset[int]) -> int:
    return sum(1 for claim in claims or () if holds(claim, chunks))


# Without a reference answer.


def _of_response(
    name: str,
    holds: Holds,
    *,
    summary: str,
    counts: str = "",
    definition: str = "claim",
    convention: float | None = None,
    **facts: Any,  # noqa: ANN401 - checked by metric
) -> None:
    """Register the share of the response's claims that satisfy a condition.

    ``convention`` is the value where the response makes no claim; ``None`` leaves it undefined.
    """

    def compute(tally: Tally) -> Ratio:
        if tally.claims is None:
            return _NEEDS_CLAIMS
        parts = _number(tally.claims, holds, frozenset()), len(tally.claims)
        if convention is None:
            return Ratio.of(*parts, if_empty="no_claims")
        return Ratio(*parts, convention=convention)

    empty = ", or the response makes none (``no_claims``)."
    conventions: tuple[tuple[str, float], ...] = ()
    if convention is not None:
        empty = f"; {convention:g} by convention if the response makes none."
        conventions = (("no_claims", convention),)
    undefined = f"the label has no claims (``needs_claims``){empty}"
    register = metric(name, definition=definition, conventions=conventions, **facts)
    register(_documented(compute, summary, counts, undefined))


_of_response(
    "faithfulness",
    lambda claim, _: claim.entailed,
    needs=_VERDICT,
    source="RAGAS and DeepEval faithfulness",
    formula="claims that the documents entail / claims of the response",
    summary="Share of the response's claims that the documents entail.",
    counts="claims with the verdict ``entailment``, special support included, over claims.",
)
_of_response(
    "faithfulness",
    lambda claim, _: not claim.contradicted,
    definition="deepeval",
    convention=1.0,
    needs=_VERDICT,
    source="DeepEval 4.3 faithfulness",
    formula="claims that the documents do not contradict / claims of the response; 1 without any",
    summary="Share of the response's claims that the documents do not contradict, as in DeepEval.",
    counts="claims with the verdict ``entailment`` or ``neutral`` over claims.",
)
_of_response(
    "faithfulness",
    lambda claim, _: claim.supporting,
    definition="ragchecker",
    version=2,
    convention=0.0,
    needs=_SUPPORTING,
    source="RAGChecker faithfulness",
    formula="claims that a document entails / claims of the response; 0 without any",
    summary="Share of the response's claims that can be traced to a document.",
    counts="claims with a supporting document sentence over claims. A claim with special support "
    "alone, such as a well-known fact, counts in ``faithfulness:claim`` and not here.",
)
_of_response(
    "hallucination_rate",
    lambda claim, _: not claim.entailed,
    higher_is_better=False,
    needs=_VERDICT,
    source="generator-metrics guide, hallucination",
    formula="claims that the documents do not entail / claims of the response",
    same_as="1-faithfulness:claim",
    summary="Share of the response's claims that the documents do not entail.",
    counts="claims with the verdict ``neutral`` or ``contradiction`` over claims.",
)


def _contradicted(tally: Tally) -> int:
    """Count the documents that contradict a claim of the response."""
    return len(set[int]().union(*(claim.contradicting for claim in tally.claims or ())))


@_claim(
    "hallucination_contexts",
    definition="document",
    higher_is_better=False,
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


_of_response(
    "answer_relevancy",
    lambda claim, _: claim.relevant,
    default=True,
    needs=_ON_TOPIC,
    source="DeepEval answer relevancy; generator-metrics guide, response relevancy",
    formula="claims that help to answer the question / claims of the response",
    summary="Share of the response's claims that help to answer the question, true or not.",
)


# With a reference answer, in the default definition and in RAGChecker's.

_NEEDS_REFERENCE = "the label has no reference (``needs_reference``)"
_ragchecker = list[Callable[[], object]]()
"""Functions that register RAGChecker's definitions, which are listed after the default ones."""


def _compared(
    name: str,
    parts: Parts,
    *,
    if_empty: str = "no_claims",
    summary: str,
    counts: str = "",
    theirs: str,
    zero_if: Iterable[str] = (),
    needed: str = "",
    **facts: Any,  # noqa: ANN401 - checked by metric
) -> None:
    """Register a metric of a label with a reference answer, and RAGChecker's definition of it.

    The latter is called ``theirs`` there. It is 0 for the reasons ``zero_if``, by default where the
    former is undefined, and without the part of a tally that is ``needed``.
    """

    def compute(tally: Tally) -> Ratio:
        if not tally.reference_claims:
            lacks = "needs_reference" if tally.reference_claims is None else "no_reference_claims"
            return Ratio.missing(lacks)
        return Ratio.of(*parts(tally), if_empty=if_empty)

    def compute_ragchecker(tally: Tally) -> Ratio:
        if tally.reference_claims is None:
            return Ratio.missing("needs_reference")
        numerator, denominator = parts(tally)
        lacks = needed and not getattr(tally, needed)
        return Ratio(0 if lacks else numerator, denominator, convention=0.0)

    empty = tuple(dict.fromkeys(("no_reference_claims", if_empty)))
    undefined = f"{_NEEDS_REFERENCE}, or there is nothing to count ({_codes(empty)})."
    _claim(name, **facts)(_documented(compute, summary, counts, undefined))
    _of_ragchecker(name, compute_ragchecker, theirs, tuple(zero_if) or empty, needed)


def _of_ragchecker(
    name: str, compute: Compute, theirs: str, zero_if: tuple[str, ...], needed: str = ""
) -> None:
    """Note RAGChecker's definition of a metric."""
    default = METRICS[name]
    without = ", and without documents" if needed == "documents" else ""
    counts = f"as ``{name}``; 0 where that is undefined ({_codes(zero_if)}){without}."
    _documented(compute, f"Return RAGChecker's {theirs}.", counts, f"{_NEEDS_REFERENCE}.")
    register = partial(
        metric,
        name,
        definition="ragchecker",
        higher_is_better=default.higher_is_better,
        needs=default.needs,
        source="RAGChecker 0.1, without claims as well",
        formula=f"{default.formula}; 0 without any",
        conventions=tuple((reason, 0.0) for reason in zero_if),
    )
    _ragchecker.append(lambda: register()(compute))


def _codes(reasons: Iterable[str]) -> str:
    return ", ".join(f"``{reason}``" for reason in reasons)


def _response(holds: Holds) -> Parts:
    """Count the claims of the response that satisfy a condition, and all of them."""
    return lambda tally: (
        _number(tally.claims, holds, tally.relevant_chunks),
        len(tally.claims or ()),
    )


def _reference(holds: Holds, among: Holds = lambda *_: True) -> Parts:
    """Count the reference claims that satisfy both conditions, and those that do the second."""

    def parts(tally: Tally) -> tuple[int, int]:
        counted = [one for one in tally.reference_claims or () if among(one, frozenset())]
        return _number(counted, holds, frozenset()), len(counted)

    return parts


_compared(
    "context_recall",
    _reference(lambda claim, _: claim.entailed),
    if_empty="no_reference_claims",
    needs=_IN_CONTEXT,
    source="DeepEval contextual recall; RAGAS context recall; RAGChecker claim recall",
    formula="reference claims that a document entails / claims of the reference",
    summary="Share of the reference answer's claims that the retrieved documents entail.",
    theirs="claim recall",
)
_compared(
    "context_precision_claims",
    lambda tally: (len(tally.relevant_chunks), len(tally.documents)),
    if_empty="no_documents",
    needs=_IN_CONTEXT,
    source="RAGChecker context precision: of a set, not of a ranking",
    formula="documents that entail a reference claim / C",
    summary="Share of the documents that hold a claim of the reference answer.",
    counts="relevant chunks over documents, regardless of rank.",
    theirs="context precision",
)
_compared(
    "context_utilization_claims",
    _reference(lambda claim, _: claim.counterpart, lambda claim, _: claim.entailed),
    if_empty="no_reference_claim_in_documents",
    needs=(*_IN_CONTEXT, *_IN_RESPONSE),
    source="RAGChecker context utilization",
    formula="reference claims in documents and response / reference claims in documents",
    summary="Share of the reference's claims in the documents that the response contains.",
    theirs="context utilization",
)
_compared(
    "claim_precision",
    _response(lambda claim, _: claim.counterpart),
    needs=_CORRECT,
    source="RAGChecker precision",
    formula="correct claims / claims of the response",
    summary="Share of the response's claims that the reference answer entails.",
    theirs="precision",
    zero_if=("no_claims",),
)
_compared(
    "claim_recall",
    _reference(lambda claim, _: claim.counterpart),
    if_empty="no_reference_claims",
    needs=_IN_RESPONSE,
    source="RAGChecker recall",
    formula="reference claims that the response entails / claims of the reference",
    summary="Share of the reference answer's claims that the response entails.",
    theirs="recall",
)


@_claim(
    "claim_f1",
    needs=(*_CORRECT, *_IN_RESPONSE),
    source="RAGChecker F1",
    formula="2PR / (P + R), P = claim_precision, R = claim_recall; 0 if both are 0",
)
def claim_f1(tally: Tally, definition: str = "") -> Ratio:
    """Harmonic mean of precision and recall of claims.

    Counts: an exact fraction over 1, so that the pooled value is the mean. 0 if both sides make
    claims and share none.
    Undefined when: precision or recall is undefined; the first gives the reason.
    """
    names = ("claim_precision", "claim_recall")
    precision, recall = (METRICS[f"{name}{definition}"].compute(tally) for name in names)
    return precision if precision.undefined else harmonic_mean(precision, recall)


_of_ragchecker(
    "claim_f1",
    lambda tally: claim_f1(tally, ":ragchecker"),
    "F1",
    ("no_claims", "no_reference_claims"),
)
_noise = partial(
    _compared,
    higher_is_better=False,
    needs=(*_CORRECT, *_SUPPORTING, *_IN_CONTEXT),
    source="RAGChecker and RAGAS noise sensitivity; generator-metrics guide",
)
_noise(
    "noise_sensitivity_relevant",
    _response(lambda claim, chunks: not claim.counterpart and claim.supporting & chunks),
    formula="incorrect claims that a relevant chunk entails / claims of the response",
    summary="Share of the response's claims that are incorrect and entailed by a relevant chunk.",
    theirs="noise sensitivity in relevant chunks",
)
_noise(
    "noise_sensitivity_irrelevant",
    _response(
        lambda claim, chunks: (
            not claim.counterpart and claim.supporting and not claim.supporting & chunks
        )
    ),
    formula="incorrect claims that irrelevant chunks alone entail / claims of the response",
    summary="Share of the response's claims that are incorrect and entailed by irrelevant chunks "
    "alone.",
    counts="claims that neither the reference nor a relevant chunk entails but another document "
    "does, over claims. Claims that a relevant chunk entails count in "
    "``noise_sensitivity_relevant``.",
    theirs="noise sensitivity in irrelevant chunks",
    needed="reference_claims",
)
_of_no_document = partial(
    _compared,
    higher_is_better=False,
    needs=(*_CORRECT, *_SUPPORTING),
    zero_if=("no_claims",),
    needed="documents",
)
_of_no_document(
    "hallucination_incorrect",
    _response(lambda claim, _: not (claim.counterpart or claim.supporting)),
    source="RAGChecker hallucination",
    formula="incorrect claims that no document entails / claims of the response",
    summary="Share of the response's claims that are incorrect and entailed by no document.",
    theirs="hallucination",
)
_of_no_document(
    "self_knowledge",
    _response(lambda claim, _: claim.counterpart and not claim.supporting),
    source="RAGChecker self-knowledge",
    formula="correct claims that no document entails / claims of the response",
    summary="Share of the response's claims that are correct and entailed by no document.",
    counts="claims that the reference entails and no document does over claims. Lower is better if "
    "the response should rest on the documents alone.",
    theirs="self-knowledge",
)
for _register in _ragchecker:
    _register()
