"""Records that are measured together, because several of them make one number.

Most kinds are measured one record at a time. Others, such as scores, are collected first; an
installed package says so by an entry point of ``labeler.collected``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from labeler.calculators.metrics_row import MetricsRow
from labeler.calculators.registry import LABEL, Metric
from labeler.catalog import Catalog
from labeler.labels.record import AnyOutcome, requested_kind

if TYPE_CHECKING:
    from labeler.calculators.statistics.intervals import Intervals
    from labeler.calculators.summary import SummaryRow


class Collected(Protocol):
    """Outcomes of one kind, collected to be measured together."""

    def add(self, outcome: AnyOutcome) -> None:
        """Add a record of the kind, a failure of one, or a row that could not be read."""

    def metrics(self, ids: Collection[str] | None = None) -> list[Metric]:
        """Return the metrics that the outcomes added so far have, or those of them with ids."""

    def rows(self, metrics: Sequence[Metric]) -> Iterator[MetricsRow]:
        """Yield the rows of the outcomes, with these metrics only."""

    def summaries(
        self, metrics: Sequence[Metric], by: str | None, intervals: Intervals | None
    ) -> list[SummaryRow]:
        """Summarize these metrics, as :func:`labeler.calculators.summarize` does."""

    def show(self, metrics: Sequence[Metric], *, intervals: bool) -> None:
        """Print what else the outcomes say below their summaries, such as agreement."""


COLLECTED: Catalog[Callable[[], Collected]] = Catalog("kind of records", group="collected")
"""What makes the collection of each kind that is measured together."""


def split_collected(
    outcomes: Iterable[AnyOutcome], found: dict[str, Collected]
) -> Iterator[AnyOutcome]:
    """Yield outcomes that are measured one by one, and collect the others.

    An unreadable row counts as the same kind as the first readable one.

    Args:
        outcomes: of any kind.
        found: collections by kind, filled here; complete once the iterator is exhausted.
    """
    unread: list[AnyOutcome] = []
    first, known = "", dict[str, Collected | None]({LABEL: None})
    for outcome in outcomes:
        kind = requested_kind(outcome)
        if kind is None:
            unread.append(outcome)
            continue
        first = first or kind
        if kind not in known:
            known[kind] = COLLECTED[kind]() if kind in COLLECTED else None
        if collected := known[kind]:
            found[kind] = collected
            collected.add(outcome)
        else:
            yield outcome
    if first in found:
        for outcome in unread:
            found[first].add(outcome)
    else:
        yield from unread


def collected_rows(found: dict[str, Collected], metrics: Sequence[Metric]) -> Iterator[MetricsRow]:
    """Yield the rows of all collections, with those of some metrics that are of their kinds."""
    for kind, collected in found.items():
        if own := [metric for metric in metrics if metric.kind == kind]:
            yield from collected.rows(own)
