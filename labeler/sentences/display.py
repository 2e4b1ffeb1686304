"""Short displays of values: tables and lines as text and HTML, for terminals and notebooks.

Documents, answers, ids and names are untrusted text. It is escaped here, and no display is longer
than :data:`LIMIT` characters, whatever the data.
"""

from __future__ import annotations

import math
import re
import reprlib
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from labeler.sentences.characters import visible

if TYPE_CHECKING:
    from rich.console import Console

LIMIT = 2_800
"""Characters of a display at most, in each form."""
WIDTH = 100
"""Columns of a table as text."""
LONGEST_ID = 80
"""Characters of an id in a line of text."""
LONGEST_NAME = 40
"""Characters of the name of a group in a table, or of an id in a sentence."""
NONE = "-"
"""Cell of an undefined value."""
_UP, _DOWN = "↑", "↓"
_GAP = 2
"""Spaces between two columns."""
_MIN_NAME_WIDTH = 8
"""Least width of the first column; narrower names are not folded."""
_NARROW = re.compile(f"[\x20-\x7e{_UP}{_DOWN}]*")
"""Text of characters that are one column wide, measured without loading rich."""
_MOST_ROWS, _LONGEST_CELL, _LONGEST_LINE = 24, 60, 400
_SMALLEST_SHARE = 0.001
"""Smallest share written as a number."""
_STYLE = (
    "<style>.labeler td,.labeler th{text-align:right!important;padding:2px 8px}"
    ".labeler .w{text-align:left!important}</style>"
)
_NOTES = '<p style="line-height:1.4"><small>{}</small></p>'


class Column(NamedTuple):
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
    """The cells of a table. Only the first column, the names, is folded, before one is dropped.

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
        kept, dropped = list(range(len(self.columns))), list[str]()
        optional = [index for index in kept if self.columns[index].drop]
        for index in sorted(optional, key=lambda index: self.columns[index].drop):
            if self._width(kept) > width:
                kept.remove(index)
                dropped.append(self.columns[index].name)
        return self._select(kept), dropped

    def without(self, head: str) -> Grid:
        """Return the table without a column."""
        return self._select([n for n, column in enumerate(self.columns) if column.head != head])

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

    def parts(self, width: int) -> tuple[list[Grid], list[str]]:
        """Return grids that fit, and the names of dropped columns; whole tables are split.

        Args:
            width: available width, in terminal columns.
        """
        if any(column.drop for column in self.columns):
            fitted, dropped = self.fit(width)
            return [fitted], dropped
        return self.split(width), []

    def block(self, width: int) -> tuple[str, str]:
        """Return the column headings, and a rule with the rows, as lines of text.

        There is no frame, which would take width from words.

        Args:
            width: available width; names are folded if the table is wider.
        """
        from rich.align import Align  # noqa: PLC0415 - as below
        from rich.box import SIMPLE_HEAD  # noqa: PLC0415 - slow to load
        from rich.table import Table  # noqa: PLC0415 - as above

        widths = list(self._widths)
        excess = sum(widths) + _GAP * (len(widths) - 1) - width
        if excess > 0:
            widths[0] = min(widths[0], max(_MIN_NAME_WIDTH, widths[0] - excess))
        table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
        for index, (column, own) in enumerate(zip(self.columns, widths, strict=True)):
            side: Literal["left", "right"] = "left" if column.words or not index else "right"
            head = Align(visible(column.head), side, vertical="bottom")
            table.add_column(head, width=own, justify=side, overflow="fold")
        for row in self.rows:
            table.add_row(*map(visible, row))
        shown = console()
        options = shown.options.update(width=sum(widths) + _GAP * len(widths))
        parts = shown.render_lines(table, options, pad=False)
        lines = ["".join(part.text for part in line).rstrip() for line in parts]
        rule = next(n for n, line in enumerate(lines) if set(line) == {"─"})
        return "\n".join(lines[:rule]), "\n".join(lines[rule:])

    def html(self) -> str:
        """Return the table as HTML."""
        from html import escape  # noqa: PLC0415 - loads all of HTML's entities

        marks = [' class="w"' if column.words else "" for column in self.columns]
        heads = [escape(visible(column.name)) for column in self.columns]
        parts = [f"<th{mark}>{head}" for mark, head in zip(marks, heads, strict=True)]
        rows = [
            "".join(
                f"<td{mark}>{escape(visible(cell))}" for mark, cell in zip(marks, row, strict=True)
            )
            for row in self.rows
        ]
        body = "".join(f"<tr>{row}" for row in ["".join(parts), *rows])
        return f'<table class="labeler">{body}</table>'

    def _select(self, indexes: Sequence[int]) -> Grid:
        rows = [[row[index] for index in indexes] for row in self.rows]
        return Grid([self.columns[index] for index in indexes], rows)

    def _width(self, indexes: Sequence[int]) -> int:
        """Return the width of columns, with names folded to :data:`LONGEST_NAME` columns."""
        widths = (
            min(self._widths[n], LONGEST_NAME) if n == 0 else self._widths[n] for n in indexes
        )
        return sum(widths) + _GAP * (len(indexes) - 1)

    @cached_property
    def _widths(self) -> Sequence[int]:
        """Width of each column."""
        return [
            max(
                _text_width(visible(text))
                for text in (*column.head.split("\n"), *(row[index] for row in self.rows))
            )
            for index, column in enumerate(self.columns)
        ]


class Section(NamedTuple):
    """A part of a long text: a heading, tables, and lines below them."""

    heading: str | None = None
    grids: Sequence[Grid] = ()
    lines: Sequence[str] = ()


def _text_width(text: str) -> int:
    """Return the width of a text in terminal columns."""
    if _NARROW.fullmatch(text):
        return len(text)
    from rich.cells import cell_len  # noqa: PLC0415 - slow, and seldom needed

    return cell_len(text)


def plural(count: int, noun: str) -> str:
    """Return a count and its noun, such as ``1 part`` or ``2,000 parts``."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


