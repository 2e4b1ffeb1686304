"""What the desk tells its page: plain JSON."""

from __future__ import annotations

from typing_extensions import TypedDict

from labeler.data.corrections.correction import Opinion, Queue
from labeler.report.views import RecordView


class CountsView(TypedDict):
    """How far a person has come."""

    size: int
    """Records to judge."""
    agree: int
    disagree: int
    unsure: int
    next_open: int | None
    """Position of the next record that they said nothing of; ``null`` where none is left."""


class CheckView(TypedDict):
    """What findings of one check are called."""

    title: str
    why: str


class OverviewView(TypedDict):
    """What the page is told first."""

    annotator: str
    fixed: bool
    """Whether the desk is that one person's."""
    queue: Queue
    labels: int
    blind: bool
    checks: dict[str, CheckView]
    """Those of the audit, by id."""
    counts: CountsView


class JudgementView(TypedDict):
    """A judgement."""

    relevant: list[str]
    utilized: list[str]
    support: dict[str, list[str]]
    overall_supported: bool


class MineView(TypedDict):
    """What a person said of a record."""

    opinion: Opinion
    judgement: JudgementView | None
    comment: str
    at: str
    blind: bool


class TurnView(TypedDict):
    """A record at its place in the queue."""

    position: int
    key: str
    hidden: bool
    """Whether the judge's verdicts are kept back."""
    record: RecordView
    judge: JudgementView | None
    """The judge's label as a judgement; ``null`` where it is hidden."""
    mine: MineView | None
    counts: CountsView


class FieldView(TypedDict):
    """The judge against people on one field."""

    field: str
    units: int
    raw: float | None
    kappa: float | None
    ac1: float | None


class MeanView(TypedDict):
    """A mean."""

    value: float | None
    interval: list[float] | None


class MetricFiguresView(TypedDict):
    """The means of one metric."""

    metric: str
    judge: MeanView
    """The judge alone, over all rows."""
    estimate: MeanView | None
    """PPI++; ``null`` where nothing was drawn at random, or the metric is of claims."""
    overlaid: float | None
    """Over all rows, with people's verdicts where they judged."""


class AnnotatorView(TypedDict):
    """How much one person said."""

    annotator: str
    agree: int
    disagree: int
    unsure: int


class AmongView(TypedDict):
    """People against each other on one field."""

    field: str
    units: int
    alpha: float | None
    ac1: float | None


class FiguresView(TypedDict):
    """All figures."""

    judged: int
    """Labels that somebody judged."""
    drawn: int
    """Those of them that were drawn at random."""
    rows: int
    fields: list[FieldView]
    metrics: list[MetricFiguresView]
    annotators: list[AnnotatorView]
    among: list[AmongView]
    notes: list[str]
    """What else to know of the numbers."""
