"""Write a diff as one HTML page that works without network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import IO, Any, NamedTuple

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
from labeler.report.views import label_view, record_view
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


class Written(NamedTuple):
    """Numbers of changed records.

    Attributes:
        written: records in the page.
        left_out: records that changed less and are not in the page.
    """

    written: int
    left_out: int


def write_page(found: Differences, path: str | Path, *, records: int = RECORDS) -> Written:
    """Write a diff as a page; the file appears when it is complete.

    Args:
        found: both sides, paired.
        path: the file.
        records: number of the records that changed most to include.

    Raises:
        UsageError: the file cannot be written.
    """
    total = found.summary(records)
    with replaced(Path(path)) as file:
        _write(file, found, total)
    shown = len(total.records)
    return Written(shown, max(0, total.flipped - shown))


def _write(file: IO[str], found: Differences, total: LabelDiff) -> None:
    text = render_page(TEMPLATE, _values(total), styles=STYLES, scripts=SCRIPTS).text
    head, tail = text.split(RECORDS_PLACEHOLDER)
    file.write(head)
    questions: list[str] = []

    def views() -> Iterator[dict[str, Any]]:
        for record in total.records:
            view = _record(found, record)
            questions.append(view["view"]["question"][:_QUESTION])
            yield view

    file.writelines(data_block(*chunk) for chunk in chunks_of(views()))
    file.write(data_block("index", _index(found, total, questions)))
    file.write(tail)


# Data of the list of records.


def _index(found: Differences, total: LabelDiff, questions: list[str]) -> dict[str, Any]:
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
                metric.id: [_change(record, place) for record in records]
                for place, metric in enumerate(found.metrics)
            },
        },
    }


def _by_field(record: RecordDiff) -> list[list[int]]:
    """Count the flips of each field in each direction."""
    counts = [[0] * len(DIRECTIONS) for _ in FIELDS]
    for flip in record.flips:
        counts[FIELDS.index(flip.field)][DIRECTIONS.index(flip.direction)] += 1
    return counts


def _change(record: RecordDiff, place: int) -> float | None:
    change = record.changes[place].change
    return None if change is None else float(change)


def _record(found: Differences, record: RecordDiff) -> dict[str, Any]:
    a, b = found.labels(record.id)
    return {
        "view": record_view(a),
        "other": label_view(b),
        "made": {
            "signature": visible(str(b.signature)),
            "at": b.reply.created_at and visible(b.reply.created_at),
        },
        "flips": [
            {
                **flip.as_json(),
                "keys_gained": [*map(visible, flip.gained)],
                "keys_lost": [*map(visible, flip.lost)],
            }
            for flip in record.flips
        ],
        "metrics": [
            {
                "metric": change.metric,
                "a": _text(change.a, change.undefined_a),
                "b": _text(change.b, change.undefined_b),
                "change": None if change.change is None else float(change.change),
            }
            for change in record.changes
        ],
    }


def _text(value: Fraction | None, reason: str | None) -> str:
    return visible(f"undefined: {reason}") if value is None else f"{float(value):.4f}"


# Contents above the list.


def _values(total: LabelDiff) -> dict[str, Any]:
    groups = [
        {
            "name": None if group is None else visible(f"{total.by}: {group}"),
            "flips": total.figures(group),
            "metrics": _metrics([row for row in total.metrics if row.group == group]),
        }
        for group in total.groups
    ]
    return {
        "title": visible(f"{total.a.name} → {total.b.name}"),
        "conclusion": visible(f"{total.conclusion[:1].upper()}{total.conclusion[1:]}."),
        "sides": [
            {
                "letter": letter,
                "name": visible(side.name),
                "labeled": len(side.labels),
                "failed": len(side.failed),
                "signatures": [visible(signature) for signature in side.signatures],
            }
            for letter, side in (("A", total.a), ("B", total.b))
        ],
        "counts": total.counts,
        "flipped": total.flipped,
        "shown": len(total.records),
        "groups": groups,
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
            f"{letter}: {count} {visible(reason)}"
            for letter, reasons in (("A", row.undefined_a), ("B", row.undefined_b))
            for reason, count in reasons.items()
        ],
    }


def _signed(value: Fraction) -> str:
    text = f"{float(value):+.4f}" if value else "0"
    return text.replace("-", "\N{MINUS SIGN}")
