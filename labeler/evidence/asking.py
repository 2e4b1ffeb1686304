"""Stored records as rows again, and the question to a judge about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from labeler.data.options import DEFAULT_STORE
from labeler.labels.profiles import profile_of
from labeler.labels.record import LabelRecord, Outcome
from labeler.sentences.example import Example, KeyedExample, Sentence

COPIES = "copies"
"""Folder in that of a label store: answers that are labels of no row, which no number may count."""


def as_example(example: KeyedExample, name: str | None = None) -> Example:
    """Return a keyed example as a row with given sentences, so that it gets the same keys again.

    Args:
        example: the keyed example.
        name: id of the row, if it is another one.
    """
    documents = tuple(tuple(one.text for one in each) for each in example.documents)
    turns = [{"role": one.role, "text": _text(one.sentences)} for one in example.history]
    outputs = [
        {"name": one.name or "", "text": _text(one.sentences)} for one in example.tool_outputs
    ]
    return Example(
        id=name or example.id,
        question=example.question,
        documents=tuple(map(" ".join, documents)),
        response=_text(example.response),
        reference=None if example.reference is None else _text(example.reference),
        metadata=example.metadata,
        documents_sentences=documents,
        response_sentences=tuple(one.text for one in example.response),
        history=turns or None,
        tool_outputs=outputs or None,
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


def ask(
    rows: Sequence[Example], options: Mapping[str, Any], *, are_copies: bool = True
) -> list[Outcome]:
    """Return the judge's outcome for each row, in order; stored answers are free.

    Args:
        rows: the rows.
        options: those of :func:`labeler.label`.
        are_copies: True to store the answers in :data:`COPIES`.
    """
    import labeler  # noqa: PLC0415 - the front door, which is above

    store = options.get("store", DEFAULT_STORE)
    folder = getattr(store, "directory", store)
    if are_copies and isinstance(folder, str | Path):
        options = {**options, "store": Path(folder) / COPIES}
    return list(labeler.label(rows, **options)) if rows else []
