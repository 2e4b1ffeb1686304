"""The command that looks for labels that contradict themselves or the texts."""

from __future__ import annotations

import csv
import json
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from labeler.cli.options import Json
from labeler.cli.running import outcomes_at, refuse_own_input, watching
from labeler.cli.terminal import print_json
from labeler.data.lines import STDIO
from labeler.errors import UsageError
from labeler.sentences.characters import visible
from labeler.version import __version__

if TYPE_CHECKING:
    from labeler.audit import Audit, AuditedRecord, Check, CheckRow, Finding
    from labeler.audit.export import FindingRow
    from labeler.cli.tables import Grid
    from labeler.labels.record import AnyOutcome

SHOWN_RECORDS = 20
"""Most doubtful records that are shown, unless another number is asked for."""
SHOWN_KEYS = 8
MOST_GROUPS = 12
"""Groups of records that have a column of rates; ``--json`` has all."""
INDENT = " " * 6


def audit(
    labels: Annotated[
        str | None, typer.Argument(help="Label file, store folder, or - for standard input.")
    ] = None,
    *,
    by: Annotated[str | None, typer.Option(help="Rates by this metadata column.")] = None,
    checks: Annotated[
        str | None,
        typer.Option(help="Ids, comma-separated, or package.module:name; by default all."),
    ] = None,
    rows: Annotated[bool, typer.Option("--rows", help="One JSON object a finding.")] = False,
    as_json: Json = False,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            help="Write findings, worst records first, to FILE.jsonl or FILE.csv too.",
        ),
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Most doubtful records to show (20), and to write with -o and --rows (all).",
        ),
    ] = None,
    listing: Annotated[
        bool, typer.Option("--list", help="Show what each check looks for.")
    ] = False,
) -> None:
    """Find labels that contradict themselves or the texts."""
    from labeler.audit import select_checks
    from labeler.audit.export import finding_rows

    if (rows and as_json) or (listing and (rows or as_json or by or output)):
        raise UsageError("--rows goes without --json, --list without --rows, --json, --by and -o")
    chosen = select_checks(checks)
    if listing:
        _print_checks(chosen)
        return
    if labels is None:
        raise UsageError("name a label file or a store folder; --list shows the checks")
    _check_output(output, labels)
    found = _audit(labels, chosen, by)
    shown = SHOWN_RECORDS if top is None else top
    if output:
        _write(Path(output), finding_rows(found, top))
    if rows:
        for row in finding_rows(found, top):
            print_json(row)
    elif as_json:
        print_json({**found.as_json(shown), "labeler": __version__})
    else:
        _print_audit(found, by, shown)
        if labels != STDIO and found.ranked(shown):
            _print_reading(labels)


def _audit(labels: str, checks: Sequence[Check], by: str | None) -> Audit:
    """Audit stored labels while showing how many records were read.

    Raises:
        UsageError: there is no label.
    """
    from labeler.audit import audit_labels

    kinds: Counter[str] = Counter()
    with watching("auditing") as watched:
        outcomes = _counted(watched(outcomes_at(labels)), kinds)
        found = audit_labels(outcomes, checks=checks, by=by)
    if not found.records and not found.failed:
        raise UsageError(f"{labels}: {_without_labels(kinds)}")
    return found


def _counted(outcomes: Iterable[AnyOutcome], kinds: Counter[str]) -> Iterator[AnyOutcome]:
    """Count outcomes by their kind while passing them on."""
    for outcome in outcomes:
        kinds[outcome.kind] += 1
        yield outcome


def _without_labels(kinds: Counter[str]) -> str:
    """Why there is nothing to audit."""
    if kinds["label"]:
        return f"{kinds['label']} canaries and no label of a row"
    if kinds["score"]:
        return (
            f"{kinds['score']} scores and no labels; name what labeler label wrote, not what "
            "labeler score did"
        )
    return "no label is there"


# -- files -----------------------------------------------------------------------------------------


