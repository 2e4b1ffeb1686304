"""Columns under other names: which of a row's columns is the question, the documents, and so on.

A column is named by itself, or by a path into it: ``retrieval.results[].text`` is the ``text`` of
every one of ``results``, a list in the object ``retrieval``; ``choices[0].text`` is that of the
first. Of a list in a list, as in ``results[].parts[].text``, all parts make one list. A column
whose own name reads like a path comes before what it would lead to.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from labeler.data.parsing import joined_id
from labeler.errors import BadRow, UsageError, kind_of
from labeler.sentences.example import Example

FIELDS = tuple(Example.model_fields)
_REQUIRED = ("question", "documents", "response")
_SEVERAL = ("id", "documents")
"""Fields that may be put together of several columns."""
_LISTS = ("documents", "documents_sentences", "response_sentences")
_SHOWN = 12
"""Columns that an error names at most."""

_NAME = r"[^.\[\],]+"
_INDEX = r"\[\d{0,9}\]"
_PATH = re.compile(rf"{_NAME}(?:{_INDEX})*(?:\.{_NAME}(?:{_INDEX})*)*")
_STEP = re.compile(rf"{_NAME}|{_INDEX}")
_NUMBERED = re.compile(r"documents_(\d{1,6})")


class Each:
    """The step of a path that goes into every part of a list."""


_Step = str | int | type[Each]


class _Absent(Exception):
    """A path leads nowhere in a row; says what is there instead."""


class _Gone:
    """What is left of a value that was moved as a whole."""


_FORM = "write names, such as question, or paths, such as results[].text or choices[0].text"


@dataclass(frozen=True)
class ColumnPath:
    """Where a value stands in a row."""

    text: str
    """As it was written."""
    steps: tuple[_Step, ...]

    @classmethod
    def of(cls, text: str) -> ColumnPath:
        """Understand a path.

        Raises:
            UsageError: it is not written like one.
        """
        if not _PATH.fullmatch(text):
            raise UsageError(f"column {text!r:.80} is neither a name nor a path: {_FORM}")
        return cls(text, tuple(_step(part) for part in _STEP.findall(text)))

    def find(self, row: Mapping[str, Any]) -> object:
        """The value that stands there; ``None`` where it is null.

        Raises:
            _Absent: nothing does.
        """
        if self.text in row:
            return row[self.text]
        return _follow(row, self.steps, "")

    def fault(self, row: Mapping[str, Any]) -> str:
        """Why it leads nowhere in a row; empty where it leads somewhere."""
        try:
            self.find(row)
        except _Absent as error:
            return str(error)
        return ""

    def without(self, row: dict[str, Any]) -> dict[str, Any]:
        """The row without what stands there; what stands beside it stays."""
        if self.text in row:
            return {name: value for name, value in row.items() if name != self.text}
        left = _left(row, self.steps)
        return left if isinstance(left, dict) else {}


def _step(part: str) -> _Step:
    if not part.startswith("["):
        return part
    return int(part[1:-1]) if part[1:-1] else Each


def _follow(value: Any, steps: Sequence[_Step], where: str) -> object:  # noqa: ANN401 - any JSON
    for number, step in enumerate(steps):
        inner = _unpacked(value)
        if isinstance(step, str):
            value = _member(inner, step, where)
            where = f"{where}.{step}" if where else step
        elif not isinstance(inner, list | tuple):
            raise _Absent(f"{where!r} is {kind_of(inner)}, not a list")
        elif isinstance(step, int):
            if step >= len(inner):
                raise _Absent(f"{where!r} has {len(inner)} entries, no [{step}]")
            value, where = inner[step], f"{where}[{step}]"
        else:
            rest = steps[number + 1 :]
            found = [_follow(part, rest, f"{where}[{i}]") for i, part in enumerate(inner)]
            return _flat(found) if Each in rest else found
    return value


def _flat(lists: Iterable[Any]) -> list[object]:
    """One list of what several hold, for paths that go into a list more than once."""
    return [part for one in lists for part in one]


def _member(value: object, name: str, where: str) -> object:
    """A field of an object of JSON, or of one of Python, such as a document of a retriever."""
    shown = repr(where) if where else "the row"
    if isinstance(value, Mapping):
        if name in value:
            return value[name]
        raise _Absent(f"{shown} has no {name!r}{_near(name, value)}")
    if value is None or isinstance(value, str | int | float | list | tuple | bytes):
        raise _Absent(f"{shown} is {kind_of(value)}, not an object with {name!r}")
    if name.startswith("_") or not hasattr(value, name):
        raise _Absent(f"{shown} has no {name!r}")
    found: object = getattr(value, name)
    return found


def _near(name: str, have: Iterable[object]) -> str:
    names = [str(one) for one in have]
    close = difflib.get_close_matches(name, names, n=2)
    hint = f"; did you mean {' or '.join(map(repr, close))}?" if close else ""
    shown = ", ".join(f"{one:.40}" for one in names[:_SHOWN]) or "nothing"
    return f"{hint or ';'} it has: {shown}{', …' if len(names) > _SHOWN else ''}"


class _Text(str):
    """A cell of a format of texts, which may hold JSON."""

    __slots__ = ()


def cells(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of a format of texts, such that paths go into the JSON in its cells."""
    return {name: _Text(value) for name, value in row.items()}


