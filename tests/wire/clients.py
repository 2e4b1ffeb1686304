"""Bodies of requests to the provider, and a wait for what another thread does."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from labeler.judges.openai.request import response_format
from labeler.sentences.example import KeyedExample
from support import samples
from wire.calls import Json


def request_of(example: KeyedExample | None = None, **parameters: Any) -> Json:
    """The body that asks for a label of a record."""
    request = samples.request(example)
    return {
        "model": "model-1",
        "messages": [dict(message) for message in request.messages],
        "response_format": response_format(request.schema),
        **parameters,
    }


def record(name: str) -> KeyedExample:
    """A small record that is unlike those of other names."""
    return samples.keyed_example(id=name, question=f"What is {name}?")


def comes_true(condition: Callable[[], bool], seconds: float = 20.0) -> bool:
    """Whether something that another thread does happens before long."""
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.005)
    return condition()
