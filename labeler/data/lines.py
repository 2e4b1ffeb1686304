"""Lines of files, and the JSON objects in them; every error names file, line and remedy."""

from __future__ import annotations

import contextlib
import gzip
import json
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

from labeler.errors import BadRow, UsageError, kind_of

STDIO = "-"
"""Stands for standard input or output in place of a file name."""

_BOM = b"\xef\xbb\xbf"
_GZIP = b"\x1f\x8b"
_BUFFER = 1 << 18
"""Bytes that are read of a file at once: lines are longer than what Python takes by itself."""


class Line(NamedTuple):
    """One line of a file, not yet understood."""

    where: str
    """``FILE:LINE``, counted from 1."""
    content: bytes


def read_lines(path: str | Path) -> Iterator[Line]:
    """Read the non-blank lines of a file, packed by gzip or not, or of standard input (``-``).

    A name with a scheme, such as ``s3://bucket/rows.jsonl``, is opened through fsspec.

    Raises:
        UsageError: the file cannot be read.
    """
    name = str(path)
    with cannot_read(name), open_bytes(name) as file:
        for number, content in enumerate(file, start=1):
            line = content.removeprefix(_BOM) if number == 1 else content
            if line and not line.isspace():
                yield Line(f"{name}:{number}", line)


@contextlib.contextmanager
def cannot_read(name: str) -> Iterator[None]:
    """Say of a file that cannot be read which one it is.

    Raises:
        UsageError: in place of what the system or gzip raised.
    """
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:
        raise UsageError(f"cannot read {name}: {error}; check the path and the file") from error


def open_bytes(name: str) -> contextlib.AbstractContextManager[IO[bytes]]:
    """Open a file for reading, unpacked on the way where gzip packed it.

    Raises:
        OSError: there is no such file, or it cannot be read.
        UsageError: the name has a scheme, and what that needs is not installed or failed.
    """
    if name == STDIO:
        return contextlib.nullcontext(sys.stdin.buffer)
    file = _open_remote(name) if is_remote(name) else _open_local(name)
    if not file.seekable():
        return file
    packed = file.read(len(_GZIP)) == _GZIP
    file.seek(0)
    return _unpacked(file) if packed else file


def is_remote(name: str) -> bool:
    """Whether a name has a scheme, as ``s3://bucket/rows.jsonl`` has."""
    return "://" in name


@contextlib.contextmanager
def _unpacked(file: IO[bytes]) -> Iterator[IO[bytes]]:
    with file, gzip.GzipFile(fileobj=file) as unpacked:
        yield unpacked  # type: ignore[misc] # what a reader of bytes needs of IO, it has


def _open_local(name: str) -> IO[bytes]:
    return Path(name).open("rb", buffering=_BUFFER)


def _open_remote(name: str) -> IO[bytes]:
    try:
        import fsspec  # noqa: PLC0415 - installed by those who read from afar
    except ImportError as error:
        raise UsageError(
            f"{name} has a scheme, and fsspec is not installed: "
            "pip install 'rag-labeler[remote]', or copy the file here"
        ) from error
    try:
        opened: IO[bytes] = fsspec.open(name, "rb").open()
    except Exception as error:  # each backend has errors of its own
        raise UsageError(
            f"cannot read {name}: {type(error).__name__}: {error}; check the address, and that "
            "what its scheme needs is installed"
        ) from error
    return opened


def is_packed(path: str | Path) -> bool:
    """Whether a file begins as gzip's do.

    Raises:
        OSError: it cannot be read.
    """
    with Path(path).open("rb") as file:
        return file.read(len(_GZIP)) == _GZIP


_FORM = "write one JSON object a line (no CSV, no array over several lines)"


def parse_object(line: Line, form: str = _FORM) -> dict[str, Any]:
    """Read a line as one JSON object.

    Args:
        line: the line.
        form: what to write instead, for errors.

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
            f"{line.where}: not JSON: {error}; {form}",
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
