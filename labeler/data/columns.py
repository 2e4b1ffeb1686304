"""The column that each field of an example is read from, and paths into nested columns.

A column is given by its name, or by a path into it: ``retrieval.results[].text`` is the ``text`` of
every element of the list ``results`` in the object ``retrieval``; ``choices[0].text`` is the
``text`` of the first choice. Nested lists, as in ``results[].parts[].text``, are flattened. A
column whose own name reads like a path takes precedence over that path. Paths lead into lists and
objects that are written as text, too. In presets, names are those of any spelling
(``actual_output`` is ``actualOutput`` too), and a path that ends in ``[]`` is a list of objects.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from labeler.catalog import near, snake_case
from labeler.data.documents import flat
from labeler.data.field_values import documents_in, with_metadata, written_or_same
from labeler.data.parsing import REQUIRED, SPLIT_REMEDY, joined_id
from labeler.data.written_values import NotWritten, Unreadable, written_value
from labeler.errors import BadRow, UsageError, kind_of
from labeler.sentences.example import Example

_FIELDS = tuple(Example.model_fields)
_JOINABLE = ("id", "documents")
"""Fields that may be combined from several columns."""
_TEXTS = ("question", "response", "reference")
_SHOWN = 12
"""Most columns that an error lists."""

_NAME = r"[^.\[\],]+"
_INDEX = r"\[\d{0,9}\]"
_PATH = re.compile(rf"{_NAME}(?:{_INDEX})*(?:\.{_NAME}(?:{_INDEX})*)*")
_STEP = re.compile(rf"{_NAME}|{_INDEX}")


class Each:
    """The step of a path into every element of a list."""


_Step = str | int | type[Each]


class _NoValue(Exception):
    """A path leads nowhere in a row; the message says what is there instead.

    Args:
        text: makes the message, which few candidates need and near names make slow.
    """

    def __init__(self, text: Callable[[], str]) -> None:
        super().__init__()
        self._text = text

    def __str__(self) -> str:
        return self._text()


class _Removed:
    """Marks a value that was moved as a whole."""


_FORM = "write names, such as question, or paths, such as results[].text or choices[0].text"


@dataclass(frozen=True)
class ColumnPath:
    """A path to a value in a row."""

    text: str
    """The path as written by the user."""
    steps: tuple[_Step, ...]

    @classmethod
    def parse(cls, text: str) -> ColumnPath:
        """Parse a path.

        Raises:
            UsageError: the text is neither a name nor a path.
        """
        if not _PATH.fullmatch(text):
            raise UsageError(f"column {text!r:.80} is neither a name nor a path: {_FORM}")
        return cls(text, tuple(_step(part) for part in _STEP.findall(text)))

    def find(self, row: Mapping[str, Any]) -> object:
        """Return the value at the path; ``None`` if it is null.

        Raises:
            _NoValue: the row has no value there.
        """
        if self.text in row:
            return row[self.text]
        return _follow(row, self.steps, "")

    def spelled(self, row: Mapping[str, Any]) -> ColumnPath:
        """Return the path with its names as the row spells them."""
        if self.text in row:
            return self
        value: object = row
        steps: list[_Step] = []
        for step in self.steps:
            if isinstance(step, str) and isinstance(value, Mapping) and step not in value:
                alike = (key for key in value if isinstance(key, str) and snake_case(key) == step)
                step = next(alike, step)  # noqa: PLW2901 - its spelling
            steps.append(step)
            try:
                value = _follow(value, (0 if step is Each else step,), "")
            except _NoValue:
                break
        steps += self.steps[len(steps) :]
        return ColumnPath(_path_text(steps), tuple(steps))

    def fault(self, row: Mapping[str, Any]) -> str:
        """Return why a row has no value at the path; empty if it has one."""
        try:
            self.find(row)
        except _NoValue as error:
            return str(error)
        return ""

    def without(self, row: dict[str, Any], rest: object = None) -> dict[str, Any]:
        """Return the row with what is left of the value at the path; its siblings stay.

        Args:
            row: the row.
            rest: what is left, ``None`` for nothing.
        """
        kept = _Removed if rest is None else rest
        if self.text in row:
            own = {**row, self.text: kept}
            return {name: value for name, value in own.items() if value is not _Removed}
        left = _left(row, self.steps if rest is None else self._to_list(), kept)
        return left if isinstance(left, dict) else {}

    def _to_list(self) -> tuple[_Step, ...]:
        return self.steps[:-1] if self.steps[-1] is Each else self.steps


def _path_text(steps: Iterable[_Step]) -> str:
    marks = (
        f".{step}" if isinstance(step, str) else "[]" if step is Each else f"[{step}]"
        for step in steps
    )
    return "".join(marks).removeprefix(".")


def _step(part: str) -> _Step:
    if not part.startswith("["):
        return part
    return int(part[1:-1]) if part[1:-1] else Each


def _follow(value: Any, steps: Sequence[_Step], where: str) -> object:  # noqa: ANN401 - any JSON
    for number, step in enumerate(steps):
        inner = _opened(value)
        if isinstance(step, str):
            value = _member(inner, step, where)
            where = f"{where}.{step}" if where else step
        elif not isinstance(inner, list | tuple):
            text = f"{where!r} is {kind_of(inner)}, not a list"
            raise _NoValue(text.__str__)
        elif isinstance(step, int):
            if step >= len(inner):
                text = f"{where!r} has {len(inner)} entries, no [{step}]"
                raise _NoValue(text.__str__)
            value, where = inner[step], f"{where}[{step}]"
        else:
            rest = steps[number + 1 :]
            found = [_follow(part, rest, f"{where}[{i}]") for i, part in enumerate(inner)]
            return _flat(found) if Each in rest else found
    return value


def _flat(lists: Iterable[Any]) -> list[object]:
    """Concatenate lists, for paths into a list of lists."""
    return [part for one in lists for part in one]


def _member(value: object, name: str, where: str) -> object:
    """Return a field of a mapping, or an attribute of an object such as a retriever's document."""
    shown = repr(where) if where else "the row"
    if isinstance(value, Mapping):
        if name in value:
            return value[name]
        raise _NoValue(lambda: f"{shown} has no {name!r}{_having(name, value)}")
    if value is None or isinstance(value, str | int | float | list | tuple | bytes):
        raise _NoValue(lambda: f"{shown} is {kind_of(value)}, not an object with {name!r}")
    if name.startswith("_") or not hasattr(value, name):
        raise _NoValue(lambda: f"{shown} has no {name!r}")
    found: object = getattr(value, name)
    return found


