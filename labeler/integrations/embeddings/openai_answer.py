"""Parses the response to an embeddings request, any part of which may be missing or wrong."""

from __future__ import annotations

from openai.types import CreateEmbeddingResponse

from labeler.integrations.embeddings.vectors import Vector, as_vector, decoded
from labeler.judges.openai.client import text_of
from labeler.labels.record import Usage

_MOST_TOKENS = 10**9
_LONGEST_NAME = 200


def vectors_of(answer: object, count: int, dimensions: int | None) -> tuple[Vector, ...]:
    """Return the vectors of a response in the order of the texts.

    Args:
        answer: parsed response.
        count: number of texts sent.
        dimensions: requested size of the vectors, if any.

    Raises:
        ValueError: there is not one vector for each text, or their sizes differ.
    """
    found: dict[int, Vector] = {}
    for item in _items(answer):
        index = getattr(item, "index", None)
        if not isinstance(index, int) or index in found:
            raise ValueError("vectors without a number, or two of one number")
        found[index] = _vector(getattr(item, "embedding", None))
    if found.keys() != set(range(count)):
        raise ValueError(f"{len(found)} vectors for {count} texts, or numbered otherwise")
    sizes = {len(vector) for vector in found.values()}
    if len(sizes) != 1 or (dimensions is not None and sizes != {dimensions}):
        raise ValueError("vectors of another size than was asked for, or of several")
    return tuple(found[index] for index in range(count))


def _items(answer: object) -> list[object]:
    items: object = answer.data if isinstance(answer, CreateEmbeddingResponse) else None
    return items if isinstance(items, list) else []


def _vector(value: object) -> Vector:
    """Parse one vector; some servers send a list of numbers instead of base64."""
    if isinstance(value, str):
        return decoded(value)
    if isinstance(value, list):
        return as_vector(value)
    raise ValueError("a vector that is neither base64 nor a list")


def tokens_of(answer: object) -> int | None:
    """Return the charged tokens, if the server reports them."""
    usage: object = getattr(answer, "usage", None)
    count = getattr(usage, "prompt_tokens", None)
    if isinstance(count, bool) or not isinstance(count, int):
        return None
    return count if 0 <= count <= _MOST_TOKENS else None


def usage_of(answer: object) -> Usage | None:
    """Return the charged tokens as usage."""
    tokens = tokens_of(answer)
    return None if tokens is None else Usage(prompt_tokens=tokens)


def served_model_of(answer: object) -> str | None:
    """Return the name of the served model as storable text."""
    name = text_of(getattr(answer, "model", None))
    return name.encode("utf-8", "replace").decode()[:_LONGEST_NAME] or None
