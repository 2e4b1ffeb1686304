"""Comparisons and diffs as tables and lines, which the terminal and the page show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import chain

from labeler.calculators.headline import plain_name
from labeler.calculators.statistics.intervals import Interval, Undefined
from labeler.calculators.summary_table import alias_note, not_finite_notes, small_sample_note
from labeler.comparing.comparison import Comparison, Comparisons
from labeler.comparing.conclusion import (
    figures,
    in_headlines,
    in_order,
    row_group,
    row_name,
)
from labeler.comparing.diff import LabelDiff, RecordDiff
from labeler.comparing.flips import FIELDS, DecisionFlip, MetricDiff
from labeler.comparing.metric_comparison import MetricComparison, Moved
from labeler.labels.signature import selection_warnings
from labeler.sentences.display import (
    NONE,
    Column,
    Grid,
    Section,
    arrow,
    figure,
    number,
    percent,
    reason_counts,
    shortened,
)
from labeler.version import __version__

_LEAST_SHOWN = 0.0001
_SHOWN_METRICS = 4
"""Metrics that are listed of a record of a diff, those with the largest changes."""
_SHOWN_FLIPS = 12
"""Flips that are listed of a record and a field."""


def overview(found: Comparisons, *, every: bool = False) -> Iterator[Section]:
    """Yield the metrics with values, the records that moved, and what is missing.

    Args:
        found: the comparisons.
        every: True for all metrics with values, False for headline metrics.
    """
    several, left_out = len(found) > 1, 0
    for (letter, _), one in zip(found.letters[1:], found, strict=True):
        against = [f"{letter} against A"] * several
        for heading, rows, more in _tables(one, every=every):
            left_out = max(left_out, more)
            grouped = one.by is not None and not every
            grid = figures(rows, one.level, letter, name=row_group if grouped else metric_name)
            yield Section(
                ", ".join([*against, *filter(None, [heading])]) or None,
                [grid],
                [*_plainly_moved(rows, letter)],
            )
    yield Section(None, (), ["", *plain_sides(found), *_not_shown(left_out)])


def metric_name(row: MetricComparison) -> str:
    """Return the plain name of a row's metric, below a heading with its group."""
    return plain_name(row.metric)


def conclusions(found: Comparisons) -> Iterator[str]:
    """Yield the conclusion, and of several comparisons one for each."""
    yield found.conclusion
    for (letter, _), one in zip(found.letters[1:], found, strict=True):
        if len(found) > 1:
            sentence = str(one.concluded(letter))
            yield sentence if sentence.startswith(f"{letter} is ") else f"{letter}: {sentence}"


def _tables(
    comparison: Comparison, *, every: bool
) -> Iterator[tuple[str | None, list[MetricComparison], int]]:
    """Yield a heading, the rows below it, and the number of metrics that are left out.

    All records and the groups are the rows of one table of the first metric, unless all metrics are
    shown.
    """
    valued = in_order([row for row in comparison.every if row.pairs])
    metrics = dict.fromkeys(row.metric for row in valued)
    if not valued:
        return
    if comparison.by is not None and not every:
        first = valued[0].metric
        own = [row for row in valued if row.metric is first]
        yield f"{plain_name(first)}, by {comparison.by}", own, len(metrics) - 1
        return
    for group, rows in comparison.by_group.items():
        heading = None if group is None else f"{comparison.by}: {group}"
        own = [row for row in valued if row in rows]
        shown = own if every else in_headlines(own)
        yield heading, shown, len(metrics) - len(shown)


def _plainly_moved(rows: Sequence[MetricComparison], b: str) -> Iterator[str]:
    """Yield the records that moved most, but for metrics that are not compared."""
    moved = [row for row in rows if row.moved and row.verdict != "judge inconsistency"]
    if moved:
        yield f"Moved most, from A to {b}:"
    for row in moved:
        records = (f"{shortened(one.id)} {figure(one.a)} → {figure(one.b)}" for one in row.moved)
        yield f"  {row_name(row)}: {', '.join(records)}"


def plain_sides(found: Comparisons) -> Iterator[str]:
    """Yield the files, and the records that are not compared."""
    yield f"A is {found[0].a.name}"
    for (letter, side), one in zip(found.letters[1:], found, strict=True):
        yield f"{letter} is {side.name}: {one.counts.in_words(letter)}"
    signatures = dict.fromkeys(one for _, side in found.letters for one in side.signatures)
    yield from selection_warnings(signatures)


def _not_shown(left_out: int) -> Iterator[str]:
    more = f"{left_out} more metrics: --all. " if left_out else ""
    yield f"{more}Tests, settings and missing values: --details. A page: --html FILE."


