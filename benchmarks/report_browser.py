"""Measure reports of synthetic labels: what writing them takes, and how long a browser takes.

    python benchmarks/report_browser.py [RECORDS ...] [--write docs/measured/report.md]

Labels are those of ``speed_labels.py``; up to 10,000 records a report is a page. Each command is a
process of its own. In the browser each figure is the median of several rounds, from what a person
does until the page is drawn again; the time until a typed word is searched for, which waits for the
next letter, is in it.
"""

from __future__ import annotations

import platform
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from browsing import chromium
from harness import options, publish, spent, table, today
from labeler.report import PAGE_RECORDS
from speed_labels import write_labels

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROUNDS = 3
USE = Path(__file__).with_name("report_use.js").read_text(encoding="utf-8")
STEPS = ("filter", "sort by metric", "sort by id", "search", "search all texts", "open a record")


class Written(NamedTuple):
    """A report that was written: its page, and the cells of what it took."""

    page: Path
    cells: list[str]


def written(records: int, folder: Path) -> Written:
    """Write a report of so many labels into a folder."""
    labels = folder / f"labels-{records}.jsonl"
    write_labels(labels, records)
    target = folder / f"report-{records}{'.html' if records <= PAGE_RECORDS else ''}"
    report, audit = (
        spent("labeler", "report", labels, "-o", target),
        spent("labeler", "audit", labels),
    )
    files = [target] if target.is_file() else list(target.rglob("*.*"))
    page = target if target.is_file() else target / "index.html"
    sizes = page.stat().st_size, sum(each.stat().st_size for each in files)
    cells = [f"{records:,}", "page" if target.is_file() else "folder"]
    cells += [f"{report.cpu:.0f}", f"{report.megabytes:,.0f}", *(f"{n / 1e6:.1f}" for n in sizes)]
    return Written(page, [*cells, f"{audit.cpu:.0f}", f"{audit.megabytes:,.0f}"])


def used(browser: Browser, file: Path) -> list[float]:
    """Open a report in a fresh window and use it once; milliseconds of each thing done."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(600_000)
    page = context.new_page()
    began = time.perf_counter()
    page.goto(file.as_uri(), wait_until="commit")
    page.wait_for_selector(".tiles")
    figures = (time.perf_counter() - began) * 1e3
    page.wait_for_selector("#browser .records tbody tr")
    first = (time.perf_counter() - began) * 1e3
    steps: Any = page.evaluate(USE)
    context.close()
    return [figures, first, *map(float, steps)]


def main() -> None:
    """Write a report of each size, use it, and print both tables."""
    parser = options(__doc__)
    parser.add_argument("records", type=int, nargs="*", default=[1_000, 10_000, 100_000])
    given = parser.parse_args()
    sizes, times = [], []
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        for records in given.records:
            report = written(records, Path(folder))
            sizes.append(report.cells)
            rounds = [used(browser, report.page) for _ in range(ROUNDS)]
            medians = map(statistics.median, zip(*rounds, strict=True))
            times.append([f"{records:,}", *(f"{ms:,.0f}" for ms in medians)])
        version = browser.version
    heads = ["records", "report", "s of CPU", "peak MB", "page, MB", "all, MB"]
    above = (
        f"{today()}, Python {platform.python_version()}, on two cores that others used too: take "
        "milliseconds for upper bounds. Synthetic labels with the lengths of RAGBench's rows, "
        "audit and intervals included:\n"
    )
    between = (
        f"\nMilliseconds in Chromium {version} on the same reports, each the median of {ROUNDS} "
        "rounds, from what a person does until the page is drawn again. A search waits 80 ms for "
        "the next letter.\n"
    )
    written_in = table([*heads, "audit, s of CPU", "peak MB"], sizes, left=2)
    shown_in = table(["records", "figures", "first list", *STEPS], times, left=0)
    publish(given.write, "measured", [above, *written_in, between, *shown_in])


if __name__ == "__main__":
    main()
