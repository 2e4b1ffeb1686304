"""Comparisons of sets of labels: their conclusion, their tables and their published form."""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice
from operator import attrgetter
from typing import Any, Literal, cast

from labeler.calculators.headline import headline_metrics, plain_name
from labeler.calculators.statistics.intervals import Interval, Undefined
from labeler.calculators.summary_table import find_row
from labeler.comparing.gates import MOST_LACKING
from labeler.comparing.metric_comparison import UNTESTED, MetricComparison
from labeler.comparing.pairs import PairCounts
from labeler.comparing.sides import Side
from labeler.labels.signature import selection_warnings
from labeler.sentences.display import Column, Display, Displayed, Grid, display_of, figure

LETTERS = string.ascii_uppercase
"""Letters of the sets of labels; A is the base."""

Kind = Literal[
    "better", "worse", "higher", "lower", "not certain", "no difference seen", "not compared"
]
_AGAINST = {"better": "worse", "worse": "better", "higher": "lower", "lower": "higher"}
"""The verdicts on certain differences, and those of the other direction."""
Rows = Sequence[MetricComparison]


@dataclass(frozen=True)
class Conclusion:
    """The conclusion of a comparison; ``str`` is the sentence.

    Attributes:
        kind: ``better`` or ``worse`` by the first metric that certainly differs, ``higher`` or
            ``lower`` where different judges labeled both sides.
        sentence: the conclusion with its figures.
        row: the metric that the sentence names first, if any.
    """

    kind: Kind
    sentence: str
    row: MetricComparison | None = None

    def __str__(self) -> str:
        return self.sentence


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
        no difference: all 14 pairs have equal values
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
        """The rows of all pairs together, then those of the groups."""
        return [row for rows in self.by_group.values() for row in rows]

    @cached_property
    def valued(self) -> list[MetricComparison]:
        """The rows with pairs, those of headline metrics first."""
        return in_order([row for row in self.every if row.pairs])

    @property
    def same_sentences(self) -> bool:
        """True if A and B label the same sentences in every pair, so that only labels differ."""
        return self.counts.same == self.counts.pairs

    @property
    def same_judge(self) -> bool:
        """True if judge, prompt and settings of both sides are the same."""
        return _judges(self.a) == _judges(self.b)

    def _display(self) -> Display:
        return display_of(Comparisons((self,)))

    def figures(
        self,
        rows: Rows,
        name: Callable[[MetricComparison], str] = attrgetter("name"),
        b: str | None = None,
    ) -> Grid:
        """Return a table of means, changes with their intervals, and verdicts in words.

        Args:
            rows: rows of metrics and groups.
            name: returns the name of a row.
            b: name of the second side; by default its letter.
        """
        b = b or self.letter
        change = Column(f"change ({100 * self.level:g} % range)", words=True)
        heads = [Column("", words=True), Column("A"), Column(b), change]
        return Grid(
            [*heads, Column(f"{b} is", words=True)],
            [
                [
                    name(row),
                    figure(row.mean_a),
                    figure(row.mean_b),
                    row.change_in_words,
                    row.verdict_in_words,
                ]
                for row in rows
            ],
        )

    @cached_property
    def conclusion(self) -> Conclusion:
        """The conclusion; ``str`` gives one sentence, such as ``B is better: 6 more of 60 …``.

        With groups it is that on all pairs, then the change of the group that moved most.
        """
        if self.whole:
            found = self.whole.conclusion
            groups = _largest_change(self, found.row)
            return replace(found, sentence="; ".join(filter(None, (found.sentence, groups))))
        found = _certain(self) or _open(self)
        sentence = "; but ".join((found.sentence, *islice(self._losses(), 1)))
        return replace(found, sentence="; ".join(filter(None, (self.counts.warning, sentence))))

    def regressions(self) -> Iterator[str]:
        """Yield what is worse in B: verdicts, and shares of rows without a value, in words.

        A metric whose verdict is ``worse``; more than 5 % of A's labels without a label in B; a
        metric with a value in A only, for more than 5 % of the pairs.
        """
        for row in self.every:
            if row.verdict == "worse":
                yield f"worse: {row.described}"
        yield from self._losses()

    def _losses(self) -> Iterator[str]:
        """Yield shares of rows that have a label or a value in A and none in B, if above 5 %."""
        counts, b = self.counts, self.letter
        lost = len(self.a.labels.keys() & self.b.failed.keys()) + counts.only_a
        total = counts.pairs + lost
        if lost > total * MOST_LACKING:
            yield f"{lost} of {total} records with a label in A have none in {b}"
        for row in self.every:
            pairs = row.pairs + row.undefined_pairs
            if (count := row.definedness.only_a) > pairs * MOST_LACKING:
                where = f" in {row.group}" if row.group is not None else ""
                name = f"{plain_name(row.metric)}{where}"
                yield f"{count} of {pairs} records have no value of {name} in {b}, and one in A"

    def as_json(self, version: str) -> dict[str, Any]:
        """Return the published form.

        Args:
            version: the program's version, part of every signature.
        """
        counts = self.counts
        return {
            "verdict": str(self.conclusion),
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
            "whole": [row.as_json() for row in self.whole.rows] if self.whole else None,
            "comparisons": [row.as_json() for row in self.rows],
            "labeler": version,
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
        return "; ".join(filter(None, [*warnings, f"against A: {found}"]))

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
        signatures = (name for side in self.sides.values() for name in side.signatures)
        yield from selection_warnings(dict.fromkeys(signatures))

    def _display(self) -> Display:
        if len(self) == 1:
            grid = self[0].figures(self[0].valued)
        else:
            grids = [
                one.figures(in_headlines(one.rows), partial(_named, one.letter), "other")
                for one in self
            ]
            grid = Grid(grids[0].columns, [row for one in grids for row in one.rows])
        return Display(self.conclusion, grid, [*self.conclusions[1:], *self.records])


def _named(letter: str, row: MetricComparison) -> str:
    return f"{letter}: {row.name}"


def _side_json(side: Side[Any]) -> dict[str, Any]:
    return {
        "name": side.name,
        "signatures": list(side.signatures),
        "labeled": len(side.labels),
        "failed": dict(Counter(side.failed.values())),
    }


def _judges(side: Side[Any]) -> set[str]:
    """Return the signatures of a side without trial and splitter."""
    return {
        "|".join(
            part for part in signature.split("|") if not part.startswith(("trial:", "splitter:"))
        )
        for signature in side.signatures
    }


def in_order(rows: Rows) -> list[MetricComparison]:
    """Return rows with the headline metrics first."""
    first = headline_metrics(row.metric for row in rows)
    place = {metric: number for number, metric in enumerate(first)}
    return sorted(rows, key=lambda row: place.get(row.metric, len(place)))


def in_headlines(rows: Rows) -> list[MetricComparison]:
    """Return the rows of headline metrics, in order."""
    first = headline_metrics(row.metric for row in rows)
    return [row for metric in first for row in rows if row.metric is metric]


# The conclusion in words. A difference is certain if the verdict says so; then its interval
# excludes 0.


def _certain(found: Comparison) -> Conclusion | None:
    """Return the conclusion if a difference is certain."""
    certain = [row for row in found.valued if row.verdict in _AGAINST]
    if not certain:
        return None
    kind = cast("Kind", certain[0].verdict)
    parts = [f"{found.letter} is {kind}: {_clauses(certain, kind)}"]
    if against := _clauses(certain, _AGAINST[kind]):
        parts.append(f"but {_AGAINST[kind]}: {against}")
    if found.valued[0].metric not in {row.metric for row in certain}:
        parts.append(f"no difference seen: {found.valued[0].described}")
    if not found.same_judge:
        parts.append("other judges, prompts or thresholds gave these labels, so neither is better")
    elif found.same_sentences:
        parts.append("the answers are the same, only their labels differ")
    return Conclusion(kind, "; ".join(parts), certain[0])


def _clauses(rows: Rows, kind: str) -> str:
    """Return the first difference of one direction, and the number of further ones."""
    own = [row for row in rows if row.verdict == kind]
    more = len({row.metric for row in own}) - 1
    several = "1 more metric" if more == 1 else f"{more} more metrics"
    return " and ".join([*(row.described for row in own[:1]), *([several] if more > 0 else [])])


def _open(found: Comparison) -> Conclusion:
    """Return the conclusion where no difference is certain."""
    rows = found.valued
    if not rows:
        return Conclusion("not compared", "nothing to compare: no metric has a value on both sides")
    for row in rows:
        if row.verdict == "not significant after Holm":
            return Conclusion(
                "not certain",
                f"not certain: {row.described}; of {found.tests} differences tested at once, one "
                "can be as large by chance",
                row,
            )
    first = next((row for row in rows if isinstance(row.interval, Interval)), None)
    if first is None:
        return Conclusion("not compared", _untested(rows[0]), rows[0])
    visible = f"with {first.pairs} pairs only one of {_least_visible(first)} or more would show"
    if any(row.difference or row.definedness.differs for row in rows):
        sentence = f"no difference seen: {first.described}; {visible}"
    else:
        sentence = f"no difference: all {max(row.pairs for row in rows)} pairs have equal values"
        sentence += "" if found.same_sentences else f"; {visible}"
    return Conclusion("no difference seen", sentence, first)


def _untested(row: MetricComparison) -> str:
    """Return the conclusion where nothing could be tested."""
    if row.interval == Undefined(UNTESTED):
        return (
            "nothing to compare: both sides retrieved the same documents, so a difference in "
            f"{plain_name(row.metric)} is the judge's"
        )
    few = f"too few to tell: all {row.pairs} records ask one question"
    return f"{'1 record is too few to tell' if row.pairs == 1 else few}; {row.described}"


def _least_visible(row: MetricComparison) -> str:
    """Return the least difference whose interval would exclude 0, about."""
    found = row.interval
    if isinstance(found, Undefined) or isinstance(row.difference, Undefined):
        return "any size"
    return figure(max(row.difference - found.low, found.high - row.difference))


def _largest_change(found: Comparison, whole: MetricComparison | None) -> str:
    """Return the change of the group that moved most in words; empty if no group moved.

    A certain change goes before one that chance may explain, and one of the metric that the
    conclusion on all records names before others.
    """
    moved = [row for row in in_order(found.rows) if row.pairs and row.difference]
    same = [row for row in moved if whole and row.metric is whole.metric]
    certain = [row for row in moved if row.verdict in _AGAINST]
    own = [row for row in same if row in certain] or certain[:1] or same
    if not own:
        return ""
    most = max(own, key=lambda row: abs(cast("float", row.difference)))
    sure = "" if certain else ", not certain"
    return f"largest change by {found.by}: {most.described}{sure}"
