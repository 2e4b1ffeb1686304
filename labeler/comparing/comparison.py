"""The figures of comparisons of sets of labels, and their published form."""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal

from labeler.calculators import Metric
from labeler.calculators.statistics.intervals import Interval, Undefined
from labeler.calculators.summary_table import find_row
from labeler.comparing.gates import DEFAULT_ALLOWED
from labeler.comparing.measured import Flip, JudgeInconsistency, Measured
from labeler.comparing.pairs import PairCounts, Side
from labeler.labels.signature import selection_warnings
from labeler.sentences.display import (
    NONE,
    Brief,
    Column,
    Display,
    Displayed,
    Grid,
    arrow,
    number,
)

LETTERS = string.ascii_uppercase
"""Letters of the sets of labels; A is the base."""

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


@dataclass(frozen=True, slots=True, repr=False)
class Moved(Brief):
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


@dataclass(frozen=True, repr=False)
class Definedness(Brief):
    """Whether a metric has a value, as an outcome of its own.

    Attributes:
        only_a: pairs with a value on side A only.
        only_b: pairs with a value on side B only.
        p: of the test that neither side has values more often.
        p_adjusted: by Holm's method, with the other tests of the comparison.
    """

    only_a: int
    only_b: int
    p: float | Undefined
    p_adjusted: float | Undefined

    @property
    def differs(self) -> bool:
        """True if a pair has a value on one side only."""
        return bool(self.only_a or self.only_b)


