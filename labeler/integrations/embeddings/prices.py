"""Prices of embeddings: US dollars for the tokens of the texts.

The table is part of the package genai-prices, as for judges.
"""

from __future__ import annotations

from decimal import Decimal

from labeler.judges.pricing import Price, Rates

_INPUT = "input_mtok"


def embedding_price(model: str, base_url: str | None = None) -> Price | None:
    """Return the price of an embedding model, or ``None`` if the table has none.

    Args:
        model: model name.
        base_url: address of the server; ``None`` for OpenAI. Models of unknown servers have no
            price, whatever their names.
    """
    import genai_prices  # noqa: PLC0415 - its table takes a fifth of a second to load

    nothing = genai_prices.Usage(input_tokens=0, output_tokens=0)
    try:
        if base_url is None:
            entry = genai_prices.calc_price(nothing, model, provider_id="openai")
        else:
            entry = genai_prices.calc_price(nothing, model, provider_api_url=base_url)
    except (LookupError, ValueError):
        return None
    charged = {name: value for name, value in vars(entry.model_price).items() if value is not None}
    dollars = charged.pop(_INPUT, None)
    if charged or not isinstance(dollars, Decimal):
        return None  # a chat model, or one whose price is not by token alone
    source = f"genai-prices {genai_prices.__version__}, {entry.provider.id} {entry.model.id}"
    return flat_price(dollars, source)


def flat_price(dollars: Decimal, source: str) -> Price:
    """Return a price for a million tokens of text.

    Args:
        dollars: US dollars.
        source: origin of the price, for people.
    """
    return Price((Rates(dollars, Decimal(0), dollars, dollars),), source)


FREE = flat_price(Decimal(0), "made on this machine")
"""Price of local embedders."""
