"""Lines of files, and the JSON objects in them; every error names file, line and remedy."""

from __future__ import annotations

import contextlib
import gzip
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from labeler.errors import BadRow, UsageError, kind_of

STDIO = "-"
"""Stands for standard input or output in place of a file name."""

_BOM = b"\xef\xbb\xbf"
_GZIP = b"\x1f\x8b"


class Line(NamedTuple):
    """One line of a file, not yet understood."""

    where: str
    """``FILE:LINE``, counted from 1."""
    content: bytes


def read_lines(path: str | Path) -> Iterator[Line]:
    """Read the non-blank lines of a file, packed by gzip or not, or of standard input (``-``).

    Raises:
        UsageError: the file cannot be read.
    """
    name = str(path)
    try:
        with _open_bytes(name) as file:
            for number, content in enumerate(file, start=1):
                line = content.removeprefix(_BOM) if number == 1 else content
                if line.strip():
                    yield Line(f"{name}:{number}", line)
    except (OSError, EOFError) as error:
        raise UsageError(f"cannot read {name}: {error}; check the path and the file") from error


def _open_bytes(name: str) -> contextlib.AbstractContextManager[Iterable[bytes]]:
    if name == STDIO:
        return contextlib.nullcontext(sys.stdin.buffer)
    if Path(name).is_file() and is_packed(name):
        return gzip.open(name, "rb")
    return Path(name).open("rb")


def is_packed(path: str | Path) -> bool:
    """Whether a file begins as gzip's do.

    Raises:
        OSError: it cannot be read.
    """
    with Path(path).open("rb") as file:
        return file.read(len(_GZIP)) == _GZIP


def parse_object(line: Line) -> dict[str, Any]:
    """Read a line as one JSON object.

    Raises:
        BadRow: the line is not UTF-8, not JSON, or not an object.
    """
    try:
        value = json.loads(line.content.decode("utf-8"), parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        raise BadRow(
            f"{line.where}: byte {error.start} ({error.object[error.start]:#04x}) is not UTF-8; "
            "convert the file to UTF-8",
            reason="not_utf8",
        ) from error
    except _Constant as error:
        raise BadRow(
            f"{line.where}: {error} is not JSON; write null for NaN and Infinity",
            reason="invalid_json",
        ) from error
    except (ValueError, RecursionError) as error:
        raise BadRow(
            f"{line.where}: not JSON: {error}; write one JSON object a line (no CSV, no array over "
            "several lines)",
            reason="invalid_json",
        ) from error
    if not isinstance(value, dict):
        raise BadRow(
            f"{line.where}: {kind_of(value)}, not a JSON object; write one object a line",
            reason="invalid_json",
        )
    return value


class _Constant(Exception):
    """A number that Python writes and JSON does not know."""


def _no_constant(name: str) -> object:
    raise _Constant(name)
