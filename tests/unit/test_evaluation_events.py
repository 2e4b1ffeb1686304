"""Metrics are written back to traces as OpenTelemetry's evaluation events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support.command import Command
from support.trace_spans import answer, span_id, write


def events(path: Path) -> list[dict[str, Any]]:
    """Return the log records of a file, with their attributes as a mapping and without times."""
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        [resource] = json.loads(line)["resourceLogs"]
        [scope] = resource["scopeLogs"]
        for event in scope["logRecords"]:
            pairs = {a["key"]: next(iter(a["value"].values())) for a in event["attributes"]}
            times = {"timeUnixNano", "observedTimeUnixNano"}
            found.append({k: v for k, v in event.items() if k not in times} | {"attributes": pairs})
    return found


def test_events_name_the_spans_that_were_labeled(labeler_command: Command, tmp_path: Path) -> None:
    """Traces become rows, rows labels, and each metric an event, also of stored labels."""
    write(tmp_path / "spans.jsonl", *answer(1), *answer(2, gen_ai__response__id="r1"))
    labeling = "label rows.jsonl --judge embedded --store s -o labels.jsonl --otel-events "
    for command, code in (
        ("import traces spans.jsonl -o rows.jsonl", 0),
        (f"{labeling}early", 0),
        (f"{labeling}late", 0),
        (f"{labeling}labels.jsonl", 2),
    ):
        assert labeler_command(*command.split())[0] == code
    found = events(tmp_path / "late")
    assert found == events(tmp_path / "early")
    assert {event["eventName"] for event in found} == {"gen_ai.evaluation.result"}
    spans = {(f"{trace:032x}", span_id("root")) for trace in (1, 2)}
    assert {(event["traceId"], event["spanId"]) for event in found} == spans
    of = {event["attributes"]["gen_ai.evaluation.name"]: event["attributes"] for event in found}
    assert of["adherence"]["gen_ai.evaluation.score.value"] == 1.0
    completeness = next(one for name, one in of.items() if "completeness" in name)
    assert "gen_ai.evaluation.score.value" not in completeness
    assert completeness["gen_ai.evaluation.explanation"] == "undefined: not_measured_by_judge"


def test_events_of_records_without_a_trace(labeler_command: Command, tmp_path: Path) -> None:
    """They name the record, and the reason of a failed row."""
    row = {"id": "1", "question": "q", "documents": ["A."], "response": "A.", "trace_id": "odd"}
    rows = (json.dumps(one) for one in (row, row | {"id": "2", "response": ""}))
    (tmp_path / "rows.jsonl").write_text("\n".join(rows))
    labeling = "label rows.jsonl --judge embedded --store s -o l.jsonl --otel-events events.jsonl"
    labeler_command(*labeling.split())
    first, *_, failed = events(tmp_path / "events.jsonl")
    assert "traceId" not in first
    assert first["attributes"]["labeler.record.id"] == "1"
    assert failed["attributes"]["error.type"] == "empty_response"
