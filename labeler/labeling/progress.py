"""The progress of a run: a bar on a terminal, a line in a notebook, and calls of a function."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, Self

from labeler.judges.limits import Budget
from labeler.labeling.cache import Origin
from labeler.labeling.run import RunCounts
from labeler.labels.record import AnyOutcome
from labeler.sentences.characters import visible
from labeler.sentences.display import Display, Displayed, console, is_notebook

if TYPE_CHECKING:
    from rich import progress

_SECONDS = 0.2
"""Seconds between two drawings."""
_NOTICES = 3
"""Notices that a notebook shows."""


class RunEvent(NamedTuple):
    """An event of a run, for ``on_event``.

    Attributes:
        kind: ``start``: the rows are counted; ``result``: an outcome, in output order; ``judged``:
            a new judgment; ``notice``: a message for people, on any thread; ``finish``: the end.
        counts: the counts so far.
        outcome: the outcome of ``result`` and ``judged``.
        text: the message of ``notice``.
    """

    kind: Literal["start", "result", "judged", "notice", "finish"]
    counts: RunCounts
    outcome: AnyOutcome | None = None
    text: str = ""


class _Bar(Protocol):
    """Draws counts."""

    def start(self) -> None: ...
    def draw(self, counts: RunCounts) -> None: ...
    def notice(self, text: str) -> None: ...
    def stop(self) -> None: ...


class Progress(RunCounts):
    """Counts of a run, drawn on a terminal or in a notebook and nowhere else.

    Use as a context manager, or as the listener of a run.

    Args:
        doing: name of the activity, such as ``labeling``.
        on_event: called with each event.
        shown: False to draw nothing.
    """

    def __init__(
        self,
        doing: str,
        on_event: Callable[[RunEvent], object] | None = None,
        *,
        shown: bool = True,
    ) -> None:
        super().__init__()
        self._on_event = on_event
        self.bar: _Bar | None = _bar(doing) if shown else None
        self._next_drawing = 0.0

    def __enter__(self) -> Self:
        if self.bar:
            self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar:
            self.bar.draw(self)
            self.bar.stop()

    def on_start(self, outcomes: int | None) -> None:
        """Draw the bar."""
        super().on_start(outcomes)
        if self.bar:
            self.bar.start()
            self.bar.draw(self)
        self._event("start")

    def on_result(self, outcome: AnyOutcome, origin: Origin) -> None:
        """Count and draw an outcome."""
        super().on_result(outcome, origin)
        if self.bar and (self.reached == self.total or time.monotonic() >= self._next_drawing):
            self.bar.draw(self)
            self._next_drawing = time.monotonic() + _SECONDS
        if self._on_event:
            self._event("result", outcome)

    def _event(
        self,
        kind: Literal["start", "result", "judged", "notice", "finish"],
        outcome: AnyOutcome | None = None,
        text: str = "",
    ) -> None:
        if self._on_event:
            self._on_event(RunEvent(kind, self, outcome, text))

    def on_judged(self, outcome: AnyOutcome) -> None:
        """Count a new outcome."""
        super().on_judged(outcome)
        self._event("judged", outcome)

    def on_notice(self, text: str) -> None:
        """Show a message for people; safe to call from any thread."""
        if self.bar:
            self.bar.notice(text)
        self._event("notice", text=text)

    def on_finish(self, spent: Budget) -> None:
        """Draw the bar for the last time."""
        super().on_finish(spent)
        self.__exit__()
        self._event("finish")


def _bar(doing: str) -> _Bar | None:
    """Return what draws progress here; ``None`` for a pipe or a file."""
    if is_notebook():
        return _NotebookBar(doing)
    return _TerminalBar(doing) if sys.stderr.isatty() else None


class _TerminalBar:
    """A bar of rich on standard error."""

    def __init__(self, doing: str) -> None:
        from rich import progress  # noqa: PLC0415 - for terminals only

        self._bar: progress.Progress = progress.Progress(
            progress.TextColumn(doing),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TextColumn("{task.fields[rate]:.0f}/s"),
            progress.TextColumn("{task.fields[stored]} stored"),
            progress.TextColumn("{task.fields[failed]} failed"),
            progress.TimeRemainingColumn(),
            console=console(stderr=True),
            # rich would redirect standard output to the bar's terminal.
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._task = self._bar.add_task("", total=None, rate=0.0, stored=0, failed=0)

    def start(self) -> None:
        self._bar.start()

    def draw(self, counts: RunCounts) -> None:
        rate = self._bar.tasks[self._task].speed or 0.0
        self._bar.update(
            self._task,
            total=counts.total,
            completed=counts.reached,
            rate=rate,
            stored=counts.origins["store"],
            failed=counts.failed,
        )

    def notice(self, text: str) -> None:
        self._bar.console.print(visible(text))

    def stop(self) -> None:
        self._bar.stop()


class _NotebookBar(Displayed):
    """A line in the output of a notebook's cell, replaced as the run goes on."""

    def __init__(self, doing: str) -> None:
        self._doing, self._line = doing, ""
        self._notices: list[str] = []
        self._handle: Any = None

    def start(self) -> None:
        if self._handle is None:
            from IPython.display import display  # noqa: PLC0415 - a notebook has it

            self._handle = display(self, display_id=True)

    def draw(self, counts: RunCounts) -> None:
        total = "" if counts.total is None else f" of {counts.total:,}"
        self._line = (
            f"{self._doing}: {counts.reached:,}{total}, "
            f"{counts.origins['store']:,} stored, {counts.failed:,} failed"
        )
        if self._handle is not None:
            self._handle.update(self)

    def notice(self, text: str) -> None:
        self._notices = [*self._notices, text][-_NOTICES:]

    def stop(self) -> None:
        if self._handle is not None:
            self._handle.update(self)

    def _display(self) -> Display:
        return Display(self._line or self._doing, notes=self._notices)
