"""Write a diff as one HTML page that works without network."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from labeler.calculators.headline import headline_metrics, plain_name
from labeler.comparing.diff import Differences, LabelDiff
from labeler.comparing.flips import DIRECTIONS, FIELDS, MetricDiff, RecordDiff
from labeler.data.label_files import replaced
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
from labeler.sentences.characters import visible
from labeler.sentences.display import NONE, number
from labeler.version import __version__

RECORDS = 10_000
"""Changed records of a page at most, so that a browser opens it fast."""

TEMPLATE = "diff.html.j2"
STYLES = (*RECORD_STYLES, "charts.css", "report.css", "comparison.css", "diff.css")
SCRIPTS = (*RECORD_SCRIPTS, "diff.js")

_QUESTION = 200
"""Characters of a question in the list."""


def write_page(found: Differences, path: str | Path, *, records: int = RECORDS) -> tuple[int, int]:
    """Write a diff as a page; the file appears when it is complete.

    Args:
        found: both sides, paired.
        path: the file.
        records: number of the records that changed most to include.

    Returns:
        The number of changed records in the page, and of those that changed less and are not.

    Raises:
        UsageError: the file cannot be written.
    """
    total = found.summary(records)
    text = render_page(TEMPLATE, _values(total), styles=STYLES, scripts=SCRIPTS).text
    head, _, tail = text.partition(RECORDS_PLACEHOLDER)
    questions: list[str] = []

    def views() -> Iterator[View]:
        for record in total.records:
            view = _record(found, record)
            questions.append(view["view"]["question"][:_QUESTION])
            yield view

    with replaced(Path(path)) as file:
        file.write(head)
        file.writelines(data_block(*chunk) for chunk in chunks_of(views()))
        file.write(data_block("index", _index(found, total, questions)))
        file.write(tail)
    shown = len(total.records)
    return shown, max(0, total.flipped - shown)


# Data of the list of records.


def _index(found: Differences, total: LabelDiff, questions: list[str]) -> View:
    records = total.records
    return {
        "metrics": [metric.id for metric in found.metrics],
        "fields": [[field, field.replace("_", " ")] for field in FIELDS],
        "chunk_size": CHUNK_SIZE,
        "records": {
            "id": [visible(record.id) for record in records],
            "size": [float(record.size) for record in records],
            "flips": [_by_field(record) for record in records],
            "question": questions,
            "changes": {
                metric.id: [_float(record.changes[place].change) for record in records]
                for place, metric in enumerate(found.metrics)
            },
        },
    }


def _by_field(record: RecordDiff) -> list[list[int]]:
    """Count the flips of each field in each direction."""
    counts = Counter((flip.field, flip.direction) for flip in record.flips)
    return [[counts[field, direction] for direction in DIRECTIONS] for field in FIELDS]


def _float(value: Fraction | None) -> float | None:
    return None if value is None else float(value)


def _record(found: Differences, record: RecordDiff) -> View:
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
            "change": _float(change.change),
        }
        for change in record.changes
    ]
    return {
        "view": record_view(a),
        "other": label_view(b),
        **safe(
            {
                "made": {"signature": str(b.signature), "at": b.reply.created_at},
                "flips": flips,
                "metrics": metrics,
            }
        ),
    }


def _text(value: Fraction | None, reason: str | None) -> str:
    return f"undefined: {reason}" if value is None else f"{float(value):.4f}"


# Contents above the list.


def _values(total: LabelDiff) -> dict[str, Any]:
    return {
        "title": f"{total.a.name} → {total.b.name}",
        "conclusion": f"{total.conclusion[:1].upper()}{total.conclusion[1:]}.",
        "sides": (("A", total.a), ("B", total.b)),
        "counts": total.counts,
        "flipped": total.flipped,
        "shown": len(total.records),
        "groups": [
            {
                "name": None if group is None else f"{total.by}: {group}",
                "flips": total.figures(group),
                "metrics": _metrics([row for row in total.metrics if row.group == group]),
            }
            for group in total.groups
        ],
        "version": __version__,
        "records": RECORDS_PLACEHOLDER,
    }


def _metrics(rows: Sequence[MetricDiff]) -> list[dict[str, Any]]:
    limit = limit_of(abs(float(row.change)) for row in rows if row.change is not None)
    first = headline_metrics(row.metric for row in rows)
    ordered = sorted(
        rows, key=lambda row: first.index(row.metric) if row.metric in first else len(first)
    )
    return [_metric(row, limit) for row in ordered if row.pairs]


def _metric(row: MetricDiff, limit: float) -> dict[str, Any]:
    reasons = (("A", row.undefined_a), ("B", row.undefined_b))
    return {
        "id": row.metric.id,
        "name": plain_name(row.metric),
        "lower": not row.metric.higher_is_better,
        "plot": "" if row.change is None else draw_difference(float(row.change), None, limit),
        "a": number(row.mean_a),
        "b": number(row.mean_b),
        "change": NONE if row.change is None else _signed(row.change),
        "changed": row.changed,
        "pairs": row.pairs,
        "undefined": [
            f"{letter}: {count} {reason}"
            for letter, counts in reasons
            for reason, count in counts.items()
        ],
    }


def _signed(value: Fraction) -> str:
    text = f"{float(value):+.4f}" if value else "0"
    return text.replace("-", "\N{MINUS SIGN}")