def _having(name: str, have: Iterable[object]) -> str:
    names = [str(one) for one in have]
    shown = ", ".join(f"{one:.40}" for one in names[:_SHOWN]) or "nothing"
    return f"{near(name, names) or ';'} it has: {shown}{', …' if len(names) > _SHOWN else ''}"


def _opened(value: object) -> object:
    """Return the value that a step leads into; a text is read as the list or object it holds."""
    if not isinstance(value, str):
        return value
    try:
        return written_value(value)
    except NotWritten:
        return value
    except Unreadable as error:
        raise _NoValue(f"a text looks like a list and cannot be read: {error}".__str__) from error


def _left(value: object, steps: Sequence[_Step], kept: object) -> object:
    """Return a value with what is kept at the end of the path."""
    if not steps:
        return kept
    value = written_or_same(value)
    step, rest = steps[0], steps[1:]
    if isinstance(value, Mapping) and isinstance(step, str) and step in value:
        inner = _left(value[step], rest, kept)
        left = {name: part for name, part in value.items() if name != step}
        if inner is not _Removed:
            left[step] = inner
        return left or _Removed
    if isinstance(value, list | tuple) and not isinstance(step, str):
        parts = [
            _left(part, rest, kept) if step is Each or step == number else part
            for number, part in enumerate(value)
        ]
        found = [None if part is _Removed else part for part in parts]
        return found if any(part is not None for part in found) else _Removed
    return _Removed if not isinstance(value, Mapping) else value


@dataclass(frozen=True)
class Choice:
    """A candidate source of a field: one column, or several that are combined."""

    paths: tuple[ColumnPath, ...]
    combined: bool = False
    """True if the values of several columns are combined."""

    def __str__(self) -> str:
        return ",".join(path.text for path in self.paths)

    def spelled(self, row: Mapping[str, Any]) -> Choice:
        """Return the choice with its names as a row spells them."""
        return replace(self, paths=tuple(path.spelled(row) for path in self.paths))

    def takes(self, field: str, value: object) -> bool:
        """Return True if a preset's value is of the form that its column promises."""
        if field in _TEXTS:
            return not _is_object(value)
        if field != "documents" or self.combined or self.paths[0].steps[-1] is not Each:
            return True
        return not isinstance(value, list | tuple) or not value or not all(
            isinstance(one, str) for one in flat(value)
        )