def sections(found: Comparisons) -> Iterator[Section]:
    """Yield the sides, the figures of each group, what they are made of, and how to read them."""
    lines = [
        line
        for letter, side in found.letters
        for line in side_lines(letter, side.name, len(side.labels), side.signatures)
    ]
    if len(found) == 1:
        lines += _records(found[0], "B")
    yield Section(None, (), lines)
    for (letter, _), comparison in zip(found.letters[1:], found, strict=True):
        if len(found) > 1:
            yield Section(f"{letter} against A", (), [*_records(comparison, letter)])
        for group, part in comparison.by_group.items():
            heading = None if group is None else f"{comparison.by}: {group}"
            one = comparison.whole if group is None and comparison.whole else comparison
            yield Section(
                heading,
                [_figures(part, one, letter)],
                [*_notes(part, letter), *_inconsistencies(part), *_moved(part, letter)],
            )
    aliases = alias_note(row.metric for one in found for row in one.rows)
    yield Section(None, (), ["", *aliases, *_reading_aid(found)])


def side_lines(
    letter: str, name: str, labeled: int, signatures: Sequence[str], failed: int = 0
) -> Iterator[str]:
    """Yield the lines about one side."""
    failures = f", {failed} failed" if failed else ""
    yield f"{letter}: {labeled} labels of {name}{failures}"
    for signature in signatures:
        yield f"   {signature}"


def _records(comparison: Comparison, b: str) -> Iterator[str]:
    """Yield the numbers of records that are compared and of the others."""
    counts = comparison.counts
    yield counts.in_words(b)
    yield from selection_warnings((*comparison.a.signatures, *comparison.b.signatures))
    if comparison.same_sentences:
        return
    unlike = ", ".join(f"{count} differ in {part}" for part, count in counts.unlike.items())
    yield f"{counts.same} of them have the same sentences in both; {unlike}: flips not listed"


def _figures(rows: Sequence[MetricComparison], comparison: Comparison, b: str) -> Grid:
    """Return all figures, to be divided into as many tables as the width requires."""
    heads = ["pairs", "A", b, f"{b}-A", f"{100 * comparison.level:g} % interval", f"{b} is"]
    heads += ["p", "p Holm", "undefined pairs"]
    columns = [Column("metric", words=True), *(Column(h, words=h.endswith(" is")) for h in heads)]
    longest = max(len(row.metric.id) for row in rows)
    tests = comparison.tests
    return Grid(columns, [[_directed(row, longest), *_cells(row, tests)] for row in rows])


def _directed(row: MetricComparison, longest: int) -> str:
    """Return a metric's name and direction, aligned with those of the others."""
    return f"{row.metric.id:<{longest}} {arrow(higher_is_better=row.metric.higher_is_better)}"


def _cells(row: MetricComparison, tests: int) -> list[str]:
    verdict: str = row.verdict
    if verdict == "not significant after Holm":
        verdict += f" ({tests} tests)"
    return [
        str(row.pairs),
        number(row.mean_a),
        number(row.mean_b),
        number(row.difference, "+.4f"),
        NONE if isinstance(row.interval, Undefined) else _ends(row.interval),
        verdict,
        _p(row.p),
        _p(row.p_adjusted),
        str(row.undefined_pairs),
    ]


def _ends(found: Interval) -> str:
    return f"{found.low:+.4f} {found.high:+.4f}{found.mark}"


def _notes(rows: Sequence[MetricComparison], b: str) -> Iterator[str]:
    """Yield the reasons of missing values, and the number of questions if they repeat."""
    for row in rows:
        for letter, reasons in (("A", row.undefined_a), (b, row.undefined_b)):
            if reasons:
                yield f"undefined {row.metric.id} in {letter}: {reason_counts(reasons)}"
        yield from not_finite_notes(row.metric.id, row.not_finite)
        found = row.definedness
        if found.differs:
            yield (
                f"{row.metric.id} has a value only in A for {found.only_a} pairs, only in {b} for "
                f"{found.only_b}: p {_p(found.p)}, p Holm {_p(found.p_adjusted)}"
            )
    if shared := {row.questions for row in rows if row.questions is not None}:
        yield f"grouped by question ({max(shared)} groups)"


def _inconsistencies(rows: Sequence[MetricComparison]) -> Iterator[str]:
    """Yield what metrics of retrieval show about the judge where both sides retrieved the same."""
    for row in rows:
        found = row.judge_inconsistency
        if found is None:
            continue
        if found.flipped:
            lean = "" if found.lean is None else f", lean to sentences used {found.lean:+.3f}"
            flips = f", {percent(found.flipped, 1)} of {found.sentences} sentences flipped{lean}"
        else:
            flips = ""
        yield (
            f"judge inconsistency of {row.metric.id}: {found.pairs} pairs with the same question "
            f"and documents, no evidence about retrieval; mean absolute difference "
            f"{found.mean_absolute_difference:.4f}, {found.one_sided} with a value on one side only"
            f"{flips}"
        )


def _moved(rows: Sequence[MetricComparison], b: str) -> Iterator[str]:
    moved = [row for row in rows if row.moved]
    if moved:
        yield f"moved most, from A to {b}:"
    for row in moved:
        yield f"  {row.metric.id}"
        for record in row.moved:
            name = shortened(record.id)
            yield f"    {name}: {record.a:.4f} → {record.b:.4f}{_flips(record)}"


