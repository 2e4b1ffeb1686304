"""The column that each field of an example is read from.

A column is a name or a path into nested columns: ``retrieval.results[].text``,
``choices[0].text``. ``[]`` is every element of a list, ``[0]`` the first. Nested lists, as in
``results[].parts[].text``, are flattened. A column whose own name reads like a path takes
precedence over that path. Paths lead into lists and objects that are written as text, too. A name
that an object does not have stands for the same name in another spelling, such as camel case. In
presets, a path to documents that ends in ``[]`` is a list of objects.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from labeler.catalog import near, snake_case
from labeler.data.documents import documents_in, empty_remedy, flat, with_unused
from labeler.data.inputs_outputs import fields_of_turns
from labeler.data.parsing import REQUIRED, joined_id, said, with_metadata
from labeler.data.written_values import Unreadable, is_absent, written_or_same, written_value
from labeler.errors import BadRow, UsageError, kind_of
from labeler.sentences.example import Example

AMBIGUOUS = "ambiguous_columns"
"""Reason of the failure of a row that presets read differently."""
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
_FORM = "write names, such as question, or paths, such as results[].text or choices[0].text"


class _Each:
    """The step of a path into every element of a list."""


_Step = str | int | type[_Each]


class NoValue(Exception):
    """A path leads nowhere in a row; the message says what is there instead.

    Args:
        fault: what is wrong.
        name: the name that is not there.
        have: the names that are; the message lists them only where it is read, because near names
            are slow to find and few candidates are missed.
    """

    def __init__(self, fault: str, name: str = "", have: Iterable[object] | None = None) -> None:
        super().__init__(fault)
        self._fault, self._name, self._have = fault, name, have

    def __str__(self) -> str:
        if self._have is None:
            return self._fault
        names = [str(one) for one in self._have]
        shown = ", ".join(f"{one:.40}" for one in names[:_SHOWN]) or "nothing"
        more = ", …" * (len(names) > _SHOWN)
        return f"{self._fault}{near(self._name, names) or ';'} it has: {shown}{more}"


class _Removed:
    """Marks a value that was moved as a whole."""


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
        return cls(text, tuple(map(_step, _STEP.findall(text))))

    def find(self, row: Mapping[str, Any]) -> object:
        """Return the value at the path; ``None`` if it is null.

        Raises:
            NoValue: the row has no value there.
        """
        return row[self.text] if self.text in row else _follow(row, self.steps, "")

    def fault(self, row: Mapping[str, Any]) -> str:
        """Return why a row has no value at the path; empty if it has one."""
        try:
            self.find(row)
        except NoValue as error:
            return str(error)
        return ""

    def without(self, row: dict[str, Any]) -> dict[str, Any]:
        """Return the row without the value at the path; its siblings stay."""
        left = _left(row, (self.text,) if self.text in row else self.steps)
        return left if isinstance(left, dict) else {}

    def column(self, row: Mapping[str, Any]) -> str:
        """Return the name of the column that the path leads into."""
        first = str(self.steps[0])
        return self.text if self.text in row else _spelled(row, first) or first


def _step(part: str) -> _Step:
    if not part.startswith("["):
        return part
    return int(part[1:-1]) if part[1:-1] else _Each


@dataclass(frozen=True)
class Choice:
    """A candidate source of a field: one column, or several that are combined."""

    paths: tuple[ColumnPath, ...]
    combined: bool = False
    """True if the values of several columns are combined."""

    def __str__(self) -> str:
        return ",".join(path.text for path in self.paths)

    @classmethod
    def parse(cls, field: str, columns: str | Sequence[str]) -> Choice:
        """Parse the source of a field.

        Args:
            field: the field.
            columns: one column, or several to be combined, as a list or separated by commas.

        Raises:
            UsageError: the field is unknown, a column is neither a name nor a path, or the field
                cannot be combined from several.
        """
        if field not in _FIELDS:
            hint = near(str(field), _FIELDS) or ";"
            raise UsageError(f"rows have no field {field!r:.40}{hint} have: {', '.join(_FIELDS)}")
        several = columns.split(",") if isinstance(columns, str) else columns
        if not isinstance(several, Sequence) or not all(isinstance(one, str) for one in several):
            raise UsageError(
                f"columns of {field!r} must be a text or a list of texts, got {columns!r:.40}"
            )
        names = [name.strip() for name in several if name.strip()]
        if not names:
            raise UsageError(f"{field!r} is read from no column: {_FORM}")
        combined = len(several) > 1
        if combined and field not in _JOINABLE:
            raise UsageError(
                f"{field!r} is read from {len(several)} columns; only {' and '.join(_JOINABLE)} "
                "can be"
            )
        return cls(tuple(map(ColumnPath.parse, names)), combined)

    def read(self, field: str, row: Mapping[str, Any], where: str) -> object:
        """Return the value that a row has for a field; ``None`` if it is null or empty.

        Raises:
            NoValue: the row has no value there.
            BadRow: a part of an id is neither text nor an integer.
        """
        if not self.combined:
            return self.paths[0].find(row)
        if field == "id":
            parts = {path.text: path.find(row) for path in self.paths}
            return joined_id(parts, list(parts), where)
        gathered, is_list = list[object](), False
        faults: list[NoValue] = []
        for path in self.paths:
            try:
                value = _opened(path.find(row))
            except NoValue as error:
                # Its traceback holds this frame, and so the row until the garbage collector comes.
                faults.append(error.with_traceback(None))
                continue
            if isinstance(value, list | tuple):
                gathered += value
                is_list = True
            elif value != "" and not is_absent(value):
                gathered.append(value)
        if len(faults) == len(self.paths):
            raise faults[0]
        return gathered if gathered or is_list else None

    def takes(self, field: str, value: object) -> bool:
        """Return True if a preset's value is of the form that its column promises."""
        items = value if isinstance(value, list | tuple) else ()
        if field in _TEXTS:  # not an object, such as a message, nor a list of such
            if items:
                return not all(isinstance(one, Mapping) for one in items)
            return isinstance(value, str | int | float | list | tuple)
        are_objects = (
            field == "documents" and not self.combined and self.paths[0].steps[-1] is _Each
        )
        return not (items and are_objects) or not all(isinstance(one, str) for one in flat(items))


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
    turns: ColumnPath | None = None
    """Column of messages that hold question and response, see ``labeler.data.inputs_outputs``."""

    def over(self, base: Columns) -> Columns:
        """Return these columns, with those of a base for the other fields."""
        return replace(
            base, choices={**base.choices, **self.choices}, named=self.named, split=self.split
        )

    def apply(self, row: Mapping[str, Any], where: str) -> dict[str, Any]:
        """Rename a row's columns to fields.

        Raises:
            BadRow: a required field is in none of its columns.
        """
        fields: dict[str, Any] = {}
        row = self._with_turns(row, where)
        rest = dict(row)
        id_columns: set[str] = set()
        for field in self.choices:
            value, choice = self._found(field, row, where)
            if choice is None and field in REQUIRED:
                raise self._missing(field, row, where)
            if choice is None:
                continue
            if field == "documents":
                column = str(choice).removesuffix("[]")
                value, used = documents_in(value, where, self.split, column)
                for path in choice.paths:
                    rest = with_unused(rest, path.column(rest), used)
            elif field == "id":  # rows may also be grouped by the columns of the id
                id_columns = {path.text for path in choice.paths}
            else:
                rest = choice.paths[0].without(rest)
            fields[field] = value
        others = {name: value for name, value in rest.items() if name not in fields}
        own = {name: rest.get(name) for name in fields if name not in id_columns}
        displaced = {name: value for name, value in own.items() if value not in (None, "")}
        return _with_displaced({**others, **fields}, displaced)

    def _found(
        self, field: str, row: Mapping[str, Any], where: str
    ) -> tuple[object, Choice | None]:
        """Return the first value in a field's columns, and its place; ``None`` without any.

        An object in place of a text counts only where the user named the column, or as the response
        to a list of messages. Each row has the columns of an id that the user named.

        Raises:
            BadRow: a part of an id is neither text nor an integer, or missing if the user named it.
        """
        if field == "id" and field in self.named:
            (choice,) = self.choices[field]
            found = {
                path.text: None if path.fault(row) else path.find(row) for path in choice.paths
            }
            return joined_id({**row, **found}, list(found), where), choice
        for choice in self.choices.get(field, ()):
            with contextlib.suppress(NoValue):
                value = choice.read(field, row, where)
                if value is None and choice.combined and field not in self.named:
                    value = []  # of numbered columns none may have been found
                is_named = field in self.named
                if self.turns is not None and field == "response":
                    is_named = isinstance(said(value, field), str)
                if value is not None and (is_named or choice.takes(field, value)):
                    return value, choice
        return None, None

    def _missing(self, field: str, row: Mapping[str, Any], where: str) -> BadRow:
        """Return the error of a row that has a required field in none of its columns."""
        form = "texts, not objects" if field == "documents" else "an object, not a text"
        faults = list[str]()
        for choice in self.choices[field]:
            try:
                value = choice.read(field, row, where)
            except NoValue as error:
                faults.append(str(error))
                continue
            none = f"{str(choice)!r} has no value{empty_remedy(field)}"
            faults.insert(0, none if value in (None, []) else f"that is {form}")
        read_from = " or ".join(repr(str(choice)) for choice in self.choices[field])
        return BadRow(
            f"{where}: no {field!r}, which is read from {read_from}; {faults[0]}",
            reason="missing_field",
            lacks=[field],
        )

    def messages(self, row: Mapping[str, Any]) -> list[Any]:
        """Return the messages of a row that hold its question and response; none without any."""
        turns: object = None
        with contextlib.suppress(NoValue):
            turns = _opened(self.turns.find(row)) if self.turns else None
        items = turns if isinstance(turns, list | tuple) else ()
        return list(items) if all(isinstance(one, Mapping | list | tuple) for one in items) else []

    def _with_turns(self, row: Mapping[str, Any], where: str) -> Mapping[str, Any]:
        """Return a row with the fields that its column of messages holds in place of the column.

        Raises:
            BadRow: a message has another form, or none is a question or a response.
        """
        turns = self.messages(row)
        if self.turns is None or not turns:
            return row
        others = self.turns.without(dict(row))
        given = {name for name in ("response", "documents") if self.reads(name, others)}
        answered = "response" in given
        found = fields_of_turns(turns, self.turns.text, where, answered=answered)
        if "documents" in given:
            found.pop("documents", None)
        elif found.get("tool_outputs"):
            found.setdefault("documents", [])
        displaced = {
            n: v for n, v in others.items() if n in found and v not in (None, "", found[n])
        }
        return _with_displaced({**others, **found}, displaced)

    def reads(self, field: str, row: Mapping[str, Any]) -> bool:
        """Return True if a row has a value in a column of a field."""
        with contextlib.suppress(BadRow):
            return self._found(field, row, "")[1] is not None
        return False

    def rests(self, row: Mapping[str, Any], fields: Mapping[str, Any]) -> Iterator[object]:
        """Yield what is left, in a row's fields, of the columns that documents are read from.

        Columns that the user combined, and paths into a list, are skipped: they name the texts.
        """
        metadata = fields.get("metadata")
        yield metadata.get("documents") if isinstance(metadata, Mapping) else None
        for choice in self.choices.get("documents", ()):
            if choice.combined and "documents" in self.named:
                continue
            for path in choice.paths:
                if all(isinstance(step, str) for step in path.steps[:-1]):
                    yield fields.get(path.column(row))

    def with_id(self, row: Mapping[str, Any], where: str) -> Mapping[str, Any]:
        """Return the row with its id, if the row has one.

        Raises:
            BadRow: a part of the id is neither text nor an integer.
        """
        value, _ = self._found("id", row, where)
        return row if value is None else {**row, "id": value}

    def expected(self) -> Iterator[tuple[ColumnPath, str]]:
        """Yield the columns that the user named, each with its field."""
        for field, choices in self.choices.items():
            for choice in choices if field in self.named else ():
                yield from ((path, field) for path in choice.paths)

    def fits(self, row: Mapping[str, Any]) -> bool:
        """Return True if a row has a column for each required field."""
        return self.used(row).keys() >= set(REQUIRED)

    def used(self, row: Mapping[str, Any]) -> dict[str, str]:
        """Return the column that each field of a row is read from; a field that lacks is absent."""
        columns: dict[str, str] = {}
        with contextlib.suppress(BadRow):
            whole = self._with_turns(row, "")
            for field in self.choices:
                with contextlib.suppress(BadRow):
                    _, choice = self._found(field, whole, "")
                    if choice is not None:
                        made = str(choice) in whole and str(choice) not in row
                        columns[field] = self.turns.text if self.turns and made else str(choice)
        return columns


