"""Measure reports and audits of synthetic labels: processor time, memory and size.

Run from the repository: ``python benchmarks/report_size.py [RECORDS ...]``; by default 1,000,
10,000 and 100,000 records of ``speed_labels.py``. Each command is a process of its own.
Up to 10,000 records a report is a page.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from labeler.report import PAGE_RECORDS
from speed_labels import write_labels

SIZES = (1_000, 10_000, 100_000)
HEAD = "| records | report | s of CPU | peak MB | page, MB | all, MB | audit, s of CPU | peak MB |"


class Ran(NamedTuple):
    """What a process took.

    Attributes:
        seconds: its processor time.
        peak: its largest memory, in MB.
    """

    seconds: float
    peak: float


class Written(NamedTuple):
    """A report that was written.

    Attributes:
        records: how many records it has.
        page: its page.
        size: bytes of all files.
        report: what writing it took.
        audit: what auditing the same labels took.
    """

    records: int
    page: Path
    size: int
    report: Ran
    audit: Ran


def main() -> None:
    """Write a report of each size and print a table."""
    print(HEAD, f"|--:|:--{'|--:' * 6}|", sep="\n")
    with tempfile.TemporaryDirectory() as folder:
        for size in [int(argument) for argument in sys.argv[1:]] or list(SIZES):
            print(f"| {' | '.join(cells(written(size, Path(folder))))} |", flush=True)


def cells(report: Written) -> list[str]:
    """The cells of a line of the table."""
    return [
        f"{report.records:,}",
        "folder" if report.page.name == "index.html" else "page",
        f"{report.report.seconds:.0f}",
        f"{report.report.peak:,.0f}",
        f"{report.page.stat().st_size / 1e6:.1f}",
        f"{report.size / 1e6:.1f}",
        f"{report.audit.seconds:.0f}",
        f"{report.audit.peak:,.0f}",
    ]


def written(records: int, folder: Path) -> Written:
    """Write a report of so many labels into a folder.

    Args:
        records: how many.
        folder: where; the names of files have the number of records in them.
    """
    labels = folder / f"labels-{records}.jsonl"
    write_labels(labels, records)
    target = folder / f"report-{records}{'.html' if records <= PAGE_RECORDS else ''}"
    report = ran("report", str(labels), "-o", str(target))
    audit = ran("audit", str(labels))
    files = [target] if target.is_file() else list(target.rglob("*.*"))
    page = target if target.is_file() else target / "index.html"
    return Written(records, page, sum(each.stat().st_size for each in files), report, audit)


def ran(*words: str) -> Ran:
    """Run a command of labeler, and return what it took.

    Raises:
        SystemExit: it failed.
    """
    command = [sys.executable, "-m", "labeler", *words]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{' '.join(command)} failed")
    return Ran(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


if __name__ == "__main__":
    main()
