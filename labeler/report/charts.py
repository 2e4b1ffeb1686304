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
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup

Filter = Mapping[str, object]
"""A filter of the list of records, as a ``data-filter`` names it."""

BINS = 10

WIDTH = 340
"""Width of a chart in its own units, which are pixels on a phone."""


@dataclass(frozen=True, slots=True)
class Bin:
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


_TOP, _PLOT, _FOOT, _SIDE = 18, 96, 20, 6
_SMALL_WIDTH, _SMALL_PLOT = 230, 56
_MAX_BAR = 72
"""Maximum width of a bar: wider ones look like areas."""


@dataclass(frozen=True)
class Histogram:
    """Counts of values by bin.

    Attributes:
        metric: the metric's id.
        bins: the bins, ascending.
        counts: number of values in each bin.
    """

    metric: str
    bins: tuple[Bin, ...]
    counts: tuple[int, ...]

    @classmethod
    def of(cls, metric: str, values: Sequence[float]) -> Histogram:
        """Count values."""
        bins = bins_of(values)
        counts = Counter(_bin_place(bins, value) for value in values)
        return cls(metric, bins, tuple(counts[place] for place in range(len(bins))))

    @property
    def title(self) -> str:
        """Title of the chart."""
        return self.metric

    @property
    def head(self) -> tuple[str, ...]:
        """Column names of the table."""
        return self.metric, "records"

    @property
    def rows(self) -> list[tuple[Bin, int]]:
        """Rows of the table."""
        return list(zip(self.bins, self.counts, strict=True))

    def draw(self, name: str, filters: Sequence[Filter] = (), *, small: bool = False) -> Markup:
        """Draw bars with their counts above them; each filters the list of records.

        Args:
            name: prefix of the ids in the drawing, unique in the page.
            filters: filters added to that of a bar.
            small: whether it is one of several charts in a row.
        """
        most = max(self.counts, default=0) or 1
        right, base = (_SMALL_WIDTH, _TOP + _SMALL_PLOT) if small else (WIDTH, _TOP + _PLOT)
        width = (right - 2 * _SIDE) / len(self.bins)
        bars = Markup("").join(
            self._draw_bar(place, count / most, width, base, filters)
            for place, count in enumerate(self.counts)
            if count
        )
        axis = Markup('<path class="axis" d="M{} {}H{}"/>').format(_SIDE, base + 0.5, right - _SIDE)
        return _drawing(
            name,
            f"Distribution of {self.metric}",
            f"{sum(self.counts):,} records in {len(self.bins)} bins; the fullest holds {most:,}.",
            (right, base + _FOOT),
            bars + axis + _x_ticks(self.bins, _SIDE, width, base + 14),
        )

    def _draw_bar(
        self, place: int, share: float, width: float, base: float, filters: Sequence[Filter]
    ) -> Markup:
        bin_, count = self.bins[place], self.counts[place]
        left, height = _SIDE + place * width, max(share * (base - _TOP), 1)
        top, bar_width = base - height, min(width - 3, _MAX_BAR)
        middle = left + width / 2
        drawn = (
            _rect("ground", left, 0, width, base)
            + _rect("bar", middle - bar_width / 2, top, bar_width, height, radius=1.5)
            + _text("count", middle, top - 4, brief(count))
        )
        return _button(f"{self.metric} {bin_}", count, [bin_.filter(self.metric), *filters], drawn)


_LEFT, _HEAT, _BELOW = 44, 290, 40
_HEAT_TOP = 4
LEVELS = 5
"""Number of shades in a heat map."""


