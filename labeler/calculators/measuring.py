"""Metrics of outcomes of every kind: of single records, and of those that are measured together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, groupby, islice
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from labeler.calculators.metrics_row import DistinctRows, MetricsRow, MetricsTable
from labeler.calculators.outcomes import measurable, measure_outcomes, with_kinds
from labeler.calculators.registry import (
    ALL,
    COLLECTED,
    LABEL,
    Collected,
    Metric,
    select_metrics,
    split_ids,
)
from labeler.calculators.summary import CountedRows, SummaryRow, summarize
from labeler.catalog import named_keywords
from labeler.errors import UnknownName
from labeler.labels.record import AnyOutcome

if TYPE_CHECKING:
    from labeler.calculators.intervals import Intervals
    from labeler.calculators.tables import SummaryTable


def split_collected(
    outcomes: Iterable[AnyOutcome], found: dict[str, Collected]
) -> Iterator[AnyOutcome]:
    """Yield outcomes that are measured one by one, and collect the others by kind in ``found``.

    The latter are measured together, because several of them make one number.
    """
    known = {LABEL}
    for outcome, kind in with_kinds(outcomes, COLLECTED.__contains__):
        if kind not in known:
            known.add(kind)
            if kind in COLLECTED:
                found[kind] = COLLECTED[kind]()
        if kind in found:
            found[kind].add(outcome)
        else:
            yield outcome


def collected_rows(found: dict[str, Collected], metrics: Sequence[Metric]) -> Iterator[MetricsRow]:
    """Yield the rows of each collection, measured by the metrics of its kind."""
    for kind, collected in found.items():
        if own := [metric for metric in metrics if metric.kind == kind]:
            yield from collected.rows(own)


class MeasuredOutcomes:
    """Outcomes, read once, and the metrics to compute from them.

    Args:
        outcomes: records and failures; or a numbers file.
        ids: ids of registered metrics, and of those that collected outcomes have; by default those
            that the records have the fields for.

    Attributes:
        collected: the outcomes measured together that were read so far, such as scores, by kind.
        numbers: the numbers file with the metrics of the ids; ``None`` for outcomes.
    """

    def __init__(
        self,
        outcomes: Iterable[AnyOutcome] | CountedRows,
        ids: str | Iterable[str] | None = None,
    ) -> None:
        self.collected: dict[str, Collected] = {}
        self.numbers: CountedRows | None = None
        if isinstance(outcomes, CountedRows):
            self.numbers = outcomes.chosen(ids)
            return
        self._ids = None if ids is None else split_ids(ids)
        self._unknown: dict[str, UnknownName] = {}
        """Errors of names that metrics of collected outcomes may have."""
        chosen = dict.fromkeys(() if self._ids else select_metrics(self._ids))
        for name in self._ids or ():
            try:
                chosen |= dict.fromkeys(select_metrics(name, kind=None))
            except UnknownName as error:
                self._unknown[name] = error
        self._chosen = tuple(chosen)
        self._outcomes = split_collected(outcomes, self.collected)

    def rows(self, *, facts: bool = False) -> Iterator[MetricsRow]:
        """Yield the metrics of each outcome, with the facts of a numbers file if asked for.

        Raises:
            UnknownName: neither a registered metric nor one of the outcomes has an id.
        """
        if self.numbers:
            yield from self.numbers.own_rows()
            return
        yield from self._single(facts=facts)
        for kind, one in self.collected.items():
            yield from one.rows(self.metrics_of(kind))

    def summaries(
        self,
        by: str | None,
        intervals: Intervals | None,
        watch: Callable[[Iterable[MetricsRow]], Iterator[MetricsRow]] = iter,
    ) -> tuple[list[SummaryRow], list[SummaryRow]]:
        """Return summaries of records that are measured one by one, and of collected ones.

        Args:
            by: name of a metadata column.
            intervals: settings of the intervals of means.
            watch: passes the rows of single records on; it gets a numbers file's worst rows alone.

        Raises:
            UnknownName: as for :meth:`rows`.
            UsageError: no row has the column.
        """
        if self.numbers:
            list(watch(self.numbers.least_supported()))
            return summarize(self.numbers, self.numbers.metrics, by, intervals=intervals), []
        measured = [*self._chosen]
        rows = watch(self._single(aliases=False, others=measured))
        first = list(islice(rows, 1))
        summary = summarize(chain(first, rows), measured, by, intervals=intervals)
        collected = list[SummaryRow]()
        for kind, one in self.collected.items():
            for _, named in groupby(self.metrics_of(kind), attrgetter("name")):
                own = list(named)  # with rows of their own
                collected += summarize(one.rows(own), own, by, intervals=intervals)
        if not first and collected and not self._asks_for_others(measured):
            return [], collected
        return summary, collected

    def metrics_of(self, kind: str) -> list[Metric]:
        """Return the metrics of collected outcomes of a kind, restricted to the ids if given."""
        return self.collected[kind].metrics(self._ids)

    def _asks_for_others(self, measured: Sequence[Metric]) -> bool:
        """Return True if the ids name a metric that no collected outcome has."""
        own = {metric.id for kind in self.collected for metric in self.metrics_of(kind)}
        named = self._ids not in (None, [ALL])
        return named and bool({metric.id for metric in measured} - own)

    def _single(
        self,
        *,
        facts: bool = False,
        aliases: bool = True,
        others: list[Metric] | None = None,
    ) -> Iterator[MetricsRow]:
        """Measure the outcomes that are not collected; see :func:`measure_outcomes`."""
        if self._unknown:  # metrics of collected outcomes are known once all are read
            self._outcomes = iter(list(self._outcomes))
            self._check_unknown()
        return measure_outcomes(
            self._outcomes,
            None if self._ids is None else self._chosen,
            facts=facts,
            aliases=aliases,
            others=others,
        )

    def _check_unknown(self) -> None:
        """Require each unknown name to be a metric of collected outcomes."""
        every = [metric for one in self.collected.values() for metric in one.metrics()]
        known = {name for metric in every for name in metric.names}
        for name, error in self._unknown.items():
            if name not in known:
                own = ", ".join(metric.id for metric in every)
                have = f"; of these records: {own}" if own else ""
                raise UnknownName(f"{error}{have}") from error


@named_keywords
def metrics(
    outcomes: str | Path | Iterable[AnyOutcome], ids: str | Iterable[str] | None = None
) -> MetricsTable:
    """Compute metrics of stored labels: no judge, no network, no key.

    Args:
        outcomes: labels, other records and failures, or the file or store with them, or a
            numbers file.
        ids: metric ids such as ``relevance`` or ``relevance:ragbench``, or ``all``; by default
            each metric once, in its default definition, if the row's profile has its fields.

    Returns:
        One row an outcome, in their order, then those measured together, such as the trials of a
        score; each metric is a :class:`~labeler.calculators.Ratio`. Labels that repeat an id and
        label key, failures that repeat an id and signature, and failures of rows that have a label
        by that signature have no row.

    Example:
        >>> row = labeler.metrics(labels)["pilot-boat-half"]
        >>> row["adherence_fraction"].numerator, row["adherence_fraction"].denominator
        (2, 3)
    """
    rows = list(MeasuredOutcomes(measurable(outcomes), ids).rows())
    distinct = set(map(id, DistinctRows(rows)))
    return MetricsTable(row for row in rows if id(row) in distinct)


@named_keywords
def summary(
    outcomes: str | Path | Iterable[AnyOutcome],
    ids: str | Iterable[str] | None = None,
    *,
    by: str | None = None,
    intervals: Intervals | None = None,
) -> SummaryTable:
    """Summarize metrics over all outcomes, or over each group of a metadata column.

    Labels of different judge configurations are never averaged; see
    :func:`labeler.calculators.summarize`. A store holds judgments, not rows: summarize the label
    file of a run for numbers over its rows.

    Args:
        outcomes: labels, other records and failures, or the file or store with them, or a
            numbers file.
        ids: as for :func:`metrics`.
        by: name of a metadata column.
        intervals: ``Intervals()`` gives each mean a confidence interval, which takes records of
            equal questions as one observation, and ``Intervals(group="topic")`` of equal topics.

    Returns:
        A row for each group, configuration and metric: mean, interval, and how many rows are
        defined, undefined and failed.

    Example:
        >>> round(labeler.summary(labels)["adherence"].mean, 4)
        0.6429
    """
    from labeler.calculators.tables import SummaryTable  # noqa: PLC0415 - rows need no tables

    single, collected = MeasuredOutcomes(measurable(outcomes), ids).summaries(by, intervals)
    return SummaryTable([*single, *collected], intervals)