def _check_output(output: str | None, labels: str) -> None:
    """Refuse a file of another kind, or one that is needed, before anything is read."""
    from labeler.data.corrections.file import keep_corrections

    if output is None:
        return
    if Path(output).suffix not in (".jsonl", ".csv"):
        raise UsageError(f"-o {output!r}: name a file that ends in .jsonl or .csv")
    refuse_own_input([labels], output)
    keep_corrections(output)


def _write(path: Path, rows: Iterable[FindingRow]) -> None:
    from labeler.audit.export import FindingRow, cells
    from labeler.data.label_files import replaced

    with replaced(path) as file:
        if path.suffix == ".csv":
            writer = csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n")
            writer.writerow(FindingRow.__annotations__)
            writer.writerows(map(cells, rows))
        else:
            file.writelines(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)


# -- for people ------------------------------------------------------------------------------------


def _print_checks(checks: Sequence[Check]) -> None:
    from rich.table import Table

    from labeler.cli.terminal import console

    table = Table(show_lines=True)
    table.add_column("check", no_wrap=True)
    table.add_column("what it finds, and why that is odd", overflow="fold")
    for check in checks:
        facts = f"v{check.version}, {check.severity}, weight {check.weight:g}"
        table.add_row(f"{check.id}\n{facts}", f"{check.title}.\n{check.why}")
    console().print(table)


def _print_audit(found: Audit, by: str | None, top: int) -> None:
    from labeler.cli.terminal import Sheet

    out = Sheet()
    for label in dict.fromkeys(row.label for row in found.rows):
        made = [record for record in found.records if record.label == label]
        _print_way([row for row in found.rows if row.label == label], made, by)
        counted = f"{len(made)} records by {label}|labeler:{__version__}"
        out.write(f"{counted}\n")
    if not found.records:
        out.write(f"no label: all {sum(found.failed.values())} records failed")
    if found.failed:
        reasons = ", ".join(f"{count} {reason}" for reason, count in found.failed.items())
        out.write(f"failed: {reasons}")
    if found.records:
        _print_doubtful(found, top)


def _print_way(rows: Sequence[CheckRow], made: Sequence[AuditedRecord], by: str | None) -> None:
    """Print the rates of labels made in one way, a column for each group."""
    from labeler.cli.tables import given_up, show
    from labeler.cli.terminal import Sheet

    out = Sheet()
    flagging = [check for check in _checks(rows) if _total(rows, check)[1]]
    sizes = Counter(record.group for record in made)
    groups = _shown_groups(sizes)
    grids: list[Grid] = []
    notes: list[str] = []
    if flagging and by is None:
        grid, spared = _counts(rows, flagging).within(out.width)
        grids, notes = [grid], [*given_up(spared)]
    elif flagging:
        shown = {group: sizes[group] for group in groups}
        grids = _rates(rows, flagging, by or "", len(made), shown).parted(out.width)
        if len(groups) < len(sizes):
            left = f"{len(groups)} of {len(sizes)} groups, those with most records"
            notes = [f"shown by {by}: {left} (--json has all)"]
    show(out, *(grid.block(out.width) for grid in grids))
    for note in (*notes, *_quiet(rows)):
        out.write(note)


def _shown_groups(sizes: Counter[str | None]) -> list[str | None]:
    """The largest groups, by name."""
    return sorted((group for group, _ in sizes.most_common(MOST_GROUPS)), key=str)


def _checks(rows: Sequence[CheckRow]) -> list[Check]:
    return list(dict.fromkeys(row.check for row in rows))


def _total(rows: Sequence[CheckRow], check: Check) -> tuple[int, int, int]:
    """Records that it applies to, those flagged, and findings, of all groups together."""
    own = [row for row in rows if row.check is check]
    return (
        sum(row.records for row in own),
        sum(row.flagged for row in own),
        sum(row.findings for row in own),
    )


