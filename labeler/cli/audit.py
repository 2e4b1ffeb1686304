"""The commands ``audit``, ``show`` and ``worst``: labels that contradict themselves or texts."""

from __future__ import annotations

import csv
import json
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from labeler.audit import (
    WEIGHTS,
    Audit,
    AuditedRecord,
    Check,
    SecondJudge,
    audit_labels,
    select_checks,
    suspicion_score,
)
from labeler.audit.auditing import FINDING_COLUMNS
from labeler.calculators.outcomes import stored_outcomes
from labeler.calculators.summary_text import configuration_names
from labeler.catalog import unknown
from labeler.cli.options import (
    By,
    Details,
    Doubt,
    Json,
    Labels,
    Threshold,
    labels_at,
    reject_overwrite,
    watching,
)
from labeler.cli.terminal import (
    LineWriter,
    notify,
    notify_repeated,
    print_catalog,
    print_declared,
    print_display,
    print_json,
    print_sections,
)
from labeler.data.label_files import replaced
from labeler.data.lines import STDIO
from labeler.errors import UnknownName, UsageError
from labeler.labels.answering import AnsweringModels
from labeler.labels.record import AnyOutcome
from labeler.sentences.characters import plain_json, to_cell, visible
from labeler.sentences.display import (
    Section,
    console,
    plural,
    reason_counts,
    shortened,
)
from labeler.version import __version__

_SHOWN_RECORDS = 20
"""Default number of records listed, the most suspicious first."""
_SHOWN_KEYS = 8
_INDENT = " " * 6

CheckIds = Annotated[
    str | None,
    typer.Option(help="Ids, comma-separated, or package.module:name; by default all."),
]
Findings = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        help="Also write findings, worst records first, to a .jsonl or .csv file.",
    ),
]
Top = Annotated[
    int | None,
    typer.Option(
        min=0,
        help="Number of records, most suspicious first: 20 on the terminal, all with -o and "
        "--rows.",
    ),
]


def audit(
    labels: Annotated[
        str | None, typer.Argument(help="Label file, store folder, or - for standard input.")
    ] = None,
    *,
    by: By = None,
    checks: CheckIds = None,
    rows: Annotated[
        bool, typer.Option("--rows", help="Print one JSON object per finding.")
    ] = False,
    as_json: Json = False,
    output: Findings = None,
    top: Top = None,
    listing: Annotated[bool, typer.Option("--list", help="List the checks.")] = False,
    second_opinion: Annotated[
        bool, typer.Option("--second-opinion", help="Compare labels with the embedded judge's.")
    ] = False,
    doubt: Doubt = None,
    threshold: Threshold = None,
    details: Details = False,
) -> None:
    """Find labels that contradict themselves or the texts."""
    if (rows and as_json) or (listing and (rows or as_json or by or output)):
        raise UsageError("--rows cannot be combined with --json; --list with no other output")
    chosen = select_checks(checks)
    if listing:
        _list_checks(chosen)
        return
    if labels is None:
        raise UsageError("name a label file or a store folder; --list shows the checks")
    if output is not None:
        _check_output(output, labels)
    found = _audit(labels, threshold, chosen, by, second_opinion=second_opinion)
    if doubt is not None:
        found = _ranked(found, doubt, labels, threshold)
    if output:
        notify(f"{output}: {plural(_write(Path(output), found.finding_rows(top)), 'finding')}")
    shown = _SHOWN_RECORDS if top is None else top
    if rows:
        for row in found.finding_rows(top):
            print_json(row)
    elif as_json:
        print_json({**found.as_json(shown), "labeler": __version__})
    else:
        source = "" if labels == STDIO else shlex.quote(labels)
        _print_audit(found, shown, source, details=details)


