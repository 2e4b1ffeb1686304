"""Review desks over a few records, for tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from labeler.calculators import select_metrics
from labeler.data.corrections.correction import Judgement, Queue
from labeler.data.corrections.overlay import CorrectionsFile
from labeler.labels.record import LabelRecord
from labeler.review.collection import collect
from labeler.review.messages import Said
from labeler.review.saving import Ledger
from labeler.review.session import Desk, Terms
from labelled import record

METRICS = select_metrics("relevance,adherence")


def labels(count: int = 4) -> list[LabelRecord]:
    """Records that differ in their documents, and so in their keys."""
    return [
        record(id=f"r{n}", documents=[[f"Fact {n}.", "More."], ["Other."]]) for n in range(count)
    ]


def a_desk(
    folder: Path,
    *,
    records: Sequence[LabelRecord] | None = None,
    annotator: str = "ann",
    queue: Queue = "order",
    blind: bool = False,
    name: str = "labels.jsonl",
) -> Desk:
    """A desk over a few records, with its corrections in a folder."""
    collection = collect(records or labels(), METRICS)
    terms = Terms(name, annotator, fixed=blind, queue=queue, blind=blind)
    ledger = Ledger(CorrectionsFile(folder / "labels.corrections.jsonl"))
    return Desk(collection, range(len(collection)), ledger, terms, METRICS)


def own(**changes: object) -> Judgement:
    """A judgement that differs from the judge's: the second sentence is not supported."""
    facts: dict[str, object] = {
        "relevant": ("0a",),
        "utilized": ("0a",),
        "support": {"a": ("0a",)},
        "overall_supported": False,
    }
    return Judgement.model_validate(facts | changes)


def said(
    desk: Desk, position: int, annotator: str = "ann", judgement: Judgement | None = None
) -> Said:
    """An answer: agreement, or a judgement."""
    key = desk.collection.keys[desk.places[position]]
    kind = "agree" if judgement is None else "judged"
    return Said.model_validate(
        {"key": key, "annotator": annotator, "answer": kind, "judgement": judgement}
    )
