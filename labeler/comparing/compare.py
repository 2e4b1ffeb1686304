"""Compare two sets of labels over the records that both have: systems, judges, prompts, dates.

Differences are B minus A and are read in the metric's direction. Where A and B label the same
sentences, the sentences that moved a number are named; where two systems answer the same
questions, only their metrics are compared. The unit of resampling is the record, or the question
where several records ask the same one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from functools import partial
from typing import Any, Literal, NamedTuple

from typing_extensions import Unpack

from labeler.calculators import Metric, select_metrics, tally
from labeler.calculators.statistics.intervals import (
    LEVEL,
    RESAMPLES,
    Interval,
    Undefined,
    check_options,
)
from labeler.calculators.statistics.paired import (
    PValue,
    holm,
    mcnemar,
    mean_difference,
    minimum_detectable_effect,
    paired_interval,
    sign_flip_test,
)
from labeler.comparing.options import SideKeywords, SideOptions
from labeler.comparing.pairs import Pair, PairCounts, Pairs, Side, read_pairs
from labeler.errors import UsageError
from labeler.labels.answers import in_order
from labeler.labels.record import AnyOutcome, LabelRecord

POWER = 0.8
"""Probability of finding an effect as large as the minimum detectable effect."""
TOP = 3
"""Records that are named for each metric."""

Verdict = Literal["better", "worse", "no evidence", "no difference", "not tested"]


@dataclass(frozen=True, slots=True)
class Flip:
    """Sentences that one label counts and the other does not.

    Attributes:
        field: ``relevant``, ``utilized`` or ``supported``.
        gained: keys that only B's label counts, in reading order.
        lost: keys that only A's label counts, in reading order.
    """

    field: str
    gained: tuple[str, ...]
    lost: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Measured:
    """The kept facts of a label.

    Attributes:
        values: each metric's value, or the reason why it is undefined, in the metrics' order.
        counted: by field, the keys of the sentences that the label counts.
    """

    values: tuple[float | str, ...]
    counted: tuple[tuple[str, frozenset[str]], ...]

    @classmethod
    def of(cls, record: LabelRecord, metrics: Sequence[Metric]) -> Measured:
        """Measure a label."""
        counts = tally(record)
        ratios = [metric.compute(counts) for metric in metrics]
        return cls(
            tuple(r.undefined or "undefined" if r.value is None else r.value for r in ratios),
            tuple((name, getattr(counts, name)) for name in ("relevant", "utilized", "supported")),
        )

    def flips(self, other: Measured) -> tuple[Flip, ...]:
        """Return how another label of the same sentences differs."""
        both = zip(self.counted, other.counted, strict=True)
        return tuple(
            Flip(name, in_order(theirs - mine), in_order(mine - theirs))
            for (name, mine), (_, theirs) in both
            if mine != theirs
        )


@dataclass(frozen=True, slots=True)
class Moved:
    """A record whose value differs.

    Attributes:
        id: the record.
        a: its value by A's label.
        b: its value by B's label.
        flips: sentences that B's label counts and A's does not, and the reverse; ``None`` where
            the sentences are not the same.
    """

    id: str
    a: float
    b: float
    flips: tuple[Flip, ...] | None


@dataclass(frozen=True)
class MetricComparison:
    """One metric over the pairs that have a value on both sides.

    Attributes:
        metric: the metric.
        group: value of the grouping column; ``None`` where pairs are not grouped.
        pairs: pairs with a value on both sides; all figures are about these.
        questions: number of distinct questions where several pairs ask the same one: then
            questions are resampled. ``None`` where each pair asks its own.
        undefined_a: other pairs, by the reason why A has no value; a pair may lack both.
        undefined_b: other pairs, by the reason why B has no value.
        undefined_pairs: pairs that lack a value on either side.
        mean_a: mean of A's values.
        mean_b: mean of B's values.
        difference: mean of B minus A.
        span: the largest possible difference: 1, as of shares, or the distance between the least
            and the greatest value of both sides, if that is more.
        interval: bootstrap interval of the difference, within the span.
        p: of the sign-flip permutation test of no difference.
        p_adjusted: p by Holm's method, over all metrics and groups of the comparison that have a
            p value; metrics without differences are no tests.
        mcnemar: of McNemar's exact test; undefined where values are not all 0 or 1
            (``not_binary``) and where pairs are not independent (``shared_questions``).
        detectable: the least true difference that this many pairs show with 80 % power, before
            the adjustment.
        verdict: ``better`` or ``worse`` in the metric's direction, by the adjusted p value; ``no
            evidence`` does not mean that both are equal.
        moved: the records whose values differ most, the largest difference first.
    """

    metric: Metric
    group: str | None
    pairs: int
    questions: int | None
    undefined_a: dict[str, int]
    undefined_b: dict[str, int]
    undefined_pairs: int
    mean_a: float | Undefined
    mean_b: float | Undefined
    difference: float | Undefined
    span: float
    interval: Interval | Undefined
    p: PValue | Undefined
    p_adjusted: float | Undefined
    mcnemar: PValue | Undefined
    detectable: float | Undefined
    verdict: Verdict
    moved: tuple[Moved, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the published form; an undefined figure is null, its reason in ``undefined``."""
        figures: dict[str, object] = {name: getattr(self, name) for name in _FIGURES}
        reasons = {
            name: figure.reason for name, figure in figures.items() if isinstance(figure, Undefined)
        }
        return {
            "metric": self.metric.id,
            "version": self.metric.version,
            "higher_is_better": self.metric.higher_is_better,
            "group": self.group,
            "verdict": self.verdict,
            "pairs": self.pairs,
            "questions": self.questions,
            "undefined_pairs": self.undefined_pairs,
            "undefined_a": self.undefined_a,
            "undefined_b": self.undefined_b,
            "span": self.span,
            **{name: _plain(figure) for name, figure in figures.items()},
            "undefined": reasons,
            "moved": [asdict(record) for record in self.moved],
        }


