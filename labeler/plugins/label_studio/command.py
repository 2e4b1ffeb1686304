"""Commands that exchange corrections with Label Studio."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from labeler.cli.files import reject_overwrite, reject_own_input
from labeler.cli.review import SHOWN, Labels, more_lines, report_truncated
from labeler.cli.terminal import notify, plural
from labeler.data.lines import STDIO
from labeler.errors import UsageError

if TYPE_CHECKING:
    from labeler.plugins.label_studio.answers import Imported
    from labeler.review.label_set import Chosen


def export(
    labels: Labels,
    *,
    output: Annotated[str, typer.Option("--output", "-o", help="File of tasks to write, as JSON.")],
    top: Annotated[
        int | None, typer.Option(min=1, help="Only the N most suspicious records.")
    ] = None,
    sample: Annotated[int | None, typer.Option(min=1, help="Only N random records.")] = None,
    seed: Annotated[int, typer.Option(help="Random seed of the sample.")] = 0,
    blind: Annotated[
        bool, typer.Option("--blind", help="Hide the judge's label from annotators.")
    ] = False,
) -> None:
    """Write labels as tasks for Label Studio.

    The labeling configuration of the project goes to OUTPUT.config.xml.
    """
    from labeler import api
    from labeler.data.label_files import replaced
    from labeler.plugins.label_studio.tasks import labeling_configuration
    from labeler.review.label_set import choose

    if top is not None and sample is not None:
        raise UsageError("--top and --sample choose in two ways: give one of them")
    if output == STDIO:
        raise UsageError("--output: name a file: the labeling configuration is written next to it")
    configuration = f"{output.removesuffix('.json')}.config.xml"
    for path in (output, configuration):
        reject_overwrite([labels], path)
    chosen = choose(api.stored_outcomes(labels), top=top, sample=sample, seed=seed)
    written = _write_tasks(chosen, Path(output), blind=blind, labels=labels)
    with replaced(Path(configuration)) as file:
        file.write(labeling_configuration())
    tasks = plural(written, "task")
    notify(f"{tasks} written to {output}; the labeling configuration to {configuration}")


def import_(
    labels: Labels,
    exported: Annotated[str, typer.Argument(help="JSON file that Label Studio exported.")],
    *,
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", help="Corrections file to add to; by default next to the labels."
        ),
    ] = None,
    annotator: Annotated[
        list[str] | None,
        typer.Option(help="Rename an annotator: THEIRS=OURS; repeatable."),
    ] = None,
) -> None:
    """Add answers from Label Studio to the corrections, once."""
    from datetime import UTC, datetime

    from labeler import api
    from labeler.data.corrections.file import CorrectionsFile, corrections_path
    from labeler.plugins.label_studio.answers import import_answers, read_exported, read_names

    path = Path(output) if output else corrections_path(labels)
    reject_own_input([labels, exported], str(path))
    file = CorrectionsFile(path)
    file.check_appendable()
    read = file.read()
    report_truncated(read.torn)
    imported = import_answers(
        read_exported(exported),
        api.stored_outcomes(labels),
        read.events,
        now=lambda: datetime.now(UTC),
        names=read_names(annotator or []),
    )
    if imported.tasks and imported.strange == imported.tasks:
        raise UsageError(
            f"{exported}: none of its {imported.tasks} tasks speaks of a label of {labels}: name "
            "the label file that was exported"
        )
    file.append(*imported.added)
    for line in _import_summary(imported):
        notify(line)
    notify(f"{plural(len(imported.added), 'correction')} added to {path}")


def _write_tasks(chosen: Iterable[Chosen], path: Path, *, blind: bool, labels: str) -> int:
    """Write tasks as a JSON array in ASCII, and return their number.

    Raises:
        UsageError: there is no task; an existing file is kept.
    """
    from labeler.data.label_files import replaced
    from labeler.plugins.label_studio.tasks import task_of

    written = 0
    with replaced(path) as file:
        file.write("[")
        for each in chosen:
            file.write(",\n" if written else "\n")
            file.write(json.dumps(task_of(each, blind=blind)))
            written += 1
        if not written:
            raise UsageError(
                f"{labels}: no label is there to write to {path}: name what labeler label wrote"
            )
        file.write("\n]\n")
    return written


def _import_summary(imported: Imported) -> Iterator[str]:
    opinions = ", ".join(f"{count} {name}" for name, count in imported.opinions.most_common())
    yield (
        f"new answers: {len(imported.added)}{f' ({opinions})' if opinions else ''}; known already: "
        f"{imported.known}; older than what the same person said since: {imported.older}; tasks "
        f"without an answer: {imported.unanswered}"
    )
    if imported.ignored:
        yield f"left out: {len(imported.ignored)}"
        yield from (f"  {why:.300}" for why in imported.ignored[:SHOWN])
        yield from more_lines(len(imported.ignored))
    people = Counter(correction.annotator for correction in imported.added)
    if people:
        yield "by " + ", ".join(f"{name} {count}" for name, count in people.most_common(SHOWN))
