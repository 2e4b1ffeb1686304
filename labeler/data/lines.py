"""Files as lines and JSON objects: gzip, remote files, checksums, replacing complete files.

Every error names file, line and remedy.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import re
import shutil
import sys
import zlib
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, AnyStr, NamedTuple

from labeler.errors import BadRow, UsageError, kind_of, path_in
from labeler.version import install_command

STDIO = "-"
"""Stands for standard input or output in place of a file name."""
BOM = b"\xef\xbb\xbf"
"""The byte order mark of UTF-8, skipped at the beginning of a file, or of one appended to it."""
PATTERN = re.compile(r"[*?\[]")
"""Finds out whether a name is a pattern, such as ``labels/*.parquet``."""
_GZIP = b"\x1f\x8b"
_BUFFER = 1 << 18
"""Bytes read from a file at once; lines are longer than Python's default buffer."""


LONGEST_LINE = 1 << 26
"""Bytes of a line at most, decompressed."""
_LONGEST_WIDE_LINE = LONGEST_LINE // 4
"""The same with a character beyond U+FFFF: its text takes four bytes for every character."""
MOST_CONTAINERS, _MOST_VALUES = 200_000, 1_000_000
"""Brackets and braces that open, and commas, in a JSON text at most. Each becomes an object of 60
bytes or more, so that a text of megabytes could become gigabytes."""


class Line(NamedTuple):
    """One unparsed line of a file."""

    where: str
    """``FILE:LINE``, counted from 1."""
    content: bytes
    """Its bytes; of one over the limit, as much as shows that it is over."""


def count_lines(name: str) -> int:
    """Return the number of lines of a file that are not blank."""
    with file_errors(name), open_bytes(name) as file:
        return sum(not line.isspace() for line in bounded_lines(file))


def read_lines(path: str | Path) -> Iterator[Line]:
    """Read the non-blank lines of a file, gzipped or not, or of standard input (``-``).

    A name with a scheme, such as ``s3://bucket/rows.jsonl``, is opened through fsspec.

    Raises:
        UsageError: the file cannot be read.
    """
    name = str(path)
    with file_errors(name), open_bytes(name) as file:
        for number, content in enumerate(bounded_lines(file), start=1):
            line = content.removeprefix(BOM)
            if len(line) > LONGEST_LINE or (line and not line.isspace()):
                yield Line(f"{name}:{number}", line)


def bounded_lines(file: IO[bytes]) -> Iterator[bytes]:
    """Read the lines of a file; of one over the limit, as much as shows that it is over."""
    while piece := file.readline(_BUFFER):
        yield piece if piece.endswith(b"\n") else _whole_line(piece, file)


def _whole_line(piece: bytes, file: IO[bytes]) -> bytes:
    line = bytearray(piece)  # one growing piece of memory: many would stay with the process
    while not piece.endswith(b"\n") and (piece := file.readline(_BUFFER)):
        if len(line) <= LONGEST_LINE:
            line += piece
    return bytes(line)


def pieces(file: IO[bytes]) -> Iterator[bytes]:
    """Read the rest of a file in pieces."""
    return iter(lambda: file.read(_BUFFER), b"")


@contextlib.contextmanager
def file_errors(name: str) -> Iterator[None]:
    """Turn errors of the system and of gzip into a usage error that names the file.

    Raises:
        UsageError: instead of the original exception.
    """
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:
        raise unreadable(name, error) from error


def unreadable(name: str, error: Exception) -> UsageError:
    """Return the usage error about a file that cannot be read."""
    why = getattr(error, "strerror", None) or error
    return UsageError(f"cannot read {name}: {why}; check the path and the file")


def open_bytes(name: str) -> contextlib.AbstractContextManager[IO[bytes]]:
    """Open a file for reading; a gzipped one is decompressed.

    Raises:
        OSError: the file does not exist or is not readable.
        UsageError: the name has a scheme, and its backend is not installed or failed.
    """
    if name == STDIO:
        return contextlib.nullcontext(sys.stdin.buffer)
    file = _opened(name)
    if not file.seekable():
        return file
    gzipped = file.read(len(_GZIP)) == _GZIP
    file.seek(0)
    return _decompressed(file) if gzipped else file


def is_remote(name: str) -> bool:
    """Return True if a name has a scheme, such as ``s3://bucket/rows.jsonl``."""
    return "://" in name


def _opened(name: str) -> IO[bytes]:
    if not is_remote(name):
        return path_in("the file", name).open("rb", buffering=_BUFFER)
    with _remote(name) as fsspec:
        # Its own files read lines without a limit.
        return io.BufferedReader(fsspec.open(name, "rb").open(), _BUFFER)


@contextlib.contextmanager
def _decompressed(file: IO[bytes]) -> Iterator[IO[bytes]]:
    with file, gzip.GzipFile(fileobj=file) as content:
        yield io.BufferedReader(content, _BUFFER)


def remote_parts(address: str) -> list[str] | None:
    """Return the files of a pattern or the Parquet files of a folder; ``None`` for a single file.

    Raises:
        UsageError: the address cannot be read.
    """
    if address.lower().startswith(("http://", "https://")):
        return None  # the web has no folders, and a question mark begins a query
    with _remote(address) as fsspec:
        files, path = fsspec.core.url_to_fs(address)
        files.invalidate_cache()
        if not PATTERN.search(path):
            if not files.isdir(path):
                return None
            path = f"{path.rstrip('/')}/**/*.parquet"
        return [str(files.unstrip_protocol(one)) for one in sorted(files.glob(path))]


