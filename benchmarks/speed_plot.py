"""Plot time and memory by the number of labels as SVG, with logarithmic axes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

Points = Sequence[tuple[int, float]]
"""Numbers of labels, ascending, and what they took."""

_WIDTH, _HEIGHT = 720, 440
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 40, 110, 60
_BEYOND = 0.01
"""Of a power of ten, how far a point may lie beyond an end of its axis."""
_COLOUR = "#1f5fa8"
_DASHES = ("", "6 4")
"""Lines come in twos: time, and memory, which is dashed."""


class _Scale(NamedTuple):
    """Where a value stands on an axis whose ends are powers of ten."""

    low: int
    high: int
    start: float
    end: float

    def place(self, value: float) -> float:
        share = (math.log10(value) - self.low) / max(1, self.high - self.low)
        return round(self.start + share * (self.end - self.start), 1)


def slope_of(points: Points) -> float:
    """Slope of the line through the last two points, both axes logarithmic."""
    (x0, y0), (x1, y1) = points[-2:]
    return math.log(y1 / y0) / math.log(x1 / x0)


def plot(series: Mapping[str, Points]) -> str:
    """Draw several growths in one picture.

    Args:
        series: points by what they are of; of each, its slope is stated.
    """
    xs = [x for points in series.values() for x, _ in points]
    ys = [y for points in series.values() for _, y in points]
    across = _Scale(*_powers(xs), _LEFT, _WIDTH - _RIGHT)
    up = _Scale(*_powers(ys), _HEIGHT - _BOTTOM, _TOP)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">',
            "<title>Growth of recomputing by the number of labels</title>",
            f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
            *_grid(across, up),
            *(
                part
                for number, (name, points) in enumerate(series.items())
                for part in _drawn(number, name, points, across, up)
            ),
            _text(_WIDTH / 2, _HEIGHT - 14, "labels", "middle"),
            "</svg>",
            "",
        ]
    )


def _powers(values: Sequence[float]) -> tuple[int, int]:
    low, high = math.log10(min(values)), math.log10(max(values))
    return math.floor(low), math.ceil(high - _BEYOND)


def _grid(across: _Scale, up: _Scale) -> Iterator[str]:
    for power in range(across.low, across.high + 1):
        x = across.place(10**power)
        yield _line((x, up.start), (x, up.end))
        yield _text(x, up.start + 18, f"{10**power:,}", "middle")
    for power in range(up.low, up.high + 1):
        y = up.place(10.0**power)
        yield _line((across.start, y), (across.end, y))
        yield _text(across.start - 6, y + 4, f"{10.0**power:g}", "end")


def _drawn(number: int, name: str, points: Points, across: _Scale, up: _Scale) -> Iterator[str]:
    dash = _DASHES[number % 2]
    dots = [(across.place(x), up.place(y)) for x, y in points]
    path = " ".join(f"{x},{y}" for x, y in dots)
    style = f'stroke="{_COLOUR}" stroke-width="2"' + f' stroke-dasharray="{dash}"' * bool(dash)
    yield f'<polyline points="{path}" fill="none" {style}/>'
    yield from (f'<circle cx="{x}" cy="{y}" r="4" fill="{_COLOUR}"/>' for x, y in dots)
    row = 24 + 20 * number
    yield f'<line x1="{_LEFT}" y1="{row - 4}" x2="{_LEFT + 34}" y2="{row - 4}" {style}/>'
    legend = f"{name}; slope {slope_of(points):.2f}" if len(points) > 1 else name
    yield _text(_LEFT + 42, row, legend, "start")


def _line(start: tuple[float, float], end: tuple[float, float]) -> str:
    return f'<line x1="{start[0]}" y1="{start[1]}" x2="{end[0]}" y2="{end[1]}" stroke="#dddddd"/>'


def _text(x: float, y: float, text: str, anchor: str) -> str:
    place = f'x="{x}" y="{y}" text-anchor="{anchor}"'
    return f'<text {place} font-family="sans-serif" font-size="12" fill="#333333">{text}</text>'
