"""Compare sets of labels over the records that they share: systems, judges, prompts, dates.

Differences are B minus A and are read in the metric's direction. Where A and B label the same
sentences, the sentences that moved a number are named; where two systems answer the same
questions, only their metrics are compared. Records are independent, or questions where several
records ask the same one. The order of records changes no figure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from typing_extensions import Unpack

from labeler.calculators import Metric, select_metrics
from labeler.calculators.ratio import NOT_FINITE
from labeler.calculators.statistics.intervals import (
    LEVEL,
    Undefined,
    check_level,
    error_rate,
    holm,
    mean_difference,
    paired_interval,
    paired_test,
)
from labeler.calculators.summary import CountedRows, count_clusters
from labeler.comparing.comparison import LETTERS, Comparison, Comparisons
from labeler.comparing.metric_comparison import (
    UNTESTED,
    Definedness,
    Flip,
    Measured,
    MetricComparison,
    Moved,
    Verdict,
    judge_inconsistency,
    sees_equal_retrieval,
)
from labeler.comparing.options import SideKeywords, SideOptions, side_options
from labeler.comparing.pairs import Pair, Pairs, read_pairs
from labeler.errors import UsageError, count_of
from labeler.labels.record import AnyOutcome

_LISTED = 5
"""Records without a finite value that are named at most."""
TOP = 3
"""Records that are named for each metric."""


class _Options(NamedTuple):
    """Settings of the statistics."""

    level: float
    top: int


def compare(
    a: Iterable[AnyOutcome] | CountedRows,
    b: Iterable[AnyOutcome] | CountedRows,
    metrics: str | Iterable[str] | None = None,
    *,
    names: tuple[str, str] = ("A", "B"),
    level: float = LEVEL,
    top: int = TOP,
    **sides: Unpack[SideKeywords],
) -> Comparison:
    """Compare two sets of labels, metric by metric, over the records that both have.

    Args:
        a: label records and failures to start from, such as
            ``labeler.api.read_labels("before.jsonl")``; other kinds of records are left out.
        b: those that are compared with them.
        metrics: metric ids, as for :func:`labeler.metrics`; by default each metric once, in its
            default definition, that labels of both sides have the fields for.
        names: names of the sides in errors and results, such as their files.
        level: of intervals; differences whose adjusted p value is at most 1 - level are evidence.
        top: number of records that are named for each metric.
        sides: ``by``, a metadata column to compare within, and the choice of labels; see
            :class:`labeler.comparing.options.SideOptions`.

    Returns:
        A row for each group and metric: means, difference, interval, p value and verdict. With
        groups ``whole`` has the rows of all pairs together.

    Raises:
        UsageError: the sides share no labeled record; one holds no label that fits the choice, or
            labels made in several ways and none is chosen; a record has two labels; no label has
            the column; or an option is out of its range.

    Example:
        >>> stricter = labels.at(support=0.9)
        >>> row = labeler.compare(labels, stricter, "adherence").rows[0]
        >>> row.metric.id, row.pairs
        ('adherence', 14)
    """
    options = _Options(level, top)
    (found,) = _compare([a, b], metrics, names, options, side_options(sides, compare))
    return found


def compare_runs(
    runs: Iterable[Iterable[AnyOutcome] | CountedRows],
    metrics: str | Iterable[str] | None = None,
    *,
    names: Sequence[str] | None = None,
    level: float = LEVEL,
    top: int = TOP,
    **sides: Unpack[SideKeywords],
) -> Comparisons:
    """Compare several sets of labels with the first, as :func:`compare` does with two.

    Args:
        runs: sets of label records and failures, or numbers files; the first is the base, A.
        metrics: as for :func:`compare`.
        names: a name for each set; by default ``A``, ``B``, ``C`` and so on.
        level: as for :func:`compare`.
        top: as for :func:`compare`.
        sides: as for :func:`compare`; every set but the first has the choice of B.

    Returns:
        One comparison with the base for each other set. P values are adjusted for the tests of
        all of them together.

    Raises:
        UsageError: as for :func:`compare`; or there are fewer than two or more than 26 sets, or
            not as many names.

    Example:
        >>> len(labeler.comparing.compare_runs([labels, labels, labels], "adherence"))
        2
    """
    runs = list(runs)
    if len(runs) not in range(2, len(LETTERS) + 1):
        raise UsageError(
            f"sets of labels to compare: {len(runs)} given, 2 to {len(LETTERS)} allowed"
        )
    names = tuple(LETTERS[: len(runs)]) if names is None else names
    if len(names) != len(runs):
        raise UsageError(f"{len(names)} names for {len(runs)} sets of labels: give one for each")
    options = _Options(level, top)
    return Comparisons(_compare(runs, metrics, names, options, side_options(sides, compare_runs)))


def _compare(
    runs: Sequence[Iterable[AnyOutcome] | CountedRows],
    metrics: str | Iterable[str] | None,
    names: Sequence[str],
    options: _Options,
    sides: SideOptions,
) -> list[Comparison]:
    """Compare the first run with each other one, as one family of tests."""
    check_level(options.level)
    count_of("top", options.top)
    chosen = select_metrics(metrics)
    runs = [run.chosen(metrics) if isinstance(run, CountedRows) else run for run in runs]
    for run in runs:
        if isinstance(run, CountedRows):
            chosen = tuple(metric for metric in chosen if metric in run.metrics)
    keep = partial(Measured.of, metrics=chosen)
    # A verdict on a mean is of one judge configuration, unless a mixture is asked for.
    every = read_pairs(runs, (keep, keep), sides, names=names, same=("question",), mixed=False)
    asked = [
        [
            _Asked(metric, place, _span(joined.pairs, place))
            for place, metric in enumerate(chosen)
            if metrics is not None or joined.have_fields_of(metric)
        ]
        for joined in every
    ]
    found = _family(every, asked, options, by=sides.by)
    if sides.by is None:
        return found
    wholes = _family(every, asked, options, by=None)
    return [replace(one, whole=whole) for one, whole in zip(found, wholes, strict=True)]


def _family(
    every: Sequence[Pairs[Measured]],
    asked: Sequence[Sequence[_Asked]],
    options: _Options,
    *,
    by: str | None,
) -> list[Comparison]:
    """Compare all pairs, or those of each group, and adjust the p values of all together."""
    tested = [
        [
            _compared(group, one, part, options)
            for group, part in (_grouped(joined) if by else [(None, joined.pairs)])
            for one in own
        ]
        for joined, own in zip(every, asked, strict=True)
    ]
    family = _adjusted(tested)
    tests = sum(map(len, family))
    return [
        _judged(joined, rows, own, tests=tests, by=by, options=options)
        for joined, rows, own in zip(every, tested, family, strict=True)
    ]


def _grouped(joined: Pairs[Measured]) -> list[tuple[str | None, Sequence[Pair[Measured]]]]:
    groups: dict[str | None, list[Pair[Measured]]] = {}
    for pair in joined:
        groups.setdefault(pair.group, []).append(pair)
    return sorted(groups.items(), key=lambda item: item[0] or "")


class _Asked(NamedTuple):
    """A metric that is compared.

    Attributes:
        metric: the metric.
        place: its place among the values of a label.
        span: see :attr:`MetricComparison.span`.
    """

    metric: Metric
    place: int
    span: float


class _Valued(NamedTuple):
    """A pair and its values of one metric."""

    pair: Pair[Measured]
    a: float
    b: float

    @property
    def difference(self) -> float:
        return self.b - self.a


def _span(pairs: Sequence[Pair[Measured]], place: int) -> float:
    """Return the largest possible difference of a metric; all groups share one scale."""
    values = [
        value
        for pair in pairs
        for value in (pair.a.value.values[place], pair.b.value.values[place])
        if not isinstance(value, str)
    ]
    return max(1.0, max(values) - min(values)) if values else 1.0


class _Tested(NamedTuple):
    """A row without its adjustment.

    Attributes:
        row: the row.
        changed: ids of the pairs with a value on one side only, and which side lacks it.
    """

    row: MetricComparison
    changed: frozenset[tuple[str, bool, bool]]

    @property
    def values(self) -> Hashable:
        """Key of the test of values: equal and complementary metrics share one."""
        return self.row.group, self.row.metric.quantity

    @property
    def defined(self) -> Hashable:
        """Key of the test of definedness: metrics whose definedness changes alike share one."""
        return self.row.group, self.changed

    @property
    def tests(self) -> Iterable[tuple[Hashable, float]]:
        """The tests of values and of definedness, with their keys."""
        both = ((self.values, self.row.p), (self.defined, self.row.definedness.p))
        return ((key, p) for key, p in both if not isinstance(p, Undefined))


def _compared(
    group: str | None, asked: _Asked, pairs: Sequence[Pair[Measured]], options: _Options
) -> _Tested:
    """Compare one metric, without the adjustment for the other metrics."""
    equal = [sees_equal_retrieval(asked.metric, pair) for pair in pairs]
    inconsistency = judge_inconsistency(
        [pair for pair, same in zip(pairs, equal, strict=True) if same], asked.place
    )
    # Where retrieval is equal in all pairs nothing is tested, but figures are shown.
    only_equal = inconsistency is not None and all(equal)
    found = [
        (pair, pair.a.value.values[asked.place], pair.b.value.values[asked.place])
        for pair, same in zip(pairs, equal, strict=True)
        if only_equal or not same
    ]
    valued = [
        _Valued(pair, a, b)
        for pair, a, b in found
        if not isinstance(a, str) and not isinstance(b, str)
    ]
    differences = [one.difference for one in valued]
    questions = [one.pair.a.question for one in valued]
    clusters = count_clusters(questions)
    units = None if clusters is None else questions
    untested = Undefined(UNTESTED)
    row = MetricComparison(
        metric=asked.metric,
        group=group,
        pairs=len(valued),
        questions=clusters,
        undefined_a=dict(Counter(a for _, a, _ in found if isinstance(a, str))),
        undefined_b=dict(Counter(b for _, _, b in found if isinstance(b, str))),
        undefined_pairs=len(found) - len(valued),
        mean_a=mean_difference([one.a for one in valued]),
        mean_b=mean_difference([one.b for one in valued]),
        difference=mean_difference(differences),
        span=asked.span,
        interval=untested
        if only_equal
        else paired_interval(differences, groups=units, span=asked.span, level=options.level),
        p=untested if only_equal else paired_test(differences, groups=units, span=asked.span),
        p_adjusted=Undefined("not_tested"),
        definedness=_definedness(found, tested=not only_equal),
        judge_inconsistency=inconsistency,
        not_finite=tuple(pair.id for pair, *values in found if NOT_FINITE in values)[:_LISTED],
        verdict="not tested",
        moved=_moved(valued, options.top),
    )
    lacks_a_value = ((pair.id, isinstance(a, str), isinstance(b, str)) for pair, a, b in found)
    return _Tested(row, frozenset(one for one in lacks_a_value if one[1] != one[2]))


_Found = Sequence[tuple[Pair[Measured], float | str, float | str]]
"""Pairs with their values, or the reasons why they have none."""


def _definedness(found: _Found, *, tested: bool) -> Definedness:
    changes = [float(isinstance(a, str)) - float(isinstance(b, str)) for _, a, b in found]
    p: float | Undefined = Undefined(UNTESTED)
    if tested:
        questions = [pair.a.question for pair, _, _ in found]
        groups = None if count_clusters(questions) is None else questions
        p = paired_test(changes, groups=groups)
    return Definedness(changes.count(-1.0), changes.count(1.0), p, Undefined("not_tested"))


def _moved(valued: Sequence[_Valued], top: int) -> tuple[Moved, ...]:
    moved = [one for one in valued if one.difference]
    moved.sort(key=lambda one: (-abs(one.difference), one.pair.id))
    return tuple(Moved(one.pair.id, one.a, one.b, _flips(one.pair)) for one in moved[:top])


def _flips(pair: Pair[Measured]) -> tuple[Flip, ...] | None:
    return None if pair.differing else pair.a.value.flips(pair.b.value)


def _adjusted(tested: Sequence[Sequence[_Tested]]) -> list[dict[Hashable, float]]:
    """Adjust the p values of all tests of all runs together, each quantity once."""
    family = {(n, key): p for n, run in enumerate(tested) for one in run for key, p in one.tests}
    found: list[dict[Hashable, float]] = [{} for _ in tested]
    for (n, key), p in zip(family, holm(list(family.values())), strict=True):
        found[n][key] = p
    return found


def _judged(
    joined: Pairs[Measured],
    tested: Sequence[_Tested],
    family: Mapping[Hashable, float],
    *,
    tests: int,
    by: str | None,
    options: _Options,
) -> Comparison:
    """Return a comparison with the adjusted p values and the verdicts."""
    level, alpha = options.level, error_rate(options.level)
    found = Comparison(joined.a, joined.b, joined.counts, (), tests, by, level)
    rows = (_judged_row(one, family, alpha, same_judge=found.same_judge) for one in tested)
    return replace(found, rows=tuple(rows))


def _judged_row(
    tested: _Tested, family: Mapping[Hashable, float], alpha: float, *, same_judge: bool
) -> MetricComparison:
    """Fill in the adjusted p values of a row, and its verdict."""
    row, definedness = tested.row, tested.row.definedness
    p = row.p if isinstance(row.p, Undefined) else family[tested.values]
    if isinstance(definedness.p, Undefined):
        definedness = replace(definedness, p_adjusted=definedness.p)
    else:
        definedness = replace(definedness, p_adjusted=family[tested.defined])
    verdict = _verdict(row, p, alpha, same_judge=same_judge)
    return replace(row, p_adjusted=p, definedness=definedness, verdict=verdict)


def _verdict(
    row: MetricComparison, p: float | Undefined, alpha: float, *, same_judge: bool
) -> Verdict:
    if isinstance(p, Undefined):
        return _untested_verdict(row, p.reason)
    if isinstance(row.p, Undefined) or row.p > alpha or isinstance(row.difference, Undefined):
        return "no evidence"
    if p > alpha:
        return "not significant after Holm"
    if not same_judge:
        return "higher" if row.difference > 0 else "lower"
    return "better" if (row.difference > 0) == row.metric.higher_is_better else "worse"


def _untested_verdict(row: MetricComparison, reason: str) -> Verdict:
    if reason != UNTESTED and row.definedness.differs:
        return "definedness differs"
    # Where only pairs with equal retrieval differ, the judge does.
    if row.judge_inconsistency is not None and row.judge_inconsistency.differs:
        return "judge inconsistency"
    return "no difference" if row.pairs else "not tested"