@contextlib.contextmanager
def _remote(name: str) -> Iterator[Any]:
    """Yield fsspec, and turn its errors into a usage error that names the address."""
    try:
        import fsspec  # noqa: PLC0415 - an optional dependency
    except ImportError as error:
        raise UsageError(
            f"{name} has a scheme, and fsspec is not installed: {install_command('remote')}; or "
            "copy the file here"
        ) from error
    try:
        yield fsspec
    except Exception as error:  # each backend has errors of its own
        raise UsageError(
            f"cannot read {name}: {type(error).__name__}: {error}; check the address, and that "
            "what its scheme needs is installed"
        ) from error


def is_gzipped(path: str | Path) -> bool:
    """Return True if a file begins with the magic bytes of gzip.

    Raises:
        OSError: the file is not readable.
    """
    with Path(path).open("rb") as file:
        return file.read(len(_GZIP)) == _GZIP


_HOST = os.environ.get("COMPUTERNAME", "") if sys.platform == "win32" else os.uname().nodename
_MACHINE = f"{zlib.crc32(_HOST.encode()):08x}"
_LEFTOVER = re.compile(rf"\..+\.{_MACHINE}-(\d+)\.partial", re.ASCII)


def partial_suffix() -> str:
    """Return the end of names of temporary files and folders of this process."""
    return f".{_MACHINE}-{os.getpid()}.partial"


def clear_leftovers(folder: Path) -> None:
    """Remove temporary files and folders whose process, on this machine, has ended."""
    with contextlib.suppress(OSError):  # leftovers that cannot be removed harm nobody
        for path in folder.iterdir():
            name = _LEFTOVER.fullmatch(path.name)
            if name is None or _is_alive(int(name[1])):
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def _is_alive(process: int) -> bool:
    if os.name != "posix":
        return True  # asking Windows would end the process
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        pass
    return True


_DATABASE = b"SQLite format 3\0"


