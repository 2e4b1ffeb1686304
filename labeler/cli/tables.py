"""Terminal tables that never cut off a number, and the tables of metrics."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import zip_longest
from typing import TYPE_CHECKING, TypeVar

from labeler.cli.terminal import LineWriter, console
from labeler.sentences.characters import visible

if TYPE_CHECKING:
    from labeler.calculators import Intervals, Metric, SummaryRow
    from labeler.calculators.statistics.intervals import Interval

Group = TypeVar("Group")

NONE = "-"
"""Cell of an undefined value."""
_UP, _DOWN = "↑", "↓"
_GAP = 2
"""Spaces between two columns."""
_MIN_NAME_WIDTH = 8
"""Least width of the first column; narrower names are not folded."""
_NARROW = re.compile(f"[\x20-\x7e{_UP}{_DOWN}]*")
"""Text of characters that are one column wide, measured without loading rich."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes:
        head: heading, of one or several lines.
        drop: order in which columns are dropped if the table is too wide: 1 first, then 2;
            0 is never dropped.
        words: True for text, aligned left; numbers are aligned right.
    """

    head: str
    drop: int = 0
    words: bool = False

    @property
    def name(self) -> str:
        """The heading on one line."""
        return self.head.replace("\n", " ")


@dataclass(frozen=True)
class Grid:
    """The cells of a table. Only the first column, the names, is folded.

    Attributes:
        columns: the columns.
        rows: one cell per column.
    """

    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]

    def fit(self, width: int) -> tuple[Grid, list[str]]:
        """Drop columns until the rest fits.

        Args:
            width: available width, in terminal columns.

        Returns:
            The remaining grid, which may still be too wide, and the names of dropped columns.
        """
        kept = list(range(len(self.columns)))
        dropped: list[str] = []
        while self._width(kept) > width and (
            optional := [index for index in kept if self.columns[index].drop]
        ):
            index = min(optional, key=lambda index: self.columns[index].drop)
            kept.remove(index)
            dropped.append(self.columns[index].name)
        return self._select(kept), dropped

    def split(self, width: int) -> list[Grid]:
        """Split into grids that fit below each other; each has the first column.

        Args:
            width: available width, in terminal columns.
        """
        parts: list[list[int]] = [[0]]
        for index in range(1, len(self.columns)):
            if len(parts[-1]) > 1 and self._width([*parts[-1], index]) > width:
                parts.append([0])
            parts[-1].append(index)
        return [self._select(part) for part in parts]

    def block(self, width: int, *sections: Sequence[Sequence[str]]) -> Block:
        """Return the table without a frame, which would take width from words.

        Args:
            width: available width; names are folded if the table is wider.
            sections: rows, with an empty line between sections; by default all rows as one.
                Column widths follow from all rows of the grid.
        """
        widths = [self._column_width(index) for index in range(len(self.columns))]
        excess = self._width(range(len(self.columns))) - width
        if excess > 0:
            widths[0] = min(widths[0], max(_MIN_NAME_WIDTH, widths[0] - excess))
        whole = sum(widths) + _GAP * (len(widths) - 1)
        head = self._lines([column.head for column in self.columns], widths, low=True)
        rule = "─" * whole
        parts = [
            [line for row in section for line in self._lines(row, widths)]
            for section in sections or (self.rows,)
        ]
        between = [" " * whole]
        body = [line for part in parts for line in (*between, *part)][1:]
        return Block("\n".join(head), "\n".join([rule, *body]))

    def _lines(
        self, cells: Sequence[str], widths: Sequence[int], *, low: bool = False
    ) -> Iterator[str]:
        """Yield the lines of a row; shorter cells are aligned at the top, or ``low``."""
        folded = [list(_folded(cell, width)) for cell, width in zip(cells, widths, strict=True)]
        words = [column.words or not index for index, column in enumerate(self.columns)]
        height = max(map(len, folded))
        filled = [[""] * (height - len(lines) if low else 0) + lines for lines in folded]
        for parts in zip_longest(*filled, fillvalue=""):
            yield (" " * _GAP).join(map(_padded, parts, widths, words))

    def _select(self, indexes: Sequence[int]) -> Grid:
        rows = [[row[index] for index in indexes] for row in self.rows]
        return Grid([self.columns[index] for index in indexes], rows)

    def _width(self, indexes: Sequence[int]) -> int:
        return sum(map(self._column_width, indexes)) + _GAP * (len(indexes) - 1)

    def _column_width(self, index: int) -> int:
        head = self.columns[index].head.split("\n")
        cells = (row[index] for row in self.rows)
        return max(_text_width(visible(text)) for text in (*head, *cells))


@dataclass(frozen=True)
class Block:
    """A table as lines of text.

    Attributes:
        head: the column headings.
        body: a rule and the rows.
    """

    head: str
    body: str


def print_grids(out: LineWriter, *grids: Grid) -> None:
    """Print tables, with an empty line before, between and after them.

    A table that is wider than the terminal is printed in full.
    """
    _print_blocks(out, *(grid.block(out.width) for grid in grids))


def _print_blocks(out: LineWriter, *blocks: Block) -> None:
    out.write("")
    for block in blocks:
        out.write(block.head, bold=True)
        out.write(block.body)
        out.write("")


def print_groups(
    out: LineWriter,
    columns: Sequence[Column],
    sections: Sequence[tuple[Group, Sequence[Sequence[str]]]],
    heading: Callable[[Group], str | None],
) -> list[str]:
    """Print one table per group, all with the same columns and widths.

    Args:
        out: the stream.
        columns: the columns.
        sections: a group and some of its rows; sections of a group are separated by an empty line.
        heading: returns the line above a group's table, or ``None``.

    Returns:
        Names of the columns dropped for lack of width.
    """
    grid, dropped = Grid(columns, [row for _, rows in sections for row in rows]).fit(out.width)
    remaining = iter(grid.rows)
    fitted = [(group, [next(remaining) for _ in rows]) for group, rows in sections]
    for group in dict.fromkeys(group for group, _ in fitted):
        if (line := heading(group)) is not None:
            out.write(line)
        own = (rows for other, rows in fitted if other == group)
        _print_blocks(out, grid.block(out.width, *own))
    return dropped


def _text_width(text: str) -> int:
    """Return the width of a text in terminal columns."""
    if _NARROW.fullmatch(text):
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _padded(text: str, width: int, words: bool) -> str:
    gap = " " * (width - _text_width(text))
    return text + gap if words else gap + text


def _folded(cell: str, width: int) -> Iterator[str]:
    """Yield lines of at most this width, broken between words if possible."""
    for line in visible(cell).expandtabs().split("\n"):
        current = ""
        # Trailing spaces would make this pattern quadratic.
        for word in re.findall(r" *[^ ]+", line.rstrip(" ")) or [""]:
            if _text_width(current + word) <= width:
                current += word
                continue
            if current:
                yield current
            current = ""
            for letter in word.lstrip(" "):
                if _text_width(current + letter) > width:
                    yield current
                    current = ""
                current += letter
        yield current


def dropped_note(names: Sequence[str]) -> Iterator[str]:
    """Yield a note that names the dropped columns, if there are any."""
    if names:
        yield f"left out, for want of width: {', '.join(names)} (--json has all)"


def alias_note(metrics: Iterable[Metric]) -> Iterator[str]:
    """Yield a note with the other names of metrics, once per quantity, if there are any."""
    distinct = {metric.quantity: metric for metric in metrics if metric.aliases}
    if distinct:
        named = (" = ".join((metric.id, *metric.aliases)) for metric in distinct.values())
        yield f"same quantity: {'; '.join(named)}"


def number(value: float | Fraction | None, form: str = ".4f") -> str:
    """Return a number as a cell; a dash if it is undefined."""
    return NONE if value is None else format(float(value), form)


def reason_counts(counts: Mapping[str, int]) -> str:
    """Return ``2 refusal, 1 contract``."""
    return ", ".join(f"{count} {reason}" for reason, count in counts.items())


def arrow(*, higher_is_better: bool) -> str:
    """Return the direction of improvement."""
    return _UP if higher_is_better else _DOWN


def print_summary(
    rows: Sequence[SummaryRow],
    version: str,
    intervals: Intervals | None = None,
    metrics: Sequence[Metric] = (),
    *,
    by: str | None = None,
) -> None:
    """Print a table for each judge configuration, with notes below.

    Args:
        rows: the summaries.
        version: version of the program.
        intervals: settings of the rows' intervals, if they have any.
        metrics: all requested metrics; a note counts those that need richer labels.
        by: the metadata column of the groups, named above each group.
    """
    out = LineWriter()
    for label in dict.fromkeys(row.label for row in rows):
        part = [row for row in rows if row.label == label]
        dropped = _print_groups(out, part, intervals, by)
        labelled = sum(row.labeled for row in part if row.metric is part[0].metric)
        made_by = f"{labelled} records by {label}" if label else "no record has a label"
        methods = (
            [_interval_methods(part, intervals), *_clusters(part, intervals)] if intervals else []
        )
        small = small_sample_note(row.interval for row in part)
        notes = [*methods, *small, *alias_note(row.metric for row in part), *_notes(part)]
        notes += [*dropped_note(dropped), *_unavailable(part, metrics)]
        notes.append(f"{made_by}|labeler:{version}")
        out.write("\n".join(notes))


def _print_groups(
    out: LineWriter, rows: Sequence[SummaryRow], intervals: Intervals | None, by: str | None
) -> list[str]:
    """Print a table for each group under its name; return the dropped columns."""
    cells = _cells(intervals)
    sections: dict[str | None, list[list[str]]] = {}
    for row in rows:
        sections.setdefault(row.group, []).append([cell(row) for cell in cells.values()])
    return print_groups(
        out,
        list(cells),
        list(sections.items()),
        lambda group: group if group is None or by is None else f"{by}: {group}",
    )


def _cells(intervals: Intervals | None) -> dict[Column, Callable[[SummaryRow], str]]:
    """Return functions that make a row's cells, by column."""
    cells: dict[Column, Callable[[SummaryRow], str]] = {
        Column("metric", words=True): lambda row: row.metric.id,
        Column(""): lambda row: arrow(higher_is_better=row.metric.higher_is_better),
        Column("v", drop=1): lambda row: str(row.metric.version),
        Column("mean"): lambda row: number(row.mean),
    }
    if intervals:
        cells[Column("interval")] = lambda row: (
            _span(row.interval.low, row.interval.high) + row.interval.mark if row.interval else NONE
        )
    return cells | {
        Column("pooled", drop=2): lambda row: number(row.pooled),
        Column("defined", drop=5): lambda row: str(row.defined),
        Column("undefined", drop=3): lambda row: str(sum(row.undefined.values())),
        Column("failed", drop=4): lambda row: str(sum(row.failed.values())),
    }