@dataclass(frozen=True, repr=False)
class MetricComparison(Brief):
    """One metric over the pairs that have a value on both sides.

    Metrics of retrieval are not tested on pairs with equal retrieval: their difference is
    inconsistency of the judge. These pairs are left out, unless all pairs are such.

    Attributes:
        metric: the metric.
        group: value of the grouping column; ``None`` where pairs are not grouped.
        pairs: pairs with a value on both sides; all figures are about these.
        questions: groups of pairs with equal questions, each one observation; ``None`` if all
            questions differ or are blank, or all are one.
        undefined_a: other pairs, by the reason why A has no value; a pair may lack both.
        undefined_b: other pairs, by the reason why B has no value.
        undefined_pairs: pairs that lack a value on either side.
        mean_a: mean of A's values.
        mean_b: mean of B's values.
        difference: mean of B minus A.
        span: the largest possible difference: 1, as of shares, or the distance between the least
            and the greatest value of both sides, if that is more.
        interval: of the difference, within the span.
        p: of the test of no difference; for yes-or-no values McNemar's exact test.
        p_adjusted: p by Holm's method, over all tests of the comparison. Metrics without
            differences are no tests; those with equal values in all pairs are one.
        definedness: how often only one side has a value.
        judge_inconsistency: of pairs with equal retrieval; ``None`` without such pairs, and for
            metrics that are not about retrieval.
        verdict: ``better`` or ``worse`` in the metric's direction, by the adjusted p value;
            ``higher`` or ``lower`` where labels of both sides were made in different ways. With
            any of these the interval does not hold 0. ``not significant after Holm``: only p
            without the adjustment is low enough, and the interval does not hold 0 either. ``no
            evidence`` does not mean that both are equal.
        moved: the records whose values differ most, the largest difference first.
        not_finite: ids of the first pairs for which a metric of the user gave NaN or infinity.
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
    p: float | Undefined
    p_adjusted: float | Undefined
    definedness: Definedness
    judge_inconsistency: JudgeInconsistency | None
    verdict: Verdict
    moved: tuple[Moved, ...]
    not_finite: tuple[str, ...] = ()

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
            "not_finite": list(self.not_finite),
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
UNTESTED = "equal_retrieval"
"""Why nothing is tested where all pairs have equal retrieval."""
_FIGURES = (
    "mean_a",
    "mean_b",
    "difference",
    "interval",
    "p",
    "p_adjusted",
)


def _plain(figure: object) -> object:
    if isinstance(figure, Interval):
        return asdict(figure)
    return None if isinstance(figure, Undefined) else figure


@dataclass(frozen=True, repr=False)
class Comparison(Displayed):
    """Two sets of labels over the records that both have.

    Attributes:
        a: the labels to start from.
        b: the labels that are compared with them.
        counts: the numbers of pairs and of other records.
        rows: one for each group and metric, groups sorted by name.
        tests: number of tests that p values are adjusted for.
        by: name of the metadata column that pairs are grouped by, or ``None``.
        level: of the intervals; 1 - level is the family-wise error rate of the tests.

    Example:
        >>> found = labeler.compare(labels, labels)
        >>> found.counts.pairs, found["adherence"].difference
        (14, 0.0)
    """

    a: Side[Measured]
    b: Side[Measured]
    counts: PairCounts
    rows: tuple[MetricComparison, ...]
    tests: int
    by: str | None
    level: float

    def __getitem__(self, key: str | tuple[str, str]) -> MetricComparison:
        """Return the row of a metric, or of a metric and group.

        Raises:
            UnknownName: there is no such metric or group; the message has near spellings.
            UsageError: several groups have the metric.
        """
        return find_row(self.rows, key)

    @cached_property
    def by_group(self) -> dict[str | None, list[MetricComparison]]:
        """The rows of each group."""
        found: dict[str | None, list[MetricComparison]] = {}
        for row in self.rows:
            found.setdefault(row.group, []).append(row)
        return found

    @property
    def same_sentences(self) -> bool:
        """True if A and B label the same sentences in every pair, so that only labels differ."""
        return self.counts.same == self.counts.pairs

    @property
    def same_judge(self) -> bool:
        """True if judge, prompt and settings of both sides are the same."""
        return _judges(self.a) == _judges(self.b)

    def _display(self) -> Display:
        heads = ["", "A", "B", "B-A", f"{100 * self.level:g} % interval", "pairs"]
        columns = [Column("metric", words=True), *map(Column, heads), Column("B is", words=True)]
        columns += [Column("group", words=True)] * (self.by is not None)
        cells = [
            [
                row.metric.id,
                arrow(higher_is_better=row.metric.higher_is_better),
                *(number(row.mean_a), number(row.mean_b), number(row.difference, "+.4f")),
                f"{row.interval.low:+.3f} to {row.interval.high:+.3f}{row.interval.mark}"
                if isinstance(row.interval, Interval)
                else row.interval.reason,
                *(str(row.pairs), row.verdict, *([row.group or ""] * (self.by is not None))),
            ]
            for row in self.rows
        ]
        counts = self.counts
        notes = [
            f"only in A: {counts.only_a} records, only in B: {counts.only_b}",
            f"failed: {counts.failed_a} in A, {counts.failed_b} in B, {counts.failed_both} in both",
            f"{self.tests} tests, adjusted by Holm's method",
        ]
        if not self.same_judge:
            notes.append("different judges, prompts or thresholds: higher or lower, not better")
        notes += selection_warnings((*self.a.signatures, *self.b.signatures))
        for letter, side in (("A", self.a), ("B", self.b)):
            notes.append(f"{letter}: {side.name}, {'; '.join(side.signatures)}")
        return Display(f"comparison of {counts.pairs:,} pairs", Grid(columns, cells), notes)

    def regressions(self) -> Iterator[str]:
        """Yield what is worse in B: verdicts, and shares of rows without a value, in words.

        A metric whose verdict is ``worse``; more than 5 % of A's labels without a label in B; a
        metric with a value in A only, for more than 5 % of the pairs.
        """
        counts, failed = self.counts, Counter[str]()
        failed.update(
            failed=len(self.a.labels.keys() & self.b.failed.keys()), missing=counts.only_a
        )
        for row in self.rows:
            if row.verdict == "worse":
                where = f" of {self.by} {row.group}" if row.group is not None else ""
                yield f"{row.metric.id}{where} is worse: {number(row.difference, '+.4f')}"
            lost, pairs = row.definedness.only_a, row.pairs + row.undefined_pairs
            if lost > pairs * DEFAULT_ALLOWED.undefined:
                yield f"{row.metric.id} has no value in {lost} of {pairs} pairs, and has one in A"
        total = counts.pairs + failed.total()
        if failed.total() > total * DEFAULT_ALLOWED.failed:
            yield f"{failed.total()} of {total} rows with a label in A have none"

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
            "comparisons": [row.as_json() for row in self.rows],
            "labeler": version,
        }


class Comparisons(Displayed, tuple[Comparison, ...]):
    """Comparisons of several sets of labels with one base, which is A of each."""

    __slots__ = ()

    @property
    def letters(self) -> list[tuple[str, Side[Measured]]]:
        """The base and the other sets, each with its letter."""
        sides = [self[0].a, *(one.b for one in self)]
        return list(zip(LETTERS, sides, strict=False))

    def grid(self, group: str | None = None) -> Grid:
        """Return one row a metric, with a column for each set.

        Means are over the pairs with a value in A and in the set, so that those of A may differ
        from set to set.

        Args:
            group: the group of the rows.
        """
        columns = [Column("metric", words=True)]
        for letter, _ in self.letters[1:]:
            columns.append(Column(f"A → {letter}, {letter}-A, {letter} is", words=True))
        found = [{row.metric.id: row for row in one.by_group.get(group, ())} for one in self]
        metrics = {name: row.metric for rows in found for name, row in rows.items()}
        width = max(map(len, metrics), default=0)
        rows = []
        for name, metric in metrics.items():
            of_runs = [rows_of_run.get(name) for rows_of_run in found]
            cells = [f"{name:<{width}} {arrow(higher_is_better=metric.higher_is_better)}"]
            cells += [NONE if row is None else _short(row) for row in of_runs]
            rows.append(cells)
        return Grid(columns, rows)

    @property
    def groups(self) -> list[str | None]:
        """The groups of the rows."""
        return list(dict.fromkeys(row.group for one in self for row in one.rows))

    def _display(self) -> Display:
        notes = [
            f"{letter}: {side.name}, {'; '.join(side.signatures)}" for letter, side in self.letters
        ]
        notes.append(f"{self[0].tests} tests, adjusted by Holm's method")
        grids = [(group, self.grid(group)) for group in self.groups or [None]]
        columns, rows = list(grids[0][1].columns), [row for _, grid in grids for row in grid.rows]
        if self[0].by is not None:
            columns.append(Column("group", words=True))
            rows = [[*row, group or ""] for group, grid in grids for row in grid.rows]
        return Display(f"{len(self)} comparisons with A", Grid(columns, rows), notes)


def _short(row: MetricComparison) -> str:
    difference = f"{number(row.difference, '+.4f'):>7}"
    return f"{number(row.mean_a):>6} → {number(row.mean_b):>6}  {difference}  {row.verdict}"


def interval_cell(found: Interval | Undefined) -> str:
    """Return the ends of an interval of a difference, or ``-``."""
    if isinstance(found, Undefined):
        return NONE
    return f"{found.low:+.4f} {found.high:+.4f}{found.mark}"


def _side_json(side: Side[Measured]) -> dict[str, Any]:
    return {
        "name": side.name,
        "signatures": list(side.signatures),
        "labeled": len(side.labels),
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
