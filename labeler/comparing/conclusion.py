"""The conclusion of a comparison in one sentence, for terminals, pages and Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, cast

from labeler.calculators.headline import OF_WHOLE_ANSWERS, headline_metrics, plain_name
from labeler.calculators.statistics.intervals import Interval, Undefined
from labeler.comparing.metric_comparison import UNTESTED, MetricComparison
from labeler.sentences.display import Column, Grid, digits_for, figure, shortened

Kind = Literal[
    "better", "worse", "higher", "lower", "not certain", "no difference seen", "not compared"
]
_AGAINST = {"better": "worse", "worse": "better", "higher": "lower", "lower": "higher"}
"""The verdicts on certain differences, and those of the other direction."""
_VERDICTS = {
    "not significant after Holm": "not certain",
    "no evidence": "no difference seen",
    "no difference": "equal",
    "definedness differs": "equal where both have a value",
    "judge inconsistency": "same documents",
    "not tested": "not compared",
}
"""Verdicts in words; the others are words already."""
_LONGEST_GROUP = 40


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


@dataclass(frozen=True, kw_only=True)
class Circumstances:
    """Facts about both sides that a conclusion depends on.

    Attributes:
        same_judge: whether judge, prompt and settings of both sides are the same.
        same_sentences: whether both sides label the same sentences.
        tests: number of tests of the whole comparison.
        losses: labels and values that A has and B lacks, in words.
        warning: the records that cannot be paired, in words; empty without any.
    """

    same_judge: bool = True
    same_sentences: bool = False
    tests: int = 1
    losses: Sequence[str] = ()
    warning: str = ""


def conclude(
    rows: Sequence[MetricComparison], circumstances: Circumstances, b: str = "B"
) -> Conclusion:
    """Return the conclusion of a comparison.

    A difference is certain if the verdict on its metric says so; its interval excludes 0 then.

    Args:
        rows: one for each metric and group.
        circumstances: facts about both sides.
        b: name of the second side.
    """
    valued = in_order([row for row in rows if row.pairs])
    certain = [row for row in valued if row.verdict in _AGAINST]
    found = _certain(certain, valued, circumstances, b) if certain else _open(valued, circumstances)
    sentence = "; but ".join((found.sentence, *circumstances.losses[:1]))
    return replace(found, sentence="; ".join(filter(None, (circumstances.warning, sentence))))


def largest_change(
    rows: Sequence[MetricComparison], whole: MetricComparison | None, of: str
) -> str:
    """Return the change of the group that moved most in words; empty if no group moved.

    A certain change goes before one that chance may explain, and one of the metric that the
    conclusion on all records names before others.

    Args:
        rows: one for each metric and group.
        whole: the metric that the conclusion names.
        of: the groups in words, such as ``by topic``.
    """
    moved = [row for row in in_order(rows) if row.pairs and row.difference]
    same = [row for row in moved if whole and row.metric is whole.metric]
    certain = [row for row in moved if row.verdict in _AGAINST]
    own = [row for row in same if row in certain] or certain[:1] or same
    if not own:
        return ""
    most = max(own, key=lambda row: abs(cast("float", row.difference)))
    return f"largest change {of}: {described(most)}{'' if certain else ', not certain'}"


def in_order(rows: Sequence[MetricComparison]) -> list[MetricComparison]:
    """Return rows with the headline metrics first."""
    first = headline_metrics(row.metric for row in rows)
    place = {metric: number for number, metric in enumerate(first)}
    return sorted(rows, key=lambda row: place.get(row.metric, len(place)))


def in_headlines(rows: Sequence[MetricComparison]) -> list[MetricComparison]:
    """Return the rows of headline metrics, in order."""
    first = headline_metrics(row.metric for row in rows)
    return [row for metric in first for row in rows if row.metric is metric]


def _certain(
    certain: Sequence[MetricComparison],
    valued: Sequence[MetricComparison],
    circumstances: Circumstances,
    b: str,
) -> Conclusion:
    kind = cast("Kind", certain[0].verdict)
    parts = [f"{b} is {kind}: {_clauses(certain, kind)}"]
    if against := _clauses(certain, _AGAINST[kind]):
        parts.append(f"but {_AGAINST[kind]}: {against}")
    if valued[0].metric not in {row.metric for row in certain}:
        parts.append(f"no difference seen: {described(valued[0])}")
    if not circumstances.same_judge:
        parts.append("other judges, prompts or thresholds gave these labels, so neither is better")
    elif circumstances.same_sentences:
        parts.append("the answers are the same, only their labels differ")
    return Conclusion(kind, "; ".join(parts), certain[0])


def _clauses(rows: Sequence[MetricComparison], kind: str) -> str:
    """Return the first difference of one direction, and the number of further ones."""
    own = [row for row in rows if row.verdict == kind]
    more = len({row.metric for row in own}) - 1
    several = "1 more metric" if more == 1 else f"{more} more metrics"
    return " and ".join([*map(described, own[:1]), *([several] if more > 0 else [])])


def _open(rows: Sequence[MetricComparison], circumstances: Circumstances) -> Conclusion:
    """Return the conclusion where no difference is certain."""
    if not rows:
        return Conclusion("not compared", "nothing to compare: no metric has a value on both sides")
    first = next((row for row in rows if isinstance(row.interval, Interval)), rows[0])
    uncertain = [row for row in rows if row.verdict == "not significant after Holm"]
    if uncertain:
        return Conclusion(
            "not certain",
            f"not certain: {described(uncertain[0])}; of {circumstances.tests} differences tested "
            "at once, one can be as large by chance",
            uncertain[0],
        )
    if isinstance(first.interval, Undefined):
        return _without_interval(first)
    return Conclusion("no difference seen", _no_difference(first, rows, circumstances), first)


def _without_interval(row: MetricComparison) -> Conclusion:
    """Return the conclusion where nothing could be tested."""
    if isinstance(row.interval, Undefined) and row.interval.reason == UNTESTED:
        return Conclusion(
            "not compared",
            "nothing to compare: both sides retrieved the same documents, so a difference in "
            f"{plain_name(row.metric)} is the judge's",
            row,
        )
    if row.pairs == 1:
        few = "1 record is too few to tell"
    else:
        few = f"too few to tell: all {row.pairs} records ask one question"
    return Conclusion("not compared", f"{few}; {described(row)}", row)


def _no_difference(
    first: MetricComparison, rows: Sequence[MetricComparison], circumstances: Circumstances
) -> str:
    visible = f"with {first.pairs} pairs only one of {_least_visible(first)} or more would show"
    if any(row.difference or row.definedness.differs for row in rows):
        return f"no difference seen: {described(first)}; {visible}"
    # Metrics of a group share pairs; groups have none in common.
    pairs: dict[str | None, int] = dict.fromkeys((row.group for row in rows), 0)
    for row in rows:
        pairs[row.group] = max(pairs[row.group], row.pairs)
    equal = f"no difference: all {sum(pairs.values())} pairs have equal values"
    return equal if circumstances.same_sentences else f"{equal}; {visible}"


def _least_visible(row: MetricComparison) -> str:
    """Return the least difference whose interval would exclude 0, about."""
    found = row.interval
    if isinstance(found, Undefined) or isinstance(row.difference, Undefined):
        return "any size"
    return figure(max(row.difference - found.low, found.high - row.difference))


def row_name(row: MetricComparison) -> str:
    """Return the plain name of a row's metric, and its group."""
    name = plain_name(row.metric)
    return name if row.group is None else f"{name} in {row_group(row)}"


