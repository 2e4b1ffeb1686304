"""Spans of judge calls: what they say, what they never say, and that they cost nothing."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import labeler
from labeler.calculators import SummaryRow
from labeler.errors import JudgeError, UsageError
from labeler.judges.judge import UnusableAnswer
from labeler.judges.openai.request import OpenAISpec
from labeler.judges.task import JudgeReply, Task
from labeler.labeling.progress import JudgeCall, RunEvents
from labeler.labels.record import AnyOutcome, LabelFailure, LabelRecord, ReplyFacts, Usage
from labeler.plugins import opentelemetry as tracing
from labeler.plugins.mlflow import log_run, log_summary
from labeler.sentences.example import Frozen
from labeler.version import install_command
from support.fakes import CountingJudge, agreeable
from support.labeled import failure
from support.records import sample_record

ROW: dict[str, Any] = {
    "id": "secret-id",
    "question": "How long is the hidden quay?",
    "documents": ["The hidden quay is 90 m long."],
    "response": "It is 90 hidden metres long.",
}


class Log:
    """As much of ``opentelemetry.trace`` as is used; its spans keep what they are told."""

    SpanKind = SimpleNamespace(CLIENT="client")
    StatusCode = SimpleNamespace(ERROR="error")
    Status = staticmethod(lambda code, description: (code, description))

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.recording, self.breaks, self.refuses = True, False, False

    def get_tracer(self, *_: object) -> Any:
        """Return a tracer that logs here, unless it refuses."""
        return None if self.refuses else SimpleNamespace(start_span=self._start)

    def _start(self, name: str, *, kind: str, attributes: dict[str, Any]) -> Any:
        span = SimpleNamespace(
            name=name, kind=kind, attributes={**attributes}, status=None, ended=0
        )
        calls: dict[str, Callable[..., object]] = {
            "set_attributes": span.attributes.update,
            "set_attribute": span.attributes.__setitem__,
            "set_status": lambda status: setattr(span, "status", status),
            "end": lambda: setattr(span, "ended", span.ended + 1),
        }
        vars(span).update(dict.fromkeys(calls, lambda *_: 1 / 0) if self.breaks else calls)
        span.is_recording = lambda: self.recording
        self.spans.append(span)
        return span


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    """A process that has a tracer."""
    log = Log()
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", log)
    return log


def labeled(judge: Any) -> Any:
    """What becomes of the row."""
    (outcome,) = labeler.label([ROW], judge=judge, store=labeler.MemoryStore())
    return outcome


def test_a_judge_call_is_a_span_by_the_conventions(log: Log) -> None:
    """With what was asked for, what answered, and what it cost."""

    def answer(request: Task) -> JudgeReply[Frozen]:
        assert [span.ended for span in log.spans] == [0]
        usage = Usage(prompt_tokens=90, completion_tokens=7, cached_tokens=60, cache_write_tokens=5)
        facts = ReplyFacts(served_model="fake-1-b", usage=usage, attempts=3, reasks=1)
        return JudgeReply(agreeable(request).answer, facts)

    record = labeled(CountingJudge(answer))
    (span,) = log.spans
    assert (span.name, span.kind, span.ended, span.status) == ("chat fake-1", "client", 1, None)
    assert span.attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "fake",
        "gen_ai.request.model": "fake-1",
        "gen_ai.output.type": "json",
        "gen_ai.response.model": "fake-1-b",
        "gen_ai.usage.input_tokens": 90,
        "gen_ai.usage.output_tokens": 7,
        "gen_ai.usage.cache_read.input_tokens": 60,
        "gen_ai.usage.cache_creation.input_tokens": 5,
        "labeler.prompt": "trace/v1",
        "labeler.schema": "label-trace/v1",
        "labeler.key": record.key,
        "labeler.record.digest": tracing.digest_of_id("secret-id"),
        "labeler.attempts": 3,
        "labeler.reasks": 1,
    }


def test_a_hosted_model_is_named_with_its_server_and_sampling(log: Log) -> None:
    """At the span's start, where samplers look."""
    given: dict[str, Any] = {"temperature": 0.5, "top_p": 0.9, "seed": 7}
    judge = CountingJudge()
    labeled(judge)
    for address, server in (
        ("https://api.openai.com/v1", ("api.openai.com", 443)),
        ("http://127.0.0.1:8000/v1", ("127.0.0.1", 8000)),
        ("http://localhost/v1", ("localhost", 80)),
    ):
        spec = OpenAISpec(model="m", base_url=address, max_output_tokens=99, **given)
        RunEvents([tracing.JudgeSpans()]).call("call", JudgeCall(spec, judge.tasks[0]))
        found = log.spans[-1].attributes
        assert (found["server.address"], found["server.port"]) == server
        assert (found["gen_ai.provider.name"], found["gen_ai.request.max_tokens"]) == ("openai", 99)
        assert {name: found[f"gen_ai.request.{name}"] for name in given} == given


