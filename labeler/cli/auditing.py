"""The ``audit`` command: labels that contradict themselves or the texts."""

from __future__ import annotations

import csv
import json
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from labeler.cli.options import Json
from labeler.cli.running import Threshold, outcomes_at, reject_overwrite, watching
from labeler.cli.terminal import (
    LineWriter,
    dropped_note,
    notify,
    notify_repeated,
    print_catalog,
    print_declared,
    print_grids,
    print_json,
)
from labeler.data.lines import STDIO
from labeler.errors import UsageError
from labeler.sentences.characters import escape_formula, visible
from labeler.sentences.display import NONE, Column, Grid, console, percent, reason_counts
from labeler.version import __version__

if TYPE_CHECKING:
    from labeler.audit import Audit, AuditedRecord, Check, CheckRow, Finding, SecondJudge
    from labeler.calculators.outcomes import CheckedOutcomes
    from labeler.labels.record import AnyOutcome

_SHOWN_RECORDS = 20
"""Default number of records listed, the most suspicious first."""
_SHOWN_KEYS = 8
SHOWN_GROUPS = 12
"""Largest number of groups with a column of rates; ``--json`` has all."""
_INDENT = " " * 6


CheckIds = Annotated[
    str | None,
    typer.Option(help="Ids, comma-separated, or package.module:name; by default all."),
]
Output = Annotated[
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
SecondOpinion = Annotated[
    bool,
    typer.Option("--second-opinion", help="Compare labels with the embedded judge's."),
]


def audit(
    labels: Annotated[
        str | None, typer.Argument(help="Label file, store folder, or - for standard input.")
    ] = None,
    *,
    by: Annotated[str | None, typer.Option(help="Group rates by this metadata column.")] = None,
    checks: CheckIds = None,
    rows: Annotated[
        bool, typer.Option("--rows", help="Print one JSON object per finding.")
    ] = False,
    as_json: Json = False,
    output: Output = None,
    top: Top = None,
    listing: Annotated[bool, typer.Option("--list", help="List the checks.")] = False,
    second_opinion: SecondOpinion = False,
    doubt: Annotated[
        str | None, typer.Option(help="Rank by this model of 'labeler doubt -o' instead.")
    ] = None,
    threshold: Threshold = None,
    details: Annotated[
        bool, typer.Option("--details", help="Show rates of all checks and judge settings.")
    ] = False,
) -> None:
    """Find labels that contradict themselves or the texts."""
    from labeler.audit import select_checks

    if (rows and as_json) or (listing and (rows or as_json or by or output)):
        raise UsageError("--rows cannot be combined with --json; --list with no other output")
    chosen = select_checks(checks)
    if listing:
        _print_checks(chosen)
        print_declared("checks")
        return
    if labels is None:
        raise UsageError("name a label file or a store folder; --list shows the checks")
    _check_output(output, labels)
    found = _audit(
        outcomes_at(labels, threshold), labels, chosen, by, second_opinion=second_opinion
    )
    found = _ranked(found, doubt, labels, threshold)
    if output:
        _write(Path(output), found.finding_rows(top))
    if rows:
        for row in found.finding_rows(top):
            print_json(row)
        return
    shown = _SHOWN_RECORDS if top is None else top
    if as_json:
        print_json({**found.as_json(shown), "labeler": __version__})
    else:
        source = "" if labels == STDIO else shlex.quote(labels)
        _print_audit(found, by, shown, source, details=details)


def _audit(
    given: CheckedOutcomes,
    labels: str,
    checks: Sequence[Check],
    by: str | None,
    *,
    second_opinion: bool,
) -> Audit:
    """Audit stored labels while showing how many records were read.

    Raises:
        UsageError: there is no label.
    """
    from labeler.audit import audit_labels
    from labeler.labels.answering import AnsweringModels

    kinds: Counter[str] = Counter()
    models = AnsweringModels()
    judge: SecondJudge | None = None
    if second_opinion:
        from labeler.judges.embedded import opinion

        judge = opinion.second_opinion
    with watching("auditing") as watched:
        counted = partial(_count_kinds, kinds=kinds)
        outcomes = given.through(watched, models.watch, counted)
        found = audit_labels(outcomes, checks=checks, by=by, second_opinion=judge)
    if not found.records and not found.failed:
        raise UsageError(f"{labels}: {_no_labels(kinds)}")
    notify_repeated(found.duplicates)
    for fault in models.faults():
        notify(fault)
    return found


def _count_kinds(outcomes: Iterable[AnyOutcome], kinds: Counter[str]) -> Iterator[AnyOutcome]:
    """Yield outcomes, and count them by kind."""
    for outcome in outcomes:
        kinds[outcome.kind] += 1
        yield outcome


def _no_labels(kinds: Counter[str]) -> str:
    """Return the reason why there is nothing to audit."""
    if kinds["score"]:
        return (
            f"{kinds['score']} scores and no labels; name what labeler label wrote, not what "
            "labeler score did"
        )
    return "no label is there"


def _ranked(found: Audit, model: str | None, labels: str, threshold: Threshold) -> Audit:
    """Return an audit that a fitted model of doubt ranks, if there is one."""
    if model is None:
        return found
    from labeler.evidence.doubt import Doubt

    if labels == STDIO:
        raise UsageError("--doubt reads the labels twice: give a file, not standard input")
    return Doubt.load(model).of(outcomes_at(labels, threshold)).ranks(found)


def _check_output(output: str | None, labels: str) -> None:
    """Reject a file of another format, or one that holds labels or corrections."""
    if output is None:
        return
    if Path(output).suffix not in (".jsonl", ".csv"):
        raise UsageError(f"-o {output!r}: name a file that ends in .jsonl or .csv")
    reject_overwrite([labels], output)


def _write(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    from labeler.audit.auditing import FINDING_COLUMNS
    from labeler.data.label_files import replaced

    with replaced(path) as file:
        if path.suffix == ".csv":
            writer = csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n")
            writer.writerow(FINDING_COLUMNS)
            for row in rows:
                texts = {**row, "keys": " ".join(row["keys"]), "group": row["group"] or ""}
                cells = (visible(str(texts[name])) for name in FINDING_COLUMNS)
                writer.writerow(map(escape_formula, cells))
        else:
            file.writelines(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)


def _print_checks(checks: Sequence[Check]) -> None:
    rows = [
        (
            f"{check.id}\nv{check.version}, {check.severity}, weight {check.weight:g}",
            f"{check.title}.\n{check.why}",
        )
        for check in checks
    ]
    print_catalog(("check", "what it finds, and why that is odd"), rows)


def _print_audit(found: Audit, by: str | None, top: int, source: str, *, details: bool) -> None:
    """Print the conclusion and the next command, the most suspicious records, and rates.

    Args:
        found: the audit.
        by: the metadata column of the groups.
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
    for label in dict.fromkeys(row.label for row in found.rows):
        made = [record for record in found.records if record.label == label]
        rows = [row for row in found.rows if row.label == label]
        _print_rates(out, rows, made, by, details=details)
        for same in found.same_documents:
            if same.label == label:
                out.write(str(same))
        if details:
            out.write(f"{len(made)} records by {label}|labeler:{__version__}\n")
    if found.failed:
        out.write(f"failed: {reason_counts(found.failed)}")


def _print_rates(
    out: LineWriter,
    rows: Sequence[CheckRow],
    made: Sequence[AuditedRecord],
    by: str | None,
    *,
    details: bool,
) -> None:
    """Print the rates of one judge configuration, with a column for each group."""
    totals: dict[Check, CheckRow] = {}  # over all groups
    for row in rows:
        if total := totals.get(row.check):
            total = replace(
                total,
                records=total.records + row.records,
                flagged=total.flagged + row.flagged,
                findings=total.findings + row.findings,
            )
        totals[row.check] = total or row
    flagging = {check: total for check, total in totals.items() if total.flagged}
    grids: list[Grid] = []
    notes: list[str] = []
    if flagging and by is None:
        grid, dropped = _totals_grid(flagging).fit(out.width)
        grids, notes = [grid], [*dropped_note(dropped)]
    elif flagging:
        sizes = Counter(record.group for record in made)
        groups = sorted((group for group, _ in sizes.most_common(SHOWN_GROUPS)), key=str)
        columns = [Column(f"flagged by {by}", words=True), Column("all")]
        columns += [Column(str(group)) for group in groups]
        cells = [["(records)", str(len(made)), *(str(sizes[group]) for group in groups)]]
        for check, total in flagging.items():
            own = {row.group: row for row in rows if row.check is check}
            cells.append([check.id, *map(_flagged, [total, *(own[group] for group in groups)])])
        grids = Grid(columns, cells).split(out.width)
        if len(groups) < len(sizes):
            left = f"{len(groups)} of {len(sizes)} groups, those with most records"
            notes = [f"shown by {by}: {left} (--json has all)"]
    print_grids(out, *grids)
    clean = [check.id for check, total in totals.items() if total.records and not total.flagged]
    if clean and details:
        notes.append(f"found nothing: {', '.join(clean)}")
    idle = [check.id for check, total in totals.items() if not total.records]
    if idle and details:
        notes.append(f"nothing to look at: {', '.join(idle)}")
    for note in notes:
        out.write(note)


def _totals_grid(totals: Mapping[Check, CheckRow]) -> Grid:
    columns = [
        Column("check", words=True),
        Column("severity", drop=2, words=True),
        Column("applies to", drop=3),
        Column("flagged"),
        Column("rate"),
        Column("findings", drop=1),
    ]
    cells: list[list[str]] = []
    for check, total in totals.items():
        counts = (str(total.records), str(total.flagged))
        rate = percent(total.flagged / total.records, 2)
        cells.append([check.id, check.severity, *counts, rate, str(total.findings)])
    return Grid(columns, cells)


def _flagged(counts: CheckRow) -> str:
    """Return the flagged records and their share, such as ``3 (1.5 %)``."""
    if not counts.records:
        return NONE
    return f"{counts.flagged} ({percent(counts.flagged / counts.records, 1)})"


def _print_suspicious(found: Audit, shown: Sequence[AuditedRecord]) -> None:
    """Print the most suspicious records, each with its worst finding."""
    from rich.text import Text

    out = console()
    if len(shown) < found.flagged:
        out.print(f"the {len(shown)} most suspicious of {found.flagged} (--top):", soft_wrap=True)
    several = len({record.label for record in found.records}) > 1
    out.print("")
    for record in shown:
        made_by = f"  ({record.label.partition('|')[0]})" if several else ""
        out.print(Text(visible(f"{record.suspicion:.2f}  {record.id}{made_by}")), soft_wrap=True)
        line = Text(_INDENT + visible(_worst(record)))
        out.print(line, no_wrap=True, overflow="ellipsis")


def _worst(record: AuditedRecord) -> str:
    """Return the finding with the largest weight, and the number of the others, on one line."""
    from labeler.audit import WEIGHTS, suspicion_score

    order = list(WEIGHTS)
    worst = min(record.findings, key=lambda f: (-suspicion_score([f]), order.index(f.severity)))
    more = f" (and {len(record.findings) - 1} more)" if len(record.findings) > 1 else ""
    return f"{worst.severity}{more} {_line(worst)}"


def _line(finding: Finding) -> str:
    shown = [*finding.keys[:_SHOWN_KEYS], *["…"] * (len(finding.keys) > _SHOWN_KEYS)]
    keys = f" [{', '.join(shown)}]" if shown else ""
    return f"{finding.check}{keys}: {finding.message}"
