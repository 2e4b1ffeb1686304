"""The body of a chat completions request: the very same one, asked online or in a batch."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from labeler.judges.openai.spec import OpenAISpec
from labeler.judges.task import Task
from labeler.labels.schemas import ResponseSchema


def request_body(
    spec: OpenAISpec,
    request: Task,
    messages: Sequence[Mapping[str, Any]] | None = None,
    cap: int | None = None,
) -> dict[str, Any]:
    """The JSON body that asks for one answer.

    Args:
        spec: model and parameters.
        request: what is asked.
        messages: where they are not the request's own, such as those of a re-ask.
        cap: tokens that the answer may have, reasoning included; not sent where it is ``None``.
    """
    asked = list(request.messages if messages is None else messages)
    body: dict[str, Any] = {
        **spec.parameters(),
        **request.parameters,
        "messages": asked,
        "response_format": response_format(request.schema),
    }
    if cap is not None:
        body["max_completion_tokens"] = cap
    if spec.cache_prefix:
        body["messages"] = [_to_be_cached(asked[0]), *asked[1:]]
        body["prompt_cache_options"] = {"mode": "explicit"}
    return body


def _to_be_cached(message: Mapping[str, Any]) -> dict[str, Any]:
    """The message at whose end the part of the prompt ends that all requests share."""
    text = {"type": "text", "text": message["content"]}
    return {**message, "content": [{**text, "prompt_cache_breakpoint": {"mode": "explicit"}}]}


def response_format(schema: ResponseSchema) -> dict[str, Any]:
    """The strict response format of a published schema, property order as published."""
    return {
        "type": "json_schema",
        "json_schema": {
            "name": re.sub(r"[^A-Za-z0-9_-]", "_", schema.name)[:64],
            "strict": True,
            "schema": dict(schema.json_schema),
        },
    }
