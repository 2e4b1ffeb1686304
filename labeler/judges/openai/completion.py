"""One chat completion, read from a server's JSON.

Servers deviate from the API in many ways: any part may be missing or of another type. Each is read
on its own here, once, so that a tokens count is kept although the answer next to it is unusable.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, NamedTuple

from labeler.judges.openai.address import masked, masked_json
from labeler.judges.openai.error_rules import ErrorKind, ObservedError
from labeler.judges.openai.reading import (
    at,
    begins_answer,
    find_object,
    json_of,
    list_of,
    object_of,
    parse_object,
    text_of,
    unquoted,
    verbatim,
)
from labeler.judges.openai.server_errors import error_in, stated_error
from labeler.judges.task import Token
from labeler.labels.record import Usage
from labeler.sentences.words import read_table

_MOST_READ, _MOST_OTHERS = 100_000, 100
"""Tokens and alternatives that are read; servers return fewer."""
_ROUNDED_UP = 1e-3
"""Highest log-probability that a server's rounding may produce."""
_MOST_TOKENS = 10**9
"""No request has more tokens; a larger count is invalid."""
_LONGEST_FACT = 200
_LONGEST_ANSWER = 1 << 20
"""Characters of an answer at most; more is not sent back for correction either."""
_LONGEST_PERIOD, _FEWEST_REPEATS, _SHORTEST_LOOP = 400, 10, 200
"""A loop: characters of the repeated text at most, its repeats, and characters of all of them."""
_SERVERS = read_table(__file__, "servers")
_UNFINISHED: dict[str, ErrorKind] = {
    reason: kind for kind, reasons in _SERVERS["ends"].items() for reason in reasons.split()
}
"""Reasons of the end, in the words of several providers, unless the answer is complete."""

TOOL_CALL = "tool_call"
"""The repair of an answer in the arguments of a tool call; none if that was asked for."""
_THOUGHTS = ("thinking", "redacted_thinking", "reasoning", "thought")
"""Begin of the kinds of parts in which models think."""
_TEXTS = (None, "text", "output_text")
"""Kinds of parts that are text; some servers state none."""
_LAYOUT = re.compile(r"\s+")
"""In which equal calls may differ."""
_THOUGHT_FIELDS = ("reasoning_content", "reasoning", "thinking")

Verbatim = Callable[..., str]
"""Returns the JSON text of a value that stands at a path in a message."""


class Completion(NamedTuple):
    """The parts of a completion that are used."""

    content: str = ""
    """The JSON object of the answer; the whole answer if there is none in it. Empty if it is
    neither text, nor a list of text parts, nor a tool call."""
    repairs: tuple[str, ...] = ()
    """Repairs by which the object was found, see :func:`find_object` and :func:`content_of`; also
    the field of the thoughts, if it stood there."""
    error: ObservedError | None = None
    """Why there is no answer; ``None`` if there is one."""
    thought: str = ""
    """Field with the model's thoughts, if the answer is empty and they are not."""
    usage: Usage | None = None
    """Tokens charged, if the server reports them."""
    input_tokens: int = 0
    """Sum of all input counters; 0 if the server reports none."""
    model: str | None = None
    fingerprint: str | None = None
    tokens: tuple[Token, ...] = ()
    """Tokens of the answer with log-probabilities; empty if any of them is missing."""
    decisions: Mapping[str, float | dict[str, float]] = {}
    """Probabilities by question, of a model that decides."""

    @property
    def choices(self) -> list[SimpleNamespace]:
        """The answer where instructor looks for it."""
        message = SimpleNamespace(role="assistant", content=self.content)
        return [SimpleNamespace(finish_reason="stop", message=message)]

    @property
    def is_loop(self) -> bool:
        """True if the answer ends in the same text, ten times or more in a row."""
        for period in range(1, _LONGEST_PERIOD + 1):
            length = max(_FEWEST_REPEATS * period, _SHORTEST_LOOP)
            end = self.content[-length:]
            if len(end) == length and end.startswith(end[period:]):
                return True
        return False


def unreadable(body: bytes) -> ObservedError:
    """Return the error of a body that is not an object: damaged, or something else."""
    if list_of(json_of(body)):
        return ObservedError("foreign")
    return ObservedError("garbled" if begins_answer(body) else "not_json")


def parse_completion(body: bytes, _: object = None) -> Completion:
    """Parse the body of a response, whatever was asked."""
    values = json_of(body)
    if not isinstance(values, dict):
        return Completion(error=unreadable(body))
    return read_completion(values, body)


