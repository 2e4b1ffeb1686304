"""Embedders: their interface, vectors and prices, and one of this machine: free and offline.

An embedder maps texts to vectors; similar meanings have similar directions. Vectors are
single-precision numbers, as embedding models return them.
"""

from __future__ import annotations

import base64
import hashlib
import math
import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from importlib.util import find_spec
from operator import mul
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from labeler.catalog import Catalog
from labeler.data.options import given
from labeler.errors import JudgeError, UsageError
from labeler.judges.openai.address import NO_KEY, OFFICIAL_URL, host_of
from labeler.judges.opening import OF_ONE_SERVER
from labeler.judges.options import (
    PROVIDERS,
    JudgeOptions,
    ServerOptions,
    provider_of,
    split_name,
)
from labeler.judges.pricing import Price, Rates
from labeler.labeling.options import dollars
from labeler.labels.record import ReplyFacts
from labeler.plugins.similarity.records import MOST_DIMENSIONS, EmbedderSpec
from labeler.version import install_command

if TYPE_CHECKING:
    from labeler.plugins.similarity import SimilarityOptions

Vector = tuple[float, ...]
"""Finite single-precision numbers."""
Vectors = tuple[Vector | JudgeError, ...]
"""One vector for each text, in order; an error if only that text failed."""
_BYTES = 4


@dataclass(frozen=True)
class Embedded:
    """Vectors of texts."""

    vectors: Vectors
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
EMBEDDERS.add("openai", "labeler.plugins.similarity.openai_embedder:OpenAIEmbedder")
EMBEDDERS.add("wordllama", "labeler.plugins.similarity.embedders:WordLlamaEmbedder")


def open_embedder(options: SimilarityOptions) -> Embedder:
    """Return the embedder of options: the one with a name such as ``openai:MODEL``, or their own.

    Raises:
        UnknownName: no embedder has that name.
        UsageError: a setting is missing, out of range, or given to another embedder; or the
            embedder needs a package that is not installed.
    """
    embedder, price, url = options.embedder, options.embedding_price, options.embedder_url
    own = {"--dimensions": options.dimensions, "--embedding-price": price, "--embedder-url": url}
    stated = " or ".join(name for name, value in own.items() if value is not None)
    if not isinstance(embedder, str):
        if not isinstance(getattr(embedder, "spec", None), EmbedderSpec):
            raise UsageError(
                "an embedder is a name, or an object with spec (an EmbedderSpec), price, embed and "
                f"aclose; got {embedder!r:.40}"
            )
        if stated:
            raise UsageError(f"the embedder is made already: give {stated} to it")
        return embedder
    kind, _, model = embedder.partition(":")
    made: Embedder
    if kind != "openai":
        if model and provider_of(kind) is not None:
            raise UsageError(
                f"no embedder {embedder}: name its model as openai:{model}, and the address of a "
                "server that speaks OpenAI's API by --embedder-url"
            )
        if stated:
            raise UsageError(f"embedder {embedder} takes no {stated}; only openai does")
        made = EMBEDDERS[embedder]()
        return made
    if not model:
        raise UsageError(
            "the openai embedder needs a model: --embedder openai:MODEL; models retire, so none is "
            "built in"
        )
    dollar = None if price is None else dollars("--embedding-price", price) or Decimal(0)
    if dollar is not None and dollar < 0:
        raise UsageError(f"--embedding-price must be 0 or more, got {dollar}")
    server = server_of_embedder(options, url)
    made = EMBEDDERS[kind](
        model,
        api_key=key_of_embedder(server, options),
        dimensions=options.dimensions,
        price=None if dollar is None else flat_price(dollar, f"--embedding-price {dollar}"),
        **given(server, ServerOptions),
    )
    return made


KEY_VARIABLE = "EMBEDDER_API_KEY"
"""Variable of the environment with the key of a host that is neither OpenAI's nor the judge's."""


def server_of_embedder(judging: JudgeOptions, url: str | None = None) -> ServerOptions:
    """Return the server of a hosted embedder; credentials of the judge's host go to no other.

    Args:
        judging: the judge and its server.
        url: address of the embedder; by default the judge's ``base_url``, else OpenAI's.
    """
    kind = split_name(judging.judge)[0] if isinstance(judging.judge, str) else ""
    provider = provider_of(kind) or PROVIDERS["openai"]
    server = given(judging, ServerOptions)
    own, judges = url or judging.base_url or OFFICIAL_URL, judging.base_url or provider.address
    if host_of(own) != host_of(judges):
        server = {name: value for name, value in server.items() if name not in OF_ONE_SERVER}
    return ServerOptions(**{**server, "base_url": url or judging.base_url})