def _counts(rows: Sequence[CheckRow], checks: Sequence[Check]) -> Grid:
    from labeler.cli.tables import Column, Grid

    columns = [
        Column("check", words=True),
        Column("severity", goes=2, words=True),
        Column("applies to", goes=3),
        Column("flagged"),
        Column("rate"),
        Column("findings", goes=1),
    ]
    cells: list[list[str]] = []
    for check in checks:
        records, flagged, findings = _total(rows, check)
        rate = _percent(flagged, records)
        cells.append([check.id, check.severity, str(records), str(flagged), rate, str(findings)])
    return Grid(columns, cells)


def _rates(
    rows: Sequence[CheckRow],
    checks: Sequence[Check],
    by: str,
    total: int,
    sizes: Mapping[str | None, int],
) -> Grid:
    """Flagged records and their share, a column for all and one for each group."""
    from labeler.cli.tables import Column, Grid

    columns = [Column(f"flagged by {by}", words=True), Column("all")]
    columns += [Column(str(group)) for group in sizes]
    cells = [["(records)", str(total), *map(str, sizes.values())]]
    for check in checks:
        records, flagged, _ = _total(rows, check)
        own = {row.group: row for row in rows if row.check is check}
        shares = [_flagged(own[group].flagged, own[group].records) for group in sizes]
        cells.append([check.id, _flagged(flagged, records), *shares])
    return Grid(columns, cells)


def _flagged(part: int, whole: int) -> str:
    """``3 (1.5 %)``."""
    return f"{part} ({100 * part / whole:.1f} %)" if whole else "-"


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.2f} %" if whole else "-"


def _quiet(rows: Sequence[CheckRow]) -> Iterator[str]:
    """Which checks found nothing, and which had nothing to look at."""
    totals = {check.id: _total(rows, check) for check in _checks(rows)}
    clean = [name for name, (records, flagged, _) in totals.items() if records and not flagged]
    idle = [name for name, (records, _, _) in totals.items() if not records]
    if clean:
        yield f"found nothing: {', '.join(clean)}"
    if idle:
        yield f"nothing to look at: {', '.join(idle)}"


def _print_doubtful(found: Audit, top: int) -> None:
    from rich.text import Text

    from labeler.cli.terminal import console

    out = console()
    shown = found.ranked(top)
    out.print(_headline(found))
    if shown:
        out.print(
            f"the most doubtful {len(shown)} of {found.flagged} (--top); of equal ones, more "
            "contradictions first, then as in the file:",
            soft_wrap=True,
        )
    several = len({record.label for record in found.records}) > 1
    for record in shown:
        made_by = f"  ({record.label.partition('|')[0]})" if several else ""
        out.print(Text(visible(f"{record.suspicion:.2f}  {record.id}{made_by}")), soft_wrap=True)
        worst = Text(INDENT + visible(_worst(record)))
        out.print(worst, no_wrap=True, overflow="ellipsis")


def _headline(found: Audit) -> str:
    """How many records there are by their worst finding."""
    worst = found.worst
    return (
        f"{len(found.records)} records: {worst['contradiction']} with a contradiction, "
        f"{worst['suspicion']} more with a suspicion, {worst['note']} with notes alone, "
        f"{len(found.records) - found.flagged} without a finding"
    )


def _worst(record: AuditedRecord) -> str:
    """The finding of a record that weighs most, on one line, and how many more there are."""
    from labeler.audit import WEIGHTS, suspicion_score

    order = list(WEIGHTS)
    worst = min(record.findings, key=lambda f: (-suspicion_score([f]), order.index(f.severity)))
    more = f" (and {len(record.findings) - 1} more)" if len(record.findings) > 1 else ""
    return f"{worst.severity}{more} {_line(worst)}"


def _line(finding: Finding) -> str:
    shown = [*finding.keys[:SHOWN_KEYS], *["…"] * (len(finding.keys) > SHOWN_KEYS)]
    keys = f" [{', '.join(shown)}]" if shown else ""
    return f"{finding.check}{keys}: {finding.message}"


def _print_reading(labels: str) -> None:
    """Where the records are read with their texts."""
    from labeler.cli.terminal import Sheet

    told = f"to read them with their texts: labeler report {shlex.quote(labels)} -o report.html"
    Sheet().write(told)
