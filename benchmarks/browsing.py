"""A browser and the review app; needs what ``tests/browser/requirements.txt`` lists."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start a browser that reaches nothing by itself."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - not everyone has it

    names = ("chromium", "chromium-headless-shell")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=next(filter(None, map(shutil.which, names)), None),
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        yield browser
        browser.close()


@contextmanager
def review_app(folder: Path, labels: str, *options: str) -> Iterator[str]:
    """Run the review app in a folder, and give its address; then print what it said."""
    command = [sys.executable, "-m", "labeler", "review", labels, *options]
    output = folder / "review.txt"
    with (
        output.open("w") as written,
        subprocess.Popen(command, cwd=folder, stderr=written) as running,
    ):
        try:
            while not (found := re.search(r"http://\S+#token=\S+", output.read_text())):
                if running.poll() is not None:
                    sys.exit(f"the review app did not start: {output.read_text()}")
                time.sleep(0.1)
            yield found[0]
        finally:
            running.send_signal(signal.SIGINT)
    print(output.read_text(), file=sys.stderr)
