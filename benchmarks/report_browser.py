"""Measure how long a browser takes with a report: first list, filter, sort, search, open.

Run from the repository: ``python benchmarks/report_browser.py [RECORDS ...] [--write FILE]``; by
default the records of ``report_size.py``, whose table it makes too. It needs what the tests in a
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

from report_size import HEAD, SIZES, Written, cells, written

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROUNDS = 3
MARK = "<!-- measured -->\n"
"""Beginning of the outcome in a page."""
STEPS = ("filter", "sort by metric", "sort by id", "search", "search all texts", "open a record")


def main() -> None:
    """Write a report of each size, use it, and print a table of milliseconds."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - the tests' own package

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("records", type=int, nargs="*", default=list(SIZES))
    parser.add_argument("--write", type=Path, help="write the outcome here, below its mark")
    wanted = parser.parse_args()
    sizes = [HEAD, f"|--:|:--{'|--:' * 6}|"]
    times = [f"| records | figures | first list | {' | '.join(STEPS)} |"]
    times.append(f"|--:|--:|--:|{'--:|' * len(STEPS)}")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        for size in wanted.records:
            report = written(size, Path(folder))
            sizes.append(f"| {' | '.join(cells(report))} |")
            times.append(row(browser, report))
        text = outcome(sizes, times, browser.version)
        browser.close()
    print(text)
    if wanted.write:
        above = wanted.write.read_text(encoding="utf-8").partition(MARK)[0]
        wanted.write.write_text(above + text, encoding="utf-8")


def outcome(sizes: list[str], times: list[str], chromium: str) -> str:
    """The tables with what they mean, and where they were made."""
    today = datetime.now(UTC).date().isoformat()
    return f"""{MARK}Synthetic labels with the lengths of RAGBench's rows, audit and intervals
included:

{chr(10).join(sizes)}

Milliseconds in Chromium {chromium} on the same reports, each the median of {ROUNDS} rounds, from
what a person does until the page is drawn again. A search waits 80 ms for the next letter.

{chr(10).join(times)}

Made by `python benchmarks/report_browser.py --write docs/measured/report.md`, {today}, Python
{platform.python_version()}, on two cores that others used too: take milliseconds for upper bounds.
"""


def row(browser: Browser, report: Written) -> str:
    """A line of the table."""
    rounds = [used(browser, report.page) for _ in range(ROUNDS)]
    medians = [statistics.median(figures) for figures in zip(*rounds, strict=True)]
    return f"| {' | '.join([f'{report.records:,}', *(f'{ms:,.0f}' for ms in medians)])} |"


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
    steps: Any = page.evaluate(_USE)
    context.close()
    return [figures, first, *map(float, steps)]


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
  times.push(await took(() => write("row-99"), () => chips() === 1));
  times.push(await took(() => $$("#full").click(), () => $$(".search-progress").hidden));
  write("");
  while (chips() > 0) await drawn();
  times.push(await took(() => $$("#browser tbody a").click(), () => $$("#browser .record")));
  return times;
}"""


if __name__ == "__main__":
    main()
