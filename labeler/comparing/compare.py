"""Compare sets of labels over the records that they share: systems, judges, prompts, dates.

Differences are B minus A and are read in the metric's direction. Where A and B label the same
sentences, the sentences that moved a number are named; where two systems answer the same
questions, only their metrics are compared. Records are independent, or questions where several
records ask the same one. The order of records changes no figure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from labeler.calculators import Metric, MetricsRow, Ratio, select_metrics
from labeler.calculators.intervals import LEVEL, check_level
from labeler.calculators.outcomes import measurable
from labeler.calculators.ratio import MetricSum, difference
from labeler.calculators.significance import (
    Undefined,
    error_rate,
    holm,
    paired_interval,
    paired_test,
)
from labeler.calculators.summary import CountedRows, observations
from labeler.calculators.tally import Counted, RowFacts
from labeler.catalog import named_keywords
from labeler.comparing.comparison import (
    LETTERS,
    UNTESTED,
    Comparison,
    Comparisons,
    Definedness,
    Flip,
    JudgeInconsistency,
    MetricComparison,
    Moved,
    Verdict,
)
from labeler.comparing.pairs import Pair, Pairs, read_pairs
from labeler.comparing.sides import SideOptions
from labeler.errors import UsageError, count_of
from labeler.labels.answers import in_order
from labeler.labels.record import AnyOutcome

TOP = 3
"""Records that are named for each metric."""
_RANKED = "context_precision"
"""The metric of retrieval that depends on the order of the documents."""
_RETRIEVER = {
    *("relevance", "context_relevancy", "document_relevance", _RANKED),
    *("context_recall", "context_precision_claims"),
}
"""Names of metrics that do not depend on the response."""


Compared = str | Path | Iterable[AnyOutcome] | CountedRows
"""A set of labels to compare: a file or store, outcomes, or an open numbers file."""


@named_keywords
def compare(
    a: Compared,
    b: Compared,
    metrics: str | Iterable[str] | None = None,
    *,
    names: tuple[str, str] = ("A", "B"),
    level: float = LEVEL,
    top: int = TOP,
    by: str | None = None,
    signature: str | None = None,
    trial: int | None = None,
) -> Comparison:
    """Compare two sets of labels, metric by metric, over the records that both have.

    Args:
        a: label records and failures to start from, or the file or store with them, or a numbers
            file; other kinds of records are left out.
        b: those that are compared with them.
        metrics: metric ids, as for :func:`labeler.metrics`; by default each metric once, in its
            default definition, that labels of both sides have the fields for.
        names: names of the sides in errors and results, such as their files.
        level: of intervals; differences whose adjusted p value is at most 1 - level are evidence.
        top: number of records that are named for each metric.
        by: name of a metadata column to compare within.
        signature: a part of the signature of the labels of each side.
        trial: the trial of the labels of each side.

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
    options = SideOptions(by=by, signature=signature, trial=trial)
    (found,) = _compare([a, b], metrics, names, options, level=level, top=top)
    return found


