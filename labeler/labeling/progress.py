"""Events of a run, their counts, and the progress that a terminal or a notebook shows."""

from __future__ import annotations

import logging
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

from labeler.errors import for_caller
from labeler.judges.judge import JudgeSpec
from labeler.judges.limits import Budget
from labeler.judges.task import Task
from labeler.labels.answering import unmetered_requests
from labeler.labels.record import AnyOutcome, LabelFailure, ReplyFacts, Usage
from labeler.sentences.characters import visible
from labeler.sentences.display import Display, Displayed, console, is_notebook

if TYPE_CHECKING:
    from rich import progress

_LOG = logging.getLogger("labeler")
_SECONDS = 0.2
"""Seconds between two drawings."""
_LOG_SECONDS = 30.0
"""Seconds between two lines where nothing is drawn, such as in a log."""
_MINUTE = 60
_NOTICES = 3
"""Notices that a notebook shows."""
_SHOWN_FAILURES = 3

Origin = Literal["judge", "store", "row"]
"""Source of an outcome: a fresh judgment, the store, or the input row itself."""


class JudgeCall(NamedTuple):
    """One call of a judge.

    Attributes:
        spec: the judge's.
        task: the task.
        facts: facts of the reply, if there is one.
        error: the error, if the call failed.
    """

    spec: JudgeSpec
    task: Task[Any]
    facts: ReplyFacts | None = None
    error: BaseException | None = None


class RunEvent(NamedTuple):
    """An event of a run, for ``on_event``.

    Attributes:
        kind: ``start``: the rows are counted, before any spend; ``call`` and ``reply``: before and
            after each call of a judge, on the run's own thread; ``judged``: a new judgment,
            including votes and steps, before its row's result; ``result``: an outcome, in output
            order; ``notice``: a message for people, on any thread; ``finish``: the end, even of a
            failed run.
        counts: the counts so far.
        outcome: the outcome of ``result`` and ``judged``.
        text: the message of ``notice``.
        origin: the source of the outcome of ``result``.
        call: the call of ``call`` and ``reply``.
    """

    kind: Literal["start", "call", "reply", "judged", "result", "notice", "finish"]
    counts: RunCounts
    outcome: AnyOutcome | None = None
    text: str = ""
    origin: Origin = "judge"
    call: JudgeCall | None = None


OnEvent = Callable[[RunEvent], object]


