"""Selection of criteria: those that ship with the package, and users' own in TOML files.

::

    [[criterion]]
    name = "tone"                       # name of the metric
    criteria = "Is the response kind?"  # the question for the judge; this, steps, or both
    steps = ["Read the response.", …]   # by default the judge writes them once; []: no steps
    shows = ["question", "response"]    # of question, documents, response, reference, key_facts
    low = 1                             # the scale is 1 to 5 by default
    high = 5
    threshold = 3                       # lowest score that passes; by default the middle
    [criterion.anchors]                 # meanings of single scores
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
    """Return criteria by name, from files, or as given.

    Args:
        wanted: names, files or criteria, one or several; a text may hold several, separated by
            commas. A text that ends in ``.toml`` is a file.

    Raises:
        UsageError: a name or file is unknown, a criterion is invalid, or two have the same name.
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
    return [
        criterion
        for name in filter(None, map(str.strip, one.split(",")))
        for criterion in (read_criteria(name) if name.endswith(".toml") else [CRITERIA[name]])
    ]


def read_criteria(path: str | Path) -> list[Criterion]:
    """Read the criteria of a TOML file.

    Raises:
        UsageError: the file cannot be read, or a criterion is invalid; the message names file,
            criterion, field and allowed values.
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
    return [_CriterionParser(path, number, table).parse() for number, table in enumerate(listed, 1)]


class _CriterionParser:
    """The parser of one table; errors name file, criterion, field and allowed values."""

    def __init__(self, path: str | Path, number: int, table: object) -> None:
        name = table.get("name") if isinstance(table, Mapping) else None
        shown = repr(name) if isinstance(name, str) and NAME.fullmatch(name) else str(number)
        self._where = f"{path}: criterion {shown}"
        if not isinstance(table, Mapping):
            raise UsageError(f"{self._where} is no table [[criterion]]")
        self._table: Mapping[str, Any] = table

    def parse(self) -> Criterion:
        """Return the criterion."""
        unknown = sorted(set(self._table) - set(_FIELDS))
        if unknown:
            raise self._wrong(repr(unknown[0]), f"is no field; have: {', '.join(_FIELDS)}")
        low, high = self._number("low", 1), self._number("high", 5)
        if not low < high < low + LONGEST_SCALE:
            raise self._wrong(
                "high", f"must be above low ({low}), by {LONGEST_SCALE - 1} at most; got {high}"
            )
        criteria = self._table.get("criteria", "")
        if not isinstance(criteria, str):
            raise self._wrong("criteria", f"must be a text; got {_kind(criteria)}")
        criteria, steps = criteria.strip(), self._steps()
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

    def _steps(self) -> tuple[str, ...] | None:
        steps = self._table.get("steps")
        if steps is None:  # TOML has no null
            return None
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

    def _wrong(self, field: str, fault: str) -> UsageError:
        return UsageError(f"{self._where}: {field} {fault}")


def _kind(value: object) -> str:
    return "nothing" if value is None else f"a {type(value).__name__}"
