"""Comparisons of sets of labels: their figures, verdicts and published form."""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cached_property
from typing import Any, Literal

from labeler.calculators import Metric
from labeler.calculators.intervals import Interval
from labeler.calculators.registry import OF_WHOLE_ANSWERS, Flipped, plain_name
from labeler.calculators.significance import Undefined
from labeler.calculators.tables import find_row
from labeler.comparing.comparison_text import (
    Conclusion,
    conclude,
    figures,
    in_headlines,
    in_order,
)
from labeler.comparing.gates import MOST_LACKING
from labeler.comparing.pairs import PairCounts
from labeler.comparing.sides import Side
from labeler.labels.signature import selection_warnings
from labeler.sentences.display import (
    LONGEST_NAME,
    Brief,
    Display,
    Displayed,
    Grid,
    as_sentence,
    digits_for,
    display_of,
    figure,
    have,
    plural,
    shortened,
)
from labeler.version import __version__

LETTERS = string.ascii_uppercase
"""Letters of the sets of labels; A is the base."""
UNTESTED = "equal_retrieval"
"""Why nothing is tested where all pairs have equal retrieval."""
_INCONSISTENT = "judge_inconsistency"
_OF_JUDGES = ("no_probabilities", "not_measured_by_judge")
"""Reasons of missing values that say nothing about the system that answered."""
_VERDICTS = {
    "not significant after Holm": "not certain",
    "no evidence": "no difference seen",
    "no difference": "equal",
    "definedness differs": "equal where both have a value",
    "judge inconsistency": "same documents",
    "not tested": "not compared",
}
"""Verdicts in words; the others are words already."""


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


