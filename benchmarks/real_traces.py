"""Read traces that other packages made, label them, and write the metrics back as events.

    scripts/check_elsewhere traces [--write docs/measured/imports.md] [--keep tests/traces]

`traces_made.py` makes them in an environment of pinned packages (`benchmarks/peers/traces.txt`).
Exits with 1 where a trace gives another row than was written, or an event names another trace.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import labeler
from harness import publish, table, today, with_environments
from import_rows import AGENT_ROW, COUNT, import_rows
from labeler.calculators.export import events_file
from labeler.plugins.traces import TraceCounts, read_traces
from peers.environments import quiet

HERE = Path(__file__).parent
KEPT = ("openinference", "genai", "genai_ids", "langfuse", "langfuse_observations", "mlflow")
AGENTS = ("openinference_agent.jsonl", "langfuse_agent.jsonl", "mlflow_agent.jsonl")
KEPT_FILES = (*(f"{name}.jsonl" for name in KEPT), "phoenix.json", "phoenix_otlp.json", *AGENTS)
"""Files for the tests, of two traces each."""
KEPT_COUNT = 2
TEXTS = ("question", "documents", "response", "history", "tool_outputs")
UNREADABLE = {"genai_ids.jsonl": "documents_without_text"}
"""Files that hold no texts of documents, and the reason that is printed."""


class Result(NamedTuple):
    """What became of an export."""

    source: str
    how: str
    rows: str
    events: str
    right: bool


def made(python: str, folder: Path, count: int) -> list[dict[str, Any]]:
    """Make the traces of so many questions, and return the exports."""
    paths = {"PYTHONPATH": str(HERE), "PYTHONWARNINGS": "ignore"}
    program = [python, str(HERE / "traces_made.py"), str(folder), str(count)]
    done = subprocess.run(
        program, env={**quiet(folder), **paths}, stdout=subprocess.PIPE, text=True, check=True
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def results(exports: list[dict[str, Any]], folder: Path) -> Iterator[Result]:
    """Yield the round trip of each export: rows, labels of the embedded judge, events."""
    expected = {row["question"]: texts(row) for row in [*import_rows(), AGENT_ROW]}
    for export in exports:
        name, counts = Path(export["file"]).name, TraceCounts()
        rows = list(read_traces([export["file"]], counts=counts))
        equal = sum(texts(row) == expected[row["question"]] for row in rows)
        source, how = f"{export['package']} {export['version']}", export["how"]
        if reason := UNREADABLE.get(name):
            right = counts.unjoined == {reason: COUNT}
            yield Result(source, how, f"0 of {COUNT}: `{reason}`", "", right)
            continue
        total = 1 if name in AGENTS else COUNT
        labels = labeler.label(rows, judge="embedded", store=str(folder / "store"))
        events = folder / "events.jsonl"
        with events_file(str(events)) as write:
            for label in labels:
                write(label)
        known = [row["metadata"] for row in rows]
        spans = {(one["trace_id"].removeprefix("tr-"), one["span_id"]) for one in known}
        same = len(spans) if named_by(events) == spans else 0
        counts_of = (f"{equal} of {total}", f"{same} of {total}")
        yield Result(source, how, *counts_of, equal == same == total)


def texts(row: dict[str, Any]) -> dict[str, Any]:
    """Return what a row holds apart from id and metadata."""
    return {name: row[name] for name in TEXTS if row.get(name)}


def named_by(events: Path) -> set[tuple[str, str]]:
    """Return the traces and spans that events name."""
    lines = map(json.loads, events.read_text(encoding="utf-8").splitlines())
    records = (
        event for one in lines for event in one["resourceLogs"][0]["scopeLogs"][0]["logRecords"]
    )
    return {(event.get("traceId", ""), event.get("spanId", "")) for event in records}


def keep(python: str, to: Path) -> None:
    """Write files for the tests."""
    with tempfile.TemporaryDirectory() as folder:
        made(python, Path(folder), KEPT_COUNT)
        to.mkdir(exist_ok=True)
        for name in KEPT_FILES:
            content = (Path(folder) / name).read_bytes()
            for path in (folder, str(HERE)):  # MLflow names the program and its files
                content = content.replace(path.encode(), b"")
            (to / f"{name}.gz").write_bytes(gzip.compress(content, mtime=0))


def main() -> int:
    """Publish the table."""
    parser = with_environments(__doc__)
    parser.add_argument("--keep", type=Path, help="a folder for the files of the tests")
    given = parser.parse_args()
    [(_, python)] = given.pythons
    with tempfile.TemporaryDirectory() as folder:
        found = list(results(made(python, Path(folder), COUNT), Path(folder)))
    heads = ["package", "export", "rows as written", "events of their spans"]
    when = f"Made and read on {today()}, {COUNT} traces each, one of an agent."
    publish(given.write, "traces", [when, "", *table(heads, (one[:4] for one in found), left=4)])
    if given.keep is not None:
        keep(python, given.keep)
    return 0 if all(result.right for result in found) else 1


if __name__ == "__main__":
    sys.exit(main())
