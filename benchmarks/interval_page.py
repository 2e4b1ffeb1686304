"""Tables of simulated coverage, and the page of them: its conclusion, one row a population."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from textwrap import fill
from typing import NamedTuple

from harness import table
from labeler.calculators.intervals import Interval
from labeler.calculators.significance import Undefined
from labeler.sentences.display import percent

INTRODUCTION = Path(__file__).with_name("interval_introduction.md")
"""What stands above the tables, with a place for the conclusion."""
FLOOR = 0.93
"""Least coverage of intervals without a mark."""
MARK = "short"
"""The mark of coverage that falls short of it."""
OTHERS = {"published"}
"""Methods that are measured next to those of this package."""
TEXTS = {"values", "population", "differences", "records", "scores", "coefficient", "method"}
TEXTS |= {"verdicts", "lengths"}
"""Columns that name what a row is about."""
_SIZES = "n"
_LISTED = {"coverage", "mean", "certain drop", "drop not excluded"}
"""Columns of which every size has a figure in the page."""
_MOST = {"above", "below", "marked", "none"}
"""Columns of which the page has the largest figure."""
SCIPY = ("scipy BCa: coverage", "scipy BCa: width", "scipy BCa: nan")
"""Columns of scipy's figures."""

Row = dict[str, str]
"""Cells by the names of their columns."""


@dataclass
class Coverage:
    """How the intervals of one line fared, so far."""

    truth: float
    drawn: int = 0
    missing: int = 0
    above: int = 0
    """Intervals above the truth."""
    below: int = 0
    width: float = 0.0
    small: int = 0
    """Intervals that are marked."""

    def add(self, found: Interval | Undefined | None) -> None:
        """Count one interval; none is a miss that is reported apart."""
        self.drawn += 1
        if not isinstance(found, Interval):
            self.missing += 1
            return
        self.above += self.truth < found.low
        self.below += self.truth > found.high
        self.width += found.high - found.low
        self.small += found.small_sample

    @property
    def made(self) -> int:
        """Data sets with an interval."""
        return self.drawn - self.missing

    @property
    def inside(self) -> float:
        """Share of the intervals that hold the truth."""
        return 1 - (self.above + self.below) / self.made if self.made else math.nan

    @property
    def falls_short(self) -> bool:
        """True if coverage is below the floor by more than two Monte Carlo errors, unmarked."""
        error = math.sqrt(FLOOR * (1 - FLOOR) / max(1, self.made))
        return self.inside < FLOOR - 2 * error and self.small < self.made / 2

    def cells(self) -> Row:
        """Return the cells of a line, without its name."""
        per, short = max(1, self.made), f" {MARK}" if self.falls_short else ""
        return {
            "coverage": f"{self.inside:.1%}{short}",
            "above": f"{self.above / per:.1%}",
            "below": f"{self.below / per:.1%}",
            "width": f"{self.width / per:.4f}",
            "marked": f"{self.small / per:.0%}",
            "none": f"{self.missing / self.drawn:.0%}",
        }


class Table(NamedTuple):
    """A table of the report.

    Attributes:
        title: what stands above it.
        parts: functions that yield its rows, by name.
    """

    title: str
    parts: Mapping[str, Callable[[], Iterator[Row]]]


def measured(
    tables: Iterable[Table], name: str, keep: Path | None = None
) -> Iterator[tuple[str, list[Row]]]:
    """Yield the title and the rows of each table.

    Args:
        tables: the tables.
        name: part of the names of the kept parts.
        keep: folder of the parts that an interrupted run has finished.
    """
    for number, one in enumerate(tables):
        parts = enumerate(one.parts.values())
        rows = [kept(keep, f"{name} {number} {place}", make) for place, make in parts]
        yield one.title, [row for part in rows for row in part]


def kept(folder: Path | None, name: str, make: Callable[[], Iterable[Row]]) -> list[Row]:
    """Return the rows that an interrupted run has left, or make them."""
    file = folder / name if folder else None
    if file and file.exists():
        found: list[Row] = json.loads(file.read_text(encoding="utf-8"))
        return found
    rows = list(make())
    if file:
        partial_file = file.with_suffix(".partial")
        partial_file.write_text(json.dumps(rows), encoding="utf-8")
        partial_file.replace(file)
    return rows


