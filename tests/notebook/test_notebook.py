"""The notebook of the examples runs, and each of its cells shows little."""

from __future__ import annotations

import os
import re
from html.parser import HTMLParser
from typing import Any

import pytest

REQUIRED = os.environ.get("NOTEBOOK_TESTS") == "required"
if not REQUIRED:
    pytest.importorskip("nbclient", reason="tests/notebook/requirements.txt is not installed")
    pytest.importorskip("ipykernel", reason="tests/notebook/requirements.txt is not installed")

LIMIT = 3_000
"""Characters that a cell may show, in any one form."""


@pytest.fixture(scope="module")
def cells() -> list[Any]:
    """The cells after a run."""
    from run_notebook import executed

    return [cell for cell in executed().cells if cell.cell_type == "code"]


def forms(cell: Any) -> list[dict[str, str]]:
    """What a cell shows, by MIME type, for each of its outputs; the rate of a run is left out."""
    shown = [
        {"text/plain": output["text"]} if "text" in output else output["data"]
        for output in cell.outputs
    ]
    return [{kind: re.sub(r" \d+/s,", "", text) for kind, text in form.items()} for form in shown]


def test_every_cell_shows_less_than_a_screen(cells: list[Any]) -> None:
    """All its outputs together, as text and as HTML."""
    for cell in cells:
        for kind in ("text/plain", "text/html"):
            shown = sum(len(form.get(kind, "")) for form in forms(cell))
            assert shown < LIMIT, (kind, shown, cell.source)


def test_a_cell_that_ends_in_a_value_shows_a_table(cells: list[Any]) -> None:
    """Progress is a line that is replaced, and results are HTML without scripts."""

    class Tags(HTMLParser):
        def handle_starttag(self, tag: str, attrs: object) -> None:
            del attrs
            tags.append(tag)

    tags: list[str] = []
    pages = [form["text/html"] for cell in cells for form in forms(cell) if "text/html" in form]
    assert sum("<table" in page for page in pages) >= len(("labels", "audit", "compare", "check"))
    Tags().feed("".join(pages))
    assert not {"script", "iframe", "img", "link"} & set(tags)
    assert any("labeling: 6 of 6" in page for page in pages)


def test_the_outputs_that_are_kept_are_the_present_ones(cells: list[Any]) -> None:
    """``python scripts/run_notebook.py`` writes them."""
    import nbformat

    from run_notebook import NOTEBOOK

    kept = [cell for cell in nbformat.read(NOTEBOOK, as_version=4).cells if "outputs" in cell]
    assert [forms(cell) for cell in kept] == [forms(cell) for cell in cells]
