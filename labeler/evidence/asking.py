"""Stored records as rows again, and the question to a judge about them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from labeler.labels.profiles import profile_of
from labeler.labels.record import LabelRecord, Outcome
from labeler.sentences.example import Example, KeyedExample, Sentence


def as_example(example: KeyedExample, name: str | None = None, **changes: Any) -> Example:  # noqa: ANN401 - fields of a keyed example
    """Return a keyed example as a row with given sentences, so that it gets the same keys again.

    Args:
        example: the keyed example.
        name: id of the row, if it is another one.
        changes: fields of the keyed example to replace, such as ``response``.
    """
    changed = example.model_copy(update=changes)
    documents = tuple(tuple(one.text for one in each) for each in changed.documents)
    return Example(
        id=name or changed.id,
        question=changed.question,
        documents=tuple(" ".join(texts) for texts in documents),
        response=_text(changed.response),
        reference=None if changed.reference is None else _text(changed.reference),
        metadata=changed.metadata,
        documents_sentences=documents,
        response_sentences=tuple(one.text for one in changed.response),
        history=[{"role": one.role, "text": _text(one.sentences)} for one in changed.history]
        or None,
        tool_outputs=[
            {"name": one.name or "", "text": _text(one.sentences)} for one in changed.tool_outputs
        ]
        or None,
    )


def _text(sentences: Iterable[Sentence]) -> str:
    return " ".join(one.text for one in sentences)


def asked_like(record: LabelRecord) -> dict[str, Any]:
    """Return the options of :func:`labeler.label` that ask what a label's judge was asked."""
    signature = record.signature
    asked = {"profile": profile_of(signature.response_schema.name).name}
    if record.retrieval is not None:
        asked["relevance"] = "blind"
    return asked | ({"instructions": signature.instructions} if signature.instructions else {})


def ask(rows: Sequence[Example], options: dict[str, Any]) -> list[Outcome]:
    """Return the judge's outcome for each row, in order; stored labels are free.

    Raises:
        UsageError: an option is wrong.
        FatalJudgeError: no row can be labeled.
    """
    import labeler  # noqa: PLC0415 - the front door, which is above

    return list(labeler.label(rows, **options)) if rows else []