_FIGURES = (
    "mean_a",
    "mean_b",
    "difference",
    "interval",
    "p",
    "p_adjusted",
    "mcnemar",
    "detectable",
)


def _plain(figure: object) -> object:
    if isinstance(figure, Interval | PValue):
        return asdict(figure)
    return None if isinstance(figure, Undefined) else figure


@dataclass(frozen=True)
class Comparison:
    """Two sets of labels over the records that both have.

    Attributes:
        a: the labels to start from.
        b: the labels that are compared with them.
        counts: the numbers of pairs and of other records.
        rows: one for each group and metric, groups sorted by name.
        by: name of the metadata column that pairs are grouped by, or ``None``.
        level: of the intervals; 1 - level is the family-wise error rate of the tests.
        resamples: samples and sign assignments drawn for each row.
        seed: of the random numbers.
    """

    a: Side[Measured]
    b: Side[Measured]
    counts: PairCounts
    rows: tuple[MetricComparison, ...]
    by: str | None
    level: float
    resamples: int
    seed: int

    @property
    def same_sentences(self) -> bool:
        """True if A and B label the same sentences in every pair, so that only labels differ."""
        return self.counts.same == self.counts.pairs

    def as_json(self, version: str) -> dict[str, Any]:
        """Return the published form.

        Args:
            version: the program's version, part of every signature.
        """
        counts = self.counts
        return {
            "a": _side_json(self.a),
            "b": _side_json(self.b),
            "counts": {
                "pairs": counts.pairs,
                **counts.others_as_json(),
                "other_question": sum(counts.left_out.values()),
                "same": counts.same,
                "unlike": counts.unlike,
            },
            "same_sentences": self.same_sentences,
            "by": self.by,
            "level": self.level,
            "resamples": self.resamples,
            "seed": self.seed,
            "power": POWER,
            "comparisons": [row.as_json() for row in self.rows],
            "labeler": version,
        }


def _side_json(side: Side[Measured]) -> dict[str, Any]:
    return {
        "name": side.name,
        "signatures": list(side.signatures),
        "labelled": len(side.labels),
        "failed": dict(Counter(side.failed.values())),
    }


class _Options(NamedTuple):
    """Settings of the statistics."""

    resamples: int
    level: float
    seed: int
    top: int

    @property
    def alpha(self) -> float:
        """1 - level in decimal arithmetic: 0.05 for 0.95, without a binary rounding error."""
        return float(1 - Decimal(repr(self.level)))


