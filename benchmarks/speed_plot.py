"""Plot time and memory by the number of labels as SVG, with logarithmic axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

Points = Sequence[tuple[int, float]]
"""Numbers of labels, ascending, and what they took."""

_WIDTH, _HEIGHT = 720, 440
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 680, 110, 380
_BEYOND = 0.01
"""Of a power of ten, how far a point may lie beyond an end of its axis."""
_DASHES = ("", ' stroke-dasharray="6 4"')
"""Lines come in twos: time, and memory, which is dashed."""


def slope_of(points: Points) -> float:
    """Return the slope of the line through the last two points, both axes logarithmic."""
    (x0, y0), (x1, y1) = points[-2:]
    return math.log(y1 / y0) / math.log(x1 / x0)


def plot(series: Mapping[str, Points]) -> str:
    """Draw several growths in one picture.

    Args:
        series: points by what they are of; of each, its slope is stated.
    """
    points = [point for own in series.values() for point in own]
    xs, across = _axis([x for x, _ in points], _LEFT, _RIGHT)
    ys, up = _axis([y for _, y in points], _BOTTOM, _TOP)
    grid = [_line((across(x), _BOTTOM), (across(x), _TOP)) for x in xs]
    grid += [_line((_LEFT, up(y)), (_RIGHT, up(y))) for y in ys]
    grid += [_text(across(x), _BOTTOM + 18, f"{x:,.0f}", "middle") for x in xs]
    grid += [_text(_LEFT - 6, up(y) + 4, f"{y:g}", "end") for y in ys]
    drawn = [
        part
        for number, (name, own) in enumerate(series.items())
        for part in _drawn(number, name, own, [(across(x), up(y)) for x, y in own])
    ]
    size = f'viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size}>',
            "<title>Growth of recomputing by the number of labels</title>",
            f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
            *(*grid, *drawn, _text(_WIDTH / 2, _HEIGHT - 14, "labels", "middle")),
            "</svg>\n",
        ]
    )


def _axis(
    values: Sequence[float], start: float, end: float
) -> tuple[list[float], Callable[[float], float]]:
    """Return the powers of ten round some values, and the place of a value between two ends."""
    low = math.floor(math.log10(min(values)))
    high = max(low + 1, math.ceil(math.log10(max(values)) - _BEYOND))

    def place(value: float) -> float:
        return round(start + (math.log10(value) - low) / (high - low) * (end - start), 1)

    return [10.0**power for power in range(low, high + 1)], place


def _drawn(
    number: int, name: str, points: Points, dots: Sequence[tuple[float, float]]
) -> Iterator[str]:
    style = f'stroke="#1f5fa8" stroke-width="2"{_DASHES[number % 2]}'
    path, row = " ".join(f"{x},{y}" for x, y in dots), 24 + 20 * number
    yield f'<polyline points="{path}" fill="none" {style}/>'
    yield from (f'<circle cx="{x}" cy="{y}" r="4" fill="#1f5fa8"/>' for x, y in dots)
    yield f'<line x1="{_LEFT}" y1="{row - 4}" x2="{_LEFT + 34}" y2="{row - 4}" {style}/>'
    yield _text(_LEFT + 42, row, f"{name}; slope {slope_of(points):.2f}", "start")


def _line(start: tuple[float, float], end: tuple[float, float]) -> str:
    return f'<line x1="{start[0]}" y1="{start[1]}" x2="{end[0]}" y2="{end[1]}" stroke="#dddddd"/>'


def _text(x: float, y: float, text: str, anchor: str) -> str:
    place = f'x="{x}" y="{y}" text-anchor="{anchor}"'
    return f'<text {place} font-family="sans-serif" font-size="12" fill="#333333">{text}</text>'
