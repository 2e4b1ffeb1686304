"""Rates of the checks of an audit as tables and lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from labeler.audit.auditing import Audit, AuditedRecord, CheckRow
from labeler.audit.registry import Check
from labeler.sentences.display import NONE, Column, Grid, Section, percent
from labeler.version import __version__

SHOWN_GROUPS = 12
"""Largest number of groups with a column of rates; JSON has all."""


def rates(found: Audit, by: str | None, *, details: bool) -> Iterator[Section]:
    """Yield the rates of each judge configuration, with a column for each group.

    Args:
        found: the audit.
        by: the metadata column of the groups.
        details: True for checks without a finding, and judge configurations.
    """
    for label in dict.fromkeys(row.label for row in found.rows):
        made = [record for record in found.records if record.label == label]
        rows = [row for row in found.rows if row.label == label]
        totals = _totals(rows)
        flagging = {check: total for check, total in totals.items() if total.flagged}
        grids, lines = list[Grid](), list[str]()
        if flagging and by is None:
            grids = [_totals_grid(flagging)]
        elif flagging:
            groups, grid = _by_group(flagging, rows, made, by)
            grids = [grid]
            if len(groups) < (several := len({record.group for record in made})):
                left = f"{len(groups)} of {several} groups, those with most records"
                lines = [f"shown by {by}: {left} (--json has all)"]
        if details:
            clean = [check.id for check, one in totals.items() if one.records and not one.flagged]
            idle = [check.id for check, total in totals.items() if not total.records]
            lines += [f"found nothing: {', '.join(clean)}"] if clean else []
            lines += [f"nothing to look at: {', '.join(idle)}"] if idle else []
        lines += [str(same) for same in found.same_documents if same.label == label]
        if details:
            lines.append(f"{len(made)} records by {label}|labeler:{__version__}\n")
        yield Section(None, grids, lines)


def _totals(rows: Sequence[CheckRow]) -> dict[Check, CheckRow]:
    """Return the counts of each check over all groups."""
    totals: dict[Check, CheckRow] = {}
    for row in rows:
        if total := totals.get(row.check):
            total = replace(
                total,
                records=total.records + row.records,
                flagged=total.flagged + row.flagged,
                findings=total.findings + row.findings,
            )
        totals[row.check] = total or row
    return totals


def _by_group(
    flagging: Mapping[Check, CheckRow],
    rows: Sequence[CheckRow],
    made: Sequence[AuditedRecord],
    by: str | None,
) -> tuple[list[str | None], Grid]:
    """Return the groups that are shown, and a table with a column for each."""
    sizes = Counter(record.group for record in made)
    groups = sorted((group for group, _ in sizes.most_common(SHOWN_GROUPS)), key=str)
    columns = [Column(f"flagged by {by}", words=True), Column("all")]
    columns += [Column(str(group)) for group in groups]
    cells = [["(records)", str(len(made)), *(str(sizes[group]) for group in groups)]]
    for check, total in flagging.items():
        own = {row.group: row for row in rows if row.check is check}
        cells.append([check.id, *map(_flagged, [total, *(own[group] for group in groups)])])
    return groups, Grid(columns, cells)


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
