"""Spans of judge calls: what they say, what they never say, and that they cost nothing."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
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
from support.records import sample_record

ROW: dict[str, Any] = {
    "id": "secret-id",
    "question": "How long is the hidden quay?",
    "documents": ["The hidden quay is 90 m long."],
    "response": "It is 90 hidden metres long.",
}


class Log:
    """As much of ``opentelemetry.trace`` as is used; its spans keep what they are told."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.current: list[Any] = []
        self.recording, self.breaks, self.refuses = True, False, False

    def get_tracer(self, *_: object) -> Any:
        """A tracer that logs here."""
        if self.refuses:
            raise RuntimeError("no tracer today")
        return SimpleNamespace(start_span=self._start)

    def _start(self, name: str, *, kind: str, attributes: dict[str, Any]) -> Any:
        span = SimpleNamespace(name=name, kind=kind, attributes=dict(attributes), status=None)
        span.ended, span.is_recording = 0, lambda: self.recording
        span.set_attributes = self._working(span.attributes.update)
        span.set_attribute = self._working(span.attributes.__setitem__)
        span.set_status = self._working(lambda status: setattr(span, "status", status))
        span.end = self._working(lambda: setattr(span, "ended", span.ended + 1))
        self.spans.append(span)
        return span

    def _working(self, call: Callable[..., object]) -> Callable[..., object]:
        """The call, unless the tracer is broken."""

        def unless_broken(*given: object) -> object:
            if self.breaks:
                raise RuntimeError("the tracer is broken")
            return call(*given)

        return unless_broken

    @contextmanager
    def use_span(self, span: Any, **options: bool) -> Any:
        """Make it the current one."""
        assert options == dict.fromkeys(
            ("end_on_exit", "record_exception", "set_status_on_exception"), False
        )
        self.current.append(span)
        yield
        self.current.remove(span)


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    """A process that has a tracer."""
    log, module = Log(), ModuleType("opentelemetry.trace")
    vars(module).update(
        SpanKind=SimpleNamespace(CLIENT="client", INTERNAL="internal"),
        StatusCode=SimpleNamespace(ERROR="error"),
        Status=lambda code, description: (code, description),
        get_tracer=log.get_tracer,
        use_span=log.use_span,
    )
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", module)
    return log


def labeled(judge: Any) -> Any:
    """What becomes of the row."""
    (outcome,) = labeler.label([ROW], judge=judge, store=labeler.MemoryStore())
    return outcome


def test_a_judge_call_is_a_span_by_the_conventions(log: Log) -> None:
    """With what was asked for, what answered, and what it cost."""

    def answer(request: Task) -> JudgeReply[Frozen]:
        assert [span.ended for span in log.current] == [0]
        usage = Usage(prompt_tokens=90, completion_tokens=7, cached_tokens=60, cache_write_tokens=5)
        facts = ReplyFacts(served_model="fake-1-b", usage=usage, attempts=3, reasks=1)
        return JudgeReply(agreeable(request).answer, facts)

    record = labeled(CountingJudge(answer))
    (span,) = log.spans
    assert (span.name, span.kind, span.ended, span.status) == ("chat fake-1", "client", 1, None)
    assert log.current == []
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


@pytest.mark.parametrize(
    ("address", "server"),
    [
        ("https://api.openai.com/v1", ("api.openai.com", 443)),
        ("http://127.0.0.1:8000/v1", ("127.0.0.1", 8000)),
    ],
)
def test_a_hosted_model_is_named_with_its_server_and_sampling(
    address: str, server: tuple[str, int], log: Log
) -> None:
    """At the span's start, where samplers look."""
    spec = OpenAISpec(
        model="m", base_url=address, temperature=0.5, top_p=0.9, seed=7, max_output_tokens=99
    )
    requests: list[Task] = []
    labeled(CountingJudge(lambda request: requests.append(request) or agreeable(request)))  # type: ignore[func-returns-value] # keeps it on the way
    RunEvents([tracing.JudgeSpans()]).call("call", JudgeCall(spec, requests[0]))
    found = log.spans[-1].attributes
    assert (found["server.address"], found["server.port"]) == server
    assert (found["gen_ai.provider.name"], found["gen_ai.request.max_tokens"]) == ("openai", 99)
    sampling = [found[f"gen_ai.request.{name}"] for name in ("temperature", "top_p", "seed")]
    assert sampling == [0.5, 0.9, 7]