@named_keywords
def compare_runs(
    runs: Iterable[Compared],
    metrics: str | Iterable[str] | None = None,
    *,
    names: Sequence[str] | None = None,
    level: float = LEVEL,
    top: int = TOP,
    by: str | None = None,
    signature: str | None = None,
    trial: int | None = None,
) -> Comparisons:
    """Compare several sets of labels with the first, as :func:`compare` does with two.

    Args:
        runs: as for :func:`compare`; the first is the base, A.
        metrics: as for :func:`compare`.
        names: a name for each set; by default ``A``, ``B``, ``C`` and so on.
        level: as for :func:`compare`.
        top: as for :func:`compare`.
        by: as for :func:`compare`.
        signature: as for :func:`compare`, of every set.
        trial: as for :func:`compare`, of every set.

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
    options = SideOptions(by=by, signature=signature, trial=trial)
    return Comparisons(_compare(runs, metrics, names, options, level=level, top=top))


def _compare(
    given: Sequence[Compared],
    metrics: str | Iterable[str] | None,
    names: Sequence[str],
    sides: SideOptions,
    *,
    level: float,
    top: int,
) -> list[Comparison]:
    """Compare the first run with each other one, as one family of tests."""
    check_level(level)
    count_of("top", top)
    chosen = select_metrics(metrics)
    runs = [measurable(run) if isinstance(run, str | Path) else run for run in given]
    runs = [run.chosen(metrics) if isinstance(run, CountedRows) else run for run in runs]
    for run in runs:
        if isinstance(run, CountedRows):
            chosen = tuple(metric for metric in chosen if metric in run.metrics)
    keep = partial(Measured.of, metrics=chosen)
    # A verdict on a mean is of one judge configuration, unless a mixture is asked for.
    every = read_pairs(
        runs, (keep, keep), sides, names=names, metrics=chosen, same=("question",), mixed=False
    )
    asked = [
        [_Asked.of(joined, place, metric) for place, metric in enumerate(chosen) if metric in own]
        for joined in every
        for own in [joined.measurable(chosen) if metrics is None else chosen]
    ]
    found = _family(every, asked, sides.by, level=level, top=top)
    if sides.by is None:
        return found
    wholes = _family(every, asked, None, level=level, top=top)
    return [replace(one, whole=whole) for one, whole in zip(found, wholes, strict=True)]


# One metric.


@dataclass(frozen=True, slots=True)
class Measured:
    """The kept facts of a label.

    Attributes:
        ratios: each metric's value, in the metrics' order.
        counted: by field, the keys of the sentences that the label counts.
        retrieved: digest of the documents, see :class:`RowFacts`.
        sentences: number of their sentences.
    """

    ratios: tuple[Ratio, ...]
    counted: Counted
    retrieved: str
    sentences: int

    @classmethod
    def of(cls, row: MetricsRow, metrics: Sequence[Metric]) -> Measured:
        """Return the facts of a row."""
        lacking = Ratio.missing("needs_label")  # never shown: no label has the fields
        ratios = tuple(row.metrics.get(metric.id, lacking) for metric in metrics)
        facts = row.facts or RowFacts(0, "label")
        return cls(ratios, facts.counted, facts.retrieved, facts.sentences)

    def flips(self, other: Measured) -> tuple[Flip, ...]:
        """Return how another label of the same sentences differs."""
        both = zip(self.counted, other.counted, strict=True)
        return tuple(
            Flip(name, in_order(theirs - mine), in_order(mine - theirs))
            for (name, mine), (_, theirs) in both
            if mine != theirs
        )


class _Asked(NamedTuple):
    """A metric that is compared.

    Attributes:
        metric: the metric.
        place: its place among the values of a label.
        span: see :attr:`MetricComparison.span`; all groups share one scale.
    """

    metric: Metric
    place: int
    span: float

    @classmethod
    def of(cls, joined: Pairs[Measured], place: int, metric: Metric) -> _Asked:
        """Return a metric with its span over all pairs."""
        found = [kept.value.ratios[place] for pair in joined for kept in (pair.a, pair.b)]
        valued = [ratio for ratio in found if not ratio.undefined]
        least, most = (pick(valued, key=float, default=Ratio(0)) for pick in (min, max))
        return cls(metric, place, max(1.0, float(difference(least, most))))


def _family(
    every: Sequence[Pairs[Measured]],
    asked: Sequence[Sequence[_Asked]],
    by: str | None,
    *,
    level: float,
    top: int,
) -> list[Comparison]:
    """Compare all pairs, or each group's, and adjust the p values of all together."""
    tested = [
        [
            _compared(group, one, part, level=level, top=top)
            for group, part in (_grouped(joined) if by else [(None, joined.pairs)])
            for one in own
        ]
        for joined, own in zip(every, asked, strict=True)
    ]
    p_values = {
        (n, key): p
        for n, run in enumerate(tested)
        for one in run
        for key, p in _tests(one)
        if not isinstance(p, Undefined)
    }
    adjusted = dict(zip(p_values, holm(list(p_values.values())), strict=True))
    found = []
    for n, (joined, run) in enumerate(zip(every, tested, strict=True)):
        own = {key: p for (number, key), p in adjusted.items() if number == n}
        sides = (joined.a, joined.b, joined.counts)
        one = Comparison(*sides, (), len(adjusted), by, level, LETTERS[n + 1])
        alpha = error_rate(level)
        rows = (_judged(each, own, alpha, same_judge=one.same_judge) for each in run)
        found.append(replace(one, rows=tuple(rows)))
    return found


def _grouped(joined: Pairs[Measured]) -> list[tuple[str | None, Sequence[Pair[Measured]]]]:
    groups: dict[str | None, list[Pair[Measured]]] = {}
    for pair in joined:
        groups.setdefault(pair.group, []).append(pair)
    return sorted(groups.items(), key=lambda item: item[0] or "")


def _compared(
    group: str | None, asked: _Asked, pairs: Sequence[Pair[Measured]], *, level: float, top: int
) -> MetricComparison:
    """Compare one metric, without the adjustment for the other metrics."""
    equal: list[_Values] = []
    others: list[_Values] = []
    for pair in pairs:
        a, b = (kept.value.ratios[asked.place] for kept in (pair.a, pair.b))
        same = _sees_equal_retrieval(asked.metric, pair)
        (equal if same else others).append(_Values(pair, a, b))
    # Where retrieval is equal in all pairs nothing is tested, but figures are shown.
    found = others or equal
    untested = Undefined(UNTESTED) if equal and not others else None
    valued = _valued(found)
    exact = [difference(a, b) for _, a, b in valued]
    differences = [*map(float, exact)]
    clusters, units = _clusters(valued)
    changes = [float(bool(a.undefined)) - float(bool(b.undefined)) for _, a, b in found]
    changed = zip(found, changes, strict=True)
    return MetricComparison(
        metric=asked.metric,
        group=group,
        pairs=len(valued),
        questions=clusters,
        undefined_a=dict(Counter(a.undefined for _, a, _ in found if a.undefined)),
        undefined_b=dict(Counter(b.undefined for _, _, b in found if b.undefined)),
        undefined_pairs=len(found) - len(valued),
        mean_a=_mean(a for _, a, _ in valued),
        mean_b=_mean(b for _, _, b in valued),
        difference=_mean(exact),
        span=asked.span,
        interval=untested
        or paired_interval(differences, groups=units, span=asked.span, level=level),
        p=untested or paired_test(differences, groups=units, span=asked.span),
        p_adjusted=Undefined("not_tested"),
        definedness=Definedness(
            changes.count(-1.0),
            changes.count(1.0),
            untested or paired_test(changes, groups=_clusters(found)[1]),
            Undefined("not_tested"),
            frozenset((one[0].id, change) for one, change in changed if change),
        ),
        judge_inconsistency=_inconsistency(equal),
        verdict="not tested",
        moved=_moved(valued, differences, top),
    )


