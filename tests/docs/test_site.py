"""The parts of the site that are made of the code are whole, and its pages load nothing outside."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer import Context
from typer.core import TyperGroup
from typer.main import get_command

import labeler
import site_pages
from check_site import loads
from labeler.cli import app

DOCS = Path(__file__).parents[2] / "docs"


def test_every_page_has_a_place_in_the_site() -> None:
    """The front page's lists name all others."""
    listed = re.findall(r"^[\w/]+$", (DOCS / "index.md").read_text(encoding="utf-8"), re.MULTILINE)
    pages = [str(page.relative_to(DOCS).with_suffix("")) for page in DOCS.rglob("*.md")]
    assert sorted(listed) == sorted({*pages} - {"index"})


def test_every_command_and_public_name_is_in_the_reference() -> None:
    """As a heading of its own."""
    group = get_command(app)
    assert isinstance(group, TyperGroup)
    commands, names = site_pages.commands(), site_pages.python()
    assert [
        name
        for name in group.list_commands(Context(group))
        if f"\n## `labeler {name}`" not in f"\n{commands}"
    ] == []
    assert re.findall(r"^## ([\w.]+)$", names, re.MULTILINE) == site_pages.public_names()


def test_few_names_are_at_the_top() -> None:
    """The others are reached by package, after ``import labeler`` alone."""
    assert set(labeler.__all__) <= {*dir(labeler)}
    assert len(dir(labeler)) <= 36
    assert labeler.comparing.compare_runs.__module__ == "labeler.comparing.compare"


@pytest.mark.parametrize(
    "page",
    [
        '<script src="https://example.org/a.js"></script>',
        '<link rel="stylesheet" href="//example.org/a.css">',
        "<style>@font-face { src: url(https://example.org/a.woff) }</style>",
    ],
)
def test_a_page_that_loads_from_another_host_is_found(tmp_path: Path, page: str) -> None:
    """A script, a style, a font; a link and a file of the site are none."""
    (tmp_path / "good.html").write_text('<a href="https://example.org"><img src="a.png"></a>')
    assert loads(tmp_path) == []
    (tmp_path / "bad.html").write_text(page)
    assert len(loads(tmp_path)) == 1