def _unpacked(value: object) -> object:
    """What a step goes into; a cell of texts is read as JSON there."""
    if not isinstance(value, _Text):
        return value
    try:
        unpacked: object = json.loads(value)
    except (ValueError, RecursionError) as error:
        raise _Absent("the cell is no JSON") from error
    return unpacked


def _left(value: object, steps: Sequence[_Step]) -> object:
    """What remains of a value when that at the end of the path is taken out of it."""
    if not steps:
        return _Gone
    value = _unpacked(value)
    step, rest = steps[0], steps[1:]
    if isinstance(value, Mapping) and isinstance(step, str) and step in value:
        inner = _left(value[step], rest)
        left = {name: part for name, part in value.items() if name != step}
        if inner is not _Gone:
            left[step] = inner
        return left or _Gone
    if isinstance(value, list | tuple) and not isinstance(step, str):
        parts = [
            _left(part, rest) if step is Each or step == number else part
            for number, part in enumerate(value)
        ]
        kept = [None if part is _Gone else part for part in parts]
        return kept if any(part is not None for part in kept) else _Gone
    return _Gone if not isinstance(value, Mapping) else value


@dataclass(frozen=True)
class Choice:
    """One way to find a field: a column, or several that are put together."""

    paths: tuple[ColumnPath, ...]
    gathers: bool = False
    """Whether texts are put together to a list."""

    def __str__(self) -> str:
        return ",".join(path.text for path in self.paths)


