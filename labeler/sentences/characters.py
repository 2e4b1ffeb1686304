"""Characters that a terminal would obey or a model's tokenizer could take for its own.

Text of strangers passes through unchanged in files. Where it meets a person's screen or a model,
such characters are written out instead.
"""

from __future__ import annotations

import json
import re

_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f\ud800-\udfff]"
)
"""Control, direction, tag and invisible characters, and what cannot be written as UTF-8; without
the two joiners that Persian, Hindi and emoji are written with."""

_CONTROL_TOKEN = re.compile(
    r"<(?=[|\uff5c<\[]|/?[A-Za-z_][\w:.-]*[|\uff5c]?>)|\[(?=\||/?[A-Za-z_]{2,}\]|e~\[)|\](?=~)"
    "|[\ufe00-\ufe0e\U000e0100-\U000e01ef]",
)
"""How chat templates begin a control token: by shape, not by a list of names that would age. And
variation selectors, in which any bytes can hide; but the one that emoji are written with."""


def visible(text: str) -> str:
    """Write unsafe characters as ``<U+001B>``; line breaks and tabs stay."""
    return _UNSAFE.sub(lambda match: f"<U+{ord(match[0]):04X}>", text)


def plain_json(text: str) -> str:
    r"""Write unsafe characters of a JSON text as escapes, ``\u202e``; it means the same."""
    return _UNSAFE.sub(_escape, text)


def inert_json(text: str) -> str:
    r"""Escape what :func:`plain_json` does, and whatever could be read as a model's control token.

    ``<|im_end|>`` becomes ``\u003c|im_end|>``: the same JSON, and no such token in its text.
    """
    return _CONTROL_TOKEN.sub(_escape, plain_json(text))


def _escape(match: re.Match[str]) -> str:
    if match[0].isascii():  # json.dumps would leave most of these as they are
        return f"\\u{ord(match[0]):04x}"
    return json.dumps(match[0])[1:-1]
