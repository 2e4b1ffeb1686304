"""Request parameters that this package does not know, from a user's file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from labeler.data.lines import load_json
from labeler.errors import UsageError
from labeler.judges.options import ModelOptions, is_in_key
from labeler.labels.signature import canonical_json

_LARGEST = 1 << 16
"""Bytes of the file at most: its content is kept with each label."""
_CONFIG = "generationConfig"
"""Gemini's object of parameters, in the only spelling that is read."""


def _plain(name: str) -> str:
    """Return a name as Google reads it, with or without underscores."""
    return name.replace("_", "").lower()


_OURS = frozenset(map(_plain, (
    *("model", "messages", "stream", "stream_options", "n"),
    *("response_format", "tools", "tool_choice", "functions", "function_call"),
    *("max_tokens", "max_completion_tokens", "logprobs", "top_logprobs"),
    *("prompt_cache_key", "prompt_cache_options"),
    # Of other providers:
    *("system", "systemInstruction", "contents", "toolConfig", "inferenceConfig", "outputConfig"),
    *(_CONFIG, "candidateCount", "maxOutputTokens", "responseLogprobs"),
    *("responseMimeType", "responseSchema", "responseJsonSchema"),
    *(option.name for option in fields(ModelOptions) if is_in_key(option)),
)))  # fmt: skip
"""Parameters that have an option of their own, or that an answer is read by."""


def read_extra_body(given: object) -> dict[str, Any] | None:
    """Return the parameters of a file, or those given by a Python caller.

    Args:
        given: a path, a mapping, or ``None``.

    Raises:
        UsageError: the file cannot be read, is too large or is no JSON object, or it sets a
            parameter that labeler sets itself.
    """
    if given is None:
        return None
    where = "extra_body" if isinstance(given, Mapping) else f"--extra-body {given}"
    body = given if isinstance(given, Mapping) else _read(str(given), where)
    if not isinstance(body, Mapping):
        raise UsageError(
            f'{where} must hold one JSON object, such as {{"top_k": 20}}; got {body!r:.40}'
        )
    try:
        size = len(canonical_json(dict(body)))
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"{where} holds a value that is no JSON: {error}") from None
    if size > _LARGEST:
        raise UsageError(f"{where} has {size} bytes; at most {_LARGEST} are allowed")
    config: object = body.get(_CONFIG, {})
    if not isinstance(config, Mapping):
        raise UsageError(f"{where}: {_CONFIG} must be a JSON object; got {config!r:.40}")
    names = [str(name) for name in (*body, *config)]
    if taken := sorted(n for n in names if n != _CONFIG and _plain(n) in _OURS):
        raise UsageError(
            f"{where} sets {', '.join(taken)}, which labeler sets itself: use its own option if it "
            "has one, and drop it here"
        )
    return dict(body)


def _read(path: str, where: str) -> object:
    try:
        with Path(path).open("rb") as file:
            content = file.read(_LARGEST + 1)
        if len(content) > _LARGEST:
            raise UsageError(f"{where} is larger than the {_LARGEST} bytes that are allowed")
        return load_json(content.decode(), is_strict=True)
    except OSError as error:
        raise UsageError(f"{where} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{where} is no JSON: {error}") from None
