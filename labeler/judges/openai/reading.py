"""JSON as servers and models write it: the body of a response, and the object in an answer.

A paid answer is lost with a body that cannot be read. So whatever follows the first JSON value is
left out, and an event stream is joined. Models put an object into Markdown fences, think aloud
before it, or add words: all of it is cut off, whatever the output mode, and each kind is named, so
that it is counted as a repair. A text of two different objects is not: the reader of the schema
rejects it. Each step is one search by the interpreter, so that time grows with the length of the
text alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from io import StringIO
from typing import Any

import msgspec
from pydantic_core import to_json

_DECODER = json.JSONDecoder()
_EVENTS = ("data:", "event:", "id:", "retry:", ":")
"""Beginnings of lines of an event stream."""
_ANSWERS = tuple(start.encode() for start in ("{", *_EVENTS))
ENDLESS = "endless"
"""Reason of the end of an event stream that breaks off."""


def json_of(body: bytes) -> object:
    """Return the first JSON value of a body, or the completion that its event stream makes.

    ``None`` if there is neither.
    """
    text = body.decode(errors="replace").lstrip(_BOM).strip()
    try:
        return _streamed(text) if text.startswith(_EVENTS) else _DECODER.raw_decode(text)[0]
    except (ValueError, RecursionError):  # cut off, nested too deeply
        return None


def begins_answer(body: bytes) -> bool:
    """Return True if a body begins as an object or an event stream does."""
    return body.removeprefix(_BOM.encode()).lstrip().startswith(_ANSWERS)


def at(value: object, *path: str | int) -> Any:  # noqa: ANN401 - a JSON value
    """Return the value at a path; ``None`` if there is none."""
    for step in path:
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and step in range(len(value)):
            value = value[int(step)]
        else:
            return None
    return value


def list_of(value: object) -> list[Any]:
    """Return an external value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def text_of(value: object) -> str:
    """Return an external value if it is a string, else an empty string."""
    return value if isinstance(value, str) else ""


