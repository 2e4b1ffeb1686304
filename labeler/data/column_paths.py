"""Paths into nested columns: ``retrieval.results[].text``, ``choices[0].text``.

``[]`` is every element of a list, ``[0]`` the first. Nested lists, as in
``results[].parts[].text``, are flattened. A column whose own name reads like a path takes
precedence over that path. Paths lead into lists and objects that are written as text, too. A name
that an object does not have stands for the same name in another spelling, such as camel case.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from labeler.catalog import near, snake_case
from labeler.data.field_values import written_or_same
from labeler.data.written_values import NotWritten, Unreadable, written_value
from labeler.errors import UsageError, kind_of

_SHOWN = 12
"""Most columns that an error lists."""

_NAME = r"[^.\[\],]+"
_INDEX = r"\[\d{0,9}\]"
_PATH = re.compile(rf"{_NAME}(?:{_INDEX})*(?:\.{_NAME}(?:{_INDEX})*)*")
_STEP = re.compile(rf"{_NAME}|{_INDEX}")


class Each:
    """The step of a path into every element of a list."""


_Step = str | int | type[Each]


class NoValue(Exception):
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


FORM = "write names, such as question, or paths, such as results[].text or choices[0].text"


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
            raise UsageError(f"column {text!r:.80} is neither a name nor a path: {FORM}")
        return cls(text, tuple(_step(part) for part in _STEP.findall(text)))

    def find(self, row: Mapping[str, Any]) -> object:
        """Return the value at the path; ``None`` if it is null.

        Raises:
            NoValue: the row has no value there.
        """
        if self.text in row:
            return row[self.text]
        return _follow(row, self.steps, "")

    def fault(self, row: Mapping[str, Any]) -> str:
        """Return why a row has no value at the path; empty if it has one."""
        try:
            self.find(row)
        except NoValue as error:
            return str(error)
        return ""

    def without(self, row: dict[str, Any]) -> dict[str, Any]:
        """Return the row without the value at the path; its siblings stay."""
        if self.text in row:
            return {name: value for name, value in row.items() if name != self.text}
        left = _left(row, self.steps)
        return left if isinstance(left, dict) else {}

    def column(self, row: Mapping[str, Any]) -> str:
        """Return the name of the column that the path leads into."""
        first = str(self.steps[0])
        return self.text if self.text in row else _spelled(row, first) or first


def _step(part: str) -> _Step:
    if not part.startswith("["):
        return part
    return int(part[1:-1]) if part[1:-1] else Each


def _follow(value: Any, steps: Sequence[_Step], where: str) -> object:  # noqa: ANN401 - any JSON
    for number, step in enumerate(steps):
        inner = opened(value)
        if isinstance(step, str):
            value = _member(inner, step, where)
            where = f"{where}.{step}" if where else step
        elif not isinstance(inner, list | tuple):
            text = f"{where!r} is {kind_of(inner)}, not a list"
            raise NoValue(text.__str__)
        elif isinstance(step, int):
            if step >= len(inner):
                text = f"{where!r} has {len(inner)} entries, no [{step}]"
                raise NoValue(text.__str__)
            value, where = inner[step], f"{where}[{step}]"
        else:
            rest = steps[number + 1 :]
            found: Any = [_follow(part, rest, f"{where}[{i}]") for i, part in enumerate(inner)]
            return [part for one in found for part in one] if Each in rest else found
    return value


def _member(value: object, name: str, where: str) -> object:
    """Return a field of a mapping, or an attribute of an object such as a retriever's document."""
    shown = repr(where) if where else "the row"
    if isinstance(value, Mapping):
        if (key := _spelled(value, name)) is not None:
            return value[key]
        raise NoValue(lambda: f"{shown} has no {name!r}{_having(name, value)}")
    if value is None or isinstance(value, str | int | float | list | tuple | bytes):
        raise NoValue(lambda: f"{shown} is {kind_of(value)}, not an object with {name!r}")
    if name.startswith("_") or not hasattr(value, name):
        raise NoValue(lambda: f"{shown} has no {name!r}")
    found: object = getattr(value, name)
    return found


def _spelled(value: Mapping[str, Any], name: str) -> str | None:
    """Return a field's name as an object spells it: ``actualOutput`` for ``actual_output``."""
    if name in value:
        return name
    known = snake_case(name)
    return next((key for key in value if isinstance(key, str) and snake_case(key) == known), None)


def _having(name: str, have: Iterable[object]) -> str:
    names = [str(one) for one in have]
    shown = ", ".join(f"{one:.40}" for one in names[:_SHOWN]) or "nothing"
    return f"{near(name, names) or ';'} it has: {shown}{', …' if len(names) > _SHOWN else ''}"


def opened(value: object) -> object:
    """Return the value that a step leads into; a text is read as the list or object it holds."""
    if not isinstance(value, str):
        return value
    try:
        return written_value(value)
    except NotWritten:
        return value
    except Unreadable as error:
        raise NoValue(f"a text looks like a list and cannot be read: {error}".__str__) from error


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
            _left(part, rest) if step is Each or step == number else part
            for number, part in enumerate(value)
        ]
        kept = [None if part is _Removed else part for part in parts]
        return kept if any(part is not None for part in kept) else _Removed
    return _Removed if not isinstance(value, Mapping) else value