@dataclass(frozen=True)
class Heat:
    """A heat map: counts of records by the bins of two metrics.

    Attributes:
        x: id of the horizontal metric.
        y: id of the vertical metric.
        x_bins: bins of the horizontal metric.
        y_bins: bins of the vertical metric.
        counts: number of records by the indexes of both bins, without zeros.
    """

    x: str
    y: str
    x_bins: tuple[Bin, ...]
    y_bins: tuple[Bin, ...]
    counts: Mapping[tuple[int, int], int]

    @classmethod
    def of(cls, x: str, y: str, pairs: Sequence[tuple[float, float]]) -> Heat:
        """Count pairs of values."""
        x_bins, y_bins = bins_of([a for a, _ in pairs]), bins_of([b for _, b in pairs])
        counts = Counter((_bin_place(x_bins, a), _bin_place(y_bins, b)) for a, b in pairs)
        return cls(x, y, x_bins, y_bins, dict(sorted(counts.items())))

    @property
    def title(self) -> str:
        """Title of the chart."""
        return f"{self.y} against {self.x}"

    @property
    def head(self) -> tuple[str, ...]:
        """Column names of the table."""
        return self.x, self.y, "records"

    @property
    def rows(self) -> list[tuple[Bin, Bin, int]]:
        """Rows of the table."""
        return [(self.x_bins[i], self.y_bins[j], n) for (i, j), n in self.counts.items()]

    def draw(self, name: str, filters: Sequence[Filter] = ()) -> Markup:
        """Draw cells with their counts, darker for more; each filters the list of records.

        Args:
            name: prefix of the ids in the drawing, unique in the page.
            filters: filters added to those of a cell.
        """
        most = max(self.counts.values(), default=1)
        cells = Markup("").join(
            self._draw_cell(cell, level_of(count, most), filters)
            for cell, count in self.counts.items()
        )
        plane = _rect("plane", _LEFT, _HEAT_TOP, _HEAT, _HEAT)
        return _drawing(
            name,
            self.title,
            f"{sum(self.counts.values()):,} records; the fullest cell holds {most:,}.",
            (WIDTH, _HEAT_TOP + _HEAT + _BELOW),
            plane + cells + _axes(self.x_bins, self.y_bins, self.x, self.y),
        )

    def _draw_cell(self, cell: tuple[int, int], level: int, filters: Sequence[Filter]) -> Markup:
        (i, j), count = cell, self.counts[cell]
        width, height = _HEAT / len(self.x_bins), _HEAT / len(self.y_bins)
        left, top = _LEFT + i * width, _HEAT_TOP + _HEAT - (j + 1) * height
        drawn = _rect(
            f"cell level{level}", left + 1, top + 1, width - 2, height - 2, radius=2
        ) + _text(f"count level{level}", left + width / 2, top + height / 2 + 3.5, brief(count))
        x, y = self.x_bins[i], self.y_bins[j]
        filters = [x.filter(self.x), y.filter(self.y), *filters]
        return _button(f"{self.x} {x}, {self.y} {y}", count, filters, drawn)


def _axes(x_bins: Sequence[Bin], y_bins: Sequence[Bin], x: str, y: str) -> Markup:
    """Draw the ticks and the names of both axes of a plane."""
    base, height = _HEAT_TOP + _HEAT, _HEAT / len(y_bins)
    y_ticks = Markup("").join(
        _text("tick end", _LEFT - 5, min(max(base - place * height + 3.5, 13), base), text)
        for place, _, text in _tick_labels(y_bins)
    )
    names = Markup(
        '<text class="name middle" x="{}" y="{}">{}</text>'
        '<text class="name middle" transform="rotate(-90)" x="{}" y="12">{}</text>'
    ).format(_LEFT + _HEAT / 2, base + 32, x, -(_HEAT_TOP + _HEAT / 2), y)
    return _x_ticks(x_bins, _LEFT, _HEAT / len(x_bins), base + 14) + y_ticks + names


def level_of(count: int, most: int) -> int:
    """Return the shade of a cell, from 1 to :data:`LEVELS`.

    It follows the square root, since most cells hold few records.
    """
    return min(LEVELS, 1 + int((LEVELS - 1) * math.sqrt(count / most) + 1e-9))


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


