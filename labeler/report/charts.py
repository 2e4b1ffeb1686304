"""Charts: values in, escaped SVG out.

``charts.css`` has the colors, sizes and strokes: a drawing contains only classes and places, since
a page allows no inline styles. Nothing is conveyed by color alone: bars, cells and dots stand next
to their numbers, and each chart has a table with the same numbers.
"""

from __future__ import annotations

import bisect
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from markupsafe import Markup

from labeler.sentences.display import plural

Filter = Mapping[str, object]
"""A filter of the list of records, as a ``data-filter`` names it."""

BINS = 10

WIDTH = 340
"""Width of a chart in its own units, which are pixels on a phone."""


class Chart(NamedTuple):
    """A chart and its table.

    Attributes:
        title: title of the chart.
        head: column names of the table.
        rows: rows of the table; the last cell is a count.
        drawing: the drawing.
        note: how many records the chart shows.
    """

    title: str
    head: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]
    drawing: Markup
    note: str = ""


class Bin(NamedTuple):
    """The values from ``low`` to below ``high``.

    Attributes:
        low: the lowest value.
        high: the first value above, or the highest value if ``closed``.
        closed: whether ``high`` belongs to the bin.
    """

    low: float
    high: float
    closed: bool = False

    def __str__(self) -> str:
        if self.low == self.high:
            return f"{self.low:g}"
        return f"{self.low:g} to {'' if self.closed else 'below '}{self.high:g}"

    def filter(self, metric: str) -> Filter:
        """Return the filter that selects the bin's records."""
        chosen: dict[str, object] = {"metric": metric, "low": self.low, "high": self.high}
        return chosen | {"closed": True} if self.closed else chosen


def bins_of(values: Sequence[float]) -> tuple[Bin, ...]:
    """Return bins of equal width that hold all values.

    Values that are all 0 or 1 make two bins, others from 0 to 1 ten tenths; the rest at most ten
    bins with round edges.
    """
    if all(value in (0, 1) for value in values):
        return (Bin(0.0, 0.0, closed=True), Bin(1.0, 1.0, closed=True))
    low, high = min(values), max(values)
    if low >= 0 and high <= 1:
        edges = [place / BINS for place in range(BINS + 1)]
    else:
        edges = _round_edges(low, high)
    pairs = list(pairwise(edges))
    return tuple(Bin(a, b, closed=place == len(pairs) - 1) for place, (a, b) in enumerate(pairs))


def _round_edges(low: float, high: float) -> list[float]:
    span = high - low
    if not math.isfinite(span) or span <= abs(high) * 1e-9:
        return [low, high]
    magnitude = 10.0 ** math.floor(math.log10(span / BINS))
    for factor in (1, 2, 2.5, 5, 10, 20):
        step = factor * magnitude
        first, last = math.floor(low / step), math.ceil(high / step)
        if last - first <= BINS:
            break
    return [round(place * step, 12) for place in range(first, last + 1)]


def _bin_place(bins: Sequence[Bin], value: float) -> int:
    """Return the index of the bin that holds a value."""
    return min(max(bisect.bisect_right([each.low for each in bins], value) - 1, 0), len(bins) - 1)


def count_bins(values: Sequence[float]) -> list[tuple[Bin, int]]:
    """Return bins that hold all values, ascending, with the number of values in each."""
    bins = bins_of(values)
    counts = Counter(_bin_place(bins, value) for value in values)
    return [(each, counts[place]) for place, each in enumerate(bins)]


_TOP, _PLOT, _FOOT, _SIDE = 18, 96, 20, 6
_SMALL_WIDTH, _SMALL_PLOT = 230, 56
_MAX_BAR = 72
"""Maximum width of a bar: wider ones look like areas."""


