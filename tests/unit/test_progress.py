"""Progress where somebody sees it, and calls of one's own function anywhere."""

from __future__ import annotations

import subprocess
import sys
import types
from decimal import Decimal
from typing import Any

import pytest

import labeler
from labeler.judges.limits import Budget
from labeler.labeling.progress import Progress, RunEvent, RunEvents
from labeler.labels.record import LabelFailure

ROWS = [
    {"id": str(n), "question": f"Q{n}?", "documents": [f"D{n} is."], "response": f"D{n} is."}
    for n in range(5)
]
PROGRAM = f"""
import labeler
labeler.label({ROWS!r}, judge="embedded", store=labeler.MemoryStore(), **OPTIONS)
"""


def on_a_terminal(program: str) -> str:
    """What a program writes to a terminal."""
    import os
    import pty

    ours, theirs = pty.openpty()
    done = subprocess.Popen([sys.executable, "-c", program], stdout=theirs, stderr=theirs)
    os.close(theirs)
    written = b""
    while True:
        try:
            piece = os.read(ours, 1 << 16)
        except OSError:
            break
        if not piece:
            break
        written += piece
    os.close(ours)
    assert done.wait() == 0, written
    return written.decode()


def test_a_terminal_shows_progress_unless_it_is_off() -> None:
    """A bar with counts, or nothing at all."""
    shown = on_a_terminal(PROGRAM.replace("OPTIONS", "{}"))
    assert "labeling" in shown
    assert "5/5" in shown
    assert on_a_terminal(PROGRAM.replace("OPTIONS", "{'progress': False}")) == ""


def test_a_pipe_shows_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    """Neither on standard output nor on standard error."""
    labeler.label(ROWS, judge="embedded", store=labeler.MemoryStore())
    assert capfd.readouterr() == ("", "")


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

    rows = [*ROWS, {**ROWS[0], "id": "empty", "response": ""}]
    for run in (labeler.label, labeler.iter_labels):
        seen.clear()
        reached.clear()
        list(run(rows, judge="embedded", store=labeler.MemoryStore(), on_event=note))
        kinds = [event.kind for event in seen]
        assert (kinds[0], kinds[-1]) == ("start", "finish")
        assert (kinds.count("result"), kinds.count("judged")) == (6, 5)
        assert sorted(reached) == reached
        counts = seen[-1].counts
        assert (counts.total, counts.origins["judge"], counts.reasons["empty_response"]) == (
            6,
            5,
            1,
        )


class Handle:
    """A display of a notebook."""

    def __init__(self, shown: object) -> None:
        self.drawn = [self._html(shown)]

    def update(self, shown: object) -> None:
        """Replace what is shown."""
        self.drawn.append(self._html(shown))

    @staticmethod
    def _html(shown: Any) -> str:
        return str(shown._repr_html_())


def test_a_notebook_shows_one_line_that_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Escaped, and without widgets."""
    handles: list[Handle] = []

    def display(shown: object, *, display_id: bool) -> Handle:
        assert display_id
        handles.append(Handle(shown))
        return handles[-1]

    shell = types.SimpleNamespace(kernel=object())
    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: shell  # type: ignore[attr-defined]
    displays = types.ModuleType("IPython.display")
    displays.display = display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", displays)
    labeler.label(ROWS, judge="embedded", store=labeler.MemoryStore())
    (handle,) = handles
    assert "labeling: 5 of 5, " in handle.drawn[-1]
    with Progress("<b>\u202e") as progress:
        events = RunEvents([progress])
        events.notice("<script>")
        events.result(LabelFailure(id="1", reason="r", message="m"), "row")
    assert "&lt;b&gt;&lt;U+202E&gt;: 1, " in handles[-1].drawn[-1]
    assert "<script>" not in handles[-1].drawn[-1]
