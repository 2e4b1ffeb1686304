"""Traces that other packages wrote (`scripts/check_elsewhere traces --keep tests/traces`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from import_rows import AGENT_ROW, import_rows
from support.trace_spans import joined

FILES = sorted((Path(__file__).parents[1] / "traces").iterdir())
TEXTS = ("question", "documents", "response", "history", "tool_outputs")
ONLY_IDS = "genai_ids.jsonl.gz"
"""OpenTelemetry's default: documents without texts."""


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_traces_of_another_package_become_the_rows_that_were_asked(path: Path) -> None:
    """The same chain or agent, watched by each instrumentation, gives the same rows."""
    rows, counts = joined(str(path))
    found = sorted(([row.get(name) for name in TEXTS] for row in rows), key=str)
    asked = [AGENT_ROW] if "agent" in path.name else import_rows()[:2]
    if path.name == ONLY_IDS:
        assert (found, counts.unjoined) == ([], {"documents_without_text": 2})
    else:
        assert found == [[row.get(name) for name in TEXTS] for row in asked]
        assert not counts.faults


def test_traces_have_their_users_and_models() -> None:
    """As far as the instrumentation records them."""
    folder = FILES[0].parent
    found = {
        name: joined(str(folder / f"{name}.jsonl.gz"))[0][0]["metadata"]
        for name in ("openinference", "langfuse_observations", "genai", "mlflow")
    }
    assert found["openinference"]["user"] == found["langfuse_observations"]["user"] == "7"
    assert (found["genai"]["model"], found["genai"]["response_id"]) == ("small", "r1")
    assert found["mlflow"]["trace_id"].startswith("tr-")
