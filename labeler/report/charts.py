"""Charts: values in, SVG out, every text of it escaped.

Colours, sizes and strokes are those of ``charts.css``; a chart has classes and places only, for a
page allows no styles within. Nothing is told by colour alone: bars, cells and dots stand beside
their numbers, and each chart has a table with the same numbers.
"""

from __future__ import annotations

import bisect
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup

BINS = 10

WIDTH = 340
"""Of a chart in its own units, which are pixels on a telephone."""


@dataclass(frozen=True, slots=True)
class Bin:
    """Values from ``low`` to below ``high``.

    Attributes:
        low: the lowest value.
        high: the first value above, or the highest one if ``closed``.
        closed: whether ``high`` belongs to it.
    """

    low: float
    high: float
    closed: bool = False

    def __str__(self) -> str:
        if self.low == self.high:
            return number(self.low)
        return f"{number(self.low)} to {'' if self.closed else 'below '}{number(self.high)}"

    def filter(self, metric: str) -> dict[str, object]:
        """Which records the list of records shows for it."""
        chosen: dict[str, object] = {"metric": metric, "low": self.low, "high": self.high}
        return chosen | {"closed": True} if self.closed else chosen


def bins_of(values: Sequence[float]) -> tuple[Bin, ...]:
    """Bins that hold all of the values, of equal width.

    Values that are all 0 or 1 make two bins, others from 0 to 1 ten tenths; the rest at most ten
    whose edges are round numbers.
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


def place_in(bins: Sequence[Bin], value: float) -> int:
    """The place of the bin that holds a value, which one of them must."""
    return min(max(bisect.bisect_right([each.low for each in bins], value) - 1, 0), len(bins) - 1)


@dataclass(frozen=True)
class Histogram:
    """How often values fall into bins.

    Attributes:
        metric: the metric's id.
        bins: the bins, from low to high.
        counts: how many values each holds.
    """

    metric: str
    bins: tuple[Bin, ...]
    counts: tuple[int, ...]

    @classmethod
    def of(cls, metric: str, values: Sequence[float]) -> Histogram:
        """Count values."""
        bins = bins_of(values)
        counted = Counter(place_in(bins, value) for value in values)
        return cls(metric, bins, tuple(counted[place] for place in range(len(bins))))

    @property
    def rows(self) -> list[tuple[Bin, int]]:
        """The same as a table."""
        return list(zip(self.bins, self.counts, strict=True))


@dataclass(frozen=True)
class Heat:
    """How often two metrics of a record fall into bins together.

    Attributes:
        x: id of the metric that grows to the right.
        y: id of the metric that grows upwards.
        x_bins: the bins of the one.
        y_bins: the bins of the other.
        counts: how many records each pair of bins holds, by their places; missing where none.
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
        counts = Counter((place_in(x_bins, a), place_in(y_bins, b)) for a, b in pairs)
        return cls(x, y, x_bins, y_bins, dict(sorted(counts.items())))

    @property
    def rows(self) -> list[tuple[Bin, Bin, int]]:
        """The same as a table."""
        return [(self.x_bins[i], self.y_bins[j], n) for (i, j), n in self.counts.items()]


@dataclass(frozen=True, slots=True)
class Scale:
    """Where values stand on a line.

    Attributes:
        low: value at its beginning.
        high: value at its end.
        width: its length.
    """

    low: float
    high: float
    width: float

    def place(self, value: float) -> float:
        """How far a value is from the beginning; what lies outside stands at an end."""
        span = self.high - self.low
        share = 0.5 if span <= 0 else (value - self.low) / span
        return round(min(max(share, 0.0), 1.0) * self.width, 2)


_TOP, _PLOT, _FOOT, _SIDE = 18, 96, 20, 6
_BROADEST = 72
"""Of a bar: wider ones look like areas."""


def draw_histogram(
    chart: Histogram, name: str, also: Sequence[Mapping[str, object]] = ()
) -> Markup:
    """Bars with their counts above them; each filters the list of records.

    Args:
        chart: the counts.
        name: begins the ids in the drawing: one for each drawing of a page.
        also: filters that hold besides.
    """
    most = max(chart.counts, default=0) or 1
    width = (WIDTH - 2 * _SIDE) / len(chart.bins)
    bars = Markup("").join(
        _bar(chart, place, count / most, width, also)
        for place, count in enumerate(chart.counts)
        if count
    )
    total = sum(chart.counts)
    return _frame(
        name,
        f"Distribution of {chart.metric}",
        f"{total:,} records in {len(chart.bins)} bins; the fullest holds {most:,}.",
        _TOP + _PLOT + _FOOT,
        bars + _baseline() + _ticks(chart.bins, width),
    )


