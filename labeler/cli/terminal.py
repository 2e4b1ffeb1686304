"""Safe terminal output.

Documents, answers and explanations are untrusted text. Control sequences, direction overrides and
markup in them are escaped before they reach the terminal.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from labeler.extensions import offered, package_of
from labeler.sentences import display
from labeler.sentences.characters import plain_json, visible
from labeler.sentences.display import Block, Column, Display, Displayed, Grid, console, display_of
from labeler.version import NAME

if TYPE_CHECKING:
    from labeler.data.rows import Rows

Group = TypeVar("Group")


class LineWriter:
    """Writes lines of any length unbroken; loads rich only for a terminal.

    Args:
        stderr: True for standard error, False for standard output.
    """

    def __init__(self, *, stderr: bool = False) -> None:
        self._stream = sys.stderr if stderr else sys.stdout
        self._console = console(stderr=stderr) if self._stream.isatty() else None
        self.width = self._console.width if self._console else display.WIDTH
        """Width that tables should fit, in columns."""

    def write(self, text: str, *, bold: bool = False) -> None:
        """Write lines.

        Args:
            text: untrusted text, without the final line break.
            bold: True for bold print on a terminal.
        """
        if self._console is None:
            self._stream.write(visible(text) + "\n")
            return
        from rich.text import Text

        self._console.print(Text(visible(text), style="bold" if bold else ""), soft_wrap=True)


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
    by_group: dict[Group, list[list[Sequence[str]]]] = {}
    for group, rows in fitted:
        by_group.setdefault(group, []).append(rows)
    for group, own in by_group.items():
        if (line := heading(group)) is not None:
            out.write(line)
        _print_blocks(out, grid.block(out.width, *own))
    return dropped


def print_display(shown: Displayed | Display, more: str = "", *, stderr: bool = False) -> None:
    """Print what Python shows of a value, but in full.

    Args:
        shown: the value, or its display.
        more: a line below it, such as the options that show more.
        stderr: True for standard error.
    """
    out = LineWriter(stderr=stderr)
    view = shown if isinstance(shown, Display) else display_of(shown)
    out.write(view.title, bold=True)
    notes = [f"Warning: {view.warning}"] if view.warning else []
    if view.grid and view.grid.rows:
        grid, dropped = view.grid.fit(out.width)
        print_grids(out, grid)
        notes += dropped_note(dropped)
    out.write("\n".join((*notes, *view.notes, *filter(None, [more]))))


def dropped_note(names: Sequence[str]) -> Iterator[str]:
    """Yield a note that names the dropped columns, if there are any."""
    if names:
        yield f"columns hidden to fit the terminal: {', '.join(names)} (--json has all)"


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


def print_lines(lines: Sequence[str]) -> None:
    """Print lines of any length on standard output; print nothing if there are none."""
    if lines:
        LineWriter().write("\n".join(lines))


def print_json(value: object) -> None:
    """Print a value as one line of JSON, with control characters escaped."""
    sys.stdout.write(plain_json(json.dumps(value, ensure_ascii=False)) + "\n")


def notify(message: str) -> None:
    """Print a message on standard error."""
    sys.stderr.write(visible(message) + "\n")


def notify_read(rows: Rows) -> None:
    """Report how rows were read, once they were."""
    for text in rows.notices.values():
        notify(text)


def notify_repeated(records: int) -> None:
    """Report the number of records that were left out because they repeat, if there are any."""
    if records:
        from labeler.calculators.row_facts import REPEATED

        notify(REPEATED.format(records))


def notify_selected(labels: Iterable[str | None]) -> None:
    """Warn of labels that people selected and corrected; tables have the warning as a note."""
    from labeler.labels.signature import selection_warnings

    for warning in selection_warnings(labels):
        notify(warning)


def plural(count: int, noun: str) -> str:
    """Return a count and its noun, such as ``1 part`` or ``2 parts``."""
    return f"{count} {noun}{'s' * (count != 1)}"


def counted(counts: Mapping[str, int]) -> str:
    """Return `` (refusal 2, contract 1)``, or an empty string if there are no counts."""
    listed = ", ".join(f"{name} {count}" for name, count in counts.items())
    return f" ({listed})" if listed else ""


def print_declared(group: str) -> None:
    """Print the names that other installed packages declare, with their packages.

    Args:
        group: such as ``metrics``; see :func:`labeler.extensions.offered`.
    """
    for name, point in offered(group).items():
        if not (package := package_of(point)).startswith(f"{NAME} "):
            LineWriter().write(f"{visible(name)} of {visible(package)}")
