"""Criteria of scores: those that ship with the package, and users' own in TOML files.

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
import re
from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError, model_validator

from labeler.calculators.export import COLUMNS
from labeler.calculators.registry import ALL, METRICS
from labeler.catalog import Catalog
from labeler.data.options import read_toml
from labeler.errors import UsageError, describe_faults
from labeler.labels.signature import canonical_json
from labeler.sentences.example import Frozen, KeyedExample, Sentence

Part = Literal["question", "documents", "response", "reference"]
"""A part of a row."""
Shown = Literal["question", "documents", "response", "reference", "key_facts"]
"""A part that a criterion shows; ``key_facts`` is the reference answer if a row has one, else the
documents."""

PARTS: tuple[Part, ...] = ("question", "documents", "response", "reference")
"""All parts, in the order of the prompt."""

NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
"""Pattern of a criterion's name."""
LONGEST_SCALE = 101
"""Most scores on a scale."""
FARTHEST = 1000
"""Largest absolute value of a score."""


class Criterion(Frozen):
    """What a score is given for."""

    # Invalid or contradictory fields raise pydantic's ValueError.

    name: str
    """Name of the metric: small letters, digits and underscores."""
    criteria: str
    """Text for the judge; may be empty if there are steps."""
    steps: tuple[str, ...] | None = ()
    """Evaluation steps; ``None`` if the judge writes them first."""
    anchors: dict[int, str] = Field(default_factory=dict)
    """Descriptions of scores."""
    shows: tuple[Shown, ...]
    """Parts of a row that the judge sees."""
    low: int = 1
    high: int = 5
    threshold: int | float = 3
    """The lowest passing score. Not in the key: the judge does not see it."""

    @model_validator(mode="after")
    def _require_consistent(self) -> Self:
        if not NAME.fullmatch(self.name):
            raise ValueError("name must be small letters, digits and _, up to 64")
        if not -FARTHEST <= self.low < self.high < min(self.low + LONGEST_SCALE, FARTHEST + 1):
            raise ValueError(f"low must be below high, by {LONGEST_SCALE - 1} at most")
        if not self.shows or len(set(self.shows)) < len(self.shows):
            raise ValueError("shows must name one part at least, and none twice")
        if not all(score in self.scale for score in self.anchors):
            raise ValueError("anchors are for scores of the scale")
        if not self.low <= self.threshold <= self.high:
            raise ValueError("threshold must lie on the scale")
        if not self.criteria.strip() and not self.steps:
            raise ValueError("criteria or steps are needed")
        try:
            canonical_json(self.facts())
        except ValueError:
            raise ValueError("texts must not hold lone surrogates") from None
        return self

    @property
    def scale(self) -> range:
        """All valid scores."""
        return range(self.low, self.high + 1)

    def passes(self, score: Fraction) -> bool:
        """Return True if a score reaches the threshold."""
        return score >= Fraction(self.threshold)

    def parts(self, *, has_reference: bool) -> tuple[Part, ...]:
        """Return the shown parts of a row, in the order of the prompt.

        Args:
            has_reference: True if the row has a reference answer.
        """
        shown = set(self.shows)
        if "key_facts" in shown:
            shown.add("reference" if has_reference else "documents")
        return tuple(part for part in PARTS if part in shown)

    def texts(self, example: KeyedExample) -> dict[Part, Sequence[str | Sentence]]:
        """Return the texts of the shown parts of a row, in the order of the prompt."""
        every: dict[Part, Sequence[str | Sentence]] = {
            "question": [example.question] if example.question.strip() else [],
            "documents": tuple(example.document_sentences()),
            "response": example.response,
            "reference": example.reference or (),
        }
        return {part: every[part] for part in self.parts(has_reference=bool(example.reference))}

    def facts(self) -> dict[str, Any]:
        """Return all that can change an answer, as a JSON value."""
        # Defaults are left out, so that a field added later does not change existing keys.
        return self.model_dump(mode="json", exclude_defaults=True, exclude={"threshold"})


CRITERIA: Catalog[Criterion] = Catalog("criterion", extra=("FILE.toml",))
"""Built-in criteria: a score from 1 to 5 each, with anchors."""

for _written in read_toml(Path(__file__).with_name("criteria.toml"))["criterion"]:
    CRITERIA.add(_written["name"], Criterion(**_written))
BLOCKS: dict[str, str] = read_toml(Path(__file__).with_name("blocks.toml"))
"""Lines of the prompt about the parts that a criterion may show."""

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
        UsageError: a name or file is unknown, a criterion is invalid, two have the same name, or
            one has the name of another metric or column.
    """
    if isinstance(wanted, str | Path | Criterion) or not isinstance(wanted, Iterable):
        wanted = [wanted]
    chosen: dict[str, Criterion] = {}
    others = {name.partition(":")[0] for name in METRICS.names()}
    taken = {ALL, *COLUMNS, *others} - CRITERIA.keys()
    for criterion in (found for one in wanted for found in _named(one)):
        if criterion.name in chosen:
            raise UsageError(f"criterion {criterion.name!r} is given twice; give each one once")
        if criterion.name in taken:
            raise UsageError(
                f"criterion {criterion.name!r} has the name of another metric, or of a column of "
                "numbers files, with which its scores would be mixed up; choose another"
            )
        chosen[criterion.name] = criterion
    if not chosen:
        raise UsageError(f"no criterion is given; have: {', '.join(CRITERIA)}, or a TOML file")
    return list(chosen.values())


def _named(one: str | Path | Criterion) -> Iterable[Criterion]:
    if isinstance(one, Criterion):
        return [one]
    if isinstance(one, Path):
        return read_criteria(one)
    if not isinstance(one, str):
        raise UsageError(f"criteria must be names, files or criteria, got {one!r:.40}")
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
    content = read_toml(path)
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
    if table.get("name") in tuple(CRITERIA):
        raise UsageError(
            f"{where}: name belongs to a criterion that ships with labeler; choose another"
        )
    ends = (table.get("low", 1), table.get("high", 5))
    if all(isinstance(end, int) and abs(end) <= FARTHEST for end in ends):
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
    if len(found.anchors) < len(table.get("anchors", ())):
        raise UsageError(f"{where}: anchors describe a score twice, such as 5 and 05")
    return Criterion(**found.model_dump())