def _flips(record: Moved) -> str:
    """Return `` (relevant +0b -1a, supported -c)``, or an empty string."""
    parts = [
        " ".join(
            [flip.field, *(f"+{key}" for key in flip.gained), *(f"-{key}" for key in flip.lost)]
        )
        for flip in record.flips or ()
    ]
    return f" ({', '.join(parts)})" if parts else ""


def _reading_aid(comparisons: Comparisons) -> Iterator[str]:
    found = comparisons[0]
    intervals = (row.interval for one in comparisons for row in one.rows)
    yield from small_sample_note(one for one in intervals if isinstance(one, Interval))
    yield (
        f"a difference is certain where p Holm, over {found.tests} tests together, is at most "
        f"{1 - found.level:.4g}; intervals are those of p, before Holm, and hold for every "
        "distribution (docs/measured/intervals.md)"
    )
    yield f"labeler:{__version__}"


def _p(figure: float | Undefined) -> str:
    if isinstance(figure, Undefined):
        return NONE
    return f"<{_LEAST_SHOWN}" if figure < _LEAST_SHOWN else f"{figure:.4f}"


def diff_in_full(found: LabelDiff) -> Iterator[Section]:
    """Yield the sides, for all and each group flips and changes, and the largest changes."""
    sides = (("A", found.a), ("B", found.b))
    lines = (side_lines(n, one.name, one.labeled, one.signatures, one.failed) for n, one in sides)
    yield Section(lines=[*chain(*lines), *found.pairing])
    for group in found.groups:
        rows = [row for row in found.metrics if row.group == group]
        grids = [found.figures(group), *([_changes(rows)] if rows else [])]
        heading = None if group is None else f"{found.by}: {group}"
        yield Section(heading, grids, [*_undefined(rows)])
    aliases = alias_note(row.metric for row in found.metrics)
    yield Section(lines=[*_largest(found), "", *aliases, f"labeler:{__version__}"])


def _changes(rows: Sequence[MetricDiff]) -> Grid:
    heads = ("A", "B", "B-A", "changed", "of")
    return Grid(
        [Column("mean of", words=True), *map(Column, heads)],
        [
            [
                f"{row.metric.id} {arrow(higher_is_better=row.metric.higher_is_better)}",
                number(row.mean_a),
                number(row.mean_b),
                _signed(row.change),
                f"{row.changed:,}",
                f"{row.pairs:,}",
            ]
            for row in rows
        ],
    )


def _undefined(rows: Sequence[MetricDiff]) -> Iterator[str]:
    """Yield the numbers of pairs without a value."""
    for row in rows:
        reasons = [
            f"{letter} {reason_counts(counts)}"
            for letter, counts in (("A", row.undefined_a), ("B", row.undefined_b))
            if counts
        ]
        if reasons:
            yield f"{row.metric.id} over {row.pairs} pairs; undefined in {'; in '.join(reasons)}"


def _largest(found: LabelDiff) -> Iterator[str]:
    if found.records:
        yield "changed most, from A to B:"
    for record in found.records:
        flips = "1 flip" if len(record.flips) == 1 else f"{len(record.flips)} flips"
        yield f"  {shortened(record.id)}: {flips}"
        for line in (_signs(record.flips), _changed(record)):
            if line:
                yield f"    {line}"


def _signs(flips: Sequence[DecisionFlip]) -> str:
    """Return ``relevant +0b -1a; supported -c``: the decisions B's label gained and lost."""
    fields: dict[str, list[str]] = {}
    for flip in sorted(flips, key=lambda flip: FIELDS.index(flip.field)):
        sign = {"gained": "+", "lost": "-", "changed": "~"}[flip.direction]
        fields.setdefault(flip.field, []).append(f"{sign}{flip.key}")
    return "; ".join(
        f"{name.replace('_', ' ')} {_shortened(signs)}" for name, signs in fields.items()
    )


def _shortened(signs: Sequence[str]) -> str:
    more = f" and {len(signs) - _SHOWN_FLIPS} more" if len(signs) > _SHOWN_FLIPS else ""
    return " ".join(signs[:_SHOWN_FLIPS]) + more


def _changed(record: RecordDiff) -> str:
    moved = [
        (abs(change.b - change.a), change.metric, change.a, change.b)
        for change in record.changes
        if change.a is not None and change.b is not None and change.a != change.b
    ]
    moved.sort(key=lambda one: -one[0])
    more = f", and {len(moved) - _SHOWN_METRICS} more" if len(moved) > _SHOWN_METRICS else ""
    shown = (f"{name} {float(a):.4f} → {float(b):.4f}" for _, name, a, b in moved[:_SHOWN_METRICS])
    return ", ".join(shown) + more


def _signed(figure: Fraction | None) -> str:
    return "0" if figure == 0 else number(figure, "+.4f")
