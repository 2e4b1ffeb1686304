"""Static embeddings from a table in a package: offline, without running a model.

The package wordllama contains one vector for each of 32,000 word pieces, 16 MB in all, and their
tokenizer. A text's vector is the mean of its pieces' vectors. The package is not imported: it would
configure logging for the whole program, look for its tokenizer in a missing folder, and download
missing files. Only its two files are read.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labeler.errors import UsageError
from labeler.integrations.embeddings.embedder import Embedded
from labeler.integrations.embeddings.prices import FREE
from labeler.integrations.embeddings.vectors import EmbedderSpec, Vector, as_vector
from labeler.judges.pricing import Price
from labeler.labels.record import ReplyFacts
from labeler.version import install_command

if TYPE_CHECKING:
    import numpy as np

_TABLE = "weights/l2_supercat_256.safetensors"
_TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
_TENSOR = "embedding.weight"


class WordLlamaEmbedder:
    """Embeds with the table of the package wordllama: free, offline, 256 dimensions.

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

    async def embed(self, texts: Sequence[str]) -> AsyncGenerator[Embedded, None]:
        """Embed texts; a text without a known piece has a vector of zeros."""
        found = self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        vectors = tuple(self._mean(pieces.ids) for pieces in found)
        yield Embedded(tuple(texts), vectors, ReplyFacts(attempts=0))

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
