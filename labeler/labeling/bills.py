"""Sums of the cost of the requests that an estimate counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from labeler.judges.pricing import Price
from labeler.labels.record import Usage


@dataclass(frozen=True)
class Cost:
    """US dollars for all judgments to buy."""

    expected: Decimal
    """Cost if the provider caches nothing."""
    cached: Decimal | None
    """Cost if it serves the cacheable prefix from its cache, from the second request on, by the
    provider's :class:`~labeler.labeling.cache_rules.CacheRules`; ``None`` if that saves nothing."""
    written: Decimal | None
    """Cost if it charges all that it writes to its cache and serves nothing from it; ``None`` if
    that costs no more."""
    at_most: Decimal
    """Upper bound for one answer each, under a cap that was given or comes with a budget
    (:func:`~labeler.judges.tokens.answer_cap`). A re-ask is one more answer."""


class Bill:
    """Summed cost, online or in a batch."""

    def __init__(self, price: Price) -> None:
        self._price = price
        self._expected = self._cached = self._written = self._at_most = Decimal(0)

    def add(self, usage: Usage, cached: Mapping[str, int], written: int) -> None:
        """Add one request.

        Args:
            usage: its tokens.
            cached: usage of a cache that works as it should.
            written: most tokens that are charged as written.
        """
        self._expected += self._price.cost(usage)
        self._cached += self._price.cost(usage.model_copy(update=cached))
        wasted = {"cache_write_tokens": written}
        self._written += self._price.cost(usage.model_copy(update=wasted))

    def add_worst(self, prompt_tokens: int, output_tokens: int) -> None:
        """Add the upper bound of one request."""
        self._at_most += self._price.worst(prompt_tokens, output_tokens)

    def cost(self) -> Cost:
        """Return the sums that differ from the expected cost."""
        return Cost(
            expected=self._expected,
            cached=self._cached if self._cached < self._expected else None,
            written=self._written if self._written > self._expected else None,
            at_most=self._at_most,
        )
