"""Servers of many dialects, and the recipes of the page about them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from harness import line
from judge_dialects import COUNT, label, row_of
from support.command import Command
from support.printed import read_block
from wire.dialects import DIALECTS, KEY, Dialect, Stand
from wire.runs import row_file, rows

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "judges.md").read_text(encoding="utf-8")
MEASURED = (ROOT / "docs" / "measured" / "judges.md").read_text(encoding="utf-8")
BY_NAME = {dialect.name: dialect for dialect in DIALECTS}
every_dialect = pytest.mark.parametrize("dialect", DIALECTS, ids=BY_NAME)


@every_dialect
def test_every_dialect_is_labeled_as_the_page_says(dialect: Dialect) -> None:
    """All rows but the one that is too long; the line is that of the page."""
    row = row_of(dialect)
    assert row[1] == f"{COUNT} of {COUNT}"
    assert line(row) in MEASURED.splitlines()


@every_dialect
def test_a_wrong_key_is_named_in_every_dialect(dialect: Dialect) -> None:
    """Whatever the status and form of the refusal; nothing more is asked then."""
    ended = label(dialect, rows(COUNT), key="sk-another-0123456789")
    last = ended.said.splitlines()[-1]
    assert (ended.code, ended.outcomes) == (2, [])
    assert "after 1 request: the API key was not accepted" in last


def test_a_list_of_all_fields_is_no_complaint_about_the_format() -> None:
    """The unknown field is named, and the output mode stays."""
    ended = label(BY_NAME["Bedrock, compatible"], rows(COUNT), "--reasoning-effort", "low")
    assert "parameter reasoning_effort" in ended.said
    assert "--output-mode" not in ended.said


# The recipes of the page


def recipe(name: str) -> str:
    """The block of a recipe, with a key in place of the dots."""
    found = re.search(rf"<!-- recipe: {re.escape(name)} -->\n```sh\n(.*?)```", PAGE, re.DOTALL)
    assert found, name
    return found[1].replace("=…", f"={KEY}")


@pytest.mark.parametrize("name", re.findall(r"<!-- recipe: (.*?) -->", PAGE))
def test_each_recipe_of_the_page_labels(
    name: str, tmp_path: Path, labeler_command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a shell reads the printed block, but for the address, which is that of the stand-in."""
    row_file(tmp_path, rows(COUNT))
    keyed = KEY if KEY in recipe(name) else ""
    with Stand(BY_NAME[name], keyed) as server:
        host = f"http://127.0.0.1:{server.port}"
        told = re.sub(r"(?<=--base-url )https?://[^/\s]+", host, recipe(name))
        preset = [] if "--base-url" in told else ["--base-url", server.url]
        (command,) = read_block(told, tmp_path)
        for key in (one for one in command.variables if one.endswith("_API_KEY")):
            monkeypatch.setenv(key, command.variables[key])
        code, _, err = labeler_command(*command.arguments, *preset)
    assert code == 0, err
    written = (tmp_path / "labels.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(one)["kind"] for one in written] == ["label"] * COUNT
