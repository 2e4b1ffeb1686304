"""The conclusion of a report: a sentence, tiles, and the answers with the least support."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple
from urllib.parse import urlencode

from markupsafe import Markup

from labeler.calculators import SummaryRow
from labeler.calculators.headline import headline_metrics, in_words, plain_name
from labeler.calculators.worst import Unsupported, WorstRecord
from labeler.report import charts
from labeler.report.charts import Filter
from labeler.report.report_data import ADHERENCE, COMPLETENESS, RELEVANCE, SUPPORT, Entry
from labeler.sentences.characters import visible
from labeler.sentences.display import NONE

TITLES = {
    ADHERENCE: "Full support",
    RELEVANCE: "Relevance",
    "utilization": "Use",
    COMPLETENESS: "Completeness",
}
"""Titles of the tiles by metric id; without any of these metrics the first ones have tiles."""

_LENGTH = 420
"""Characters of a text in the list of the worst answers."""
_SENTENCES = 2
"""Unsupported sentences shown of one of the worst answers."""


class Tile(NamedTuple):
    """One metric at a glance.

    Attributes:
        title: one to three words.
        words: the metric in plain words.
        value: the mean, in percent if it is a share.
        interval: its interval; empty without one.
        charted: id of the metric whose distribution is drawn.
        drawing: distribution of the values.
    """

    title: str
    words: str
    value: str
    interval: str
    charted: str
    drawing: Markup


def tiles(
    rows: Sequence[SummaryRow], entries: Sequence[Entry], name: str, filters: Sequence[Filter]
) -> Iterator[Tile]:
    """Yield a tile for each of at most four metrics; one without a value says why.

    Args:
        rows: summaries of one judge configuration.
        entries: its records.
        name: prefix of the ids in the drawings, unique in the page.
        filters: filters added to that of a bar.
    """
    found = {row.metric.id: row for row in rows}
    valued = [row.metric for row in rows if row.mean is not None]
    chosen = [one for one in TITLES if one in found]
    if not any(metric.id in TITLES for metric in valued):
        chosen = [metric.id for metric in headline_metrics(valued)]
    for place, metric in enumerate(chosen[: len(TITLES)]):
        row = found[metric]
        # Of the answers that are not fully supported, most sentences may be.
        spread = SUPPORT if metric == ADHERENCE and SUPPORT in found else metric
        values = [one for entry in entries if (one := entry.value(spread)) is not None]
        chart = charts.Histogram.of(spread, values)
        value, interval = in_words(row)
        words, missing = plain_name(row.metric), row.labeled - row.defined
        if row.mean is None:
            yield _without_value(row)
            continue
        if metric == ADHERENCE:
            words = f"{round((row.mean or 0) * row.defined):,} of {row.defined:,} answers"
        yield Tile(
            title=TITLES.get(metric, plain_name(row.metric).capitalize()),
            words="; ".join(
                [words] * (metric in TITLES) + [f"{missing:,} without a value"] * bool(missing)
            ),
            value=value,
            interval=interval,
            charted=spread,
            drawing=chart.draw(f"{name}-t{place}", filters, small=True),
        )


def _without_value(row: SummaryRow) -> Tile:
    title = TITLES.get(row.metric.id, plain_name(row.metric).capitalize())
    reason = max(row.undefined, key=lambda one: row.undefined[one], default="no record")
    words = f"{plain_name(row.metric)}: {reason.replace('_', ' ')}"
    return Tile(title, words, NONE, "", "", Markup(""))


def ends(row: SummaryRow) -> tuple[float, float] | None:
    """Return the ends of the interval of a mean."""
    return (row.interval.low, row.interval.high) if row.interval else None


class WorstSentence(NamedTuple):
    """An unsupported sentence of one of the worst answers.

    Attributes:
        key: its key.
        text: its text.
        explanation: the judge's reason.
        nearest_key: key of the nearest document sentence; empty if there is none.
        nearest: text of that sentence.
        link: address of the sentence in the page.
    """

    key: str
    text: str
    explanation: str
    nearest_key: str
    nearest: str
    link: str


class WorstAnswer(NamedTuple):
    """One of the answers with the least support.

    Attributes:
        id: the record's id.
        question: its question.
        supported: number of supported sentences.
        sentences: number of judged sentences.
        shown: the first unsupported sentences.
        more: number of further unsupported sentences.
    """

    id: str
    question: str
    supported: int
    sentences: int
    shown: Sequence[WorstSentence]
    more: int


def worst_answer(worst: WorstRecord) -> WorstAnswer:
    """Return the texts of a record to show in the page, each cut to a few lines."""
    shown = worst.unsupported[:_SENTENCES]
    return WorstAnswer(
        id=visible(worst.id),
        question=_cut(worst.record.example.question),
        supported=worst.sentences - len(worst.unsupported),
        sentences=worst.sentences,
        shown=[_sentence(worst, one) for one in shown],
        more=len(worst.unsupported) - len(shown),
    )


def _sentence(worst: WorstRecord, one: Unsupported) -> WorstSentence:
    address = {"record": visible(worst.id), "sentence": one.key}
    return WorstSentence(
        key=one.key,
        text=_cut(one.text),
        explanation=_cut(one.explanation),
        nearest_key=one.nearest.key if one.nearest else "",
        nearest=_cut(one.nearest.text) if one.nearest else "",
        link=f"#{urlencode(address)}",
    )


def _cut(text: str) -> str:
    """Return the beginning of a text, with control and direction characters written out."""
    cut = text if len(text) <= _LENGTH else f"{text[:_LENGTH].rstrip()}…"
    return visible(cut)
