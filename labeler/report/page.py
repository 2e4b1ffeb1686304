"""Self-contained HTML: pages of a template with compressed data, and cells of notebooks.

Pages inline their styles and scripts; cells load nothing and run nothing. A page's
Content-Security-Policy names the inlined styles and scripts by their digests, so text that slipped
through as markup could neither run, load nor send anything.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count, islice
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from labeler.calculators import Intervals, measure, select_metrics
from labeler.calculators.measuring import metrics, summary
from labeler.calculators.registry import plain_name
from labeler.calculators.summary import SummaryRow
from labeler.calculators.summary_text import configuration_names
from labeler.errors import UsageError
from labeler.labels.record import AnyOutcome, LabelRecord
from labeler.report.charts import count_bins, tag
from labeler.report.views import View, record_view
from labeler.sentences.characters import visible
from labeler.sentences.display import NONE, percent, plural, shortened
from labeler.sentences.words import read_names

ASSETS = Path(__file__).parent / "assets"

CHUNK_SIZE = 100
"""Records that a page unpacks together."""

RECORDS_PLACEHOLDER = Markup("<!--records-->")
"""Placeholder of the records in a template. Escaped text never contains it."""

RECORD_STYLES = ("base.css", "record.css")
SCRIPTS_OF = read_names(__file__, "scripts")
"""Scripts by what they draw."""
RECORD_SCRIPTS = SCRIPTS_OF["record"]
"""Scripts that draw a record; a page with records inlines them before its own."""


class Page(NamedTuple):
    """A rendered page.

    Attributes:
        text: the HTML.
        policy: its Content-Security-Policy, which a tag of the page states.
    """

    text: str
    policy: str


def render_page(
    template: str,
    values: Mapping[str, Any],
    *,
    styles: Sequence[str],
    scripts: Sequence[str],
    connect: str = "'none'",
    loads: bool = False,
    assets: Path = ASSETS,
) -> Page:
    """Render a template that extends ``page.html.j2``.

    Args:
        template: file name of the template.
        values: values of the template; every text is escaped.
        styles: file names of the style sheets to inline, in order.
        scripts: file names of the scripts to inline, in order; they share one scope.
        connect: ``connect-src`` of the policy: addresses that the scripts may send requests to.
        loads: True if the inlined scripts load others; markup never can.
        assets: folder with further files of the page, searched after :data:`ASSETS`.
    """
    folders = (ASSETS, assets)
    style, script = _join(styles, folders), _join(scripts, folders)
    more = " 'strict-dynamic'" if loads else ""
    policy = (
        "default-src 'none'; "
        f"style-src {_digest(style)}; script-src {_digest(script)}{more}; connect-src {connect}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    text = (
        _environment(folders)
        .get_template(template)
        .render(
            **values,
            # Files of this package, the only texts that are not escaped.
            style=Markup(style),  # noqa: S704
            script=Markup(script),  # noqa: S704
            policy=policy,
        )
    )
    return Page(text, policy)


def _join(names: Sequence[str], folders: Sequence[Path]) -> str:
    """Concatenate files, each from the first folder that has it."""
    paths = (
        next(folder / name for folder in folders if (folder / name).exists()) for name in names
    )
    return "\n".join(path.read_text(encoding="utf-8") for path in paths)


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _finalize(value: object) -> object:
    """Write out control and direction characters in a printed text."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def cut(text: str, most: int) -> str:
    """Return a text; the rest of one above a number of characters becomes an ellipsis."""
    return text if len(text) <= most else f"{text[:most].rstrip()}…"


_RIGHT_TO_LEFT = r"\S*[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]"
_NAMED = re.compile(
    rf"(?<!\S){_RIGHT_TO_LEFT}(?:\S|\s+(?={_RIGHT_TO_LEFT}))*?"
    # A run of marks behind a name is looked at once, from its beginning.
    rf"(?<![,:;.)])(?=[,:;.)]*(?:\s(?!{_RIGHT_TO_LEFT})|$))"
)
"""Words of a language that is written from right to left."""