@dataclass(frozen=True, kw_only=True)
class JudgeInconsistency(Flipped):
    """Differences of a retrieval metric between labels of equal retrieval.

    Only pairs whose documents are in the same order have their sentences counted.

    Attributes:
        pairs: pairs with the same question and the same set of document texts.
        one_sided: those with a value on one side only.
        mean_absolute_difference: over those with a value on both sides; 0 without such pairs.
    """

    pairs: int
    one_sided: int
    mean_absolute_difference: float

    @property
    def differs(self) -> bool:
        """True if a value differs, or is on one side only."""
        return self.mean_absolute_difference > 0 or self.one_sided > 0

    def __str__(self) -> str:
        found = (
            f"{plural(self.pairs, 'pair')} with the same question and documents, no evidence about "
            f"retrieval; mean absolute difference {self.mean_absolute_difference:.4f}, "
            f"{self.one_sided:,} with a value on one side only"
        )
        return ", ".join(filter(None, (found, self.flips)))


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
        changed: ids of these pairs: 1 for a value on side B only, -1 on side A only.
    """

    only_a: int
    only_b: int
    p: float | Undefined
    p_adjusted: float | Undefined
    changed: frozenset[tuple[str, float]] = field(repr=False)

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
            differences are not tests; the names of one quantity are one.
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
    p: float | Undefined
    p_adjusted: float | Undefined
    definedness: Definedness
    judge_inconsistency: JudgeInconsistency | None
    verdict: Verdict
    moved: tuple[Moved, ...]

    @property
    def metric_name(self) -> str:
        """The plain name of the metric."""
        return plain_name(self.metric)

    @property
    def name(self) -> str:
        """The plain name of the metric, and the group."""
        where = "" if self.group is None else f" in {self.group_name}"
        return f"{self.metric_name}{where}"

    @property
    def group_name(self) -> str:
        """The shortened group; ``(all)`` for all records."""
        return "(all)" if self.group is None else shortened(self.group, LONGEST_NAME)

    @property
    def same_retrieval(self) -> bool:
        """True if nothing was tested, because all pairs have equal retrieval."""
        return self.interval == Undefined(UNTESTED)

    @property
    def verdict_in_words(self) -> str:
        """The verdict in plain words."""
        if isinstance(self.interval, Undefined) and not self.same_retrieval and self.difference:
            return "too few records"
        return _VERDICTS.get(self.verdict, self.verdict)

    @property
    def change_in_words(self) -> str:
        """The difference and its interval: ``+.10 (.02 to .18)``."""
        found = self.interval
        if isinstance(self.difference, Undefined):
            return ""
        if isinstance(found, Undefined):
            return figure(self.difference, signed=True)
        digits = digits_for(self.difference, found.low, found.high)
        low, high = (figure(end, digits) for end in (found.low, found.high))
        return f"{figure(self.difference, digits, signed=True)} ({low} to {high})"

    @property
    def described(self) -> str:
        """The difference in words: ``6 more of 60 answers fully supported, +.10 (.02 to .18)``."""
        count = 0 if isinstance(self.difference, Undefined) else round(self.difference * self.pairs)
        if self.metric.id in OF_WHOLE_ANSWERS and count and self.pairs > 1:
            more = "more" if count > 0 else "fewer"
            words = f"{abs(count):,} {more} of {self.pairs:,} {self.name}"
        else:
            words = f"{self.name} {figure(self.mean_a)} → {figure(self.mean_b)}"
        return ", ".join(filter(None, (words, self.change_in_words)))

    def as_json(self) -> dict[str, Any]:
        """Return the published form; an undefined figure is null, its reason in ``undefined``."""
        shown = {name: _plain(value) for name, value in vars(self).items() if name != "metric"}
        reasons = {
            name: value.reason for name, value in vars(self).items() if isinstance(value, Undefined)
        }
        return {
            "metric": self.metric.id,
            "version": self.metric.version,
            "higher_is_better": self.metric.higher_is_better,
            **shown,
            "verdict": _INCONSISTENT if self.verdict == "judge inconsistency" else self.verdict,
            "undefined": reasons,
        }


def _plain(value: object) -> object:
    """Return a JSON value: null for an undefined figure, an object of the fields of a result."""
    if isinstance(value, Undefined):
        return None
    if isinstance(value, tuple):
        return [*map(_plain, value)]
    if is_dataclass(value):
        return {one.name: _plain(getattr(value, one.name)) for one in fields(value) if one.repr}
    return value


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
        letter: name of the second side in words: B, or C and so on of several comparisons.
        whole: with groups, the comparison of all pairs together, a family of tests of its own.

    Example:
        >>> found = labeler.compare(labels, labels)
        >>> print(found.conclusion)
        No difference: all 14 pairs have equal values.
        >>> found.counts.pairs, found["adherence"].difference
        (14, 0.0)
    """

    a: Side[Any]
    b: Side[Any]
    counts: PairCounts
    rows: tuple[MetricComparison, ...]
    tests: int
    by: str | None
    level: float
    letter: str = "B"
    whole: Comparison | None = None

    def __getitem__(self, key: str | tuple[str, str]) -> MetricComparison:
        """Return the row of a metric over all pairs, or of a metric and group.

        Raises:
            UnknownName: there is no such metric or group; the message has near spellings.
        """
        return find_row(self.rows if isinstance(key, tuple) else self.by_group[None], key)

    @cached_property
    def by_group(self) -> dict[str | None, list[MetricComparison]]:
        """The rows of all pairs together (``None``), and of each group."""
        found: dict[str | None, list[MetricComparison]] = {None: []}
        for row in (*(self.whole.rows if self.whole else ()), *self.rows):
            found.setdefault(row.group, []).append(row)
        return found

    @property
    def every(self) -> list[MetricComparison]:
        """The rows of all pairs together, then the groups' rows."""
        return [row for rows in self.by_group.values() for row in rows]

    @cached_property
    def valued(self) -> list[MetricComparison]:
        """The rows with pairs, headline metrics first."""
        return in_order([row for row in self.every if row.pairs])

    @property
    def same_sentences(self) -> bool:
        """True if A and B label the same sentences in every pair, so that only labels differ."""
        return self.counts.same == self.counts.pairs

    @property
    def same_judge(self) -> bool:
        """True if judge, prompt and settings of both sides are the same."""
        return self.a.judges == self.b.judges

    def _display(self) -> Display:
        return display_of(Comparisons((self,)))

    @cached_property
    def conclusion(self) -> Conclusion:
        """The conclusion on all pairs; ``str`` is one sentence, ``B is better: 6 more of 60 …``."""
        return conclude(self)

    def regressions(self) -> Iterator[str]:
        """Yield what is worse in B: verdicts, and shares of rows without a value, in words.

        A metric whose verdict is ``worse``; more than 5 % of A's labels without a label in B; a
        metric with a value in A only, for more than 5 % of the pairs.
        """
        for row in self.every:
            if row.verdict == "worse":
                yield f"worse: {row.described}"
        yield from self.losses()

    def losses(self) -> Iterator[str]:
        """Yield shares of A's rows without a label of that question, or a value, in B: over 5 %."""
        total, b = len(self.a.labels), self.letter
        if (lost := total - self.counts.pairs) > total * MOST_LACKING:
            found = plural(total, "record")
            none = "none of the same question" if self.counts.left_out else "none"
            yield f"{lost:,} of {found} with a label in A {have(lost)} {none} in {b}"
        for row in self.every:
            pairs = row.pairs + row.undefined_pairs
            more = Counter(row.undefined_b) - Counter(row.undefined_a)
            unasked = sum(more[reason] for reason in _OF_JUDGES)
            if (count := row.definedness.only_a - unasked) > pairs * MOST_LACKING:
                found = f"{plural(pairs, 'record')} {have(count)}"
                yield f"{count:,} of {found} a value of {row.name} in A and none in {b}"

    def as_json(self) -> dict[str, Any]:
        """Return the published form."""
        counts = self.counts
        return {
            "verdict": str(self.conclusion),
            "a": self.a.as_json(),
            "b": self.b.as_json(),
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
            "whole": [row.as_json() for row in self.whole.rows] if self.whole else None,
            "comparisons": [row.as_json() for row in self.rows],
            "labeler": __version__,
        }


