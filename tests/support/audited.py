"""Records to audit, written as briefly as a worked example."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from labeler.audit import findings_of, select_checks
from labeler.labels.record import LabelRecord
from labeler.labels.signature import label_key
from labeler.sentences.example import Sentence
from support.labeled import output, record

DOCUMENTS = (
    ("The tower is 120 metres high.", "It was opened in 1931 by the mayor."),
    ("Ferries do not sail in winter.",),
)
"""Sentences ``0a``, ``0b``, ``1a``."""


def judged(
    sentences: Mapping[str, Sequence[str]],
    *,
    documents: Sequence[Sequence[str]] = DOCUMENTS,
    explained: Mapping[str, str] | None = None,
    overall_explained: str = "Read below.",
    **said: Any,
) -> LabelRecord:
    """A label of a response, given as its sentences with the keys that support each.

    Args:
        sentences: text and supporting keys of each response sentence; none means unsupported.
        documents: the sentences of the documents.
        explained: explanations by response key; by default each sentence has its own.
        overall_explained: the explanation of the overall verdict.
        said: what else the label says; see :func:`labeled.output`.
    """
    keys = [chr(ord("a") + place) for place in range(len(sentences))]
    support = dict(zip(keys, sentences.values(), strict=True))
    named = sorted({k for each in support.values() for k in each if k[0].isdigit()})
    answer = output(**{"relevant": named, "utilized": named, "support": support, **said})
    written = {key: f"Looked at {text}" for key, text in zip(keys, sentences, strict=True)}
    written.update(explained or {})
    entries = tuple(
        entry.model_copy(update={"explanation": written[entry.response_sentence_key]})
        for entry in answer.sentence_support_information
    )
    answer = answer.model_copy(
        update={
            "sentence_support_information": entries,
            "overall_supported_explanation": overall_explained,
        }
    )
    return with_response(record(documents=documents, answer=answer), list(sentences))


def with_response(made: LabelRecord, texts: Sequence[str]) -> LabelRecord:
    """A record with other texts for its response sentences."""
    sentences = tuple(
        Sentence(key=chr(ord("a") + place), text=text, start=0, end=len(text))
        for place, text in enumerate(texts)
    )
    example = made.example.model_copy(update={"response": sentences})
    return made.model_copy(update={"example": example, "key": label_key(example, made.signature)})


def found(made: LabelRecord, check: str) -> list[tuple[str, ...]]:
    """The keys of each finding of one check."""
    return [finding.keys for finding in findings_of(made, select_checks(check))]
