"""Write comparisons as one HTML page that works without network."""

from __future__ import annotations

from pathlib import Path

from labeler.comparing.comparison import Comparisons
from labeler.comparing.comparison_text import sections
from labeler.data.label_files import replaced
from labeler.report.page import render_page
from labeler.version import __version__

TEMPLATE = "comparison.html.j2"
STYLES = ("base.css", "report.css", "comparison.css")


def write_page(found: Comparisons, path: str | Path) -> None:
    """Write comparisons as a page; the file appears when it is complete.

    Args:
        found: the comparisons.
        path: the file.

    Raises:
        UsageError: the file cannot be written.
    """
    first, *parts = sections(found)
    values = {
        "title": f"{len(found) + 1} sets of labels compared",
        "sides": first.lines,
        "sections": parts,
        "version": __version__,
    }
    page = render_page(TEMPLATE, values, styles=STYLES, scripts=())
    with replaced(Path(path)) as file:
        file.write(page.text)
