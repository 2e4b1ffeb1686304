"""Compare two sets of labels over the records that both have: systems, judges, prompts, dates.

Differences are B minus A and are read in the metric's direction. Where A and B label the same
sentences, the sentences that moved a number are named; where two systems answer the same
questions, only their metrics are compared. The unit of resampling is the record, or the question
where several records ask the same one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from hashlib import sha256
from typing import Any, Literal, NamedTuple

import numpy as np
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
    error_rate,
    holm,
    mcnemar,
    mean_difference,
    minimum_detectable_effect,
    paired_interval,
    sign_flip_test,
)
from labeler.comparing.options import SideKeywords, SideOptions
from labeler.comparing.pairs import Pair, PairCounts, Pairs, Side, read_pairs
from labeler.comparing.retrieval import (
    JudgeInconsistency,
    Retrieved,
    judge_inconsistency,
    sees_equal_retrieval,
)
from labeler.errors import UsageError
from labeler.labels.answers import in_order
from labeler.labels.record import AnyOutcome, LabelRecord

POWER = 0.8
"""Probability of finding an effect as large as the minimum detectable effect."""
TOP = 3
"""Records that are named for each metric."""
_DIGITS = 12
"""Decimal places at which values are the same."""

Verdict = Literal[
    "better",
    "worse",
    "higher",
    "lower",
    "not significant after Holm",
    "no evidence",
    "no difference",
    "definedness differs",
    "judge inconsistency",
    "not tested",
]


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
        retrieved: the documents.
    """

    values: tuple[float | str, ...]
    counted: tuple[tuple[str, frozenset[str]], ...]
    retrieved: Retrieved

    @classmethod
    def of(cls, record: LabelRecord, metrics: Sequence[Metric]) -> Measured:
        """Measure a label."""
        counts = tally(record)
        ratios = [metric.compute(counts) for metric in metrics]
        return cls(
            tuple(r.undefined or "undefined" if r.value is None else r.value for r in ratios),
            tuple((name, getattr(counts, name)) for name in ("relevant", "utilized", "supported")),
            Retrieved.of(record.example),
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
class Definedness:
    """Whether a metric has a value, as an outcome of its own.

    Attributes:
        only_a: pairs with a value on side A only.
        only_b: pairs with a value on side B only.
        p: of the sign-flip permutation test that neither side has values more often.
        p_adjusted: by Holm's method, with the other tests of the comparison.
    """

    only_a: int
    only_b: int
    p: PValue | Undefined
    p_adjusted: float | Undefined

    @property
    def differs(self) -> bool:
        """True if a pair has a value on one side only."""
        return bool(self.only_a or self.only_b)


@dataclass(frozen=True)
class MetricComparison:
    """One metric over the pairs that have a value on both sides.

    Metrics of retrieval are not tested on pairs with equal retrieval: their difference is
    inconsistency of the judge. These pairs are left out, unless all pairs are such.

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
        p_adjusted: p by Holm's method, over all tests of the comparison. Metrics without
            differences are no tests; those with equal values in all pairs are one.
        mcnemar: of McNemar's exact test; undefined where values are not all 0 or 1
            (``not_binary``) and where pairs are not independent (``shared_questions``).
        detectable: the least true difference that this many pairs show with 80 % power, before
            the adjustment.
        definedness: how often only one side has a value.
        judge_inconsistency: of pairs with equal retrieval; ``None`` without such pairs, and for
            metrics that are not about retrieval.
        verdict: ``better`` or ``worse`` in the metric's direction, by the adjusted p value;
            ``higher`` or ``lower`` where labels of both sides were made in different ways. With
            any of these the interval does not hold 0. ``not significant after Holm``: only p
            without the adjustment is low enough, and the interval does not hold 0 either. ``no
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
    definedness: Definedness
    judge_inconsistency: JudgeInconsistency | None
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
            "verdict": _INCONSISTENT if self.verdict == "judge inconsistency" else self.verdict,
            "pairs": self.pairs,
            "questions": self.questions,
            "undefined_pairs": self.undefined_pairs,
            "undefined_a": self.undefined_a,
            "undefined_b": self.undefined_b,
            "definedness": {
                name: _plain(getattr(self.definedness, name))
                for name in ("only_a", "only_b", "p", "p_adjusted")
            },
            _INCONSISTENT: (inconsistency := self.judge_inconsistency) and asdict(inconsistency),
            "span": self.span,
            **{name: _plain(figure) for name, figure in figures.items()},
            "undefined": reasons,
            "moved": [asdict(record) for record in self.moved],
        }


_INCONSISTENT = "judge_inconsistency"
_UNTESTED = "equal_retrieval"
"""Why nothing is tested where all pairs have equal retrieval."""
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
        tests: number of tests that p values are adjusted for.
        by: name of the metadata column that pairs are grouped by, or ``None``.
        level: of the intervals; 1 - level is the family-wise error rate of the tests.
        resamples: samples and sign assignments drawn for each row.
        seed: of the random numbers.
    """

    a: Side[Measured]
    b: Side[Measured]
    counts: PairCounts
    rows: tuple[MetricComparison, ...]
    tests: int
    by: str | None
    level: float
    resamples: int
    seed: int

    @property
    def same_sentences(self) -> bool:
        """True if A and B label the same sentences in every pair, so that only labels differ."""
        return self.counts.same == self.counts.pairs

    @property
    def same_judge(self) -> bool:
        """True if judge, prompt and settings of both sides are the same."""
        return _judges(self.a) == _judges(self.b)

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
            "same_judge": self.same_judge,
            "tests": self.tests,
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


def _judges(side: Side[Measured]) -> set[str]:
    """Return the signatures of a side without trial and splitter."""
    return {
        "|".join(
            part for part in signature.split("|") if not part.startswith(("trial:", "splitter:"))
        )
        for signature in side.signatures
    }


class _Options(NamedTuple):
    """Settings of the statistics."""

    resamples: int
    level: float
    seed: int
    top: int


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
    tested = [
        _compared(group, one, part, options)
        for group, part in _grouped(joined)
        for one in asked
        if metrics is not None or joined.have_fields_of(one.metric)
    ]
    family = _adjusted(tested)
    found = Comparison(
        joined.a, joined.b, joined.counts, (), len(family), sides.get("by"), level, resamples, seed
    )
    alpha, same_judge = error_rate(level), found.same_judge
    return replace(
        found,
        rows=tuple(_judged(one, family, alpha, same_judge=same_judge) for one in tested),
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


class _Tested(NamedTuple):
    """A row without its adjustment, and the quantities that it tests, as digests."""

    row: MetricComparison
    values: bytes
    defined: bytes

    @property
    def tests(self) -> Iterable[tuple[bytes, PValue]]:
        """The tests of values and of definedness, with the quantity of each."""
        both = ((self.values, self.row.p), (self.defined, self.row.definedness.p))
        return ((quantity, p) for quantity, p in both if isinstance(p, PValue))


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
    questions = [one.pair.a.digests[0] for one in valued]
    shared = len(set(questions)) < len(questions)
    units = questions if shared else None
    untested = Undefined(_UNTESTED)
    drawing: dict[str, Any] = {"resamples": options.resamples, "seed": options.seed}
    row = MetricComparison(
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
        interval=untested
        if only_equal
        else paired_interval(
            differences, groups=units, span=asked.span, level=options.level, **drawing
        ),
        p=untested if only_equal else sign_flip_test(differences, groups=units, **drawing),
        p_adjusted=Undefined("not_tested"),
        mcnemar=untested if only_equal else _mcnemar(valued, shared=shared),
        detectable=untested
        if only_equal
        else minimum_detectable_effect(
            differences, groups=units, alpha=error_rate(options.level), power=POWER
        ),
        definedness=_definedness(found, drawing, tested=not only_equal),
        judge_inconsistency=inconsistency,
        verdict="not tested",
        moved=_moved(valued, options.top),
    )
    return _Tested(row, *_quantities(group, found))


_Found = Sequence[tuple[Pair[Measured], float | str, float | str]]
"""Pairs with their values, or the reasons why they have none."""


def _definedness(found: _Found, drawing: dict[str, Any], *, tested: bool) -> Definedness:
    changes = [float(isinstance(a, str)) - float(isinstance(b, str)) for _, a, b in found]
    p: PValue | Undefined = Undefined(_UNTESTED)
    if tested:
        p = sign_flip_test(changes, groups=[pair.a.digests[0] for pair, _, _ in found], **drawing)
    return Definedness(changes.count(-1.0), changes.count(1.0), p, Undefined("not_tested"))


def _quantities(group: str | None, found: _Found) -> tuple[bytes, bytes]:
    """Return digests of the values of all pairs and of their definedness.

    Equal digests mean one quantity under several names. A value and its complement to 1 are one
    quantity; undefined values are equal, whatever the reason.
    """
    values = np.array(
        [[np.nan if isinstance(value, str) else value for value in both] for _, *both in found]
    )
    ids = "\n".join(pair.id for pair, _, _ in found)
    forms = (np.round(form, _DIGITS) + 0.0 for form in (values, 1 - values))
    return (
        _digest(group, ids, min(form.tobytes() for form in forms)),
        _digest(group, ids, np.isnan(values).tobytes()),
    )


def _digest(group: str | None, ids: str, content: bytes) -> bytes:
    return sha256(repr((group, ids, content)).encode()).digest()


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


def _adjusted(tested: Sequence[_Tested]) -> dict[bytes, float]:
    """Adjust the p values of all quantities together."""
    family = {quantity: p.value for one in tested for quantity, p in one.tests}
    return dict(zip(family, holm(list(family.values())), strict=True))


def _judged(
    tested: _Tested, family: Mapping[bytes, float], alpha: float, *, same_judge: bool
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
        inconsistency = row.judge_inconsistency
        if p.reason == _UNTESTED and inconsistency and inconsistency.mean_absolute_difference:
            return "judge inconsistency"
        if row.definedness.differs:
            return "judge inconsistency" if p.reason == _UNTESTED else "definedness differs"
        return "no difference" if row.pairs else "not tested"
    if isinstance(row.p, Undefined) or row.p.value > alpha or isinstance(row.difference, Undefined):
        return "no evidence"
    if p > alpha:
        return "not significant after Holm"
    if not same_judge:
        return "higher" if row.difference > 0 else "lower"
    return "better" if (row.difference > 0) == row.metric.higher_is_better else "worse"