def test_no_text_of_a_row_is_in_a_span(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor its id, unless that is asked for; also where the judge fails with their words."""

    def fail(request: Task) -> JudgeReply[Frozen]:
        raise JudgeError(f"cannot read {request.messages}", reason="refusal")

    labeled(CountingJudge())
    assert isinstance(labeled(CountingJudge(fail)), LabelFailure)
    told = repr([(span.name, span.attributes, span.status) for span in log.spans])
    assert len(log.spans) == 2
    assert "hidden" not in told
    assert "secret" not in told
    monkeypatch.setattr(tracing._Privacy, "ids_shown", False)
    tracing.show_record_ids()
    labeled(CountingJudge())
    assert log.spans[2].attributes["labeler.record.id"] == "secret-id"


PAID = UnusableAnswer("broken", reason="contract", attempts=2, usage=Usage(prompt_tokens=9))


@pytest.mark.parametrize(
    ("error", "reason", "attributes"),
    [
        (PAID, "contract", {"gen_ai.usage.input_tokens": 9, "labeler.attempts": 2}),
        (KeyError("hidden"), "KeyError", {}),
    ],
)
def test_a_call_that_fails_says_by_which_code(
    error: Exception, reason: str, attributes: dict[str, object], log: Log
) -> None:
    """And what it cost all the same."""

    def fail(_: Task) -> JudgeReply[Frozen]:
        raise error

    assert isinstance(labeled(CountingJudge(fail)), LabelFailure)
    (span,) = log.spans
    assert (span.status, span.ended) == (("error", reason), 1)
    assert span.attributes["error.type"] == reason
    assert attributes.items() <= span.attributes.items()


@pytest.mark.parametrize(
    ("fault", "value", "ended"),
    [("breaks", True, [0]), ("refuses", True, []), ("recording", False, [0])],
)
def test_a_tracer_that_does_not_record_costs_no_label(
    fault: str, value: bool, ended: list[int], log: Log
) -> None:
    """Broken, absent, or without a provider: the label is paid for."""
    setattr(log, fault, value)
    assert isinstance(labeled(CountingJudge()), LabelRecord)
    assert [span.ended for span in log.spans] == ended


def test_a_judge_in_this_process_is_called_so(log: Log) -> None:
    """As the embedded one."""
    labeled("embedded")
    assert [span.kind for span in log.spans] == ["internal"]


def test_without_a_tracer_nothing_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even where the package is installed."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "opentelemetry"]:
        monkeypatch.delitem(sys.modules, name)
    assert isinstance(labeled(CountingJudge()), LabelRecord)
    assert not [name for name in sys.modules if name.partition(".")[0] == "opentelemetry"]


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
    logged = (run.metrics.update, run.tags.update, run.artifacts.append)
    vars(module).update(zip(("log_metrics", "set_tags", "log_artifact"), logged, strict=True))
    monkeypatch.setitem(sys.modules, "mlflow", module)
    return run


def summary(**options: Any) -> list[SummaryRow]:
    """Of twelve records and a failure."""
    outcomes: list[AnyOutcome] = [*(sample_record(n) for n in range(12)), FAILURE]
    return labeler.summary(outcomes, "relevance", **options)


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
    assert run.tags["labeler.signature.relevance"] == row.signature(labeler.__version__)
    assert run.artifacts == [str(tmp_path / "labels.jsonl")]


def test_groups_have_names_that_mlflow_takes(run: Run) -> None:
    """Odd characters count as _; a metric without a mean has counts alone."""
    (row,) = summary()
    odd = replace(row, group="a:é\n=b", mean=None)
    log_summary([replace(row, group="east 1"), odd])
    assert run.metrics["relevance/east 1"] == row.mean
    assert "relevance/a_é__b" not in run.metrics
    assert run.metrics["relevance/a_é__b.defined"] == 12
    for path in ("..", "/a//b/", "x" * 400):
        log_summary([replace(row, group=path)])
    assert {"relevance/_", "relevance/_a__b_", f"relevance/{'x' * 72}"} <= run.metrics.keys()


def test_metrics_of_one_name_are_refused(run: Run, tmp_path: Path) -> None:
    """One would hide the other; nor is a file logged that is not there. Nothing is logged."""
    (row,) = rows = summary()
    named = [replace(row, group=group) for group in ("a:b", "a=b")]
    for given, words in (
        ((named,), "or metrics have the name 'relevance/a_b'"),
        (([row, replace(row, label="judge:other")],), "made in 2 ways"),
        ((rows, tmp_path / "none.jsonl"), "is not a file: nothing was logged"),
    ):
        with pytest.raises(UsageError, match=words):
            log_summary(*given)
    assert run.metrics == {}


def test_each_model_that_answered_has_its_own_metrics(run: Run) -> None:
    """Of one name that was asked for; the tags say which signature belongs to which."""
    made = list(map(sample_record, range(12)))
    for n, one in enumerate(made):
        reply = one.reply.model_copy(update={"served_model": "m-1" if n < 7 else "m-2"})
        made[n] = one.model_copy(update={"reply": reply})
    rows = labeler.summary(made, "relevance")
    log_summary(rows)
    assert [run.metrics[f"relevance/{one}.defined"] for one in ("m-1", "m-2")] == [7, 5]
    signatures = {
        f"labeler.signature.relevance/{row.answered}": row.signature(labeler.__version__)
        for row in rows
    }
    assert run.tags == {"labeler.version": labeler.__version__, **signatures}


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


def test_an_mlflow_that_fails_costs_no_label(
    run: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its server may be gone at the end of a run."""
    del run
    monkeypatch.setattr(sys.modules["mlflow"], "log_metrics", lambda _: 1 / 0)
    labels = labeler.label([ROW], judge="embedded", store=labeler.MemoryStore(), on_event=log_run)
    assert (len(labels), "MLflow did not take" in caplog.text) == (1, True)
