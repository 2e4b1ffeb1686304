"""Safe terminal output, and the progress of a run.

Documents, answers and explanations are untrusted text. Control sequences, direction overrides and
markup in them are escaped before they reach the terminal.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
"""Width of output to a file or pipe, in columns."""

_SHOWN_FAILURES = 3
_SHOWN_MODELS = 5


def console(*, stderr: bool = False) -> Console:
    """Return a rich console without markup, highlighting or emoji codes."""
    from rich.console import Console

    class Piped(Console):
        def on_broken_pipe(self) -> None:
            """Raise the error again; rich would exit with code 1."""
            raise BrokenPipeError

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else PLAIN_WIDTH
    return Piped(file=stream, markup=False, highlight=False, emoji=False, width=width)


class LineWriter:
    """Writes lines of any length unbroken; loads rich only for a terminal.

    Args:
        stderr: True for standard error, False for standard output.
    """

    def __init__(self, *, stderr: bool = False) -> None:
        self._stream = sys.stderr if stderr else sys.stdout
        self._console = console(stderr=stderr) if self._stream.isatty() else None
        self.width = self._console.width if self._console else PLAIN_WIDTH
        """Width that tables should fit, in columns."""

    def write(self, text: str, *, bold: bool = False) -> None:
        """Write lines.

        Args:
            text: untrusted text, without the final line break.
            bold: True for bold print on a terminal.
        """
        if self._console is None:
            self._stream.write(visible(text) + "\n")
            return
        from rich.text import Text

        self._console.print(Text(visible(text), style="bold" if bold else ""), soft_wrap=True)


def print_lines(lines: Sequence[str]) -> None:
    """Print lines of any length on standard output; print nothing if there are none."""
    if lines:
        LineWriter().write("\n".join(lines))


def print_json(value: object) -> None:
    """Print a value as one line of JSON, with control characters escaped."""
    sys.stdout.write(plain_json(json.dumps(value, ensure_ascii=False)) + "\n")


def notify(message: str) -> None:
    """Print a message on standard error."""
    sys.stderr.write(visible(message) + "\n")


def notify_repeated(records: int) -> None:
    """Report the number of records that were left out because they repeat, if there are any."""
    if records:
        from labeler.calculators.metrics_row import REPEATED

        notify(REPEATED.format(records))


def plural(count: int, noun: str) -> str:
    """Return a count and its noun, such as ``1 part`` or ``2 parts``."""
    return f"{count} {noun}{'s' * (count != 1)}"


def counted(counts: Mapping[str, int]) -> str:
    """Return `` (refusal 2, contract 1)``, or an empty string if there are no counts."""
    listed = ", ".join(f"{name} {count}" for name, count in counts.items())
    return f" ({listed})" if listed else ""


class Progress:
    """Listener of a run that counts outcomes, and draws a progress bar on a terminal.

    Use as a context manager.

    Args:
        doing: name of the activity, such as ``labeling``.
        price: price of the judge's tokens, if known.
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
        """Number of labels by the model name that the server returned."""
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
            # rich would redirect standard output to the bar's terminal.
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
        """Set the number of rows, and report repeated ones."""
        self._total = rows
        self._bar.update(self._task, total=rows)
        if repeated:
            repeat = "row repeats" if repeated == 1 else "rows repeat"
            notify(f"{repeated} {repeat} an earlier one in every field and are left out")

    def on_notice(self, text: str) -> None:
        """Print a message above the bar; safe to call from any thread."""
        if self._bar.disable:
            notify(text)
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
        """Count the requests and tokens of a new outcome."""
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
        """Set the cost of all requests, including those without a label."""
        self._spent = spent

    def watching(self, outcomes: Iterable[T]) -> Iterator[T]:
        """Yield outcomes that were made from rows without a judge, and count them."""
        for outcome in outcomes:
            self.on_result(outcome, "row")
            yield outcome

    @property
    def failed(self) -> int:
        """Rows without a label."""
        return self.reasons.total()

    @property
    def reached(self) -> int:
        """Rows with an outcome."""
        return self.origins.total() + self.failed

    def close(self, *counts: str, not_reached: str = "") -> None:
        """Print the counts, failures by reason, cost, and the first failure messages."""
        parts = [*counts, f"{self.failed} failed{_by_frequency(self.reasons)}"]
        if not_reached:
            parts.append(not_reached)
        if self.repairs:
            parts.append(f"repaired or kept as stored{_by_frequency(self.repairs)}")
        notify(", ".join(parts))
        if self.usage.prompt_tokens:
            notify(self._spending())
        if len(self.models) > 1:
            notify(self._served_models())
        for message in self.failures:
            notify(f"  {message}")
        if self.failed > len(self.failures):
            notify(
                f"  … and {self.failed - len(self.failures)} more, each with its reason in its line"
            )

    def _spending(self) -> str:
        """Return requests, contract violations, tokens and cost."""
        usage, reasked = self.usage, f", {self.reasks} re-asked" if self.reasks else ""
        written = f", {usage.cache_write_tokens} written" if usage.cache_write_tokens else ""
        parts = [
            f"{self.requests} requests{reasked}{_by_frequency(self.broken)}",
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
        """Print the progress and cost of a run that ended early.

        Args:
            counts: as for :meth:`close`; if empty, only the cost is printed.
            left: state of the output file.
        """
        self._bar.stop()
        if counts and self._total is not None:
            rest = f"{self._total - self.reached} of {self._total} rows not reached"
            # Requests and tokens of these rows were not reported; the budget has their cost.
            priced = " and counted in dollars alone" if self._price else ""
            self.close(*counts, not_reached=f"{rest}, what came for them is stored{priced}")
        elif self.usage.prompt_tokens:
            notify(self._spending())
        if not self.usage.prompt_tokens and self._spent is not None and self._spent.spent:
            notify(f"spent: {self._dollars()}")
        if left and self._total is not None:
            notify(left)

    def _served_models(self) -> str:
        """List the models that answered; a server may change the model behind a name."""
        named = [f"{model} {n:,}" for model, n in self.models.most_common(_SHOWN_MODELS)]
        if len(self.models) > len(named):
            named.append(f"and {len(self.models) - len(named)} more")
        return f"answered by {len(self.models)} models: {', '.join(named)}"


def _by_frequency(counter: Counter[str]) -> str:
    return counted(dict(counter.most_common()))