def histogram(
    metric: str,
    values: Sequence[float],
    name: str,
    filters: Sequence[Filter] = (),
    *,
    small: bool = False,
) -> Chart:
    """Draw the distribution of a metric: a bar for each bin, which filters the list of records.

    Args:
        metric: the metric's id.
        values: its values, at least one.
        name: prefix of the ids in the drawing, unique in the page.
        filters: filters added to a bar's.
        small: whether it is one of several charts in a row.
    """
    rows = count_bins(values)
    most = max(count for _, count in rows) or 1
    right, base = (_SMALL_WIDTH, _TOP + _SMALL_PLOT) if small else (WIDTH, _TOP + _PLOT)
    width = (right - 2 * _SIDE) / len(rows)
    drawn = []
    for place, (each, count) in enumerate(rows):
        if not count:
            continue
        left, height = _SIDE + place * width, max(count / most * (base - _TOP), 1)
        top, bar_width, middle = base - height, min(width - 3, _MAX_BAR), left + width / 2
        bar = (
            _rect("ground", left, 0, width, base)
            + _rect("bar", middle - bar_width / 2, top, bar_width, height, radius=1.5)
            + _text("count", middle, top - 4, brief(count))
        )
        drawn.append(_button(f"{metric} {each}", count, [each.filter(metric), *filters], bar))
    axis = tag("path", class_="axis", d=f"M{_SIDE} {base + 0.5}H{right - _SIDE}")
    ticks = _x_ticks([each for each, _ in rows], _SIDE, width, base + 14)
    words = f"{plural(len(values), 'record')} in {len(rows)} bins; the fullest holds {most:,}."
    title, size = f"Distribution of {metric}", (right, base + _FOOT)
    drawing = _drawing(name, title, words, size, Markup("").join([*drawn, axis, ticks]))
    return Chart(metric, (metric, "records"), rows, drawing)


_LEFT, _PLANE, _BELOW = 44, 290, 40
_PLANE_TOP = 4
_BASE = _PLANE_TOP + _PLANE
LEVELS = 5
"""Number of shades in a heat map."""


def heat_map(
    x: str,
    y: str,
    pairs: Sequence[tuple[float, float]],
    name: str,
    filters: Sequence[Filter] = (),
) -> Chart:
    """Draw counts of records by the bins of two metrics; each cell filters the list of records.

    Args:
        x: id of the horizontal metric.
        y: id of the vertical metric.
        pairs: values of both.
        name: prefix of the ids in the drawing, unique in the page.
        filters: filters added to a cell's.
    """
    x_bins, y_bins = bins_of([a for a, _ in pairs]), bins_of([b for _, b in pairs])
    counts = Counter((_bin_place(x_bins, a), _bin_place(y_bins, b)) for a, b in pairs)
    most = max(counts.values())
    width, height = _PLANE / len(x_bins), _PLANE / len(y_bins)
    drawn, rows = _rect("plane", _LEFT, _PLANE_TOP, _PLANE, _PLANE), []
    for (i, j), count in sorted(counts.items()):
        left, top = _LEFT + i * width, _BASE - (j + 1) * height
        own = (x_bins[i], y_bins[j])
        # The square root, since most cells hold few records.
        level = min(LEVELS, 1 + int((LEVELS - 1) * math.sqrt(count / most) + 1e-9))
        cell = _rect(f"cell level{level}", left + 1, top + 1, width - 2, height - 2, radius=2)
        cell += _text(f"count level{level}", left + width / 2, top + height / 2 + 3.5, brief(count))
        chosen = [own[0].filter(x), own[1].filter(y), *filters]
        drawn += _button(f"{x} {own[0]}, {y} {own[1]}", count, chosen, cell)
        rows.append((*own, count))
    words = f"{plural(len(pairs), 'record')}; the fullest cell holds {most:,}."
    title = f"{y} against {x}"
    drawing = _drawing(name, title, words, _PLANE_SIZE, drawn + _axes(x_bins, y_bins, x, y))
    return Chart(title, (x, y, "records"), rows, drawing)


_PLANE_SIZE = (WIDTH, _BASE + _BELOW)


def _axes(x_bins: Sequence[Bin], y_bins: Sequence[Bin], x: str, y: str) -> Markup:
    """Draw the ticks and the names of both axes of a plane."""
    height, half = _PLANE / len(y_bins), _PLANE / 2
    y_ticks = Markup("").join(
        _text("tick end", _LEFT - 5, min(max(_BASE - place * height + 3.5, 13), _BASE), text)
        for place, _, text in _tick_labels(y_bins)
    )
    turned = {"class_": "name middle", "transform": "rotate(-90)"}
    names = _text("name middle", _LEFT + half, _BASE + 32, x)
    names += tag("text", y, **turned, x=-(_PLANE_TOP + half), y=12)
    return _x_ticks(x_bins, _LEFT, _PLANE / len(x_bins), _BASE + 14) + y_ticks + names


