"""Takes the pictures of docs/images: the pages, made of examples/rows.jsonl by the embedded judge.

    python scripts/screenshots.py [FOLDER]

Into another folder, each is also taken on a phone and in the dark, which no page of docs shows.
Needs what tests/browser/requirements.txt lists.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import labeler

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))
from browsing import chromium, review_app

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

Row = dict[str, Any]

ROOT = Path(__file__).parent.parent
ROWS = ROOT / "examples" / "rows.jsonl"
RECORD = "report.html#record=pilot-boat-half"
LISTED = "#browser :text('tide')"
Scheme = Literal["light", "dark"]
WIDTHS = {"desktop": (1280, 900), "phone": (390, 844)}


def main() -> None:
    """Make the pages, and take a picture of each view in each scheme."""
    own = ROOT / "docs" / "images"
    images = Path(sys.argv[1]) if len(sys.argv) > 1 else own
    schemes: tuple[Scheme, ...] = ("light",) if images == own else ("light", "dark")
    devices = ["desktop"] if images == own else [*WIDTHS]
    images.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        make(folder)
        with chromium() as browser:
            pages = folder.as_uri()
            for scheme in schemes:
                picture = Picture(browser, images, scheme, devices)
                picture.take("report-summary", f"{pages}/report.html", shows=LISTED)
                picture.take("comparison", f"{pages}/comparison.html", shows="h1")
                picture.take("report-record", f"{pages}/{RECORD}", shows=".record")
                picture.take("diff", f"{pages}/diff.html", shows="h1")
                (folder / "labels.corrections.jsonl").unlink(missing_ok=True)
                queue = ("--queue", "doubtful", "--annotator", "ann")
                with review_app(folder, "labels.jsonl", *queue) as address:
                    picture.take("review", address, shows=".record", before=correct)


def make(folder: Path) -> None:
    """Label the examples, and write the pages."""
    rows = [json.loads(line) for line in ROWS.read_text(encoding="utf-8").splitlines()]
    before, after = versions(rows)
    sets = {"labels": rows, "before": before, "after": after}
    labels = {
        name: labeler.label(some, judge="embedded", store=labeler.MemoryStore())
        for name, some in sets.items()
    }
    for name, some in labels.items():
        some.save(folder / f"{name}.jsonl")
    labels["labels"].at(support=0.9).save(folder / "strict.jsonl")
    for command in (
        ["compare", "before.jsonl", "after.jsonl", "--html", "comparison.html"],
        ["report", "labels.jsonl", "--by", "domain", "-o", "report.html"],
        ["diff", "labels.jsonl", "strict.jsonl", "--html", "diff.html"],
    ):
        subprocess.run(
            [sys.executable, "-m", "labeler", *command],
            cwd=folder,
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )


def versions(rows: list[Row]) -> tuple[list[Row], list[Row]]:
    """Return one answer to each question of an earlier and of a later version of a system.

    The earlier one invents; the later one stops after its first sentence where it would.
    """
    by_question: dict[str, list[Row]] = {}
    for row in rows:
        by_question.setdefault(row["question"], []).append(row)
    before, after = [], []
    for good, *bad in by_question.values():
        first = re.split(r"(?<=\.) ", good["response"])[0]
        later = good if bad or not good["id"].endswith("-half") else good | {"response": first}
        before.append([good, *bad][-1] | {"id": good["id"]})
        after.append(later)
    return before, after


def correct(page: Page) -> None:
    """Turn a mark where the judge is wrong: half of what the sentence says is invented."""
    while page.locator(".record-id").inner_text().split()[-1] != "knee-exercise-half":
        before = page.locator(".record-id").inner_text()
        page.keyboard.press("j")
        page.wait_for_function(
            "was => document.querySelector('.record-id')?.innerText !== was", arg=before
        )
    page.locator('.sentence[data-key="b"]').click()
    page.keyboard.press("s")


class Picture:
    """Takes pictures in one colour scheme, on each device."""

    def __init__(self, browser: Browser, images: Path, scheme: Scheme, devices: list[str]) -> None:
        self._browser, self._images, self._scheme = browser, images, scheme
        self._devices = devices

    def take(
        self,
        name: str,
        address: str,
        *,
        shows: str,
        before: Callable[[Page], None] = lambda _: None,
    ) -> None:
        """Open a page at each width, and keep what is seen.

        Args:
            name: of the picture.
            address: of the page.
            shows: what is there once the page is drawn.
            before: what to do first.
        """
        for device in self._devices:
            width, height = WIDTHS[device]
            context = self._browser.new_context(
                viewport={"width": width, "height": height},
                color_scheme=self._scheme,
                reduced_motion="reduce",
            )
            page = context.new_page()
            page.goto(address)
            page.wait_for_load_state("networkidle")
            page.locator(shows).first.wait_for(state="attached")
            before(page)
            page.wait_for_timeout(300)
            suffix = "" if device == "desktop" else f"-{device}"
            page.screenshot(path=self._images / f"{name}{suffix}-{self._scheme}.png")
            context.close()


if __name__ == "__main__":
    main()