def reject_database(path: Path) -> None:
    """Reject to replace a database or its log: a store's paid labels are one.

    Raises:
        UsageError: the path is such a file.
    """
    main = path.parent / path.name.removesuffix("-wal").removesuffix("-shm")
    if main.is_file():
        with contextlib.suppress(OSError), main.open("rb") as file:
            if file.read(len(_DATABASE)) == _DATABASE:
                raise UsageError(f"{path} is a database, such as a store's: name another file")


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path next to a file; it replaces the file only if all went well.

    Removes those that killed processes of this machine left in its folder.

    Raises:
        UsageError: see :func:`reject_database`.
    """
    reject_database(path)
    clear_leftovers(path.parent)
    partial = path.with_name(f".{path.name}{partial_suffix()}")
    try:
        yield partial
        partial.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise


@contextlib.contextmanager
def durable(path: Path) -> Iterator[IO[bytes]]:
    """Open a file to write, and flush it to the disk at the end."""
    with path.open("wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def rewrite_without(path: Path, drops: Callable[[bytes], bool]) -> None:
    """Replace a file of lines durably and atomically by one without some of its lines."""
    with replacing(path) as partial:
        with path.open("rb") as lines, durable(partial) as kept:
            kept.writelines(line for line in lines if not drops(line))
        partial.chmod(path.stat().st_mode)
    flush_directory(path.parent)


def flush_directory(directory: Path) -> None:
    """Make new names in a directory survive a power loss, if the system supports it."""
    with contextlib.suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


LINES = (
    "write one JSON object a line (jq -c . writes each on one), or name the file .csv, .tsv or "
    ".json if it is one"
)
CUT_OFF = "the file ends within this line, so it was cut off: write it again, or remove the line"


def parse_object(line: Line, form: str = LINES, *, is_strict: bool = False) -> dict[str, Any]:
    """Parse a line as one JSON object.

    Args:
        line: the line.
        form: the expected form, for errors.
        is_strict: True to reject NaN and Infinity, which are null otherwise.

    Raises:
        BadRow: the line is over a limit, not UTF-8, not JSON, or not an object.
    """
    check_size(line)
    try:
        value = load_json(line.content.decode("utf-8"), is_strict=is_strict)
    except UnicodeDecodeError as error:
        raise not_utf8(line.where, error) from error
    except (ValueError, RecursionError) as error:
        form = CUT_OFF if form == LINES and is_cut_off(line.content) else form
        is_syntax = isinstance(error, json.JSONDecodeError | RecursionError)
        fault = f"{line.where}: {f'not JSON: {error}; {form}' if is_syntax else error}"
        raise BadRow(fault, reason="invalid_json") from error
    if not isinstance(value, dict):
        form = "write one object a line" if form == LINES else form
        fault = f"{line.where}: {kind_of(value)}, not a JSON object; {form}"
        raise BadRow(fault, reason="invalid_json")
    return value


def is_cut_off(content: bytes) -> bool:
    """Return True if an object without a line break after it lacks its end."""
    text = content.strip()
    is_ended = content.endswith(b"\n") or text.endswith((b"}", b","))
    return text.startswith(b"{") and not is_ended


def check_size(line: Line) -> None:
    """Reject a line that would take much more memory than real rows.

    Raises:
        BadRow: it is too long, or built of too many parts.
    """
    content = line.content
    size = len(content)
    if size > LONGEST_LINE or (size > _LONGEST_WIDE_LINE and _WIDE.search(content)):
        raise BadRow(
            f"{line.where}: the line is too long; at most {LONGEST_LINE >> 20} MB are read, or "
            f"{_LONGEST_WIDE_LINE >> 20} MB with characters beyond U+FFFF: split or shorten it",
            reason="too_long",
        )
    if size <= MOST_CONTAINERS:  # so few bytes hold no more
        return
    if has_too_many_parts(content):
        raise BadRow(
            f"{line.where}: too many parts: at most {MOST_CONTAINERS:,} brackets and braces and "
            f"{_MOST_VALUES:,} commas are read: split it, or leave columns out",
            reason="too_long",
        )


def has_too_many_parts(text: AnyStr) -> bool:
    """Return True if a JSON text would become more objects than real rows have."""
    brace, bracket, comma = ("{", "[", ",") if isinstance(text, str) else (b"{", b"[", b",")
    return text.count(brace) + text.count(bracket) > MOST_CONTAINERS or (
        text.count(comma) > _MOST_VALUES
    )


_WIDE = re.compile(rb"[\xf0-\xf4]|\\u[dD][89abAB]")
"""A character beyond U+FFFF, in UTF-8 or as an escape."""


def not_utf8(where: str, error: UnicodeDecodeError) -> BadRow:
    """Return the error of a line with a byte that is not UTF-8."""
    return BadRow(
        f"{where}: byte {error.start} ({error.object[error.start]:#04x}) is not UTF-8; "
        "convert the file to UTF-8",
        reason="not_utf8",
    )


def load_json(text: str, *, is_strict: bool = False) -> object:
    """Parse JSON; ``NaN`` and ``Infinity``, which Python writes and JSON lacks, become null.

    Args:
        text: the JSON.
        is_strict: True to reject these numbers instead.

    Raises:
        ValueError: the text is not JSON, or an object in it has a duplicate name; readers
            silently pick one of the two.
        RecursionError: it is nested too deeply.
    """
    value: object = (_STRICT_DECODER if is_strict else _DECODER).decode(text)
    return value


def _distinct_names(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        name = next(name for n, (name, _) in enumerate(pairs) if name in dict(pairs[:n]))
        raise ValueError(f"the name {name!r:.80} stands twice in one object; keep one of them")
    return found


def _reject_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON; write null for NaN and Infinity")


_DECODER = json.JSONDecoder(parse_constant=lambda _: None, object_pairs_hook=_distinct_names)
_STRICT_DECODER = json.JSONDecoder(
    parse_constant=_reject_constant, object_pairs_hook=_distinct_names
)


# A checksum finds lines that were damaged, or changed by hand or by another program, after they
# were written: a line whose checksum matches was checked then, and is not checked again. It does
# not protect against forgery, because anybody can write a matching one.
_CHECKSUM_DIGITS = 32
"""Hexadecimal digits: half of a SHA-256."""
_CHECKSUM_FIELD = b',"checksum":"%b"}'
_CHECKSUM_LENGTH = len(_CHECKSUM_FIELD % (b"0" * _CHECKSUM_DIGITS))
_CHECKSUM_AT_END = re.compile(rb',\s*"checksum"\s*:\s*"[^"\\]*"\s*\}\s*\Z')


def checksum(text: bytes) -> bytes:
    """Return the checksum of a JSON object without its own: 32 hexadecimal digits."""
    return sha256(text).hexdigest()[:_CHECKSUM_DIGITS].encode()


def with_checksum(text: bytes) -> bytes:
    """Append the checksum to a JSON object as its last field."""
    return text[:-1] + _CHECKSUM_FIELD % checksum(text)


def without_checksum(line: bytes) -> tuple[bytes, bool | None]:
    """Remove the checksum from a JSON object.

    Args:
        line: the object, with or without one, and a line break.

    Returns:
        The object without its checksum, and whether the checksum matches; ``None`` if it has none.
    """
    line = line.rstrip(b"\r\n")
    text, end = line[:-_CHECKSUM_LENGTH] + b"}", line[-_CHECKSUM_LENGTH:]
    if end == _CHECKSUM_FIELD % checksum(text):
        return text, True
    if b'"checksum"' not in line:
        return line, None
    if found := _CHECKSUM_AT_END.search(line):
        return line[: found.start()] + b"}", False
    try:  # perhaps another program moved it to another place
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return line, None  # its reader describes what is wrong
    if not isinstance(fields, dict) or "checksum" not in fields:
        return line, None
    del fields["checksum"]
    return json.dumps(fields, ensure_ascii=False).encode("utf-8", "surrogatepass"), False
