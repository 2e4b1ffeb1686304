"""Metrics as evaluation events of OpenTelemetry (``gen_ai.evaluation.result``).

Each metric of a record is one log record of OTLP JSON, as collectors and backends read it. The
conventions are those of open-telemetry/semantic-conventions-genai, in development. Events hold
names and numbers: never a text of the row.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

from labeler.calculators.metrics_row import Measurer, MetricsRow
from labeler.calculators.ratio import Ratio
from labeler.data.label_files import replaced
from labeler.data.lines import STDIO
from labeler.errors import UsageError
from labeler.labels.record import Outcome
from labeler.version import __version__

EVENT = "gen_ai.evaluation.result"
_TRACE_ID, _SPAN_ID = re.compile("[0-9a-f]{32}"), re.compile("[0-9a-f]{16}")
_INFORMATION = 9
"""Severity INFO."""


class Written(NamedTuple):
    """Records whose events were written, and those of them that name no trace."""

    records: int
    untraced: int


def write_events(rows: Iterable[MetricsRow], path: str) -> Written:
    """Write the metrics of records, one line each.

    Args:
        rows: metrics; the metadata columns ``trace_id``, ``span_id`` and ``response_id`` say what
            was evaluated.
        path: file to write.

    Raises:
        UsageError: the file cannot be written.
    """
    records = untraced = 0
    with _opened(path) as file:
        for row in rows:
            records += 1
            untraced += not _trace(row)
            file.write(_line(row) + "\n")
    return Written(records, untraced)


@contextmanager
def events_file(path: str) -> Iterator[Callable[[Outcome], object]]:
    """Open a file for the metrics of outcomes as they come; it appears if all goes well.

    Args:
        path: file to write.

    Yields:
        A function that writes the metrics of an outcome.

    Raises:
        UsageError: the file cannot be written.
    """
    with _opened(path) as file:
        measurer = Measurer()
        yield lambda outcome: file.write(_line(measurer.row(outcome)) + "\n")


def _opened(path: str) -> AbstractContextManager[IO[str]]:
    if path == STDIO:
        raise UsageError("--otel-events: name a file; labels go to standard output")
    return replaced(Path(path))


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
    span_id = str(row.metadata.get("span_id", ""))
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
