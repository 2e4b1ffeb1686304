"""Compares two sets of labels over the records that both have: two systems, judges, prompts, dates.

Differences are B minus A, and each is read in its metric's direction. Where A and B label the very
same sentences, labels alone differ, and the sentences that moved a number can be named; where two
systems answer the same questions, only the metrics are compared. What is drawn anew and what
changes its sign is records, or questions where several records ask the same one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from typing import Any, Literal, NamedTuple

from labeler.calculators import Metric, select_metrics
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
from labeler.comparing.pairs import Counts, Flip, Pair, Side, join, read_side
from labeler.errors import UsageError
from labeler.labels.record import AnyOutcome, LabelFailure, LabelRecord, Outcome, records_of

POWER = 0.8
"""Chance of seeing the minimum detectable effect where it is there."""
TOP = 3
"""Records that are named for each metric."""

Verdict = Literal["better", "worse", "no evidence", "no difference", "not tested"]


@dataclass(frozen=True, slots=True)
class Moved:
    """A record whose value differs.

    Attributes:
        id: the record.
        a: its value by A's label.
        b: its value by B's label.
        flips: sentences that B's label counts otherwise; ``None`` where the sentences are not the
            same.
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
        questions: how many questions they ask, where several ask the same one: then questions are
            what is drawn. ``None`` where each pair asks its own.
        undefined_a: other pairs, by the reason why A has no value; a pair may lack both.
        undefined_b: the same of B.
        undefined_pairs: pairs that lack a value on either side.
        mean_a: mean of A's values.
        mean_b: mean of B's values.
        difference: mean of B minus A.
        span: the largest difference that is reckoned with: 1, as of shares, or how far apart the
            least and the greatest value of both sides are, where that is more.
        interval: bootstrap interval of the difference, which lies within the span.
        p: of the sign-flip permutation test that there is none.
        p_adjusted: the same by Holm's method, over all metrics and groups of the comparison that
            have a p value; without differences no test could have found any.
        mcnemar: of McNemar's exact test; undefined where values are not all 0 or 1 (``not_binary``)
            and where pairs are not independent (``shared_questions``).
        detectable: the least true difference that so many pairs would show with 80 % power, before
            the adjustment.
        verdict: whether B is ``better`` or ``worse`` in the metric's direction, by the adjusted p
            value; ``no evidence`` is no proof that they are alike.
        moved: the records whose values differ most, the largest first.
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
        """The published form; what is undefined is null, its reason stands in ``undefined``."""
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
    """What two sets of labels say of the records that both have.

    Attributes:
        a: the labels that differences start from.
        b: the labels that are compared with them.
        counts: what became of the records.
        rows: one for each group and metric, groups sorted by name.
        by: name of the metadata column that pairs are grouped by, or ``None``.
        level: of the intervals; 1 - level is the share of families of tests that may err.
        resamples: samples and sign assignments drawn for each row.
        seed: of what is drawn.
    """

    a: Side
    b: Side
    counts: Counts
    rows: tuple[MetricComparison, ...]
    by: str | None
    level: float
    resamples: int
    seed: int

    @property
    def same_sentences(self) -> bool:
        """Whether A and B label the very same sentences in every pair: then labels alone differ."""
        return self.counts.same == self.counts.pairs

    def as_json(self, version: str) -> dict[str, Any]:
        """The published form.

        Args:
            version: the program's version, part of every signature.
        """
        return {
            "a": _side_json(self.a),
            "b": _side_json(self.b),
            "counts": asdict(self.counts),
            "same_sentences": self.same_sentences,
            "by": self.by,
            "level": self.level,
            "resamples": self.resamples,
            "seed": self.seed,
            "power": POWER,
            "comparisons": [row.as_json() for row in self.rows],
            "labeler": version,
        }


def _side_json(side: Side) -> dict[str, Any]:
    return {
        "name": side.name,
        "signatures": list(side.signatures),
        "labelled": len(side.labelled),
        "failed": dict(Counter(side.failed.values())),
    }


class _Options(NamedTuple):
    """How figures are reckoned."""

    resamples: int
    level: float
    seed: int
    top: int

    @property
    def alpha(self) -> float:
        """What the level leaves: 0.05 of 0.95, without what binary fractions would add."""
        return float(1 - Decimal(repr(self.level)))