def _list_checks(checks: Iterable[Check]) -> None:
    rows = (
        (
            f"{one.id}\nv{one.version}, {one.severity}, weight {one.weight:g}",
            f"{one.title}.\n{one.why}",
        )
        for one in checks
    )
    print_catalog(("check", "what it finds, and why that is odd"), rows)
    print_declared("checks")


def _check_output(output: str, labels: str) -> None:
    """Reject a file of another format, or one that holds labels or corrections."""
    if Path(output).suffix not in (".jsonl", ".csv"):
        raise UsageError(f"-o {output!r}: name a file that ends in .jsonl or .csv")
    reject_overwrite([labels], output)


def _ranked(found: Audit, model: str, labels: str, threshold: list[str] | None) -> Audit:
    """Return an audit in the order of a fitted model of doubt."""
    from labeler.evidence.doubt import Doubt as Model

    if labels == STDIO:
        raise UsageError("--doubt reads the labels twice: give a file, not standard input")
    return Model.load(model).of(labels_at(labels, threshold)).ranks(found)


def _audit(
    labels: str,
    threshold: list[str] | None,
    checks: Sequence[Check],
    by: str | None,
    *,
    second_opinion: bool,
) -> Audit:
    """Audit stored labels while showing how many records were read.

    Raises:
        UsageError: there is no label.
    """
    models = AnsweringModels()
    judge: SecondJudge | None = None
    if second_opinion:
        from labeler.judges.embedded import second_opinion as judge
    with watching("auditing") as watched:
        outcomes = labels_at(labels, threshold).through(watched, models.watch)
        found = audit_labels(outcomes, checks=checks, by=by, second_opinion=judge)
    notify_repeated(found.duplicates)
    for fault in models.faults():
        notify(fault)
    return found


def _write(path: Path, rows: Iterable[Mapping[str, Any]]) -> int:
    """Write rows of findings, and return their number."""
    number = 0
    with replaced(path) as file:
        is_csv = path.suffix == ".csv"
        writer = csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n")
        if is_csv:
            writer.writerow(FINDING_COLUMNS)
        for row in rows:
            number += 1
            if is_csv:
                texts = {**row, "keys": " ".join(row["keys"]), "group": row["group"] or ""}
                writer.writerow(to_cell(str(texts[name])) for name in FINDING_COLUMNS)
            else:
                file.write(f"{json.dumps(row, ensure_ascii=False)}\n")
    return number


def _print_audit(found: Audit, top: int, source: str, *, details: bool) -> None:
    """Print the conclusion and the next command, the most suspicious records, and rates.

    Args:
        found: the audit.
        top: number of records.
        source: the labels as a shell takes them; empty for standard input.
        details: True for checks without a finding, and judge configurations.
    """
    out = LineWriter()
    out.write(found.conclusion, bold=True)
    shown = found.ranked(top)
    if source and shown:
        from labeler.report import PAGE_RECORDS

        target = "report.html" if len(found.records) <= PAGE_RECORDS else "report/"
        out.write(f"Next: labeler report {source} -o {target}")
    if shown:
        _print_suspicious(found, shown)
    print_sections(_rates(found, details=details))
    if found.failed:
        out.write(f"failed: {reason_counts(found.failed)}")


def _rates(found: Audit, *, details: bool) -> Iterator[Section]:
    """Yield the rates of each judge configuration.

    Args:
        found: the audit.
        details: True for checks without a finding, and judge configurations.
    """
    names = configuration_names(row.label for row in found.rows)
    for label, name in names.items():
        own = [row for row in found.rows if row.label == label]
        grid, lines = found.figures(label), list[str]()
        if details:
            looked = {row.check for row in own if row.records}
            flagged = {row.check for row in own if row.flagged}
            clean = [one.id for one in found.checks if one in looked - flagged]
            idle = [one.id for one in found.checks if one not in looked]
            lines += [f"found nothing: {', '.join(clean)}"] if clean else []
            lines += [f"nothing to look at: {', '.join(idle)}"] if idle else []
        lines += [str(same) for same in found.same_documents if same.label == label]
        if details:
            made = sum(record.label == label for record in found.records)
            lines.append(f"{plural(made, 'record')} by {label}|labeler:{__version__}\n")
        if grid.rows or lines:
            grids = [grid] if grid.rows else []
            yield Section(f"{name}:" if len(names) > 1 else None, grids, lines)


