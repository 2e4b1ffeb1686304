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

import json
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from labeler.errors import UsageError, describe_faults
from labeler.plugins.scores.records import CRITERIA, NAME, Criterion

_Text = Annotated[str, Field(min_length=1)]


class _Written(Criterion, str_strip_whitespace=True):
    """A criterion as a file holds it."""

    name: Annotated[str, Field(pattern=f"^{NAME.pattern}$")]
    criteria: str = ""
    steps: tuple[_Text, ...] | None = None
    anchors: dict[int, _Text] = Field(default_factory=dict)


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
        raise UsageError(f"{path} is not a TOML file: {error}") from error
    listed = content.get("criterion")
    strange = sorted(set(content) - {"criterion"})
    if not isinstance(listed, list) or not listed or strange:
        got = f"; got also {', '.join(map(repr, strange))}" if strange else ""
        raise UsageError(f"{path}: criteria stand in tables [[criterion]], one at least{got}")
    return [_parsed(path, number, table) for number, table in enumerate(listed, 1)]


def _parsed(path: str | Path, number: int, table: object) -> Criterion:
    """Return the criterion of one table.

    Raises:
        UsageError: the table is invalid.
    """
    where = f"{path}: criterion {number}"
    if not isinstance(table, dict):
        raise UsageError(f"{where} is not a table [[criterion]]")
    where += f" ({table.get('name', 'without a name')!s:.80})"
    if table.get("name") in CRITERIA:
        raise UsageError(
            f"{where}: name belongs to a criterion that ships with labeler; choose another"
        )
    ends = (table.get("low", 1), table.get("high", 5))
    if all(isinstance(end, int) for end in ends):
        middle = sum(ends) / 2
        table = {"threshold": int(middle) if middle.is_integer() else middle, **table}
    try:
        # Strict JSON knows lists and numbers as keys, and nothing that only looks like a number.
        found = _Written.model_validate_json(json.dumps(table, default=repr), strict=True)
    except ValidationError as error:
        fault = error.errors()[0]
        if fault["type"] == "extra_forbidden":
            more = f"; fields are {', '.join(_Written.model_fields)}"
        else:
            more = f"; got {fault['input']!r:.80}" if fault["loc"] else ""
        raise UsageError(f"{where}: {describe_faults(error)}{more}") from error
    return Criterion(**found.model_dump())
