"""Commands that read stored labels: no judge, no network, no key."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Annotated

import typer

from labeler import __version__
from labeler.characters import plain_json
from labeler.errors import UsageError

if TYPE_CHECKING:
    from labeler.record import AnyOutcome, ScoreOutcome

Labels = Annotated[str, typer.Argument(help="Label file, store folder, or - for standard input.")]
Resamples = Annotated[int, typer.Option(help="Samples that a bootstrap draws.")]
Level = Annotated[float, typer.Option(help="Level of the intervals, between 0 and 1.")]
Seed = Annotated[int, typer.Option(help="The same seed gives the same intervals.")]
Group = Annotated[
    str | None,
    typer.Option(help="Draw records that share this column together, such as question."),
]


def metrics(
    labels: Annotated[
        str | None, typer.Argument(help="Label file, store folder, or - for standard input.")
    ] = None,
    *,
    ids: Annotated[
        str | None,
        typer.Option(
            "--metrics",
            help="Ids, comma-separated, or all; by default each once that the labels allow.",
        ),
    ] = None,
    rows: Annotated[bool, typer.Option("--rows", help="One JSON object a record.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The summary as JSON.")] = False,
    by: Annotated[str | None, typer.Option(help="Summarise by this metadata column.")] = None,
    intervals: Annotated[
        bool, typer.Option(help="Give each mean of a summary a confidence interval.")
    ] = True,
    resamples: Resamples = 10_000,
    level: Level = 0.95,
    seed: Seed = 0,
    group: Group = None,
    listing: Annotated[bool, typer.Option("--list", help="Show what each metric is.")] = False,
) -> None:
    """Compute metrics from stored labels."""
    from labeler import api
    from labeler.calculators import Intervals, select_metrics, summarize
    from labeler.calculators.panels import panels_of
    from labeler.calculators.scores import measure_scores, scores_apart, summarize_scores
    from labeler.calculators.similarity import other_ids, question_metrics
    from labeler.cli import tables
    from labeler.cli.score_view import print_panels

    if (rows and (as_json or by)) or (listing and (rows or as_json or by)):
        raise UsageError("--rows goes without --json and --by, --list without all three")
    if group and (rows or listing or not intervals):
        raise UsageError("--group is for intervals: it goes without --rows, --list, --no-intervals")
    drawn = Intervals(resamples, level, seed, group) if intervals else None
    chosen, questions = select_metrics(other_ids(ids)), question_metrics(ids)
    if listing:
        every = (*select_metrics(["all"]), *question_metrics(["all"]))
        tables.print_metrics(every if ids is None else (*chosen, *questions))
        return
    if labels is None:
        raise UsageError("name a label file or a store folder; --list shows the metrics")
    asked = None if ids is None else chosen
    scores: list[ScoreOutcome] = []
    outcomes = scores_apart(api.read_any(labels), scores)
    measured = api.measured(outcomes, asked, questions=questions, column=group or "")
    if rows:
        for row in measured:
            _print_json(row.as_json(__version__))
        for row in chain(*measure_scores(scores).values()):
            _print_json(row.as_json(__version__))
        return
    first = list(islice(measured, 1))
    summary = []
    if first or not scores:
        summary = summarize(chain(first, measured), (*chosen, *questions), by, intervals=drawn)
    scored = summarize_scores(scores, by, intervals=drawn)
    if as_json:
        _print_json([row.as_json(__version__) for row in (*summary, *scored)])
    else:
        tables.print_summary(summary, __version__, drawn, chosen)
        tables.print_summary(scored, __version__, drawn)
        print_panels(panels_of(scores))


def calibrate(
    scored: Annotated[str, typer.Argument(help="Labels of the embedded judge.")],
    truth: Annotated[str, typer.Argument(help="Labels of the same records that are trusted.")],
) -> None:
    """Fit the embedded judge's threshold to labels you trust."""
    from labeler import api
    from labeler.judges.calibration import calibrate as fit
    from labeler.judges.calibration import pairs_from_records

    pairs = pairs_from_records(api.read_records(scored), api.read_records(truth))
    _print_json(fit(pairs).model_dump())


def show(
    labels: Labels,
    id: Annotated[str, typer.Argument(help="The record's id.")],  # noqa: A002 - its name on the command line
    *,
    as_json: Annotated[bool, typer.Option("--json", help="The record as JSON.")] = False,
) -> None:
    """Show one record: sentences, support or scores, explanations."""
    from labeler import api
    from labeler.cli import record_view
    from labeler.cli.terminal import say

    found = _find(api.read_any(labels), id, labels)
    scores = [outcome for outcome in found if outcome.kind == "score"]
    several = scores and scores[0] is found[0]  # by several criteria, and in trials
    shown: Sequence[AnyOutcome] = scores if several else found[:1]
    others = len(found) - len(shown)
    if others:
        say(f"the first of {others + 1} records of that id, which were labelled in different ways")
    for outcome in shown:
        if as_json:
            sys.stdout.write(plain_json(outcome.model_dump_json(indent=2)) + "\n")
        else:
            record_view.print_outcome(outcome)


def _find(outcomes: Iterable[AnyOutcome], wanted: str, labels: str) -> list[AnyOutcome]:
    """The records of an id."""
    import difflib

    ids: list[str] = []
    found: list[AnyOutcome] = []
    for outcome in outcomes:
        ids.append(outcome.id)
        if outcome.id == wanted:
            found.append(outcome)
    if found:
        return found
    near = difflib.get_close_matches(wanted, ids, n=3, cutoff=0.5) or ids[:3]
    hint = f"; for example {', '.join(map(repr, near))}" if near else ""
    raise UsageError(f"no record {wanted!r} among the {len(ids)} of {labels}{hint}")


def _print_json(value: object) -> None:
    sys.stdout.write(plain_json(json.dumps(value, ensure_ascii=False)) + "\n")
