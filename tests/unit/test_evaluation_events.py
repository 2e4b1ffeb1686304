"""Metrics are written back to traces as OpenTelemetry's evaluation events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.command import Command
from support.trace_spans import answer, span_id, write


@pytest.fixture
def labeler(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """The command line."""
    return Command(monkeypatch, capsys)


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


def test_events_name_the_spans_that_were_labeled(labeler: Command, tmp_path: Path) -> None:
    """Traces become rows, rows labels, and each metric an event; in a run and of stored labels."""
    call = {"gen_ai__response__id": "r1"}
    spans = write(tmp_path / "spans.jsonl", *answer(1), *answer(2, **call))
    rows, labels, early, late = (str(tmp_path / f"{n}.jsonl") for n in ("rows", "labels", "a", "b"))
    assert labeler("import", "traces", spans, "-o", rows)[0] == 0
    named = ["--judge", "embedded", "--store", tmp_path / "store", "-o", labels]
    assert labeler("label", rows, *named, "--otel-events", early)[0] == 0
    assert labeler("metrics", labels, "--otel-events", late)[0] == 0
    found = events(Path(late))
    assert found == events(Path(early))
    assert {event["eventName"] for event in found} == {"gen_ai.evaluation.result"}
    assert {(e["traceId"], e["spanId"]) for e in found} == {
        (f"{trace:032x}", span_id("root")) for trace in (1, 2)
    }
    adherence = next(e for e in found if e["attributes"]["gen_ai.evaluation.name"] == "adherence")
    assert adherence["attributes"]["gen_ai.evaluation.score.value"] == 1.0
    completeness = next(e["attributes"] for e in found if "completeness" in str(e))
    assert "gen_ai.evaluation.score.value" not in completeness
    assert completeness["gen_ai.evaluation.explanation"] == "undefined: not_measured_by_judge"


def test_records_without_a_trace_are_counted(labeler: Command, tmp_path: Path) -> None:
    """Their events name the record; a failed row has its reason."""
    rows = tmp_path / "rows.jsonl"
    row = {"id": "1", "question": "q", "documents": ["A."], "response": "A.", "trace_id": "odd"}
    rows.write_text(json.dumps(row) + "\n" + json.dumps(row | {"id": "2", "response": ""}) + "\n")
    labels, out = tmp_path / "labels.jsonl", tmp_path / "events.jsonl"
    labeler("label", rows, "--judge", "embedded", "--store", tmp_path / "store", "-o", labels)
    code, _, err = labeler("metrics", labels, "--metrics", "adherence", "--otel-events", out)
    assert (code, "2 without a trace id" in err) == (0, True)
    first, failed = events(out)
    assert "traceId" not in first
    assert first["attributes"]["labeler.record.id"] == "1"
    assert failed["attributes"]["error.type"] == "empty_response"
