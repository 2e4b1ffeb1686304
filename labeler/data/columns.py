"""The column that each field of an example is read from.

A column is given by its name, or by a path into it; see :mod:`labeler.data.column_paths`. In
presets, a path to documents that ends in ``[]`` is a list of objects.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from labeler.catalog import near
from labeler.data.column_paths import FORM, ColumnPath, Each, NoValue, opened
from labeler.data.documents import flat
from labeler.data.field_values import (
    REQUIRED,
    SPLIT_REMEDY,
    documents_in,
    with_metadata,
    with_unused,
)
from labeler.data.parsing import joined_id
from labeler.data.written_values import is_missing
from labeler.errors import BadRow, UsageError
from labeler.sentences.example import Example

_FIELDS = tuple(Example.model_fields)
_JOINABLE = ("id", "documents")
"""Fields that may be combined from several columns."""
_TEXTS = ("question", "response", "reference")


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
            hint = near(field, _FIELDS) or ";"
            raise UsageError(f"rows have no field {field!r:.40}{hint} have: {', '.join(_FIELDS)}")
        several = columns.split(",") if isinstance(columns, str) else list(columns)
        names = [name.strip() for name in several if name.strip()]
        if not names:
            raise UsageError(f"{field!r} is read from no column: {FORM}")
        combined = len(several) > 1
        if combined and field not in _JOINABLE:
            raise UsageError(
                f"{field!r} is read from {len(several)} columns; only {' and '.join(_JOINABLE)} "
                "can be"
            )
        return cls(tuple(map(ColumnPath.parse, names)), combined)

    def takes(self, field: str, value: object) -> bool:
        """Return True if a preset's value is of the form that its column promises."""
        if field in _TEXTS:
            return not _is_object(value)
        if field != "documents" or self.combined or self.paths[0].steps[-1] is not Each:
            return True
        return (
            not isinstance(value, list | tuple)
            or not value
            or not all(isinstance(one, str) for one in flat(value))
        )


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
        id_columns: list[str] = []
        for field, choices in self.choices.items():
            value, paths = _first_found(field, choices, row, where, named=field in self.named)
            if value is None:
                continue
            if field == "id":  # rows may also be grouped by the columns of the id
                fields[field] = value
                id_columns = [path.text for path in paths]
                continue
            if field == "documents":
                fields[field], used = documents_in(value, where, self.split, self.remedy)
                for path in paths:
                    rest = with_unused(rest, path.column(rest), used)
                continue
            fields[field] = value
            for path in paths:
                rest = path.without(rest)
        return _joined(fields, rest, id_columns)

    def messages(self, row: Mapping[str, Any]) -> list[Any]:
        """Return the messages of a row that hold its question and response; none without any."""
        turns: object = None
        with contextlib.suppress(NoValue):
            turns = opened(self.turns.find(row)) if self.turns else None
        are_messages = isinstance(turns, list | tuple) and all(
            isinstance(one, Mapping | list | tuple) for one in turns
        )
        return list(turns) if isinstance(turns, list | tuple) and are_messages else []

    def _with_turns(self, row: Mapping[str, Any], where: str) -> Mapping[str, Any]:
        """Return a row with the fields that its column of messages holds in place of the column.

        Raises:
            BadRow: a message has another form, or none is a question or a response.
        """
        turns = self.messages(row)
        if self.turns is None or not turns:
            return row
        from labeler.data.inputs_outputs import fields_of_turns  # noqa: PLC0415 - of conversations only

        others = self.turns.without(dict(row))
        given = {name for name in ("response", "documents") if self.reads(name, others)}
        answered = "response" in given
        found = fields_of_turns(turns, self.turns.text, where, answered=answered)
        if "documents" in given:
            found.pop("documents", None)
        elif found.get("tool_outputs"):
            found.setdefault("documents", [])
        return {**others, **found}

    def reads(self, field: str, row: Mapping[str, Any]) -> bool:
        """Return True if a row has a value in a column of a field."""
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

    def fits(self, row: Mapping[str, Any]) -> bool:
        """Return True if a row has a column for each required field."""
        return self.used(row).keys() >= set(REQUIRED)

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
        named: True if the user named the column: an object in place of a text is then an error.

    Raises:
        BadRow: no choice has a value, and the field is required.
    """
    complaint: NoValue | None = None
    is_unread = False
    for choice in choices:
        try:
            value, paths = _read(field, choice, row, where)
        except NoValue as error:
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
        return bool(value) and all(isinstance(one, Mapping) for one in value)
    return not isinstance(value, str | int | float)


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
    complaint: NoValue | None = None
    for path in choice.paths:
        try:
            value = opened(path.find(row))
        except NoValue as error:
            complaint = complaint or error.with_traceback(None)
            continue
        there.append(path)
        if isinstance(value, list | tuple):
            gathered += value
        elif value != "" and not is_missing(value):
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
        if name not in id_columns and rest.get(name) not in (None, "")
    }
    if not displaced:
        return {**others, **fields}
    whole = {**others, **fields}
    return {**whole, "metadata": with_metadata(whole.get("metadata"), displaced)}