def as_table(rows: Sequence[Row]) -> Iterator[str]:
    """Yield rows as a table, the columns of texts first."""
    left = next((n for n, name in enumerate(rows[0]) if name not in TEXTS), 0)
    return table(list(rows[0]), (row.values() for row in rows), left=left)


def page(found: Iterable[tuple[str, list[Row]]]) -> str:
    """Return the page of tables."""
    parts, rows = [], list[Row]()
    for title, own in found:
        rows += own
        parts += [title, "", *as_table(condensed(own)), ""]
    head = INTRODUCTION.read_text(encoding="utf-8").replace("{conclusion}", conclusion(rows))
    return "\n".join([head, *parts]).rstrip() + "\n"


def condensed(rows: Sequence[Row]) -> list[Row]:
    """Return one row for each population, drop and estimate, over all sizes."""
    if _SIZES not in rows[0]:
        return list(rows)
    names = [name for name in rows[0] if name in TEXTS - {"verdicts"} or name == "drop"]
    kinds: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        kinds.setdefault(tuple(row[name] for name in names), []).append(row)
    made = [dict(zip(names, kind, strict=True)) | _merged(own) for kind, own in kinds.items()]
    empty = {name for name in made[0] if all(row[name] == "0%" for row in made)}
    return [{name: cell for name, cell in row.items() if name not in empty} for row in made]


def _merged(rows: Sequence[Row]) -> Row:
    """Return the figures of one population over all sizes."""
    sizes = ", ".join(row[_SIZES] for row in rows)
    found: Row = {}
    for name in rows[0]:
        cells = [row[name] for row in rows]
        if name in _LISTED:
            found[f"{name} in %, n = {sizes}"] = " · ".join(map(_short, cells))
        elif name in _MOST:
            found[f"{name}, most"] = max(cells, key=_number)
        elif name == "width":
            found[name] = cells[0] if len(cells) == 1 else f"{cells[0]} to {cells[-1]}"
        elif name == SCIPY[0]:
            found["scipy BCa: least coverage"] = min(cells, key=_number)
        elif name == "contradictions":
            found[name] = str(sum(map(int, cells)))
    return found


def _short(cell: str) -> str:
    """Return a share without its sign; one that falls short is bold."""
    figure = cell.removesuffix(f" {MARK}").removesuffix("%")
    return f"**{figure}**" if cell.endswith(MARK) else figure


def _number(cell: str) -> float:
    found = re.match(r"[\d.]+", cell)
    return float(found[0]) if found else -1.0


def conclusion(rows: Iterable[Row]) -> str:
    """Return how the intervals of this package and the others fared, in words."""
    covered = [row for row in rows if "above" in row]
    own = [row for row in covered if row.get("method") not in OTHERS]
    short = sum(row["coverage"].endswith(MARK) for row in own)
    least = min(own, key=lambda row: _number(row["coverage"]))
    named = " and ".join(least[name] for name in least if name in TEXTS)
    text = (
        f"**The 95 % intervals of this package hold the truth in {_number(least['coverage']):g} % "
        f"of the data sets or more, in each of {len(own):,} simulated cases** (the least: {named}, "
        f"n = {least[_SIZES]}). {short or 'None'} of the unmarked ones falls short of "
        f"{percent(FLOOR)} by more than chance."
    )
    scipy = [row for row in own if _number(row.get(SCIPY[0], "")) >= 0]
    if scipy:
        shares = [_number(row[SCIPY[0]]) / 100 for row in scipy]
        wider = median(
            _number(row["width"]) / width for row in scipy if (width := _number(row[SCIPY[1]]))
        )
        text += (
            f" scipy's BCa is under {percent(FLOOR)} in {sum(one < FLOOR for one in shares)} of "
            f"the {len(scipy)} cases that both have, down to {percent(min(shares), 1)}. The price "
            f"is width: {wider:.2f} times scipy's in the median case."
        )
    return fill(text, 116, break_long_words=False)
