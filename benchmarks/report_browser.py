"""Measure how long a browser takes with a report: first list, filter, sort, search, open.

Run from the repository: ``python benchmarks/report_browser.py [RECORDS ...] [--write FILE]``; by
default 100, 1,000 and 10,000 records, those of ``report_size.py``. It needs what the tests in a
browser need: see ``tests/browser/requirements.txt``. Each figure is the median of several rounds,
from what a person does until the page is drawn again; the time until a typed word is searched for,
which waits for the next letter, is in it.
"""

from __future__ import annotations

import argparse
import platform
import shutil
import statistics
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from report_size import SIZES, Written, written

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROUNDS = 5
STEPS = ("filter", "sort by metric", "sort by id", "search", "search all texts", "open a record")


def main() -> None:
    """Write a report of each size, use it, and print a table of milliseconds."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - the tests' own package

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("records", type=int, nargs="*", default=list(SIZES))
    parser.add_argument("--write", type=Path, help="write the outcome here, as Markdown")
    wanted = parser.parse_args()
    lines = [
        f"| records | MB | written in | first list | {' | '.join(STEPS)} |",
        f"|--:|--:|--:|--:|{'--:|' * len(STEPS)}",
    ]
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        for size in wanted.records:
            report = written(size, Path(folder))
            lines.append(row(browser, report))
        text = page_of(lines, browser.version)
        browser.close()
    print(text)
    if wanted.write:
        wanted.write.write_text(text, encoding="utf-8")


def page_of(lines: list[str], chromium: str) -> str:
    """The table with what it means, and where it was made."""
    today = datetime.now(UTC).date().isoformat()
    return f"""# The report's size and speed

Reports of RAGBench's own rows with their published labels, repeated under new ids, with a summary
by subset. Milliseconds in Chromium {chromium}, each the median of {ROUNDS} rounds, from what a
person does until the page is drawn again; also the time to write the report, audit and
intervals included. A search waits 80 ms for the next letter. A file holds 10,000 records at most;
what is beyond is split into files that lead to each other.

{chr(10).join(lines)}

Made by `python benchmarks/report_browser.py`, {today}, Python {platform.python_version()}, on two
cores that others used too: take times for upper bounds.
"""


def row(browser: Browser, report: Written) -> str:
    """A line of the table."""
    (file,) = report.files
    rounds = [used(browser, file) for _ in range(ROUNDS)]
    medians = [statistics.median(figures) for figures in zip(*rounds, strict=True)]
    cells = [f"{report.records:,}", f"{file.stat().st_size / 1e6:.1f}", f"{report.seconds:.1f} s"]
    cells += [f"{ms:,.0f}" for ms in medians]
    return f"| {' | '.join(cells)} |"


def used(browser: Browser, file: Path) -> list[float]:
    """Open a report in a fresh window and use it once; milliseconds of each thing done."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(600_000)
    page = context.new_page()
    began = time.perf_counter()
    page.goto(file.as_uri(), wait_until="commit")
    page.wait_for_selector("#browser .records tbody tr")
    first = (time.perf_counter() - began) * 1e3
    steps: Any = page.evaluate(_USE)
    context.close()
    return [first, *map(float, steps)]


_USE = """async () => {
  const $$ = (selector) => document.querySelector(selector);
  const drawn = () => new Promise((go) => requestAnimationFrame(() => setTimeout(go, 0)));
  const took = async (act, done) => {
    const began = performance.now();
    act();
    do await drawn(); while (!done());
    return performance.now() - began;
  };
  const choose = (selector, value) => {
    $$(selector).value = value;
    $$(selector).dispatchEvent(new Event("change"));
  };
  const write = (text) => {
    $$("#search").value = text;
    $$("#search").dispatchEvent(new Event("input"));
  };
  const chips = () => document.querySelectorAll("[aria-label^='Remove filter']").length;
  const now = () => true;
  const times = [];
  times.push(await took(() => choose("#filter-pattern", "0"), now));
  $$("[aria-label^='Remove filter']").click();
  times.push(await took(() => choose("#sort", "relevance"), now));
  times.push(await took(() => choose("#sort", "id"), now));
  times.push(await took(() => write("the"), () => chips() === 1));
  times.push(await took(() => $$("#full").click(), () => $$(".search-progress").hidden));
  write("");
  while (chips() > 0) await drawn();
  times.push(await took(() => $$("#browser tbody a").click(), () => $$("#browser .record")));
  return times;
}"""


if __name__ == "__main__":
    main()
