"""What people said about sentences: answers to a plan, corrections, and human labels.

A file of answers (``ANSWERS.csv``) needs the columns ``id``, ``sentence`` and ``answer``;
``annotator`` may name who answered, and other columns are ignored, so a filled-in plan is a file of
answers too. A second row about a sentence is its second reading.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from labeler.comparing.corrected_labels import human_labels
from labeler.comparing.human_labels import HumanLabel, read_human_labels
from labeler.data.corrections.file import is_corrections_file, read_corrections
from labeler.data.formats.csv_files import read_cells
from labeler.errors import UsageError
from labeler.evidence.units import COMPLETENESS, FIELDS, Answer, Item, Units
from labeler.labels.record import LabelRecord

LONGEST = 4000
"""Characters of a name or a text at most."""
WORDS = {True: "yes", False: "no", None: "not relevant"}
_READ = {
    **dict.fromkeys(("yes", "y", "true", "1", "1.0"), True),
    **dict.fromkeys(("no", "n", "false", "0", "0.0"), False),
    **dict.fromkeys(("not relevant", "irrelevant", "none"), None),
}


class Given(NamedTuple):
    """The contents of a file of answers.

    Attributes:
        answers: first readings.
        second: second readings.
        who: names of the people, in order of appearance.
    """

    answers: dict[Item, Answer]
    second: dict[Item, Answer]
    who: tuple[str, ...]


def read_answers(path: str | Path, units: Units, asked: Iterable[Item]) -> Given:
    """Read people's answers: a CSV file of them, or a file of corrections.

    Args:
        path: the file.
        units: the units of the metric.
        asked: the sentences of the plan. Corrections also speak of others, which do not count; nor
            do those after the first sentence without a correction.

    Raises:
        UsageError: the file cannot be read, or a row is wrong; the message names file and line.
    """
    if not is_corrections_file(path):
        if Path(path).suffix == ".json":
            raise UsageError(
                f"{path}: answers are CSV, or corrections; make these of Label Studio's export: "
                f"labeler corrections import LABELS {path}"
            )
        return collected(cells(path), units.metric)
    labels = read_labels(path, units.records.values())
    field = FIELDS[units.how.kind]
    said: dict[Item, Answer] = {**majorities(labels, field)}
    if units.metric == COMPLETENESS:
        relevant = majorities(labels, "relevant")
        said = {item: yes if relevant[item] else None for item, yes in said.items()}
    known = {item: said[item] for item in takewhile(said.__contains__, asked)}
    people = dict.fromkeys(one.annotator for one in labels if (one.id, one.sentence) in known)
    return Given(known, {}, tuple(people))


def read_labels(path: str | Path, records: Iterable[LabelRecord]) -> tuple[HumanLabel, ...]:
    """Read a file of corrections, or of human labels, as human labels.

    Args:
        path: the file.
        records: the corrected labels.

    Raises:
        UsageError: the file cannot be read.
    """
    if is_corrections_file(path):
        return human_labels(read_corrections(path).events, records).human.labels
    return read_human_labels(path).labels


def majorities(labels: Iterable[HumanLabel], field: str) -> dict[Item, bool]:
    """Return what most people say about each sentence; ties are left out.

    Args:
        labels: judgments.
        field: ``supported``, ``relevant`` or ``utilized``.
    """
    votes: dict[Item, float] = {}
    for one in labels:
        if one.field == field and one.sentence is not None:
            item = (one.id, one.sentence)
            votes[item] = votes.get(item, 0.0) + one.value - 0.5
    return {item: vote > 0 for item, vote in votes.items() if vote}


def cells(path: str | Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield ``FILE:LINE`` and the cells of each row of a plan or a file of answers."""
    for where, row in read_cells(str(path)):
        # An id may begin or end with a blank; nothing else may.
        yield where, {name: one if name == "id" else one.strip() for name, one in row.items()}


def collected(rows: Iterable[tuple[str, dict[str, str]]], metric: str) -> Given:
    """Return the answers of rows.

    Args:
        rows: as :func:`cells` yields them.
        metric: the certified metric, which says whether ``not relevant`` is an answer.

    Raises:
        UsageError: a row is wrong.
    """
    found = Given({}, {}, ())
    who: dict[str, None] = {}
    for where, row in rows:
        missing = next((name for name in ("id", "sentence", "answer") if name not in row), None)
        if missing:
            raise UsageError(f"{where}: no column {missing!r}; have id, sentence and answer")
        text = row["answer"].lower()
        if not text:
            continue
        if text not in _READ or (_READ[text] is None and metric != COMPLETENESS):
            more = " or 'not relevant'" if metric == COMPLETENESS else ""
            raise UsageError(f"{where}: answer is {row['answer']!r:.40}; it is yes or no{more}")
        item = (row["id"], row["sentence"])
        second = row.get("reading") == "2" or item in found.answers
        target = found.second if second else found.answers
        if item in target:
            raise UsageError(f"{where}: a third answer about {item!r:.120}; keep two at most")
        target[item] = _READ[text]
        if name := row.get("annotator"):
            who[name[:LONGEST]] = None
    return found._replace(who=tuple(who))