def _print_suspicious(found: Audit, shown: Sequence[AuditedRecord]) -> None:
    """Print the most suspicious records, each with its worst finding."""
    from rich.text import Text

    out = console()
    if len(shown) < found.flagged:
        out.print(f"{len(shown)} of {found.flagged} records with findings (--top):", soft_wrap=True)
    names = configuration_names(record.label for record in found.records)
    out.print("")
    for record in shown:
        made_by = f"  ({names[record.label]})" if len(names) > 1 else ""
        out.print(
            Text(f"{record.suspicion:.2f}  {shortened(record.id)}{visible(made_by)}"),
            soft_wrap=True,
        )
        line = Text(_INDENT + visible(_worst(record)))
        out.print(line, no_wrap=True, overflow="ellipsis")


def _worst(record: AuditedRecord) -> str:
    """Return the finding to read first, and the number of the others, on one line.

    It is the heaviest one of the worst severity, by which the first line counts records.
    """
    order = list(WEIGHTS)
    worst = min(record.findings, key=lambda f: (order.index(f.severity), -suspicion_score([f])))
    more = f" (and {len(record.findings) - 1} more)" if len(record.findings) > 1 else ""
    shown = [*worst.keys[:_SHOWN_KEYS], *["…"] * (len(worst.keys) > _SHOWN_KEYS)]
    keys = f" [{', '.join(shown)}]" if shown else ""
    return f"{worst.severity}{more} {worst.check}{keys}: {worst.message}"


def worst(
    labels: Labels,
    *,
    most: Annotated[int, typer.Option("--number", "-n", min=1, help="Number of records.")] = 5,
    as_json: Json = False,
    threshold: Threshold = None,
) -> None:
    """Show the records with the least support, and why."""
    from labeler.calculators.tables import worst_records

    found = worst_records(labels_at(labels, threshold), most)
    if as_json:
        print_json([one.as_json() for one in found])
    else:
        print_display(found)


def show(
    labels: Labels,
    id: Annotated[  # noqa: A002 - its name on the command line
        str, typer.Argument(help="Record id, as labeler worst and audit list them.")
    ],
    *,
    as_json: Json = False,
) -> None:
    """Show one record: sentences, support or scores, explanations."""
    from labeler.report.views import print_outcome

    found = _find(stored_outcomes(labels), id, labels)
    scores = [outcome for outcome in found if outcome.kind == "score"]
    several = scores and scores[0] is found[0]  # by several criteria, and in trials
    shown: Sequence[AnyOutcome] = scores if several else found[:1]
    others = len(found) - len(shown)
    if others:
        notify(f"the first of {others + 1} records of that id, which differ in texts or settings")
    for outcome in shown:
        if as_json:
            sys.stdout.write(plain_json(outcome.model_dump_json(indent=2)) + "\n")
        else:
            print_outcome(outcome)


def _find(outcomes: Iterable[AnyOutcome], wanted: str, labels: str) -> list[AnyOutcome]:
    """Return the different records of an id."""
    ids: list[str] = []
    found: dict[str, AnyOutcome] = {}  # by their JSON: there may be any number of them
    for outcome in outcomes:
        ids.append(outcome.id)
        if outcome.id == wanted:
            found.setdefault(outcome.model_dump_json(), outcome)
    if found:
        # A retrieval label has the id of the first row that rests on it, and its label names it.
        every = list(found.values())
        return [one for one in every if one.kind != "retrieval"] or every
    raise UnknownName(f"{labels}: {unknown('record id', wanted, ids, 3)}")
