"""Records and figures for cells of notebooks: HTML and SVG that load nothing and run nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from labeler.calculators import Intervals, measure, select_metrics
from labeler.calculators.headline import plain_name
from labeler.calculators.outcomes import metrics, summary
from labeler.calculators.registry import Metric
from labeler.calculators.summary import SummaryRow
from labeler.errors import UsageError
from labeler.labels.record import AnyOutcome, LabelRecord
from labeler.report.charts import Histogram
from labeler.report.views import SentenceView, record_view
from labeler.sentences.characters import visible
from labeler.sentences.display import shortened

_STYLE = Markup(
    "<style>.labeler-record{max-width:60em;line-height:1.45}"
    ".labeler-record p{margin:2px 0;padding:1px 8px;border-left:4px solid transparent}"
    ".labeler-record .no{border-color:#c62828;background:#c6282822}"
    ".labeler-record .yes{border-color:#2e7d32}"
    ".labeler-record .used{border-color:#1565c0}"
    ".labeler-record small{opacity:.75}</style>"
)
_MOST_ROWS = 30
"""Groups that a plot shows, and documents that a record shows open."""
_WIDTH, _HIGH, _LEFT, _BAR = 520, 150, 180, 22
_LONGEST_TEXT = 1_000
"""Characters of a sentence or a reason that a record shows."""
_COLOR, _LONGEST = "#3b6fb6", 28


def record_html(record: LabelRecord) -> str:
    """Return a record as the report shows it: verdicts, reasons, evidence, metrics; all escaped."""
    view = record_view(record, metrics=measure(record).metrics)
    label = view["label"]
    if label is None:
        return ""
    parts = [
        Markup("<p><b>{}</b> {}</p><p>{}</p>").format(
            view["id"],
            "fully supported" if label["overall"] else "not fully supported",
            view["question"],
        )
    ]
    for sentence in view["response"]:
        found = label["support"].get(sentence["key"])
        if found is None:
            parts.append(_sentence(sentence, "", ""))
            continue
        by = f"by {', '.join(found['keys'])}. " if found["keys"] else ""
        kind = "yes" if found["supported"] else "no"
        parts.append(_sentence(sentence, kind, by + found["explanation"]))
    relevant, utilized = set(label["relevant"]), set(label["utilized"])
    for number, document in enumerate(view["documents"], 1):
        lines = Markup("").join(
            _sentence(
                one,
                "used" if one["key"] in relevant | utilized else "",
                ", ".join(
                    name
                    for name, keys in (("relevant", relevant), ("utilized", utilized))
                    if one["key"] in keys
                ),
            )
            for one in document
        )
        opened = Markup(" open") if number <= _MOST_ROWS else ""
        parts.append(
            Markup("<details{}><summary>Document {}</summary>{}</details>").format(
                opened, number, lines
            )
        )
    figures = ", ".join(f"{name} {one['text']}" for name, one in view["metrics"].items())
    parts.append(
        Markup("<details><summary>Metrics and configuration</summary><p>{}</p><p>{}</p></details>")
        .format(figures, view["signature"])
    )  # fmt: skip
    return str(
        _STYLE + Markup('<div class="labeler-record">{}</div>').format(Markup("").join(parts))
    )


def _sentence(sentence: SentenceView, kind: str, note: str) -> Markup:
    line = Markup('<p class="{}"><code>{}</code> {} <small>{}</small></p>')
    text, reason = (shortened(one, _LONGEST_TEXT) for one in (sentence["text"], note))
    return line.format(kind, sentence["key"], text, reason)


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


def draw_labels(labels: Iterable[AnyOutcome], metric: str, by: str | None = None) -> Plot:
    """Draw a metric of labels; see :func:`plot`.

    Raises:
        UnknownName: there is no such metric.
        UsageError: no row has the column, or the id names several metrics.
    """
    chosen = select_metrics(metric)
    if len(chosen) != 1:
        raise UsageError(f"a plot is of one metric: {metric!r} names {len(chosen)}")
    rows = metrics(labels, metric)
    found = [row.metrics[chosen[0].id] for row in rows if chosen[0].id in row.metrics]
    values = [one.value for one in found if one.value is not None]
    groups = summary(labels, metric, by=by, intervals=Intervals()) if by else ()
    named = {row.group or "": row for row in groups}
    return plot(chosen[0], values, named, len(rows))


def plot(
    metric: Metric, values: Sequence[float], groups: Mapping[str, SummaryRow], total: int
) -> Plot:
    """Draw the distribution of a metric, and the mean of each group with its interval.

    Args:
        metric: the metric.
        values: its values.
        groups: summaries by name.
        total: number of rows, with those without a value.
    """
    title = f"{plain_name(metric)} ({metric.id}): {len(values):,} of {total:,} rows"
    shown = dict(sorted(groups.items(), key=lambda one: _mean(one[1]))[:_MOST_ROWS])
    high = 30 + _HIGH + (len(shown) * _BAR + 26 if shown else 0)
    scale = metric.range or (min(values, default=0.0), max(values, default=1.0))
    drawn = _text(0, 14, title) + _bars(metric.id, values)
    for place, (name, row) in enumerate(shown.items()):
        drawn += _group(name, row, 30 + _HIGH + 20 + place * _BAR, scale)
    svg = Markup(
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {} {}" width="{}" role="img" '
        'font-family="sans-serif" font-size="12" fill="currentColor"><title>{}</title>{}</svg>'
    ).format(_WIDTH, high, _WIDTH, visible(title), drawn)
    return Plot(str(svg), title)


def _bars(name: str, values: Sequence[float]) -> Markup:
    """Draw the number of values in each bin."""
    if not values:
        return _text(0, 60, "no row has a value")
    found = Histogram.of(name, values)
    most, width = max(found.counts), _WIDTH / len(found.bins)
    drawn = Markup("")
    for place, (part, count) in enumerate(found.rows):
        height = round((_HIGH - 40) * count / most, 1)
        left, base = place * width, 24 + _HIGH - 20
        drawn += _rect(left + 2, base - height, width - 4, height)
        if count:
            drawn += _text(left + width / 2, base - height - 4, f"{count:,}", anchor="middle")
        drawn += _text(left + width / 2, base + 14, f"{part.low:g}", anchor="middle")
    return drawn


def _group(name: str, row: SummaryRow, top: float, scale: tuple[float, float]) -> Markup:
    """Draw the mean of a group as a bar, and its interval as a line."""
    low, high = scale
    span, room = (high - low) or 1.0, _WIDTH - _LEFT - 60

    def along(value: float) -> float:
        return _LEFT + room * min(max((value - low) / span, 0.0), 1.0)

    drawn = _text(_LEFT - 8, top + 12, shortened(visible(name), _LONGEST), anchor="end")
    if row.mean is None:
        return drawn + _text(_LEFT, top + 12, "no value")
    drawn += _rect(_LEFT, top + 2, along(row.mean) - _LEFT, 12)
    words = f"{row.mean:.2f} ({row.defined:,})"
    if row.interval is not None:
        ends = along(row.interval.low), along(row.interval.high)
        drawn += Markup(
            '<path d="M{0:.1f} {2}H{1:.1f}" stroke="currentColor" stroke-width="2"/>'
        ).format(*ends, top + 8)
    return drawn + _text(_WIDTH, top + 12, words, anchor="end")


def _mean(row: SummaryRow) -> float:
    return float("inf") if row.mean is None else row.mean


def _rect(x: float, y: float, width: float, height: float) -> Markup:
    return Markup('<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" fill="{}"/>').format(
        x, y, max(width, 0.0), max(height, 0.0), _COLOR
    )


def _text(x: float, y: float, text: str, anchor: str = "start") -> Markup:
    return Markup('<text x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>').format(
        x, y, anchor, visible(text)
    )