class RunCounts:
    """Counts of a run.

    Attributes:
        started: True once rows are read.
        total: number of outcomes to come; ``None`` if it is unknown.
        origins: number of records by origin.
        reasons: number of failures by reason.
        repairs: repairs and kept violations of labels and scores by kind.
        broken: violations by kind in answers that were asked for again.
        models: number of records by the model name that the server returned.
        requests: requests sent for new outcomes.
        reasks: answers sent back to the judge.
        usage: tokens of new outcomes.
        unmetered: requests of new outcomes whose tokens the server did not report.
        spent: cost of all requests so far; ``None`` before the run starts.
        failures: messages of the first few failures.
    """

    def __init__(self) -> None:
        self.started = False
        self.total: int | None = None
        self.origins, self.reasons = Counter[str](), Counter[str]()
        self.repairs, self.broken, self.models = Counter[str](), Counter[str](), Counter[str]()
        self.requests = self.reasks = self.unmetered = 0
        self.usage = Usage()
        self.spent: Budget | None = None
        self.failures: list[str] = []

    @property
    def failed(self) -> int:
        """Rows without a record."""
        return self.reasons.total()

    @property
    def reached(self) -> int:
        """Rows with an outcome."""
        return self.origins.total() + self.failed

    @property
    def dollars(self) -> str:
        """The cost so far, such as ``$0.42``; empty if nothing was spent."""
        return f"${self.spent.spent:.2f}" if self.spent and self.spent.spent else ""

    def line(self, doing: str, seconds: float) -> str:
        """Return the progress after some seconds as text: counts, rate, time left and dollars."""
        rate = self.reached / seconds if seconds > 0 else 0.0
        total = "" if self.total is None else f" of {self.total:,}"
        parts = [f"{doing}: {self.reached:,}{total}"]
        if rate:
            parts.append(f"{rate:.0f}/s" if rate >= 1 else f"{rate * _MINUTE:.1f}/min")
        if rate and self.total is not None and self.reached < self.total:
            parts.append(f"{duration((self.total - self.reached) / rate)} left")
        parts += [f"{self.origins['store']:,} stored", f"{self.failed:,} failed", self.dollars]
        return ", ".join(filter(None, parts))

    def add(self, other: RunCounts) -> None:
        """Add the counts of another run."""
        for name in ("origins", "reasons", "repairs", "broken", "models"):
            getattr(self, name).update(getattr(other, name))
        for name in ("requests", "reasks", "unmetered", "usage"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.failures = [*self.failures, *other.failures][:_SHOWN_FAILURES]
        if other.spent:
            self.spent = self.spent or Budget()
            self.spent.known += other.spent.known
            self.spent.doubtful += other.spent.doubtful

    def result(self, outcome: AnyOutcome, origin: Origin) -> None:
        """Count an outcome, in output order."""
        if isinstance(outcome, LabelFailure):
            self.reasons[outcome.reason] += 1
            if len(self.failures) < _SHOWN_FAILURES:
                self.failures.append(outcome.message)
            return
        self.origins[origin] += 1
        if outcome.reply.served_model:
            self.models[outcome.reply.served_model] += 1
        self.repairs.update(getattr(outcome, "normalised", {}))
        for violation in getattr(outcome, "violations", ()):
            self.repairs[violation.kind] += 1

    def judged(self, outcome: AnyOutcome) -> None:
        """Count the requests and tokens of a new outcome."""
        facts: LabelFailure | ReplyFacts
        if isinstance(outcome, LabelFailure):
            facts = outcome
            self.broken.update(violation.kind for violation in outcome.violations)
        else:
            facts = outcome.reply
            self.broken.update(facts.broken_contracts)
        self.requests += facts.attempts
        self.reasks += facts.reasks
        if facts.usage:
            self.usage += facts.usage
        self.unmetered += unmetered_requests(outcome)


class RunEvents:
    """Counts the events of a run and passes them on.

    Args:
        listeners: called with each event.
    """

    def __init__(self, listeners: Sequence[OnEvent] = ()) -> None:
        self.listeners, self.counts = listeners, RunCounts()

    def start(self, outcomes: int | None, spent: Budget | None = None) -> None:
        """Report the start.

        Args:
            outcomes: number of outcomes to come; ``None`` if it is unknown before rows are read.
            spent: cost of the requests, updated while they are sent.
        """
        self.counts.started, self.counts.total, self.counts.spent = True, outcomes, spent
        self._pass_on("start")

    def result(self, outcome: AnyOutcome, origin: Origin) -> None:
        """Report an outcome, in output order."""
        self.counts.result(outcome, origin)
        self._pass_on("result", outcome=outcome, origin=origin)

    def judged(self, outcome: AnyOutcome) -> None:
        """Report a fresh judgment."""
        self.counts.judged(outcome)
        self._pass_on("judged", outcome=outcome)

    def call(self, kind: Literal["call", "reply"], call: JudgeCall) -> None:
        """Report a call of a judge; a listener that fails here costs no label."""
        for listener in self.listeners:
            try:
                listener(RunEvent(kind, self.counts, call=call))
            except Exception:  # noqa: BLE001 - the call is paid for
                _LOG.exception("on_event failed for %s of %r", kind, call.task.example.id)

    def notice(self, text: str) -> None:
        """Report a message for people, and log it; safe to call from any thread."""
        _LOG.info("%s", for_caller(text))
        self._pass_on("notice", text=text)

    def finish(self, spent: Budget) -> None:
        """Report the end and the cost of all requests, including those without a record."""
        self.counts.spent = spent
        self._pass_on("finish")

    def _pass_on(self, kind: Any, **facts: Any) -> None:  # noqa: ANN401 - as RunEvent has them
        for listener in self.listeners:
            listener(RunEvent(kind, self.counts, **facts))


class Progress:
    """Progress drawn on a terminal or in a notebook, elsewhere logged every 30 seconds.

    Use as a listener of a run, or as a context manager.

    Args:
        doing: name of the activity, such as ``labeling``.

    Attributes:
        counts: the counts of the last event.
    """

    def __init__(self, doing: str) -> None:
        self.counts = RunCounts()
        self.bar = _bar()
        self._doing, self._began = doing, time.monotonic()
        self._next_line = 0.0 if self.bar else self._began + _LOG_SECONDS

    def __enter__(self) -> Self:
        if self.bar:
            self.bar.start()
            self.bar.draw(self.counts, self._line())
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar:
            self.bar.draw(self.counts, self._line())
            self.bar.stop()

    def __call__(self, event: RunEvent) -> None:
        """Draw an event."""
        self.counts = event.counts
        if self.bar is None:
            self._log(event)
        elif event.kind == "start":
            self.__enter__()
        elif event.kind == "result":
            is_last = self.counts.reached == self.counts.total
            if is_last or time.monotonic() >= self._next_line:
                self._next_line = time.monotonic() + _SECONDS
                self.bar.draw(self.counts, self._line())
        elif event.kind == "notice":
            self.bar.notice(event.text)
        elif event.kind == "finish":
            self.__exit__()

    def _log(self, event: RunEvent) -> None:
        """Write a line if the last one was written long enough ago."""
        if event.kind in {"result", "judged"} and time.monotonic() >= self._next_line:
            self._next_line = time.monotonic() + _LOG_SECONDS
            self.write(self._line())

    def _line(self) -> str:
        return self.counts.line(self._doing, time.monotonic() - self._began)

    def write(self, line: str) -> None:
        """Write a line of progress where nothing is drawn; by default to the log."""
        _LOG.info("%s", line)


def duration(seconds: float) -> str:
    """Return a time in the unit that people would name, such as ``2.5 h``."""
    for unit, name in ((86_400, "days"), (3600, "h"), (_MINUTE, "min")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:.1f} {name}"
    return f"{seconds:.0f} s"


def _bar() -> _TerminalBar | _NotebookBar | None:
    """Return what draws progress here; ``None`` for a pipe or a file."""
    if is_notebook():
        return _NotebookBar()
    return _TerminalBar() if sys.stderr.isatty() else None


class _TerminalBar:
    """A bar of rich on standard error."""

    def __init__(self) -> None:
        from rich import progress  # noqa: PLC0415 - for terminals only

        self._bar: progress.Progress = progress.Progress(
            progress.BarColumn(bar_width=10),  # the line is what a narrow terminal needs
            progress.TextColumn("{task.description}"),
            console=console(stderr=True),
            # rich would redirect standard output to the bar's terminal.
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._task = self._bar.add_task("", total=None)
        self.start, self.stop = self._bar.start, self._bar.stop

    def draw(self, counts: RunCounts, line: str) -> None:
        total, reached = counts.total, counts.reached
        self._bar.update(self._task, total=total, completed=reached, description=line)

    def notice(self, text: str) -> None:
        self._bar.console.print(visible(text))


class _NotebookBar(Displayed):
    """A line in the output of a notebook's cell, replaced as the run goes on."""

    def __init__(self) -> None:
        self._line, self._notices = "", list[str]()
        self._handle: Any = None

    def start(self) -> None:
        if self._handle is None:
            from IPython.display import display  # noqa: PLC0415 - a notebook has it

            self._handle = display(self, display_id=True)

    def draw(self, counts: RunCounts, line: str) -> None:  # noqa: ARG002 - as on a terminal
        self._line = line
        self._update()

    def notice(self, text: str) -> None:
        self._notices = [*self._notices, text][-_NOTICES:]

    def stop(self) -> None:
        self._update()

    def _update(self) -> None:
        if self._handle is not None:
            self._handle.update(self)

    def _display(self) -> Display:
        return Display(self._line, notes=self._notices)