class Comparisons(Displayed, tuple[Comparison, ...]):
    """Comparisons of several sets of labels with one base, which is A of each."""

    __slots__ = ()

    @property
    def conclusion(self) -> str:
        """The conclusion in one sentence; of several comparisons the direction of each."""
        if len(self) == 1:
            return str(self[0].conclusion)
        kinds: dict[str, list[str]] = {}
        for one in self:
            kinds.setdefault(one.conclusion.kind, []).append(one.letter)
        found = "; ".join(f"{', '.join(letters)} {kind}" for kind, letters in kinds.items())
        warnings = dict.fromkeys(one.counts.warning for one in self)
        return as_sentence("; ".join(filter(None, [*warnings, f"against A: {found}"])))

    @property
    def conclusions(self) -> list[str]:
        """The conclusion, and of several comparisons one for each."""
        lines = [self.conclusion]
        for one in self[len(self) == 1 :]:
            text = str(one.conclusion)
            lines.append(text if text.startswith(f"{one.letter} is ") else f"{one.letter}: {text}")
        return lines

    @property
    def sides(self) -> dict[str, Side[Any]]:
        """The base and the other sets by their letters."""
        return {"A": self[0].a} | {one.letter: one.b for one in self}

    @property
    def records(self) -> Iterator[str]:
        """Lines on the sets, and the records that are compared and those that are not."""
        yield f"A is {self[0].a.name}"
        for one in self:
            yield f"{one.letter} is {one.b.name}: {one.counts.in_words(one.letter)}"
        yield from self.warnings

    @property
    def warnings(self) -> Iterator[str]:
        """Warnings of labels that people selected and corrected."""
        signatures = (name for side in self.sides.values() for name in side.signatures)
        yield from selection_warnings(dict.fromkeys(signatures))

    def _display(self) -> Display:
        if len(self) == 1:
            grid = figures(self[0], self[0].valued)
        else:
            grids = [(one.letter, figures(one, in_headlines(one.rows), b="other")) for one in self]
            rows = [[f"{k}: {row[0]}", *row[1:]] for k, grid in grids for row in grid.rows]
            grid = Grid(grids[0][1].columns, rows)
        several = self.conclusions[1:]
        counts = [] if several else [self[0].counts.in_words(self[0].letter)]
        sides = (f"{k}: {one.name}, {'; '.join(one.signatures)}" for k, one in self.sides.items())
        return Display(self.conclusion, grid, [*several, *counts, *self.warnings, *sides])
