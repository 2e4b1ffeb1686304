"""Summaries and label files in a run of MLflow."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import labeler
from labeler.calculators import SummaryRow
from labeler.errors import UsageError
from labeler.labels.record import AnyOutcome, LabelFailure
from labeler.plugins.mlflow import log_run, log_summary
from labeler.version import install_command
from support.records import sample_record

FAILURE = LabelFailure(id="f", reason="refusal", message="It was refused.")


class Run:
    """What was logged."""

    def __init__(self) -> None:
        self.metrics: dict[str, float] = {}
        self.tags: dict[str, str] = {}
        self.artifacts: list[str] = []


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """An active run."""
    run, module = Run(), ModuleType("mlflow")
    made: dict[str, Any] = {
        "log_metrics": run.metrics.update,
        "set_tags": run.tags.update,
        "log_artifact": run.artifacts.append,
    }
    for name, value in made.items():
        setattr(module, name, value)
    monkeypatch.setitem(sys.modules, "mlflow", module)
    return run


def summary(**options: Any) -> list[SummaryRow]:
    """Of twelve records and a failure."""
    outcomes: list[AnyOutcome] = [*(sample_record(n) for n in range(12)), FAILURE]
    return labeler.summary(outcomes, "relevance", **options)


def answered_by_two() -> list[AnyOutcome]:
    """Twelve records of one configuration, five of them by another model."""
    made = [sample_record(n) for n in range(12)]
    names = ["m-1"] * 7 + ["m-2"] * 5
    return [
        one.model_copy(update={"reply": one.reply.model_copy(update={"served_model": name})})
        for one, name in zip(made, names, strict=True)
    ]


def test_means_counts_and_intervals_become_metrics(run: Run, tmp_path: Path) -> None:
    """What made them is a tag, and the labels an artifact."""
    (tmp_path / "labels.jsonl").write_text("")
    (row,) = rows = summary(intervals=labeler.Intervals())
    log_summary(rows, tmp_path / "labels.jsonl")
    assert row.interval is not None
    assert run.metrics == {
        "relevance": row.mean,
        "relevance.defined": 12,
        "relevance.undefined": 0,
        "relevance.failed": 1,
        "relevance.low": row.interval.low,
        "relevance.high": row.interval.high,
    }
    assert run.tags["labeler.labels.signature.relevance"] == row.signature(labeler.__version__)
    assert run.artifacts == [str(tmp_path / "labels.jsonl")]


def test_groups_have_names_that_mlflow_takes(run: Run) -> None:
    """Odd characters count as _; a metric without a mean has counts alone."""
    (row,) = summary()
    odd = replace(row, group="a:é\n=b", mean=None)
    log_summary([replace(row, group="east 1"), odd])
    assert run.metrics["relevance/east 1"] == row.mean
    assert "relevance/a____b" not in run.metrics
    assert run.metrics["relevance/a____b.defined"] == 12


def test_two_groups_of_one_name_are_refused(run: Run) -> None:
    """One would hide the other; nothing is logged."""
    (row,) = summary()
    with pytest.raises(UsageError, match="or metrics have the name 'relevance/a_b'"):
        log_summary([replace(row, group="a:b"), replace(row, group="a=b")])
    assert run.metrics == {}


def test_labels_made_in_several_ways_are_refused(run: Run) -> None:
    """Their metrics have the same names."""
    (row,) = summary()
    with pytest.raises(UsageError, match="made in 2 ways"):
        log_summary([row, replace(row, label="judge:other")])
    assert run.metrics == {}


def test_each_model_that_answered_has_its_own_metrics(run: Run) -> None:
    """Of one name that was asked for; the tags say which signature belongs to which."""
    rows = labeler.summary(answered_by_two(), "relevance")
    log_summary(rows)
    assert [run.metrics[f"relevance/{one}.defined"] for one in ("m-1", "m-2")] == [7, 5]
    assert run.tags == {
        "labeler.version": labeler.__version__,
        **{
            f"labeler.labels.signature.relevance/{row.answered}": row.signature(labeler.__version__)
            for row in rows
        },
    }


def test_a_file_that_is_not_there_is_refused_first(run: Run, tmp_path: Path) -> None:
    """Nothing is logged."""
    with pytest.raises(UsageError, match="is not a file: nothing was logged"):
        log_summary(summary(), tmp_path / "none.jsonl")
    assert run.metrics == {}


def test_mlflow_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the remedy."""
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(UsageError, match=re.escape(install_command("mlflow"))):
        log_summary(summary())


def test_a_run_logs_its_counts_at_its_end(run: Run, tmp_path: Path) -> None:
    """Tokens and failures too; without a price, no dollars."""
    rows = [{"question": "q", "documents": ["A b."], "response": "A b."}, {"question": "only"}]
    labeler.label(rows, judge="embedded", store=tmp_path / "store", on_event=log_run)
    counts = {"labeled": 1, "requests": 1, "failed": 1, "stored": 0}
    counts |= {"prompt_tokens": 0, "completion_tokens": 0}
    assert run.metrics == {f"labeler.{name}": count for name, count in counts.items()}