def _clusters(rows: Sequence[SummaryRow], intervals: Intervals) -> Iterator[str]:
    """Yield the number of groups of equal questions, for each group of rows that has such."""
    if intervals.group is None:
        for group, clusters in dict.fromkeys((row.group, row.clusters) for row in rows):
            if clusters is not None:
                where = "" if group is None else f"{group}: "
                yield f"{where}grouped by question ({clusters} groups)"


def _interval_methods(rows: Sequence[SummaryRow], intervals: Intervals) -> str:
    """Name the methods of the intervals, each once, and their settings."""
    found = dict.fromkeys(row.interval.method for row in rows if row.interval)
    words = [method.replace("_", " ") for method in found] or ["none, for want of records"]
    drawn = [f"{intervals.resamples:,} resamples", f"seed {intervals.seed}"]
    resampled = f" ({', '.join(drawn)})" if any(name.startswith("bca") for name in found) else ""
    together = f", records drawn by {intervals.group}" if intervals.group else ""
    level = f"{intervals.level * 100:g} % intervals of the mean"
    return f"{level}: {', '.join(words)}{resampled}{together}"


def _span(low: float, high: float) -> str:
    return f"{low:.3f}-{high:.3f}"


def interval_line(
    where: str, intervals: Mapping[str, Interval], questions: int | None
) -> Iterator[str]:
    """Yield a line of intervals by name, if there are any, with the units that were resampled."""
    if intervals:
        over = "over records" if questions is None else f"grouped by question ({questions} groups)"
        ends = [
            f"{name} {found.low:.4f} to {found.high:.4f}{found.mark}"
            for name, found in intervals.items()
        ]
        yield f"95 % intervals {over}, {where}: {', '.join(ends)}"


