"""Answers of the provider with the probabilities of their tokens, as a model gives them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence

from wire.behaviors import Behavior, completion
from wire.calls import Call, Json
from wire.connections import Wire

Place = Mapping[str, float]
"""Tokens that might stand at one place with their probabilities; the first is the one that does."""


def scored(
    places: Sequence[Place], *, reasoning: str = "it lies between", tail: str = "}"
) -> Behavior:
    """The model scores, and says how likely each token of the score was, if it is asked to.

    Args:
        places: the places of the score.
        reasoning: what stands before it.
        tail: what stands after it.
    """
    head = f'{{"reasoning": {json.dumps(reasoning)}, "score": '
    chosen = [next(iter(place)) for place in places]
    content = head + "".join(chosen) + tail

    async def behave(call: Call, wire: Wire) -> None:
        value = completion(content)
        if call.body.get("logprobs"):
            most = int(call.body.get("top_logprobs", 0))
            listed = [*_sure(head), *(_told(place, most) for place in places), *_sure(tail)]
            value["choices"][0]["logprobs"] = {"content": listed, "refusal": None}
        await wire.complete(call, value)

    return behave


def _sure(text: str) -> list[Json]:
    """Tokens of four characters that nothing else could have been."""
    return [_told({text[n : n + 4]: 1.0}, 1) for n in range(0, len(text), 4)]


def _told(place: Place, most: int) -> Json:
    each: list[Json] = [
        {"token": text, "logprob": math.log(likely), "bytes": list(text.encode())}
        for text, likely in place.items()
    ]
    likeliest = sorted(each, key=lambda one: one["logprob"], reverse=True)[:most]
    return {**each[0], "top_logprobs": likeliest}
