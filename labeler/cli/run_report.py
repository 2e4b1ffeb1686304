"""The progress of a command that judges rows, and what it prints at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

from labeler.cli.terminal import counted, notify
from labeler.labeling.progress import Progress, RunEvent, RunEvents
from labeler.labels.metering import UNKNOWN_TOKENS

if TYPE_CHECKING:
    from labeler.judges.pricing import Price
    from labeler.labels.record import AnyOutcome

T = TypeVar("T", bound="AnyOutcome")

_SHOWN_MODELS = 5


class RunReport(Progress):
    """Progress of a command; its notices and its end are printed on standard error.

    Use as a context manager.

    Args:
        doing: name of the activity, such as ``labeling``.
        price: price of the judge's tokens, if known.
    """

    def __init__(self, doing: str, price: Price | None = None) -> None:
        super().__init__(doing)
        self._price = price

    def __call__(self, event: RunEvent) -> None:
        """Draw an event; print a message above the bar if there is one."""
        super().__call__(event)
        if self.bar is None and event.kind == "notice":
            notify(event.text)

    def write(self, line: str) -> None:
        """Print a line of progress on standard error, which is not a terminal."""
        notify(line)

    def watching(self, outcomes: Iterable[T]) -> Iterator[T]:
        """Yield outcomes that were made from rows without a judge, and count them."""
        events = RunEvents([self])
        for outcome in outcomes:
            events.result(outcome, "row")
            yield outcome

    def close(self, *counts: str, not_reached: str = "") -> None:
        """Print the counts, failures by reason, cost, and the first failure messages."""
        seen = self.counts
        parts = [*counts, f"{seen.failed} failed{_by_frequency(seen.reasons)}"]
        if not_reached:
            parts.append(not_reached)
        if seen.repairs:
            parts.append(f"repaired or kept as stored{_by_frequency(seen.repairs)}")
        notify(", ".join(parts))
        if seen.usage.prompt_tokens or seen.unmetered:
            notify(self._spending())
        if len(seen.models) > 1:
            notify(self._served_models())
        for message in seen.failures:
            notify(f"  {message}")
        if seen.failed > len(seen.failures):
            notify(
                f"  … and {seen.failed - len(seen.failures)} more, each with its reason in its line"
            )

    def _spending(self) -> str:
        """Return requests, contract violations, tokens and cost."""
        seen = self.counts
        usage, reasked = (
            seen.usage,
            f", {seen.reasks} re-asked" if seen.reasks else "",
        )
        written = f", {usage.cache_write_tokens} written" if usage.cache_write_tokens else ""
        unknown = f", {seen.unmetered} of unknown usage" if seen.unmetered else ""
        tokens = (
            f"{usage.prompt_tokens} prompt tokens ({usage.cached_tokens} cached{written}); "
            f"{usage.completion_tokens} completion tokens"
        )
        if seen.unmetered and not usage.prompt_tokens:
            unknown, tokens = "", UNKNOWN_TOKENS
        asked = f"{seen.requests} requests{reasked}{unknown}{_by_frequency(seen.broken)}"
        return f"{asked}; {tokens}; {self._dollars()}"

    def _dollars(self) -> str:
        seen = self.counts
        if self._price is None or seen.spent is None:
            return "price unknown"
        doubtful = seen.spent.doubtful
        more = f" and up to ${doubtful:.4f} for requests of unknown cost" if doubtful else ""
        if seen.unmetered and not doubtful:
            more = " and an unknown amount for requests of unknown usage"
        return f"${seen.spent.known:.4f}{more} by {self._price.source}"

    def break_off(self, *counts: str, left: str = "") -> None:
        """Print the progress and cost of a run that ended early.

        Args:
            counts: as for :meth:`close`; if empty, only the cost is printed.
            left: state of the output file.
        """
        seen = self.counts
        self.__exit__()
        if counts and seen.started:
            rest = "the other rows not reached"
            if seen.total is not None:
                rest = f"{seen.total - seen.reached} of {seen.total} rows not reached"
            # Requests and tokens of these rows were not reported; the budget has their cost.
            priced = " and counted in dollars alone" if self._price else ""
            self.close(
                *counts, not_reached=f"{rest}, answers that came for them are stored{priced}"
            )
        elif seen.usage.prompt_tokens or seen.unmetered:
            notify(self._spending())
        if not seen.usage.prompt_tokens and seen.spent is not None and seen.spent.spent:
            notify(f"spent: {self._dollars()}")
        if left and seen.started:
            notify(left)

    def _served_models(self) -> str:
        """List the models that answered; a server may change the model behind a name."""
        seen = self.counts
        named = [f"{model} {n:,}" for model, n in seen.models.most_common(_SHOWN_MODELS)]
        if len(seen.models) > len(named):
            named.append(f"and {len(seen.models) - len(named)} more")
        return f"answered by {len(seen.models)} models: {', '.join(named)}"


def _by_frequency(counter: Counter[str]) -> str:
    return counted(dict(counter.most_common()))
