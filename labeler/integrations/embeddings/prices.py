"""What embedding costs: US dollars for the tokens of the texts, and nothing for an answer.

The table is that of the package genai-prices, as for judges; it lies inside the package.
"""

from __future__ import annotations

from decimal import Decimal

from labeler.judges.pricing import Price, Rates

_INPUT = "input_mtok"


def embedding_price(model: str, base_url: str | None = None) -> Price | None:
    """The price of an embedding model in the table, or ``None`` where it has none.

    Args:
        model: the model that is asked.
        base_url: the server that is asked; ``None`` for OpenAI. A server that the table does not
            know has no price, whatever its models are called.
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
    """A price for each million tokens of text.

    Args:
        dollars: US dollars.
        source: where that comes from, for people.
    """
    return Price((Rates(dollars, Decimal(0), dollars, dollars),), source)


FREE = flat_price(Decimal(0), "made on this machine")
"""What an embedder costs that asks nobody."""
