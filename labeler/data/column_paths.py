"""Paths into nested columns: ``retrieval.results[].text``, ``choices[0].text``.

``[]`` is every element of a list, ``[0]`` the first. Nested lists, as in
``results[].parts[].text``, are flattened. A column whose own name reads like a path takes
precedence over that path. Paths lead into lists and objects that are written as text, too.
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
            except NoValue:
                break
        steps += self.steps[len(steps) :]
        return ColumnPath(_path_text(steps), tuple(steps))

    def fault(self, row: Mapping[str, Any]) -> str:
        """Return why a row has no value at the path; empty if it has one."""
        try:
            self.find(row)
        except NoValue as error:
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
        raise NoValue(lambda: f"{shown} has no {name!r}{_having(name, value)}")
    if value is None or isinstance(value, str | int | float | list | tuple | bytes):
        raise NoValue(lambda: f"{shown} is {kind_of(value)}, not an object with {name!r}")
    if name.startswith("_") or not hasattr(value, name):
        raise NoValue(lambda: f"{shown} has no {name!r}")
    found: object = getattr(value, name)
    return found


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
