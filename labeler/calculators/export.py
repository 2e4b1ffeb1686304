"""Export of metric rows and summaries as CSV, Parquet, JSON Lines and events.

One row per record or summary, with a column for each metric. ``undefined`` has the reasons of the
metrics without a value, as JSON; ``configuration`` is a digest of how the label was made. In CSV a
text that a spreadsheet would read as a formula starts with an apostrophe.
"""

from __future__ import annotations

import csv
import json
import re
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from labeler.calculators import MetricsRow, SummaryRow
from labeler.calculators.metrics_row import Identity, Measurer, row_digest
from labeler.calculators.ratio import CONVENTION, Ratio
from labeler.calculators.tally import RowFacts
from labeler.data.formats import require_pyarrow
from labeler.data.label_files import replaced
from labeler.data.lines import STDIO
from labeler.errors import UsageError
from labeler.labels.answering import AnsweringModel
from labeler.labels.record import Outcome
from labeler.labels.signature import digest
from labeler.sentences.characters import plain_json, to_cell
from labeler.sentences.words import read_table
from labeler.version import __version__

Record = dict[str, Any]
Kind = Literal["text", "number", "count", "flag"]
Columns = Mapping[str, Kind]
"""Kinds of the columns of a table, by name."""


def _kinds(table: str) -> dict[str, Kind]:
    """Return the kinds of the columns of a table in ``columns.toml``, in their order."""
    listed = read_table(__file__, "columns")[table]
    return {name: kind for kind, names in listed for name in names.split()}


COLUMNS = _kinds("numbers")
"""Kinds of the columns of a numbers file before the columns of metrics, in their order."""
_RATIO: dict[str, Kind] = {
    "": "number",
    ".numerator": "count",
    ".denominator": "count",
    ".reason": "text",
}
"""Ends of the names of a metric's columns, and their kinds."""
_PARTS = (".numerator", ".denominator")
_BATCH, _BATCHES = 5_000, 5
"""Rows that are converted at once, and such batches of a Parquet row group."""


def summary_record(row: SummaryRow) -> Record:
    """Return a summary as a table row; counts by reason are JSON, aliases and hosts have commas."""
    shown: Record = dict(row.as_json(__version__))
    interval, bounds = shown.pop("interval") or {}, shown.pop("bounds") or {}
    ends = {f"interval.{part}": value for part, value in interval.items()}
    ends |= {f"bounds.{end}": value for end, value in bounds.items()}
    counts = {name: _json(shown[name]) if shown[name] else None for name in ("undefined", "failed")}
    lists = {name: ", ".join(shown[name]) or None for name in ("aliases", "hosts")}
    made = {"configuration": row.label and digest(row.label)[:8]}
    return {**shown, **ends, **counts, **lists, **made}