def object_of(value: object) -> Mapping[str, Any]:
    """Return an external value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def verbatim(body: bytes, *path: str | int) -> str:
    """Return the JSON text at a path; "" if there is none."""
    found: Any = body
    try:
        for step in path:
            kind: Any = list[msgspec.Raw] if isinstance(step, int) else dict[str, msgspec.Raw]
            found = msgspec.json.decode(found, type=kind)[step]
        return bytes(found).decode()
    except (LookupError, ValueError, msgspec.MsgspecError):
        return ""


def _streamed(text: str) -> dict[str, Any]:
    """Return the completion that an event stream makes."""
    whole: dict[str, Any] = {}
    choice: dict[str, Any] = {"message": {}}
    event, is_done = "", False
    for line in text.replace("\r", "\n").split("\n"):  # a text may hold other line ends
        content = line.removeprefix("data:").strip()
        if line.startswith("event:"):
            event = line.removeprefix("event:").strip()
        is_done |= content == "[DONE]"
        if not content.startswith("{"):  # some gateways write comments before a plain answer
            continue
        chunk = _DECODER.raw_decode(content)[0]
        if event == "error" and "error" not in chunk:
            chunk = {"error": chunk}
        parts = list_of(chunk.pop("choices", None))
        whole |= {name: value for name, value in chunk.items() if value is not None}
        for part in parts:
            if isinstance(part, dict):
                _add(choice["message"], part.pop("delta", None))
                part["message"] = object_of(part.get("message")) or choice["message"]
                choice |= {name: value for name, value in part.items() if value is not None}
    if not is_done:
        choice.setdefault("finish_reason", ENDLESS)
    return {**whole, "choices": [choice | {"message": _joined(choice["message"])}]}


def _joined(part: Any) -> Any:  # noqa: ANN401 - of a message
    """Return a part of a message with its texts joined."""
    if isinstance(part, dict):
        return {name: _joined(one) for name, one in part.items()}
    return part.getvalue() if isinstance(part, StringIO) else part


def _add(message: dict[str, Any], delta: object) -> None:
    """Add a piece of a message, or of its call, to those before it."""
    for name, value in delta.items() if isinstance(delta, dict) else ():
        if name in {"tool_calls", "function_call"}:  # the latter is the form before tools
            calls = (
                [value] if name == "function_call" else [at(v, "function") for v in list_of(value)]
            )
            for call in calls:
                if not isinstance(message.get("function_call"), dict):
                    message["function_call"] = {}
                _add(message["function_call"], call)
        elif isinstance(value, str):
            known = message.get(name)
            if not isinstance(known, StringIO):
                message[name] = StringIO()
                message[name].write(text_of(known))
            message[name].write(value)
        elif value is not None:
            message[name] = value


_THOUGHTS = (
    *((f"<{name}>", f"</{name}>")
      for name in ("think", "thinking", "thought", "reasoning", "seed:think")),
    ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"),  # Kimi
    *(("<|channel|>analysis<|message|>", f"<|channel|>final{form}<|message|>")
      for form in ("", " <|constrain|>json")),  # gpt-oss
)  # fmt: skip
_MOST_THOUGHTS = 8
_SPACE = " \t\r\n"
"""White space of JSON."""
_FENCE = re.compile(r"```[A-Za-z0-9]*")
_BOM = "\ufeff"


def unquoted(text: str) -> str:
    """Return the text in a JSON string, which some servers put around an answer."""
    inner = value_of(text) if text.startswith('"') else None
    return inner if isinstance(inner, str) else text


def find_object(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the JSON object in an answer, and the kinds of text around it.

    Args:
        text: the answer as the model wrote it.

    Returns:
        The text from the first brace to the last, and ``bom``, ``twice``, ``think``, ``fence``,
        ``preface`` and ``postscript`` for what stood around it; the whole text and nothing if it
        lacks an object, or if something after the last brace begins another one.
    """
    rest, repairs = text.strip(), []
    if rest.startswith(_BOM):
        rest, repairs = rest.lstrip(_BOM).lstrip(), ["bom"]
    half = rest[: -(-len(rest) // 2)].rstrip()
    if half.endswith("}") and rest[len(rest) // 2 :].lstrip() == half:
        rest, repairs = half, [*repairs, "twice"]
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


def parse_object(
    text: str, *, ends: bool = True, surplus: str = ""
) -> tuple[dict[str, Any] | None, bool]:
    """Parse a JSON object.

    Args:
        text: the text.
        ends: False if anything may follow the object.
        surplus: characters besides white space that may follow an object that ends the text.

    Returns:
        The object, ``None`` if the text is none; and true if an object in it has a duplicate name:
        JSON readers silently pick one of the two.
    """
    has_duplicates = False

    def named(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal has_duplicates
        values = dict(pairs)
        has_duplicates = has_duplicates or len(values) < len(pairs)
        return values

    try:
        # Models write line breaks into texts as they are.
        decoder = json.JSONDecoder(object_pairs_hook=named, strict=False)
        answer, end = decoder.raw_decode(text.strip(_SPACE))
    except (ValueError, RecursionError):
        return None, False
    rest = text.strip(_SPACE)[end:].strip(_SPACE + surplus)
    is_object = isinstance(answer, dict) and not (ends and rest)
    return answer if is_object else None, has_duplicates


_LOOSE = re.compile(
    r"""\"(?:[^"\\]|\\.)*+"?|'(?:[^'\\]|\\.)*+'?|,(?=\s*+[}\]])|//[^\n]*+|\b(?:True|False|None)\b""",
    re.DOTALL,
)
"""Strings in either quotation marks, commas before a closing bracket, comments, and Python's
constants."""
_CONSTANTS = {"True": "true", "False": "false", "None": "null"}
_ESCAPED = re.compile(r"\\.|\"", re.DOTALL)


def parse_loose(text: str) -> tuple[dict[str, Any] | None, bool]:
    """Parse an object in Python's spelling, or with stray comments, commas, brackets, escapes."""
    return parse_object(_LOOSE.sub(_respelled, text), surplus="]}")


def _respelled(found: re.Match[str]) -> str:
    """Return JSON for what differs from it."""
    token = found[0]
    if token[0] not in "\"'":
        return _CONSTANTS.get(token, "")
    return f'"{_ESCAPED.sub(_escape, token[1:-1])}"'


def _escape(found: re.Match[str]) -> str:
    """Return a quotation mark or an escape as JSON has it, where most letters have none."""
    escape = found[0]
    if escape == "\\'":
        return "'"
    return escape if escape[1:] and escape[1] in '"\\/bfnrtu' else f"\\{escape}"


def value_of(text: str) -> object:
    """Return the JSON value that is a text; ``None`` if it is none, or has a duplicate name."""
    found, has_duplicates = parse_object(f'{{"": {text}}}')
    return found[""] if found and len(found) == 1 and not has_duplicates else None


def wrapped(answer: dict[str, Any], fields: frozenset[str]) -> dict[str, Any]:
    """Return the only object in another one that has some fields, also as a text; else that one.

    Models write ``{"name": ..., "arguments": {...}}`` where their server reads no calls of tools.
    """
    values = [value_of(one) if isinstance(one, str) else one for one in answer.values()]
    inner = [one for one in values if isinstance(one, dict) and fields <= one.keys()]
    return inner[0] if len(inner) == 1 else answer


def flat(answer: dict[str, Any], lists: Iterable[str]) -> tuple[str | bytes, bool]:
    """Return the JSON of an answer with the fields of its class.

    Each entry's ``decision`` gives way to its fields, and those that its verdict leaves out, or
    leaves null, are empty. A list that a model wrote as a text is read. Anything else stays as it
    is, for the reader to reject.

    Args:
        answer: the answer, which is changed.
        lists: names of its fields that are lists.

    Returns:
        The JSON, and true if a list was a text.
    """
    is_quoted = _read_lists(answer, lists)
    for value in answer.values():
        for entry in list_of(value):
            if not isinstance(entry, dict):
                continue
            decision = entry.get("decision")
            if isinstance(decision, dict) and not entry.keys() & decision.keys():
                del entry["decision"]
                empty = _CLAIM_KEYS if "verdict" in decision else _SUPPORT_KEYS
                given = {name: one for name, one in decision.items() if one is not None}
                entry.update({**dict.fromkeys(empty, ()), **given})
            is_quoted |= _read_lists(entry, _CLAIM_KEYS)
    try:
        return to_json(answer, inf_nan_mode="constants"), is_quoted
    except ValueError:  # a lone surrogate, or nested deeper than it writes
        return json.dumps(answer), is_quoted


def _read_lists(values: dict[str, Any], names: Iterable[str]) -> bool:
    """Read the fields of some names that are lists as text; return True if one is."""
    is_read = False
    for name in names:
        text = values.get(name)
        if isinstance(text, str) and text[:1] == "[" and (found := value_of(text)) is not None:
            values[name], is_read = found, True
    return is_read


_SUPPORT_KEYS = ("supporting_sentence_keys",)
_CLAIM_KEYS = (*_SUPPORT_KEYS, "contradicting_sentence_keys")


def _without_thought(text: str) -> str:
    """Return a text without the thoughts at its start, whose first tag some servers leave out."""
    for _ in range(_MOST_THOUGHTS):
        if text.startswith("{"):
            break
        for first, last in _THOUGHTS:
            _, found, rest = text.partition(last)
            answer = rest.lstrip()
            if found and (text.startswith(first) or answer.startswith(("{", "```"))):
                text = answer
                break
        else:
            break
    return text
