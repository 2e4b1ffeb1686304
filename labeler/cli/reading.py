"""Commands that read stored labels: no judge, no network, no key."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from labeler import __version__
from labeler.characters import plain_json
from labeler.errors import UsageError

if TYPE_CHECKING:
    from labeler.record import Outcome

Labels = Annotated[str, typer.Argument(help="Label file, store folder, or - for standard input.")]


def metrics(
    labels: Annotated[
        str | None, typer.Argument(help="Label file, store folder, or - for standard input.")
    ] = None,
    *,
    ids: Annotated[
        str | None,
        typer.Option(
            "--metrics", help="Ids, comma-separated, or all; by default each metric once."
        ),
    ] = None,
    rows: Annotated[bool, typer.Option("--rows", help="One JSON object a record.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The summary as JSON.")] = False,
    by: Annotated[str | None, typer.Option(help="Summarise by this metadata column.")] = None,
    listing: Annotated[bool, typer.Option("--list", help="Show what each metric is.")] = False,
) -> None:
    """Compute metrics from stored labels."""
    from labeler import api
    from labeler.calculators import select_metrics, summarize
    from labeler.cli import tables

    if (rows and (as_json or by)) or (listing and (rows or as_json or by)):
        raise UsageError("--rows goes without --json and --by, --list without all three")
    chosen = select_metrics(ids)
    if listing:
        tables.print_metrics(select_metrics(["all"]) if ids is None else chosen)
        return
    if labels is None:
        raise UsageError("name a label file or a store folder; --list shows the metrics")
    measured = api.measured(api.read_labels(labels), chosen)
    if rows:
        for row in measured:
            _print_json(row.as_json(__version__))
        return
    summary = summarize(measured, chosen, by)
    if as_json:
        _print_json([row.as_json(__version__) for row in summary])
    else:
        tables.print_summary(summary, __version__)


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
    """Show one record: sentences, support, explanations."""
    from labeler import api
    from labeler.cli import record_view
    from labeler.cli.terminal import say

    outcome, others = _find(api.read_labels(labels), id, labels)
    if others:
        say(f"the first of {others + 1} records of that id, which were labelled in different ways")
    if as_json:
        sys.stdout.write(plain_json(outcome.model_dump_json(indent=2)) + "\n")
    else:
        record_view.print_outcome(outcome)


def _find(outcomes: Iterable[Outcome], wanted: str, labels: str) -> tuple[Outcome, int]:
    """The first record of an id, and how many more there are."""
    import difflib

    ids: list[str] = []
    found: list[Outcome] = []
    for outcome in outcomes:
        ids.append(outcome.id)
        if outcome.id == wanted:
            found.append(outcome)
    if found:
        return found[0], len(found) - 1
    near = difflib.get_close_matches(wanted, ids, n=3, cutoff=0.5) or ids[:3]
    hint = f"; for example {', '.join(map(repr, near))}" if near else ""
    raise UsageError(f"no record {wanted!r} among the {len(ids)} of {labels}{hint}")


def _print_json(value: object) -> None:
    sys.stdout.write(plain_json(json.dumps(value, ensure_ascii=False)) + "\n")
