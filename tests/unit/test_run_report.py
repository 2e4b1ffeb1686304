"""What a run shows while it works, and what it says of itself when it is over."""

from __future__ import annotations

import re
import sys
import types
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import labeler
from labeler.judges.limits import Budget
from labeler.labeling.progress import Progress, RunEvent, RunEvents
from labeler.labels.record import LabelFailure
from support.command import Command
from wire.provider import Provider, Script, changes
from wire.runs import labeling, row_file, rows


class Told(NamedTuple):
    """How a run ended, and what it said."""

    code: int
    lines: list[str]

    def line(self, start: str) -> str:
        """The one line that begins so."""
        (found,) = [line for line in self.lines if re.match(start, line)]
        return found


Label = Callable[..., Told]


@pytest.fixture
def label(labeler_command: Command, tmp_path: Path) -> Label:
    """Run ``labeler label`` in this process, in a folder of its own."""

    def labeled(
        provider: Provider, *more: object, count: int = 4, output: str = "labels.jsonl"
    ) -> Told:
        given = row_file(tmp_path, rows(count))
        asking = labeling(provider, given, "--concurrency", 1, *more, output=output)
        code, _, err = labeler_command(*asking)
        return Told(code, err.splitlines())

    return labeled


@pytest.mark.parametrize(
    ("price", "said"), [((), "; price unknown"), (("--price", "100,400,10"), "; $5.002")]
)
def test_tokens_are_those_that_the_provider_charged(
    label: Label, price: tuple[str, ...], said: str
) -> None:
    """Of every answer, with the part from its cache. One model is not worth a line."""
    with Provider(["unknown-key", "ok", "refusal"]) as provider:
        told = label(provider, *price)
    line = told.line(r"\d+ requests")
    # 9,960 x 100 + 40 x 10 + 10 x 400 = 1,000,400 millionths of a dollar each
    assert (provider.tokens.prompt, said in line) == (50_000, True)
    assert f"{provider.tokens.prompt} prompt tokens ({provider.tokens.cached} cached)" in line
    assert f"{provider.tokens.completion} completion tokens" in line
    assert not any("answered by" in text for text in told.lines)


def test_a_run_that_is_broken_off_tells_as_much_as_a_whole_one(label: Label) -> None:
    """How far it came, what it took, and what became of the file."""
    given = ("--price", "100,400,10", "--no-wait")
    with Provider(["unknown-key", "ok", "refusal", "ok", *["429-wait-long"] * 9]) as provider:
        told = label(provider, *given, count=6)
    assert told.code == 75
    assert told.line("2 labeled by openai/m, 0 from the store, 1 failed") == (
        "2 labeled by openai/m, 0 from the store, 1 failed (refusal 1), 3 of 6 rows not reached, "
        "answers that came for them are stored and counted in dollars alone"
    )
    said = told.line(r"\d+ requests")
    assert said.startswith("4 requests, 1 re-asked (unknown_key 1); 40000 prompt tokens")
    assert "; $4.0016 by " in said
    assert told.lines[-2] == "labels.jsonl was not written"
    with Provider() as provider:
        assert label(provider, *given, count=3).code == 1
    with Provider(["429-wait-long"] * 9) as provider:
        again = label(provider, *given, count=6)
    assert again.line("0 labeled").startswith("0 labeled by openai/m, 2 from the store, 1 failed")
    assert again.lines[-2] == "labels.jsonl keeps its older content"


def test_a_run_that_is_broken_off_before_it_began_says_why_alone(label: Label) -> None:
    """There is nothing to count; what went to a device or a pipe is with its reader."""
    with Provider() as provider:
        told = label(provider, output="no/such/folder.jsonl")
    assert (told.code, len(told.lines)) == (2, 1)
    with Provider(["429-wait-long"] * 9) as provider:
        told = label(provider, "--no-wait", output="/dev/null")
    assert told.code == 75
    assert not any("/dev/null" in line for line in told.lines)


def test_a_run_that_the_store_answers_reports_no_spending(label: Label) -> None:
    """What another run bought is not counted again; nor is a stored refusal."""
    with Provider(["refusal"]) as provider:
        label(provider, "--price", "1,1")
        again = label(provider, "--price", "1,1")
        assert len(provider.calls) == 4
        further = label(provider, "--price", "1,1", count=5)
    assert (again.code, len(provider.calls)) == (1, 5)
    assert not any("requests" in line or "$" in line for line in again.lines)
    assert again.line("0 labeled").startswith(
        "0 labeled by openai/m, 3 from the store, 1 failed (refusal"
    )
    assert further.line("1 request").startswith("1 request; 10000 prompt tokens (40 cached)")


