"""Tables for a terminal, in which no figure is ever cut, and those of metrics."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from labeler.calculators import Intervals, Metric, SummaryRow
from labeler.calculators.similarity import QUESTION_METRICS
from labeler.cli.terminal import Sheet, console
from labeler.sentences.characters import visible

_UP, _DOWN = "↑", "↓"
_GAP = 2
"""Spaces between two columns."""
_LEAST_NAME = 8
"""Columns below which a name is not folded further."""
_SINGLE = re.compile(f"[\x20-\x7e{_UP}{_DOWN}]*")
"""Text of which each character is a column wide, and for which no table of widths is needed."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes:
        head: what stands above it, in one or several lines.
        goes: 0 stays at any width; of the others, 1 is given up first where the width does not
            suffice, then 2, and so on.
        words: its cells are words, which begin on the left; figures end on the right.
    """

    head: str
    goes: int = 0
    words: bool = False

    @property
    def name(self) -> str:
        """The head on one line."""
        return self.head.replace("\n", " ")


@dataclass(frozen=True)
class Grid:
    """What a table shows. Only the cells of its first column, names, are ever folded.

    Attributes:
        columns: the columns.
        rows: a cell for each column.
    """

    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]

    def within(self, room: int) -> tuple[Grid, list[str]]:
        """Give up columns until the rest fits.

        Args:
            room: the width there is.

        Returns:
            What is left, which may still be wider, and the names of what was given up.
        """
        kept = list(range(len(self.columns)))
        given_up: list[str] = []
        while self._width(kept) > room and (
            optional := [place for place in kept if self.columns[place].goes]
        ):
            place = min(optional, key=lambda place: self.columns[place].goes)
            kept.remove(place)
            given_up.append(self.columns[place].name)
        return self._only(kept), given_up

    def parted(self, room: int) -> list[Grid]:
        """Part into grids that fit one below the other; each has the first column.

        Args:
            room: the width there is.
        """
        parts: list[list[int]] = [[0]]
        for place in range(1, len(self.columns)):
            if len(parts[-1]) > 1 and self._width([*parts[-1], place]) > room:
                parts.append([0])
            parts[-1].append(place)
        return [self._only(part) for part in parts]

    def block(self, room: int, *sections: Sequence[Sequence[str]]) -> Block:
        """The table, without a frame: its width is for words.

        Args:
            room: the width there is; where it does not suffice, names are folded.
            sections: the rows with a line between sections; by default all rows as one. Columns
                are as wide as all rows of the grid ask for.
        """
        widths = [self._column_width(place) for place in range(len(self.columns))]
        over = self._width(range(len(self.columns))) - room
        if over > 0:
            widths[0] = min(widths[0], max(_LEAST_NAME, widths[0] - over))
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
        """A row, on as many lines as its highest cell has; the others stand above, or low."""
        folded = [list(_folded(cell, width)) for cell, width in zip(cells, widths, strict=True)]
        words = [column.words or not place for place, column in enumerate(self.columns)]
        height = max(map(len, folded))
        filled = [[""] * (height - len(lines) if low else 0) + lines for lines in folded]
        for parts in zip_longest(*filled, fillvalue=""):
            yield (" " * _GAP).join(map(_padded, parts, widths, words))

    def _only(self, places: Sequence[int]) -> Grid:
        rows = [[row[place] for place in places] for row in self.rows]
        return Grid([self.columns[place] for place in places], rows)

    def _width(self, places: Sequence[int]) -> int:
        return sum(map(self._column_width, places)) + _GAP * (len(places) - 1)

    def _column_width(self, place: int) -> int:
        head = self.columns[place].head.split("\n")
        return max(_wide(visible(text)) for text in (*head, *(row[place] for row in self.rows)))


@dataclass(frozen=True)
class Block:
    """A table as lines of text.

    Attributes:
        head: what stands above the columns.
        body: a rule, and the rows.
    """

    head: str
    body: str


def show(out: Sheet, *blocks: Block) -> None:
    """Print tables, with an empty line before, between and after them.

    Nothing is cut off where even the narrowest table is wider than the terminal.

    Args:
        out: where.
        blocks: of :meth:`Grid.block`.
    """
    out.write("")
    for block in blocks:
        out.write(block.head, bold=True)
        out.write(block.body)
        out.write("")


def _wide(text: str) -> int:
    """Columns that a text takes on a terminal."""
    if _SINGLE.fullmatch(text):
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _padded(text: str, width: int, words: bool) -> str:
    gap = " " * (width - _wide(text))
    return text + gap if words else gap + text


def _folded(cell: str, width: int) -> Iterator[str]:
    """The lines of a cell, of which none is wider; broken between words where that is possible."""
    for line in visible(cell).expandtabs().split("\n"):
        begun = ""
        # Spaces that end a line would be looked through again from each of them.
        for word in re.findall(r" *[^ ]+", line.rstrip(" ")) or [""]:
            if _wide(begun + word) <= width:
                begun += word
                continue
            if begun:
                yield begun
            begun = ""
            for letter in word.lstrip(" "):
                if _wide(begun + letter) > width:
                    yield begun
                    begun = ""
                begun += letter
        yield begun


def given_up(names: Sequence[str]) -> Iterator[str]:
    """A note of the columns that the width did not suffice for; none if it did.

    Args:
        names: of the columns.
    """
    if names:
        yield f"left out, for want of width: {', '.join(names)} (--json has all)"


def print_summary(
    rows: Sequence[SummaryRow],
    version: str,
    intervals: Intervals | None = None,
    metrics: Sequence[Metric] = (),
    *,
    by: str | None = None,
) -> None:
    """Print a table for each way of labelling, and under it the reasons and what made it.

    Args:
        rows: the summaries.
        version: the program's.
        intervals: how the intervals of the rows were found, if they were.
        metrics: all that may be there; what labels lack the fields for is said.
        by: the column that the groups of the rows are of, to be named above each group.
    """
    out = Sheet()
    for label in dict.fromkeys(row.label for row in rows):
        part = [row for row in rows if row.label == label]
        spared = _print_groups(out, part, intervals, by)
        labelled = sum(row.labeled for row in part if row.metric is part[0].metric)
        made_by = f"{labelled} records by {label}" if label else "no record has a label"
        how = [_how(part, intervals)] if intervals else []
        notes = [*how, *_notes(part), *given_up(spared), *_left_out(part, metrics)]
        notes.append(f"{made_by}|labeler:{version}")
        out.write("\n".join(notes))


def _print_groups(
    out: Sheet, rows: Sequence[SummaryRow], intervals: Intervals | None, by: str | None
) -> list[str]:
    """Print a table for each group under its name, all alike; return the columns given up."""
    figures = _columns(intervals)
    all_columns = Grid(
        [Column("metric", words=True), Column(""), *figures],
        [
            [
                row.metric.id,
                _UP if row.metric.higher_is_better else _DOWN,
                *(cell(row) for cell in figures.values()),
            ]
            for row in rows
        ],
    )
    grid, spared = all_columns.within(out.width)
    for group in dict.fromkeys(row.group for row in rows):
        if group is not None:
            heading = group if by is None else f"{by}: {group}"
            out.write(heading)
        shown = zip(rows, grid.rows, strict=True)
        show(out, grid.block(out.width, [cells for row, cells in shown if row.group == group]))
    return spared


def _columns(intervals: Intervals | None) -> dict[Column, Callable[[SummaryRow], str]]:
    """The figures of a row, by their columns. Notes tell what is undefined or failed, and why."""
    columns: dict[Column, Callable[[SummaryRow], str]] = {
        Column("v", goes=1): lambda row: str(row.metric.version),
        Column("mean"): lambda row: _decimal(row.mean),
    }
    if intervals:
        columns[Column("interval")] = lambda row: (
            _span(row.interval.low, row.interval.high) if row.interval else "-"
        )
    return columns | {
        Column("pooled", goes=2): lambda row: _decimal(row.pooled),
        Column("defined", goes=5): lambda row: str(row.defined),
        Column("undefined", goes=3): lambda row: str(sum(row.undefined.values())),
        Column("failed", goes=4): lambda row: str(sum(row.failed.values())),
    }


def _how(rows: Sequence[SummaryRow], intervals: Intervals) -> str:
    """By which method the intervals were found, each method once."""
    found = dict.fromkeys(row.interval.method for row in rows if row.interval)
    words = [method.replace("_", " ") for method in found] or ["none, for want of records"]
    drawn = [f"{intervals.resamples:,} resamples", f"seed {intervals.seed}"]
    resampled = f" ({', '.join(drawn)})" if any(name.startswith("bca") for name in found) else ""
    together = f", records drawn by {intervals.group}" if intervals.group else ""
    level = f"{intervals.level * 100:g} % intervals of the mean"
    return f"{level}: {', '.join(words)}{resampled}{together}"


def _span(low: float, high: float) -> str:
    return f"{low:.3f}-{high:.3f}"


def _notes(rows: Sequence[SummaryRow]) -> Iterator[str]:
    """Why values are missing, each reason once for each metric; failures concern all metrics."""
    undefined: dict[str, Counter[str]] = {}
    failed: Counter[str] = Counter()
    for row in rows:
        undefined.setdefault(row.metric.id, Counter()).update(row.undefined)
        if row.metric is rows[0].metric:
            failed.update(row.failed)
    for metric, reasons in undefined.items():
        if reasons:
            yield f"undefined {metric}: {_reasons(reasons)}"
    if failed:
        yield f"failed: {_reasons(failed)}"
    for group in dict.fromkeys(row.group for row in rows):
        ends = [
            f"{row.metric.id} {_span(*row.bounds)}"
            for row in rows
            if row.group == group and row.bounds
        ]
        if ends:
            where = "" if group is None else f"{group}: "
            yield f"mean if the failed had values from 0 to 1: {where}{', '.join(ends)}"


def _left_out(rows: Sequence[SummaryRow], metrics: Sequence[Metric]) -> Iterator[str]:
    """Which profile would give the metrics that these labels lack the fields for."""
    have = {row.metric.id for row in rows}
    lacking = Counter(metric.profile.name for metric in metrics if metric.id not in have)
    if lacking and have.intersection(metric.id for metric in metrics):
        more = ", ".join(f"{count} with --profile {name}" for name, count in lacking.items())
        yield f"metrics that need richer labels: {more} (labeler metrics --list)"


def _decimal(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _reasons(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {reason}" for reason, count in counts.items())


def print_metrics(metrics: Sequence[Metric]) -> None:
    """Print the catalog: id, direction, version, what gives it, formula, needs, source."""
    from rich.table import Table

    table = Table(show_lines=True)
    table.add_column("metric", no_wrap=True)
    table.add_column("")
    table.add_column("formula, label fields, source", overflow="fold")
    for metric in metrics:
        asked = (
            "labeler similarity" if metric in QUESTION_METRICS else f"profile {metric.profile.name}"
        )
        table.add_row(
            f"{metric.id}\nv{metric.version}, {asked}",
            _UP if metric.higher_is_better else _DOWN,
            f"{metric.formula}\nneeds {', '.join(metric.needs)}\nsource: {metric.source}",
        )
    console().print(table)