def _bar(
    chart: Histogram, place: int, share: float, width: float, also: Sequence[Mapping[str, object]]
) -> Markup:
    bin_, count = chart.bins[place], chart.counts[place]
    left, height = _SIDE + place * width, max(share * _PLOT, 1)
    top, broad = _TOP + _PLOT - height, min(width - 3, _BROADEST)
    drawn = Markup(
        '<rect class="ground" x="{}" y="0" width="{}" height="{}"/>'
        '<rect class="bar" x="{}" y="{}" width="{}" height="{}" rx="1.5"/>'
        '<text class="count" x="{}" y="{}">{}</text>'
    ).format(
        _short(left),
        _short(width),
        _TOP + _PLOT,
        _short(left + (width - broad) / 2),
        _short(top),
        _short(broad),
        _short(height),
        _short(left + width / 2),
        _short(top - 4),
        brief(count),
    )
    spoken = f"{chart.metric} {bin_}: {count:,} record{'s' * (count != 1)}"
    return _hit(spoken, [bin_.filter(chart.metric), *also], drawn)


def _baseline() -> Markup:
    y = _TOP + _PLOT + 0.5
    return Markup('<path class="axis" d="M{} {}H{}"/>').format(_SIDE, y, WIDTH - _SIDE)


def _ticks(bins: Sequence[Bin], width: float) -> Markup:
    return Markup("").join(
        Markup('<text class="tick {}" x="{}" y="{}">{}</text>').format(
            anchor, _short(_SIDE + x * width), _TOP + _PLOT + 14, text
        )
        for x, anchor, text in _labels(bins)
    )


def _labels(bins: Sequence[Bin]) -> list[tuple[float, str, str]]:
    """Where an axis has numbers, in widths of a bin: under bins of one value, else at edges."""
    if all(each.low == each.high for each in bins):
        return [(place + 0.5, "middle", number(each.low)) for place, each in enumerate(bins)]
    half = len(bins) // 2
    middle = [(half, "middle", number(bins[half].low))] if half else []
    return [
        (0, "start", number(bins[0].low)),
        *middle,
        (len(bins), "end", number(bins[-1].high)),
    ]


_LEFT, _HEAT, _BELOW = 44, 290, 40
LEVELS = 5
"""Shades of a heat map's cells."""


def draw_heat(chart: Heat, name: str, also: Sequence[Mapping[str, object]] = ()) -> Markup:
    """Cells with their counts, darker where there are more; each filters the list of records.

    Args:
        chart: the counts.
        name: begins the ids in the drawing: one for each drawing of a page.
        also: filters that hold besides.
    """
    most = max(chart.counts.values(), default=1)
    cells = Markup("").join(
        _cell(chart, cell, level_of(count, most), also) for cell, count in chart.counts.items()
    )
    ground = Markup('<rect class="plane" x="{}" y="4" width="{}" height="{}"/>').format(
        _LEFT, _HEAT, _HEAT
    )
    return _frame(
        name,
        f"{chart.y} against {chart.x}",
        f"{sum(chart.counts.values()):,} records; the fullest cell holds {most:,}.",
        4 + _HEAT + _BELOW,
        ground + cells + _heat_axes(chart),
    )


def level_of(count: int, most: int) -> int:
    """The shade of a cell, from 1 to :data:`LEVELS`; by the root, as few cells hold most."""
    return min(LEVELS, 1 + int((LEVELS - 1) * math.sqrt(count / most) + 1e-9))


def _cell(
    chart: Heat, cell: tuple[int, int], level: int, also: Sequence[Mapping[str, object]]
) -> Markup:
    (i, j), count = cell, chart.counts[cell]
    width, height = _HEAT / len(chart.x_bins), _HEAT / len(chart.y_bins)
    left, top = _LEFT + i * width, 4 + _HEAT - (j + 1) * height
    drawn = Markup(
        '<rect class="cell level{}" x="{}" y="{}" width="{}" height="{}" rx="2"/>'
        '<text class="count level{}" x="{}" y="{}">{}</text>'
    ).format(
        level,
        _short(left + 1),
        _short(top + 1),
        _short(width - 2),
        _short(height - 2),
        level,
        _short(left + width / 2),
        _short(top + height / 2 + 3.5),
        brief(count),
    )
    x, y = chart.x_bins[i], chart.y_bins[j]
    spoken = f"{chart.x} {x}, {chart.y} {y}: {count:,} record{'s' * (count != 1)}"
    return _hit(spoken, [x.filter(chart.x), y.filter(chart.y), *also], drawn)


