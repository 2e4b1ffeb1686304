"""An offline page of scores: means by criterion, then each score with its texts and reasons."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from labeler.labels.record import AnyOutcome, LabelFailure
from labeler.report.page import render_page
from labeler.sentences.display import Display, shortened
from labeler.sentences.example import Sentence
from labeler.version import __version__

STYLES = ("base.css", "report.css", "charts.css")
MOST = 10_000
"""Records of a page."""
_LONGEST = 5_000
"""Characters of a text."""


def scores_page(title: str, shown: Display, outcomes: Iterable[AnyOutcome]) -> str:
    """Return the page; every text is escaped.

    Args:
        title: its title.
        shown: the table of means.
        outcomes: scores and failures.
    """
    grid = shown.grid
    values = {
        "title": title,
        "head": [column.head for column in grid.columns] if grid else [],
        "rows": grid.rows if grid else [],
        "notes": [shown.title, *filter(None, [shown.warning]), *shown.notes],
        "records": [*map(_record, outcomes)],
        "version": __version__,
    }
    folder = Path(__file__).parent / "assets"
    return render_page("scores.html.j2", values, styles=STYLES, scripts=(), assets=folder).text


def _record(outcome: AnyOutcome) -> tuple[str, list[tuple[str, list[str]]]]:
    """Return the heading of a record, and its parts."""
    if isinstance(outcome, LabelFailure):
        return f"{outcome.id}: failed", [(outcome.reason, [outcome.message])]
    parts = [(heading, [*_texts(below)]) for heading, below in outcome.shown()]
    return outcome.id, parts


def _texts(below: Iterable[str | Sentence]) -> Iterator[str]:
    for one in below:
        text = one if isinstance(one, str) else f"{one.key} {one.text}"
        yield shortened(text, _LONGEST)
