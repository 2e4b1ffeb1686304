"""The command that looks for labels that contradict themselves or the texts."""

from __future__ import annotations

import csv
import json
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from labeler import __version__
from labeler.characters import plain_json, visible
from labeler.cli.options import Json
from labeler.errors import UsageError

if TYPE_CHECKING:
    from labeler.audit import Audit, Audited, Check, CheckRow, Finding
    from labeler.audit.exporting import FindingRow
    from labeler.cli.tables import Grid

SHOWN_FINDINGS = 3
"""Findings that are shown of a record, the worst first."""
SHOWN_KEYS = 8
INDENT = " " * 6
NARROWEST = 40
"""Columns that findings are folded to at least."""


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
        typer.Option("--output", "-o", help="Write findings to FILE.jsonl or FILE.csv too."),
    ] = None,
    top: Annotated[int, typer.Option(min=0, help="Most doubtful records to show.")] = 20,
    listing: Annotated[
        bool, typer.Option("--list", help="Show what each check looks for.")
    ] = False,
) -> None:
    """Find labels that contradict themselves or the texts."""
    from labeler import api
    from labeler.audit import audit_labels, select_checks
    from labeler.audit.exporting import finding_rows

    if (rows and as_json) or (listing and (rows or as_json or by or output)):
        raise UsageError("--rows goes without --json, --list without --rows, --json, --by and -o")
    chosen = select_checks(checks)
    if listing:
        _print_checks(chosen)
        return
    if labels is None:
        raise UsageError("name a label file or a store folder; --list shows the checks")
    _check_name(output)
    found = audit_labels(api.read_any(labels), checks=chosen, by=by)
    if output:
        _write(Path(output), finding_rows(found))
    if rows:
        for row in finding_rows(found):
            _print_json(row)
    elif as_json:
        _print_json({**found.as_json(top), "labeler": __version__})
    else:
        _print_audit(found, by, top)


def _print_json(value: object) -> None:
    sys.stdout.write(plain_json(json.dumps(value, ensure_ascii=False)) + "\n")


# -- files -----------------------------------------------------------------------------------------


def _check_name(output: str | None) -> None:
    """Refuse a file of another kind before anything is read."""
    if output is not None and Path(output).suffix not in (".jsonl", ".csv"):
        raise UsageError(f"-o {output!r}: name a file that ends in .jsonl or .csv")


def _write(path: Path, rows: Iterable[FindingRow]) -> None:
    from labeler.audit.exporting import FindingRow, cells
    from labeler.label_files import replaced

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
    from rich.text import Text

    from labeler.cli.terminal import console

    out = console()
    for label in dict.fromkeys(row.label for row in found.rows):
        _print_way([row for row in found.rows if row.label == label], by)
        made = sum(record.label == label for record in found.records)
        out.print(Text(visible(f"{made} records by {label}|labeler:{__version__}")), soft_wrap=True)
        out.line()
    if not found.records:
        out.print("no record has a label")
    if found.failed:
        reasons = ", ".join(f"{count} {reason}" for reason, count in found.failed.items())
        out.print(Text(visible(f"failed: {reasons}")), soft_wrap=True)
    _print_doubtful(found, top)


def _print_way(rows: Sequence[CheckRow], by: str | None) -> None:
    """Print the rates of labels made in one way, a column for each group."""
    from rich.text import Text

    from labeler.cli.tables import given_up, show
    from labeler.cli.terminal import console

    out = console()
    flagging = [check for check in _checks(rows) if _total(rows, check)[1]]
    grids: list[Grid] = []
    spared: list[str] = []
    if flagging and by is None:
        grid, spared = _counts(rows, flagging).within(out.width)
        grids = [grid]
    elif flagging:
        grids = _rates(rows, flagging, by or "").parted(out.width)
    show(out, *(grid.table(out.width) for grid in grids))
    for note in (*given_up(spared), *_quiet(rows)):
        out.print(Text(visible(note)), soft_wrap=True)


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


def _rates(rows: Sequence[CheckRow], checks: Sequence[Check], by: str) -> Grid:
    """A column of rates for each group, and one of all."""
    from labeler.cli.tables import Column, Grid

    groups = list(dict.fromkeys(row.group for row in rows))
    columns = [Column(f"check, rate by {by}", words=True), Column("all")]
    columns += [Column(str(group)) for group in groups]
    cells: list[list[str]] = []
    for check in checks:
        records, flagged, _ = _total(rows, check)
        shares = {
            row.group: _percent(row.flagged, row.records) for row in rows if row.check is check
        }
        cells.append([check.id, _percent(flagged, records), *(shares[group] for group in groups)])
    return Grid(columns, cells)


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
    counted = f"{found.flagged} of {len(found.records)} records have findings"
    shown = found.ranked(top)
    out.print(f"{counted}; the most doubtful:" if shown else counted)
    several = len({record.label for record in found.records}) > 1
    for record in shown:
        out.line()
        made_by = f"  ({record.label.partition('|')[0]})" if several else ""
        out.print(Text(visible(f"{record.doubt:.2f}  {record.id}{made_by}")), soft_wrap=True)
        for line in _worst(record):
            for part in textwrap.wrap(visible(line), max(out.width - len(INDENT), NARROWEST)):
                out.print(Text(INDENT + part), soft_wrap=True)


def _worst(record: Audited) -> Iterator[str]:
    """The findings of a record that weigh most, and how many more there are."""
    from labeler.audit import doubt_of

    ranked = sorted(record.findings, key=lambda finding: -doubt_of([finding]))
    yield from map(_line, ranked[:SHOWN_FINDINGS])
    if len(ranked) > SHOWN_FINDINGS:
        yield f"and {len(ranked) - SHOWN_FINDINGS} more"


def _line(finding: Finding) -> str:
    shown = [*finding.keys[:SHOWN_KEYS], *["…"] * (len(finding.keys) > SHOWN_KEYS)]
    keys = f" [{', '.join(shown)}]" if shown else ""
    return f"{finding.check}: {finding.message}{keys}"