def _x_ticks(bins: Sequence[Bin], left: float, width: float, y: float) -> Markup:
    return Markup("").join(
        _text(f"tick {anchor}", left + x * width, y, text) for x, anchor, text in _tick_labels(bins)
    )


def _tick_labels(bins: Sequence[Bin]) -> list[tuple[float, str, str]]:
    """Return place in bin widths, anchor and text: below single values, else at the edges."""
    if all(each.low == each.high for each in bins):
        return [(place + 0.5, "middle", f"{each.low:g}") for place, each in enumerate(bins)]
    half = len(bins) // 2
    middle = [(half, "middle", f"{bins[half].low:g}")] if half else []
    return [
        (0, "start", f"{bins[0].low:g}"),
        *middle,
        (len(bins), "end", f"{bins[-1].high:g}"),
    ]


def reliability_plot(
    kind: str,
    bins: Sequence[tuple[float, float, int, float | None, float | None]],
    name: str,
) -> Chart:
    """Draw stated probabilities against the share that people confirm.

    A dot stands for each bin, larger for more verdicts; right answers lie on the diagonal.

    Args:
        kind: the kind of verdicts.
        bins: lowest and highest probability, verdicts, mean stated and observed share of each bin.
        name: prefix of the ids in the drawing, unique in the page.
    """
    counts, rows = [count for _, _, count, _, _ in bins], []
    drawn = _rect("plane", _LEFT, _PLANE_TOP, _PLANE, _PLANE)
    drawn += tag("path", class_="axis", d=f"M{_LEFT} {_BASE}L{_LEFT + _PLANE} {_PLANE_TOP}")
    for low, high, count, stated, observed in bins:
        if stated is None or observed is None:
            continue
        x, y = _LEFT + stated * _PLANE, _BASE - observed * _PLANE
        radius = 2 + 5 * math.sqrt(count / max(counts))
        is_low = y > _BASE - _PLANE / 2
        drawn += tag("circle", class_="dot", cx=x, cy=y, r=radius)
        drawn += _text("count", x, y - radius - 4 if is_low else y + radius + 12, brief(count))
        rows.append((f"{low:g} to {high:g}", f"{stated:.3f}", f"{observed:.3f}", count))
    tenths = [Bin(place / BINS, (place + 1) / BINS) for place in range(BINS)]
    drawn += _axes(tenths, tenths, "stated probability", "share confirmed by people")
    words = f"{plural(sum(counts), 'verdict')}; on the diagonal, people confirm as many as stated."
    title = f"{kind}: stated probability and people"
    head = ("stated", "mean stated", "people: yes", "verdicts")
    return Chart(title, head, rows, _drawing(name, title, words, _PLANE_SIZE, drawn))


_LINE, _LINE_HEIGHT, _MARGIN = 160, 16, 6


def draw_difference(
    difference: float, ends: tuple[float, float] | None, limit: float = 1.0
) -> Markup:
    """Draw a dot at a difference, its interval, and a line at 0.

    It stands next to its numbers and is hidden from screen readers.

    Args:
        difference: place of the dot.
        ends: ends of the interval, if there is one.
        limit: the largest difference that the drawing holds, in either direction.
    """
    middle, scale = _LINE_HEIGHT // 2, (-limit, limit)
    line = f"M{_MARGIN} {middle}H{_MARGIN + _LINE}M{_MARGIN + _LINE // 2} 0V{_LINE_HEIGHT}"
    drawn = tag("path", class_="axis", d=line) + _whiskers(ends, scale)
    place = _MARGIN + _along_line(difference, *scale)
    return _inline("range", drawn + tag("circle", class_="dot", cx=place, cy=middle, r=3.5))


_LIMITS = (0.05, 0.1, 0.2, 0.3, 0.5, 1.0)
"""Ends of the scale of differences of shares."""


def limit_of(distances: Iterable[float]) -> float:
    """Return the end of a scale that holds all distances from 0."""
    most = max(distances, default=1.0)
    return next((limit for limit in _LIMITS if most <= limit), math.ceil(most))


def _whiskers(ends: tuple[float, float] | None, scale: tuple[float, float]) -> Markup:
    if ends is None:
        return Markup("")
    low, high = (_short(_MARGIN + _along_line(end, *scale)) for end in ends)
    line = f"M{low} {_LINE_HEIGHT // 2}H{high}M{low} 2V14M{high} 2V14"
    return tag("path", class_="interval", d=line)