@dataclass(frozen=True)
class ReliabilityPlot:
    """A reliability diagram: stated probabilities against the share that people confirm.

    Attributes:
        kind: the kind of verdicts.
        bins: lowest and highest probability, verdicts, mean stated and observed share of each bin.
    """

    kind: str
    bins: Sequence[tuple[float, float, int, float | None, float | None]]

    @property
    def title(self) -> str:
        """Title of the chart."""
        return f"{self.kind}: stated probability and people"

    @property
    def head(self) -> tuple[str, ...]:
        """Column names of the table."""
        return "stated", "mean stated", "people: yes", "verdicts"

    @property
    def rows(self) -> list[tuple[str, str, str, int]]:
        """Rows of the table."""
        return [
            (f"{low:g} to {high:g}", f"{stated:.3f}", f"{observed:.3f}", count)
            for low, high, count, stated, observed in self.bins
            if stated is not None and observed is not None
        ]

    def draw(self, name: str) -> Markup:
        """Draw a dot for each bin, larger for more verdicts, and the diagonal of right answers.

        Args:
            name: prefix of the ids in the drawing, unique in the page.
        """
        counts = [count for _, _, count, _, _ in self.bins]
        base, drawn = _HEAT_TOP + _HEAT, _rect("plane", _LEFT, _HEAT_TOP, _HEAT, _HEAT)
        drawn += Markup('<path class="axis" d="M{} {}L{} {}"/>').format(
            _LEFT, base, _LEFT + _HEAT, _HEAT_TOP
        )
        for _, _, count, stated, observed in self.bins:
            if stated is not None and observed is not None:
                x, y = _LEFT + stated * _HEAT, base - observed * _HEAT
                radius = 2 + 5 * math.sqrt(count / max(counts))
                dot = Markup('<circle class="dot" cx="{}" cy="{}" r="{}"/>')
                drawn += dot.format(*map(_short, (x, y, radius)))
                low = y > base - _HEAT / 2
                drawn += _text("count", x, y - radius - 4 if low else y + radius + 12, brief(count))
        tenths = [Bin(place / BINS, (place + 1) / BINS) for place in range(BINS)]
        return _drawing(
            name,
            self.title,
            f"{sum(counts):,} verdicts; on the diagonal, people confirm as many as stated.",
            (WIDTH, _HEAT_TOP + _HEAT + _BELOW),
            drawn + _axes(tenths, tenths, "stated probability", "share confirmed by people"),
        )


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
    drawn = Markup('<path class="axis" d="M{} {}H{}M{} 0V{}"/>').format(
        _MARGIN, middle, _MARGIN + _LINE, _MARGIN + _LINE // 2, _LINE_HEIGHT
    )
    dot = Markup('<circle class="dot" cx="{}" cy="{}" r="3.5"/>')
    place = _short(_MARGIN + _along_line(difference, *scale))
    return _inline("range", drawn + _whiskers(ends, scale) + dot.format(place, middle))


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
    line = Markup('<path class="interval" d="M{} {}H{}M{} 2V14M{} 2V14"/>')
    return line.format(low, _LINE_HEIGHT // 2, high, low, high)


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


def _inline(kind: str, inner: Markup) -> Markup:
    element = Markup(
        '<svg class="inline {}" viewBox="0 0 {} {}" aria-hidden="true" focusable="false">{}</svg>'
    )
    return element.format(kind, _LINE + 2 * _MARGIN, _LINE_HEIGHT, inner)


def _drawing(
    name: str, title: str, description: str, size: tuple[int, int], inner: Markup
) -> Markup:
    """Wrap a drawing, with title and description for screen readers."""
    return Markup(
        '<svg class="drawing" viewBox="0 0 {} {}" role="group" aria-labelledby="{}-t {}-d">'
        '<title id="{}-t">{}</title><desc id="{}-d">{}</desc>{}</svg>'
    ).format(*size, name, name, name, title, name, description, inner)


def _button(name: str, count: int, filters: Sequence[Filter], inner: Markup) -> Markup:
    """Wrap a part of a drawing that filters the list of records."""
    label = f"{name}: {count:,} record{'s' * (count != 1)}"
    return Markup(
        '<g class="hit" role="button" tabindex="0" aria-label="{}" data-filter="{}">'
        "<title>{}</title>{}</g>"
    ).format(label, filter_text(*filters), label, inner)


def filter_text(*filters: Filter) -> str:
    """Return the ``data-filter`` value of one filter, or of several that all hold."""
    value = filters[0] if len(filters) == 1 else list(filters)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def brief(count: int) -> str:
    """Return a count in at most five characters for any up to 9,999k: ``12.3k``."""
    if count < 10_000:  # noqa: PLR2004 - five digits do not fit into a bar
        return str(count)
    thousands = count / 1000
    return f"{thousands:.1f}k" if thousands < 100 else f"{thousands:.0f}k"  # noqa: PLR2004


def _rect(
    kind: str, x: float, y: float, width: float, height: float, *, radius: float = 0
) -> Markup:
    corners = Markup(' rx="{}"').format(radius) if radius else ""
    return Markup('<rect class="{}" x="{}" y="{}" width="{}" height="{}"{}/>').format(
        kind, _short(x), _short(y), _short(width), _short(height), corners
    )


def _text(kind: str, x: float, y: float, text: str) -> Markup:
    element = Markup('<text class="{}" x="{}" y="{}">{}</text>')
    return element.format(kind, _short(x), _short(y), text)


def _short(value: float) -> str:
    """Return a coordinate with at most two decimals."""
    return f"{value:.2f}".rstrip("0").rstrip(".")