def _json(value: object) -> str:
    return plain_json(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def write_numbers(
    rows: Iterable[MetricsRow], copies: Mapping[Identity, int], path: str | Path
) -> int:
    """Write rows as a numbers file, which appears once it is complete.

    The columns are known only after the last row. Until then the rows are spooled to an anonymous
    temporary file, so that memory does not grow with them.

    Args:
        rows: the rows, with their facts.
        copies: number of labels that were left out because they repeat one; read after the rows.
        path: ``.csv``, ``.parquet`` or ``.jsonl``; texts may be compressed: ``.csv.gz``.

    Returns:
        The number of rows.

    Raises:
        UsageError: the suffix is unknown, a metric has the name of a column, or the file cannot be
            written.
    """
    ids: dict[str, None] = {}
    inexact: set[str] = set()
    with tempfile.TemporaryFile("w+", encoding="utf-8") as spool:
        for place, row in enumerate(rows):
            record = _numbers_record(row, place)
            ids.update(dict.fromkeys(row.metrics))
            inexact.update(name for name, cell in record.items() if _is_inexact(name, cell))
            spool.write(_json(record) + "\n")
        spool.seek(0)
        records = (_with_copies(json.loads(line), copies) for line in spool)
        texts = (
            record | {name: str(record[name]) for name in inexact if record.get(name) is not None}
            for record in records
        )
        writer, columns = writer_of(path), _numbers_columns(ids, inexact)
        return writer(records if writer is _write_lines else texts, columns, Path(path))


def _numbers_record(row: MetricsRow, place: int) -> dict[str, Any]:
    """Return a row as a row of a numbers file; ``place`` is its position if it has no facts."""
    answered = row.answered or AnsweringModel("", "")
    facts = row.facts or RowFacts(place, "score")
    cells = facts._asdict() | {
        "id": row.id,
        "failed": row.failed,
        "metadata": json.dumps(row.metadata, default=str) if row.metadata else None,
        "label": row.label,
        "versions": row.versions,
        "judge": answered.judge,
        "model": answered.asked,
        "answered": answered.name,
        "host": answered.host,
        "key": f"{row.identity.key:#018x}" if row.identity and row.identity.key else "",
        "question_group": f"{row.question:#018x}" if row.question else "",
        **{name: " ".join(sorted(keys)) for name, keys in facts.counted},
    }
    record = {name: cells[name] for name in COLUMNS}
    for name, ratio in {} if row.failed else row.metrics.items():
        record |= _ratio_cells(name, ratio)
    return {name: None if value == "" and name != "id" else value for name, value in record.items()}


def _with_copies(record: dict[str, Any], copies: Mapping[Identity, int]) -> dict[str, Any]:
    """Return a record with the number of its copies that were left out."""
    if not copies:
        return record
    identity = Identity(row_digest(record["id"], record["label"]), int(record["key"] or "0", 16))
    return record | {"copies": copies.get(identity, 0)}


def _ratio_cells(name: str, ratio: Ratio) -> dict[str, Any]:
    """Return the columns of a ratio."""
    value, reason = ratio.value, ratio.undefined
    if value is not None and ratio.denominator == 0:
        reason = f"{CONVENTION}{value!r}"
    numerator = ratio.numerator
    return {
        name: value,
        f"{name}.numerator": str(numerator) if isinstance(numerator, Fraction) else numerator,
        f"{name}.denominator": ratio.denominator,
        f"{name}.reason": reason,
    }


def _is_inexact(name: str, cell: object) -> bool:
    """Return True for a part of a ratio that is not a whole number of 64 bits."""
    is_whole = isinstance(cell, int) and -(1 << 63) <= cell < 1 << 63
    return cell is not None and not is_whole and name.endswith(_PARTS)


def _numbers_columns(ids: Iterable[str], inexact: Collection[str]) -> Columns:
    """Return the columns of a numbers file with the metrics of some ids.

    Parts of ratios that are not all whole numbers of 64 bits are texts.

    Raises:
        UsageError: a metric has the name of a column.
    """
    found = dict(COLUMNS)
    for metric in ids:
        for end, kind in _RATIO.items():
            name = metric + end
            if name in found:
                raise UsageError(f"the metric {metric!r} has the name of a column: rename it")
            found[name] = "text" if name in inexact else kind
    return found


def write_summaries(rows: Iterable[SummaryRow], path: str | Path) -> int:
    """Write summaries to a file, as :func:`write_numbers` writes rows.

    Raises:
        UsageError: the suffix is unknown, or the file cannot be written.
    """
    writer = writer_of(path)
    if writer is _write_lines:
        return writer((dict(row.as_json(__version__)) for row in rows), {}, Path(path))
    return writer(map(summary_record, rows), _kinds("summaries"), Path(path))


_Write = Callable[[Iterable[Record], Columns, Path], int]


def writer_of(path: str | Path) -> _Write:
    """Return the function that writes a table to a file, by its suffix.

    Raises:
        UsageError: the suffix is none of ``.csv``, ``.parquet``, ``.jsonl``.
    """
    name = str(path).lower()
    if name.endswith(".parquet"):
        return _write_parquet
    text = name.removesuffix(".gz")
    if text.endswith((".csv", ".jsonl")):
        return _write_csv if text.endswith(".csv") else _write_lines
    raise UsageError(f"{path}: numbers are written to .csv, .parquet or .jsonl; name such a file")


def _write_lines(records: Iterable[Record], _columns: Columns, path: Path) -> int:
    with replaced(path) as file:
        return sum(file.write(_json(record) + "\n") > 0 for record in records)


def _write_csv(records: Iterable[Record], columns: Columns, path: Path) -> int:
    with replaced(path) as file:
        writer = csv.writer(file)  # it quotes a lone CR or LF only with the default line end
        writer.writerow(map(_cell, columns))
        rows = ([_cell(record.get(name), name) for name in columns] for record in records)
        return sum(writer.writerow(row) > 0 for row in rows)


def _cell(value: object, name: str = "") -> object:
    if isinstance(value, str):
        # A spreadsheet would make a date of 2/3, and round a number of twenty digits.
        is_part = name.endswith(_PARTS) and value[:1].isdigit()
        return f"'{value}" if is_part else to_cell(value)
    return json.dumps(value) if isinstance(value, bool) else value


def _write_parquet(records: Iterable[Record], columns: Columns, path: Path) -> int:
    require_pyarrow(str(path))
    import pyarrow as pa  # noqa: PLC0415 - slow to load

    from labeler.data.formats.parquet_files import parquet_writer  # noqa: PLC0415 - the same

    types = {"text": pa.string(), "number": pa.float64(), "count": pa.int64(), "flag": pa.bool_()}
    schema = pa.schema([pa.field(name, types[kind]) for name, kind in columns.items()])
    count, left = 0, iter(records)
    portions = iter(lambda: list(islice(left, _BATCH)), [])
    with parquet_writer(path, schema) as writer:
        batches = (pa.RecordBatch.from_pylist(portion, schema=schema) for portion in portions)
        while group := list(islice(batches, _BATCHES)):
            table = pa.Table.from_batches(group, schema=schema)
            count += table.num_rows
            writer.write_table(table)
    return count


# Metrics as evaluation events of OpenTelemetry: each metric of a record is one log record of OTLP
# JSON, as collectors and backends read it. The conventions are in
# open-telemetry/semantic-conventions-genai, in development. Events hold names and numbers: never a
# text of the row.

EVENT = "gen_ai.evaluation.result"
_TRACE_ID, _SPAN_ID = re.compile("[0-9a-f]{32}"), re.compile("[0-9a-f]{16}")
_INFORMATION = 9
"""Severity INFO."""


@contextmanager
def events_file(path: str) -> Iterator[Callable[[Outcome], object]]:
    """Yield a function that writes the metrics of an outcome; the file appears if all goes well.

    The metadata columns ``trace_id``, ``span_id`` and ``response_id`` say what was evaluated.

    Raises:
        UsageError: the file cannot be written.
    """
    if path == STDIO:
        raise UsageError("--otel-events: name a file; labels go to standard output")
    with replaced(Path(path)) as file:
        measurer = Measurer()
        yield lambda outcome: file.write(_line(measurer.row(outcome)) + "\n")


def _line(row: MetricsRow) -> str:
    """Return an export request with the events of a record."""
    events = [_event(row, name, ratio) for name, ratio in row.metrics.items()]
    scope = {"name": "labeler", "version": __version__}
    resource = {"attributes": _attributes({"service.name": "labeler"})}
    logs = {"resource": resource, "scopeLogs": [{"scope": scope, "logRecords": events}]}
    return json.dumps({"resourceLogs": [logs]})


def _event(row: MetricsRow, name: str, ratio: Ratio) -> dict[str, Any]:
    now = str(time.time_ns())
    undefined = None if ratio.undefined is None else f"undefined: {ratio.undefined}"
    known = {
        "gen_ai.evaluation.name": name,
        "gen_ai.evaluation.score.value": None if ratio.value is None else float(ratio.value),
        "gen_ai.evaluation.explanation": undefined,
        "error.type": row.failed,
        "gen_ai.response.id": row.metadata.get("response_id"),
        "labeler.record.id": row.id,
        "labeler.signature": row.configuration,
    }
    event = {
        "timeUnixNano": now,
        "observedTimeUnixNano": now,
        "severityNumber": _INFORMATION,
        "eventName": EVENT,
        "attributes": _attributes(known),
    }
    return event | _trace(row)


def _trace(row: MetricsRow) -> dict[str, str]:
    """Return the ids of the trace and span that a record was made of; none if they are unknown."""
    trace_id = str(row.metadata.get("trace_id", "")).removeprefix("tr-").replace("-", "").lower()
    span_id = str(row.metadata.get("span_id", "")).lower()
    if not _TRACE_ID.fullmatch(trace_id):
        return {}
    return {"traceId": trace_id} | ({"spanId": span_id} if _SPAN_ID.fullmatch(span_id) else {})


def _attributes(known: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the attributes that have a value, as OTLP writes them."""
    return [
        {"key": key, "value": {("doubleValue" if isinstance(v, float) else "stringValue"): v}}
        for key, v in known.items()
        if isinstance(v, str | float)
    ]