def _with_displaced(row: dict[str, Any], displaced: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with columns in its metadata whose names now stand for other values."""
    metadata = {"metadata": with_metadata(row.get("metadata"), displaced)} if displaced else {}
    return row | metadata


def _follow(value: Any, steps: Sequence[_Step], where: str) -> object:  # noqa: ANN401 - any JSON
    for number, step in enumerate(steps):
        inner = _opened(value)
        if isinstance(step, str):
            value = _member(inner, step, where)
            where = f"{where}.{step}" if where else step
        elif not isinstance(inner, list | tuple):
            raise NoValue(f"{where!r} is {kind_of(inner)}, not a list")
        elif isinstance(step, int):
            if step >= len(inner):
                raise NoValue(f"{where!r} has {len(inner)} entries, no [{step}]")
            value, where = inner[step], f"{where}[{step}]"
        else:
            rest = steps[number + 1 :]
            found: Any = [_follow(part, rest, f"{where}[{i}]") for i, part in enumerate(inner)]
            return [part for one in found for part in one] if _Each in rest else found
    return value


def _member(value: object, name: str, where: str) -> object:
    """Return a field of a mapping, or an attribute of an object such as a retriever's document."""
    shown = repr(where) if where else "the row"
    if isinstance(value, Mapping):
        if (key := _spelled(value, name)) is not None:
            return value[key]
        raise NoValue(f"{shown} has no {name!r}", name, value)
    if value is None or isinstance(value, str | int | float | list | tuple | bytes):
        raise NoValue(f"{shown} is {kind_of(value)}, not an object with {name!r}")
    if name.startswith("_") or not hasattr(value, name):
        raise NoValue(f"{shown} has no {name!r}")
    found: object = getattr(value, name)
    return found


def _spelled(value: Mapping[str, Any], name: str) -> str | None:
    """Return a field's name as an object spells it: ``actualOutput`` for ``actual_output``."""
    if name in value:
        return name
    known = snake_case(name)
    return next((key for key in value if isinstance(key, str) and snake_case(key) == known), None)


def _opened(value: object) -> object:
    """Return the value that a step leads into; a text is read as the list or object it holds."""
    try:
        return written_value(value)
    except Unreadable as error:
        raise NoValue(f"a text looks like a list and cannot be read: {error}") from error


def _left(value: object, steps: Sequence[_Step]) -> object:
    """Return a value without the part at the end of the path."""
    if not steps:
        return _Removed
    value = written_or_same(value)
    step, rest = steps[0], steps[1:]
    key = _spelled(value, step) if isinstance(value, Mapping) and isinstance(step, str) else None
    if isinstance(value, Mapping) and key is not None:
        inner = _left(value[key], rest)
        left = {name: part for name, part in value.items() if name != key}
        if inner is not _Removed:
            left[key] = inner
        return left or _Removed
    if isinstance(value, list | tuple) and not isinstance(step, str):
        parts = [
            _left(part, rest) if step is _Each or step == number else part
            for number, part in enumerate(value)
        ]
        kept = [None if part is _Removed else part for part in parts]
        return kept if any(part is not None for part in kept) else _Removed
    return _Removed if not isinstance(value, Mapping) else value
