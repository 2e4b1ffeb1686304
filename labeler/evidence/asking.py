"""Stored records as rows again, and the question to a judge about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from labeler.data.options import DEFAULT_STORE
from labeler.labeling.options import dollars
from labeler.labels.profiles import profile_of
from labeler.labels.record import LabelRecord, Outcome
from labeler.sentences.example import Example, KeyedExample, Sentence

_LEAST = Decimal("1e-9")
"""A budget that covers no request."""
COPIES = "copies"
"""Folder inside a label store. Its answers label no row, so no number may count them."""


def as_example(example: KeyedExample, name: str | None = None) -> Example:
    """Return a keyed example as a row with given sentences, so that it gets the same keys again."""
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


class Asking:
    """Asks judges in several runs within one budget.

    Args:
        budget: US dollars for all runs together, if they are limited.
    """

    def __init__(self, budget: Any = None) -> None:  # noqa: ANN401 - checked here
        self._left = dollars("--budget", budget)

    def __call__(
        self, rows: Sequence[Example], options: Mapping[str, Any], *, are_copies: bool = True
    ) -> list[Outcome]:
        """Return the outcome for each row, in order; those of copies stay in :data:`COPIES`."""
        import labeler  # noqa: PLC0415 - the front door, which is above

        options = dict(options)
        store = options.get("store", DEFAULT_STORE)
        folder = getattr(store, "directory", store)
        if are_copies and isinstance(folder, str | Path):
            options["store"] = Path(folder) / COPIES
        if self._left is not None:
            options["budget"] = max(self._left, _LEAST)
        if not rows:
            return []
        labels = labeler.label(rows, **options)
        if self._left is not None:
            cost = labels.cost
            self._left = _LEAST if cost.unmetered else self._left - Decimal(cost.dollars or 0)
        return list(labels)
