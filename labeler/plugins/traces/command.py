"""The command that makes rows of traces of production."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from labeler.cli import options
from labeler.cli.files import check_label_target, watching
from labeler.cli.terminal import SOME_FAILED, notify, plural
from labeler.data.lines import STDIO
from labeler.errors import UsageError

if TYPE_CHECKING:
    from labeler.plugins.traces.importing import TraceCounts


_NO_TRACE = "the files hold no trace, or --sample takes none of theirs"


def import_traces(
    files: Annotated[
        list[str],
        typer.Argument(
            help="Spans as OTLP JSON (OpenInference, OpenTelemetry GenAI), or from Phoenix, "
            "Langfuse or MLflow: JSON Lines, JSON, CSV, Parquet; - reads JSON Lines from stdin."
        ),
    ],
    *,
    output: options.Output = STDIO,
    sample: Annotated[
        float, typer.Option(help="Share of the traces, from 0 to 1, by a hash of their ids.")
    ] = 1.0,
    seed: Annotated[int, typer.Option(help="Seed of that hash.")] = 0,
    per_day: Annotated[
        int | None, typer.Option(min=1, help="Only N traces of each day in UTC, by that hash.")
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            help="Only traces with this attribute or metadata: KEY=VALUE, such as user=7; "
            "repeatable, all must hold."
        ),
    ] = None,
) -> int:
    """Join the spans of traces into rows: question, documents, response."""
    from labeler.data.label_files import is_table
    from labeler.plugins.traces.importing import TraceChoice, TraceCounts, read_traces

    check_label_target(files, output)
    if is_table(output):
        raise UsageError(f"{output}: rows of traces are JSON Lines: name a file such as rows.jsonl")
    choice = TraceChoice(sample=sample, seed=seed, per_day=per_day, where=where or ())
    counts = TraceCounts()
    with watching("joining") as watched:
        _write(watched(read_traces(files, choice, counts)), output, counts)
    for line in _summary(counts):
        notify(line)
    where_to = "standard output" if output == STDIO else output
    notify(
        f"{plural(counts.rows, 'row')} of {plural(counts.traces, 'trace')} written to {where_to}"
    )
    return SOME_FAILED if counts.faults else 0


def _write(rows: Iterable[dict[str, Any]], output: str, counts: TraceCounts) -> None:
    """Write rows as JSON Lines.

    Raises:
        UsageError: there is none; an existing file is kept.
    """
    from labeler.data.label_files import replaced
    from labeler.sentences.characters import plain_json

    is_shown = output == STDIO
    with nullcontext(sys.stdout) if is_shown else replaced(Path(output)) as file:
        for row in rows:
            line = json.dumps(row, ensure_ascii=False)
            file.write(f"{plain_json(line) if is_shown else line}\n")
        if not counts.rows:
            why = "; ".join(line.strip() for line in _summary(counts)) or _NO_TRACE
            raise UsageError(f"no trace gives a row: {why}")


def _summary(counts: TraceCounts) -> Iterator[str]:
    """Yield lines about traces that give no row, and what was odd about the others."""
    from labeler.plugins.traces.conventions import REASONS

    for reason, count in counts.unjoined.most_common():
        first = counts.examples[reason]
        yield f"{plural(count, 'trace')} {REASONS[reason]} ({reason}); the first is {first}"
    for reason, count in counts.faults.most_common():
        yield f"{count:,} unreadable ({reason}); the first: {counts.examples[reason]}"
    notes = {
        "filtered out by --where": counts.filtered,
        "over --per-day": counts.over_limit,
        "joined without their root, which is in no file": counts.without_root,
    }
    for note, count in notes.items():
        if count:
            yield f"{plural(count, 'trace')} {note}"
    if counts.with_media:
        yield f"{plural(counts.with_media, 'row')} with images or files, which no judge is shown"
    if counts.repeated:
        yield f"{plural(counts.repeated, 'span')} occurred twice, alike, and counted once"
    if counts.replaced:
        yield f"{plural(counts.replaced, 'span')} occurred twice, unlike: the last one counts"
