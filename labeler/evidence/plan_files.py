"""Plans and people's answers as CSV files, for spreadsheets, annotation tools and the review app.

A plan has the :data:`COLUMNS`, with one row a sentence in the order to read them: ``plan`` is a
:class:`PlanHeader` and equal in all rows, ``look`` is empty for sentences of earlier looks, and
``reading`` is 2 for a sentence that is read again. A file of answers needs :data:`ANSWERS`;
``annotator`` may name who answered, and other columns are ignored, so a filled-in plan is one too.
Another row about a sentence is its second reading. Corrections answer a plan, too.

Each function raises :class:`UsageError` for a file that it cannot read or write, and names the
file, and the line of a wrong row.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, takewhile
from pathlib import Path

from pydantic import ValidationError

from labeler.audit import Subject
from labeler.comparing.calibration import FIELDS
from labeler.comparing.human_labels import VERDICTS, judgments_in, majorities
from labeler.data.corrections.file import is_corrections_file
from labeler.data.formats.text_files import read_cells
from labeler.data.label_files import replaced
from labeler.errors import UsageError, describe_faults
from labeler.evidence.certificate import Goal
from labeler.evidence.doubt import Coefficients, Doubt
from labeler.evidence.plan import Plan
from labeler.evidence.units import Answer, Item, Readings, Units
from labeler.labels.answers import judged_sentences
from labeler.labels.record import AnyOutcome
from labeler.sentences.characters import escape_formula, visible
from labeler.sentences.example import Frozen
from labeler.sentences.words import surface_words

COLUMNS = (
    *("plan", "look", "reading", "id", "sentence", "probability"),
    *("ask", "question", "text", "evidence", "answer"),
)
ANSWERS = ("id", "sentence", "answer")
"""Columns that a file of answers needs."""
WORDS = {True: "yes", False: "no", None: "not relevant"}
_ANSWERS = VERDICTS | dict.fromkeys(("not relevant", "irrelevant"))
_LONGEST = 4000
"""Characters of a name or a text at most."""
_TELLING = 4
"""Words of a text from which it is compared with the label's."""
_NEAREST = 3
"""Document sentences that are shown where the judge named none."""


class PlanHeader(Frozen):
    """What a plan follows from, but for labels and answers: the column ``plan``."""

    goal: Goal
    labels: str
    """Digest of the labels."""
    who: tuple[str, ...] = ()
    doubt: Coefficients | None = None
    """The model of doubt that it was made with; ``None`` without one."""

    def units(
        self, path: str | Path, outcomes: Iterable[AnyOutcome], doubt: Doubt | None = None
    ) -> Units:
        """Return the units of the plan, and reject other labels than its own."""
        units = Units(outcomes, self.goal.metric, doubt)
        if units.digest() != self.labels:
            raise UsageError(
                f"{path}: the plan was made of other labels, or these changed since, so its "
                "answers do not fit; give the labels as they were, or begin a new plan"
            )
        return units


def write_plan(plan: Plan, path: str | Path) -> None:
    """Write a plan with the answers so far; the file, ``.csv``, appears when it is complete."""
    if Path(path).suffix != ".csv":
        raise UsageError(f"{path}: a plan is a .csv file")
    units, look = plan.units, str(plan.look)
    model = units.doubt.coefficients if units.doubt else None
    header = PlanHeader(goal=plan.goal, labels=units.digest(), who=plan.who, doubt=model)
    same = {"plan": header.model_dump_json(exclude_defaults=True)}
    rows: list[tuple[Item, dict[str, str]]] = [
        (item, {"reading": reading, "answer": WORDS[answer]})
        for reading, answers in (("1", plan.answers), ("2", plan.second))
        for item, answer in answers.items()
    ]
    for one in plan.sentences:
        own = {"look": look, "reading": "1", "probability": repr(one.probability)}
        rows.append((one[:2], own))
    again = [item for item in plan.again if item not in plan.second]
    rows += [(item, {"look": look, "reading": "2"}) for item in again]
    write_rows(path, COLUMNS, (same | texts_of(units, item) | own for item, own in rows))


def write_rows(path: str | Path, columns: Sequence[str], rows: Iterable[Mapping[str, str]]) -> None:
    """Write rows as CSV without formulas; the file appears when it is complete."""
    with replaced(Path(path)) as file:
        # A lone CR is quoted only with the default line end.
        writer = csv.DictWriter(file, columns, restval="")
        writer.writeheader()
        for row in rows:
            writer.writerow({name: escape_formula(cell) for name, cell in row.items()})


def texts_of(units: Units, item: Item) -> dict[str, str]:
    """Return the cells that say what is read, and against what.

    Raises:
        KeyError: the labels have no such sentence.
    """
    name, key = item
    record, kind = units.records[name], units.how.kind
    subject, evidence = Subject(record), ""
    if kind == "support":  # the sentences that the judge named, else the nearest ones by words
        entry, words = judged_sentences(subject.label).get(key), {*subject.words(key)}
        shown = [one for one in subject.named(entry) if one in subject.texts] if entry else []
        if not shown:
            shared = {one: len(words.intersection(subject.words(one))) for one in subject.evidence}
            shown = sorted(shared, key=lambda one: -shared[one])[:_NEAREST]
        evidence = "\n".join(subject.texts[one] for one in shown)
    elif kind == "utilization":
        evidence = " ".join(one.text for one in record.example.response)
    question, text = record.example.question, subject.texts[key]
    texts = {"ask": units.how.ask, "question": question, "text": text, "evidence": evidence}
    cut = {column: visible(part)[:_LONGEST] for column, part in texts.items()}
    return {"id": name, "sentence": key, **cut}


