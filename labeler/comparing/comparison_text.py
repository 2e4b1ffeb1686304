"""Comparisons as tables and lines, which the terminal and the page show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from labeler.calculators.headline import plain_name
from labeler.calculators.statistics.intervals import Interval, Undefined
from labeler.calculators.summary_table import alias_note, not_finite_notes, small_sample_note
from labeler.comparing.comparison import Comparison, Comparisons, in_headlines, in_order
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


def overview(found: Comparisons, *, every: bool = False) -> Iterator[Section]:
    """Yield the metrics with values, the records that moved, and what is missing.

    Args:
        found: the comparisons.
        every: True for all metrics with values, False for headline metrics.
    """
    left_out = 0
    for one in found:
        against = [f"{one.letter} against A"] * (len(found) > 1)
        metrics = {row.metric for row in one.valued}
        for heading, rows, grid in _tables(one, every=every):
            left_out = max(left_out, len(metrics) - len({row.metric for row in rows}))
            title = ", ".join([*against, *filter(None, [heading])])
            yield Section(title or None, [grid], [*_plainly_moved(rows, one.letter)])
    more = f"{left_out} more metrics: --all. " if left_out else ""
    more += "Tests, settings and missing values: --details. A page: --html FILE."
    yield Section(None, (), ["", *found.records, more])


def _tables(
    found: Comparison, *, every: bool
) -> Iterator[tuple[str | None, list[MetricComparison], Grid]]:
    """Yield a heading, the rows below it, and their table.

    All records and the groups are the rows of one table of the first metric, unless all metrics are
    shown.
    """
    if found.by is not None and not every:
        for metric in [row.metric for row in found.valued[:1]]:
            rows = [row for row in found.valued if row.metric is metric]
            grid = found.figures(rows, lambda row: row.group_name)
            yield f"{plain_name(metric)}, by {found.by}", rows, grid
        return
    for group, own in found.by_group.items():
        rows = in_order([row for row in own if row.pairs])
        rows = rows if every else in_headlines(rows)
        if rows:
            heading = None if group is None else f"{found.by}: {group}"
            yield heading, rows, found.figures(rows, lambda row: plain_name(row.metric))


def _plainly_moved(rows: Sequence[MetricComparison], b: str) -> Iterator[str]:
    """Yield the records that moved most, but for metrics that are not compared."""
    moved = [row for row in rows if row.moved and row.verdict != "judge inconsistency"]
    if moved:
        yield f"Moved most, from A to {b}:"
    for row in moved:
        records = (f"{shortened(one.id)} {figure(one.a)} → {figure(one.b)}" for one in row.moved)
        yield f"  {row.name}: {', '.join(records)}"


def sections(found: Comparisons) -> Iterator[Section]:
    """Yield the sides, the figures of each group, what they are made of, and how to read them."""
    lines = [
        line
        for letter, side in found.sides.items()
        for line in side_lines(letter, side.name, len(side.labels), side.signatures)
    ]
    several = len(found) > 1
    yield Section(None, (), [*lines, *(() if several else _records(found[0]))])
    for one in found:
        if several:
            yield Section(f"{one.letter} against A", (), [*_records(one)])
        for group, rows in one.by_group.items():
            heading = None if group is None else f"{one.by}: {group}"
            tests = (one.whole if group is None and one.whole else one).tests
            notes = (_notes(rows, one.letter), _inconsistencies(rows), _moved(rows, one.letter))
            yield Section(heading, [_figures(rows, one, tests)], [*chain(*notes)])
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


def _records(comparison: Comparison) -> Iterator[str]:
    """Yield the numbers of records that are compared and of the others."""
    counts = comparison.counts
    yield counts.in_words(comparison.letter)
    yield from selection_warnings((*comparison.a.signatures, *comparison.b.signatures))
    if comparison.same_sentences:
        return
    unlike = ", ".join(f"{count} differ in {part}" for part, count in counts.unlike.items())
    yield f"{counts.same} of them have the same sentences in both; {unlike}: flips not listed"


def _figures(rows: Sequence[MetricComparison], comparison: Comparison, tests: int) -> Grid:
    """Return all figures, to be divided into as many tables as the width requires."""
    b = comparison.letter
    heads = ["pairs", "A", b, f"{b}-A", f"{100 * comparison.level:g} % interval", f"{b} is"]
    heads += ["p", "p Holm", "undefined pairs"]
    columns = [Column("metric", words=True), *(Column(h, words=h.endswith(" is")) for h in heads)]
    longest = max(len(row.metric.id) for row in rows)
    return Grid(columns, [_cells(row, longest, tests) for row in rows])


def _cells(row: MetricComparison, longest: int, tests: int) -> list[str]:
    """Return the cells of a metric; the directions of all stand below each other."""
    verdict: str = row.verdict
    if verdict == "not significant after Holm":
        verdict += f" ({tests} tests)"
    found = row.interval
    ends = (
        NONE if isinstance(found, Undefined) else f"{found.low:+.4f} {found.high:+.4f}{found.mark}"
    )
    return [
        f"{row.metric.id:<{longest}} {arrow(higher_is_better=row.metric.higher_is_better)}",
        str(row.pairs),
        number(row.mean_a),
        number(row.mean_b),
        number(row.difference, "+.4f"),
        ends,
        verdict,
        _p(row.p),
        _p(row.p_adjusted),
        str(row.undefined_pairs),
    ]


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
            values = f"{record.a:.4f} → {record.b:.4f}"
            yield f"    {shortened(record.id)}: {values}{_flips(record)}"


def _flips(record: Moved) -> str:
    """Return `` (relevant +0b -1a, supported -c)``, or an empty string."""
    parts = [
        " ".join([one.field, *(f"+{key}" for key in one.gained), *(f"-{key}" for key in one.lost)])
        for one in record.flips or ()
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
