"""Commands that show single records: one by its id, or those with the least support."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from labeler.catalog import unknown
from labeler.cli.options import Json
from labeler.cli.reading import Labels
from labeler.cli.running import Threshold, outcomes_at
from labeler.cli.terminal import notify, print_display, print_json
from labeler.errors import UnknownName
from labeler.sentences.characters import plain_json

if TYPE_CHECKING:
    from labeler.labels.record import AnyOutcome


def worst(
    labels: Labels,
    *,
    most: Annotated[int, typer.Option("--number", "-n", min=1, help="Number of records.")] = 5,
    as_json: Json = False,
    threshold: Threshold = None,
) -> None:
    """Show the records with the least support, and why."""
    from labeler.calculators.worst import worst_records

    found = worst_records(outcomes_at(labels, threshold), most)
    if as_json:
        print_json([one.as_json() for one in found])
    else:
        print_display(found)


def show(
    labels: Labels,
    id: Annotated[str, typer.Argument(help="Record id.")],  # noqa: A002 - its name on the command line
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print the record as JSON.")] = False,
) -> None:
    """Show one record: sentences, support or scores, explanations."""
    from labeler.calculators.outcomes import stored_outcomes
    from labeler.report.record_text import print_outcome

    found = _find(stored_outcomes(labels), id, labels)
    scores = [outcome for outcome in found if outcome.kind == "score"]
    several = scores and scores[0] is found[0]  # by several criteria, and in trials
    shown: Sequence[AnyOutcome] = scores if several else found[:1]
    others = len(found) - len(shown)
    if others:
        notify(
            f"the first of {others + 1} records of that id, which were labeled in different ways"
        )
    for outcome in shown:
        if as_json:
            sys.stdout.write(plain_json(outcome.model_dump_json(indent=2)) + "\n")
        else:
            print_outcome(outcome)


def _find(outcomes: Iterable[AnyOutcome], wanted: str, labels: str) -> list[AnyOutcome]:
    """Return the records of an id."""
    ids: list[str] = []
    found: list[AnyOutcome] = []
    for outcome in outcomes:
        ids.append(outcome.id)
        if outcome.id == wanted:
            found.append(outcome)
    if found:
        # A retrieval label has the id of the first row that rests on it, and its label names it.
        return [one for one in found if one.kind != "retrieval"] or found
    raise UnknownName(f"{labels}: {unknown('record id', wanted, ids, 3)}")
