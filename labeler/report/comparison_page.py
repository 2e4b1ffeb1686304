"""Write comparisons as one HTML page that works without network."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from markupsafe import Markup

from labeler.calculators.headline import OF_WHOLE_ANSWERS, plain_name
from labeler.calculators.statistics.intervals import Interval, Undefined
from labeler.comparing.compare import Measured
from labeler.comparing.comparison import Comparison, Comparisons, in_order
from labeler.comparing.comparison_text import sections
from labeler.comparing.metric_comparison import MetricComparison
from labeler.comparing.pairs import Pair
from labeler.comparing.sides import Side
from labeler.data.label_files import replaced
from labeler.labels.answering import configuration
from labeler.labels.answers import judged_sentences
from labeler.labels.record import AnyOutcome, LabelRecord
from labeler.report.charts import draw_difference, limit_of
from labeler.report.page import render_page
from labeler.report.writing import PAGE_RECORDS, write_report
from labeler.sentences.characters import visible
from labeler.sentences.display import figure
from labeler.version import __version__

MOST = 40
"""Moved records of a page."""
SUPPORT_METRICS = ("adherence", "adherence_fraction", "claim_recall", "completeness", "relevance")
"""Metrics by which records are chosen: the first one by which any moved, and the second with it."""
_LENGTH = 2_000
"""Characters of a sentence or question."""
_SENTENCES = 60
"""Sentences of an answer."""


class SentenceText(NamedTuple):
    """A sentence of one of two answers.

    Attributes:
        key: its key.
        text: its text.
        look: ``good``, ``bad`` or ``unsure``, by its verdict.
        changed: whether the other answer lacks the sentence, or has another verdict on it; of
            answers without a common sentence, none is.
        explanation: the judge's reason, where the verdict differs or is below full support.
    """

    key: str
    text: str
    look: str
    changed: bool
    explanation: str


class Answer(NamedTuple):
    """One of two answers to a question.

    Attributes:
        letter: letter of the set of labels.
        supported: number of supported sentences.
        sentences: number of judged sentences.
        texts: its first sentences.
        more: number of further sentences.
        link: address of the record in the report of the set; empty without a report.
    """

    letter: str
    supported: int
    sentences: int
    texts: Sequence[SentenceText]
    more: int
    link: str

    @property
    def look(self) -> str:
        """``good`` if every sentence is supported, else ``bad``; ``unsure`` without a verdict."""
        if not self.sentences:
            return "unsure"
        return "good" if self.supported == self.sentences else "bad"


class MovedRecord(NamedTuple):
    """A record with both answers.

    Attributes:
        id: the record.
        question: its question.
        documents: sentence on the documents; empty if both sides have the same.
        answers: both answers.
    """

    id: str
    question: str
    documents: str
    answers: tuple[Answer, Answer]


def moved_ids(found: Comparison) -> list[str]:
    """Return ids of the records that moved most, those that got worse first."""
    rows = [row for row in in_order(found.rows) if row.metric.id in SUPPORT_METRICS and row.moved]
    first = list(dict.fromkeys(row.metric for row in rows))[:2]
    moved: dict[str, float] = {}
    for metric in first:
        sign = 1 if metric.higher_is_better else -1
        for one in (each for row in rows if row.metric is metric for each in row.moved):
            moved.setdefault(one.id, sign * (one.b - one.a))
    return sorted(moved, key=lambda name: moved[name])[:MOST]


def outcomes_of(
    side: Side[Measured],
    outcomes: Iterable[AnyOutcome],
    ids: Collection[str],
    kept: dict[str, LabelRecord],
) -> Iterator[AnyOutcome]:
    """Yield the outcomes that are compared, from a second reading, and keep some records.

    Args:
        side: the side that was compared.
        outcomes: the outcomes that it was read from.
        ids: ids of the records to keep.
        kept: gets the records by the id of their pair.
    """
    for one in outcomes:
        name = side.names.get(one.id, one.id)
        if not isinstance(one, LabelRecord):
            yield one
        elif name in side.labels and configuration(one) == side.labels[name].configuration:
            if name in ids:
                kept[name] = one
            yield one


def moved_records(
    ids: Iterable[str],
    sides: tuple[Mapping[str, LabelRecord], Mapping[str, LabelRecord]],
    letters: tuple[str, str],
    reports: Mapping[str, str],
) -> Iterator[MovedRecord]:
    """Yield the records that both sides have.

    Args:
        ids: the records, in order.
        sides: the labels of each side by id.
        letters: letters of the sides.
        reports: address of the report of a side by its letter.
    """
    for name in ids:
        a, b = (side.get(name) for side in sides)
        if a is None or b is None:
            continue
        yield MovedRecord(
            id=visible(name),
            question=_cut(b.example.question),
            documents=_documents(a, b),
            answers=(
                _answer(a, b, letters[0], reports.get(letters[0], "")),
                _answer(b, a, letters[1], reports.get(letters[1], "")),
            ),
        )


def _answer(record: LabelRecord, other: LabelRecord, letter: str, report: str) -> Answer:
    judged = judged_sentences(record.label)
    verdicts, own = _verdicts(other), _verdicts(record)
    is_related = not own.keys().isdisjoint(verdicts)
    texts = []
    for sentence in islice(record.example.response, _SENTENCES):
        entry = judged.get(sentence.key)
        supported = entry.fully_supported if entry else None
        text = " ".join(sentence.text.split())
        flipped = text in verdicts and verdicts[text] != supported
        texts.append(
            SentenceText(
                sentence.key,
                _cut(sentence.text),
                "unsure" if supported is None else "good" if supported else "bad",
                flipped or (is_related and text not in verdicts),
                _cut(record.why(entry)) if entry and (flipped or not supported) else "",
            )
        )
    count = sum(one.fully_supported for one in judged.values())
    more = max(0, len(record.example.response) - _SENTENCES)
    address = urlencode({"record": visible(record.id)})
    link = f"{report}#{address}" if report else ""
    return Answer(letter, count, len(judged), texts, more, link)


def _verdicts(record: LabelRecord) -> dict[str, bool | None]:
    """Return the verdict on each sentence of an answer by its text."""
    judged = judged_sentences(record.label)
    return {
        " ".join(one.text.split()): judged[one.key].fully_supported if one.key in judged else None
        for one in record.example.response
    }


def _documents(a: LabelRecord, b: LabelRecord) -> str:
    """Return how many documents both sides share; empty if they have the same."""
    texts = [
        [" ".join(sentence.text for sentence in document) for document in one.example.documents]
        for one in (a, b)
    ]
    if texts[0] == texts[1]:
        return ""
    shared = len(set(texts[0]) & set(texts[1]))
    return f"{shared} of {len(texts[1])} documents the same"


def _cut(text: str) -> str:
    return visible(text if len(text) <= _LENGTH else f"{text[:_LENGTH].rstrip()}…")


class FlipKind(NamedTuple):
    """Verdicts of one kind that differ between both sides.

    Attributes:
        name: the kind in plain words.
        gained: verdicts that only the second side has.
        lost: verdicts that only the first side has.
        records: records with such a difference.
    """

    name: str
    gained: int
    lost: int
    records: int


_KINDS = {
    "supported": "sentences supported",
    "relevant": "document sentences relevant",
    "utilized": "document sentences used",
}


def flip_kinds(found: Comparison) -> list[FlipKind]:
    """Count flipped verdicts by kind; of sentences, in records with the same ones on both sides."""
    rows = [row for row in found.rows if row.metric.id in OF_WHOLE_ANSWERS and row.moved]
    kinds = []
    for metric in dict.fromkeys(row.metric for row in rows):
        changes = [one.b > one.a for row in rows if row.metric is metric for one in row.moved]
        gained = sum(changes)
        name = plain_name(metric)
        kinds.append(FlipKind(name, gained, len(changes) - gained, len(changes)))
    counts: dict[str, Counter[str]] = {}
    for name, kept in found.a.labels.items():
        other = found.b.labels.get(name)
        if other is None or Pair(name, kept, other).differing:
            continue
        for flip in kept.value.flips(other.value):
            count = counts.setdefault(flip.field, Counter())
            count.update(gained=len(flip.gained), lost=len(flip.lost), records=1)
    return kinds + [
        FlipKind(name, counts[field]["gained"], counts[field]["lost"], counts[field]["records"])
        for field, name in _KINDS.items()
        if field in counts
    ]


TEMPLATE = "comparison.html.j2"
STYLES = ("base.css", "charts.css", "report.css", "comparison.css")

MOST_MOVED = 10_000
"""Moved records of a metric that are counted by their direction."""


_LISTED = 3
"""Moved records of each metric that the details list."""


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
    path = Path(path)
    ids = {one.letter: moved_ids(one) for one in found}
    letters = [*ids]
    ids["A"] = [name for some in ids.values() for name in some]
    kept: dict[str, dict[str, LabelRecord]] = {letter: {} for letter in found.sides}
    reports: dict[str, Path] = {}
    outcomes = outcomes or {}
    for letter, side in found.sides.items():
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
        "sides": [*found.records],
        "reports": links,
        "compared": [_compared(one, moved[one.letter]) for one in found],
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


def _compared(found: Comparison, moved: Sequence[MovedRecord]) -> dict[str, Any]:
    """Return the values of one set of labels against the base; plots go right if it is better."""
    return {
        "letter": found.letter,
        "conclusion": _sentence(str(found.conclusion)),
        "directions": ("worse", "better") if found.same_judge else ("lower", "higher"),
        "parts": [*_parts(found)],
        "moved": moved,
        "total": len({one.id for row in found.rows for one in row.moved}),
        "flips": flip_kinds(found),
    }


def _parts(found: Comparison) -> Iterator[dict[str, Any]]:
    """Yield the metrics of each group; the limit is the share at the ends of the plots."""
    for group, rows in found.by_group.items():
        valued = in_order([row for row in rows if row.pairs])
        limit = limit_of(_distances(valued))
        if valued:
            yield {
                "heading": None if group is None else f"{found.by}: {group}",
                "lines": [_line(row, limit, directed=found.same_judge) for row in valued],
                "limit": limit,
            }


def _line(row: MetricComparison, limit: float, *, directed: bool) -> dict[str, Any]:
    sign = -1 if directed and not row.metric.higher_is_better else 1
    plot = Markup("")
    if not isinstance(row.difference, Undefined):
        ends = _ends(row)
        turned = ends and (min(sign * end for end in ends), max(sign * end for end in ends))
        plot = draw_difference(sign * row.difference / row.span, turned, limit)
    return {
        "name": plain_name(row.metric),
        "id": row.metric.id,
        "lower": not row.metric.higher_is_better,
        "a": figure(row.mean_a),
        "b": figure(row.mean_b),
        "change": row.change_in_words,
        "plot": plot,
        "verdict": row.verdict_in_words,
        "look": {"better": "good", "worse": "bad"}.get(row.verdict, ""),
    }


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
