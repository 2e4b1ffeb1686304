"""Embedders: their interface, their vectors and prices, and the catalog of built-in ones.

An embedder maps texts to vectors; similar meanings have similar directions. Vectors are
single-precision numbers, as embedding models return them.
"""

from __future__ import annotations

import base64
import binascii
import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from operator import mul
from typing import Protocol

from labeler.catalog import Catalog
from labeler.data.options import given
from labeler.errors import JudgeError, UsageError
from labeler.judges.options import ServerOptions
from labeler.judges.pricing import Price, Rates
from labeler.labels.record import ReplyFacts
from labeler.plugins.similarity.records import MOST_DIMENSIONS, EmbedderSpec

Vector = tuple[float, ...]
"""Finite single-precision numbers."""
_BYTES = 4
_INPUT = "input_mtok"


@dataclass(frozen=True)
class Embedded:
    """Vectors of texts."""

    vectors: tuple[Vector | JudgeError, ...]
    """One for each text, in order; an error if only that text failed."""
    facts: ReplyFacts = field(default_factory=ReplyFacts)
    """Facts of the requests; ``attempts`` counts them."""


class Embedder(Protocol):
    """Anything that embeds: implement ``spec``, ``price``, ``embed`` and ``aclose``."""

    @property
    def spec(self) -> EmbedderSpec:
        """Identity of the embedder."""
        ...

    @property
    def price(self) -> Price | None:
        """Price of its tokens; ``None`` if unknown."""
        ...

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """Embed texts.

        Raises:
            FatalJudgeError: no text can be embedded; the run stops.
        """
        ...

    async def aclose(self) -> None:
        """Release connections; called once, after the last request."""
        ...


EMBEDDERS: Catalog[type] = Catalog("embedder")
EMBEDDERS.add("lexical", "labeler.plugins.similarity.local:LexicalEmbedder")
EMBEDDERS.add("openai", "labeler.plugins.similarity.openai_embedder:OpenAIEmbedder")
EMBEDDERS.add("wordllama", "labeler.plugins.similarity.local:WordLlamaEmbedder")


def open_embedder(
    embedder: str | Embedder,
    server: ServerOptions,
    *,
    dimensions: int | None = None,
    price: Price | None = None,
) -> Embedder:
    """Return the embedder of a name, or the embedder itself.

    Args:
        embedder: such as ``lexical`` or ``openai:MODEL``.
        server: how a hosted embedder is reached; its key comes from the environment.
        dimensions: of a hosted embedder's vectors; by default those of the model.
        price: of a hosted embedder's tokens; by default from the price table.

    Raises:
        UnknownName: no embedder has that name.
        UsageError: a setting is missing, or given to another embedder; or the embedder needs a
            package that is not installed.
    """
    if not isinstance(embedder, str):
        return embedder
    kind, _, model = embedder.partition(":")
    if kind != "openai":
        if dimensions is not None or price is not None:
            raise UsageError(
                f"embedder {embedder} takes no --dimensions or --embedding-price; only openai does"
            )
        found: Embedder = EMBEDDERS[embedder]()
        return found
    if not model:
        raise UsageError(
            "the openai embedder needs a model: --embedder openai:MODEL; models retire, so none is "
            "built in"
        )
    hosted: Embedder = EMBEDDERS[kind](
        model, dimensions=dimensions, price=price, **given(server, ServerOptions)
    )
    return hosted


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


def as_vector(numbers: Sequence[object]) -> Vector:
    """Round numbers to single precision.

    Raises:
        ValueError: there are none or too many, or one is not finite.
    """
    if not 1 <= len(numbers) <= MOST_DIMENSIONS:
        raise ValueError(f"it has {len(numbers)} numbers; 1 to {MOST_DIMENSIONS} are allowed")
    try:
        return decoded_bytes(struct.pack(f"<{len(numbers)}f", *numbers))
    except (struct.error, OverflowError) as error:
        raise ValueError(
            "it holds values that are not finite numbers in single precision"
        ) from error


def decoded(text: str) -> Vector:
    """Decode a vector from base64.

    Raises:
        ValueError: the text is not base64 of finite single-precision numbers.
    """
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError("it is not base64") from error
    return decoded_bytes(data)


def decoded_bytes(data: bytes) -> Vector:
    """Decode a vector from little-endian single-precision numbers.

    Raises:
        ValueError: there are none or too many, or they are truncated or not finite.
    """
    count, rest = divmod(len(data), _BYTES)
    if rest or not 1 <= count <= MOST_DIMENSIONS:
        raise ValueError(f"{len(data)} bytes are not 1 to {MOST_DIMENSIONS} numbers")
    vector: Vector = struct.unpack(f"<{count}f", data)
    if not all(map(math.isfinite, vector)):
        raise ValueError("it holds a number that is not finite")
    return vector


def cosine(one: Vector, other: Vector) -> float | None:
    """Return the cosine of two vectors, from -1 to 1.

    Every sum is rounded once, so the order of dimensions does not matter.

    Returns:
        ``None`` if a vector is all zeros, which has no direction.

    Raises:
        ValueError: the vectors have different dimensions.
    """
    if len(one) != len(other):
        raise ValueError(f"vectors of {len(one)} and of {len(other)} numbers cannot be compared")
    length = math.hypot(*one) * math.hypot(*other)
    if length == 0:
        return None
    return max(-1.0, min(1.0, math.fsum(map(mul, one, other)) / length))