def test_no_text_of_a_row_is_in_a_span(log: Log) -> None:
    """Nor its id; also where the judge fails with their words."""

    def fail(request: Task) -> JudgeReply[Frozen]:
        raise JudgeError(f"cannot read {request.messages}", reason="refusal")

    labeled("embedded")
    assert isinstance(labeled(CountingJudge(fail)), LabelFailure)
    assert [span.kind for span in log.spans] == ["client", "client"]
    told = repr([(span.name, span.attributes, span.status) for span in log.spans])
    assert "hidden" not in told
    assert "secret" not in told


def unusable(_: Task) -> JudgeReply[Frozen]:
    """An answer that was paid for in vain."""
    raise UnusableAnswer("broken", reason="contract", attempts=2, usage=Usage(prompt_tokens=9))


@pytest.mark.parametrize(
    ("behavior", "reason", "attributes"),
    [
        (unusable, "contract", {"gen_ai.usage.input_tokens": 9, "labeler.attempts": 2}),
        (lambda _: 1 / 0, "ZeroDivisionError", {}),
    ],
)
def test_a_call_that_fails_says_by_which_code(
    behavior: Any, reason: str, attributes: dict[str, object], log: Log
) -> None:
    """And what it cost all the same."""
    assert isinstance(labeled(CountingJudge(behavior)), LabelFailure)
    (span,) = log.spans
    assert (span.status, span.ended) == (("error", reason), 1)
    assert {"error.type": reason, **attributes}.items() <= span.attributes.items()


@pytest.mark.parametrize(
    ("setting", "value"), [("breaks", True), ("refuses", True), ("recording", False)]
)
def test_a_tracer_that_breaks_or_does_not_record_costs_no_label(
    setting: str, value: bool, log: Log
) -> None:
    """The label is paid for."""
    setattr(log, setting, value)
    assert isinstance(labeled(CountingJudge()), LabelRecord)
    assert not any(span.ended for span in log.spans)


def test_without_a_tracer_nothing_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even where the package is installed."""

    def loaded() -> list[str]:
        return [name for name in sys.modules if name.partition(".")[0] == "opentelemetry"]

    for name in loaded():
        monkeypatch.delitem(sys.modules, name)
    assert isinstance(labeled(CountingJudge()), LabelRecord)
    assert not loaded()


def test_the_real_package_takes_the_spans() -> None:
    """Where it is installed: under the caller's own span, current when rows are labeled."""
    pytest.importorskip("opentelemetry.sdk")
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    with trace.get_tracer("mine").start_as_current_span("mine") as mine:
        labeled(CountingJudge())
    found = next(span for span in exporter.get_finished_spans() if span.name == "chat fake-1")
    assert found.parent.span_id == mine.get_span_context().span_id
    assert found.attributes["gen_ai.usage.input_tokens"] == 10


class Run:
    """As much of ``mlflow`` as is used, and what was logged to its active run."""

    def __init__(self) -> None:
        self.metrics: dict[str, float] = {}
        self.tags: dict[str, str] = {}
        self.artifacts: list[str] = []
        self.log_metrics, self.set_tags = self.metrics.update, self.tags.update
        self.log_artifact = self.artifacts.append


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """An active run."""
    run = Run()
    monkeypatch.setitem(sys.modules, "mlflow", run)
    return run


