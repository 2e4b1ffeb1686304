"""The reading of a plan of ``labeler certify``: its sentences, and a person's answers.

The texts come from the labels that the plan was made of. The answers are a CSV file: the plan
with its ``answer`` column filled in and the name of the person next to it, so ``labeler certify``
reads it as it reads a plan from a spreadsheet. It is written again with every answer, and replaces
the earlier one only when it is complete.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from functools import cache, partial
from pathlib import Path

from starlette.exceptions import HTTPException

from labeler.data.corrections.file import locked
from labeler.data.formats.text_files import read_cells
from labeler.errors import UsageError
from labeler.evidence.plan_files import (
    ANSWERS,
    WORDS,
    read_header,
    require_texts,
    texts_of,
    write_rows,
)
from labeler.labels.record import AnyOutcome
from labeler.report.views import View, safe
from labeler.review.access import PlanAnswer
from labeler.sentences.characters import visible

_SHOWN = ("id", "sentence", "ask", "question", "text", "evidence")


class PlanReading:
    """A plan, and the answers to it.

    Args:
        plan: the plan, a CSV file that ``labeler certify`` wrote.
        outcomes: the labels that it was made of; their texts are shown, whatever the file has.
        answers: file of the answers; one that exists is continued.
        annotator: the person who reads.

    Attributes:
        choices: the possible answers.

    Raises:
        UsageError: a file cannot be read, is not a plan, the plan is of other labels, or the
            answers belong to another plan.
    """

    def __init__(
        self, plan: str | Path, outcomes: Iterable[AnyOutcome], answers: str | Path, annotator: str
    ) -> None:
        self.plan, self.answers, self.annotator = str(plan), Path(answers), annotator
        self._units = units = read_header(plan).units(plan, outcomes)
        self._texts_of = cache(partial(texts_of, units))
        self.choices = [WORDS[one] for one in units.how.answers]
        self._read()
        self._writing = threading.Lock()

    def _read(self) -> None:
        """Read the plan, and the answers so far."""
        self._rows: dict[tuple[str, ...], dict[str, str]] = {}
        for where, row in read_cells(self.plan, ("id", "sentence")):
            try:
                texts = self._texts_of((row["id"], row["sentence"]))
            except KeyError as error:
                raise UsageError(
                    f"{where}: the labels have no sentence {row['sentence']!r:.40} of "
                    f"{row['id']!r:.80}; give the file that certify wrote"
                ) from error
            self._rows[_item(row)] = {"answer": "", "annotator": ""} | row | texts
        answered = read_cells(self.answers, ANSWERS) if self.answers.exists() else ()
        for where, row in answered:
            if row["answer"] and _item(row) not in self._rows:
                raise UsageError(
                    f"{where}: has sentence {row['sentence']!r:.40} of {row['id']!r:.80}, which "
                    f"{self.plan} does not ask for; give the answers to this plan, or another file"
                )
            if row["answer"]:
                own = self._rows[_item(row)]
                require_texts(where, row, own)
                own |= {"answer": row["answer"], "annotator": row.get("annotator", "")}
        # Sentences of earlier looks have their answers already.
        self._open = [row for row in self._rows.values() if row.get("look", "2")]
        if not self._open:
            raise UsageError(
                f"{self.plan}: every sentence is answered; to read more, give the plan that "
                "certify wrote last"
            )

    @property
    def left(self) -> int:
        """Number of sentences without an answer."""
        return sum(not row["answer"] for row in self._open)

    @property
    def progress(self) -> str:
        """One sentence on the sentences that are left."""
        return f"{self.left:,} of {len(self._open):,} sentences left to read"

    def overview(self) -> View:
        """Return the facts that the page starts with."""
        return {
            "annotator": visible(self.annotator),
            "choices": self.choices,
            "next_open": self._next_open(-1),
        }

    def show(self, position: int) -> View:
        """Return a sentence, and whether it is read a second time (``again``).

        Raises:
            HTTPException: the position does not exist.
        """
        row = self._row(position)
        documents = ""
        if self._units.how.kind == "support":  # the judge may have named the wrong ones
            every = self._units.records[row["id"]].example.evidence_sentences()
            documents = "\n".join(one.text for one in every)
        return {
            "position": position,
            "size": len(self._open),
            "left": self.left,
            "next_open": self._next_open(position),
            "again": row.get("reading") == "2",
            "answer": visible(row["answer"]),
            "texts": safe({name: row.get(name, "") for name in _SHOWN} | {"documents": documents}),
        }

    def save(self, position: int, message: PlanAnswer) -> View:
        """Save an answer, or withdraw it; it is in the file when this method returns.

        Raises:
            HTTPException: the answer is not one of :attr:`choices`, or the page is outdated.
        """
        if message.answer is not None and message.answer not in self.choices:
            raise HTTPException(422, f"the answers are: {', '.join(self.choices)}")
        with self._writing, locked(self.plan):
            self._read()  # another session may have written since
            row = self._row(position)
            if (message.id, message.sentence) != (visible(row["id"]), visible(row["sentence"])):
                raise HTTPException(409, "another sentence is here now; load the page again")
            if message.before != visible(row["answer"]):
                raise HTTPException(409, "somebody has answered this since; load the page again")
            name = self.annotator if message.answer else ""
            given = row | {"answer": message.answer or "", "annotator": name}
            rows = (given if one is row else one for one in self._rows.values())
            write_rows(self.answers, [*row], rows)
            row.update(given)
        return self.show(position)

    def _row(self, position: int) -> dict[str, str]:
        if not 0 <= position < len(self._open):
            raise HTTPException(404, f"there is no such sentence; there are {len(self._open)}")
        return self._open[position]

    def _next_open(self, position: int) -> int | None:
        """Return the position of the next sentence without an answer, from the start at last."""
        places = [*range(position + 1, len(self._open)), *range(max(position, 0))]
        return next((place for place in places if not self._open[place]["answer"]), None)


def _item(row: dict[str, str]) -> tuple[str, ...]:
    return row["id"], row["sentence"], row.get("reading") or "1"
