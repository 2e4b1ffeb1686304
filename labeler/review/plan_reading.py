"""Sentences of a plan to read, and the answers of one person, kept in a CSV file.

The file of answers is the plan with its ``answer`` column filled in and the name of the person
next to it, so ``labeler certify`` reads it as it reads a plan from a spreadsheet. It is written
again with every answer, and replaces the earlier one only when it is complete.
"""

from __future__ import annotations

import csv
import json
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from starlette.exceptions import HTTPException
from typing_extensions import TypedDict

from labeler.data.formats.csv_files import read_cells
from labeler.data.label_files import replaced
from labeler.errors import UsageError
from labeler.review.messages import PlanAnswer
from labeler.sentences.characters import escape_formula, visible

PlanWord = Literal["yes", "no", "not relevant"]

COLUMNS = ("id", "sentence", "text")
"""Columns that a plan needs."""
ANSWER, ANNOTATOR, LOOK = "answer", "annotator", "look"
_SHOWN = ("id", "sentence", "ask", "question", "text", "evidence")
_MOST_ROWS = 100_000


class ReadingView(TypedDict):
    """A sentence of the plan, for the page."""

    position: int
    size: int
    left: int
    """Sentences without an answer."""
    next_open: int | None
    """Position of the next sentence without an answer; ``null`` if there is none."""
    again: bool
    """Whether the sentence is read a second time."""
    answer: str
    """The person's answer; empty without one."""
    texts: dict[str, str]


class PlanReading:
    """A plan, and the answers to it.

    Args:
        plan: the plan, a CSV file with the columns ``id``, ``sentence`` and ``text``, and best
            ``question``, ``evidence`` and ``ask``.
        answers: file of the answers; one that exists is continued.
        annotator: the person who reads.

    Raises:
        UsageError: a file cannot be read, is not a plan, or the answers belong to another plan.
    """

    def __init__(self, plan: str | Path, answers: str | Path, annotator: str) -> None:
        self.plan, self.answers, self.annotator = str(plan), Path(answers), annotator
        self._rows = _rows(plan, COLUMNS)
        if self.answers.exists():
            self._continue(_rows(answers, ("id", "sentence", ANSWER)))
        # Sentences of earlier looks have their answers already.
        self._open = [row for row in self._rows if LOOK not in row or row[LOOK]]
        if not self._open:
            raise UsageError(f"{plan}: no sentence to read; give the file that certify wrote last")
        self.saved = 0
        """Number of answers saved in this session."""
        self._writing = threading.Lock()

    @property
    def choices(self) -> list[PlanWord]:
        """The possible answers."""
        yes_or_no: list[PlanWord] = ["yes", "no"]
        return (
            [*yes_or_no, "not relevant"] if _metric(self._rows[0]) == "completeness" else yes_or_no
        )

    @property
    def progress(self) -> str:
        """One sentence on the sentences that are left."""
        left = sum(not row[ANSWER] for row in self._open)
        return f"{left:,} of {len(self._open):,} sentences left to read"

    def overview(self) -> dict[str, Any]:
        """Return the facts that the page starts with."""
        return {
            "annotator": visible(self.annotator),
            "choices": self.choices,
            "next_open": self._next_open(-1),
        }

    def show(self, position: int) -> ReadingView:
        """Return a sentence.

        Raises:
            HTTPException: the position does not exist.
        """
        row = self._row(position)
        return {
            "position": position,
            "size": len(self._open),
            "left": sum(not one[ANSWER] for one in self._open),
            "next_open": self._next_open(position),
            "again": row.get("reading") == "2",
            "answer": visible(row[ANSWER]),
            "texts": {name: visible(row.get(name, "")) for name in _SHOWN},
        }

    def save(self, position: int, message: PlanAnswer) -> ReadingView:
        """Save an answer, or withdraw it; it is in the file when this method returns.

        Raises:
            HTTPException: the answer is not one of :attr:`choices`, or the page is outdated.
        """
        row = self._row(position)
        if (message.id, message.sentence) != (visible(row["id"]), visible(row["sentence"])):
            raise HTTPException(409, "another sentence is at this position; load the page again")
        if message.answer is not None and message.answer not in self.choices:
            raise HTTPException(422, f"the answers are: {', '.join(self.choices)}")
        with self._writing:
            before = row[ANSWER], row[ANNOTATOR]
            row[ANSWER] = message.answer or ""
            row[ANNOTATOR] = self.annotator if message.answer else ""
            try:
                self._write()
            except BaseException:
                row[ANSWER], row[ANNOTATOR] = before
                raise
            self.saved += 1 if message.answer else -1
        return self.show(position)

    def _row(self, position: int) -> dict[str, str]:
        if not 0 <= position < len(self._open):
            raise HTTPException(404, f"there is no such sentence; there are {len(self._open)}")
        return self._open[position]

    def _next_open(self, position: int) -> int | None:
        places = [*range(position + 1, len(self._open)), *range(max(position, 0))]
        return next((place for place in places if not self._open[place][ANSWER]), None)

    def _continue(self, answered: Sequence[Mapping[str, str]]) -> None:
        """Take over the answers of a file."""
        known = {_item(row): row for row in answered if row[ANSWER]}
        rows = {_item(row): row for row in self._rows}
        if foreign := next((one for one in known if one not in rows), None):
            raise UsageError(
                f"{self.answers}: has sentence {foreign[1]!r:.40} of {foreign[0]!r:.80}, which "
                f"{self.plan} does not ask for; give the answers to this plan, or another file"
            )
        for item, row in known.items():
            rows[item][ANSWER], rows[item][ANNOTATOR] = row[ANSWER], row.get(ANNOTATOR, "")

    def _write(self) -> None:
        with replaced(self.answers) as file:
            writer = csv.writer(file)  # as write_plan does
            writer.writerow(self._rows[0])
            for row in self._rows:
                writer.writerow([escape_formula(cell) for cell in row.values()])


def _item(row: Mapping[str, str]) -> tuple[str, str, str]:
    return row["id"], row["sentence"], row.get("reading") or "1"


def _metric(row: Mapping[str, str]) -> str | None:
    """Return the metric of a plan, which its column ``plan`` states in JSON."""
    try:
        return str(json.loads(row["plan"])["goal"]["metric"])
    except (ValueError, RecursionError, KeyError, TypeError):
        return None


def _rows(path: str | Path, needed: Sequence[str]) -> list[dict[str, str]]:
    """Return the rows of a CSV file, each with an answer and an annotator, empty or not."""
    rows: list[dict[str, str]] = []
    for where, row in read_cells(str(path)):
        if missing := [name for name in needed if name not in row]:
            raise UsageError(
                f"{where}: no column {missing[0]!r}; a plan has {', '.join(COLUMNS)}: give "
                "the file that labeler certify wrote"
            )
        if len(rows) == _MOST_ROWS:
            raise UsageError(f"{path}: more than {_MOST_ROWS:,} rows; nobody reads so many")
        rows.append({**row, ANSWER: row.get(ANSWER, "").strip(), ANNOTATOR: row.get(ANNOTATOR, "")})
    if not rows:
        raise UsageError(f"{path}: no sentence to read; give the file that labeler certify wrote")
    return rows
