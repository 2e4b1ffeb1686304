"""The checksum of a line of a label file, as its last field.

It finds lines that were damaged, or changed by hand or by another program, after they were
written: a line whose checksum matches was checked then, and is not checked again. It is no
protection against forgery, because anybody can write a matching one.
"""

from __future__ import annotations

import json
import re
from hashlib import sha256

_DIGITS = 32
"""Hexadecimal digits: half of a SHA-256."""
_FIELD = b',"checksum":"%b"}'
_LENGTH = len(_FIELD % (b"0" * _DIGITS))
_AT_END = re.compile(rb',\s*"checksum"\s*:\s*"[^"\\]*"\s*\}\s*\Z')


def checksum(text: bytes) -> bytes:
    """Return the checksum of a JSON object without its own: 32 hexadecimal digits."""
    return sha256(text).hexdigest()[:_DIGITS].encode()


def with_checksum(text: bytes) -> bytes:
    """Append the checksum to a JSON object as its last field."""
    return text[:-1] + _FIELD % checksum(text)


def without_checksum(line: bytes) -> tuple[bytes, bool | None]:
    """Remove the checksum from a JSON object.

    Args:
        line: the object, with or without one, and a line break.

    Returns:
        The object without its checksum, and whether the checksum matches; ``None`` if it has none.
    """
    line = line.rstrip(b"\r\n")
    text, end = line[:-_LENGTH] + b"}", line[-_LENGTH:]
    if end == _FIELD % checksum(text):
        return text, True
    if b'"checksum"' not in line:
        return line, None
    if found := _AT_END.search(line):
        return line[: found.start()] + b"}", False
    return _without_field(line)


def _without_field(line: bytes) -> tuple[bytes, bool | None]:
    """Remove a checksum that another program moved to another place."""
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return line, None  # its reader describes what is wrong
    if not isinstance(fields, dict) or "checksum" not in fields:
        return line, None
    del fields["checksum"]
    return json.dumps(fields, ensure_ascii=False).encode("utf-8", "surrogatepass"), False