def test_more_than_one_model_that_answered_is_told(label: Label) -> None:
    """A name that came to mean another model in the middle of a run, or since the last one."""
    with Provider(["ok", "ok", "drift"]) as provider:
        told = label(provider)
    said = "answered by 2 models: stub-1-2026-11-01 3, stub-2-2026-11-20 1"
    assert told.line("answered by") == said
    with Provider() as provider:  # all from the store, but they are still of two models
        again = label(provider)
    assert again.line("answered by") == said


def test_a_server_that_names_a_model_for_each_answer_gets_one_line(label: Label) -> None:
    """Its names are shortened to a few, and cannot command the terminal."""
    script: Script = lambda call: changes(  # noqa: E731 - one use
        lambda value: value.update(model=f"m{call.number}\x1b[2J")
    )
    with Provider(script) as provider:
        told = label(provider, count=9)
    said = told.line("answered by")
    assert said.startswith("answered by 9 models: m")
    assert said.endswith(", and 4 more")
    assert "\x1b" not in said
    assert "<U+001B>" in said


@pytest.mark.parametrize(("is_terminal", "progress"), [(True, True), (True, False), (False, True)])
def test_a_terminal_shows_progress_unless_it_is_off(
    is_terminal: bool,
    progress: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A bar with counts, or nothing at all."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr.isatty", lambda: is_terminal)
    labeler.label(rows(5), judge="embedded", store=labeler.MemoryStore(), progress=progress)
    out, err = capsys.readouterr()
    assert ("5 of 5" in err, "labeling" in err) == (is_terminal and progress,) * 2
    assert (out, bool(err)) == ("", is_terminal and progress)


def test_a_log_has_a_line_now_and_then_and_every_notice(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """With counts, rate, time left and dollars."""
    caplog.set_level("INFO", "labeler")
    clock = iter(range(0, 1000, 20))
    stopped = types.SimpleNamespace(monotonic=lambda: next(clock))
    monkeypatch.setattr("labeler.labeling.progress.time", stopped)
    events = RunEvents([Progress("labeling")])
    spent = Budget()
    events.start(5, spent)
    spent.known = Decimal("0.421")
    for number in range(4):
        failure = LabelFailure(id=str(number), reason="refusal", message="No.")
        events.result(failure, "judge")
    events.notice("The server is slow.")
    lines = [one.getMessage() for one in caplog.records]
    assert lines[0].startswith("labeling: 2 of 5, ")
    assert lines[0].endswith(" left, 0 stored, 2 failed, $0.42")
    assert lines[-1] == "The server is slow."


def test_each_event_is_handed_to_a_function() -> None:
    """In order, with the counts so far; so are those of a stream."""
    seen: list[RunEvent] = []
    reached: list[int] = []

    def note(event: RunEvent) -> None:
        seen.append(event)
        reached.append(event.counts.reached)

    given = [*rows(5), {**rows(1)[0], "id": "empty", "response": ""}]
    for run in (labeler.label, labeler.iter_labels):
        seen.clear()
        reached.clear()
        list(run(given, judge="embedded", store=labeler.MemoryStore(), on_event=note))
        kinds = [event.kind for event in seen]
        assert (kinds[0], kinds[-1]) == ("start", "finish")
        assert (kinds.count("result"), kinds.count("judged")) == (6, 5)
        assert sorted(reached) == reached
        counts = seen[-1].counts
        assert (counts.total, counts.origins["judge"]) == (6, 5)
        assert counts.reasons == {"empty_response": 1}


class Handle:
    """A display of a notebook."""

    def __init__(self) -> None:
        self.drawn = ""

    def update(self, shown: Any) -> None:
        """Replace what is shown."""
        self.drawn = shown._repr_html_()


def test_a_notebook_shows_one_line_that_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Escaped, and without widgets."""
    handles: list[Handle] = []

    def display(shown: object, *, display_id: bool) -> Handle:
        assert display_id
        handles.append(Handle())
        handles[-1].update(shown)
        return handles[-1]

    shell = types.SimpleNamespace(kernel=object())
    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: shell  # type: ignore[attr-defined]
    displays = types.ModuleType("IPython.display")
    displays.display = display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", displays)
    labeler.label(rows(5), judge="embedded", store=labeler.MemoryStore())
    (handle,) = handles
    assert "labeling: 5 of 5, " in handle.drawn
    with Progress("<b>\u202e") as progress:
        events = RunEvents([progress])
        events.notice("<script>")
        events.result(LabelFailure(id="1", reason="r", message="m"), "row")
    assert "&lt;b&gt;&lt;U+202E&gt;: 1, " in handles[-1].drawn
    assert "<script>" not in handles[-1].drawn
