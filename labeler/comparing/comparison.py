"""Comparisons of sets of labels, their conclusion and their published form."""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

from labeler.calculators.headline import plain_name
from labeler.calculators.summary_table import find_row
from labeler.comparing.conclusion import (
    Circumstances,
    Conclusion,
    conclude,
    described,
    figures,
    in_headlines,
    in_order,
    largest_change,
    row_name,
)
from labeler.comparing.gates import MOST_LACKING
from labeler.comparing.metric_comparison import Measured, MetricComparison
from labeler.comparing.pairs import PairCounts
from labeler.comparing.sides import Side
from labeler.labels.signature import selection_warnings
from labeler.sentences.display import (
    Display,
    Displayed,
    Grid,
)

LETTERS = string.ascii_uppercase
"""Letters of the sets of labels; A is the base."""


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
        whole: with groups, the comparison of all pairs together, a family of tests of its own.

    Example:
        >>> found = labeler.compare(labels, labels)
        >>> print(found.conclusion)
        no difference: all 14 pairs have equal values
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
    whole: Comparison | None = None

    def __getitem__(self, key: str | tuple[str, str]) -> MetricComparison:
        """Return the row of a metric over all pairs, or of a metric and group.

        Raises:
            UnknownName: there is no such metric or group; the message has near spellings.
        """
        return find_row(self.rows if isinstance(key, tuple) else self.by_group[None], key)

    @cached_property
    def every(self) -> list[MetricComparison]:
        """The rows of all pairs together, then those of the groups."""
        return [*(self.whole.rows if self.whole else ()), *self.rows]

    @cached_property
    def by_group(self) -> dict[str | None, list[MetricComparison]]:
        """The rows of all pairs together (``None``), and of each group."""
        found: dict[str | None, list[MetricComparison]] = {None: []}
        for row in self.every:
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
        rows = in_order([row for row in self.every if row.pairs])
        notes = [
            self.counts.in_words(),
            *selection_warnings((*self.a.signatures, *self.b.signatures)),
        ]
        for letter, side in (("A", self.a), ("B", self.b)):
            notes.append(f"{letter}: {side.name}, {'; '.join(side.signatures)}")
        return Display(str(self.conclusion), figures(rows, self.level), notes)

    @property
    def conclusion(self) -> Conclusion:
        """The conclusion; ``str`` gives one sentence, such as ``B is better: 6 more of 60 …``."""
        return self.concluded("B")

    def concluded(self, b: str) -> Conclusion:
        """Return the conclusion: of all pairs, then the group that moved most.

        Args:
            b: name of the second side.
        """
        if self.whole:
            found = self.whole.concluded(b)
            groups = largest_change(self.rows, found.row, f"by {self.by}")
            return replace(found, sentence="; ".join(filter(None, (found.sentence, groups))))
        circumstances = Circumstances(
            same_judge=self.same_judge,
            same_sentences=self.same_sentences,
            tests=self.tests,
            losses=[*self._losses(b)],
            warning=self.counts.warning,
        )
        return conclude(self.rows, circumstances, b)

    def regressions(self) -> Iterator[str]:
        """Yield what is worse in B: verdicts, and shares of rows without a value, in words.

        A metric whose verdict is ``worse``; more than 5 % of A's labels without a label in B; a
        metric with a value in A only, for more than 5 % of the pairs.
        """
        for row in self.every:
            if row.verdict == "worse":
                yield f"worse: {described(row)}"
        yield from self._losses("B")

    def _losses(self, b: str) -> Iterator[str]:
        """Yield shares of rows that have a label or a value in A and none in B, if above 5 %."""
        counts = self.counts
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
        for (letter, _), one in zip(self.letters[1:], self, strict=True):
            kinds.setdefault(one.concluded(letter).kind, []).append(letter)
        found = "; ".join(f"{', '.join(k)} {kind}" for kind, k in kinds.items())
        warnings = dict.fromkeys(one.counts.warning for one in self)
        return "; ".join(filter(None, [*warnings, f"against A: {found}"]))

    @property
    def letters(self) -> list[tuple[str, Side[Measured]]]:
        """The base and the other sets, each with its letter."""
        sides = [self[0].a, *(one.b for one in self)]
        return list(zip(LETTERS, sides, strict=False))

    def _display(self) -> Display:
        sentences = [
            str(one.concluded(letter))
            for (letter, _), one in zip(self.letters[1:], self, strict=True)
        ]
        sides = [f"{letter}: {side.name}" for letter, side in self.letters]
        grids = [
            figures(in_headlines(one.rows), one.level, "other", name=partial(_named, letter))
            for (letter, _), one in zip(self.letters[1:], self, strict=True)
        ]
        rows = [row for grid in grids for row in grid.rows]
        return Display(self.conclusion, Grid(grids[0].columns, rows), [*sentences, *sides])


def _named(letter: str, row: MetricComparison) -> str:
    return f"{letter}: {row_name(row)}"


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
