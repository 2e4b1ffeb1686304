"""The command that applies corrections of labels."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from labeler.calculators.headline import headline_metrics, in_words, plain_name
from labeler.cli.running import check_label_target
from labeler.cli.terminal import notify, plural
from labeler.errors import UsageError

if TYPE_CHECKING:
    from labeler.calculators import SummaryRow
    from labeler.comparing.corrected_labels import MeanChange
    from labeler.data.corrections.applying import Applied, Ignored

STDIO = "-"
SHOWN = 5
"""Largest number of items listed."""
_REASONS = {
    "no_label": "of labels that are not there",
    "unsure": "unsure",
    "no_judgment": "without a judgment",
    "does_not_fit": "that do not fit their label",
}

Labels = Annotated[str, typer.Argument(help="Label file or store folder of the judge's labels.")]


def apply(
    labels: Labels,
    corrections: Annotated[
        str | None,
        typer.Argument(help="Corrections file; by default LABELS.corrections.jsonl."),
    ] = None,
    *,
    output: Annotated[
        str, typer.Option("--output", "-o", help="Label file to write; - is standard output.")
    ] = "-",
) -> None:
    """Write the labels as most people corrected them.

    The judge's labels stay as they are. The signature of the corrected ones says that they are.
    """
    from labeler import api
    from labeler.comparing.corrected_labels import MeanChanges
    from labeler.data.corrections.applying import apply_corrections
    from labeler.data.corrections.file import corrections_path, read_corrections
    from labeler.data.label_files import write_outcomes

    if labels == STDIO:
        raise UsageError("labels are read twice here, which standard input cannot be: name a file")
    path = corrections or str(corrections_path(labels))
    check_label_target([labels, path], output)
    next(iter(api.read_labels(labels)), None)  # report unreadable labels first
    if corrections is None and not Path(path).exists():
        raise _not_corrected(labels, path)
    read = read_corrections(path)
    report_truncated(read.torn)
    if not read.events:
        raise _not_corrected(labels, path)
    applied, outcomes = apply_corrections(lambda: api.read_labels(labels), read.events)
    _check_used(applied, labels, path)
    means = MeanChanges(api.read_labels(labels), applied)
    changes = means.of(write_outcomes(outcomes, output))
    notify(_conclusion(applied, changes))
    for line in chain(_summary(applied), _mean_lines(changes), _selection_lines(applied)):
        notify(line)
    where = "standard output" if output == STDIO else output
    notify(f"{plural(applied.rows, 'row')} written to {where}")


def _not_corrected(labels: str, path: str) -> UsageError:
    return UsageError(
        f"{labels}: nobody has corrected these yet (there is nothing in {path}): labeler review "
        f"{shlex.quote(labels)}"
    )


def _check_used(applied: Applied, labels: str, path: str) -> None:
    """Check that some correction belongs to the labels.

    Raises:
        UsageError: all corrections belong to other labels.
    """
    strange = [each for each in applied.ignored if each.why == "no_label"]
    if strange and len(strange) == len(applied.ignored) and not applied.used:
        raise UsageError(
            f"{path}: none of its {plural(len(applied.ignored), 'correction')} speaks of a label "
            f"of {labels}: name the label file that was corrected"
        )


def report_truncated(truncated: Iterable[str]) -> None:
    """Report lines of a corrections file that a crash cut off."""
    for where in truncated:
        notify(f"{where}: cut off, as by a crash, and left out; correct its record again")


def _conclusion(applied: Applied, changes: Sequence[MeanChange]) -> str:
    """Return how many labels people changed, and what that did to the first metric."""
    changed = f"{len(applied.changed)} of {plural(applied.records, 'label')} changed by people"
    by_metric = {one.before.metric: one for one in reversed(changes)}
    moved = [
        f"{plain_name(metric)} {in_words(one.before)[0]} → {in_words(one.after)[0]}"
        for metric in headline_metrics(by_metric)[:1]
        for one in [by_metric[metric]]
    ]
    return f"{': '.join((changed, *moved))}."


def _summary(applied: Applied) -> Iterator[str]:
    """Yield lines about the applied and ignored corrections."""
    fields = ", ".join(f"{name} {count}" for name, count in applied.by_field.items() if count)
    yield f"verdicts changed: {fields or 'none'}; {applied.confirmed} labels judged and kept"
    for change in applied.changed[:SHOWN]:
        counts = change.differences.counts().items()
        fields = ", ".join(f"{name} {count}" for name, count in counts if count)
        yield f"  {change.id!r:.80}: {fields}; by {', '.join(change.annotators)}"
    yield from more_lines(len(applied.changed))
    yield f"corrections that counted: {applied.used}; that did not: {len(applied.ignored)}"
    by_reason: dict[str, list[Ignored]] = {}
    for ignored in applied.ignored:
        by_reason.setdefault(ignored.why, []).append(ignored)
    for reason, group in by_reason.items():
        yield f"  {len(group)} {_REASONS[reason]}: {_list_ignored(group)}"


def _mean_lines(changes: Sequence[MeanChange]) -> Iterator[str]:
    """Yield each mean that changed, before and after, under its judge configuration."""
    labels = dict.fromkeys(before.label for before, _ in changes)
    for label in labels:
        own = [change for change in changes if change.before.label == label]
        yield f"means before → after, of {label}:" if len(labels) > 1 else "means before → after:"
        for before, after in own:
            yield f"  {before.metric.id} {_mean(before)} → {_mean(after)}"
    if not changes:
        yield "no mean changed"


def _mean(row: SummaryRow) -> str:
    """Return a mean and the number of labels that it is over."""
    from labeler.sentences.display import number

    return f"{number(row.mean)} (n {row.defined})"


def _selection_lines(applied: Applied) -> Iterator[str]:
    """Yield the selection of the judged labels, with its consequence for the means."""
    for selection in applied.selections.values():
        rest = selection.labels - selection.judged
        if selection.is_biased:
            yield f"warning: {selection.warning}"
        elif rest:
            yield (
                f"judged by people: {selection}; the verdicts of the other {rest:,} are the "
                "judge's; for all records: labeler agree LABELS --human CORRECTIONS --random-sample"
            )
        else:
            yield f"judged by people: {selection}"


def _list_ignored(ignored: list[Ignored]) -> str:
    """List the first ignored corrections, with details."""
    shown = [
        f"{each.correction.id!r:.80} by {each.correction.annotator}"
        f"{f' ({each.detail:.200})' if each.detail else ''}"
        for each in ignored[:SHOWN]
    ]
    return ", ".join([*shown, *(["…"] if len(ignored) > SHOWN else [])])


def more_lines(count: int) -> Iterator[str]:
    """Yield a line about the items that a list leaves out, if there are any."""
    if count > SHOWN:
        yield f"  … and {count - SHOWN} more"
