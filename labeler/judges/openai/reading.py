"""The JSON object in what a model wrote.

Models put an object into Markdown fences, think aloud before it, or add words. All of it is cut
off, whatever the output mode, and each kind is named, so that it is counted as a repair. A text of
two objects is not: the reader of the schema rejects it. Each step is one search by the interpreter,
so that time grows with the length of the text alone.
"""

from __future__ import annotations

import json
import re
from typing import Any

from pydantic_core import to_json

_THOUGHTS = tuple(
    (f"{start}{name}{end}", f"{start}/{name}{end}")
    for start, name, end in (
        ("<", "think", ">"), ("<", "thinking", ">"), ("<", "reasoning", ">"), ("[", "THINK", "]"),
    )
)  # fmt: skip
_FENCE = re.compile(r"```[A-Za-z0-9]*")
_BOM = "\ufeff"


def find_object(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the JSON object in an answer, and the kinds of text around it.

    Args:
        text: the answer as the model wrote it.

    Returns:
        The text from the first brace to the last, and ``bom``, ``think``, ``fence``, ``preface``
        and ``postscript`` for what stood around it; the whole text and nothing if there is no
        object, or if something after the last brace begins another one.
    """
    rest, repairs = text.strip(), []
    if rest.startswith(_BOM):
        rest, repairs = rest.lstrip(_BOM).lstrip(), ["bom"]
    if rest.startswith("{") and rest.endswith("}"):
        return (rest, tuple(repairs)) if repairs else (text, ())
    answer = _without_thought(rest)
    if answer is not rest:
        repairs.append("think")
    start, end = answer.find("{"), answer.rfind("}") + 1
    before, after = answer[: max(start, 0)], answer[end:]
    if start < 0 or end <= start or "{" in after:
        return text, ()
    words = [_FENCE.sub("", part).strip() for part in (before, after)]
    if "```" in before or "```" in after:
        repairs.append("fence")
    repairs += [name for name, word in zip(("preface", "postscript"), words, strict=True) if word]
    return answer[start:end], tuple(repairs)


def parse_object(text: str) -> tuple[dict[str, Any] | None, bool]:
    """Parse a JSON object.

    Returns:
        The object, ``None`` if the text is none; and true if an object in it has a duplicate name,
        of which JSON readers silently pick one.
    """
    has_duplicates = False

    def named(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal has_duplicates
        values = dict(pairs)
        has_duplicates = has_duplicates or len(values) < len(pairs)
        return values

    try:
        answer: object = json.loads(text, object_pairs_hook=named)
    except (ValueError, RecursionError):
        return None, False
    return answer if isinstance(answer, dict) else None, has_duplicates


def flat(answer: dict[str, Any]) -> str | bytes:
    """Return the JSON of an answer with the fields of its class.

    Each entry's ``decision`` gives way to its fields, and those that its verdict leaves out are
    empty. Anything else stays as it is, for the reader to reject.
    """
    lists = (value for value in answer.values() if isinstance(value, list))
    for entry in (one for each in lists for one in each if isinstance(one, dict)):
        decision = entry.get("decision")
        if isinstance(decision, dict) and not entry.keys() & decision.keys():
            del entry["decision"]
            empty = _CLAIM_KEYS if "verdict" in decision else _SUPPORT_KEYS
            entry.update({**dict.fromkeys(empty, ()), **decision})
    try:
        return to_json(answer, inf_nan_mode="constants")
    except ValueError:  # a lone surrogate, or nested deeper than it writes
        return json.dumps(answer)


_SUPPORT_KEYS = ("supporting_sentence_keys",)
_CLAIM_KEYS = (*_SUPPORT_KEYS, "contradicting_sentence_keys")


def _without_thought(text: str) -> str:
    """Return a text without the thought at its start, whose first tag some servers leave out."""
    if text.startswith("{"):
        return text
    for first, last in _THOUGHTS:
        _, found, rest = text.partition(last)
        answer = rest.lstrip()
        if found and (text.startswith(first) or answer.startswith(("{", "```"))):
            return answer
    return text
