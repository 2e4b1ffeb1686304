"""Masking of API keys, which a server may repeat and a library may log."""

from __future__ import annotations

MASK = "[key]"
_SHORTEST_KEY = 8
"""Length of a real key at least; a shorter one is a placeholder for servers without keys."""
_KEYS: set[str] = set()
"""API keys of all clients."""


def remember_key(key: str) -> None:
    """Mask a key from now on."""
    if len(key) >= _SHORTEST_KEY:
        _KEYS.add(key)


def masked(text: str) -> str:
    """Return a text without the keys in it."""
    for key in _KEYS:
        text = text.replace(key, MASK)
    return text


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
