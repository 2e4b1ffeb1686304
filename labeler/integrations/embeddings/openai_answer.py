"""Reads the answer to an embeddings request, of which any part may be missing or strange."""

from __future__ import annotations

from openai.types import CreateEmbeddingResponse

from labeler.integrations.embeddings.vectors import Vector, as_vector, decoded
from labeler.judges.openai.client import text_of
from labeler.labels.record import Usage

_MOST_TOKENS = 10**9
_LONGEST_NAME = 200


def vectors_of(answer: object, count: int, dimensions: int | None) -> tuple[Vector, ...]:
    """The vectors of an answer, in the order of the texts.

    Args:
        answer: what the library made of the server's bytes.
        count: how many texts were sent.
        dimensions: how many numbers were asked for, if that was said.

    Raises:
        ValueError: it has not one vector for each text, all of one size.
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
    """One vector; servers that do not know base64 send a list of numbers all the same."""
    if isinstance(value, str):
        return decoded(value)
    if isinstance(value, list):
        return as_vector(value)
    raise ValueError("a vector that is neither base64 nor a list")


def tokens_of(answer: object) -> int | None:
    """The tokens charged, where the server says."""
    usage: object = getattr(answer, "usage", None)
    count = getattr(usage, "prompt_tokens", None)
    if isinstance(count, bool) or not isinstance(count, int):
        return None
    return count if 0 <= count <= _MOST_TOKENS else None


def usage_of(answer: object) -> Usage | None:
    """The same, as it is stored."""
    tokens = tokens_of(answer)
    return None if tokens is None else Usage(prompt_tokens=tokens)


def served_model_of(answer: object) -> str | None:
    """The model that answered, as text that can be stored."""
    name = text_of(getattr(answer, "model", None))
    return name.encode("utf-8", "replace").decode()[:_LONGEST_NAME] or None
