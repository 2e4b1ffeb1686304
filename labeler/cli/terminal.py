"""What people see in a terminal: safe text, and how a run goes.

Documents, answers and explanations are strangers' text. Nothing of them reaches the terminal
unescaped: no control sequence, no direction override, no markup.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Self

from labeler.characters import visible

if TYPE_CHECKING:
    from rich.console import Console

    from labeler.pipeline import Origin
    from labeler.record import Outcome

PLAIN_WIDTH = 100
"""Columns of output that goes to a file or a pipe."""

_SHOWN_FAILURES = 3


def console(*, stderr: bool = False) -> Console:
    """A console that neither reads markup nor guesses at emphasis or emoji."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else PLAIN_WIDTH
    return Console(file=stream, markup=False, highlight=False, emoji=False, width=width)


def say(message: str) -> None:
    """Write for people, on standard error."""
    sys.stderr.write(visible(message) + "\n")


class Progress:
    """Watches a run: counts outcomes, and draws a bar where standard error is a terminal.

    Use as a context manager.
    """

    def __init__(self, doing: str) -> None:
        from rich import progress

        self.origins: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        self.repairs: Counter[str] = Counter()
        self.tokens: Counter[str] = Counter()
        self.failures: list[str] = []
        self._bar = progress.Progress(
            progress.TextColumn(doing),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TextColumn("{task.fields[rate]:.0f}/s"),
            progress.TextColumn("{task.fields[stored]} stored"),
            progress.TextColumn("{task.fields[failed]} failed"),
            progress.TimeRemainingColumn(),
            console=console(stderr=True),
            disable=not sys.stderr.isatty(),
            # rich would send what we print to standard output to the bar's terminal instead.
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._task = self._bar.add_task("", total=None, rate=0.0, stored=0, failed=0)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def begin(self, rows: int, repeated: int) -> None:
        """Learn how many rows there are."""
        self._bar.update(self._task, total=rows)
        if repeated:
            say(f"{repeated} rows repeat an earlier one in every field and are left out")

    def seen(self, outcome: Outcome, origin: Origin) -> None:
        """Count an outcome."""
        if outcome.kind == "failure":
            self.reasons[outcome.reason] += 1
            if len(self.failures) < _SHOWN_FAILURES:
                self.failures.append(outcome.message)
        else:
            self.origins[origin] += 1
            self.repairs.update(outcome.normalised)
            self.repairs.update(violation.kind for violation in outcome.violations)
        usage = outcome.usage if outcome.kind == "failure" else outcome.reply.usage
        if origin == "judge" and usage:
            self.tokens.update(usage.model_dump())
        rate = self._bar.tasks[self._task].speed or 0.0
        stored = self.origins["store"]
        self._bar.update(self._task, advance=1, rate=rate, stored=stored, failed=self.failed)

    def watching(self, outcomes: Iterable[Outcome]) -> Iterator[Outcome]:
        """Count outcomes that come straight from rows, while passing them on."""
        for outcome in outcomes:
            self.seen(outcome, "row")
            yield outcome

    @property
    def failed(self) -> int:
        """Rows without a label."""
        return self.reasons.total()

    def close(self, *counts: str) -> None:
        """Say how it went: counts, failures by reason, and the first few failures in full."""
        parts = [*counts, f"{self.failed} failed{_counted(self.reasons)}"]
        if self.repairs:
            parts.append(f"repaired or kept as stored{_counted(self.repairs)}")
        if self.tokens:
            parts.append(
                f"{self.tokens['prompt_tokens']} prompt tokens "
                f"({self.tokens['cached_tokens']} cached), "
                f"{self.tokens['completion_tokens']} completion tokens"
            )
        say(", ".join(parts))
        for message in self.failures:
            say(f"  {message}")
        if self.failed > len(self.failures):
            say(
                f"  … and {self.failed - len(self.failures)} more, each with its reason in its line"
            )


def _counted(counter: Counter[str]) -> str:
    """`` (refusal 2, contract 1)``, or nothing."""
    listed = ", ".join(f"{name} {count}" for name, count in counter.most_common())
    return f" ({listed})" if listed else ""