def scale_of(values: Sequence[float]) -> tuple[float, float]:
    """Return the round ends of a scale that holds 0 and all values; 0 to 1 if these lie in it."""
    low, high = min([0.0, *values]), max([0.0, *values])
    if low == 0 and high <= 1:
        return 0.0, 1.0
    edges = _round_edges(low, high)
    return edges[0], edges[-1]


def draw_bar(
    value: float,
    ends: tuple[float, float] | None = None,
    scale: tuple[float, float] = (0.0, 1.0),
) -> Markup:
    """Draw a bar as long as a value, with its interval; it stands next to its numbers.

    Args:
        value: end of the bar, which begins at 0.
        ends: ends of the interval, if there is one.
        scale: values at both ends of the drawing, which hold 0.
    """
    zero, end = sorted((_along_line(0, *scale), _along_line(value, *scale)))
    drawn = _rect("trough", _MARGIN, 4, _LINE, 8, radius=2)
    drawn += _rect("bar", _MARGIN + zero, 4, end - zero, 8, radius=2)
    return _inline("share", drawn + _whiskers(ends, scale))


def _along_line(value: float, low: float, high: float) -> float:
    """Return a value's distance from the start of a line that runs from low to high."""
    span = high - low
    share = 0.5 if span <= 0 else (value - low) / span
    return round(min(max(share, 0.0), 1.0) * _LINE, 2)


def filter_text(*filters: Filter) -> str:
    """Return the ``data-filter`` value of one filter, or of several that all hold."""
    value = filters[0] if len(filters) == 1 else list(filters)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def brief(count: int) -> str:
    """Return a count in at most four characters for any up to 999k: ``1.2k``, ``12k``."""
    if count < 1_000:  # noqa: PLR2004 - four digits do not fit into a bar
        return str(count)
    thousands = count / 1000
    return f"{thousands:.1f}k" if count < 9_950 else f"{thousands:.0f}k"  # noqa: PLR2004


# Elements.


def tag(kind: str, *inner: str, **attributes: str | float) -> Markup:
    """Return an element; texts that are not markup are escaped.

    Args:
        kind: name of the element.
        inner: its content.
        attributes: its attributes; ``class_`` stands for ``class`` and ``aria_label`` for
            ``aria-label``. Numbers get at most two decimals.
    """
    shown = Markup("").join(
        Markup(' {}="{}"').format(
            name.rstrip("_").replace("_", "-"), value if isinstance(value, str) else _short(value)
        )
        for name, value in attributes.items()
    )
    if not inner:
        return Markup("<{}{}/>").format(kind, shown)
    return Markup("<{0}{1}>{2}</{0}>").format(kind, shown, Markup("").join(inner))


def _inline(kind: str, inner: Markup) -> Markup:
    box = f"0 0 {_LINE + 2 * _MARGIN} {_LINE_HEIGHT}"
    hidden = {"aria_hidden": "true", "focusable": "false"}
    return tag("svg", inner, class_=f"inline {kind}", viewBox=box, **hidden)


def _drawing(name: str, title: str, words: str, size: tuple[int, int], inner: Markup) -> Markup:
    """Wrap a drawing, with title and description for screen readers."""
    names = tag("title", title, id=f"{name}-t") + tag("desc", words, id=f"{name}-d")
    return tag(
        "svg",
        names,
        inner,
        class_="drawing",
        viewBox=f"0 0 {size[0]} {size[1]}",
        role="group",
        aria_labelledby=f"{name}-t {name}-d",
    )


def _button(name: str, count: int, filters: Sequence[Filter], inner: Markup) -> Markup:
    """Wrap a part of a drawing that filters the list of records."""
    label = f"{name}: {plural(count, 'record')}"
    return tag(
        "g",
        tag("title", label),
        inner,
        class_="hit",
        role="button",
        tabindex="0",
        aria_label=label,
        data_filter=filter_text(*filters),
    )


def _rect(
    kind: str, x: float, y: float, width: float, height: float, *, radius: float = 0
) -> Markup:
    corners = {"rx": radius} if radius else {}
    return tag("rect", class_=kind, x=x, y=y, width=width, height=height, **corners)


def _text(kind: str, x: float, y: float, text: str) -> Markup:
    return tag("text", text, class_=kind, x=x, y=y)


def _short(value: float) -> str:
    """Return a number with at most two decimals."""
    return f"{value:.2f}".rstrip("0").rstrip(".")