def read_header(path: str | Path) -> PlanHeader:
    """Return the header of a plan; all its rows have the same."""
    plans = {row["plan"] for _, row in read_cells(path, ("plan", "id", "sentence"))}
    if len(plans) > 1:
        raise UsageError(f"{path}: rows of two plans in one file; keep one plan's")
    try:
        return PlanHeader.model_validate_json(plans.pop() if plans else "")
    except (ValidationError, UsageError) as error:
        fault = describe_faults(error) if isinstance(error, ValidationError) else error
        message = f"{path}: not a plan: {fault}; give the file that certify wrote"
        raise UsageError(message) from error


def read_plan(path: str | Path, outcomes: Iterable[AnyOutcome]) -> Plan:
    """Read a plan again, and check that it follows from the labels and its answers."""
    header = read_header(path)
    units = header.units(path, outcomes, Doubt(header.doubt) if header.doubt else None)
    old = (one for one in read_cells(path, ANSWERS) if not one[1].get("look"))
    known = _collected(old, units)._replace(who=header.who)
    try:
        return Plan(header.goal, units, known)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from error


def read_answers(path: str | Path, plan: Plan) -> Readings:
    """Read people's answers to a plan: a CSV file of them, or a file of corrections.

    Corrections of sentences outside the plan do not count, nor do any after the first sentence
    without a correction.
    """
    units, how = plan.units, plan.units.how
    if not is_corrections_file(path):
        if Path(path).suffix.lower() not in {".csv", ".tsv", ".txt", ""}:
            raise UsageError(
                f"{path}: answers are CSV, as which a spreadsheet can be saved, or corrections, "
                "which 'labeler corrections import' makes of Label Studio's export"
            )
        found = _collected(read_cells(path, ANSWERS), units)
        if not (found.answers or found.second):
            raise UsageError(f"{path}: no answer is there; fill in the column 'answer' of the plan")
        return found
    labels = judgments_in(path, units.records.values())
    said: dict[Item, Answer] = {**majorities(labels, FIELDS[how.kind])}
    if None in how.answers:
        relevant = majorities(labels, "relevant")
        said = {i: yes if relevant[i] else None for i, yes in said.items() if i in relevant}
    old = filter(said.__contains__, plan.answers)
    new = takewhile(said.__contains__, (one[:2] for one in plan.sentences))
    known = {item: said[item] for item in (*old, *new)}
    people = dict.fromkeys(one.annotator for one in labels if (one.id, one.sentence) in known)
    return Readings(known, {}, tuple(people))


def require_texts(where: str, row: Mapping[str, str], own: Mapping[str, str]) -> None:
    """Reject a row with another question or text than the plan; of a plan, with any other text.

    Few words are not compared: a spreadsheet may have taken them for a number or a date.
    """
    for column in ("ask", "text", *(("question", "evidence") if "plan" in row else ())):
        shown = surface_words(row.get(column, ""))
        if column in own and len(shown) >= _TELLING and shown != surface_words(own[column]):
            raise UsageError(
                f"{where}: {column} is {row[column]!r:.80}, and the plan has {own[column]!r:.80} "
                "there; give the answers to this plan, as certify wrote it"
            )


def _collected(rows: Iterable[tuple[str, Mapping[str, str]]], units: Units) -> Readings:
    """Return the answers of rows; one of the same person, or of the same reading, counts once."""
    answers: dict[Item, Answer] = {}
    second: dict[Item, Answer] = {}
    known: dict[tuple[str, ...], Answer] = {}
    words = {word: answer for word, answer in _ANSWERS.items() if answer in units.how.answers}
    sentences = {*chain.from_iterable(units.units)}
    for where, row in rows:
        if not (text := row["answer"]):
            continue
        if text.lower() not in words:
            more = "; or 'not relevant'" if None in words.values() else ""
            raise UsageError(
                f"{where}: answer is {text!r:.40}; allowed: yes or no (true, false, 1, 0){more}"
            )
        answer, item = words[text.lower()], (row["id"], row["sentence"])
        own_texts = texts_of(units, item) if item in sentences else {"ask": units.how.ask}
        require_texts(where, row, own_texts)
        name = row.get("annotator", "")[:_LONGEST]
        reading = row.get("reading", "").removesuffix(".0")  # a spreadsheet may have numbers
        own = (name, reading, *item)
        is_known = (name or reading) and own in known
        if is_known and known[own] == answer:
            continue
        target = second if reading == "2" or item in answers else answers
        if is_known or item in target:
            of = f" of {name!r:.40}" if name else ""
            raise UsageError(
                f"{where}: another answer{of} about {item!r:.120} than in an earlier row; keep one "
                "of each person, and two at most"
            )
        known[own] = target[item] = answer
    return Readings(answers, second, tuple(dict.fromkeys(name for name, *_ in known if name)))
