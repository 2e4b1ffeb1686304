"""Token prices in exact US dollars, from the table of genai-prices or from the user.

The table is part of the installed package genai-prices; nothing is fetched. A price does not change
during a run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

from labeler.catalog import named_keywords
from labeler.errors import UsageError

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo, PriceCalculation

    from labeler.labels.record import Usage

MILLION = 1_000_000
"""Tokens that a price refers to."""
BATCH_SHARE = Decimal("0.5")
"""Share of the price that a Batch API charges unless the table has batch prices."""

PRICE_FORM = "IN,OUT[,CACHED[,CACHE_WRITE]] in US dollars per million tokens, such as 0.25,2,0.025"
_AMOUNT = r"\s*\d{1,7}(\.\d{1,12})?\s*"
_AMOUNTS = re.compile(f"{_AMOUNT}(,{_AMOUNT}){{1,3}}", re.ASCII)
_ELSE_CHARGED = ("requests_kcount", "output_reasoning_mtok", "output_citation_mtok")
"""Charges in the table for a text request that :class:`Rates` does not cover."""
_VERIFIED = re.compile(r"(?:verified|checked) on (\d{4}-\d{2}-\d{2})", re.ASCII)


class Rates(NamedTuple):
    """US dollars per million tokens, for requests with a prompt of more than ``above`` tokens."""

    input: Decimal
    output: Decimal
    cached_input: Decimal
    """Price of prompt tokens that the provider reads from its cache."""
    cache_write: Decimal
    """Price of prompt tokens that the provider writes to its cache."""
    above: int = 0


@dataclass(frozen=True)
class Price:
    """The token prices of one model."""

    tiers: tuple[Rates, ...]
    """Rates by ascending prompt length; the first starts at 0. A tier's rates apply to every token
    of a request that reaches it."""
    source: str
    """Origin and date of the prices, for display."""
    batch_tiers: tuple[Rates, ...] | None = None
    """Rates in a batch; ``None`` if only :data:`BATCH_SHARE` is known."""
    context_window: int | None = None
    """Most tokens that the model accepts, if the table has it."""

    def cost(self, usage: Usage) -> Decimal:
        """Return the cost of one request in US dollars.

        Usage comes from a server and may be wrong: a part above its whole counts as the whole, a
        negative count as 0.
        """
        prompt = max(0, usage.prompt_tokens)
        cached = min(prompt, max(0, usage.cached_tokens))
        written = min(prompt - cached, max(0, usage.cache_write_tokens))
        rates = self._reached(prompt)[-1]
        dollars = (
            (prompt - cached - written) * rates.input
            + cached * rates.cached_input
            + written * rates.cache_write
            + max(0, usage.completion_tokens) * rates.output
        )
        return dollars / MILLION

    def worst(self, prompt_tokens: int, output_tokens: int) -> Decimal:
        """Return the highest cost of a request with at most these tokens, whatever is cached."""
        reached = self._reached(prompt_tokens)
        dearest = max(max(r.input, r.cached_input, r.cache_write) for r in reached)
        output = max(rates.output for rates in reached)
        return (prompt_tokens * dearest + output_tokens * output) / MILLION

    def of_input(self) -> Price:
        """Return the price where answers are free, and cached tokens cost what others do."""
        tiers = tuple(Rates(*(r.input, Decimal(0), r.input, r.input), r.above) for r in self.tiers)
        return replace(self, tiers=tiers, batch_tiers=None)

    def batched(self) -> Price:
        """Return the price of the same tokens in a batch."""
        tiers = self.batch_tiers or tuple(
            _rates(*(rate * BATCH_SHARE for rate in rates[:4]))._replace(above=rates.above)
            for rates in self.tiers
        )
        return replace(self, tiers=tiers, batch_tiers=tiers, source=f"{self.source}, batch")

    def _reached(self, prompt_tokens: int) -> Sequence[Rates]:
        """Return the tiers that a prompt of this length reaches; the last one applies."""
        return self.tiers[:1] + tuple(r for r in self.tiers[1:] if prompt_tokens > r.above)


@named_keywords
def find_price(
    model: str,
    base_url: str | None = None,
    *,
    given: str | None = None,
    has_answers: bool = True,
) -> Price | None:
    """Return a model's price from the command line, or from the table of genai-prices.

    The table resolves aliases: :attr:`Price.source` names the entry. If a price depends on the hour
    or changes within the next day, the highest one counts.

    Args:
        model: the requested model.
        base_url: the server; ``None`` for OpenAI. A server that the table does not list has no
            price, whatever its models are called.
        given: the option ``--price``.
        has_answers: False for a model whose input alone is charged, as of embeddings.

    Returns:
        The price in US dollars per million tokens; ``None`` if it is not known.

    Raises:
        UsageError: the option cannot be read.

    Example:
        >>> labeler.judges.find_price("gpt-4.1-mini", given="0.4,1.6") is None
        False
    """
    if given is not None:
        return given_price(given)
    import genai_prices  # noqa: PLC0415 - loading its table takes 0.2 s

    nothing = genai_prices.Usage(input_tokens=0, output_tokens=0)
    try:
        if base_url:
            entry = genai_prices.calc_price(nothing, model, provider_api_url=base_url)
        else:
            entry = genai_prices.calc_price(nothing, model, provider_id="openai")
    except (LookupError, ValueError):
        return None
    found, tiers = entry.model, _tiers(entry.model, {}, has_answers=has_answers)
    if tiers is None:
        return None
    # Only the model's own provider charges batch prices.
    is_own = any(found is own for own in entry.provider.models)
    has_batch = is_own and any(variant.when == _BATCH for variant in found.price_variants or ())
    return Price(
        tiers=tiers,
        source=_source(entry),
        batch_tiers=_tiers(found, _BATCH) if has_batch else None,
        context_window=found.context_window,
    )


def given_price(text: str) -> Price:
    """Parse the option ``--price``; omitted rates equal the rate of uncached input.

    Raises:
        UsageError: the text does not match :data:`PRICE_FORM`.
    """
    if not _AMOUNTS.fullmatch(text):
        raise UsageError(f"--price is {text!r:.60}; it must be {PRICE_FORM}")
    return Price((_rates(*map(Decimal, text.split(","))),), f"--price {text.strip()}")


_BATCH = {"processing": "batch"}


def _rates(
    uncached: Decimal,
    output: Decimal,
    cached: Decimal | None = None,
    written: Decimal | None = None,
) -> Rates:
    """Return rates; missing rates of the cache equal the rate of uncached input."""
    read, write = (uncached if rate is None else rate for rate in (cached, written))
    return Rates(uncached, output, read, write)


def _tiers(
    model: ModelInfo, context: Mapping[str, str], *, has_answers: bool = True
) -> tuple[Rates, ...] | None:
    """Return the highest rates of the next day; ``None`` if more than tokens is charged."""
    now = datetime.now(tz=UTC)
    every = (vars(model.get_prices(now + later, {**context})) for later in _DAY)
    prices = [{name: one for name, one in each.items() if one is not None} for each in every]
    for price in prices:
        known = [column in price for column in _COLUMNS[:2]]
        if known != [True, has_answers] or any(map(price.get, _ELSE_CHARGED)):
            return None
        price.setdefault("output_mtok", Decimal(0))
    columns = [price.get(column) for price in prices for column in _COLUMNS]
    starts = {0} | {tier.start for column in columns for tier in getattr(column, "tiers", ())}
    return tuple(_dearest(prices, start) for start in sorted(starts))


def _dearest(prices: Sequence[Mapping[str, Any]], above: int) -> Rates:
    every = [_rates(*(_at(price.get(column), above) for column in _COLUMNS)) for price in prices]
    return Rates(*map(max, zip(*every, strict=True)))._replace(above=above)


def _at(price: Any, above: int) -> Any:  # noqa: ANN401 - the columns are untyped
    """Return a column of the table for prompts of more than ``above`` tokens; ``None`` stays."""
    reached = [tier.price for tier in getattr(price, "tiers", ()) if tier.start <= above]
    return reached[-1] if reached else getattr(price, "base", price)


def _source(entry: PriceCalculation) -> str:
    """Return the entry of the table and its date."""
    import genai_prices  # noqa: PLC0415 - as above

    parts = [f"genai-prices {genai_prices.__version__}", f"{entry.provider.id} {entry.model.id}"]
    dates = _VERIFIED.findall(entry.model.price_comments or "")
    if dates:
        parts.append(f"verified {max(dates)}")
    if entry.auto_update_timestamp:  # set if another part of the program updates the table
        parts.append(f"updated {entry.auto_update_timestamp:%Y-%m-%d}")
    return ", ".join(parts)


_COLUMNS = ("input_mtok", "output_mtok", "cache_read_mtok", "cache_write_mtok")
_DAY = tuple(timedelta(minutes=30 * step) for step in range(48))
