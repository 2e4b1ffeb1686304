"""Review sessions over a few records, for tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from labeler.calculators import Metric, select_metrics
from labeler.data.corrections import Judgment, Queue
from labeler.data.corrections.file import CorrectionsFile
from labeler.labels.record import LabelRecord
from labeler.review.access import ReviewAnswer
from labeler.review.label_set import LabelSet
from labeler.review.session import CorrectionsLog, ReviewSession, ReviewSettings
from support.labeled import record

METRICS = select_metrics("relevance,adherence")


def labels(count: int = 4) -> list[LabelRecord]:
    """Records that differ in their documents, and so in their keys."""
    return [
        record(id=f"r{n}", documents=[[f"Fact {n}.", "More."], ["Other."]]) for n in range(count)
    ]


def a_session(
    folder: Path,
    *,
    records: Sequence[LabelRecord] | None = None,
    annotator: str = "ann",
    queue: Queue = "order",
    blind: bool = False,
    name: str = "labels.jsonl",
    metrics: Sequence[Metric] = METRICS,
) -> ReviewSession:
    """A session over a few records, with its corrections in a folder."""
    label_set = LabelSet(records or labels(), metrics)
    settings = ReviewSettings(name, annotator, queue=queue, blind=blind)
    log = CorrectionsLog(CorrectionsFile(folder / "labels.corrections.jsonl"))
    return ReviewSession(label_set, range(len(label_set)), log, settings)


def own(**changes: object) -> Judgment:
    """A judgment that differs from the judge's: the second sentence is not supported."""
    facts: dict[str, object] = {
        "relevant": ("0a",),
        "utilized": ("0a",),
        "support": {"a": ("0a",)},
        "overall_supported": False,
    }
    return Judgment.model_validate(facts | changes)


def said(session: ReviewSession, position: int, judgment: Judgment | None = None) -> ReviewAnswer:
    """An answer: agreement, or a judgment; the page shows the person's latest."""
    kind = "agree" if judgment is None else "judged"
    shown = _shown(session, position)
    return ReviewAnswer.model_validate(shown | {"answer": kind, "judgment": judgment})


def taken_back(session: ReviewSession, position: int) -> ReviewAnswer:
    """A withdrawal of the person's latest answer."""
    return ReviewAnswer.model_validate(_shown(session, position) | {"answer": None})


def _shown(session: ReviewSession, position: int) -> dict[str, object]:
    key = session.keys[position]
    latest = session.log.snapshot().current.get((key, session.settings.annotator))
    return {"key": key, "before": latest and latest.at}