def read_completion(values: Mapping[str, Any], body: bytes = b"") -> Completion:
    """Read a completion from JSON values, and from their text if there is one."""
    choice = object_of(at(values, "choices", 0))
    message, is_parsed = _message(choice), False

    def spelled(value: object, *path: str | int) -> str:
        nonlocal is_parsed
        is_parsed = True
        return verbatim(body, "choices", 0, "message", *path) or json.dumps(value)

    text, repairs = content_of(message or {}, spelled)
    plain = unquoted(text)
    content, found = find_object(masked_json(plain))
    repairs = repairs if plain is text else (*repairs, "quoted")
    thought = ""
    if not content.strip():
        thought, text = thought_of(message or {})
        inner, kinds = find_object(masked_json(text))
        if parse_object(inner)[0] is not None and "postscript" not in kinds:
            content, found, thought = inner, (thought, *kinds), ""
    counts = values.get("usage") or values.get("usageMetadata")
    usage, read = counts_of(counts, is_empty=not (content or thought))
    error = _error(values, choice, message, content, is_parsed=is_parsed)
    logprobs = object_of(choice.get("logprobs"))
    is_ours = "choices" in values or values.get("object") == "chat.completion"
    if error == ObservedError("no_choices") and not is_ours:
        error = ObservedError("foreign" if values else "not_json")
    elif error == ObservedError("no_choices") and message is None and usage:
        error = ObservedError("slipped")  # it was paid for
    if error is not None and error.kind == "oversized":
        content = ""
    return Completion(
        content=content,
        repairs=(*repairs, *found),
        error=error,
        thought=thought,
        usage=usage,
        input_tokens=read,
        model=fact_of(values.get("model")),
        fingerprint=fact_of(values.get("system_fingerprint")),
        tokens=_tokens(logprobs) if logprobs and not error else (),
    )


