"""Parts of judges behind APIs that differ from chat completions, such as Anthropic's.

Each API is one :class:`~labeler.judges.openai.request.Form`. An answer becomes the chat completion
that says the same, so that one reader serves all of them. The providers' libraries and instructor's
clients of them are not used: they make the schema from a class, where the published one is sent
byte for byte, read bodies without a bound, and take addresses and headers from the environment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from labeler.judges.openai.completion import NO_COMPLETION, Completion, read_completion, text_of
from labeler.judges.openai.reading import at, json_of, list_of, verbatim
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


class NativeAnswers(NamedTuple):
    """The places of an answer's parts, by which it becomes a chat completion."""

    blocks: Sequence[str | int]
    """Path to the list of its texts and calls."""
    call: Sequence[str]
    """Path from a block to the arguments of a call. They are taken word for word, because an object
    with a duplicate name must be seen as such."""
    end: Sequence[str | int]
    """Path to the reason of its end."""
    ends: Mapping[str, str]
    """Such reasons in the words of chat completions; others mean a complete answer."""
    usage: str
    """Name of the object with counts of tokens."""
    prompt: Sequence[str]
    """Names of the counts that make up the prompt."""
    answer: Sequence[str]
    """The same of the answer."""
    read: str
    """Name of the count of tokens that were read from the cache."""
    written: str = ""
    """Name of the count of tokens that were written to it, if there is one."""
    model: str = ""
    """Name of the model that answered, if it is named."""
    blocked: Sequence[str] = ()
    """Path to the reason why a filter blocked the request, if there is one."""

    def completion(self, body: bytes, _: Request) -> Completion:
        """Return the completion that an answer holds."""
        values = json_of(body)
        if values is None:
            return NO_COMPLETION
        finish = self.ends.get(str(at(values, *self.end)))
        if self.blocked and at(values, *self.blocked) is not None:
            finish = "content_filter"
        listed, counts = at(values, *self.blocks), at(values, self.usage)
        parts = list_of(listed)
        texts = [text_of(at(part, "text")) for part in parts if not at(part, "thought")]
        called = [n for n, part in enumerate(parts) if at(part, *self.call) is not None]
        # Only the arguments of a single call are read; each takes a pass over the body.
        is_one = len(called) == 1
        calls = [verbatim(body, *self.blocks, n, *self.call) if is_one else "" for n in called]
        message = {
            "content": "".join(texts),
            "tool_calls": [{"function": {"arguments": arguments}} for arguments in calls],
            "refusal": finish == "refusal",
        }
        choice = {"message": message, "finish_reason": finish}
        return read_completion(
            {
                "choices": [choice] if isinstance(listed, list) or finish else [],
                "usage": {
                    "prompt_tokens": _total(counts, *self.prompt),
                    "completion_tokens": _total(counts, *self.answer),
                    "prompt_tokens_details": {
                        "cached_tokens": _total(counts, self.read),
                        "cache_write_tokens": _total(counts, self.written),
                    },
                },
                "model": at(values, self.model),
                "error": at(values, "error"),
            }
        )


def _total(counts: object, *names: str) -> int | None:
    """Return the sum of the counts that are there; ``None`` without any."""
    found = [at(counts, name) for name in names]
    known = [count for count in found if isinstance(count, int) and count >= 0]
    return sum(known) if known else None
