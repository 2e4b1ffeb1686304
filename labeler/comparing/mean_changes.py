"""Means of labels before and after people's corrections."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from labeler.calculators import Metric, SummaryRow, select_metrics, summarize
from labeler.calculators.outcomes import measure_outcomes
from labeler.data.corrections.applying import Applied
from labeler.labels.answers import GPTLabelingOutput
from labeler.labels.record import AnyOutcome


class MeanChange(NamedTuple):
    """A metric's mean over the labels of one judge configuration.

    Attributes:
        before: summary of the judge's labels.
        after: summary of the corrected ones.
    """

    before: SummaryRow
    after: SummaryRow


class MeanChanges:
    """Means before and after corrections: of the metrics that people can correct.

    Args:
        judged: the judge's labels and failures; consumed at once.
        applied: the corrections that are applied to them.
    """

    def __init__(self, judged: Iterable[AnyOutcome], applied: Applied) -> None:
        self._applied = applied
        self._signed: dict[str, str] = {}
        """Printed signatures of corrected labels by those of the judge's."""
        self._before = _summaries(self._noted(judged))

    def of(self, corrected: Iterable[AnyOutcome]) -> list[MeanChange]:
        """Consume the corrected labels, and return the means that changed."""
        after = {(row.metric, row.label): row for row in _summaries(corrected)}
        found = [
            MeanChange(row, after[row.metric, self._signed[row.label]])
            for row in self._before
            if row.label is not None
        ]
        return [one for one in found if one.before.mean != one.after.mean]

    def _noted(self, judged: Iterable[AnyOutcome]) -> Iterator[AnyOutcome]:
        """Yield the judge's labels, and note their signatures."""
        for outcome in judged:
            if outcome.signature is not None:
                printed = str(outcome.signature)
                if printed not in self._signed:
                    self._signed[printed] = str(self._applied.signed(outcome.signature))
            yield outcome


def _summaries(outcomes: Iterable[AnyOutcome]) -> list[SummaryRow]:
    """Summarize metrics of labels, all models that answered together."""
    metrics = _correctable()
    return summarize(measure_outcomes(outcomes, metrics), metrics, by_model=False)


def _correctable() -> list[Metric]:
    """Return the metrics of the lean label: people do not correct claims."""
    return [one for one in select_metrics() if one.profile.output is GPTLabelingOutput]