def row_group(row: MetricComparison) -> str:
    """Return the shortened group of a row; ``(all)`` for all records."""
    return "(all)" if row.group is None else shortened(row.group, _LONGEST_GROUP)


def figures(
    rows: Sequence[MetricComparison],
    level: float,
    b: str = "B",
    *,
    name: Callable[[MetricComparison], str] = row_name,
) -> Grid:
    """Return a table of means, changes with their intervals, and verdicts in words.

    Args:
        rows: rows of metrics and groups.
        level: of the intervals.
        b: name of the second side.
        name: returns the name of a row.
    """
    names = [Column("", words=True), Column("A"), Column(b)]
    change = Column(f"change ({100 * level:g} % range)", words=True)
    return Grid(
        [*names, change, Column(f"{b} is", words=True)],
        [
            [
                name(row),
                figure(row.mean_a),
                figure(row.mean_b),
                change_in_words(row),
                verdict_in_words(row),
            ]
            for row in rows
        ],
    )


def verdict_in_words(row: MetricComparison) -> str:
    """Return the verdict on a metric in plain words."""
    found = row.interval
    if isinstance(found, Undefined) and found.reason != UNTESTED and row.difference:
        return "too few records"
    return _VERDICTS.get(row.verdict, row.verdict)


def described(row: MetricComparison) -> str:
    """Return a difference in words: ``6 more of 60 answers fully supported, +.10 (.02 to .18)``."""
    name = row_name(row)
    count = 0 if isinstance(row.difference, Undefined) else round(row.difference * row.pairs)
    if row.metric.id in OF_WHOLE_ANSWERS and count:
        words = f"{abs(count)} {'more' if count > 0 else 'fewer'} of {row.pairs} {name}"
    else:
        words = f"{name} {figure(row.mean_a)} → {figure(row.mean_b)}"
    return ", ".join(filter(None, (words, change_in_words(row))))


def change_in_words(row: MetricComparison) -> str:
    """Return a difference and its interval: ``+.10 (.02 to .18)``."""
    found = row.interval
    if isinstance(row.difference, Undefined) or isinstance(found, Undefined):
        return figure(row.difference, signed=True) if row.difference else ""
    digits = digits_for(found.low, found.high)
    low, high = (figure(end, digits) for end in (found.low, found.high))
    return f"{figure(row.difference, digits, signed=True)} ({low} to {high})"
