"""Label records for tests, written as briefly as a worked example."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from labeler.contract import check_label
from labeler.keys import letters
from labeler.labels import GPTLabelingOutput, SentenceSupport, VerbatimLabel, VerbatimSupport
from labeler.record import LabelRecord, label_key
from samples import keyed_example, signature


def output(
    *,
    relevant: Sequence[str] = ("0a",),
    utilized: Sequence[str] = ("0a",),
    support: Mapping[str, Sequence[str]] | None = None,
    overall: bool | None = None,
) -> GPTLabelingOutput:
    """An answer; a response sentence with no support is unsupported."""
    support = {"a": ["0a"], "b": ["0b"]} if support is None else support
    return GPTLabelingOutput(
        relevance_explanation="because",
        all_relevant_sentence_keys=tuple(relevant),
        overall_supported_explanation="because",
        overall_supported=all(support.values()) if overall is None else overall,
        sentence_support_information=tuple(
            SentenceSupport(
                response_sentence_key=key,
                explanation="because",
                supporting_sentence_keys=tuple(keys),
                fully_supported=bool(keys),
            )
            for key, keys in support.items()
        ),
        all_utilized_sentence_keys=tuple(utilized),
    )


def verbatim(
    *,
    relevant: Sequence[str] = ("0a",),
    utilized: Sequence[str] = ("0a",),
    support: Sequence[tuple[str, Sequence[str], bool | None]] = (("a", ("0a",), True),),
    overall: bool = False,
) -> VerbatimLabel:
    """An answer as it was given: (response key, supporting keys, verdict) for each sentence."""
    return VerbatimLabel(
        relevance_explanation="because",
        all_relevant_sentence_keys=tuple(relevant),
        overall_supported_explanation="because",
        overall_supported=overall,
        sentence_support_information=tuple(
            VerbatimSupport(
                response_sentence_key=key,
                explanation="because",
                supporting_sentence_keys=tuple(keys),
                fully_supported=verdict,
            )
            for key, keys, verdict in support
        ),
        all_utilized_sentence_keys=tuple(utilized),
    )


def record(
    *,
    id: str = "r1",  # noqa: A002 - the field's name
    documents: Sequence[int | Sequence[str]] = (2, 1),
    relevant: Sequence[str] = ("0a",),
    utilized: Sequence[str] = ("0a",),
    support: Mapping[str, Sequence[str]] | None = None,
    response: int | None = None,
    stored: VerbatimLabel | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> LabelRecord:
    """A stored label.

    Args:
        id: the row's id.
        documents: the number of sentences of each document, or the sentences.
        relevant: relevant keys.
        utilized: utilized keys.
        support: supporting keys of each judged response sentence; none means unsupported.
        response: number of response sentences, where it is not the number of judged ones.
        stored: the answer as given, where it differs; the label is then made from it.
        metadata: other columns.
    """
    support = {"a": ["0a"], "b": ["0b"]} if support is None else support
    size = len(support) if response is None else response
    example = keyed_example(
        id=id,
        documents=[
            [f"Sentence {letters(s)} of document {d}." for s in range(part)]
            if isinstance(part, int)
            else part
            for d, part in enumerate(documents)
        ],
        response=[f"Statement {letters(s)}." for s in range(size)],
        metadata=metadata,
    )
    answer = stored or output(relevant=relevant, utilized=utilized, support=support)
    checked = check_label(answer, example)
    made_by = signature()
    return LabelRecord(
        key=label_key(example, made_by),
        example=example,
        label=checked.label,
        verbatim=stored,
        normalised=checked.normalised,
        violations=checked.violations,
        signature=made_by,
    )
