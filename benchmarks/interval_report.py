"""Tables of simulated coverage: counts, cells, and parts that an interrupted run keeps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from labeler.calculators.intervals import Interval
from labeler.calculators.significance import Undefined

FLOOR = 0.93
"""Least coverage of intervals without a mark."""
MARK = "short"
"""The mark of coverage that falls short of it."""


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

    def figures(self) -> list[float]:
        """Return coverage, mean width and the shares with a mark and without an interval."""
        per = max(1, self.made)
        return [self.inside, self.width / per, self.small / per, self.missing / self.drawn]

    def cells(self) -> str:
        """Return the cells of a line, without its name."""
        inside, width, small, none = self.figures()
        per, short = max(1, self.made), f" {MARK}" if self.falls_short else ""
        now = [f"{inside:.1%}{short}", f"{self.above / per:.1%}", f"{self.below / per:.1%}"]
        now += [f"{width:.4f}", f"{small:.0%}", f"{none:.0%}"]
        return " | ".join(now)


HEAD = "coverage | above | below | width | marked | none"
SCIPY_HEAD = "scipy BCa: coverage | width | nan"
NO_SCIPY = "- | - | -"


class Table(NamedTuple):
    """A table of the report.

    Attributes:
        title: what stands above it.
        head: its columns.
        parts: functions that yield its lines, by name.
    """

    title: str
    head: str
    parts: Mapping[str, Callable[[], Iterator[str]]]


def report(tables: Iterable[Table], name: str, keep: Path | None = None) -> Iterator[str]:
    """Yield the lines of all tables.

    Args:
        tables: the tables.
        name: part of the names of the kept parts.
        keep: folder of the parts that an interrupted run has finished.
    """
    for number, table in enumerate(tables):
        names = table.head.split(" | ")
        rule = ("---" if name in TEXTS else "--:" for name in names)
        yield from (table.title, "", f"| {table.head} |", f"|{'|'.join(rule)}|")
        for place, make in enumerate(table.parts.values()):
            yield kept(keep, f"{name} {number} {place}", make)
        yield ""


TEXTS = {"values", "population", "differences", "records", "scores", "coefficient", "method"}
TEXTS |= {"verdicts", "lengths"}
"""Columns that are set to the left."""


def kept(folder: Path | None, name: str, make: Callable[[], Iterable[str]]) -> str:
    """Return the lines that an interrupted run has left, or make them."""
    file = folder / name if folder else None
    if file and file.exists():
        return file.read_text(encoding="utf-8")
    text = "\n".join(make())
    if file:
        partial_file = file.with_suffix(".partial")
        partial_file.write_text(text, encoding="utf-8")
        partial_file.replace(file)
    return text
