"""Vectors of texts, their keys, and their cosine similarity.

Vectors are stored as the single-precision numbers that embedding models return, byte for byte:
every metric computed from them is reproducible.
"""

from __future__ import annotations

import base64
import binascii
import math
import struct
from collections.abc import Sequence
from operator import mul
from typing import Literal

from pydantic import Field

from labeler.labels.signature import digest
from labeler.sentences.example import Frozen

Vector = tuple[float, ...]
"""Finite single-precision numbers."""

MOST_DIMENSIONS = 2**16
"""Far more than any model returns."""
_BYTES = 4


class EmbedderSpec(Frozen):
    """Identity of an embedder: all that can change a text's vector."""

    embedder: str = Field(min_length=1)
    """Kind of embedder, such as ``openai``."""
    model: str = Field(min_length=1)
    """Requested model, or the version of a built-in one."""
    dimensions: int | None = Field(default=None, ge=1, le=MOST_DIMENSIONS)
    """Requested dimensions; ``None`` for the model's default."""

    def __str__(self) -> str:
        """Return kind, model and requested dimensions."""
        chosen = f"/{self.dimensions}" if self.dimensions else ""
        return f"{self.embedder}/{self.model}{chosen}"


class StoredVector(Frozen):
    """A text's vector with the text and the embedder."""

    kind: Literal["vector"] = "vector"
    version: Literal[1] = 1
    key: str
    """See :func:`vector_key`."""
    text: str
    embedder: EmbedderSpec
    numbers: str
    """Little-endian single-precision numbers, in base64."""
    served_model: str | None = None
    """The model that answered, as its server names it."""

    @property
    def id(self) -> str:
        """Name in error messages: the beginning of the key."""
        return self.key[:12]

    @property
    def vector(self) -> Vector:
        """The decoded numbers.

        Raises:
            ValueError: they are no valid vector.
        """
        return decoded(self.numbers)

    def fault(self) -> str | None:
        """Return why the vector cannot be what was stored, or ``None`` for a sound one."""
        if vector_key(self.text, self.embedder) != self.key:
            return "its key is not that of its text and embedder (see vector_key)"
        try:
            size = len(self.vector)
        except ValueError as error:
            return f"its numbers are no vector: {error}"
        if self.embedder.dimensions not in {None, size}:
            return f"it has {size} numbers, and its embedder gives {self.embedder.dimensions}"
        return None


def stored_vector(
    text: str, embedder: EmbedderSpec, vector: Vector, *, served_model: str | None = None
) -> StoredVector:
    """Build the stored form of a vector."""
    return StoredVector(
        key=vector_key(text, embedder),
        text=text,
        embedder=embedder,
        numbers=encoded(vector),
        served_model=served_model,
    )


def vector_key(text: str, embedder: EmbedderSpec) -> str:
    """Compute the key of a vector from the text and the embedder.

    Returns:
        64 hexadecimal digits.
    """
    facts = embedder.model_dump(mode="json", exclude_defaults=True)
    return digest({"embedded": text, "embedder": facts})


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


def encoded(vector: Vector) -> str:
    """Encode a vector as base64."""
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode("ascii")


def decoded(text: str) -> Vector:
    """Decode a vector from base64.

    Raises:
        ValueError: the text is not base64 of finite single-precision numbers.
    """
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError("it is no base64") from error
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
