"""Scores that are measured together: several trials make one score, and raters are compared."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, cast

from labeler.calculators.metrics_row import MetricsRow
from labeler.calculators.registry import ALL, Metric
from labeler.labels.record import AnyOutcome
from labeler.plugins.scores.metrics import (
    criterion_name,
    criterion_scales,
    measure_scores,
    score_metrics,
    summarize_scores,
)
from labeler.plugins.scores.records import ScoreOutcome

if TYPE_CHECKING:
    from labeler.calculators.statistics.intervals import Intervals
    from labeler.calculators.summary import SummaryRow


class Scores:
    """Scores and failures to score; see :class:`labeler.calculators.collected.Collected`."""

    def __init__(self) -> None:
        self._outcomes: list[ScoreOutcome] = []

    def add(self, outcome: AnyOutcome) -> None:
        """Add a score, a failure, or a row that could not be read."""
        self._outcomes.append(cast("ScoreOutcome", outcome))

    def metrics(self, ids: Collection[str] | None = None) -> list[Metric]:
        """Return the metrics of the criteria with scores, or those of them with ids."""
        scales = criterion_scales(self._outcomes).items()
        every = [metric for one in scales for metric in score_metrics(*one)]
        return [m for m in every if ids is None or {ALL, *m.names}.intersection(ids)]

    def rows(self, metrics: Sequence[Metric]) -> Iterator[MetricsRow]:
        """Yield the rows of each criterion, with these metrics only."""
        chosen = {metric.id for metric in metrics}
        for row in chain(*measure_scores(self._by(metrics)).values()):
            values = {name: value for name, value in row.metrics.items() if name in chosen}
            if values:
                yield replace(row, metrics=values)

    def summaries(
        self, metrics: Sequence[Metric], by: str | None, intervals: Intervals | None
    ) -> list[SummaryRow]:
        """Summarize these metrics per criterion, judge configuration and repeat."""
        every = summarize_scores(self._by(metrics), by, intervals=intervals)
        return [row for row in every if row.metric in metrics]

    def show(self, metrics: Sequence[Metric], *, intervals: bool) -> None:
        """Print the agreement of raters by the criteria of metrics."""
        from labeler.plugins.scores.agreement import compare_raters  # noqa: PLC0415 - loads numpy
        from labeler.plugins.scores.tables import print_panels  # noqa: PLC0415 - the same

        print_panels(compare_raters(self._by(metrics), intervals=intervals))

    def _by(self, metrics: Sequence[Metric]) -> list[ScoreOutcome]:
        """Return the scores by the criteria of metrics, and unreadable rows."""
        names = {metric.name for metric in metrics}
        every = self._outcomes
        return [o for o in every if not o.signature or criterion_name(o.signature) in names]
