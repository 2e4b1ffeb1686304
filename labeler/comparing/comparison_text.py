"""Comparisons in words: the conclusion, and the tables and lines of terminal and page."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from labeler.calculators.intervals import Interval, question_groups
from labeler.calculators.registry import headline_metrics, plain_name
from labeler.calculators.significance import Undefined
from labeler.calculators.summary_text import alias_note, small_sample_note
from labeler.comparing.pairs import others_of
from labeler.sentences.display import (
    NONE,
    Column,
    Grid,
    Section,
    arrow,
    as_sentence,
    figure,
    have,
    number,
    plural,
    reason_counts,
    shortened,
)
from labeler.version import __version__

if TYPE_CHECKING:
    from labeler.comparing.comparison import Comparison, Comparisons, MetricComparison, Moved
    from labeler.comparing.flips import MetricDiff
    from labeler.comparing.sides import Side

_LEAST_SHOWN = 0.0001

Kind = Literal[
    "better", "worse", "higher", "lower", "not certain", "no difference seen", "not compared"
]
_AGAINST = {"better": "worse", "worse": "better", "higher": "lower", "lower": "higher"}
"""The verdicts on certain differences, each with its opposite."""
Rows = Sequence["MetricComparison"]
R = TypeVar("R", "MetricComparison", "MetricDiff")


@dataclass(frozen=True)
class Conclusion:
    """The conclusion of a comparison; ``str`` is the sentence.

    Attributes:
        kind: ``better`` or ``worse`` by the first metric that certainly differs, ``higher`` or
            ``lower`` where different judges labeled both sides.
        sentence: the conclusion with its figures.
    """

    kind: Kind
    sentence: str

    def __str__(self) -> str:
        return self.sentence


def conclude(found: Comparison) -> Conclusion:
    """Return the conclusion of a comparison; with groups, of all pairs together.

    A difference is certain if the verdict says so; then its interval excludes 0.
    """
    of = found.whole or found
    first = _certain(of) or _open(of)
    sentence = "; but ".join((first.sentence, *islice(of.losses(), 1)))
    parts = filter(None, (of.counts.warning, sentence))
    return replace(first, sentence=as_sentence("; ".join(parts)))


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
        parts.append(f"{found.valued[0].verdict_in_words}: {found.valued[0].described}")
    if not found.same_judge:
        parts.append("other judges, prompts or thresholds gave these labels, so neither is better")
    elif found.same_sentences:
        parts.append("the answers are the same, only their labels differ")
    return Conclusion(kind, "; ".join(parts))


def _clauses(rows: Rows, kind: str) -> str:
    """Return the first difference of one direction, and the number of further ones."""
    own = [row for row in rows if row.verdict == kind]
    more = len({row.metric for row in own}) - 1
    several = [plural(more, "more metric")] if more > 0 else []
    return " and ".join([*(row.described for row in own[:1]), *several])


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
            )
    first = next((row for row in rows if isinstance(row.interval, Interval)), None)
    if first is None:
        return Conclusion("not compared", _untested(rows[0]))
    visible = f"with {first.pairs:,} pairs only one of {_least_visible(first)} or more would show"
    if any(row.difference or row.definedness.differs for row in rows):
        sentence = f"no difference seen: {first.described}; {visible}"
    else:
        sentence = f"no difference: all {max(row.pairs for row in rows):,} pairs have equal values"
        sentence += "" if found.same_sentences else f"; {visible}"
    return Conclusion("no difference seen", sentence)


def _untested(row: MetricComparison) -> str:
    """Return the conclusion where nothing could be tested."""
    if row.same_retrieval:
        return (
            "nothing to compare: both sides retrieved the same documents, so a difference in "
            f"{plain_name(row.metric)} is the judge's"
        )
    values = f"{figure(row.mean_a)} → {figure(row.mean_b)}"
    return f"1 record is too few to tell; {row.name} {values}"


def _least_visible(row: MetricComparison) -> str:
    """Return the least difference whose interval would exclude 0, about."""
    found = row.interval
    if isinstance(found, Undefined) or isinstance(row.difference, Undefined):
        return "any size"
    return figure(max(row.difference - found.low, found.high - row.difference))


def in_order(rows: Sequence[R]) -> list[R]:
    """Return rows with the headline metrics first."""
    first = headline_metrics(row.metric for row in rows)
    place = {metric: number for number, metric in enumerate(first)}
    return sorted(rows, key=lambda row: place.get(row.metric, len(place)))


def in_headlines(rows: Rows) -> list[MetricComparison]:
    """Return the rows of headline metrics, in order."""
    first = headline_metrics(row.metric for row in rows)
    return [row for metric in first for row in rows if row.metric is metric]


# Tables and lines.


def sections(
    found: Comparisons, *, every: bool = False, details: bool = False
) -> Iterator[Section]:
    """Yield the metrics with values, the records that moved, and what is missing.

    Args:
        found: the comparisons.
        every: True for all metrics with values, False for headline metrics.
        details: True for all figures, their tests, the sides, and how to read them.
    """
    if details:
        yield Section(lines=[*_sides(found)])
    left_out = 0
    for one in found:
        against = [f"{one.letter} against A"] * (len(found) > 1)
        metrics = {row.metric for row in one.valued}
        for headings, rows in _parts(one, every=every, details=details):
            heading = ", ".join([*against, *headings]) or None
            if details:
                lines = [*_notes(rows, one.letter), *_moved_in_full(rows, one.letter)]
                yield Section(heading, [_all_figures(one, rows)], lines)
                continue
            left_out = max(left_out, len(metrics - {row.metric for row in rows}))
            name = "metric_name" if every or one.by is None else "group_name"
            grid = figures(one, rows, attrgetter(name))
            yield Section(heading, [grid], [*_moved(rows, one.letter)])
    more = f"{plural(left_out, 'more metric')}: --all. " if left_out else ""
    more += "Tests, settings and missing values: --details. A page: --html FILE."
    yield Section(lines=["", *(_reading_aid(found) if details else (*found.records, more))])


def _parts(
    found: Comparison, *, every: bool, details: bool
) -> Iterator[tuple[list[str], list[MetricComparison]]]:
    """Yield headings and the rows of one table.

    All records and the groups are the rows of one table of the first metric, unless all metrics are
    shown.
    """
    if found.by is not None and not every and not details:
        for metric in [row.metric for row in found.valued[:1]]:
            rows = [row for row in found.valued if row.metric is metric]
            yield [f"{plain_name(metric)}, by {found.by}"], rows
        return
    for group, own in found.by_group.items():
        rows = own if details else in_order([row for row in own if row.pairs])
        rows = rows if every or details else in_headlines(rows)
        if rows:
            yield [] if group is None else [f"{found.by}: {shortened(group)}"], rows


def _moved(rows: Rows, b: str) -> Iterator[str]:
    """Yield the records that moved most, but for metrics that are not compared."""
    moved = [row for row in rows if row.moved and row.verdict != "judge inconsistency"]
    if moved:
        yield f"Moved most, from A to {b}:"
    for row in moved:
        records = (f"{shortened(one.id)} {figure(one.a)} → {figure(one.b)}" for one in row.moved)
        yield f"  {row.name}: {', '.join(records)}"


def _sides(found: Comparisons) -> Iterator[str]:
    """Yield the labels of each set, and the records that are compared and those that are not."""
    for letter, side in found.sides.items():
        yield from side_lines(letter, side)
    for one in found:
        counts = one.counts
        against = f"{one.letter} against A: " if len(found) > 1 else ""
        yield f"{against}{counts.in_words(one.letter)}"
        if not one.same_sentences:
            others = (f"{n:,} {have(n)} {others_of(parts)}" for parts, n in counts.unlike.items())
            same = f"{counts.same:,} of them {have(counts.same)} the same sentences in both"
            yield f"{against}{same}; {', '.join(others)}: flips not listed"
    yield from found.warnings


def side_lines(letter: str, side: Side[Any], failed: int = 0) -> Iterator[str]:
    """Yield the lines about one side."""
    failures = f", {failed} failed" if failed else ""
    yield f"{letter}: {plural(len(side.labels), 'label')} of {side.name}{failures}"
    for signature in side.signatures:
        yield f"   {signature}"


def figures(
    found: Comparison,
    rows: Rows,
    name: Callable[[MetricComparison], str] = attrgetter("name"),
    b: str | None = None,
) -> Grid:
    """Return a table of means, changes with their intervals, and verdicts in words.

    Args:
        found: the comparison.
        rows: its rows to show.
        name: returns the name of a row.
        b: name of the second side; by default its letter.
    """
    b = b or found.letter
    change = Column(f"change ({100 * found.level:g} % range)", words=True)
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


def _all_figures(found: Comparison, rows: Rows) -> Grid:
    """Return all figures, to be divided into as many tables as the width requires."""
    b, longest = found.letter, max(len(row.metric.id) for row in rows)
    heads = ["pairs", "A", b, f"{b}-A", f"{100 * found.level:g} % interval", f"{b} is"]
    heads += ["p", "p Holm", "undefined pairs"]
    columns = [Column("metric", words=True), *(Column(h, words=h.endswith(" is")) for h in heads)]
    tests = (found.whole if rows[0].group is None and found.whole else found).tests
    tested = {"not significant after Holm": f"not significant after Holm ({tests} tests)"}
    return Grid(
        columns,
        [
            [
                f"{row.metric.id:<{longest}} {arrow(higher_is_better=row.metric.higher_is_better)}",
                str(row.pairs),
                number(row.mean_a),
                number(row.mean_b),
                number(row.difference, "+.4f"),
                _ends(row.interval),
                tested.get(row.verdict, row.verdict),
                _p(row.p),
                _p(row.p_adjusted),
                str(row.undefined_pairs),
            ]
            for row in rows
        ],
    )


def _ends(found: Interval | Undefined) -> str:
    if isinstance(found, Undefined):
        return NONE
    return f"{found.low:+.4f} {found.high:+.4f}{found.mark}"


def _p(value: float | Undefined) -> str:
    if isinstance(value, Undefined):
        return NONE
    return f"<{_LEAST_SHOWN}" if value < _LEAST_SHOWN else f"{value:.4f}"


def _notes(rows: Rows, b: str) -> Iterator[str]:
    """Yield what is missing, and what equal retrieval shows about the judge."""
    yield from undefined_lines(rows, b)
    for row in rows:
        found = row.definedness
        if found.differs:
            yield (
                f"{row.metric.id} has a value only in A for {plural(found.only_a, 'pair')}, only "
                f"in {b} for {found.only_b:,}: p {_p(found.p)}, p Holm {_p(found.p_adjusted)}"
            )
    if shared := {row.questions for row in rows if row.questions is not None}:
        yield question_groups(max(shared))
    for row in rows:
        if row.judge_inconsistency is not None:
            yield f"judge inconsistency of {row.metric.id}: {row.judge_inconsistency}"


def undefined_lines(rows: Rows | Sequence[MetricDiff], b: str = "B") -> Iterator[str]:
    """Yield the reasons of missing values of each side; equal ones of several metrics together."""
    found = defaultdict[str, list[str]](list)
    for row in rows:
        for letter, reasons in (("A", row.undefined_a), (b, row.undefined_b)):
            if reasons:
                found[f"{letter}: {reason_counts(reasons)}"].append(row.metric.id)
    return (f"undefined {', '.join(names)} in {why}" for why, names in found.items())


def _moved_in_full(rows: Rows, b: str) -> Iterator[str]:
    if any(row.moved for row in rows):
        yield f"moved most, from A to {b}:"
    for row in rows:
        if row.moved:
            yield f"  {row.metric.id}"
        for one in row.moved:
            yield f"    {shortened(one.id)}: {one.a:.4f} → {one.b:.4f}{_flips(one)}"


def _flips(record: Moved) -> str:
    """Return `` (relevant +0b -1a, supported -c)``, or an empty string."""
    parts = [
        " ".join([one.field, *(f"+{key}" for key in one.gained), *(f"-{key}" for key in one.lost)])
        for one in record.flips or ()
    ]
    return f" ({', '.join(parts)})" if parts else ""


def _reading_aid(comparisons: Comparisons) -> Iterator[str]:
    found = comparisons[0]
    rows = [row for one in comparisons for row in one.rows]
    yield from alias_note(row.metric for row in rows)
    yield from small_sample_note(row.interval for row in rows if isinstance(row.interval, Interval))
    yield (
        f"a difference is certain where p Holm, over {plural(found.tests, 'test')} together, is at "
        f"most {1 - found.level:.4g}; intervals go with p, before Holm, and hold for every "
        "distribution (docs/measured/intervals.md)"
    )
    yield f"labeler:{__version__}"
