"""Write comparisons as one HTML page that works without network."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from markupsafe import Markup

from labeler.calculators.headline import plain_name
from labeler.calculators.statistics.intervals import Interval, Undefined
from labeler.comparing.comparison import Comparison, Comparisons
from labeler.comparing.comparison_text import plain_sides, sections
from labeler.comparing.conclusion import change_in_words, in_order, verdict_in_words
from labeler.comparing.metric_comparison import MetricComparison
from labeler.data.label_files import replaced
from labeler.labels.record import AnyOutcome, LabelRecord
from labeler.report.charts import draw_difference, limit_of
from labeler.report.moved import (
    FlipKind,
    MovedRecord,
    flip_kinds,
    moved_ids,
    moved_records,
    outcomes_of,
)
from labeler.report.page import render_page
from labeler.report.writing import PAGE_RECORDS, write_report
from labeler.sentences.display import figure
from labeler.version import __version__

TEMPLATE = "comparison.html.j2"
STYLES = ("base.css", "charts.css", "report.css", "comparison.css")

MOST_MOVED = 10_000
"""Moved records of a metric that are counted by their direction."""


_LISTED = 3
"""Moved records of each metric that the details list."""


class Line(NamedTuple):
    """One metric of a comparison.

    Attributes:
        name: the metric in plain words.
        id: its id.
        lower: whether lower values are better.
        a: mean of the first set.
        b: mean of the second set.
        change: the difference in words, with its interval.
        plot: the difference, to the right if it is an improvement.
        verdict: in plain words.
        look: ``good``, ``bad`` or empty.
    """

    name: str
    id: str
    lower: bool
    a: str
    b: str
    change: str
    plot: Markup
    verdict: str
    look: str


class Part(NamedTuple):
    """One comparison, or one group of it.

    Attributes:
        heading: the group; ``None`` for all records.
        lines: metrics with values.
        limit: value at the ends of the plots, as a share.
    """

    heading: str | None
    lines: Sequence[Line]
    limit: float


class Compared(NamedTuple):
    """One set of labels against the base.

    Attributes:
        letter: letter of the set.
        conclusion: one sentence.
        directions: names of the left and the right side of the plots.
        parts: the metrics, by group.
        moved: records that moved most, with their texts.
        total: number of records that moved.
        flips: flipped verdicts by kind.
    """

    letter: str
    conclusion: str
    directions: tuple[str, str]
    parts: Sequence[Part]
    moved: Sequence[MovedRecord]
    total: int
    flips: Sequence[FlipKind]


def write_page(
    found: Comparisons,
    path: str | Path,
    outcomes: Mapping[str, Iterable[AnyOutcome]] | None = None,
) -> list[Path]:
    """Write comparisons as a page, and a report of each set of labels next to it.

    A file appears when it is complete.

    Args:
        found: the comparisons.
        path: the file of the page; ``-A.html`` and so on end the names of the reports, or ``-A``
            that of a folder for a report of more than 10,000 records.
        outcomes: the labels of each set by its letter, to be read once more. A set that is not
            there has no report, and the page none of its texts.

    Returns:
        The page, and the page of each report.

    Raises:
        UsageError: a file cannot be written.
    """
    path, letters = Path(path), [letter for letter, _ in found.letters[1:]]
    ids = dict(zip(letters, map(moved_ids, found), strict=True))
    ids["A"] = [name for some in ids.values() for name in some]
    kept: dict[str, dict[str, LabelRecord]] = {letter: {} for letter, _ in found.letters}
    reports: dict[str, Path] = {}
    outcomes = outcomes or {}
    for letter, side in found.letters:
        if letter in outcomes:
            is_large = len(side.labels) + len(side.failed) > PAGE_RECORDS
            report = path.with_name(f"{path.stem}-{letter}{'' if is_large else path.suffix}")
            chosen = outcomes_of(side, outcomes[letter], frozenset(ids[letter]), kept[letter])
            title = f"{letter}: {side.name}"
            files = write_report(chosen, report, name=side.name, by=found[0].by, title=title)
            reports[letter] = files[0]
    links = {letter: quote(str(file.relative_to(path.parent))) for letter, file in reports.items()}
    moved = {
        letter: [*moved_records(ids[letter], (kept["A"], kept[letter]), ("A", letter), links)]
        for letter in letters
    }
    page = render_page(TEMPLATE, _values(found, moved, links), styles=STYLES, scripts=())
    with replaced(path) as file:
        file.write(page.text)
    return [path, *reports.values()]


def _values(
    found: Comparisons, moved: Mapping[str, Sequence[MovedRecord]], links: Mapping[str, str]
) -> dict[str, Any]:
    first, *details = sections(Comparisons(map(_with_few_moved, found)))
    return {
        "title": f"{found[0].a.name} → {', '.join(one.b.name for one in found)}",
        "conclusion": _sentence(found.conclusion),
        "sides": [*plain_sides(found)],
        "reports": links,
        "compared": [
            _compared(one, letter, moved[letter]) for letter, one in zip(moved, found, strict=True)
        ],
        "notes": first.lines,
        "details": details,
        "version": __version__,
    }


def _with_few_moved(found: Comparison) -> Comparison:
    """Return a comparison whose text lists a few records of each metric."""
    rows = (replace(row, moved=row.moved[:_LISTED]) for row in found.rows)
    whole = found.whole and _with_few_moved(found.whole)
    return replace(found, rows=tuple(rows), whole=whole)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _compared(found: Comparison, letter: str, moved: Sequence[MovedRecord]) -> Compared:
    return Compared(
        letter=letter,
        conclusion=_sentence(str(found.concluded(letter))),
        directions=("worse", "better") if found.same_judge else ("lower", "higher"),
        parts=[*_parts(found)],
        moved=moved,
        total=len({one.id for row in found.rows for one in row.moved}),
        flips=flip_kinds(found),
    )


def _parts(found: Comparison) -> Iterator[Part]:
    for group, rows in found.by_group.items():
        valued = in_order([row for row in rows if row.pairs])
        limit = limit_of(_distances(valued))
        lines = [_line(row, limit, directed=found.same_judge) for row in valued]
        if lines:
            yield Part(None if group is None else f"{found.by}: {group}", lines, limit)


def _line(row: MetricComparison, limit: float, *, directed: bool) -> Line:
    look = {"better": "good", "worse": "bad"}.get(row.verdict, "")
    sign = -1 if directed and not row.metric.higher_is_better else 1
    plot = Markup("")
    if not isinstance(row.difference, Undefined):
        ends = _ends(row)
        turned = ends and (min(sign * end for end in ends), max(sign * end for end in ends))
        plot = draw_difference(sign * row.difference / row.span, turned, limit)
    return Line(
        name=plain_name(row.metric),
        id=row.metric.id,
        lower=not row.metric.higher_is_better,
        a=figure(row.mean_a),
        b=figure(row.mean_b),
        change=change_in_words(row),
        plot=plot,
        verdict=verdict_in_words(row),
        look=look,
    )


def _ends(row: MetricComparison) -> tuple[float, float] | None:
    """Return the ends of an interval as shares of the largest possible difference."""
    if not isinstance(row.interval, Interval):
        return None
    return row.interval.low / row.span, row.interval.high / row.span


def _distances(rows: Iterable[MetricComparison]) -> Iterator[float]:
    """Yield the distances of all differences and interval ends from 0."""
    for row in rows:
        yield from map(abs, _ends(row) or ())
        if not isinstance(row.difference, Undefined):
            yield abs(row.difference) / row.span