def key_of_embedder(server: ServerOptions, judging: JudgeOptions) -> str | None:
    """Return the key of a hosted embedder; ``None`` for the key in ``OPENAI_API_KEY``.

    OpenAI and the judge's host get it; another gets the one in :data:`KEY_VARIABLE`, or none.
    """
    known = {host_of(url) for url in (OFFICIAL_URL, judging.base_url) if url}
    is_third = host_of(server.base_url or OFFICIAL_URL) not in known
    return (os.environ.get(KEY_VARIABLE) or NO_KEY) if is_third else None


def flat_price(dollars: Decimal, source: str) -> Price:
    """Return a price for a million tokens of text.

    Args:
        dollars: US dollars.
        source: origin of the price, for people.
    """
    return Price((Rates(dollars, Decimal(0), dollars, dollars),), source)


def as_vector(given: Any) -> Vector:  # noqa: ANN401 - a server's or a user's code gives it
    """Return a vector in single precision.

    Args:
        given: a sequence of numbers, or base64 of little-endian single-precision numbers.

    Raises:
        ValueError: it is neither, there are none or too many, or one is not finite.
    """
    try:
        if isinstance(given, str):
            data = base64.b64decode(given, validate=True)
        else:
            numbers = () if isinstance(given, bytes | set | dict) else given  # unlike lists
            data = struct.pack(f"<{len(numbers)}f", *numbers)
    except (TypeError, ValueError, struct.error, OverflowError) as error:
        raise ValueError("it is neither base64 nor numbers in single precision") from error
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


_TABLE = "weights/l2_supercat_256.safetensors"
_TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
_TENSOR = "embedding.weight"


class WordLlamaEmbedder:
    """Embeds with the table of the package wordllama: 256 dimensions.

    The package contains one vector for each of 32,000 word pieces, 16 MB in all, and their
    tokenizer. A text's vector is the mean of its pieces' vectors. The package is not imported: it
    would configure logging for the whole program, look for its tokenizer in a missing folder, and
    download missing files. Only its two files are read.

    Args:
        package: folder of the package; by default the installed one.

    Raises:
        UsageError: the package, or one that reads its files, is missing or incomplete.
    """

    price = flat_price(Decimal(0), "made on this machine")

    def __init__(self, package: str | Path | None = None) -> None:
        try:
            from safetensors import safe_open  # noqa: PLC0415 - an extra
            from tokenizers import Tokenizer  # noqa: PLC0415 - the same
        except ImportError as error:
            raise _missing(error.name or "safetensors") from error
        found = find_spec("wordllama") if package is None else None  # which does not import it
        if found is not None and found.submodule_search_locations:
            package = next(iter(found.submodule_search_locations))
        if package is None:
            raise _missing("wordllama")
        table, tokenizer = Path(package) / _TABLE, Path(package) / _TOKENIZER
        for file in (table, tokenizer):
            if not file.is_file():
                raise UsageError(
                    f"embedder wordllama: there is no {file}; reinstall it: "
                    f"{install_command('embeddings')}, which names the releases that carry it"
                )
        with safe_open(str(table), framework="np") as tensors:
            self._table = tensors.get_tensor(_TENSOR)
        self._tokenizer = Tokenizer.from_file(str(tokenizer))
        # The table's digest identifies the model, whatever the package's release.
        marks = hashlib.sha256(table.read_bytes() + tokenizer.read_bytes()).hexdigest()
        self.spec = EmbedderSpec(
            embedder="wordllama",
            model=f"{table.stem}@{marks[:12]}",
            dimensions=int(self._table.shape[1]),
        )

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """Embed texts; a text without a known piece has a vector of zeros."""
        found = self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        vectors = tuple(self._mean(pieces.ids) for pieces in found)
        return Embedded(vectors, ReplyFacts(attempts=0))

    async def aclose(self) -> None:
        """Do nothing: there is no connection."""

    def _mean(self, pieces: Sequence[int]) -> Vector:
        known = [piece for piece in pieces if piece < len(self._table)]
        if not known:
            return (0.0,) * int(self._table.shape[1])
        # Double precision makes the sum independent of the machine.
        mean: list[float] = self._table[known].astype("float64").mean(axis=0).tolist()
        return as_vector(mean)


def _missing(package: str) -> UsageError:
    return UsageError(
        f"embedder wordllama needs the package {package}, which is not installed: "
        f"{install_command('embeddings')}; or use a hosted one, openai:MODEL"
    )
