"""The progress of a command that judges rows, and what it prints at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

from labeler.cli.terminal import counted, notify
from labeler.labeling.progress import Progress
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

    def on_notice(self, text: str) -> None:
        """Print a message, above the bar if there is one; safe to call from any thread."""
        super().on_notice(text)
        if self.bar is None:
            notify(text)

    def watching(self, outcomes: Iterable[T]) -> Iterator[T]:
        """Yield outcomes that were made from rows without a judge, and count them."""
        for outcome in outcomes:
            self.on_result(outcome, "row")
            yield outcome

    def close(self, *counts: str, not_reached: str = "") -> None:
        """Print the counts, failures by reason, cost, and the first failure messages."""
        parts = [*counts, f"{self.failed} failed{_by_frequency(self.reasons)}"]
        if not_reached:
            parts.append(not_reached)
        if self.repairs:
            parts.append(f"repaired or kept as stored{_by_frequency(self.repairs)}")
        notify(", ".join(parts))
        if self.usage.prompt_tokens or self.unmetered:
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
        unknown = f", {self.unmetered} of unknown usage" if self.unmetered else ""
        tokens = (
            f"{usage.prompt_tokens} prompt tokens ({usage.cached_tokens} cached{written}); "
            f"{usage.completion_tokens} completion tokens"
        )
        if self.unmetered and not usage.prompt_tokens:
            unknown, tokens = "", UNKNOWN_TOKENS
        asked = f"{self.requests} requests{reasked}{unknown}{_by_frequency(self.broken)}"
        return f"{asked}; {tokens}; {self._dollars()}"

    def _dollars(self) -> str:
        if self._price is None or self.spent is None:
            return "price unknown"
        doubtful = self.spent.doubtful
        more = f" and up to ${doubtful:.4f} for requests of unknown cost" if doubtful else ""
        if self.unmetered and not doubtful:
            more = " and an unknown amount for requests of unknown usage"
        return f"${self.spent.known:.4f}{more} by {self._price.source}"

    def break_off(self, *counts: str, left: str = "") -> None:
        """Print the progress and cost of a run that ended early.

        Args:
            counts: as for :meth:`close`; if empty, only the cost is printed.
            left: state of the output file.
        """
        self.__exit__()
        if counts and self.started:
            rest = "the other rows not reached"
            if self.total is not None:
                rest = f"{self.total - self.reached} of {self.total} rows not reached"
            # Requests and tokens of these rows were not reported; the budget has their cost.
            priced = " and counted in dollars alone" if self._price else ""
            self.close(
                *counts, not_reached=f"{rest}, answers that came for them are stored{priced}"
            )
        elif self.usage.prompt_tokens or self.unmetered:
            notify(self._spending())
        if not self.usage.prompt_tokens and self.spent is not None and self.spent.spent:
            notify(f"spent: {self._dollars()}")
        if left and self.started:
            notify(left)

    def _served_models(self) -> str:
        """List the models that answered; a server may change the model behind a name."""
        named = [f"{model} {n:,}" for model, n in self.models.most_common(_SHOWN_MODELS)]
        if len(self.models) > len(named):
            named.append(f"and {len(self.models) - len(named)} more")
        return f"answered by {len(self.models)} models: {', '.join(named)}"


def _by_frequency(counter: Counter[str]) -> str:
    return counted(dict(counter.most_common()))