def _message(choice: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the message of a choice, also in the forms of a stream and of old completions."""
    message = choice.get("message", choice.get("delta"))
    if message is None and isinstance(choice.get("text"), str):
        return {"content": choice["text"]}
    return message if isinstance(message, dict) else None


def _error(
    values: Mapping[str, Any],
    choice: Mapping[str, Any],
    message: Mapping[str, Any] | None,
    content: str,
    *,
    is_parsed: bool,
) -> ObservedError | None:
    """Return why a completion holds no answer; ``None`` if it holds one.

    The server has closed an object that it parsed, also one that was cut off.
    """
    if error := error_in(values, "choices"):
        return error
    if stated := choice.get("error"):
        return stated_error(stated)
    finish = text_of(choice.get("finish_reason"))
    if message is None or finish.lower() == "error":
        native = text_of(choice.get("native_finish_reason"))  # OpenRouter's provider's
        return ObservedError(unfinished(native) or unfinished(finish) or "no_choices")
    if len(content) > _LONGEST_ANSWER:
        return ObservedError("oversized")
    parts = list_of(message.get("content"))
    is_refused = message.get("refusal") or (parts and "refusal" in [at(p, "type") for p in parts])
    kind = "refusal" if is_refused else unfinished(finish)
    is_whole = kind is not None and not is_parsed and parse_object(content)[0] is not None
    return ObservedError(kind) if kind and not is_whole else None


def unfinished(reason: str) -> ErrorKind | None:
    """Return what a reason of the end says of an incomplete answer; ``None`` if nothing known."""
    return _UNFINISHED.get(reason.lower().partition(":")[0])


def counts_of(found: object, *, is_empty: bool = False) -> tuple[Usage | None, int]:
    """Return the tokens charged, ``None`` if a server reports none, and the tokens of the input.

    No prompt has 0 tokens, and no answer that holds something: such counts are placeholders.
    Thoughts that only the total counts, as xAI has it, are charged as an answer is. Cached tokens
    are part of the prompt's, unless they are more than it; Anthropic and Bedrock count them apart.

    Args:
        found: what the server reports.
        is_empty: True if the answer may have had no tokens.
    """
    counts = _counts_in(found)
    details = _counts_in(at(found, "prompt_tokens_details") or at(found, "input_tokens_details"))
    prompt = _first(counts, "prompt")
    if not prompt:
        return None, 0
    read_apart, written_apart = _first(counts, "read_apart"), _first(counts, "written_apart")
    if "prompt_tokens" not in counts:
        prompt += read_apart + written_apart
    cached = details.get("cached_tokens") or _first(counts, "cached") or read_apart
    written = _first(details, "written") or written_apart
    if cached + written > prompt:
        prompt += cached + written
    answer = _first(counts, "answer") + counts.get("thoughtsTokenCount", 0)
    answer = max(answer, _first(counts, "total") - prompt)
    if not (answer or is_empty):
        return None, prompt
    usage = Usage(
        prompt_tokens=prompt,
        completion_tokens=answer,
        cached_tokens=cached,
        cache_write_tokens=written,
    )
    return usage, prompt


_COUNTERS = {meaning: names.split() for meaning, names in _SERVERS["counters"].items()}


def _counts_in(found: object) -> dict[str, int]:
    """Return the counts in an object by name, without those that are 0."""
    return {name: count for name, one in object_of(found).items() if (count := count_of(one))}


def _first(counts: Mapping[str, int], meaning: str) -> int:
    """Return the first count with a name of this meaning; 0 if there is none."""
    return next((counts[name] for name in _COUNTERS[meaning] if name in counts), 0)


def count_of(value: object) -> int:
    """Return a server-supplied count of tokens; 0 if it is none."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return 0
    return math.ceil(value) if 0 < value <= _MOST_TOKENS else 0


def fact_of(value: object) -> str | None:
    """Return a server-supplied text that can be stored, or ``None``."""
    return masked(text_of(value)).encode("utf-8", "replace").decode()[:_LONGEST_FACT] or None


def _tokens(given: Mapping[str, Any]) -> tuple[Token, ...]:
    tokens = [*map(_token, list_of(given.get("content"))[:_MOST_READ])]
    return () if None in tokens else tuple(filter(None, tokens))


def _token(given: object) -> Token | None:
    chosen = _candidate(given)
    if chosen is None:
        return None
    text, logprob = chosen
    listed = map(_candidate, list_of(at(given, "top_logprobs"))[:_MOST_OTHERS])
    others = [other for other in listed if other is not None]
    # The chosen token is among them, where servers round it otherwise.
    own = [other for other in others if other[0] == text]
    if own:
        others.remove(min(own, key=lambda other: abs(other[1] - logprob)))
    return Token(text, logprob, tuple(others))


def _candidate(given: object) -> tuple[bytes, float] | None:
    """Return the bytes and the log-probability of a candidate token."""
    text, logprob = at(given, "token"), at(given, "logprob")
    if not isinstance(text, str) or not isinstance(logprob, int | float):
        return None
    if isinstance(logprob, bool) or not logprob <= _ROUNDED_UP:
        return None
    raw = at(given, "bytes")  # exact, where the token is part of a character
    try:
        content = bytes(raw) if raw and isinstance(raw, list) else text.encode("utf-8", "replace")
    except (TypeError, ValueError):
        return None
    return content, min(0.0, float(logprob))


# The answer in a message, wherever a server puts it.


def content_of(message: Mapping[str, Any], verbatim: Verbatim) -> tuple[str, tuple[str, ...]]:
    """Return the text of an answer, and its form if that is not a plain text.

    Args:
        message: the message.
        verbatim: spells what a server sends as an object instead of a text; an object with a
            duplicate name must be seen as such.
    """
    if arguments := _arguments(message, verbatim):
        return arguments, (TOOL_CALL,)
    content: object = message.get("content")
    if isinstance(content, dict) and _text_in(content) is None:
        return verbatim(content, "content"), ("content_object",)
    if not isinstance(content, dict | list):
        return text_of(content), ()
    parts = [content] if isinstance(content, dict) else content
    said = [_text_in(one) for one in parts if not text_of(at(one, "type")).startswith(_THOUGHTS)]
    repairs = ("text_parts", "think") if len(said) < len(parts) else ("text_parts",)
    return "" if None in said else "".join(filter(None, said)), repairs


def thought_of(message: Mapping[str, Any]) -> tuple[str, str]:
    """Return the field of a message that holds the model's thoughts, and its text; "" for none."""
    texts = ((name, text_of(message.get(name)).strip()) for name in _THOUGHT_FIELDS)
    return next(((name, text) for name, text in texts if text), ("", ""))


def _arguments(message: Mapping[str, Any], verbatim: Verbatim) -> str:
    """Return the arguments of a tool call; "" if there is none, or if several differ."""
    places: list[tuple[str | int, ...]] = [("function_call",)]  # the form before tools
    for number, call in enumerate(list_of(message.get("tool_calls"))):
        inner = ("function",) if "function" in object_of(call) else ()
        places.append(("tool_calls", number, *inner))
    texts = dict[str, str]()
    for place in places:
        arguments = at(message, *place, "arguments")
        is_object = isinstance(arguments, dict)
        text = verbatim(arguments, *place, "arguments") if is_object else text_of(arguments)
        texts[_LAYOUT.sub("", text)] = text
    for empty in ("", "{}"):
        texts.pop(empty, None)
    return next(iter(texts.values())) if len(texts) == 1 else ""


def _text_in(part: object) -> str | None:
    """Return the text of a part, which some servers put into an object or another field."""
    if isinstance(part, str):
        return part
    if not isinstance(part, dict) or part.get("type") not in _TEXTS:
        return None
    text: object = part.get("text", part.get("content"))
    text = at(text, "value") if isinstance(text, dict) else text
    return text if isinstance(text, str) else None
