"""Masking of API keys and documents, which a server may repeat and a library may log."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from traceback import format_exception

MASK = "[key]"
_SHORTEST_KEY = 8
"""Length of a real key at least; a shorter one is a placeholder for servers without keys."""
_KEYS: set[str] = set()
"""API keys of all clients."""
_VALUES: set[str] = set()
"""Values of the user's headers. Short ones are often words, such as the name of a team, which must
stay in an answer: they are masked in messages and logs alone."""
_SHORTEST_VALUE, _SHORTEST_TOKEN = 4, 20
"""Lengths from which a header's value is masked, and from which it cannot be a word."""


def remember_key(key: str) -> None:
    """Mask a key from now on."""
    if len(key) >= _SHORTEST_KEY:
        _KEYS.add(key)


def remember_value(value: str) -> None:
    """Mask the value of a header from now on."""
    if len(value) >= _SHORTEST_TOKEN:
        remember_key(value)
    elif len(value) >= _SHORTEST_VALUE:
        _VALUES.add(value)


def masked(text: str) -> str:
    """Return a message without the keys in it."""
    for key in (*_KEYS, *_VALUES):
        text = text.replace(key, MASK)
    return text


def masked_json(text: str) -> str:
    """Return a JSON text without the keys in it, also those that are written with escapes."""
    hidden = masked(text)
    if "\\" not in hidden:
        return hidden
    plain = _ESCAPE.sub(_unescaped, hidden)
    return hidden if masked(plain) == plain else masked(plain)


_ESCAPE = re.compile(r"\\(?:u00([2-7][0-9a-fA-F])|.)", re.DOTALL)


def _unescaped(escape: re.Match[str]) -> str:
    """Return the character of an escape that JSON does not need; others stay."""
    character = chr(int(escape[1], 16)) if escape[1] else escape[0][1]
    return escape[0] if character in _NEEDED or not (escape[1] or character == "/") else character


_NEEDED = frozenset('"\\\x7f')


def plain_code(text: str) -> str:
    """Return a provider's code if it looks like one, else "": it might quote the request.

    Hyphens are excluded so that no API key passes for a code.
    """
    return text if _CODE.fullmatch(text) else ""


_CODE = re.compile(r"[A-Za-z][A-Za-z0-9_.\[\]]{0,63}", re.ASCII)


class MaskedBytes:
    """Masks keys in bytes that arrive in pieces, also across two of them."""

    def __init__(self) -> None:
        self._kept = b""
        self._overlap = max((len(key) for key in _KEYS), default=1) - 1

    def add(self, piece: bytes) -> bytes:
        """Return the bytes that are certain; the end of a piece may begin a key."""
        whole = self._kept + piece
        for key in _KEYS:
            whole = whole.replace(key.encode(), MASK.encode())
        certain = max(0, len(whole) - self._overlap)
        self._kept = whole[certain:]
        return whole[:certain]

    def end(self) -> bytes:
        """Return the rest."""
        return self._kept


_BODIES = {"content", "json_data"}


class _Clean(logging.Filter):
    """Keeps documents and keys out of the logs: libraries log bodies, headers and errors."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, Mapping) and _BODIES & record.args.keys():
            return False
        message = record.getMessage()
        if (text := masked(message)) != message:
            record.msg, record.args = text, None
        error = record.exc_info[1] if record.exc_info else None
        if error and any(masked(line) != line for line in format_exception(error)):
            record.exc_info = None
        return True


for _name in (
    *("openai._base_client", "openai._response", "openai._legacy_response"),
    *("httpx2", "aiohttp.client", "aiohttp.internal"),
):
    logging.getLogger(_name).addFilter(_Clean())
