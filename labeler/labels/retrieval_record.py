"""Stored retrieval labels: which documents help to answer a question, judged without a response."""

from __future__ import annotations

import operator
import re
from typing import Any, ClassVar, Literal

from pydantic import Field

from labeler.labels.answers import RetrievalLabel, in_order
from labeler.labels.contract import check_retrieval
from labeler.labels.record import LabelRecord, Record, ReplyFacts, RetrievalBasis, SentenceScores
from labeler.labels.signature import Signature, distinct_documents, retrieval_example, retrieval_key
from labeler.sentences.example import KeyedExample, document_key


class RetrievalRecord(Record[RetrievalLabel]):
    """The relevance of documents for a question, which labels of any responses rest on."""

    keyed_by: ClassVar[str] = "question, documents and signature (see retrieval_key)"

    kind: Literal["retrieval"] = "retrieval"
    example: KeyedExample
    """Question, distinct documents and earlier turns; see :func:`retrieval_example`."""
    label: RetrievalLabel
    """The answer with canonical keys."""
    verbatim: RetrievalLabel | None = None
    """The answer as given, if normalization changed it."""
    normalised: dict[str, int] = Field(default_factory=dict)
    """Trivial repairs by kind."""
    signature: Signature
    reply: ReplyFacts = ReplyFacts()
    scores: SentenceScores | None = None
    not_measured: tuple[str, ...] = Field(default=(), exclude_if=operator.not_)
    """Metrics that the judge's answers say nothing about."""

    @property
    def answer(self) -> RetrievalLabel:
        """The label."""
        return self.label

    def compute_key(self) -> str:
        """Compute the key from question, documents and signature."""
        return retrieval_key(self.example, self.signature)

    def _content_fault(self) -> str | None:
        if retrieval_example(self.example) != self.example:
            return "it holds more than a question, distinct documents in their order and turns"
        if check_retrieval(self.label, self.example).answer != self.label:
            return "its label names keys that its sentences do not have, or a key twice"
        return None


def basis_of(record: RetrievalRecord, example: KeyedExample) -> RetrievalBasis:
    """Return a retrieval label as the basis of a row with the same question and documents."""
    own, judged = _own_keys(example), record.label.all_relevant_sentence_keys
    scores = record.scores.relevance if record.scores else {}
    return RetrievalBasis(
        key=record.key,
        signature=record.signature,
        relevance_explanation=record.label.relevance_explanation,
        all_relevant_sentence_keys=in_order(key for one in judged for key in own[one]),
        scores={key: score for one, score in scores.items() for key in own[one]},
    )


def _own_keys(example: KeyedExample) -> dict[str, list[str]]:
    """Return the keys of a row's document sentences by their key in its retrieval label."""
    return {
        document_key(place, n): [document_key(number, n) for number in numbers]
        for place, numbers in enumerate(distinct_documents(example))
        for n in range(len(example.documents[numbers[0]]))
    }


def without_documents(key: str, example: KeyedExample, signature: Signature) -> RetrievalRecord:
    """Return the retrieval label of a row without documents, which no judge is asked for."""
    return RetrievalRecord(
        key=key,
        example=example,
        label=RetrievalLabel(
            relevance_explanation="There are no documents.", all_relevant_sentence_keys=()
        ),
        signature=signature,
        reply=ReplyFacts(attempts=0),
    )


def retrieval_of(record: LabelRecord) -> RetrievalRecord | None:
    """Return the retrieval label that a label rests on, as far as the label holds it.

    The facts of the judge's reply are not in it.
    """
    basis, example = record.retrieval, record.example
    if basis is None:
        return None
    judged = {own: key for key, keys in _own_keys(example).items() for own in keys}
    keys = (judged[key] for key in basis.all_relevant_sentence_keys)
    scores = {judged[key]: score for key, score in basis.scores.items() if key in judged}
    return RetrievalRecord(
        key=basis.key,
        example=retrieval_example(example),
        label=RetrievalLabel(
            relevance_explanation=basis.relevance_explanation,
            all_relevant_sentence_keys=in_order(keys),
        ),
        signature=basis.signature,
        reply=ReplyFacts(attempts=0, labeler_version=record.reply.labeler_version),
        scores=SentenceScores(relevance=scores) if scores else None,
    )


def relevance_of(basis: RetrievalBasis | None, example: KeyedExample) -> dict[str, Any]:
    """Return the fields of a label that a retrieval label answers; empty ones without it."""
    if basis is None:
        return {"relevance_explanation": "", "all_relevant_sentence_keys": ()}
    return {
        "relevance_explanation": _renumbered(basis, example),
        "all_relevant_sentence_keys": basis.all_relevant_sentence_keys,
    }


def resting_on(record: LabelRecord, basis: RetrievalBasis) -> LabelRecord:
    """Return a label with the relevance of a retrieval label."""
    relevance, given = relevance_of(basis, record.example), record.verbatim
    scores = record.scores
    return record.model_copy(
        update={
            "scores": scores and scores.model_copy(update={"relevance": basis.scores}),
            "label": record.label.model_copy(update=relevance),
            "verbatim": None if given is None else given.model_copy(update=relevance),
            "retrieval": basis,
        }
    )


def _renumbered(basis: RetrievalBasis, example: KeyedExample) -> str:
    """Return the explanation of a retrieval label with the sentence keys of a row's documents."""
    own = _own_keys(example)
    return _MENTION.sub(lambda found: own.get(found[0], [found[0]])[0], basis.relevance_explanation)


_MENTION = re.compile(r"(?<![\w.,$\u20ac\u00a3-])\d{1,4}[a-z]{1,3}(?![\w%])")
"""A sentence key as explanations write it; other words are not keys of the documents."""
