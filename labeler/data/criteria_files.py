"""Criteria: those that ship with the package, and those that users write down in TOML.

::

    [[criterion]]
    name = "tone"                       # names the metric
    criteria = "Is the response kind?"  # what is judged; or steps, or both
    steps = ["Read the response.", …]   # left out: the judge writes them once; []: there are none
    shows = ["question", "response"]    # of question, documents, response, reference, key_facts
    low = 1                             # 1 to 5 where left out
    high = 5
    threshold = 3                       # the lowest score that passes; by default the middle
    [criterion.anchors]                 # what single scores mean
    5 = "…"
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast, get_args

from labeler.errors import UsageError
from labeler.labels.criteria import FARTHEST, LONGEST_SCALE, NAME, Criterion, Shown
from labeler.labels.rubrics import CRITERIA

_FIELDS = ("name", "criteria", "steps", "shows", "low", "high", "threshold", "anchors")
_SHOWN: tuple[str, ...] = get_args(Shown)


def choose_criteria(
    wanted: str | Path | Criterion | Iterable[str | Path | Criterion],
) -> list[Criterion]:
    """Criteria by name, of files, or as they are.

    Args:
        wanted: names and files, one or several, also parted by commas in one text; a text that
            ends in ``.toml`` is a file.

    Raises:
        UsageError: there is no such name or file, a criterion is not as it must be, or two share a
            name.
    """
    listed = [wanted] if isinstance(wanted, str | Path | Criterion) else list(wanted)
    chosen: dict[str, Criterion] = {}
    for criterion in (found for one in listed for found in _named(one)):
        if criterion.name in chosen:
            raise UsageError(f"criterion {criterion.name!r} is given twice; give each one once")
        chosen[criterion.name] = criterion
    if not chosen:
        raise UsageError(f"no criterion is given; have: {', '.join(CRITERIA)}, or a TOML file")
    return list(chosen.values())


def _named(one: str | Path | Criterion) -> Iterable[Criterion]:
    if isinstance(one, Criterion):
        return [one]
    if isinstance(one, Path):
        return read_criteria(one)
    names = [part.strip() for part in one.split(",") if part.strip()]
    return [
        criterion
        for name in names
        for criterion in (read_criteria(name) if name.endswith(".toml") else [CRITERIA[name]])
    ]


def read_criteria(path: str | Path) -> list[Criterion]:
    """Read the criteria of a TOML file.

    Raises:
        UsageError: the file cannot be read, or a criterion is not as it must be; the message names
            file, criterion, field, and what is allowed.
    """
    try:
        content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read criteria from {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"{path} is no TOML file: {error}") from error
    listed = content.get("criterion")
    strange = sorted(set(content) - {"criterion"})
    if not isinstance(listed, list) or not listed or strange:
        got = f"; got also {', '.join(map(repr, strange))}" if strange else ""
        raise UsageError(f"{path}: criteria stand in tables [[criterion]], one at least{got}")
    return [_Reader(path, number, table).criterion() for number, table in enumerate(listed, 1)]


class _Reader:
    """Reads one table; every error names file, criterion, field and what is allowed."""

    def __init__(self, path: str | Path, number: int, table: object) -> None:
        name = table.get("name") if isinstance(table, Mapping) else None
        called = repr(name) if isinstance(name, str) and NAME.fullmatch(name) else str(number)
        self._where = f"{path}: criterion {called}"
        if not isinstance(table, Mapping):
            raise UsageError(f"{self._where} is no table [[criterion]]")
        self._table: Mapping[str, Any] = table

    def criterion(self) -> Criterion:
        """The criterion."""
        strange = sorted(set(self._table) - set(_FIELDS))
        if strange:
            raise self._wrong(repr(strange[0]), f"is no field; have: {', '.join(_FIELDS)}")
        low, high = self._number("low", 1), self._number("high", 5)
        if not low < high < low + LONGEST_SCALE:
            raise self._wrong(
                "high", f"must be above low ({low}), by {LONGEST_SCALE - 1} at most; got {high}"
            )
        criteria, steps = self._criteria(), self._steps()
        if not criteria and not steps:
            raise self._wrong("criteria", "is needed, or steps are; got neither")
        return Criterion(
            name=self._name(),
            criteria=criteria,
            steps=steps,
            anchors=self._anchors(low, high),
            shows=self._shows(),
            low=low,
            high=high,
            threshold=self._threshold(low, high),
        )

    def _name(self) -> str:
        name = self._table.get("name")
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise self._wrong(
                "name", f"must be small letters, digits and _, up to 64; got {name!r:.80}"
            )
        if name in CRITERIA:
            raise self._wrong(
                "name", "is that of a criterion that ships with labeler; choose another"
            )
        return name

    def _criteria(self) -> str:
        text = self._table.get("criteria", "")
        if not isinstance(text, str):
            raise self._wrong("criteria", f"must be a text; got {_kind(text)}")
        return text.strip()

    def _steps(self) -> tuple[str, ...] | None:
        if "steps" not in self._table:
            return None
        steps = self._table["steps"]
        if not isinstance(steps, list) or not all(isinstance(s, str) and s.strip() for s in steps):
            raise self._wrong("steps", f"must be a list of texts, none empty; got {_kind(steps)}")
        return tuple(step.strip() for step in steps)

    def _shows(self) -> tuple[Shown, ...]:
        shows = self._table.get("shows")
        allowed = ", ".join(_SHOWN)
        if not isinstance(shows, list) or not shows:
            raise self._wrong("shows", f"must be a list of some of {allowed}; got {_kind(shows)}")
        for part in shows:
            if part not in _SHOWN:
                raise self._wrong("shows", f"may hold {allowed}; got {part!r:.80}")
        if len(set(shows)) < len(shows):
            raise self._wrong("shows", "names a part twice; name each once")
        return tuple(cast("Shown", part) for part in shows)

    def _anchors(self, low: int, high: int) -> dict[int, str]:
        anchors = self._table.get("anchors", {})
        if not isinstance(anchors, Mapping):
            raise self._wrong("anchors", f"must be a table of score = text; got {_kind(anchors)}")
        for score, meaning in anchors.items():
            if not re.fullmatch(r"-?\d{1,4}", score) or not low <= int(score) <= high:
                raise self._wrong(
                    "anchors", f"are for scores from {low} to {high}; got {score!r:.80}"
                )
            if not isinstance(meaning, str) or not meaning.strip():
                raise self._wrong("anchors", f"of {score} must be a text; got {_kind(meaning)}")
        return {int(score): meaning.strip() for score, meaning in sorted(anchors.items())}

    def _number(self, field: str, default: int) -> int:
        value = self._table.get(field, default)
        if type(value) is not int or abs(value) > FARTHEST:
            raise self._wrong(
                field, f"must be a whole number from {-FARTHEST} to {FARTHEST}; got {value!r:.80}"
            )
        return value

    def _threshold(self, low: int, high: int) -> int | float:
        middle = (low + high) / 2
        value = self._table.get("threshold", int(middle) if middle.is_integer() else middle)
        if type(value) not in {int, float} or not low <= value <= high:
            raise self._wrong(
                "threshold", f"must be a number from {low} to {high}; got {value!r:.80}"
            )
        return cast("int | float", value)

    def _wrong(self, field: str, what: str) -> UsageError:
        return UsageError(f"{self._where}: {field} {what}")


def _kind(value: object) -> str:
    return "nothing" if value is None else f"a {type(value).__name__}"
