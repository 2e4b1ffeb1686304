"""Summaries of metrics over columns, equal to those of single rows to the last bit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Protocol

import numpy as np

from labeler.calculators.column_sums import ColumnSum
from labeler.calculators.columns import Reader, TallyColumns
from labeler.calculators.metrics_row import QUESTION, group_label, unit_name
from labeler.calculators.ratio_column import Ints, RatioColumn
from labeler.calculators.registry import Metric
from labeler.calculators.selection import COUNTED, REPEATED, Digests, Groups, Present, Selection
from labeler.calculators.statistics.intervals import Intervals
from labeler.calculators.summary import (
    GroupedSums,
    GroupKey,
    GroupSums,
    SummaryRow,
)
from labeler.errors import UsageError
from labeler.labels.answering import AnsweringModel
from labeler.labels.profiles import PROFILES

_EVERY = Selection()


@dataclass(frozen=True)
class Categorical:
    """A column of few distinct texts.

    Attributes:
        codes: position of each record's text among the names; -1 for none.
        names: the distinct texts.
    """

    codes: Ints
    names: Sequence[str]


class UnreadableFrame(Exception):
    """A frame whose columns cannot be read; no metric causes it."""


class Frame(Reader, Protocol):
    """A batch of labels and failures as columns."""

    columns: frozenset[str]
    """Names of metadata columns that rows of the batch, or of others of its source, have."""

    def coded(self, name: str) -> Categorical:
        """Return the column ``label``, ``failed`` or ``profile``."""
        ...

    def answered(self) -> tuple[Ints, Sequence[AnsweringModel]]:
        """Return the place of each row's answering model among the distinct ones, and these.

        A failed row has the place -1.
        """
        ...

    def ids(self, rows: Sequence[int]) -> list[str]:
        """Return the ids of some rows."""
        ...

    def metadata(self, column: str, *, question: bool) -> list[object]:
        """Return each row's value in a metadata column; ``None`` if it has none.

        Args:
            column: its name.
            question: True if labels have their question in this column by default.
        """
        ...

    def questions(self) -> Digests:
        """Return the digest of each row's question; 0 for none."""
        ...

    def order(self) -> Ints:
        """Return numbers that increase in the order in which rows are read without an index."""
        ...


@dataclass(frozen=True)
class SummaryRequest:
    """The summary to compute.

    Attributes:
        metrics: the metrics.
        by: name of the metadata column to group by.
        fitting: True if a row has only those metrics that labels of its profile have the fields
            for; otherwise every row has all.
        intervals: options of intervals; ``None`` for none.
    """

    metrics: Sequence[Metric]
    by: str | None = None
    fitting: bool = False
    intervals: Intervals | None = None

    def is_vectorized(self, notice: Callable[[str], object]) -> bool:
        """Return True if there are metrics and all are vectorized; report those that are not."""
        if slow := [metric.id for metric in self.metrics if not metric.vectorized]:
            notice(f"no vectorised form of {', '.join(slow)}: the records are read one by one")
        return bool(self.metrics) and not slow

    @property
    def unit(self) -> str | None:
        """Name of the column whose values are resampled together."""
        return self.intervals.group if self.intervals else None


