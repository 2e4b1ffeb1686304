"""A text's vector, what it is kept under, and how alike two vectors are.

A vector is kept as the single-precision numbers that embedding models give, byte for byte, so that
a number computed from it is the same for ever.
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
"""Finite numbers, each of them one that 32 bits can hold."""

MOST_DIMENSIONS = 2**16
"""Far more than any model gives."""
_BYTES = 4


class EmbedderSpec(Frozen):
    """What identifies an embedder: all that can change a text's vector."""

    embedder: str = Field(min_length=1)
    """Kind of embedder, such as ``openai``."""
    model: str = Field(min_length=1)
    """Requested model, or the version of a built-in one."""
    dimensions: int | None = Field(default=None, ge=1, le=MOST_DIMENSIONS)
    """How many numbers were asked for; ``None``: as many as the model gives by itself."""

    def __str__(self) -> str:
        """For people: kind and model, and the dimensions where they were chosen."""
        chosen = f"/{self.dimensions}" if self.dimensions else ""
        return f"{self.embedder}/{self.model}{chosen}"


class StoredVector(Frozen):
    """A text's vector with everything that is needed to tell whose it is."""

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
        """What errors name it by: the beginning of its key."""
        return self.key[:12]

    @property
    def vector(self) -> Vector:
        """The numbers.

        Raises:
            ValueError: they are no vector.
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
    """A vector as it is kept."""
    return StoredVector(
        key=vector_key(text, embedder),
        text=text,
        embedder=embedder,
        numbers=encoded(vector),
        served_model=served_model,
    )


def vector_key(text: str, embedder: EmbedderSpec) -> str:
    """Name a vector by all that can change it: the text, and who makes it of that.

    Returns:
        64 hexadecimal digits.
    """
    facts = embedder.model_dump(mode="json", exclude_defaults=True)
    return digest({"embedded": text, "embedder": facts})


def as_vector(numbers: Sequence[object]) -> Vector:
    """Round numbers to single precision.

    Raises:
        ValueError: there are none or too many, or one is no finite number.
    """
    if not 1 <= len(numbers) <= MOST_DIMENSIONS:
        raise ValueError(f"it has {len(numbers)} numbers; 1 to {MOST_DIMENSIONS} are allowed")
    try:
        return decoded_bytes(struct.pack(f"<{len(numbers)}f", *numbers))
    except (struct.error, OverflowError) as error:
        raise ValueError("it holds what is no finite number in single precision") from error


def encoded(vector: Vector) -> str:
    """A vector as text."""
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode("ascii")


def decoded(text: str) -> Vector:
    """A vector from text.

    Raises:
        ValueError: the text is no base64 of finite single-precision numbers.
    """
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError("it is no base64") from error
    return decoded_bytes(data)


def decoded_bytes(data: bytes) -> Vector:
    """A vector from little-endian single-precision numbers.

    Raises:
        ValueError: they are none or too many, cut short, or not finite.
    """
    count, rest = divmod(len(data), _BYTES)
    if rest or not 1 <= count <= MOST_DIMENSIONS:
        raise ValueError(f"{len(data)} bytes are not 1 to {MOST_DIMENSIONS} numbers")
    vector: Vector = struct.unpack(f"<{count}f", data)
    if not all(map(math.isfinite, vector)):
        raise ValueError("it holds a number that is not finite")
    return vector


def cosine(one: Vector, other: Vector) -> float | None:
    """How alike the directions of two vectors are, from -1 to 1.

    Every sum is rounded once, so that the order of dimensions changes nothing.

    Returns:
        ``None`` where a vector is all zeros: it has no direction.

    Raises:
        ValueError: the vectors have different dimensions.
    """
    if len(one) != len(other):
        raise ValueError(f"vectors of {len(one)} and of {len(other)} numbers cannot be compared")
    length = math.hypot(*one) * math.hypot(*other)
    if length == 0:
        return None
    return max(-1.0, min(1.0, math.fsum(map(mul, one, other)) / length))
