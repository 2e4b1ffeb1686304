"""Embeddings: a unit vector for each text, made of its digest; equal texts, equal vectors."""

from __future__ import annotations

import base64
import math
import random
import struct

from wire.accounts import tokens_of
from wire.calls import Call, Json
from wire.refusals import Refused

DIMENSIONS = 1536


def vector(text: str, dimensions: int = DIMENSIONS) -> list[float]:
    """The embedding of a text."""
    dice = random.Random(f"{dimensions}/{text}")  # noqa: S311 - a digest drawn out
    parts = [dice.gauss(0, 1) for _ in range(dimensions)]
    length = math.sqrt(sum(part * part for part in parts))
    return [part / length for part in parts]


def embeddings(call: Call) -> Json:
    """Answer ``POST /v1/embeddings``.

    Raises:
        Refused: it lacks a model or texts, or has an empty text.
    """
    model, texts = call.body.get("model"), call.body.get("input")
    texts = [texts] if isinstance(texts, str) else texts
    if not (model and texts and all(isinstance(text, str) and text for text in texts)):
        raise Refused(400, "invalid_value", "Name a model, and send a list of texts.")
    parts = [vector(text, call.body.get("dimensions", DIMENSIONS)) for text in texts]
    is_packed = call.body.get("encoding_format") == "base64"
    data = [
        {"object": "embedding", "index": index, "embedding": _base64(one) if is_packed else one}
        for index, one in enumerate(parts)
    ]
    tokens = tokens_of(*texts)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "model": model, "data": data, "usage": usage}


def _base64(parts: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(parts)}f", *parts)).decode()
