"""Embeddings: a unit vector for each text, made of its digest; equal texts, equal vectors."""

from __future__ import annotations

import base64
import math
import random
import struct
from typing import Any

from wire.accounts import tokens_of
from wire.calls import Call, Json
from wire.models import Models
from wire.refusals import Refused

DIMENSIONS = 1536


def vector(text: str, dimensions: int = DIMENSIONS) -> list[float]:
    """The embedding of a text."""
    dice = random.Random(f"{dimensions}/{text}")  # noqa: S311 - a digest drawn out
    parts = [dice.gauss(0, 1) for _ in range(dimensions)]
    length = math.sqrt(sum(part * part for part in parts))
    return [part / length for part in parts]


class Embeddings:
    """The embeddings of a provider."""

    def __init__(self, models: Models) -> None:
        self._models = models

    def create(self, call: Call) -> Json:
        """Answer ``POST /v1/embeddings``.

        Raises:
            Refused: it lacks a model or texts, or its parameters are out of range.
        """
        model = str(call.body.get("model") or "")
        if not model:
            raise Refused(400, "missing_required_parameter", "Name a model.", param="model")
        self._models.card(model)
        texts = _texts(call.body.get("input"))
        dimensions = call.body.get("dimensions", DIMENSIONS)
        if not isinstance(dimensions, int) or not 1 <= dimensions <= 2 * DIMENSIONS:
            raise Refused(400, "invalid_value", "Use 1 to 3072 dimensions.", param="dimensions")
        encode = _ENCODINGS.get(call.body.get("encoding_format", "float"))
        if encode is None:
            raise Refused(400, "invalid_value", "Use float or base64.", param="encoding_format")
        tokens = tokens_of(*texts)
        return {
            "object": "list",
            "model": model,
            "data": [
                {
                    "object": "embedding",
                    "index": index,
                    "embedding": encode(vector(text, dimensions)),
                }
                for index, text in enumerate(texts)
            ],
            "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
        }


def _base64(parts: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(parts)}f", *parts)).decode()


_ENCODINGS: dict[Any, Any] = {"float": list, "base64": _base64}


def _texts(value: object) -> list[str]:
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not texts or not all(isinstance(t, str) and t for t in texts):
        raise Refused(400, "invalid_value", "Send a text, or a list of texts.", param="input")
    return texts