def as_sentence(text: str) -> str:
    """Return a text with a capital letter at its beginning and a full stop."""
    return f"{text[:1].upper()}{text[1:]}."


def are(count: int) -> str:
    """Return the verb after a count: ``is`` after 1, else ``are``."""
    return "is" if count == 1 else "are"


def have(count: int) -> str:
    """Return the verb after a count: ``has`` after 1, else ``have``."""
    return "has" if count == 1 else "have"


def number(value: object, form: str = ".4f") -> str:
    """Return a number as a cell; a dash if it is undefined."""
    if not isinstance(value, int | float | Fraction):
        return NONE
    return format(float(value), form.replace(".", "z."))  # z: no negative zero


def figure(value: object, digits: int = 2, *, signed: bool = False) -> str:
    """Return a number without a leading zero: ``.35``, ``-.02``, ``1``, or with its sign.

    It has more digits if only 0 were left of it otherwise.
    """
    if not isinstance(value, int | float | Fraction):
        return NONE
    if not value:
        return "0"
    if abs(value) == 1:
        digits = 0
    elif not round(value, digits):
        digits = digits_for(float(value))
    text = f"{float(value):{'+' if signed else ''}.{digits}f}"
    return text.replace("0.", ".", 1) if abs(float(text)) < 1 else text


def percent(share: float, digits: int = 0, *, signed: bool = False) -> str:
    """Return a share in percent: ``48 %``, or ``+48 %`` with its sign."""
    return f"{in_percent(share, digits, signed=signed)} %"


def in_percent(share: float, digits: int = 0, *, signed: bool = False) -> str:
    """Return a share in percent without the sign; neither 0 nor 100 for one that is not."""
    size, sign = abs(share), "+" if signed else ""
    if size in {0, 1} or round(100 * size, digits) not in {0, 100}:
        rounded = Decimal(f"{share:.{digits + 2}f}")  # as figure does: .445 is .45 and 45 %
        return f"{rounded.scaleb(2):{sign}.{digits}f}"
    if _SMALLEST_SHARE <= size <= 1 - _SMALLEST_SHARE:
        return f"{100 * share:{sign}.1f}"
    is_small = size < _SMALLEST_SHARE
    bound = 100 * math.copysign(_SMALLEST_SHARE if is_small else 1 - _SMALLEST_SHARE, share)
    return f"{'<' if is_small == (share > 0) else '>'}{bound:{sign}g}"


def digits_for(*values: float) -> int:
    """Return the least digits, from 2 to 6, at which no value is shown as 0 that is not 0."""
    return next((n for n in range(2, 6) if all(round(one, n) for one in values if one)), 6)


def reason_counts(counts: Mapping[str, int]) -> str:
    """Return ``2 refusal, 1 contract``."""
    return ", ".join(f"{count} {reason}" for reason, count in counts.items())


def arrow(*, higher_is_better: bool) -> str:
    """Return the direction of improvement."""
    return _UP if higher_is_better else _DOWN


def shortened(text: str, most: int = LONGEST_ID) -> str:
    """Return one visible line of at most some characters; a longer one loses its middle."""
    if len(text) > 4 * most:
        text = text[: 2 * most] + text[-2 * most :]
    text = visible(text).replace("\n", " ")
    half = (most - 1) // 2
    return text if len(text) <= most else f"{text[:half]}…{text[-half:]}"


