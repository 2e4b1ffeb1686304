"""Traces that other packages wrote (`scripts/check_elsewhere traces --keep tests/traces`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from import_rows import import_rows
from trace_spans import joined

FILES = sorted((Path(__file__).parents[1] / "traces").iterdir())
TEXTS = ("question", "documents", "response")
ONLY_IDS = "genai_ids.jsonl.gz"
"""OpenTelemetry's default: documents without texts."""


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_traces_of_another_package_become_the_rows_that_were_asked(path: Path) -> None:
    """The same chain, watched by each instrumentation, gives the same rows."""
    rows, counts = joined(str(path))
    found = sorted(([row[name] for name in TEXTS] for row in rows), key=str)
    if path.name == ONLY_IDS:
        assert (found, counts.unjoined) == ([], {"documents_without_text": 2})
    else:
        assert found == [[row[name] for name in TEXTS] for row in import_rows()[:2]]
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