def _parse_choice(field: str, columns: str | Sequence[str]) -> Choice:
    """Parse the source of a field.

    Args:
        field: the field.
        columns: one column or several, as a list or separated by commas.

    Raises:
        UsageError: the field is unknown, or cannot be combined from several columns.
    """
    if field not in _FIELDS:
        hint = near(field, _FIELDS) or ";"
        raise UsageError(f"rows have no field {field!r:.40}{hint} have: {', '.join(_FIELDS)}")
    several = columns.split(",") if isinstance(columns, str) else list(columns)
    names = [name.strip() for name in several if name.strip()]
    if not names:
        raise UsageError(f"{field!r} is read from no column: {_FORM}")
    combined = len(several) > 1
    if combined and field not in _JOINABLE:
        raise UsageError(
            f"{field!r} is read from {len(several)} columns; only {' and '.join(_JOINABLE)} can be"
        )
    return Choice(tuple(map(ColumnPath.parse, names)), combined)


@dataclass(frozen=True)
class Columns:
    """The columns that the fields of an example are read from.

    A value that is read is moved: its siblings, such as the scores next to the texts of retrieved
    documents, stay among the row's other columns. A column with the name of a field that is read
    from elsewhere stays there too.
    """

    choices: Mapping[str, tuple[Choice, ...]]
    """The candidates for each field; the first with a value is used."""
    named: frozenset[str] = frozenset()
    """Fields whose columns the user named; at least one row must have each of them."""
    split: str | None = None
    """Separator of documents, where one text holds several."""
    remedy: str = SPLIT_REMEDY
    """What to do about documents in one text."""
    turns: ColumnPath | None = None
    """Column of messages that hold question and response, see :mod:`labeler.data.turns`."""

    def apply(self, row: Mapping[str, Any], where: str) -> dict[str, Any]:
        """Rename a row's columns to fields.

        Raises:
            BadRow: a required field is in none of its columns.
        """
        fields: dict[str, Any] = {}
        row = self._with_turns(row, where)
        rest = dict(row)
        id_columns: list[str] = []
        for field, choices in self.choices.items():
            value, paths = _first_found(field, choices, row, where, named=field in self.named)
            if value is None:
                continue
            if field == "id":  # rows may also be grouped by the columns of the id
                fields[field] = value
                id_columns = [path.text for path in paths]
                continue
            left = None
            if field == "documents":
                value, left = documents_in(value, where, self.split, self.remedy)
            fields[field] = value
            for path in paths:
                rest = path.without(rest, left if len(paths) == 1 else None)
        return _joined(fields, rest, id_columns)

    def _with_turns(self, row: Mapping[str, Any], where: str) -> Mapping[str, Any]:
        """Return a row with the fields that its column of messages holds in place of the column.

        Raises:
            BadRow: a message has another form, or none is a question or a response.
        """
        if self.turns is None:
            return row
        column = self.turns.spelled(row)
        try:
            turns = _opened(column.find(row))
        except _NoValue:
            return row
        if not isinstance(turns, list | tuple) or not _are_objects(turns):
            return row
        from labeler.data.turns import fields_of_turns  # noqa: PLC0415 - of conversations only

        others = column.without(dict(row))
        given = {name for name in ("response", "documents") if self._has(name, others)}
        answered = "response" in given
        found = fields_of_turns(turns, column.text, where, answered=answered)
        if "documents" in given:
            found.pop("documents", None)
        elif found.get("tool_outputs"):
            found.setdefault("documents", [])
        return {**others, **found}

    def _has(self, field: str, row: Mapping[str, Any]) -> bool:
        with contextlib.suppress(BadRow):
            return _first_found(field, self.choices.get(field, ()), row, "")[0] is not None
        return False

    def with_id(self, row: Mapping[str, Any], where: str) -> Mapping[str, Any]:
        """Return the row with its id, if the row has one.

        Raises:
            BadRow: a part of the id is neither text nor an integer.
        """
        value, _ = _first_found("id", self.choices.get("id", ()), row, where)
        return row if value is None else {**row, "id": value}

    def text_columns(self) -> set[str]:
        """Return the names of columns of question and response, whose texts may be empty."""
        choices = (one for name in ("question", "response") for one in self.choices.get(name, ()))
        return {path.text for choice in choices for path in choice.paths}

    def expected(self) -> Iterator[tuple[ColumnPath, str]]:
        """Yield the columns that the user named, each with its field."""
        for field, choices in self.choices.items():
            for choice in choices if field in self.named else ():
                yield from ((path, field) for path in choice.paths)

    def required(self, row: Mapping[str, Any]) -> set[str]:
        """Return the required fields that a row has columns for."""
        return self.used(row).keys() & REQUIRED

    def fits(self, row: Mapping[str, Any]) -> bool:
        """Return True if a row has a column for each required field."""
        return len(self.required(row)) == len(REQUIRED)

    def used(self, row: Mapping[str, Any]) -> dict[str, str]:
        """Return the column that each field of a row is read from; a field that lacks is absent."""
        columns: dict[str, str] = {}
        try:
            whole = self._with_turns(row, "")
        except BadRow:
            return columns
        for field, choices in self.choices.items():
            with contextlib.suppress(BadRow):
                value, paths = _first_found(field, choices, whole, "")
                if value is not None:
                    names = ",".join(path.text for path in paths)
                    made = names in whole and names not in row
                    columns[field] = self.turns.text if self.turns and made else names
        return columns


