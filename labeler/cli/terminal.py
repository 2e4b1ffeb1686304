"""What people see in a terminal: safe text, and how a run goes.

Documents, answers and explanations are strangers' text. Nothing of them reaches the terminal
unescaped: no control sequence, no direction override, no markup.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Self, TypeVar

from labeler.sentences.characters import plain_json, visible

if TYPE_CHECKING:
    from rich.console import Console

    from labeler.judges.pricing import Price
    from labeler.judges.traffic.limits import Budget
    from labeler.labeling.cache import Origin
    from labeler.labels.record import AnyOutcome

T = TypeVar("T", bound="AnyOutcome")

PLAIN_WIDTH = 100
"""Columns of output that goes to a file or a pipe."""

_SHOWN_FAILURES = 3
_SHOWN_MODELS = 5


def console(*, stderr: bool = False) -> Console:
    """A console that neither reads markup nor guesses at emphasis or emoji."""
    from rich.console import Console

    class Piped(Console):
        def on_broken_pipe(self) -> None:
            """Tell our caller: rich would end the program, with 1."""
            raise BrokenPipeError

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else PLAIN_WIDTH
    return Piped(file=stream, markup=False, highlight=False, emoji=False, width=width)


class Sheet:
    """Where lines stand as they are, however long; rich is loaded for a terminal alone.

    Args:
        stderr: it is standard error, not standard output.
    """

    def __init__(self, *, stderr: bool = False) -> None:
        self._stream = sys.stderr if stderr else sys.stdout
        self._console = console(stderr=stderr) if self._stream.isatty() else None
        self.width = self._console.width if self._console else PLAIN_WIDTH
        """Columns of a line that is not broken."""

    def write(self, text: str, *, bold: bool = False) -> None:
        """Write lines.

        Args:
            text: of anybody; a line break after it is added.
            bold: whether it is stressed, on a terminal.
        """
        if self._console is None:
            self._stream.write(visible(text) + "\n")
            return
        from rich.text import Text

        self._console.print(Text(visible(text), style="bold" if bold else ""), soft_wrap=True)


def print_lines(lines: Sequence[str]) -> None:
    """Write lines on standard output as they are, however long; nothing where there are none."""
    if lines:
        Sheet().write("\n".join(lines))


def print_json(value: object) -> None:
    """Print a value as one line of JSON, with control characters escaped."""
    sys.stdout.write(plain_json(json.dumps(value, ensure_ascii=False)) + "\n")


def say(message: str) -> None:
    """Write for people, on standard error."""
    sys.stderr.write(visible(message) + "\n")


class Progress:
    """Watches a run: counts outcomes, and draws a bar where standard error is a terminal.

    Use as a context manager.

    Args:
        doing: what is being done.
        price: what a judge's tokens cost, where it is known.
    """

    def __init__(self, doing: str, price: Price | None = None) -> None:
        from rich import progress

        from labeler.labels.record import Usage

        self._price = price
        self.origins: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        self.repairs: Counter[str] = Counter()
        self.broken: Counter[str] = Counter()
        self.models: Counter[str] = Counter()
        """Labels by the model that their answer came from, as its server names it."""
        self._total: int | None = None
        self.requests = self.reasks = 0
        self.usage = Usage()
        self._spent: Budget | None = None
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

    def on_start(self, rows: int, repeated: int) -> None:
        """Learn how many rows there are."""
        self._total = rows
        self._bar.update(self._task, total=rows)
        if repeated:
            repeat = "row repeats" if repeated == 1 else "rows repeat"
            say(f"{repeated} {repeat} an earlier one in every field and are left out")

    def on_notice(self, text: str) -> None:
        """Say what the run waits for, above the bar where there is one; from any thread."""
        if self._bar.disable:
            say(text)
        else:
            self._bar.console.print(visible(text))

    def on_result(self, outcome: AnyOutcome, origin: Origin) -> None:
        """Count an outcome."""
        if outcome.kind == "failure":
            self.reasons[outcome.reason] += 1
            if len(self.failures) < _SHOWN_FAILURES:
                self.failures.append(outcome.message)
        else:
            self.origins[origin] += 1
            if outcome.reply.served_model:
                self.models[outcome.reply.served_model] += 1
            if outcome.kind == "label":
                self.repairs.update(outcome.normalised)
                self.repairs.update(violation.kind for violation in outcome.violations)
        rate = self._bar.tasks[self._task].speed or 0.0
        stored = self.origins["store"]
        self._bar.update(self._task, advance=1, rate=rate, stored=stored, failed=self.failed)

    def on_judged(self, outcome: AnyOutcome) -> None:
        """Count what a fresh outcome took to get."""
        if outcome.kind == "failure":
            self.requests += outcome.attempts
            self.reasks += outcome.reasks
            self.broken.update(violation.kind for violation in outcome.violations)
            usage = outcome.usage
        else:
            reply = outcome.reply
            self.requests += reply.attempts
            self.reasks += reply.reasks
            self.broken.update(reply.broken_contracts)
            usage = reply.usage
        if usage:
            self.usage += usage

    def on_finish(self, spent: Budget) -> None:
        """Learn what all requests cost, those included that brought no label."""
        self._spent = spent

    def watching(self, outcomes: Iterable[T]) -> Iterator[T]:
        """Count outcomes that come straight from rows, while passing them on."""
        for outcome in outcomes:
            self.on_result(outcome, "row")
            yield outcome

    @property
    def failed(self) -> int:
        """Rows without a label."""
        return self.reasons.total()

    @property
    def reached(self) -> int:
        """Rows that have their outcome."""
        return self.origins.total() + self.failed

    def close(self, *counts: str, not_reached: str = "") -> None:
        """Say how it went: counts, failures by reason, and the first few failures in full."""
        parts = [*counts, f"{self.failed} failed{_counted(self.reasons)}"]
        if not_reached:
            parts.append(not_reached)
        if self.repairs:
            parts.append(f"repaired or kept as stored{_counted(self.repairs)}")
        say(", ".join(parts))
        if self.usage.prompt_tokens:
            say(self._spending())
        if len(self.models) > 1:
            say(self._answering())
        for message in self.failures:
            say(f"  {message}")
        if self.failed > len(self.failures):
            say(
                f"  … and {self.failed - len(self.failures)} more, each with its reason in its line"
            )

    def _spending(self) -> str:
        """What the judge took: requests, what it broke, tokens and money."""
        usage, reasked = self.usage, f", {self.reasks} re-asked" if self.reasks else ""
        written = f", {usage.cache_write_tokens} written" if usage.cache_write_tokens else ""
        parts = [
            f"{self.requests} requests{reasked}{_counted(self.broken)}",
            f"{usage.prompt_tokens} prompt tokens ({usage.cached_tokens} cached{written})",
            f"{usage.completion_tokens} completion tokens",
            self._dollars(),
        ]
        return "; ".join(parts)

    def _dollars(self) -> str:
        if self._price is None or self._spent is None:
            return "price unknown"
        doubtful = self._spent.doubtful
        more = f" and up to ${doubtful:.4f} for requests without an answer" if doubtful else ""
        return f"${self._spent.known:.4f}{more} by {self._price.source}"

    def break_off(self, *counts: str, left: str = "") -> None:
        """Say how far a run came that does not come to its end, if it began, and what it spent.

        Args:
            counts: those of :meth:`close`; without any, only what was spent is said.
            left: what stands where the labels were to be written.
        """
        self._bar.stop()
        if counts and self._total is not None:
            rest = f"{self._total - self.reached} of {self._total} rows not reached"
            # Their requests and tokens were told to nobody; the budget saw what they cost.
            priced = " and counted in dollars alone" if self._price else ""
            self.close(*counts, not_reached=f"{rest}, what came for them is stored{priced}")
        elif self.usage.prompt_tokens:
            say(self._spending())
        if not self.usage.prompt_tokens and self._spent is not None and self._spent.spent:
            say(f"spent: {self._dollars()}")
        if left and self._total is not None:
            say(left)

    def _answering(self) -> str:
        """Which models answered: under one name a server may come to mean another model."""
        named = [f"{model} {n:,}" for model, n in self.models.most_common(_SHOWN_MODELS)]
        if len(self.models) > len(named):
            named.append(f"and {len(self.models) - len(named)} more")
        return f"answered by {len(self.models)} models: {', '.join(named)}"


def _counted(counter: Counter[str]) -> str:
    """`` (refusal 2, contract 1)``, or nothing."""
    listed = ", ".join(f"{name} {count}" for name, count in counter.most_common())
    return f" ({listed})" if listed else ""
