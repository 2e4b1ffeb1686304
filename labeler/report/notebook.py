"""Records and figures for cells of notebooks: HTML and SVG that load nothing and run nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from labeler.calculators import Intervals, measure, select_metrics
from labeler.calculators.outcomes import metrics, summary
from labeler.calculators.registry import plain_name
from labeler.calculators.summary import SummaryRow
from labeler.errors import UsageError
from labeler.labels.record import AnyOutcome, LabelRecord
from labeler.report.charts import count_bins, tag
from labeler.report.views import View, record_view
from labeler.sentences.characters import visible
from labeler.sentences.display import shortened

_STYLE = tag(
    "style",
    ".labeler-record{max-width:60em;line-height:1.45}"
    ".labeler-record p{margin:2px 0;padding:1px 8px;border-left:4px solid transparent}"
    ".labeler-record .no{border-color:#c62828;background:#c6282822}"
    ".labeler-record .yes{border-color:#2e7d32}"
    ".labeler-record .used{border-color:#1565c0}"
    ".labeler-record small{opacity:.75}",
)
_MOST_ROWS = 30
"""Groups that a plot shows, and documents that a record shows open."""
_LONGEST_TEXT = 1_000
"""Characters of a sentence or a reason that a record shows."""


def record_html(record: LabelRecord) -> str:
    """Return a record as the report shows it: verdicts, reasons, evidence, metrics; all escaped."""
    view = record_view(record, metrics=measure(record).metrics)
    label = view["label"]
    verdict = "fully supported" if label["overall"] else "not fully supported"
    parts = [tag("p", tag("b", view["id"]), " ", verdict) + tag("p", view["question"])]
    for sentence in view["response"]:
        found = label["support"].get(sentence["key"])
        if found is None:
            parts.append(_sentence(sentence, "", ""))
            continue
        by = f"by {', '.join(found['keys'])}. " if found["keys"] else ""
        kind = "yes" if found["supported"] else "no"
        parts.append(_sentence(sentence, kind, by + found["explanation"]))
    for number, document in enumerate(view["documents"], 1):
        lines = tag("summary", f"Document {number}")
        for one in document:
            uses = [use for use in ("relevant", "utilized") if one["key"] in label[use]]
            lines += _sentence(one, "used" if uses else "", ", ".join(uses))
        opened = Markup(" open") if number <= _MOST_ROWS else ""
        parts.append(Markup("<details{}>{}</details>").format(opened, lines))
    figures = ", ".join(f"{name} {one['text']}" for name, one in view["metrics"].items())
    below = tag("p", figures) + tag("p", view["signature"])
    parts.append(tag("details", tag("summary", "Metrics and configuration"), below))
    return str(_STYLE + tag("div", *parts, class_="labeler-record"))


def _sentence(sentence: View, kind: str, note: str) -> Markup:
    text, reason = (shortened(one, _LONGEST_TEXT) for one in (sentence["text"], note))
    key, small = tag("code", sentence["key"]), tag("small", reason)
    return tag("p", key, " ", text, " ", small, class_=kind)


@dataclass(frozen=True)
class Plot:
    """A drawing; a notebook shows it.

    Attributes:
        svg: the drawing as SVG, for a file or a page.
        title: what it shows.
    """

    svg: str
    title: str

    def __repr__(self) -> str:
        return f"Plot({self.title})"

    def _repr_html_(self) -> str:
        return self.svg


_WIDTH, _HIGH, _LEFT, _BAR = 520, 180, 180, 22
"""Width of a plot, height of its bins, start and height of the bar of a group."""
_COLOR, _LONGEST = "#3b6fb6", 28


def draw_labels(labels: Iterable[AnyOutcome], metric: str, by: str | None = None) -> Plot:
    """Draw the distribution of a metric, and the mean of each group with its interval.

    Raises:
        UnknownName: there is no such metric.
        UsageError: no row has the column, or the id names several metrics.
    """
    chosen = select_metrics(metric)
    if len(chosen) != 1:
        raise UsageError(f"a plot is of one metric: {metric!r} names {len(chosen)}")
    own, rows = chosen[0], metrics(labels, metric)
    found = [row.metrics[own.id].value for row in rows if own.id in row.metrics]
    values = [value for value in found if value is not None]
    by_group = summary(labels, metric, by=by, intervals=Intervals()) if by else ()
    groups = {row.group: row for row in by_group}.values()
    title = f"{plain_name(own)} ({own.id}): {len(values):,} of {len(rows):,} rows"
    scale = own.range or (min(values, default=0.0), max(values, default=1.0))
    drawn = [_text(0, 14, title), *_bars(values), *_groups(groups, scale)]
    shown = min(len(groups), _MOST_ROWS)
    high = _HIGH + (shown * _BAR + 26 if shown else 0)
    svg = tag(
        "svg",
        tag("title", visible(title)),
        *drawn,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {_WIDTH} {high}",
        width=_WIDTH,
        role="img",
        font_family="sans-serif",
        font_size=12,
        fill="currentColor",
    )
    return Plot(str(svg), title)


def _bars(values: Sequence[float]) -> Iterator[Markup]:
    """Draw the number of values in each bin."""
    if not values:
        yield _text(0, 60, "no row has a value")
        return
    rows = count_bins(values)
    most, width, base = max(count for _, count in rows), _WIDTH / len(rows), _HIGH - 26
    for place, (part, count) in enumerate(rows):
        height, left = (_HIGH - 70) * count / most, place * width
        middle = left + width / 2
        yield _rect(left + 2, base - height, width - 4, height)
        if count:
            yield _text(middle, base - height - 4, f"{count:,}", anchor="middle")
        yield _text(middle, base + 14, f"{part.low:g}", anchor="middle")


def _groups(groups: Iterable[SummaryRow], scale: tuple[float, float]) -> Iterator[Markup]:
    """Draw the mean of each group as a bar, the lowest first, and its interval as a line."""
    (low, high), room = scale, _WIDTH - _LEFT - 60

    def along(value: float) -> float:
        return _LEFT + room * min(max((value - low) / ((high - low) or 1.0), 0.0), 1.0)

    shown = sorted(groups, key=lambda row: float("inf") if row.mean is None else row.mean)
    for place, row in enumerate(shown[:_MOST_ROWS]):
        top = _HIGH + 20 + place * _BAR
        yield _text(_LEFT - 8, top + 12, shortened(row.group or "", _LONGEST), anchor="end")
        if row.mean is None:
            yield _text(_LEFT, top + 12, "no value")
            continue
        yield _rect(_LEFT, top + 2, along(row.mean) - _LEFT, 12)
        if row.interval is not None:
            start, end = (f"{along(one):.1f}" for one in (row.interval.low, row.interval.high))
            line = f"M{start} {top + 8}H{end}"
            yield tag("path", d=line, stroke="currentColor", stroke_width=2)
        words = f"{row.mean:.2f} ({row.defined:,})"
        yield _text(_WIDTH, top + 12, words, anchor="end")


def _rect(x: float, y: float, width: float, height: float) -> Markup:
    return tag("rect", x=x, y=y, width=max(width, 0.0), height=max(height, 0.0), fill=_COLOR)


def _text(x: float, y: float, text: str, anchor: str = "start") -> Markup:
    return tag("text", visible(text), x=x, y=y, text_anchor=anchor)