def summary(**options: Any) -> list[SummaryRow]:
    """Of twelve records and a failure."""
    outcomes: list[AnyOutcome] = [*map(sample_record, range(12)), failure()]
    return labeler.summary(outcomes, "relevance", **options)


def test_means_counts_and_intervals_become_metrics(run: Run, tmp_path: Path) -> None:
    """What made them is a tag, and the labels an artifact."""
    (tmp_path / "labels.jsonl").write_text("")
    (row,) = rows = summary(intervals=labeler.Intervals())
    log_summary(rows, tmp_path / "labels.jsonl")
    assert row.interval is not None
    ends = {"low": row.interval.low, "high": row.interval.high}
    counts = {"defined": 12, "undefined": 0, "failed": 1} | ends
    assert run.metrics.pop("relevance") == row.mean
    assert run.metrics == {f"relevance.{name}": value for name, value in counts.items()}
    assert run.tags["labeler.signature.relevance"] == row.signature(labeler.__version__)
    assert run.artifacts == [str(tmp_path / "labels.jsonl")]


def test_groups_have_names_that_mlflow_takes(run: Run) -> None:
    """Odd characters count as _; a metric without a mean has counts alone."""
    (row,) = summary()
    groups = {"east 1": "east 1", "a:é\n=b": "a_é__b", "..": "_", "/a//b/": "_a__b_"}
    groups["x" * 400] = "x" * 72
    for group, name in groups.items():
        log_summary([replace(row, group=group)])
        assert run.metrics[f"relevance/{name}"] == row.mean
    log_summary([replace(row, group="none", mean=None)])
    assert "relevance/none" not in run.metrics
    assert run.metrics["relevance/none.defined"] == 12


def test_metrics_of_one_name_are_refused(run: Run, tmp_path: Path) -> None:
    """One would hide the other; nothing is logged, as for a file that is not there."""
    (row,) = summary()
    with pytest.raises(UsageError, match="or metrics have the name 'relevance/a_b'"):
        log_summary([replace(row, group=group) for group in ("a:b", "a=b")])
    with pytest.raises(UsageError, match="made in 2 ways"):
        log_summary([row, replace(row, label="judge:other")])
    with pytest.raises(UsageError, match="is not a file: nothing was logged"):
        log_summary([row], tmp_path / "none.jsonl")
    assert run.metrics == {}


def test_each_model_that_answered_has_its_own_metrics(run: Run) -> None:
    """Of one name that was asked for; the tags say which signature belongs to which."""
    outcomes: list[AnyOutcome] = [
        sample_record(n).model_copy(update={"reply": ReplyFacts(served_model=model)})
        for n, model in enumerate(["m-1"] * 7 + ["m-2"] * 5)
    ]
    rows = labeler.summary(outcomes, "relevance")
    log_summary(rows)
    assert [run.metrics[f"relevance/{one}.defined"] for one in ("m-1", "m-2")] == [7, 5]
    assert run.tags == {"labeler.version": labeler.__version__} | {
        f"labeler.signature.relevance/{row.answered}": row.signature(labeler.__version__)
        for row in rows
    }


def test_mlflow_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the remedy."""
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(UsageError, match=re.escape(install_command("mlflow"))):
        log_summary(summary())


def test_a_run_logs_its_counts_at_its_end(
    run: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Tokens and failures too; without a price, no dollars. A server that is gone costs nothing."""
    rows = [{"question": "q", "documents": ["A b."], "response": "A b."}, {"question": "only"}]
    options: dict[str, Any] = {"judge": "embedded", "on_event": log_run}
    labeler.label(rows, store=labeler.MemoryStore(), **options)
    counts = {"labeled": 1, "requests": 1, "failed": 1, "stored": 0}
    counts |= {"prompt_tokens": 0, "completion_tokens": 0}
    assert run.metrics == {f"labeler.{name}": count for name, count in counts.items()}
    monkeypatch.setattr(run, "log_metrics", lambda _: 1 / 0)
    labels = labeler.label([ROW], store=labeler.MemoryStore(), **options)
    assert (len(labels), "MLflow did not take" in caplog.text) == (1, True)