def compare(
    a: Iterable[AnyOutcome],
    b: Iterable[AnyOutcome],
    ids: str | Iterable[str] | None = None,
    *,
    by: str | None = None,
    a_signature: str | None = None,
    b_signature: str | None = None,
    names: tuple[str, str] = ("A", "B"),
    resamples: int = RESAMPLES,
    level: float = LEVEL,
    seed: int = 0,
    top: int = TOP,
) -> Comparison:
    """Compare two sets of labels, metric by metric, over the records that both have.

    Args:
        a: label records and failures that differences start from, such as
            ``labeler.read_labels("before.jsonl")``; what else is there is left out.
        b: those that are compared with them.
        ids: metric ids, as for :func:`labeler.metrics`; where left out, each metric once, in its
            default dialect, that labels of both sides have the fields for.
        by: name of a metadata column to compare within.
        a_signature: a part of the signature of A's labels, where they were made in several ways.
        b_signature: the same of B's.
        names: what the sides are called in errors and results, such as their files.
        resamples: samples and sign assignments drawn for each metric; 100 or more.
        level: of intervals; differences whose adjusted p value is at most 1 - level are evidence.
        seed: the same seed gives the same figures.
        top: how many records are named for each metric.

    Raises:
        UsageError: the sides share no labelled record, one holds no labels but scores or written
            questions, one holds labels made in several ways and
            none is chosen, a record has two labels, no label has the column, or an option is out
            of its range.
    """
    check_options(resamples=resamples, level=level, seed=seed)
    if top < 0:
        raise UsageError(f"top {top}: name 0 or more records for each metric")
    metrics = select_metrics(ids)
    side_a = read_side(
        _labels(a, names[0]),
        metrics,
        name=names[0],
        option="--a-signature (a_signature)",
        signature=a_signature,
        column=by,
    )
    side_b = read_side(
        _labels(b, names[1]),
        metrics,
        name=names[1],
        option="--b-signature (b_signature)",
        signature=b_signature,
        column=by,
    )
    pairs, counts = join(side_a, side_b)
    if by is not None and by not in side_a.columns | side_b.columns:
        have = ", ".join(sorted(side_a.columns | side_b.columns)) or "none"
        raise UsageError(f"no label has a column {by!r} to compare by; columns: {have}")
    options = _Options(resamples, level, seed, top)
    asked = [_Asked(metric, n, _span(pairs, n)) for n, metric in enumerate(metrics)]
    rows = [
        _compared(group, one, part, options)
        for group, part in _grouped(pairs, by)
        for one in asked
        if ids is not None or all(side.has_fields_of(one.metric) for side in (side_a, side_b))
    ]
    judged = tuple(_judged(rows, options.alpha))
    return Comparison(side_a, side_b, counts, judged, by, level, resamples, seed)


def _labels(outcomes: Iterable[AnyOutcome], name: str) -> Iterator[Outcome]:
    """The labels among the outcomes of a side.

    Raises:
        UsageError: there is none, and something else is there.
    """
    labels, others = 0, Counter[str]()
    for outcome in outcomes:
        labels += isinstance(outcome, LabelRecord)
        if not isinstance(outcome, LabelRecord | LabelFailure):
            others[outcome.kind] += 1
        yield from records_of([outcome], "label")
    if others and not labels:
        held = ", ".join(f"{count} of kind {kind!r}" for kind, count in others.items())
        raise UsageError(
            f"{name} holds no labels, but records {held}; labels are what is compared: name files "
            "of labeler label (labeler metrics summarises scores and written questions)"
        )


def _grouped(pairs: list[Pair], by: str | None) -> list[tuple[str | None, list[Pair]]]:
    if by is None:
        return [(None, pairs)]
    groups: dict[str, list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(pair.column or "(none)", []).append(pair)
    return sorted(groups.items())


class _Asked(NamedTuple):
    """A metric that is compared."""

    metric: Metric
    place: int
    """Its place among the values of a label."""
    span: float
    """See :attr:`MetricComparison.span`."""


class _Valued(NamedTuple):
    """A pair and its values of one metric."""

    pair: Pair
    a: float
    b: float

    @property
    def difference(self) -> float:
        return self.b - self.a


def _span(pairs: Sequence[Pair], index: int) -> float:
    """How far apart two values of a metric may be; of all groups, which have one scale."""
    values = [
        value
        for pair in pairs
        for value in (pair.a.values[index], pair.b.values[index])
        if not isinstance(value, str)
    ]
    return max(1.0, max(values) - min(values)) if values else 1.0


def _compared(
    group: str | None, asked: _Asked, pairs: Sequence[Pair], options: _Options
) -> MetricComparison:
    """Everything about one metric but what the other metrics have a say in."""
    found = [(pair, pair.a.values[asked.place], pair.b.values[asked.place]) for pair in pairs]
    valued = [
        _Valued(pair, a, b)
        for pair, a, b in found
        if not isinstance(a, str) and not isinstance(b, str)
    ]
    differences = [one.difference for one in valued]
    questions = [one.pair.a.question for one in valued]
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
    return tuple(Moved(one.pair.id, one.a, one.b, one.pair.flips) for one in moved[:top])


def _judged(rows: Sequence[MetricComparison], alpha: float) -> Iterable[MetricComparison]:
    """Adjust the p values of all rows together, and say what follows for each."""
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
