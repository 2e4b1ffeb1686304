"""Packs data for a page: compressed, and in letters that no markup can be made of."""

from __future__ import annotations

import base64
import gzip
import json

from markupsafe import Markup


def packed(value: object) -> str:
    """JSON, packed by gzip, in base64; the same value gives the same text.

    Raises:
        ValueError: the value holds NaN or an infinity.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # What is no character of UTF-8, a lone surrogate, is written as the JSON escape that it has.
    content = text.encode("utf-8", errors="backslashreplace")
    return base64.b64encode(gzip.compress(content, mtime=0)).decode("ascii")


def block(name: str, value: object) -> Markup:
    """An element that holds a packed value as a JSON text; no browser runs it.

    Args:
        name: the element's id.
        value: what it holds.
    """
    element = '<script type="application/json" id="{}">"{}"</script>\n'
    return Markup(element).format(name, packed(value))  # noqa: S704 - a literal, filled in escaped