class ColumnCounts:
    """Sums over rows, added batch by batch, or counted in several processes and combined.

    Serializable, if the metrics are.

    Args:
        request: the summary to compute.
    """

    def __init__(self, request: SummaryRequest) -> None:
        self._request = request
        self._sums = GroupedSums(
            request.metrics, partial(ColumnSum, {}, keep_values=request.intervals is not None)
        )
        self._units: dict[str, int] = {}
        self.rows = 0
        """Number of rows."""
        self.unsigned = False
        """True if a row failed before a judge was chosen."""

    def add(self, frame: Frame, selection: Selection = _EVERY) -> None:
        """Add the rows of a frame.

        Args:
            frame: the rows.
            selection: those that are counted; by default all, with questions that all differ.
        """
        self.rows += frame.rows
        labels, failed = frame.coded("label"), frame.coded("failed")
        self.unsigned |= bool((labels.codes < 0).any())
        self._sums.columns |= frame.columns
        if self._request.unit == QUESTION and bool((failed.codes < 0).any()):
            self._sums.columns.add(QUESTION)
        order = cache(frame.order)
        units = self._unit_numbers(frame, selection.groups)
        ratios = cache(partial(compute_column, tallies=TallyColumns(frame), rows=frame.rows))
        for key, model, every in _partition(labels, *self._groups(frame), *frame.answered()):
            sums = self._sums.of(key)
            sums.models.update([model] if model else [])
            rows = every
            if selection.left_out is not None:
                left_out = selection.left_out[every]
                sums.duplicates += int((left_out == REPEATED).sum())
                rows = every[left_out == COUNTED]
            if selection.groups is not None:
                shared = selection.groups[rows[failed.codes[rows] < 0]]
                numbers = shared[shared > 0]
                sums.questions.frombytes(numbers.astype(np.uint64).tobytes())
                sums.alone += len(shared) - len(numbers)
            fits = self._fitting(frame, rows)
            sums.measured.update(metric.id for metric in fits)
            _add_failed(
                frame, sums, failed, rows[failed.codes[rows] >= 0], unsigned=key.label is None
            )
            for metric, some in fits.items():
                measured = some[failed.codes[some] < 0]
                if len(measured):
                    column = ratios(metric)
                    if len(measured) < frame.rows:
                        column = column.take(measured)
                    own = None if units is None else units[measured]
                    sums.of[metric.id].add(column, partial(_taken, order, measured), own)

    def add_counted(self, other: ColumnCounts) -> None:
        """Add sums over rows that come after all rows added before."""
        self.rows += other.rows
        self.unsigned |= other.unsigned
        self._sums.columns |= other._sums.columns
        numbers = None
        if self._request.unit is not None:
            numbers = np.array([0, *map(self._number, other._units)], np.int64)
        for key, sums in other._sums.items():
            own = self._sums.of(key)
            own.models |= sums.models
            own.unsigned |= sums.unsigned
            own.measured |= sums.measured
            own.failed.update(sums.failed)
            own.duplicates += sums.duplicates
            own.questions += sums.questions
            own.alone += sums.alone
            for name, column in sums.of.items():
                own.of[name].add_sum(column, numbers)

    def summary(self, present: Present = lambda _: set()) -> list[SummaryRow]:
        """Return the summaries after all rows were added.

        Args:
            present: returns those of some digests of rows that have a label or failed.

        Raises:
            UsageError: no row has a column that is named.
        """
        return self._sums.rows(self._request.by, self._request.intervals, present)

    def _column(self, frame: Frame, column: str) -> list[object]:
        question = column == QUESTION == self._request.unit
        return frame.metadata(column, question=question)

    def _groups(self, frame: Frame) -> tuple[Ints, list[str | None]]:
        """Return the number of each row's group, and the names of the groups."""
        if self._request.by is None:
            return np.zeros(frame.rows, np.int64), [None]
        numbers: dict[str | None, int] = {}
        names = map(group_label, self._column(frame, self._request.by))
        codes = [numbers.setdefault(name, len(numbers)) for name in names]
        return np.array(codes, np.int64), list(numbers)

    def _unit_numbers(self, frame: Frame, groups: Groups | None) -> Ints | None:
        """Return the number of each row's resampling unit, 0 for a unit of its own.

        ``None`` if all rows are resampled alone.
        """
        column = self._request.unit
        if column is None:
            return None if groups is None else groups.astype(np.int64)
        values = self._column(frame, column)
        return np.array([self._number(unit_name(value)) for value in values], np.int64)

    def _number(self, name: str | None) -> int:
        return 0 if name is None else self._units.setdefault(name, len(self._units) + 1)

    def _fitting(self, frame: Frame, rows: Ints) -> dict[Metric, Ints]:
        """Return the metrics that the rows have, and the rows that have each."""
        if not self._request.fitting:
            return dict.fromkeys(self._request.metrics, rows)
        profiles = frame.coded("profile")
        outputs = [PROFILES[name].output for name in profiles.names]
        found: dict[Metric, Ints] = {}
        for metric in self._request.metrics:
            needed = metric.profile.output
            fits = np.array([issubclass(output, needed) for output in outputs], np.bool_)
            if fits.all():
                found[metric] = rows
            elif (chosen := fits[profiles.codes[rows]]).any():
                found[metric] = rows[chosen]
        return found


def _taken(numbers: Callable[[], Ints], rows: Ints) -> Ints:
    return numbers()[rows]


def compute_column(metric: Metric, tallies: TallyColumns, rows: int) -> RatioColumn:
    """Compute a vectorized metric, which a third party may have written.

    Raises:
        UsageError: it failed, or returned something else than a column of so many rows.
    """
    compute: Callable[[Any], object] = metric.compute
    try:
        ratios = compute(tallies)
    except UnreadableFrame:
        raise
    except Exception as error:
        raise UsageError(
            f"the vectorised form of metric {metric.id!r} failed: {type(error).__name__}: {error}; "
            "--no-index does without it"
        ) from error
    if not isinstance(ratios, RatioColumn) or len(ratios) != rows:
        raise UsageError(
            f"the vectorised form of metric {metric.id!r} gave {type(ratios).__name__}; it must "
            f"return a RatioColumn of {rows} rows; --no-index does without it"
        )
    return ratios


def _partition(
    labels: Categorical,
    groups: Ints,
    names: Sequence[str | None],
    answered: Ints,
    models: Sequence[AnsweringModel],
) -> Iterable[tuple[GroupKey, AnsweringModel | None, Ints]]:
    """Return the rows of each configuration, group and model with its host, in order."""
    found = ((labels.codes + 1) * len(names) + groups) * (len(models) + 1) + answered + 1
    order = np.argsort(found, kind="stable")
    starts = np.flatnonzero(np.diff(found[order], prepend=-1))
    for rows in np.split(order, starts[1:]) if len(order) else ():
        label, group, by = (codes[rows[0]] for codes in (labels.codes, groups, answered))
        model = [*models, None][by]
        name = None if model is None else model.name
        yield GroupKey([*labels.names, None][label], names[group], name), model, rows


def _add_failed(
    frame: Frame, sums: GroupSums[ColumnSum], failed: Categorical, rows: Ints, *, unsigned: bool
) -> None:
    if not len(rows):
        return
    reasons = [failed.names[code] for code in failed.codes[rows].tolist()]
    if unsigned:
        sums.unsigned |= zip(frame.ids(rows.tolist()), reasons, strict=True)
    else:
        sums.failed.update(reasons)
