"""Gates on regressions: by how much a metric may be worse than in a base, record by record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

from labeler.calculators import Intervals, Metric, MetricsRow
from labeler.calculators.metrics_row import group_key, group_names, resampling_unit
from labeler.calculators.ratio import NOT_FINITE, counts_in_gates, fixed_point
from labeler.calculators.statistics.intervals import Interval, Undefined
from labeler.calculators.statistics.paired import paired_interval
from labeler.calculators.summary import check_column, check_unit, count_clusters
from labeler.calculators.summary_table import not_finite_notes
from labeler.comparing.gates import On, RecordValue, check_on, decimal_places
from labeler.comparing.missing import DEFAULT_ALLOWED, IN_BASE, Allowed
from labeler.errors import UsageError
from labeler.labels.answering import joined, mixture
from labeler.labels.signature import selection_warnings
from labeler.sentences.display import Brief


@dataclass(frozen=True, repr=False)
class DropVerdict(Brief):
    """The result of one regression gate for one judge configuration and group.

    Attributes:
        metric: the metric.
        most: the largest drop, or rise of a metric of which less is better, that passes.
        on: the checked value.
        records: the pairs and the rows without a pair, the worst first.
        drop: the mean drop; ``None`` without pairs that have values.
        interval: of the mean drop.
        undefined: pairs without a value on a side, by reason.
        failed: rows without a pair of labels, by reason.
        group: value of the grouping column; ``None`` where rows are not grouped.
        label: printed signature of the new labels.
        base_label: printed signature of the labels of the base.
        allowed: the shares of rows without a value that pass.
        clusters: groups of pairs that are one observation, such as those of equal questions;
            ``None`` if each pair is one.
        notes: remarks on the models that answered.
    """

    metric: Metric
    most: float
    on: On
    records: tuple[RecordValue, ...]
    drop: float | None
    interval: Interval | None
    undefined: Mapping[str, int]
    failed: Mapping[str, int]
    group: str | None = None
    label: str | None = None
    base_label: str | None = None
    allowed: Allowed = DEFAULT_ALLOWED
    clusters: int | None = None
    notes: tuple[str, ...] = ()

    @property
    def demand(self) -> str:
        """The gate in words."""
        word = "drop" if self.metric.higher_is_better else "rise"
        return f"{self.metric.id} {word} at most {self.most:.15g}"

    @property
    def value(self) -> float | None:
        """The checked value: the mean drop, or the lower end of its interval, which is certain."""
        if self.on == "point":
            return self.drop
        return None if self.interval is None else self.interval.low

    @property
    def passed(self) -> bool:
        """True if the value keeps the threshold, and not too many rows are without one."""
        return not any(True for _ in self._reasons())

    @property
    def finding(self) -> str:
        """The result in words."""
        parts = [self._found, *self._reasons()]
        if self.label != self.base_label:
            parts.append(f"the base was labeled otherwise: {self.base_label or 'no label'}")
        return "; ".join([*parts, *self.notes])

    @property
    def rows(self) -> int:
        """Pairs, and rows without a pair."""
        return len(self.records)

    @property
    def defined(self) -> int:
        """Pairs with a value on both sides."""
        return self.rows - sum(self.undefined.values()) - sum(self.failed.values())

    @property
    def exceeded(self) -> tuple[str, ...]:
        """The shares of rows without a value that are too large, in words."""
        return tuple(self.allowed.exceeded(self.metric, self.rows, self.undefined, self.failed))

    @property
    def _found(self) -> str:
        counts = f"(n {self.defined}, undefined {sum(self.undefined.values())}, "
        counts += f"failed {sum(self.failed.values())})"
        if self.drop is None:
            return f"no pair has a value {counts}"
        value = self.drop if self.value is None else self.value
        digits = decimal_places(value, lambda shown: shown <= self.most)
        found = self.interval
        if self.on == "point" or found is None:
            return f"mean {self.drop:+.{digits}f} {counts}"
        ends = f"{found.low:+.{digits}f} to {found.high:+.{digits}f} ({found.described})"
        return f"{100 * found.level:g} % interval {ends}, mean {self.drop:+.{digits}f} {counts}"

    def _reasons(self) -> Iterator[str]:
        """Yield why the gate is missed."""
        if self.value is None:
            yield "too few pairs for an interval" if self.drop is not None else "nothing to compare"
        elif self.value > self.most:
            yield f"{'certainly ' * (self.on == 'interval')}more than {self.most:.15g}"
        yield from self.exceeded


OTHER_QUESTION = "other_question"
"""Why two labels of an id are no pair."""
_LISTED = 5
"""Ids that an error lists at most."""


class _Pair(NamedTuple):
    id: str
    new: MetricsRow | None
    base: MetricsRow | None

    @property
    def labels(self) -> tuple[MetricsRow, MetricsRow] | None:
        """The new row and that of the base, if both have a label."""
        if self.new is None or self.base is None or self.new.failed or self.base.failed:
            return None
        return self.new, self.base

    @property
    def missing(self) -> str | None:
        """The reason why there is no pair of labels of one question; ``None`` if there is one."""
        if self.labels:
            new, base = self.labels
            return None if new.question == base.question else OTHER_QUESTION
        if self.new is None:
            return "only_in_base"
        if self.new.failed:
            return self.new.failed
        return f"{self.base.failed}{IN_BASE}" if self.base else "only_in_new"


_Side = Mapping[str, MetricsRow]


def check_drops(
    new: Sequence[MetricsRow],
    base: Sequence[MetricsRow],
    drops: Sequence[tuple[Metric, float]],
    *,
    on: On = "point",
    by: str | None = None,
    intervals: Intervals | None = None,
    allowed: Allowed = DEFAULT_ALLOWED,
) -> list[DropVerdict]:
    """Check measured rows against those of a base, paired by id.

    Args:
        new: rows to check.
        base: rows to start from.
        drops: metrics, each with the largest drop that passes, or rise where less is better.
        on: ``point`` for the mean drop; ``interval`` for the lower end of its interval, so that
            only a drop that chance does not explain misses.
        by: name of a metadata column, each of whose values must pass.
        intervals: settings of the intervals. Rows of one question, or of one value of the column
            of the settings, are one observation.
        allowed: the largest shares of rows without a value that pass.

    Returns:
        A verdict for each gate, judge configuration and group.

    Raises:
        UsageError: judge configurations cannot be paired, a row has two values, no two rows of an
            id ask the same question, ``on`` is unknown, or no row has a column that is named.
    """
    settings, found = intervals or Intervals(), []
    check_on(on)
    if new or base:
        columns = set[str]().union(*(row.metadata for row in (*new, *base)))
        check_column(by, columns, "to check by")
        check_unit(settings.group, columns)
    for metric, most in drops:
        for label, base_label, pairs in _paired(metric, new, base):
            for group, part in _grouped(pairs, by):
                verdict = _verdict(metric, most, part, settings, on)
                verdict = replace(verdict, group=group, allowed=allowed)
                found.append(replace(verdict, label=label, base_label=base_label))
    return found


def _grouped(pairs: Sequence[_Pair], by: str | None) -> list[tuple[str | None, Sequence[_Pair]]]:
    """Return the pairs of each group by its name, sorted."""
    if by is None or not pairs:
        return [(None, pairs)]
    groups: dict[str, list[_Pair]] = {}
    for pair in pairs:
        row = pair.new or pair.base
        groups.setdefault(group_key(row.metadata, by) if row else "", []).append(pair)
    names = group_names(groups)
    return sorted((names[key], part) for key, part in groups.items())


def _paired(
    metric: Metric, new: Sequence[MetricsRow], base: Sequence[MetricsRow]
) -> Iterator[tuple[str | None, str | None, list[_Pair]]]:
    """Yield the pairs of each judge configuration."""
    sides = _by_label(metric, new), _by_label(metric, base)
    labels = list(sides[0]), list(sides[1])
    if len(labels[0]) == len(labels[1]) == 1:
        matched = [(labels[0][0], labels[1][0])]
    elif set(labels[0]) == set(labels[1]):
        matched = [(label, label) for label in labels[0]]
    else:
        raise UsageError(
            f"{metric.id}: {len(labels[0])} judge configurations are checked against "
            f"{len(labels[1])} others; give files of one each, or of the same ones"
        )
    for one, other in matched:
        a, b = sides[0][one], sides[1][other]
        pairs = [_Pair(name, a.get(name), b.get(name)) for name in sorted({*a, *b})]
        _check_questions([pair for pair in pairs if pair.labels])
        yield one, other, pairs


def _check_questions(labeled: Sequence[_Pair]) -> None:
    """Require one pair of labels of the same question, unless there is no pair at all."""
    if labeled and all(pair.missing for pair in labeled):
        more = ", …" if len(labeled) > _LISTED else ""
        ids = ", ".join(f"{pair.id!r:.80}" for pair in labeled[:_LISTED])
        raise UsageError(
            f"new labels and base share {len(labeled)} ids ({ids}{more}), but ask different "
            "questions under each: these are other rows; give both sides the same rows under the "
            "same ids (--id)"
        )


def _by_label(metric: Metric, rows: Iterable[MetricsRow]) -> dict[str | None, _Side]:
    """Return the rows by judge configuration and id; a label goes before a failure."""
    found: dict[str | None, dict[str, MetricsRow]] = {}
    unsigned: dict[str, MetricsRow] = {}
    for row in rows:
        if metric.id not in row.metrics:
            continue
        side = unsigned if row.label is None else found.setdefault(row.label, {})
        known = side.get(row.id)
        if known is None or known.failed:
            side[row.id] = row
        elif not row.failed and row.metrics[metric.id] != known.metrics[metric.id]:
            raise UsageError(f"record {row.id!r:.80} has two values of {metric.id} in one file")
    return {label: {**unsigned, **side} for label, side in found.items()} or {None: unsigned}


def _verdict(
    metric: Metric, most: float, pairs: Sequence[_Pair], intervals: Intervals, on: On
) -> DropVerdict:
    failed, undefined = Counter[str](), Counter[str]()
    records: list[RecordValue] = []
    drops: list[Fraction] = []
    units: list[Hashable] = []
    for pair in pairs:
        name = pair.id
        if pair.missing or not pair.labels:
            reason = pair.missing or ""
            failed[reason] += 1
            records.append(RecordValue(name, None, reason, missed=True))
            continue
        new, base = pair.labels
        a, b = base.metrics[metric.id], new.metrics[metric.id]
        if a.value is None or b.value is None:
            reason = b.undefined or f"{a.undefined}{IN_BASE}"
            undefined[reason] += 1
            missed = counts_in_gates(reason.removesuffix(IN_BASE))
            records.append(RecordValue(name, None, reason, missed=missed))
            continue
        drop = a.exact - b.exact if metric.higher_is_better else b.exact - a.exact
        drops.append(drop)
        units.append(resampling_unit(new, intervals.group))
        shown = f"{a.value:.4f} → {b.value:.4f}"
        records.append(RecordValue(name, float(drop), shown, missed=float(drop) > most))
    clusters = count_clusters(units)
    grouped = intervals.group is not None or clusters is not None
    total = sum(fixed_point(drop.numerator, drop.denominator) for drop in drops)
    records.sort(key=lambda one: (one.value is not None, -(one.value or 0.0), one.id))
    return DropVerdict(
        metric=metric,
        most=most,
        on=on,
        records=tuple(records),
        drop=total / fixed_point(len(drops), 1) if drops else None,
        interval=_interval(metric, drops, units if grouped else None, intervals)
        if on == "interval"
        else None,
        undefined=undefined,
        failed=failed,
        clusters=clusters,
        notes=(*_notes(pairs), *not_finite_notes(metric.id, _not_finite(records))),
    )


def _not_finite(records: Sequence[RecordValue]) -> list[str]:
    """Return the ids of the first records whose value on a side is NaN or infinity."""
    reasons = NOT_FINITE, NOT_FINITE + IN_BASE
    return [one.id for one in records if one.value is None and one.shown in reasons][:_LISTED]


def _notes(pairs: Sequence[_Pair]) -> Iterator[str]:
    """Yield notes: other models answered in the base, several on a side, selected corrections."""
    new, base = (
        joined(row.answered.name for row in side if row and row.answered)
        for side in ((pair.new for pair in pairs), (pair.base for pair in pairs))
    )
    if new and base and (new != base or mixture([new])):
        yield f"answered by {new}, in the base by {base}"
    yield from selection_warnings(
        row.label for pair in pairs for row in (pair.new, pair.base) if row
    )


def _interval(
    metric: Metric,
    drops: Sequence[Fraction],
    groups: Sequence[Hashable] | None,
    intervals: Intervals,
) -> Interval | None:
    low, high = metric.range or (0.0, 1.0)
    values = [float(drop) for drop in drops]
    span = max([high - low, *map(abs, values)])
    found = paired_interval(values, groups=groups, span=span, level=intervals.level)
    return None if isinstance(found, Undefined) else found
