"""Make thirty corrections in the review app on real rows, and report their effects.

    python benchmarks/review_round_trip.py [--records 30] [--seed 7] [--write PAGE]

The embedded judge labels the RAGBench rows. A browser opens the review app on a random sample of
them and marks, click by click, the published label of the same record: it plays a person who
agrees with GPT-4. Then the same commands run that a person would type: agreement and
corrected means, the corrected labels, and their diff against the judge's.

Needs the rows (see ragbench_data.py) and what tests/browser/requirements.txt lists.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from browsing import chromium, review_app
from harness import options, today
from labeler.api import iter_labels, open_rows, write_labels
from labeler.data.corrections import Judgment, judgment_of
from labeler.judges.embedded import EmbeddedJudge
from labeler.store import MemoryStore
from labeler.version import __version__
from published import published
from ragbench_data import ragbench_files

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

_ID = ("dataset_name", "id", "generation_model_name")
_PERSON = "published"


def main() -> None:
    """Make the labels, correct some of them in a browser, and print what follows."""
    parser = options(__doc__)
    parser.add_argument("--records", type=int, default=30)
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    truth = {one.id: judgment_of(one.label) for one in published()}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        rows = open_rows(ragbench_files(), id_from=",".join(_ID))
        judged = iter_labels(rows, judge=EmbeddedJudge(), store=MemoryStore())
        count = write_labels(judged, folder / "judge.jsonl")
        marks = _review(folder, truth, given.records, given.seed)
        text = _told(folder, count, given.records, given.seed, marks)
    print(text)
    if given.write:
        given.write.write_text(text, encoding="utf-8")


def _review(folder: Path, truth: dict[str, Judgment], records: int, seed: int) -> int:
    """Judge the sample as the published labels do; how many marks were turned."""
    turned = 0
    queue = ("--annotator", _PERSON, "--queue", "random", "--sample", str(records))
    app = review_app(folder, "judge.jsonl", *queue, "--seed", str(seed))
    with app as address, chromium() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(address)
        for number in range(1, records + 1):
            page.wait_for_function(
                "n => document.querySelector('#position')?.value === String(n)", arg=number
            )
            page.locator(".record .sentence").first.wait_for()
            name = page.locator(".record-id code").first.inner_text()
            turned += _mark(page, truth[name])
            while f"{records - number} of" not in page.locator("#counts").inner_text():
                page.keyboard.press("d")  # again where the app asks first
                page.wait_for_timeout(500)
    return turned


def _mark(page: Page, wanted: Judgment) -> int:
    """Turn the marks of the record on the page until they say what is wanted."""
    turned = 0
    for field, keys in (("relevant", wanted.relevant), ("utilized", wanted.utilized)):
        for button in page.locator(f"button.mark.{field}").all():
            key = button.locator("xpath=ancestor::*[@data-key][1]").get_attribute("data-key")
            turned += _set(button, on=key in keys)
    for verdict in page.locator("button.mark.verdict").all():
        row = verdict.locator("xpath=ancestor::*[@data-key][1]")
        key = row.get_attribute("data-key") or ""
        turned += _set(verdict, on=key in wanted.support)
        if key in wanted.support:
            row.click()
            turned += _link(page, wanted.support[key])
    return turned + _set(page.locator(".overall-button"), on=wanted.overall_supported)


def _link(page: Page, wanted: tuple[str, ...]) -> int:
    """Choose what supports the sentence at hand; what is wanted first: some must always be left."""
    links = [*page.locator("button.mark.link").all(), *page.locator("button.special").all()]
    found: list[tuple[Locator, bool]] = []
    for button in links:
        special = button.get_attribute("data-special")
        row = button.locator("xpath=ancestor::*[@data-key][1]")
        found.append((button, (special or row.get_attribute("data-key")) in wanted))
    return sum(_set(button, on=on) for button, on in sorted(found, key=lambda pair: not pair[1]))


def _set(button: Locator, *, on: bool) -> int:
    """Press a button unless it says already what it should."""
    if (button.get_attribute("aria-pressed") == "true") == on:
        return 0
    button.click()
    return 1


def _told(folder: Path, labels: int, records: int, seed: int, marks: int) -> str:
    """What was done, and what the commands say."""
    corrections = "judge.corrections.jsonl"
    commands = [
        ["agree", "judge.jsonl", "--human", corrections, "--random-sample"],
        ["corrections", "apply", "judge.jsonl", corrections, "-o", "corrected.jsonl"],
        ["diff", "judge.jsonl", "corrected.jsonl", "--metrics", "relevance,utilization,adherence"],
    ]
    parts = [
        f"""# A round trip through the review app

{records} of the embedded judge's {labels:,} labels of RAGBench rows, drawn at random (seed {seed}),
were judged in the review app by a browser that marks, click by click, the published label of the
same record: {marks} marks turned. Then, with the commands that a person would type:
"""
    ]
    for command in commands:
        out = subprocess.run(
            [sys.executable, "-m", "labeler", *command],
            cwd=folder,
            env={"PATH": "/usr/bin:/bin", "COLUMNS": "110"},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        shown = "\n".join(line.rstrip() for line in out.stdout.strip().splitlines())
        why = "<!-- not run: the record of a run -->"
        parts.append(f"{why}\n```\n$ labeler {' '.join(command)}\n{shown}\n```\n")
    made = f"Made by `python benchmarks/review_round_trip.py`, {today()}, labeler {__version__}.\n"
    parts.append(made)
    return "\n".join(parts)


if __name__ == "__main__":
    main()