def choice_of(field: str, columns: str | Sequence[str]) -> Choice:
    """Understand what a field is to be read from.

    Args:
        field: the field.
        columns: a column, or several; in one text they are parted by commas.

    Raises:
        UsageError: there is no such field, or it cannot be put together of several columns.
    """
    if field not in FIELDS:
        near = difflib.get_close_matches(field, FIELDS, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise UsageError(f"rows have no field {field!r:.40}{hint} have: {', '.join(FIELDS)}")
    several = columns.split(",") if isinstance(columns, str) else list(columns)
    names = [name.strip() for name in several if name.strip()]
    if not names:
        raise UsageError(f"{field!r} is read from no column: {_FORM}")
    gathers = len(several) > 1
    if gathers and field not in _SEVERAL:
        raise UsageError(
            f"{field!r} is read from {len(several)} columns; only {' and '.join(_SEVERAL)} can be"
        )
    return Choice(tuple(map(ColumnPath.of, names)), gathers)


@dataclass(frozen=True)
class Columns:
    """Which column each field of an example is read from.

    A column that is read is moved: what else stands in it, such as the scores beside the texts of
    retrieved documents, stays among the row's other columns. A column that already has a field's
    name, where that field is read from another one, stays there too.
    """

    choices: Mapping[str, tuple[Choice, ...]]
    """For each field the ways to find it; the first that leads somewhere counts."""
    named: frozenset[str] = frozenset()
    """Fields whose columns the user named: each of them must be there in some row."""

    def apply(self, row: Mapping[str, Any], where: str) -> dict[str, Any]:
        """Give a row's columns the names of fields.

        Raises:
            BadRow: a field that each row needs is in none of its columns.
        """
        fields: dict[str, Any] = {}
        rest = dict(row)
        of_id: list[str] = []
        for field, choices in self.choices.items():
            value, paths = _first_found(field, choices, row, where)
            if value is None:
                continue
            fields[field] = value
            if field == "id":  # what names a row may also be what rows are grouped by
                of_id = [path.text for path in paths]
                continue
            for path in paths:
                rest = path.without(rest)
        return _joined(fields, rest, of_id)

    def with_id(self, row: Mapping[str, Any], where: str) -> Mapping[str, Any]:
        """The row with its name alone, where it can be read.

        Raises:
            BadRow: a part of the name is neither text nor a whole number.
        """
        value, _ = _first_found("id", self.choices.get("id", ()), row, where)
        return row if value is None else {**row, "id": value}

    def expected(self) -> Iterator[tuple[ColumnPath, str]]:
        """The columns that the user named, each with its field."""
        for field, choices in self.choices.items():
            for choice in choices if field in self.named else ():
                yield from ((path, field) for path in choice.paths)

    def fits(self, row: Mapping[str, Any]) -> bool:
        """Whether a row has a column for each field that it needs."""
        try:
            self.apply(row, "")
        except BadRow:
            return False
        return True


def _first_found(
    field: str, choices: Sequence[Choice], row: Mapping[str, Any], where: str
) -> tuple[object, Sequence[ColumnPath]]:
    """What the first choice that leads somewhere finds, and in which columns.

    Raises:
        BadRow: none does, and each row needs the field.
    """
    complaint = ""
    for choice in choices:
        try:
            value, paths = _read(field, choice, row, where)
        except _Absent as error:
            complaint = complaint or str(error)
            continue
        if value is not None:
            return value, paths
    if field not in _REQUIRED:
        return None, ()
    read_from = " or ".join(repr(str(choice)) for choice in choices)
    raise BadRow(
        f"{where}: no {field!r}, which is read from {read_from}; {complaint or 'that is null'}",
        reason="missing_field",
    )


def _read(
    field: str, choice: Choice, row: Mapping[str, Any], where: str
) -> tuple[object, list[ColumnPath]]:
    """What a choice finds, and the columns that it found something in."""
    if field == "id" and choice.gathers:
        parts = {path.text: path.find(row) for path in choice.paths}
        return joined_id(parts, list(parts), where), list(choice.paths)
    if not choice.gathers:
        return choice.paths[0].find(row), list(choice.paths)
    there: list[ColumnPath] = []
    gathered: list[object] = []
    complaint: _Absent | None = None
    for path in choice.paths:
        try:
            value = path.find(row)
        except _Absent as error:
            complaint = complaint or error
            continue
        there.append(path)
        if isinstance(value, list | tuple):
            gathered += value
        elif value is not None and not (isinstance(value, _Text) and value == ""):
            gathered.append(_plain_text(value))
    if complaint and not there:
        raise complaint
    return gathered, there


def _joined(
    fields: Mapping[str, Any], rest: Mapping[str, Any], of_id: Sequence[str]
) -> dict[str, Any]:
    """The fields, with the row's other columns; one that a field pushed aside is metadata."""
    others = {name: value for name, value in rest.items() if name not in fields}
    aside = {
        name: _plain_text(rest[name])
        for name in fields
        if name not in of_id and rest.get(name) not in (None, "")
    }
    if not aside:
        return {**others, **fields}
    try:
        own = _unpacked(others.get("metadata"))
    except _Absent:
        own = None
    kept = own if isinstance(own, Mapping) else {}
    return {**others, **fields, "metadata": {**aside, **kept}}


def _plain_text(value: object) -> object:
    return str(value) if isinstance(value, _Text) else value


def columns_of(
    given: Mapping[str, str | Sequence[str]], base: Mapping[str, Sequence[str]] | None = None
) -> Columns:
    """Columns as the user names them, on top of those of a preset.

    Args:
        given: for each field its column; several, or several in one text parted by commas, are put
            together.
        base: for each field the columns that it may be read from, one after the other.

    Raises:
        UsageError: there is no such field, or a column is neither a name nor a path.
    """
    choices = {
        field: tuple(choice_of(field, one) for one in ways) for field, ways in (base or {}).items()
    }
    own = {field: (choice_of(field, columns),) for field, columns in given.items()}
    return Columns({**choices, **own}, frozenset(own))


def fields_of_texts(row: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Read what a row of texts holds as JSON: lists, and the object of ``metadata``.

    An empty cell is a column that the row does not have, but an empty question or response.
    Columns ``documents_0``, ``documents_1``, … are the documents where no column ``documents`` is.

    Raises:
        BadRow: a cell that is to be JSON is none.
    """
    fields: dict[str, Any] = {
        name: str(value) if isinstance(value, str) else value
        for name, value in row.items()
        if value != "" or name in ("question", "response")
    }
    numbered = sorted((int(m[1]), name) for name in row if (m := _NUMBERED.fullmatch(name)))
    if numbered and "documents" not in row:
        fields["documents"] = [fields.pop(name) for _, name in numbered if name in fields]
    for name in (*_LISTS, "metadata"):
        if isinstance(fields.get(name), str):
            fields[name] = _json_cell(fields[name], name, where)
    return fields


_CELLS: dict[str, tuple[Callable[[object], bool], str]] = {
    "metadata": (lambda value: isinstance(value, dict), "a JSON object"),
    "documents": (
        lambda value: isinstance(value, list),
        'a JSON array of texts, such as ["first"]; or give columns documents_0, documents_1, …',
    ),
}
_OTHER_CELL: tuple[Callable[[object], bool], str] = (
    lambda value: isinstance(value, list),
    "a JSON array",
)


def _json_cell(cell: str, name: str, where: str) -> object:
    fits, form = _CELLS.get(name, _OTHER_CELL)
    try:
        value: object = json.loads(cell, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        value = None
    if not fits(value):
        raise BadRow(f"{where}: the cell of {name!r} must hold {form}", reason="wrong_type")
    return value


def _no_constant(name: str) -> object:
    raise ValueError(name)