class _Values(NamedTuple):
    """A pair, and its values of one metric."""

    pair: Pair[Measured]
    a: Ratio
    b: Ratio


def _valued(found: Iterable[_Values]) -> list[_Values]:
    """Return the pairs with a value on both sides."""
    return [one for one in found if not (one.a.undefined or one.b.undefined)]


def _mean(ratios: Iterable[Ratio]) -> float | Undefined:
    mean = MetricSum.of(ratios).mean
    return Undefined("no_pairs") if mean is None else mean


def _clusters(found: Sequence[_Values]) -> tuple[int | None, Sequence[int | None] | None]:
    """Return the number of groups of equal questions, and the group of each pair, if any repeat."""
    return observations([one.pair.a.question for one in found])


def _moved(valued: Sequence[_Values], differences: Sequence[float], top: int) -> tuple[Moved, ...]:
    """Return the records whose values differ most; of equal differences by id."""
    moved = [both for both in zip(differences, valued, strict=True) if both[0]]
    moved.sort(key=lambda both: (-abs(both[0]), both[1].pair.id))
    return tuple(
        Moved(p.id, float(a), float(b), None if p.differing else p.a.value.flips(p.b.value))
        for _, (p, a, b) in moved[:top]
    )


def _sees_equal_retrieval(metric: Metric, pair: Pair[Measured]) -> bool:
    """Return True if a metric is about retrieval, and both sides retrieved the same.

    A metric that depends on the order of the documents compares rankings: for it the order must be
    the same, too.
    """
    if metric.name == _RANKED:
        return _same_documents(pair)
    return metric.name in _RETRIEVER and pair.a.value.retrieved == pair.b.value.retrieved


def _same_documents(pair: Pair[Measured]) -> bool:
    return pair.a.digests[1] == pair.b.digests[1]


def _inconsistency(equal: Sequence[_Values]) -> JudgeInconsistency | None:
    """Describe the differences of pairs with equal retrieval; ``None`` without pairs."""
    if not equal:
        return None
    apart = _mean(difference(*sorted((one.a, one.b), key=float)) for one in _valued(equal))
    sentences = flipped = same = other = 0
    for pair in (one.pair for one in equal if _same_documents(one.pair)):
        a, b = (dict(kept.value.counted) for kept in (pair.a, pair.b))
        only_a, only_b = a["relevant"] - b["relevant"], b["relevant"] - a["relevant"]
        used_a, used_b = a["utilized"] - b["utilized"], b["utilized"] - a["utilized"]
        sentences += pair.a.value.sentences
        flipped += len(only_a | only_b)
        same += len(only_a & used_a) + len(only_b & used_b)
        other += len(only_a & used_b) + len(only_b & used_a)
    return JudgeInconsistency(
        pairs=len(equal),
        one_sided=sum(bool(a.undefined) != bool(b.undefined) for _, a, b in equal),
        mean_absolute_difference=0.0 if isinstance(apart, Undefined) else apart,
        sentences=sentences,
        flipped=flipped / sentences if sentences else None,
        lean=JudgeInconsistency.lean_of(same, other),
    )


def _tests(row: MetricComparison) -> Iterator[tuple[Hashable, float | Undefined]]:
    """Yield keys and p values of the tests of values and of definedness.

    Equal and complementary metrics share the first, metrics whose definedness changes in the same
    pairs the second.
    """
    yield (row.group, row.metric.quantity), row.p
    yield (row.group, row.definedness.changed), row.definedness.p


def _judged(
    row: MetricComparison, adjusted: Mapping[Hashable, float], alpha: float, *, same_judge: bool
) -> MetricComparison:
    """Fill in the adjusted p values of a row, and its verdict."""
    p, of_definedness = (
        found if isinstance(found, Undefined) else adjusted[key] for key, found in _tests(row)
    )
    return replace(
        row,
        p_adjusted=p,
        definedness=replace(row.definedness, p_adjusted=of_definedness),
        verdict=_verdict(row, p, alpha, same_judge=same_judge),
    )


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