def small_sample_note(intervals: Iterable[Interval | None]) -> Iterator[str]:
    """Yield what the mark of small samples means, if an interval has it."""
    from labeler.calculators.statistics.intervals import MARK_NOTE

    if any(found is not None and found.small_sample for found in intervals):
        yield MARK_NOTE


def _notes(rows: Sequence[SummaryRow]) -> Iterator[str]:
    """Yield the reasons of missing values by metric, the failures, and bounds of the means."""
    undefined: dict[str, Counter[str]] = {}
    failed: Counter[str] = Counter()
    for row in rows:
        undefined.setdefault(row.metric.id, Counter()).update(row.undefined)
        if row.metric is rows[0].metric:
            failed.update(row.failed)
    for metric, reasons in undefined.items():
        if reasons:
            yield f"undefined {metric}: {reason_counts(reasons)}"
    if failed:
        yield f"failed: {reason_counts(failed)}"
    for group in dict.fromkeys(row.group for row in rows):
        bounds = [
            f"{row.metric.id} {_span(*row.bounds)}"
            for row in rows
            if row.group == group and row.bounds and row.rows > row.defined
        ]
        if bounds:
            where = "" if group is None else f"{group}: "
            yield f"mean with the lowest or highest missing values: {where}{', '.join(bounds)}"


