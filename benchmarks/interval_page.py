"""The page of simulated coverage: its conclusion, and one row a population for all sizes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import median
from textwrap import fill

from interval_report import FLOOR, MARK, TEXTS
from labeler.sentences.display import percent

INTRODUCTION = Path(__file__).with_name("interval_introduction.md")
"""What stands above the tables, with a place for the conclusion."""
OTHERS = {"published"}
"""Methods that are measured next to those of this package."""
_SIZES = "n"
_LISTED = {"coverage", "mean", "certain drop", "drop not excluded"}
"""Columns of which every size has a figure in the page."""
_MOST = {"above", "below", "marked", "none"}
"""Columns of which the page has the largest figure."""
_SCIPY, _SCIPY_WIDTH = "scipy BCa: coverage", "scipy BCa: width"

Row = dict[str, str]


def page(lines: Iterable[str]) -> str:
    """Return the page of a report's lines."""
    parts, rows = [], list[Row]()
    for part in _parts(lines):
        if isinstance(part, str):
            parts.append(part)
        else:
            rows += part
            parts += _table(condensed(part))
    head = INTRODUCTION.read_text(encoding="utf-8").replace("{conclusion}", conclusion(rows))
    return "\n".join([head, *parts]).rstrip() + "\n"


def _parts(lines: Iterable[str]) -> Iterator[str | list[Row]]:
    """Yield lines of text, and the rows of each table."""
    head, rows = list[str](), list[Row]()
    for line in "\n".join(lines).split("\n"):
        if not line.startswith("|"):
            if rows:
                yield rows
            head, rows = [], []
            yield line
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not head:
            head = cells
            if _SCIPY in head:  # the columns after it are scipy's too
                head[head.index(_SCIPY) + 1] = _SCIPY_WIDTH
        elif not line.startswith("|--"):
            rows.append(dict(zip(head, cells, strict=True)))
    if rows:
        yield rows


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
        elif name == _SCIPY:
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


def _table(rows: Sequence[Row]) -> Iterator[str]:
    yield f"| {' | '.join(rows[0])} |"
    yield f"|{'|'.join('---' if name in TEXTS else '--:' for name in rows[0])}|"
    for row in rows:
        yield f"| {' | '.join(row.values())} |"


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
    scipy = [row for row in own if _number(row.get(_SCIPY, "")) >= 0]
    if scipy:
        shares = [_number(row[_SCIPY]) / 100 for row in scipy]
        wider = median(
            _number(row["width"]) / width for row in scipy if (width := _number(row[_SCIPY_WIDTH]))
        )
        text += (
            f" scipy's BCa is under {percent(FLOOR)} in {sum(one < FLOOR for one in shares)} of "
            f"the {len(scipy)} cases that both have, down to {percent(min(shares), 1)}. The price "
            f"is width: {wider:.2f} times scipy's in the median case."
        )
    return fill(text, 116, break_long_words=False)
