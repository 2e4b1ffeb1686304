"""How long a browser takes with a report: to its first list, to filter, sort, search and open.

Run from the repository: ``python benchmarks/report_browser.py [RECORDS ...]``; by default 100,
1,000 and 10,000 records, those of ``report_size.py``. It needs what the tests in a browser need:
see ``tests/browser/requirements.txt``. Each figure is the median of several rounds, from what a
person does until the page is drawn anew; the time until a typed word is searched for, which waits
for the next letter, is in it.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from report_size import SIZES, written

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROUNDS = 5
STEPS = ("filter", "sort by metric", "sort by id", "search", "search all texts", "open a record")


def main() -> None:
    """Write a report of each size, use it, and print a table of milliseconds."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - the tests' own package

    sizes = [int(argument) for argument in sys.argv[1:]] or list(SIZES)
    print(f"| records | MB | first list | {' | '.join(STEPS)} |")
    print(f"|--:|--:|--:|{'--:|' * len(STEPS)}")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        for size in sizes:
            report = written(size, Path(folder))
            print(row(browser, size, report.files[0]), flush=True)
        browser.close()


def row(browser: Browser, records: int, file: Path) -> str:
    """A line of the table."""
    rounds = [used(browser, file) for _ in range(ROUNDS)]
    medians = [statistics.median(figures) for figures in zip(*rounds, strict=True)]
    cells = [f"{records:,}", f"{file.stat().st_size / 1e6:.1f}", *(f"{ms:,.0f}" for ms in medians)]
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
