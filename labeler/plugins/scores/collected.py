"""Scores that are measured together."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from labeler.calculators.metrics_row import MetricsRow, failed_row
from labeler.calculators.registry import ALL, Metric
from labeler.labels.record import AnyOutcome, LabelFailure
from labeler.plugins.scores.metrics import Configuration, score_metrics

if TYPE_CHECKING:
    from labeler.plugins.scores.agreement import Panel


class Scores:
    """Scores and failures to score; see :class:`labeler.calculators.registry.Collected`.

    A score of several trials is their mean, undefined (``missing_samples``) if one is missing. An
    unreadable row fails by every criterion. A record that repeats has another row of the same
    identity, which summaries leave out and count.

    Args:
        outcomes: the first ones.
    """

    def __init__(self, outcomes: Iterable[AnyOutcome] = ()) -> None:
        self._known: dict[tuple[str, str], Configuration] = {}
        self._unread: list[LabelFailure] = []
        for outcome in outcomes:
            self.add(outcome)

    @property
    def configurations(self) -> Collection[Configuration]:
        """The configurations, in the order of their first outcomes."""
        return self._known.values()

    def add(self, outcome: AnyOutcome) -> None:
        """Add a score, a failure, or a row that could not be read."""
        signature = outcome.signature
        if signature is None:
            if isinstance(outcome, LabelFailure):
                self._unread.append(outcome)
            return
        name = signature.prompt.name.partition("+")[2] if signature.prompt else ""
        key = name, str(signature.model_copy(update={"trial": 0}))
        self._known.setdefault(key, Configuration(*key)).add(outcome, signature.trial)

    def metrics(self, ids: Collection[str] | None = None) -> list[Metric]:
        """Return the metrics of the criteria with scores; with ids, only these metrics.

        Criteria of one name have the scale that holds all of theirs.
        """
        named: dict[str, list[int]] = {}
        for one in self.configurations:
            ends = named.setdefault(one.name, [])
            ends += [one.criterion.low, one.criterion.high] if one.criterion else []
        every = [
            metric
            for name, ends in named.items()
            for metric in score_metrics(name, (min(ends), max(ends)) if ends else None)
        ]
        return [m for m in every if ids is None or {ALL, *m.names}.intersection(ids)]

    def rows(self, metrics: Sequence[Metric]) -> Iterator[MetricsRow]:
        """Yield the rows of each criterion, with these metrics only."""
        chosen = {metric.id for metric in metrics}
        for name in dict.fromkeys(metric.name for metric in metrics):
            for row in self._rows(name):
                values = {id_: value for id_, value in row.metrics.items() if id_ in chosen}
                yield replace(row, metrics=values)

    def show(self, metrics: Sequence[Metric], *, intervals: bool) -> None:
        """Print the agreement of raters by the criteria of metrics."""
        from labeler.plugins.scores.agreement import print_panels  # noqa: PLC0415 - loads numpy

        names = {metric.name for metric in metrics}
        shown = [one for one in self.configurations if one.name in names]
        print_panels(shown, intervals=intervals)

    def _rows(self, name: str) -> Iterator[MetricsRow]:
        """Yield every row of a criterion."""
        for one in self.configurations:
            if one.name == name:
                yield from one.rows()
        for failure in self._unread:
            yield failed_row(failure, score_metrics(name), None)


def compare_raters(outcomes: Iterable[AnyOutcome], *, intervals: bool = True) -> list[Panel]:
    """Compare the raters of each criterion, with intervals; a single rater has no panel."""
    from labeler.plugins.scores.agreement import panels_of  # noqa: PLC0415 - loads numpy

    return panels_of(Scores(outcomes).configurations, intervals=intervals)