def compare(
    a: Iterable[AnyOutcome],
    b: Iterable[AnyOutcome],
    metrics: str | Iterable[str] | None = None,
    *,
    names: tuple[str, str] = ("A", "B"),
    resamples: int = RESAMPLES,
    level: float = LEVEL,
    seed: int = 0,
    top: int = TOP,
    **sides: Unpack[SideKeywords],
) -> Comparison:
    """Compare two sets of labels, metric by metric, over the records that both have.

    Args:
        a: label records and failures to start from, such as
            ``labeler.read_labels("before.jsonl")``; other kinds of records are left out.
        b: those that are compared with them.
        metrics: metric ids, as for :func:`labeler.metrics`; by default each metric once, in its
            default definition, that labels of both sides have the fields for.
        names: names of the sides in errors and results, such as their files.
        resamples: samples and sign assignments drawn for each metric; 100 or more.
        level: of intervals; differences whose adjusted p value is at most 1 - level are evidence.
        seed: the same seed gives the same figures.
        top: number of records that are named for each metric.
        sides: ``by``, a metadata column to compare within, and the choice of labels; see
            :class:`labeler.comparing.options.SideOptions`.

    Raises:
        UsageError: the sides share no labelled record; one holds no label that fits the choice, or
            labels made in several ways and none is chosen; a record has two labels; no label has
            the column; or an option is out of its range.
    """
    check_options(resamples=resamples, level=level, seed=seed)
    if top < 0:
        raise UsageError(f"top {top}: name 0 or more records for each metric")
    chosen = select_metrics(metrics)
    keep = partial(Measured.of, metrics=chosen)
    # A verdict on a mean is of one judge configuration, unless a mixture is asked for.
    joined = read_pairs(
        a, b, (keep, keep), SideOptions(**sides), names=names, same=("question",), mixed=False
    )
    options = _Options(resamples, level, seed, top)
    asked = [_Asked(metric, n, _span(joined.pairs, n)) for n, metric in enumerate(chosen)]
    rows = [
        _compared(group, one, part, options)
        for group, part in _grouped(joined)
        for one in asked
        if metrics is not None or joined.have_fields_of(one.metric)
    ]
    judged = tuple(_judged(rows, options.alpha))
    return Comparison(
        joined.a, joined.b, joined.counts, judged, sides.get("by"), level, resamples, seed
    )


def _grouped(
    joined: Pairs[Measured],
) -> list[tuple[str | None, list[Pair[Measured]]]]:
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


def _compared(
    group: str | None, asked: _Asked, pairs: Sequence[Pair[Measured]], options: _Options
) -> MetricComparison:
    """Compare one metric, without the adjustment for the other metrics."""
    found = [
        (pair, pair.a.value.values[asked.place], pair.b.value.values[asked.place]) for pair in pairs
    ]
    valued = [
        _Valued(pair, a, b)
        for pair, a, b in found
        if not isinstance(a, str) and not isinstance(b, str)
    ]
    differences = [one.difference for one in valued]
    questions = [one.pair.a.digests[0] for one in valued]
    shared = len(set(questions)) < len(questions)
    units = questions if shared else None
    drawing: dict[str, Any] = {"resamples": options.resamples, "seed": options.seed}
    return MetricComparison(
        metric=asked.metric,
        group=group,
        pairs=len(valued),
        questions=len(set(questions)) if shared else None,
        undefined_a=dict(Counter(a for _, a, _ in found if isinstance(a, str))),
        undefined_b=dict(Counter(b for _, _, b in found if isinstance(b, str))),
        undefined_pairs=len(found) - len(valued),
        mean_a=mean_difference([one.a for one in valued]),
        mean_b=mean_difference([one.b for one in valued]),
        difference=mean_difference(differences),
        span=asked.span,
        interval=paired_interval(
            differences, groups=units, span=asked.span, level=options.level, **drawing
        ),
        p=sign_flip_test(differences, groups=units, **drawing),
        p_adjusted=Undefined("not_tested"),
        mcnemar=_mcnemar(valued, shared=shared),
        detectable=minimum_detectable_effect(
            differences, groups=units, alpha=options.alpha, power=POWER
        ),
        verdict="not tested",
        moved=_moved(valued, options.top),
    )


def _mcnemar(valued: Sequence[_Valued], *, shared: bool) -> PValue | Undefined:
    if not valued:
        return Undefined("no_pairs")
    if any(value not in (0, 1) for one in valued for value in (one.a, one.b)):
        return Undefined("not_binary")
    if shared:
        return Undefined("shared_questions")
    changes = Counter(one.difference for one in valued)
    return mcnemar(changes[1.0], changes[-1.0])


def _moved(valued: Sequence[_Valued], top: int) -> tuple[Moved, ...]:
    moved = [one for one in valued if one.difference]
    moved.sort(key=lambda one: -abs(one.difference))
    return tuple(Moved(one.pair.id, one.a, one.b, _flips(one.pair)) for one in moved[:top])


def _flips(pair: Pair[Measured]) -> tuple[Flip, ...] | None:
    return None if pair.differing else pair.a.value.flips(pair.b.value)


def _judged(rows: Sequence[MetricComparison], alpha: float) -> Iterable[MetricComparison]:
    """Adjust the p values of all rows together, and give each row its verdict."""
    adjusted = iter(holm([row.p.value for row in rows if isinstance(row.p, PValue)]))
    for row in rows:
        if isinstance(row.p, Undefined):
            alike: Verdict = "no difference" if row.pairs else "not tested"
            yield replace(row, p_adjusted=row.p, verdict=alike)
        else:
            p = next(adjusted)
            yield replace(row, p_adjusted=p, verdict=_verdict(row, p, alpha))


def _verdict(row: MetricComparison, p: float, alpha: float) -> Verdict:
    if p > alpha or isinstance(row.difference, Undefined):
        return "no evidence"
    return "better" if (row.difference > 0) == row.metric.higher_is_better else "worse"