def console(*, stderr: bool = False) -> Console:
    """Return a rich console without markup, highlighting or emoji codes."""
    from rich.console import Console  # noqa: PLC0415 - slow to load

    class Piped(Console):
        def on_broken_pipe(self) -> None:
            """Raise the error again; rich would exit with code 1."""
            raise BrokenPipeError

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else WIDTH
    return Piped(file=stream, markup=False, highlight=False, emoji=False, width=width)


def is_notebook() -> bool:
    """Return True in a kernel of Jupyter, whose cells show HTML."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None


@dataclass(frozen=True)
class Display:
    """What a terminal or a notebook shows of a value.

    Attributes:
        title: the first line.
        grid: a table below it.
        notes: lines below that, the most important first.
        warning: a line of its own, which is never left out.
    """

    title: str
    grid: Grid | None = None
    notes: Sequence[str] = ()
    warning: str = ""

    def text(self) -> str:
        """Return the display as lines of text."""
        return self._fitted(Display._text)

    def html(self) -> str:
        """Return the display as HTML without scripts."""
        return self._fitted(Display._html)

    def _fitted(self, render: Callable[[Display], str]) -> str:
        """Render as many rows as the limit allows, then as many notes."""
        cut = self._cut(_MOST_ROWS)
        while len(found := render(cut)) > LIMIT:
            if cut.grid and cut.grid.rows and len(cut.grid.rows) > len(cut.notes):
                cut = self._cut(len(cut.grid.rows) - 1, len(cut.notes))
            elif cut.notes:
                cut = replace(cut, notes=cut.notes[:-1])
            else:
                return render(Display(cut.title, warning=cut.warning))
        return found

    def _cut(self, rows: int, notes: int = 99) -> Display:
        """Return the display with short texts and the first rows and notes."""
        grid, kept = self.grid, list(self.notes[:notes])
        if grid is not None and len(grid.rows) > rows:
            left = len(grid.rows) - rows
            kept.insert(0, f"… and {left:,} more")
        if grid is not None:
            cells = [[shortened(cell, _LONGEST_CELL) for cell in row] for row in grid.rows[:rows]]
            grid = Grid(grid.columns, cells)
        lines = [shortened(note, _LONGEST_LINE) for note in kept]
        title, warning = (shortened(one, _LONGEST_LINE) for one in (self.title, self.warning))
        return Display(title, grid, lines, warning)

    def _text(self) -> str:
        parts = [self.title]
        if self.warning:
            parts.append(f"Warning: {self.warning}")
        if self.grid and self.grid.rows:
            parts += ["", *self.grid.fit(WIDTH)[0].block(WIDTH), ""]
        return "\n".join([*parts, *self.notes]).rstrip()

    def _html(self) -> str:
        from html import escape  # noqa: PLC0415 - as above

        parts = [f"<p><b>{escape(self.title)}</b></p>"]
        if self.warning:
            parts.append(f"<p><b>Warning:</b> {escape(self.warning)}</p>")
        if self.grid and self.grid.rows:
            parts.append(_STYLE + self.grid.html())
        if self.notes:
            parts.append(_NOTES.format("<br>".join(map(escape, self.notes))))
        return "".join(parts)


class View(NamedTuple):
    """Functions that return a fuller view than a :class:`Display`, for ``print`` and notebooks."""

    text: Callable[[Any], str]
    html: Callable[[Any], str]


VIEWS: dict[type, View] = {}
"""Fuller views by class, which packages above register."""


class Displayed:
    """A value that terminals and notebooks show as its :class:`Display`, or its fuller view."""

    __slots__ = ()

    def _display(self) -> Display:
        """Return what is shown."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return self._display().text()

    def __str__(self) -> str:
        view = VIEWS.get(type(self))
        return view.text(self) if view else repr(self)

    def _repr_html_(self) -> str:
        view = VIEWS.get(type(self))
        return view.html(self) if view else self._display().html()


def display_of(value: Displayed) -> Display:
    """Return the display of a value in full, for a command that prints it."""
    return value._display()  # noqa: SLF001 - of the class above


class Brief:
    """A dataclass with short values in its ``repr``; pass ``repr=False`` to the decorator."""

    __slots__ = ()

    def __repr__(self) -> str:
        shown = [(one.name, getattr(self, one.name)) for one in fields(self) if one.repr]  # type: ignore[arg-type]  # each is a dataclass
        return brief(type(self).__name__, shown)


_BRIEF = reprlib.Repr()
_BRIEF.maxstring = _BRIEF.maxother = 160
_BRIEF.maxdict = _BRIEF.maxtuple = _BRIEF.maxlist = 4
_BRIEF.maxlevel = 3


def brief(name: str, values: Iterable[tuple[str | None, Any]]) -> str:
    """Return the ``repr`` of a value with names and values of its fields, each of them cut."""
    parts = [f"{field}={shortened(_BRIEF.repr(value), 240)}" for field, value in values]
    return shortened(f"{name}({', '.join(parts)})", LIMIT)
