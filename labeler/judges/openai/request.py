"""The body of a chat completions request, the same online and in a batch."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from labeler.judges.openai.spec import OpenAISpec
from labeler.judges.task import Task
from labeler.labels.schemas import ResponseSchema


def request_body(
    spec: OpenAISpec,
    task: Task,
    messages: Sequence[Mapping[str, Any]] | None = None,
    cap: int | None = None,
) -> dict[str, Any]:
    """Return the JSON body of a request.

    Args:
        spec: model and parameters.
        task: the task.
        messages: messages other than the task's own, such as those of a re-ask.
        cap: most tokens of the answer, including reasoning; omitted if ``None``.
    """
    asked = list(task.messages if messages is None else messages)
    body: dict[str, Any] = {
        **spec.parameters(),
        **task.parameters,
        "messages": asked,
        "response_format": response_format(task.schema),
    }
    if cap is not None:
        body["max_completion_tokens"] = cap
    if spec.cache_prefix:
        body["messages"] = [_cacheable(asked[0]), *asked[1:]]
        body["prompt_cache_options"] = {"mode": "explicit"}
    return body


def _cacheable(message: Mapping[str, Any]) -> dict[str, Any]:
    """Mark the end of a message as the end of the prefix that all requests share."""
    text = {"type": "text", "text": message["content"]}
    return {**message, "content": [{**text, "prompt_cache_breakpoint": {"mode": "explicit"}}]}


def response_format(schema: ResponseSchema) -> dict[str, Any]:
    """Return the strict response format of a published schema, in its property order."""
    return {
        "type": "json_schema",
        "json_schema": {
            "name": re.sub(r"[^A-Za-z0-9_-]", "_", schema.name)[:64],
            "strict": True,
            "schema": dict(schema.json_schema),
        },
    }