def isolated(text: str) -> Markup:
    """Return a sentence whose names keep their place, whatever their direction of writing."""
    text, parts, place = visible(text), list[str](), 0
    for found in _NAMED.finditer(text):
        parts += [text[place : found.start()], tag("bdi", found.group())]
        place = found.end()
    return Markup("").join([*parts, text[place:]]).replace(" %", "\u00a0%")


@lru_cache
def _environment(folders: tuple[Path, ...]) -> Environment:
    environment = Environment(
        loader=FileSystemLoader(folders),
        autoescape=True,  # selecting by file name would leave out .j2
        undefined=StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "cut": cut,
        "visible": visible,
        "isolated": isolated,
        "plural": plural,
        "thousands": "{:,}".format,
        "decimal": lambda value: NONE if value is None else f"{value:.4f}",
        "span": lambda ends: NONE if ends is None else f"{ends[0]:.3f} to {ends[1]:.3f}",
        "percent": lambda n, total: percent(n / total, 1) if total else NONE,
    }
    return environment


def pack(value: object) -> str:
    """Return a value as JSON, compressed with gzip, in base64; equal values give equal texts.

    Raises:
        ValueError: the value contains NaN or an infinity.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # UTF-8 cannot encode a lone surrogate, so it becomes its JSON escape.
    content = text.encode("utf-8", errors="backslashreplace")
    return base64.b64encode(gzip.compress(content, mtime=0)).decode("ascii")


def data_block(name: str, value: object) -> Markup:
    """Return an element that holds a packed value as JSON text, which no browser runs.

    Args:
        name: id of the element.
        value: value of the element.
    """
    element = '<script type="application/json" id="{}">"{}"</script>\n'
    return Markup(element).format(name, pack(value))  # noqa: S704 - a literal, filled in escaped


def chunks_of(views: Iterable[object]) -> Iterator[tuple[str, list[object]]]:
    """Yield the views of records in chunks named ``chunk-0``, ``chunk-1`` etc."""
    remaining = iter(views)
    for number in count():
        chunk = list(islice(remaining, CHUNK_SIZE))
        if not chunk:
            return
        yield f"chunk-{number}", chunk


# Cells of notebooks.

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
    groups = summary(labels, metric, by=by, intervals=Intervals()) if by else []
    groups.sort(key=lambda row: float("inf") if row.mean is None else row.mean)
    title = f"{plain_name(own)} ({own.id}): {len(values):,} of {plural(len(rows), 'row')}"
    scale = own.range or (min(values, default=0.0), max(values, default=1.0))
    if len(groups) > _MOST_ROWS:
        title += f"; the {_MOST_ROWS} lowest of {len(groups):,} means"
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
    most, width, base = max(size for _, size in rows), _WIDTH / len(rows), _HIGH - 26
    for place, (part, size) in enumerate(rows):
        height, left = (_HIGH - 70) * size / most, place * width
        middle = left + width / 2
        yield _rect(left + 2, base - height, width - 4, height)
        if size:
            yield _text(middle, base - height - 4, f"{size:,}", anchor="middle")
        yield _text(middle, base + 14, f"{part.low:g}", anchor="middle")


def _groups(groups: Sequence[SummaryRow], scale: tuple[float, float]) -> Iterator[Markup]:
    """Draw the means of groups, by each judge configuration, as bars, and intervals as lines."""
    (low, high), room = scale, _WIDTH - _LEFT - 60
    ways = configuration_names(row.label for row in groups)

    def along(value: float) -> float:
        return _LEFT + room * min(max((value - low) / ((high - low) or 1.0), 0.0), 1.0)

    for place, row in enumerate(groups[:_MOST_ROWS]):
        top = _HIGH + 20 + place * _BAR
        name = f"{row.group}, {ways[row.label]}" if len(ways) > 1 else f"{row.group}"
        yield _text(_LEFT - 8, top + 12, shortened(name, _LONGEST), anchor="end")
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
