"""Plans as CSV files, for spreadsheets, annotation tools and the review app.

A plan (``PLAN.csv``) has one row a sentence, in the order to read them:

=============== ==================================================================================
column          content
=============== ==================================================================================
``plan``        goal, seed and digest of the labels; equal in all rows
``look``        number of the look, from 1; empty for sentences of earlier looks
``reading``     1, or 2 for a sentence that is read a second time, best by another person
``id``          the record's id
``sentence``    key of the sentence
``probability`` chance that its unit was drawn next, among those unread before it
``ask``         the question to answer
``question``    the record's question
``text``        the sentence
``evidence``    what it is read against: supporting document sentences, question or response
``answer``      yes or no, for completeness also ``not relevant``; empty until it is read
=============== ==================================================================================

Cells that a spreadsheet would take for formulas
begin with an apostrophe.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from labeler.data.label_files import replaced
from labeler.errors import UsageError
from labeler.evidence.goal import Goal
from labeler.evidence.people import LONGEST, WORDS, cells, collected
from labeler.evidence.plan import Plan, make_plan
from labeler.evidence.units import Item, Units
from labeler.labels.answers import SPECIAL_SUPPORT, judged_sentences
from labeler.labels.record import AnyOutcome, LabelRecord
from labeler.sentences.characters import escape_formula, visible
from labeler.sentences.words import stems, surface_words

COLUMNS = (
    *("plan", "look", "reading", "id", "sentence", "probability"),
    *("ask", "question", "text", "evidence", "answer"),
)
_NEAREST = 3
"""Document sentences that are shown where the judge named none."""


def write_plan(plan: Plan, path: str | Path) -> None:
    """Write a plan with the answers so far; the file appears when it is complete.

    Args:
        plan: the plan.
        path: the file, ``.csv``.

    Raises:
        UsageError: the name ends otherwise, or the file cannot be written.
    """
    if Path(path).suffix != ".csv":
        raise UsageError(f"{path}: a plan is a .csv file")
    header = _header(plan)
    with replaced(Path(path)) as file:
        # A lone CR is quoted only with the default line end.
        writer = csv.DictWriter(file, COLUMNS, restval="")
        writer.writeheader()
        for item, facts in _rows(plan):
            row = {"plan": header, **_texts(plan.units, item), **facts}
            writer.writerow({name: escape_formula(cell) for name, cell in row.items()})


def _header(plan: Plan) -> str:
    goal = {name: value for name, value in vars(plan.goal).items() if value is not None}
    facts = {**goal, "labels": plan.units.digest(), "looks": list(plan.looks)}
    if plan.who:
        facts["who"] = list(plan.who)
    if plan.units.doubted:
        facts["doubt"] = plan.units.doubted
    return json.dumps(facts, separators=(",", ":"))


def _rows(plan: Plan) -> Iterator[tuple[Item, dict[str, str]]]:
    """Yield the sentences of the rows, and what differs between rows of a sentence."""
    for item, answer in plan.answers.items():
        yield item, {"reading": "1", "answer": WORDS[answer]}
    for item, answer in plan.second.items():
        yield item, {"reading": "2", "answer": WORDS[answer]}
    look = str(plan.look)
    for one in plan.sentences:
        yield one[:2], {"look": look, "reading": "1", "probability": repr(one.probability)}
    for item in plan.again:
        yield item, {"look": look, "reading": "2"}


def _texts(units: Units, item: Item) -> dict[str, str]:
    name, key = item
    record = units.records[name]
    text, evidence = shown(units, record, key)
    texts = {"question": record.example.question, "text": text, "evidence": evidence}
    cut = {column: visible(part)[:LONGEST] for column, part in texts.items()}
    return {"id": name, "sentence": key, "ask": units.how.ask, **cut}


def shown(units: Units, record: LabelRecord, key: str) -> tuple[str, str]:
    """Return the text of a sentence and the text that it is read against.

    Args:
        units: the units of the metric.
        record: the record of the sentence.
        key: key of the sentence.
    """
    example = record.example
    if units.how.kind == "support":
        texts = {one.key: one.text for one in example.response}
        return texts[key], "\n".join(_evidence(record, key, texts[key]))
    texts = {one.key: one.text for one in example.document_sentences()}
    relevance = units.how.kind == "relevance"
    return texts[key], example.question if relevance else " ".join(
        one.text for one in example.response
    )


def _evidence(record: LabelRecord, key: str, text: str) -> list[str]:
    """Return the sentences that support a response sentence, else the nearest ones by words."""
    texts = {one.key: one.text for one in record.example.evidence_sentences()}
    entry = judged_sentences(record.label).get(key)
    named = entry.supporting_sentence_keys if entry else ()
    found = [texts[one] for one in named if one not in SPECIAL_SUPPORT and one in texts]
    if found:
        return found
    words = set(stems(surface_words(text)))
    common = {one: len(words & set(stems(surface_words(texts[one])))) for one in texts}
    return [texts[one] for one in sorted(common, key=lambda one: -common[one])[:_NEAREST]]


def read_plan(
    path: str | Path, outcomes: Iterable[AnyOutcome], doubts: Mapping[Item, float] | None = None
) -> Plan:
    """Read a plan again, and check that it follows from the labels.

    Args:
        path: the file.
        outcomes: the labels that it was made from.
        doubts: those that it was made with.

    Raises:
        UsageError: the file is not a plan, was changed, or the labels changed since it was written.
    """
    header, rows = "", []
    for where, row in cells(path):
        missing = next((name for name in ("plan", "id", "sentence") if name not in row), None)
        if missing:
            raise UsageError(f"{where}: no column {missing!r}; give the file that certify wrote")
        if row["plan"] != (header := header or row["plan"]):
            raise UsageError(f"{where}: rows of two plans in one file; keep those of one")
        rows.append((where, row))
    try:
        facts = json.loads(header)
        labels, looks = facts.pop("labels"), tuple(map(int, facts.pop("looks")))
        doubted, who = facts.pop("doubt", None), tuple(map(str, facts.pop("who", ())))
        goal = Goal(**facts)
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
        raise UsageError(f"{path}: not a plan; give the file that certify wrote") from error
    plan = make_plan(outcomes, goal, doubts)
    if plan.units.digest() != labels:
        raise UsageError(
            f"{path}: the labels changed since the plan was made, so its answers no longer fit; "
            "give the labels as they were, or begin a new plan"
        )
    if plan.units.doubted != doubted:
        raise UsageError(
            f"{path}: the plan was made with {'another' if doubted else 'no'} model of doubt; give "
            "the same one (--doubt MODEL), or none"
        )
    return replace(_replayed(plan, looks, rows, path), who=who)


def _replayed(
    plan: Plan, looks: tuple[int, ...], rows: list[tuple[str, dict[str, str]]], path: str | Path
) -> Plan:
    """Return the plan after its earlier looks, drawn again and compared with the file."""
    old = [(where, row) for where, row in rows if not row.get("look")]
    given = collected(old, plan.units.metric)
    for size in looks:
        items = plan.first(size)
        known = {item: given.answers[item] for item in items if item in given.answers}
        following = plan.certificate({**plan.answers, **known})
        if not isinstance(following, Plan) or following.looks[-1] != size:
            raise UsageError(f"{path}: answers of an earlier look were changed; begin a new plan")
        plan = following
    plan = replace(plan, second=given.second)
    drawn = {(one.id, one.sentence) for one in plan.sentences}
    for where, row in rows:
        item = (row["id"], row["sentence"])
        if row.get("look") and item not in drawn:
            raise UsageError(f"{where}: {item!r:.120} was not drawn by this plan; it was added")
    return plan
