"""Comparisons and diffs as HTML pages that work without network."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any
from urllib.parse import quote

from labeler.calculators.intervals import Interval
from labeler.calculators.registry import FIELD_WORDS, OF_WHOLE_ANSWERS, plain_name
from labeler.calculators.significance import Undefined
from labeler.calculators.tally import tally
from labeler.comparing.compare import Measured
from labeler.comparing.comparison import Comparison, Comparisons, MetricComparison
from labeler.comparing.comparison_text import in_order, sections
from labeler.comparing.diff import LabelDiff
from labeler.comparing.flips import DIRECTIONS, FIELDS, MetricDiff, RecordDiff, as_float
from labeler.comparing.pairs import Pair
from labeler.comparing.sides import Side
from labeler.data.label_files import replaced
from labeler.labels.answering import configuration
from labeler.labels.answers import judged_sentences
from labeler.labels.record import AnyOutcome, LabelRecord
from labeler.report.charts import draw_difference, limit_of
from labeler.report.page import (
    CHUNK_SIZE,
    RECORD_SCRIPTS,
    RECORD_STYLES,
    RECORDS_PLACEHOLDER,
    chunks_of,
    data_block,
    render_page,
)
from labeler.report.views import View, label_view, record_view, safe
from labeler.report.writing import PAGE_RECORDS, write_report
from labeler.sentences.characters import visible
from labeler.sentences.display import NONE, figure, number
from labeler.version import __version__

COMPARISON_STYLES = ("base.css", "charts.css", "report.css", "comparison.css")

MOST = 40
"""Moved records of a page."""
MOST_MOVED = 10_000
"""Moved records of a metric that are counted by their direction."""
SUPPORT_METRICS = ("adherence", "adherence_fraction", "claim_recall", "completeness", "relevance")
"""Metrics by which records are chosen: the first one by which any moved, and the second with it."""
_LISTED = 3
"""Moved records of each metric that the details list."""
_SENTENCES = 60
"""Sentences of an answer."""


def write_comparison(
    found: Comparisons,
    path: str | Path,
    outcomes: Mapping[str, Iterable[AnyOutcome]] | None = None,
) -> list[Path]:
    """Write comparisons as a page, and a report of each set of labels next to it.

    A file appears when it is complete.

    Args:
        found: the comparisons.
        path: the file of the page; ``-A.html`` and so on end the names of the reports, or ``-A``
            the name of a folder for a report of more than 10,000 records.
        outcomes: the labels of each set by its letter, to be read once more. A set that is not
            there has no report, and the page none of its texts.

    Returns:
        The page, and the page of each report.

    Raises:
        UsageError: a file cannot be written.
    """
    path = Path(path)
    ids = {one.letter: moved_ids(one) for one in found}
    ids["A"] = [name for some in ids.values() for name in some]
    kept: dict[str, dict[str, LabelRecord]] = {letter: {} for letter in found.sides}
    reports: dict[str, Path] = {}
    for letter, side in found.sides.items():
        if outcomes and letter in outcomes:
            is_large = len(side.labels) + len(side.failed) > PAGE_RECORDS
            report = path.with_name(f"{path.stem}-{letter}{'' if is_large else path.suffix}")
            chosen = _compared_outcomes(side, outcomes[letter], {*ids[letter]}, kept[letter])
            name = f"{letter}: {side.name}"
            files = write_report(chosen, report, name=name, by=found[0].by)
            reports[letter] = files[0]
    first, *details = sections(Comparisons(map(_with_few_moved, found)), details=True)
    values = {
        "title": f"{found[0].a.name} → {', '.join(one.b.name for one in found)}",
        "conclusion": found.conclusion,
        "sides": [*found.records],
        "reports": {
            letter: quote(str(file.relative_to(path.parent))) for letter, file in reports.items()
        },
        "compared": [_compared(one, ids[one.letter], kept["A"], kept[one.letter]) for one in found],
        "notes": first.lines,
        "details": details,
        "version": __version__,
    }
    with replaced(path) as file:
        file.write(
            render_page("comparison.html.j2", values, styles=COMPARISON_STYLES, scripts=()).text
        )
    return [path, *reports.values()]


def _compared_outcomes(
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


def _with_few_moved(found: Comparison) -> Comparison:
    """Return a comparison whose text lists a few records of each metric."""
    rows = (replace(row, moved=row.moved[:_LISTED]) for row in found.rows)
    whole = found.whole and _with_few_moved(found.whole)
    return replace(found, rows=tuple(rows), whole=whole)


def _compared(
    found: Comparison,
    ids: Iterable[str],
    a: Mapping[str, LabelRecord],
    b: Mapping[str, LabelRecord],
) -> dict[str, Any]:
    """Return the values of one set of labels against the base; plots go right if it is better."""
    return {
        "letter": found.letter,
        "conclusion": str(found.conclusion),
        "directions": ("worse", "better") if found.same_judge else ("lower", "higher"),
        "parts": [*_parts(found)],
        "moved": [moved_record(name, a[name], b[name]) for name in ids if name in a and name in b],
        "total": len({one.id for row in found.rows for one in row.moved}),
        "flips": flip_kinds(found),
    }


# Metrics of a comparison.


def _parts(found: Comparison) -> Iterator[dict[str, Any]]:
    """Yield the metrics of each group; the limit is the share at the ends of the plots."""
    for group, rows in found.by_group.items():
        valued = in_order([row for row in rows if row.pairs])
        if valued:
            limit = limit_of(abs(share) for row in valued for share in _shares(row))
            yield {
                "heading": None if group is None else f"{found.by}: {group}",
                "lines": [_line(row, limit, directed=found.same_judge) for row in valued],
                "limit": limit,
            }


def _line(row: MetricComparison, limit: float, *, directed: bool) -> dict[str, Any]:
    sign = -1 if directed and not row.metric.higher_is_better else 1
    shares = [sign * share for share in _shares(row)]
    ends = (min(shares[1:]), max(shares[1:])) if shares[1:] else None
    return {
        "name": plain_name(row.metric),
        "id": row.metric.id,
        "lower": not row.metric.higher_is_better,
        "a": figure(row.mean_a),
        "b": figure(row.mean_b),
        "change": row.change_in_words,
        "plot": draw_difference(shares[0], ends, limit) if shares else "",
        "verdict": row.verdict_in_words,
        "look": {"better": "good", "worse": "bad"}.get(row.verdict, ""),
    }


def _shares(row: MetricComparison) -> list[float]:
    """Return a difference, and the ends of its interval, as shares of the largest possible."""
    if isinstance(row.difference, Undefined):
        return []
    ends = [row.interval.low, row.interval.high] if isinstance(row.interval, Interval) else []
    return [one / row.span for one in (row.difference, *ends)]


def flip_kinds(found: Comparison) -> list[tuple[str, int, int, int]]:
    """Count flipped verdicts by kind; of sentences, in records with the same ones on both sides.

    Returns:
        The kind in plain words, verdicts that only the second side has, those that only the first
        side has, and records with such a difference.
    """
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for row in found.rows:
        if row.metric.id in OF_WHOLE_ANSWERS and row.moved:
            gained, records = sum(one.b > one.a for one in row.moved), len(row.moved)
            changes = {"gained": gained, "lost": records - gained, "records": records}
            counts[plain_name(row.metric)].update(changes)
    whole = [*counts]
    for name, kept in found.a.labels.items():
        other = found.b.labels.get(name)
        if other is None or Pair(name, kept, other).differing:
            continue
        for flip in kept.value.flips(other.value):
            changes = {"gained": len(flip.gained), "lost": len(flip.lost), "records": 1}
            counts[FIELD_WORDS[flip.field].verdicts].update(changes)
    return [
        (name, counts[name]["gained"], counts[name]["lost"], counts[name]["records"])
        for name in (*whole, *(words.verdicts for words in FIELD_WORDS.values()))
        if name in counts
    ]


# Records of a comparison.


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


def moved_record(name: str, a: LabelRecord, b: LabelRecord) -> dict[str, Any]:
    """Return a record with both answers, and a sentence on the documents if these differ."""
    texts = [
        [" ".join(sentence.text for sentence in document) for document in one.example.documents]
        for one in (a, b)
    ]
    shared = len(set(texts[0]) & set(texts[1]))
    differ = f"{shared} of {len(texts[1])} documents the same"
    return {
        "id": name,
        "question": b.example.question,
        "documents": differ if texts[0] != texts[1] else "",
        "answers": (_answer(a, b), _answer(b, a)),
    }


def _answer(record: LabelRecord, other: LabelRecord) -> dict[str, Any]:
    """Return one of two answers with the verdicts on its first sentences.

    A sentence is ``changed`` if the other answer lacks it, or has another verdict on it; of answers
    without a common sentence, none is. It has a reason where the verdict differs or is below full
    support.
    """
    judged, counted = judged_sentences(record.label), tally(record)
    is_open = counted.unjudged or not counted.response
    own, verdicts = _verdicts(record), _verdicts(other)
    is_related = not own.keys().isdisjoint(verdicts)
    sentences = []
    for sentence in record.example.response[:_SENTENCES]:
        entry, text = judged.get(sentence.key), _plain(sentence.text)
        supported = entry.fully_supported if entry else None
        flipped = text in verdicts and verdicts[text] != supported
        sentences.append(
            {
                "key": sentence.key,
                "text": sentence.text,
                "look": "unsure" if supported is None else "good" if supported else "bad",
                "changed": flipped or (is_related and text not in verdicts),
                "explanation": record.why(entry) if entry and (flipped or not supported) else "",
            }
        )
    return {
        "id": record.id,
        "support": counted.support_in_words,
        "look": "bad" if counted.unsupported else "unsure" if is_open else "good",
        "sentences": sentences,
        "more": max(0, len(record.example.response) - _SENTENCES),
    }


def _plain(text: str) -> str:
    return " ".join(text.split())


def _verdicts(record: LabelRecord) -> dict[str, bool | None]:
    """Return the verdict on each sentence of an answer by its text."""
    judged = judged_sentences(record.label)
    return {
        _plain(one.text): judged[one.key].fully_supported if one.key in judged else None
        for one in record.example.response
    }


# Diffs.

DIFF_RECORDS = 10_000
"""Changed records of a page at most, so that a browser opens it fast."""

DIFF_STYLES = (*RECORD_STYLES, "charts.css", "report.css", "comparison.css", "diff.css")
DIFF_SCRIPTS = (*RECORD_SCRIPTS, "diff.js")

_LONGEST_QUESTION = 200
"""Characters of a question in the list."""


def write_diff(
    found: LabelDiff, path: str | Path, *, records: int = DIFF_RECORDS
) -> tuple[int, int]:
    """Write a diff as a page; the file appears when it is complete.

    Args:
        found: the diff.
        path: the file.
        records: number of the records that changed most to include.

    Returns:
        The number of changed records in the page, and of those that changed less and are not.

    Raises:
        UsageError: the file cannot be written.
    """
    found = replace(found, top=records)
    text = render_page(
        "diff.html.j2", _diff_values(found), styles=DIFF_STYLES, scripts=DIFF_SCRIPTS
    ).text
    head, _, tail = text.partition(RECORDS_PLACEHOLDER)
    questions: list[str] = []

    def views() -> Iterator[View]:
        for record in found.records:
            view = _changed_record(found, record)
            questions.append(view["view"]["question"][:_LONGEST_QUESTION])
            yield view

    with replaced(Path(path)) as file:
        file.write(head)
        file.writelines(data_block(*chunk) for chunk in chunks_of(views()))
        file.write(data_block("index", _diff_index(found, questions)))
        file.write(tail)
    shown = len(found.records)
    return shown, max(0, found.flipped - shown)


# Data of the list of records of a diff.


def _diff_index(found: LabelDiff, questions: list[str]) -> View:
    records = found.records
    return {
        "metrics": [metric.id for metric in found.compared],
        "fields": [[field, field.replace("_", " ")] for field in FIELDS],
        "chunk_size": CHUNK_SIZE,
        "records": {
            "id": [visible(record.id) for record in records],
            "size": [float(record.size) for record in records],
            # Counts of each field in each direction.
            "flips": [
                [[found[field, one] for one in DIRECTIONS] for field in FIELDS]
                for found in (Counter((f.field, f.direction) for f in r.flips) for r in records)
            ],
            "question": questions,
            "changes": {
                metric.id: [as_float(record.changes[place].change) for record in records]
                for place, metric in enumerate(found.compared)
            },
        },
    }


def _changed_record(found: LabelDiff, record: RecordDiff) -> View:
    a, b = found.labels(record.id)
    flips = [
        {**flip.as_json(), "keys_gained": flip.gained, "keys_lost": flip.lost}
        for flip in record.flips
    ]
    metrics = [
        {
            "metric": change.metric,
            "a": _text(change.a, change.undefined_a),
            "b": _text(change.b, change.undefined_b),
            "change": as_float(change.change),
        }
        for change in record.changes
    ]
    made = {"signature": str(b.signature), "at": b.reply.created_at}
    return {
        "view": record_view(a),
        "other": label_view(b),
        **safe({"made": made, "flips": flips, "metrics": metrics}),
    }


def _text(value: Fraction | None, reason: str | None) -> str:
    return f"undefined: {reason}" if value is None else f"{float(value):.4f}"


# Contents of a diff above the list.


def _diff_values(total: LabelDiff) -> dict[str, Any]:
    return {
        "title": f"{total.a.name} → {total.b.name}",
        "conclusion": total.conclusion,
        "sides": (("A", total.a), ("B", total.b)),
        "counts": total.counts,
        "flipped": total.flipped,
        "shown": len(total.records),
        "groups": [
            {
                "name": None if group is None else f"{total.by}: {group}",
                "flips": total.figures(group),
                "metrics": _metrics(total, group),
            }
            for group in total.groups
        ],
        "version": __version__,
        "records": RECORDS_PLACEHOLDER,
    }


def _metrics(total: LabelDiff, group: str | None) -> list[dict[str, Any]]:
    rows = [row for row in total.metrics if row.group == group]
    limit = limit_of(abs(float(row.change)) for row in rows if row.change is not None)
    return [_metric(row, limit) for row in in_order(rows) if row.pairs]


def _metric(row: MetricDiff, limit: float) -> dict[str, Any]:
    reasons = (("A", row.undefined_a), ("B", row.undefined_b))
    plot, change = "", NONE
    if row.change is not None:
        plot = draw_difference(float(row.change), None, limit)
        signed = f"{float(row.change):+.4f}" if row.change else "0"
        change = signed.replace("-", "\N{MINUS SIGN}")
    return {
        "id": row.metric.id,
        "name": plain_name(row.metric),
        "lower": not row.metric.higher_is_better,
        "plot": plot,
        "a": number(row.mean_a),
        "b": number(row.mean_b),
        "change": change,
        "changed": row.changed,
        "pairs": row.pairs,
        "undefined": [
            f"{letter}: {count} {reason}"
            for letter, counts in reasons
            for reason, count in counts.items()
        ],
    }
