"""Embedders of this machine: free, offline, without running a model."""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labeler.errors import UsageError
from labeler.judges.pricing import Price
from labeler.labels.record import ReplyFacts
from labeler.plugins.similarity.embedder import FREE, Embedded, Vector, as_vector
from labeler.plugins.similarity.records import EmbedderSpec
from labeler.version import install_command

if TYPE_CHECKING:
    import numpy as np

DIMENSIONS = 1024
"""Cosines of unrelated texts of 200 n-grams lie within about 0.03 of 0, due to hash collisions."""
_RUNS = (3, 4, 5)
_WORD = re.compile(r"\w+")
_TABLE = "weights/l2_supercat_256.safetensors"
_TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
_TENSOR = "embedding.weight"


class LexicalEmbedder:
    """A baseline that compares spelling, the same on every machine.

    Each n-gram of three to five letters of a word is hashed to one of 1,024 dimensions and a sign.
    A text is the sum of its n-grams, weighted by the square roots of their counts. Meaning is
    ignored: "cheap" and "inexpensive" have nothing in common. A paid embedder should beat this.
    """

    def __init__(self) -> None:
        self.spec = EmbedderSpec(embedder="lexical", model="letters-1", dimensions=DIMENSIONS)

    @property
    def price(self) -> Price:
        """Free."""
        return FREE

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """Embed texts; a text without words has a vector of zeros."""
        return Embedded(tuple(map(_vector, texts)), ReplyFacts(attempts=0))

    async def aclose(self) -> None:
        """Do nothing."""


def _vector(text: str) -> Vector:
    numbers = [0.0] * DIMENSIONS
    for run, count in Counter(_runs(text)).items():
        place, sign = _place(run)
        numbers[place] += sign * math.sqrt(count)
    length = math.sqrt(math.fsum(number * number for number in numbers))
    return as_vector([number / length for number in numbers] if length else numbers)


def _runs(text: str) -> Iterator[str]:
    """Yield the n-grams of letters, with marks at word boundaries."""
    for word in _WORD.findall(unicodedata.normalize("NFKC", text).casefold()):
        marked = f"<{word}>"
        for size in _RUNS:
            yield from (marked[start : start + size] for start in range(len(marked) - size + 1))


def _place(run: str) -> tuple[int, int]:
    """Return the dimension and the sign of an n-gram."""
    data = hashlib.blake2b(run.encode("utf-8", "replace"), digest_size=4).digest()
    number = int.from_bytes(data)
    return (number >> 1) % DIMENSIONS, 1 if number & 1 else -1


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

    def __init__(self, package: str | Path | None = None) -> None:
        folder = Path(package) if package is not None else _installed()
        table, tokenizer = folder / _TABLE, folder / _TOKENIZER
        self._table, self._tokenizer = _loaded(table, tokenizer)
        # The table's digest identifies the model, whatever the package's release.
        marks = hashlib.sha256(table.read_bytes() + tokenizer.read_bytes()).hexdigest()
        self.spec = EmbedderSpec(
            embedder="wordllama",
            model=f"{table.stem}@{marks[:12]}",
            dimensions=int(self._table.shape[1]),
        )

    @property
    def price(self) -> Price:
        """Free."""
        return FREE

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """Embed texts; a text without a known piece has a vector of zeros."""
        found = self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        vectors = tuple(self._mean(pieces.ids) for pieces in found)
        return Embedded(vectors, ReplyFacts(attempts=0))

    async def aclose(self) -> None:
        """Do nothing."""

    def _mean(self, pieces: Sequence[int]) -> Vector:
        known = [piece for piece in pieces if piece < len(self._table)]
        if not known:
            return (0.0,) * int(self._table.shape[1])
        # Double precision makes the sum independent of the machine.
        mean: list[float] = self._table[known].astype("float64").mean(axis=0).tolist()
        return as_vector(mean)


def _installed() -> Path:
    """Find the folder of the package without importing it."""
    found = find_spec("wordllama")
    if found is None or not found.submodule_search_locations:
        raise _missing("wordllama")
    return Path(next(iter(found.submodule_search_locations)))


def _loaded(table: Path, tokenizer: Path) -> tuple[np.ndarray[Any, Any], Any]:
    try:
        from safetensors import safe_open  # noqa: PLC0415 - an extra
        from tokenizers import Tokenizer  # noqa: PLC0415 - the same
    except ImportError as error:
        raise _missing(error.name or "safetensors") from error
    for file in (table, tokenizer):
        if not file.is_file():
            raise UsageError(
                f"embedder wordllama: there is no {file}; reinstall it: "
                f"{install_command('embeddings')}, which names the releases that carry it"
            )
    with safe_open(str(table), framework="np") as tensors:
        weights = tensors.get_tensor(_TENSOR)
    return weights, Tokenizer.from_file(str(tokenizer))


def _missing(package: str) -> UsageError:
    return UsageError(
        f"embedder wordllama needs the package {package}, which is not installed: "
        f"{install_command('embeddings')}; or use the embedder lexical, which needs nothing, "
        "or openai"
    )
