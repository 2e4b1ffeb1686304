"""Parts of judges behind APIs that differ from chat completions, such as Anthropic's.

Each API is one :class:`~labeler.judges.openai.request.Form`. An answer becomes the chat completion
that says the same, so that one reader serves all of them. The providers' libraries and instructor's
clients of them are not used: they make the schema from a class, where the published one is sent
byte for byte, read bodies without a bound, and take addresses and headers from the environment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from labeler.judges.openai.completion import NO_COMPLETION, Completion, read_completion, text_of
from labeler.judges.openai.reading import verbatim
from labeler.judges.openai.request import Request

_NO_TEXT = "{}"
"""Stands for an empty answer in a re-ask, because the providers reject an empty text."""


def texts_of(asked: Request) -> tuple[str, list[tuple[str, str]], dict[str, Any] | None]:
    """Return the system prompt, roles and texts of the other messages, and the schema.

    The schema is ``None`` in the mode that shows it to the model.
    """
    messages, _ = asked.task.sent(asked.messages)
    system = "\n\n".join(one["content"] for one in messages if one["role"] == "system")
    others = [
        (one["role"], one["content"] if one["content"].strip() else _NO_TEXT)
        for one in messages
        if one["role"] != "system"
    ]
    is_tool = asked.task.mode == "tools"
    return system, others, dict(asked.task.schema.json_schema) if is_tool else None


def set_only(**settings: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON values
    """Return the settings that are set."""
    return {name: value for name, value in settings.items() if value is not None}


def completion_of(  # noqa: PLR0917 - made in one place for each API
    body: bytes,
    values: object,
    blocks: Sequence[str | int],
    call: Sequence[str],
    finish: str | None,
    usage: Mapping[str, Any],
    model: object = None,
) -> Completion:
    """Return the completion that an answer holds.

    Args:
        body: the answer.
        values: its JSON values; ``None`` if it is not JSON.
        blocks: path to the list of its texts and calls.
        call: path from a block to the arguments of a call. They are taken word for word, because
            an object with a duplicate name must be seen as such.
        finish: reason of its end in the words of chat completions; ``None`` if it is complete.
        usage: as in chat completions.
        model: the model that answered.
    """
    if values is None:
        return NO_COMPLETION
    listed = value_at(values, *blocks)
    parts = list(enumerate(listed)) if isinstance(listed, list) else []
    texts = [text_of(value_at(part, "text")) for _, part in parts if not value_at(part, "thought")]
    called = [n for n, part in parts if value_at(part, *call) is not None]
    # Only the arguments of a single call are read; each takes a pass over the body.
    calls = [verbatim(body, *blocks, n, *call) if len(called) == 1 else "" for n in called]
    message = {
        "content": "".join(texts),
        "tool_calls": [{"function": {"arguments": arguments}} for arguments in calls],
        "refusal": finish == "refusal",
    }
    choice = {"message": message, "finish_reason": finish}
    return read_completion(
        {
            "choices": [choice] if isinstance(listed, list) or finish else [],
            "usage": usage,
            "model": model,
            "error": value_at(values, "error"),
        }
    )


def value_at(values: object, *path: str | int) -> Any:  # noqa: ANN401 - a JSON value
    """Return the value at a path; ``None`` if there is none."""
    for step in path:
        try:
            values = values[step]  # type: ignore[index]  # anything that a server sends
        except (LookupError, TypeError):
            return None
    return values


def _total(counts: object, *names: str) -> int | None:
    """Return the sum of the counts that are there; ``None`` without any."""
    found = [value_at(counts, name) for name in names]
    known = [count for count in found if isinstance(count, int) and count >= 0]
    return sum(known) if known else None


def usage_of(
    counts: object,
    prompt: Sequence[str],
    answer: Sequence[str],
    read: str,
    written: Sequence[str] = (),
) -> dict[str, Any]:
    """Return usage as in chat completions, of counts by name.

    Args:
        counts: the counts of an answer.
        prompt: names of the counts that make up the prompt.
        answer: the same of the answer.
        read: name of the count of tokens that were read from the cache.
        written: name of the count of tokens that were written to it, if there is one.
    """
    return {
        "prompt_tokens": _total(counts, *prompt),
        "completion_tokens": _total(counts, *answer),
        "prompt_tokens_details": {
            "cached_tokens": _total(counts, read),
            "cache_write_tokens": _total(counts, *written),
        },
    }
