"""Rows in and outcomes in and out, as JSON Lines; every error names file, line and remedy."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple

from pydantic import ValidationError

from labeler.errors import BadRow, UsageError
from labeler.example import Example
from labeler.record import OUTCOME, LabelFailure, Outcome
from labeler.signature import canonical_json, digest

STDIO = "-"
"""Stands for standard input or output in place of a file name."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_BOM = b"\xef\xbb\xbf"
_TEXTS = ("question", "response")
_KNOWN = frozenset(Example.model_fields) - {"metadata"}


class Line(NamedTuple):
    """One line of a file, not yet understood."""

    where: str
    """``FILE:LINE``, counted from 1."""
    content: bytes


def read_lines(path: str | Path) -> Iterator[Line]:
    """Read the non-blank lines of a file, a ``.gz`` file, or standard input (``-``).

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
    if name.endswith(".gz"):
        return gzip.open(name, "rb")
    return Path(name).open("rb")


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
    except (ValueError, RecursionError) as error:
        raise BadRow(
            f"{line.where}: not JSON: {error}; write one JSON object a line", reason="invalid_json"
        ) from error
    if not isinstance(value, dict):
        raise BadRow(
            f"{line.where}: a JSON {type(value).__name__}, not an object; write one object a line",
            reason="invalid_json",
        )
    return value


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


class Row(NamedTuple):
    """One input row: an example, or the failure that takes its place."""

    where: str
    """``FILE:LINE``, or ``row N`` for rows that come from Python."""
    content: Example | LabelFailure


class RowFile:
    """The rows of a JSON Lines file; iterating again reads the file again.

    Standard input can be read once only, so its lines are kept in memory.

    Args:
        paths: files, read one after the other.
        id_from: columns that together name a row, joined by ``/``; by default the column ``id``.
    """

    def __init__(self, *paths: str | Path, id_from: Sequence[str] = ()) -> None:
        self._paths = paths
        self._id_from = id_from
        self._kept = {path: list(read_lines(path)) for path in paths if str(path) == STDIO}

    def __iter__(self) -> Iterator[Row]:
        """Each row in turn; a line that is no example becomes a failure in its place."""
        for path in self._paths:
            for line in self._kept.get(path) or read_lines(path):
                yield _row(line.where, partial(self._example, line))

    def _example(self, line: Line) -> Example:
        row = parse_object(line)
        if self._id_from:
            row["id"] = joined_id(row, self._id_from, line.where)
        return to_example(row, line.where)


@dataclass(frozen=True)
class RowSequence:
    """Rows given from Python: examples, or mappings with the same fields."""

    rows: Sequence[Example | Mapping[str, Any]]

    def __iter__(self) -> Iterator[Row]:
        """Each row in turn; a mapping that is no example becomes a failure in its place."""
        for number, row in enumerate(self.rows, start=1):
            where = f"row {number}"
            fields = row.model_dump() if isinstance(row, Example) else row
            yield _row(where, partial(to_example, fields, where))


Rows = RowFile | RowSequence
"""Rows that can be read more than once."""


def _row(where: str, make: Callable[[], Example]) -> Row:
    try:
        return Row(where, make())
    except BadRow as error:
        return Row(where, LabelFailure(id=where, reason=error.reason, message=str(error)))


def distinct(rows: Iterable[Row]) -> Iterator[Row]:
    """Pass on each row once; a row that repeats an earlier one in every field is left out.

    Raises:
        UsageError: two rows share an id and differ in content.
    """
    seen: dict[str, tuple[str, str]] = {}
    for row in rows:
        if isinstance(row.content, Example):
            content = digest(row.content.model_dump(mode="json"))
            first = seen.setdefault(row.content.id, (row.where, content))
            if first[1] != content:
                raise UsageError(
                    f"{row.where}: id {row.content.id!r} stands already at {first[0]} with other "
                    "content; ids name records, so give each row its own"
                )
            if first[0] != row.where:
                continue
        yield row


def joined_id(row: Mapping[str, Any], columns: Sequence[str], where: str) -> str:
    """Name a row by several columns: ``("set", "id")`` → ``lamps/17``.

    Raises:
        BadRow: a column is missing, or is no text or whole number.
    """
    parts = [row.get(column) for column in columns]
    for column, part in zip(columns, parts, strict=True):
        if isinstance(part, bool) or not isinstance(part, str | int) or part == "":
            raise BadRow(
                f"{where}: column {column!r} is to be part of the id and is {part!r:.40}; "
                "it must be a text or a whole number",
                reason="missing_field" if part is None else "wrong_type",
            )
    return "/".join(map(str, parts))


def to_example(row: Mapping[str, Any], where: str) -> Example:
    """Make an example of a row.

    Required: ``question`` and ``response`` (texts), ``documents`` (a list of texts). Optional:
    ``id``, ``reference``, ``documents_sentences`` with ``response_sentences``, ``metadata``; every
    other column is kept as metadata. A row without an id is named by the digest of its content.

    Raises:
        BadRow: a field is missing or of the wrong type, or holds a lone surrogate.
    """
    fields = {name: row[name] for name in _KNOWN & row.keys() if row[name] is not None}
    where = f"{where} ({fields['id']!r})" if "id" in fields else where
    for name in _TEXTS:
        _require_text(fields, name, where)
    fields["documents"] = _documents(fields, where)
    if "reference" in fields:
        _require_text(fields, "reference", where)
    for name in ("documents_sentences", "response_sentences"):
        if name in fields:
            fields[name] = _given(fields[name], name, where)
    _refuse_surrogates(fields, where)
    fields["id"] = _id(fields, where)
    fields["metadata"] = _metadata(row, where)
    return Example(**fields)


def _require_text(fields: Mapping[str, Any], name: str, where: str) -> None:
    if name not in fields:
        raise BadRow(
            f"{where}: no {name!r}; a row needs question, documents and response; "
            f"it has: {', '.join(sorted(fields)) or 'none of them'}",
            reason="missing_field",
        )
    if not isinstance(fields[name], str):
        got = type(fields[name]).__name__
        raise BadRow(f"{where}: {name!r} must be a text, got {got}", reason="wrong_type")


def _documents(fields: Mapping[str, Any], where: str) -> tuple[str, ...]:
    documents = fields.get("documents")
    if documents is None:
        raise BadRow(
            f"{where}: no 'documents'; give the retrieved documents as a list of texts",
            reason="missing_field",
        )
    if not isinstance(documents, list | tuple):
        got = type(documents).__name__
        raise BadRow(
            f"{where}: 'documents' must be a list of texts, got {got}", reason="wrong_type"
        )
    for index, document in enumerate(documents):
        if not isinstance(document, str):
            got = type(document).__name__
            raise BadRow(
                f"{where}: documents[{index}] must be a text, got {got}", reason="wrong_type"
            )
    return tuple(documents)


def _given(value: object, name: str, where: str) -> object:
    """Read given sentences: texts, or [key, text] pairs as RAGBench has them."""
    if not isinstance(value, list | tuple):
        raise BadRow(f"{where}: {name!r} must be a list", reason="wrong_type")
    if name == "documents_sentences":
        return tuple(_texts(part, f"{where}: {name}[{i}]") for i, part in enumerate(value))
    return _texts(value, f"{where}: {name}")


def _texts(value: object, where: str) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise BadRow(f"{where} must be a list of sentences", reason="wrong_type")
    return tuple(_text_of(part, where) for part in value)


def _text_of(part: object, where: str) -> str:
    match part:
        case str(text) | [str(), str(text)]:
            return text
        case _:
            raise BadRow(f"{where} must hold texts or [key, text] pairs", reason="wrong_type")


def _refuse_surrogates(fields: Mapping[str, Any], where: str) -> None:
    for name, value in fields.items():
        for text in _strings(value):
            match = _SURROGATE.search(text)
            if match:
                raise BadRow(
                    f"{where}: {name!r} has a lone surrogate U+{ord(match[0]):04X} at character "
                    f"{match.start()}; it cannot be written as UTF-8: mend the text at its source",
                    reason="lone_surrogate",
                )


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _strings(part)
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from _strings(key)
            yield from _strings(part)


def _id(fields: Mapping[str, Any], where: str) -> str:
    given = fields.get("id")
    if given is None:
        return "sha256-" + digest({k: v for k, v in fields.items() if k != "id"})[:16]
    if isinstance(given, bool) or not isinstance(given, str | int):
        raise BadRow(f"{where}: 'id' must be a text or a whole number", reason="wrong_type")
    if given == "":
        raise BadRow(f"{where}: 'id' is empty; leave it out to have one made", reason="wrong_type")
    return str(given)


def _metadata(row: Mapping[str, Any], where: str) -> dict[str, Any]:
    own = row.get("metadata")
    if own is not None and not isinstance(own, dict):
        raise BadRow(f"{where}: 'metadata' must be an object", reason="wrong_type")
    extra = {name: value for name, value in row.items() if name not in Example.model_fields}
    metadata = {**extra, **(own or {})}
    _refuse_surrogates({"metadata": metadata}, where)
    try:
        canonical_json(metadata)
    except (TypeError, ValueError) as error:
        raise BadRow(
            f"{where}: its other columns cannot be written as JSON: {error}", reason="wrong_type"
        ) from error
    return metadata


def survey(rows: Iterable[Row]) -> int:
    """Read all rows once, before any spend, and count the distinct ones.

    Raises:
        UsageError: the rows cannot be read, or two of them share an id and differ in content.
    """
    return sum(1 for _ in distinct(rows))


def read_outcomes(path: str | Path) -> Iterator[Outcome]:
    """Read label records and failures from JSON Lines.

    Raises:
        UsageError: a line is neither; the message names file, line and the fields at fault.
    """
    for line in read_lines(path):
        try:
            yield OUTCOME.validate_json(line.content)
        except ValidationError as error:
            raise UsageError(
                f"{line.where}: not a label record: {_faults(error)}; "
                "label files are written by 'labeler label' and 'labeler import'"
            ) from error


def _faults(error: ValidationError) -> str:
    """The first few faults of a value, without the value itself."""
    faults = error.errors(include_url=False, include_input=False, include_context=False)
    shown = [f"{'.'.join(map(str, f['loc'])) or 'line'}: {f['msg']}" for f in faults[:3]]
    return "; ".join(shown)


def to_line(outcome: Outcome) -> str:
    """Write an outcome as one line of JSON, without the line break."""
    return outcome.model_dump_json()


def write_outcomes(outcomes: Iterable[Outcome], path: str | Path) -> Iterator[Outcome]:
    """Write outcomes as JSON Lines while passing them on.

    A file appears under its name only when it is whole; until then its lines stand in a
    temporary file beside it. ``-`` writes to standard output, line by line.
    """
    if str(path) == STDIO:
        for outcome in outcomes:
            sys.stdout.write(to_line(outcome) + "\n")
            yield outcome
        sys.stdout.flush()
        return
    with replaced(Path(path)) as file:
        for outcome in outcomes:
            file.write(to_line(outcome) + "\n")
            yield outcome


@contextlib.contextmanager
def replaced(path: Path) -> Iterator[IO[str]]:
    """Open a file for writing that takes the path's place only when all went well.

    What is no ordinary file, such as a pipe or ``/dev/null``, is written to directly.

    Raises:
        UsageError: the folder does not exist or cannot be written.
    """
    direct = path.exists() and not path.is_file()
    target = path if direct else path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        file = target.open("w", encoding="utf-8", newline="\n")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}; check the folder") from error
    try:
        with file:
            yield file
        if not direct:
            target.replace(path)
    except BaseException:
        if not direct:
            target.unlink(missing_ok=True)
        raise