def _is_blank(value: object) -> bool:
    return value is None or (isinstance(value, str) and not value)


def _first_found(
    field: str,
    choices: Sequence[Choice],
    row: Mapping[str, Any],
    where: str,
    *,
    named: bool = False,
) -> tuple[object, Sequence[ColumnPath]]:
    """Return the value of the first choice that has one, and the columns it came from.

    Args:
        field: the field.
        choices: where it may stand.
        row: the row.
        where: its place, for errors.
        named: True if the user named the column: its name is then taken as it is, and an object in
            place of a text is an error.

    Raises:
        BadRow: no choice has a value, and the field is required.
    """
    complaint: _NoValue | None = None
    is_unread = False
    for choice in choices:
        try:
            value, paths = _read(field, choice if named else choice.spelled(row), row, where)
        except _NoValue as error:
            # Its traceback holds this frame, and so the row until the garbage collector comes.
            complaint = complaint or error.with_traceback(None)
            continue
        if value is not None and (named or choice.takes(field, value)):
            return value, paths
        is_unread = is_unread or value is not None
    if field not in REQUIRED:
        return None, ()
    read_from = " or ".join(repr(str(choice)) for choice in choices)
    form = "holds texts, not objects" if field == "documents" else "is an object, not a text"
    raise BadRow(
        f"{where}: no {field!r}, which is read from {read_from}; "
        f"{complaint or 'that ' + (form if is_unread else 'is null')}",
        reason="missing_field",
        lacks=[field],
    )


def _is_object(value: object) -> bool:
    """Return True for a value with fields, such as a message, or a list of such values."""
    if isinstance(value, list | tuple):
        return _are_objects(value)
    return not isinstance(value, str | int | float)


def _are_objects(values: Sequence[object]) -> bool:
    return bool(values) and all(isinstance(value, Mapping) for value in values)


def _read(
    field: str, choice: Choice, row: Mapping[str, Any], where: str
) -> tuple[object, list[ColumnPath]]:
    """Return the value of a choice, and the columns it came from."""
    if field == "id" and choice.combined:
        parts = {path.text: path.find(row) for path in choice.paths}
        return joined_id(parts, list(parts), where), list(choice.paths)
    if not choice.combined:
        return choice.paths[0].find(row), list(choice.paths)
    there: list[ColumnPath] = []
    gathered: list[object] = []
    complaint: _NoValue | None = None
    for path in choice.paths:
        try:
            value = _opened(path.find(row))
        except _NoValue as error:
            complaint = complaint or error.with_traceback(None)
            continue
        there.append(path)
        if isinstance(value, list | tuple):
            gathered += value
        elif value not in (None, ""):
            gathered.append(value)
    if complaint and not there:
        raise complaint
    return gathered, there


def _joined(
    fields: Mapping[str, Any], rest: Mapping[str, Any], id_columns: Sequence[str]
) -> dict[str, Any]:
    """Return the fields with the row's other columns; a displaced column becomes metadata."""
    others = {name: value for name, value in rest.items() if name not in fields}
    displaced = {
        name: rest[name]
        for name in fields
        if name not in id_columns and not _is_blank(rest.get(name))
    }
    if not displaced:
        return {**others, **fields}
    return {**others, **fields, "metadata": with_metadata(others.get("metadata"), displaced)}


def columns_of(
    given: Mapping[str, str | Sequence[str]], base: Mapping[str, Sequence[str]] | None = None
) -> Columns:
    """Combine the columns that the user named with those of a preset.

    Args:
        given: the column of each field; several columns, as a list or separated by commas, are
            combined.
        base: for each field the candidate columns of a preset, in order.

    Raises:
        UsageError: a field is unknown, or a column is neither a name nor a path.
    """
    choices = {
        field: tuple(_parse_choice(field, one) for one in names)
        for field, names in (base or {}).items()
    }
    own = {field: (_parse_choice(field, columns),) for field, columns in given.items()}
    return Columns({**choices, **own}, frozenset(own))
