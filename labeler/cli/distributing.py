"""Labeling on several processes or machines with Ray."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from labeler.cli.running import BUDGET_REACHED, MACHINES, SOME_FAILED
from labeler.cli.terminal import notify, plural
from labeler.errors import UsageError

if TYPE_CHECKING:
    from labeler.integrations.ray.run import Plan, Totals
    from labeler.integrations.ray.worker import PartReport, Work
    from labeler.judges.pricing import Price

Input = Annotated[
    str | None,
    typer.Option(
        "--input",
        help="With ray: Parquet files, a pattern, a folder or an address.",
        rich_help_panel=MACHINES,
    ),
]
PartRows = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="With ray: maximum rows per output file; 5000.",
        rich_help_panel=MACHINES,
    ),
]

_PROGRESS_INTERVAL = 30.0
"""Seconds between progress lines."""
_SHOWN = 3


def require_folder(output: str) -> None:
    """Reject an output that cannot be a folder of partitions.

    Raises:
        UsageError: it is standard output, or named like a file.
    """
    if output == "-" or Path(output).suffix in {".jsonl", ".parquet", ".gz"}:
        raise UsageError(
            f"--engine ray writes many Parquet files: give a folder or an address with --output, "
            f"not {output!r}"
        )


def label_in_parts(
    work: Work,
    inputs: list[str],
    *,
    workers: int | None,
    part_rows: int | None,
    price: Price | None,
) -> int:
    """Label with Ray, print the counts and cost, and return the exit code.

    Args:
        work: the work of each worker.
        inputs: paths, patterns, folders or addresses.
        workers: number of workers; by default one per processor.
        part_rows: largest number of rows per partition.
        price: price of the judge's tokens, if known.
    """
    from labeler.integrations.ray.cluster import label_on_ray, processor_count
    from labeler.integrations.ray.parts import PART_ROWS
    from labeler.integrations.ray.run import Totals, plan, run
    from labeler.integrations.ray.shards import FOLDER

    planned = plan(inputs, work, part_rows or PART_ROWS)
    workers = workers or processor_count()
    parts = plural(len(planned.parts) + planned.done, "part")
    notify(
        f"{plural(planned.rows, 'row')} in {parts}, "
        f"{planned.done} of them done before; {plural(workers, 'worker')}"
    )
    if planned.unread:
        shards = work.store / FOLDER
        notify(
            f"{plural(planned.unread, 'store')} in {shards} may hold labels of these rows, and "
            "no part looks there: of files of these names with other content, or of much smaller "
            "parts; what is only there is bought again, which 'labeler store merge "
            f"{shards} --into {work.store}' prevents"
        )
    totals = Totals()
    totals.add(planned.existing)
    try:
        for report in _with_progress(run(planned, work, label_on_ray, workers), planned, totals):
            totals.add(report)
    finally:
        _print_totals(totals, price, work)
        _print_unfinished(planned, totals, work)
    if totals.left or totals.sum.reasons["budget"]:
        return BUDGET_REACHED
    return SOME_FAILED if totals.sum.reasons else 0


def _with_progress(
    reports: Iterator[PartReport], planned: Plan, totals: Totals
) -> Iterator[PartReport]:
    """Yield reports, and print the progress of the run at intervals."""
    printed = time.monotonic()
    for report in reports:
        yield report
        if time.monotonic() - printed >= _PROGRESS_INTERVAL:
            printed = time.monotonic()
            rows = totals.sum.rows - planned.existing.rows
            notify(f"{totals.parts} of {len(planned.parts)} parts, {plural(rows, 'row')}")


def _print_totals(totals: Totals, price: Price | None, work: Work) -> None:
    from labeler.integrations.ray.shards import FOLDER
    from labeler.integrations.ray.worker import BEFORE

    total = totals.sum
    reasons = ", ".join(f"{name} {count}" for name, count in total.reasons.most_common())
    counts = [
        f"{plural(totals.parts, 'part')} written to {work.output}",
        f"{total.origins['judge']} labeled",
        f"{total.origins['store']} from the store",
        *([f"{before} labeled before"] if (before := total.origins[BEFORE]) else []),
        f"{total.reasons.total()} failed{f' ({reasons})' if reasons else ''}",
    ]
    notify(", ".join(counts))
    if total.usage.prompt_tokens or total.unmetered or total.known or total.doubtful:
        notify(_spending(totals, price))
    for message in total.failures[:_SHOWN]:
        notify(f"  {message}")
    if totals.left:
        left = plural(totals.left, "part")
        notify(f"the budget is used up: left for another run: {left}; run it again to go on")
    if totals.parts:
        shards = work.store / FOLDER
        notify(
            f"labels are stored part by part in {shards}; 'labeler store merge {shards} --into "
            f"{work.store}' makes one store of them"
        )


def _print_unfinished(planned: Plan, totals: Totals, work: Work) -> None:
    """Print the number of stored labels of unfinished parts."""
    from labeler.integrations.ray.shards import labels_stored

    left = {part.name for part in planned.parts} - totals.written
    stored = labels_stored(work.store, left) if left else 0
    if stored:
        notify(
            f"{plural(stored, 'label')} of the {plural(len(left), 'part')} that "
            f"{'is' if len(left) == 1 else 'are'} not written yet "
            f"{'is' if stored == 1 else 'are'} stored: the same command finds "
            f"{'it' if stored == 1 else 'them'} and goes on"
        )


def _spending(totals: Totals, price: Price | None) -> str:
    total = totals.sum
    reasked = f", {total.reasks} re-asked" if total.reasks else ""
    doubtful = f" and up to ${total.doubtful:.4f} without an answer" if total.doubtful else ""
    cost = f"${total.known:.4f}{doubtful} by {price.source}" if price else "price unknown"
    unknown = f", {total.unmetered} of unknown usage" if total.unmetered else ""
    usage = total.usage
    return (
        f"{plural(total.requests, 'request')}{reasked}{unknown}; {usage.prompt_tokens} prompt "
        f"tokens ({usage.cached_tokens} cached); {usage.completion_tokens} completion tokens; "
        f"{cost}"
    )