def _unavailable(rows: Sequence[SummaryRow], metrics: Sequence[Metric]) -> Iterator[str]:
    """Yield a note that counts the metrics without their label fields, by profile."""
    present = {row.metric.id for row in rows}
    missing = Counter(metric.profile.name for metric in metrics if metric.id not in present)
    if missing and present.intersection(metric.id for metric in metrics):
        more = ", ".join(f"{count} with --profile {name}" for name, count in missing.items())
        yield f"metrics that need richer labels: {more} (labeler metrics --list)"


def print_metrics(metrics: Sequence[Metric]) -> None:
    """Print the catalog: id, version, profile or command, direction, formula, needs, source."""
    from labeler.calculators.similarity import QUESTION_METRICS

    rows = []
    for metric in metrics:
        source = (
            "labeler similarity" if metric in QUESTION_METRICS else f"profile {metric.profile.name}"
        )
        described = [metric.formula, f"needs {', '.join(metric.needs)}", f"source: {metric.source}"]
        rows.append(
            (
                f"{metric.id}\nv{metric.version}, {source}",
                arrow(higher_is_better=metric.higher_is_better),
                "\n".join((*described, *alias_note([metric]))),
            )
        )
    print_catalog(("metric", "", "formula, label fields, source"), rows)


def print_catalog(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a framed table of names and descriptions; the last column is folded."""
    from rich.table import Table

    table = Table(show_lines=True)
    table.add_column(headings[0], no_wrap=True)
    for heading in headings[1:]:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*row)
    console().print(table)