def _heat_axes(chart: Heat) -> Markup:
    width, height = _HEAT / len(chart.x_bins), _HEAT / len(chart.y_bins)
    across = Markup("").join(
        Markup('<text class="tick {}" x="{}" y="{}">{}</text>').format(
            anchor, _short(_LEFT + x * width), 4 + _HEAT + 14, text
        )
        for x, anchor, text in _labels(chart.x_bins)
    )
    base = 4 + _HEAT
    up = Markup("").join(
        Markup('<text class="tick end" x="{}" y="{}">{}</text>').format(
            _LEFT - 5, _short(min(max(base - y * height + 3.5, 13), base)), text
        )
        for y, _, text in _labels(chart.y_bins)
    )
    names = Markup(
        '<text class="name middle" x="{}" y="{}">{}</text>'
        '<text class="name middle" transform="rotate(-90)" x="{}" y="12">{}</text>'
    ).format(_LEFT + _HEAT / 2, 4 + _HEAT + 32, chart.x, -(4 + _HEAT / 2), chart.y)
    return across + up + names


_LINE, _TALL, _MARGIN = 160, 16, 6


def draw_interval(
    mean: float | None, ends: tuple[float, float] | None, scale: tuple[float, float] = (0.0, 1.0)
) -> Markup:
    """A dot at a mean on a line from one end of its interval to the other.

    It stands beside its numbers, and says nothing to who cannot see it.

    Args:
        mean: the dot; nothing is drawn without it.
        ends: of the interval, if there is one.
        scale: the values at both ends of the drawing.
    """
    if mean is None:
        return Markup("")
    on = Scale(*scale, _LINE)
    middle = _TALL // 2
    parts = [Markup('<path class="axis" d="M{} {}H{}"/>').format(_MARGIN, middle, _MARGIN + _LINE)]
    if ends is not None:
        low, high = (_short(_MARGIN + on.place(end)) for end in ends)
        parts.append(
            Markup('<path class="interval" d="M{} {}H{}M{} 2V14M{} 2V14"/>').format(
                low, middle, high, low, high
            )
        )
    dot = Markup('<circle class="dot" cx="{}" cy="{}" r="3.5"/>')
    parts.append(dot.format(_short(_MARGIN + on.place(mean)), middle))
    return _inline("range", Markup("").join(parts))


def scale_of(values: Sequence[float]) -> tuple[float, float]:
    """Round ends, tenths where that is near enough, of a line that holds all values.

    Args:
        values: at least one.
    """
    low, high = min(values), max(values)
    if low >= 0 and high <= 1:
        first = min(math.floor(low * BINS + 1e-9), BINS - 1)
        last = math.ceil(high * BINS - 1e-9)
        return first / BINS, max(last, first + 1) / BINS
    edges = _round_edges(low, high)
    return edges[0], edges[-1]


def draw_share(count: int, total: int) -> Markup:
    """A bar as long as a share; it stands beside its numbers."""
    if not total:
        return Markup("")
    width = _short(Scale(0, total, _LINE).place(count))
    drawn = Markup(
        '<rect class="trough" x="{}" y="4" width="{}" height="8" rx="2"/>'
        '<rect class="bar" x="{}" y="4" width="{}" height="8" rx="2"/>'
    ).format(_MARGIN, _LINE, _MARGIN, width)
    return _inline("share", drawn)


def _inline(kind: str, inner: Markup) -> Markup:
    element = Markup(
        '<svg class="inline {}" viewBox="0 0 {} {}" aria-hidden="true" focusable="false">{}</svg>'
    )
    return element.format(kind, _LINE + 2 * _MARGIN, _TALL, inner)


def _frame(name: str, title: str, description: str, height: int, inner: Markup) -> Markup:
    """A drawing with its name and its gist, for who cannot see it."""
    return Markup(
        '<svg class="drawing" viewBox="0 0 {} {}" role="group" aria-labelledby="{}-t {}-d">'
        '<title id="{}-t">{}</title><desc id="{}-d">{}</desc>{}</svg>'
    ).format(WIDTH, height, name, name, name, title, name, description, inner)


def _hit(spoken: str, filters: Sequence[Mapping[str, object]], inner: Markup) -> Markup:
    """A part of a drawing that filters the list of records."""
    return Markup(
        '<g class="hit" role="button" tabindex="0" aria-label="{}" data-filter="{}">'
        "<title>{}</title>{}</g>"
    ).format(spoken, filter_text(filters), spoken, inner)


def filter_text(filters: Sequence[Mapping[str, object]]) -> str:
    """The value of a ``data-filter``: one filter, or several that all hold."""
    value = filters[0] if len(filters) == 1 else list(filters)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def brief(count: int) -> str:
    """A count in at most five characters, as far as that goes: ``12.3k``."""
    if count < 10_000:  # noqa: PLR2004 - five digits do not fit into a bar
        return str(count)
    thousands = count / 1000
    return f"{thousands:.1f}k" if thousands < 100 else f"{thousands:.0f}k"  # noqa: PLR2004


def number(value: float) -> str:
    """A number for people, of six digits at most."""
    return f"{value:g}"


def _short(value: float) -> str:
    """A place in a drawing: two digits behind the point, no more than it needs."""
    return f"{value:.2f}".rstrip("0").rstrip(".")
