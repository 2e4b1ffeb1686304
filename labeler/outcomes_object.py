"""Outcomes of one kind as one object: their table, metrics, gates and files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, SupportsIndex, TypeVar, overload

from labeler.calculators.frame import UNKNOWN, Framed, Given
from labeler.calculators.measuring import metrics, summary
from labeler.calculators.outcomes import checked, measurable
from labeler.catalog import (
    Positions,
    place_of,
    position_of,
    positions_of,
    with_named_keywords,
)
from labeler.data.label_files import write_outcomes
from labeler.errors import UsageError, number_in, path_in
from labeler.labels.answering import LabelFacts, RunCost
from labeler.labels.record import AnyOutcome, LabelFailure, given_outcome
from labeler.sentences.display import Display, Displayed

if TYPE_CHECKING:
    from labeler.calculators import Intervals
    from labeler.calculators.metrics_row import MetricsTable
    from labeler.calculators.tables import SummaryTable
    from labeler.comparing.gates import Demand
    from labeler.comparing.verdicts import GateResults
    from labeler.data.label_files import Glance

T = TypeVar("T", bound=AnyOutcome)


@with_named_keywords
class Outcomes(Framed, Displayed, Sequence[T]):
    """Records of one kind and failures, in the order of their rows.

    A position or an id gives one outcome, a slice further outcomes. ``outcomes == [...]`` compares
    them. They never change; their table of metrics is computed once.

    Args:
        outcomes: the outcomes; a sequence is kept as it is, such as a view of a file.
        name: name of the outcomes in tables and pages, such as their file's.
        cost: the cost of the run that made them; by default the cost of all their answers.
        given: what is known of the rows that were judged.
    """

    records_name = "label"
    """One of the records, in messages."""
    __hash__ = None  # type: ignore[assignment] # equal to lists, which have none either

    def __init__(
        self,
        outcomes: Iterable[T],
        *,
        name: str = "labels",
        cost: RunCost | None = None,
        given: Given = UNKNOWN,
    ) -> None:
        if isinstance(outcomes, str | bytes):
            raise UsageError(
                f"outcomes must be a list of records and failures, got {outcomes!r:.40}; "
                "labeler.load reads a file"
            )
        self._outcomes = outcomes if isinstance(outcomes, Sequence) else list(outcomes)
        self.name = name
        self._cost, self._given = cost, given

    def __len__(self) -> int:
        return len(self._outcomes)

    def __iter__(self) -> Iterator[T]:
        return iter(self._outcomes)

    def __reversed__(self) -> Iterator[T]:
        return reversed(self._outcomes)  # where ids are whole numbers, positions are rejected

    def __contains__(self, value: object) -> bool:
        """Return whether a row has this id, or this is one of the outcomes."""
        return value in (self._positions if isinstance(value, str) else self._outcomes)

    def index(self, value: Any, start: int = 0, stop: int | None = None) -> int:  # noqa: ANN401 - as in Sequence
        """Return the first position of an outcome, or of an id."""
        if isinstance(value, str):
            return position_of("record", value, self._positions)
        return self._outcomes.index(value, start, len(self) if stop is None else stop)

    @overload
    def __getitem__(self, key: SupportsIndex | str) -> T: ...
    @overload
    def __getitem__(self, key: slice) -> Self: ...
    def __getitem__(self, key: SupportsIndex | str | slice) -> T | Self:
        """Return the outcome at a position or with an id, or the labels of a slice.

        Raises:
            IndexError: the position is out of range.
            UnknownName: no row has the id; the message has near ones.
            UsageError: several rows have the id; the message has their positions. Or the rows came
                with whole numbers as ids, and the position is the id of another row.
        """
        place = place_of(
            "record", key, self._outcomes, lambda: self._positions, lambda: self._number_ids
        )
        if isinstance(place, slice):
            return type(self)(self._outcomes[place], name=self.name, given=self._given.part(place))
        found: T = self._outcomes[place]
        return found

    @cached_property
    def _positions(self) -> Positions:
        return positions_of(outcome.id for outcome in self._glances())

    @cached_property
    def _number_ids(self) -> frozenset[str]:
        return self._given.numbers()

    def _glances(self) -> Iterable[T | Glance]:
        """Return what counts need of each outcome."""
        glances = getattr(self._outcomes, "glances", None)
        return self if glances is None else glances()

    def __eq__(self, other: object) -> bool:
        """Return True for labels or a list with equal outcomes in the same order."""
        if not isinstance(other, Outcomes | list):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    def __add__(self, other: Iterable[T]) -> Self:
        """Return the outcomes of both, in memory."""
        if isinstance(other, str | bytes) or not isinstance(other, Iterable):
            return NotImplemented
        return type(self)([*self, *other], name=self.name)

    def __radd__(self, other: Iterable[T]) -> Self:
        return type(self)([*other, *self], name=self.name)

    @cached_property
    def failures(self) -> Self:
        """The rows without a label, each with its reason.

        Example:
            >>> len(labels.failures)
            0
        """
        failed, ids = list[Any](), list[Any]()
        for outcome, own in zip_longest(self, self._given.ids or ()):
            if isinstance(outcome, LabelFailure):
                failed.append(outcome)
                ids.append(outcome.id if own is None else own)
        return type(self)(failed, name=f"failures of {self.name}", given=Given(ids))

    @cached_property
    def cost(self) -> RunCost:
        """The cost of the run; of loaded labels the tokens of all their answers.

        Example:
            >>> print(labels.cost)
            no token was paid for
        """
        return self._cost or self._facts.cost

    def metrics(self, ids: str | Iterable[str] | None = None) -> MetricsTable:
        """Compute metrics of each row, as :func:`labeler.metrics` does.

        Args:
            ids: metric ids; by default each quantity once that the labels have the fields for.

        Returns:
            One row a label or failure; repeated ones count once.

        Raises:
            UnknownName: there is no such metric.

        Example:
            >>> labels.metrics()["tide-gate-height"]["adherence"].value
            1.0
        """
        rows = metrics(self, ids)
        rows.number_ids = self._number_ids
        return rows

    def summary(
        self,
        ids: str | Iterable[str] | None = None,
        *,
        by: str | None = None,
        intervals: Intervals | bool | None = True,
    ) -> SummaryTable:
        """Summarize metrics over all rows, or over each group of a metadata column.

        Args:
            ids: as for :meth:`metrics`.
            by: name of a metadata column.
            intervals: settings of the intervals of the means, by default of 95 %; ``False`` or
                ``None`` for none.

        Returns:
            One row for each judge configuration, group and metric.

        Raises:
            UnknownName: there is no such metric.
            UsageError: no row has the column.

        Example:
            >>> round(labels.summary()["adherence"].mean, 4)
            0.6429
            >>> labels.summary(by="domain")["adherence", "clinic"].defined
            4
        """
        from labeler.calculators import Intervals

        if not isinstance(intervals, Intervals | bool | None):
            raise UsageError(
                f"intervals are Intervals(level=0.9), True or False, got {intervals!r:.40}"
            )
        drawn = (Intervals() if intervals is True else intervals) or None
        return summary(self, ids, by=by, intervals=drawn)

    def check(
        self,
        thresholds: Mapping[str, float] | None = None,
        /,
        *,
        against: str | Path | Iterable[AnyOutcome] | None = None,
        max_drop: float | Mapping[str, float] | None = None,
        on: Literal["point", "interval"] = "point",
        by: str | None = None,
        intervals: Intervals | None = None,
        max_failed: float = 0.05,
        max_undefined: float = 0.05,
        **metrics: float,
    ) -> GateResults:
        """Check gates on the means of metrics; a missed gate raises nothing.

        A mean must be at least its threshold, or at most where lower is better. A gate is also
        missed where too many rows failed or are undefined, as for ``labeler check``.

        Args:
            thresholds: thresholds by metric id, for ids that are not Python names.
            against: outcomes of another run of the same rows, such as the main branch's.
            max_drop: the most by which the mean of the pairs may be worse than in ``against``, by
                metric id; a number is for each metric with a threshold, or else ``adherence``.
            on: ``point`` checks the mean, ``interval`` the worse end of its interval.
            by: name of a metadata column, each of whose groups must pass.
            intervals: settings of the intervals.
            max_failed: largest allowed share of failed rows, from 0 to 1.
            max_undefined: largest allowed share of rows that are undefined because of the record.
            metrics: further thresholds by metric id.

        Returns:
            The verdicts; true if all gates are passed.

        Raises:
            UnknownName: there is no such metric.
            UsageError: no gate is given, a threshold has no metric, or an option is out of range.

        Example:
            >>> bool(labels.check(adherence=0.6)), bool(labels.check(adherence=0.8))
            (True, False)
            >>> labels.at(support=0.5).check(against=labels, max_drop=0.02).passed
            True
        """
        from labeler.comparing.checking import check_gates
        from labeler.comparing.gates import GateSettings

        demands = _demands(thresholds, metrics, max_drop)
        settings = GateSettings(
            on=on,
            by=by,
            intervals=intervals,
            max_failed=max_failed,
            max_undefined=max_undefined,
        )
        base = None if against is None else measurable(against)
        return check_gates(checked(self), demands, base, settings).results

    def save(self, path: str | Path) -> Path:
        """Write the labels to a file, which appears when complete.

        Args:
            path: JSON Lines, ``.jsonl`` or ``.jsonl.gz``, or ``.parquet``.

        Returns:
            The path, for :func:`labeler.load`.

        Raises:
            UsageError: the name stands for another format, or the file cannot be written.

        Example:
            >>> labeler.load(labels.save(folder / "labels.jsonl")) == labels
            True
        """
        target = path_in("path", path)
        for _ in write_outcomes(self, target):
            pass
        return target

    @cached_property
    def _facts(self) -> LabelFacts:
        return LabelFacts(map(partial(given_outcome, "an outcome"), self._glances()))

    @cached_property
    def _table(self) -> SummaryTable:
        return self.summary()

    def _display(self) -> Display:
        from labeler.calculators.tables import labels_display

        return labels_display(self, self._facts, self._table, str(self.cost), self.records_name)


def _demands(
    thresholds: object, named: Mapping[str, float], max_drop: float | Mapping[str, float] | None
) -> list[Demand]:
    """Return the gates of thresholds and of drops by metric id."""
    from labeler.comparing.gates import Demand

    if not isinstance(thresholds, Mapping | None):
        raise UsageError(
            f"a threshold needs a metric, such as check(adherence=0.8), got {thresholds!r:.40}"
        )
    every = {**(thresholds or {}), **named}
    drops = {} if max_drop is None else max_drop
    if not isinstance(drops, Mapping):
        drops = dict.fromkeys(every or ["adherence"], drops)
    return [
        *(Demand(name, number_in(name, value)) for name, value in every.items()),
        *(
            Demand(name, number_in(f"max_drop of {name}", value), at_least=False, of_drop=True)
            for name, value in drops.items()
        ),
    ]
