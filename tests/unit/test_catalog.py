"""Catalogs."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from labeler.catalog import Catalog
from labeler.errors import UnknownName
from labeler.judges.task import TASK_KINDS
from labeler.labels.record import RECORDS


def colours() -> Catalog[object]:
    """A catalog with a thing and a dotted name in it."""
    catalog: Catalog[object] = Catalog("colour")
    catalog.add("red", 1)
    catalog.add("path", "os.path:join")
    return catalog


def test_an_unknown_name_names_the_nearest_and_all() -> None:
    """The error says what was asked, what is near, and what there is."""
    with pytest.raises(
        UnknownName, match=r"unknown colour 'rad'; did you mean 'red'\? have: path, red"
    ):
        colours()["rad"]


def test_a_dotted_entry_is_imported_on_use() -> None:
    """An entry given as text becomes the thing itself, once."""
    import os.path

    catalog = colours()
    assert catalog["path"] is os.path.join
    assert list(catalog) == ["red", "path"]


def test_third_parties_need_no_registration() -> None:
    """A look-up takes package.module:name."""
    import json.decoder

    assert colours()["json.decoder:JSONDecoder"] is json.decoder.JSONDecoder


@pytest.mark.parametrize("name", ["no.such.module:x", "os.path:no_such_name"])
def test_what_cannot_be_imported_is_an_unknown_name(name: str) -> None:
    """A wrong dotted name gives the catalog's error, not an ImportError."""
    with pytest.raises(UnknownName, match="cannot import colour"):
        colours()[name]


def test_a_name_is_taken_once() -> None:
    """Registering a name twice is a mistake in the program."""
    with pytest.raises(ValueError, match="already registered"):
        colours().add("red", 2)


def test_every_kind_of_task_and_record_is_there() -> None:
    """Kinds of plug-ins are imported on first use; a record's class has its kind."""
    tasks = {name: TASK_KINDS[name] for name in TASK_KINDS}
    labels = {"trace", "claims", "reference", "retrieval"}
    assert tasks.keys() == labels
    assert all(kind.name == name for name, kind in tasks.items())
    assert {"score", "steps", "questions", "similarity"} < set(names := RECORDS.names())
    assert all(RECORDS[name].model_fields["kind"].default == name for name in names)


PACKAGE = Path(__file__).parents[2] / "labeler"
PRIVATE = re.compile(
    r"^\s*(?:from|import) (?:openai|instructor|tenacity|diskcache|typer|httpx2|aiohttp)[\w.]*\._"
)
"""An import of a library's private module."""


def constants(module: ast.Module) -> Iterator[str]:
    """Yield the names that a module assigns at its top."""
    for node in module.body:
        if isinstance(node, ast.Assign):
            targets: list[ast.expr] = node.targets
        else:
            targets = [node.target] if isinstance(node, ast.AnnAssign) else []
        yield from (one.id for one in targets if isinstance(one, ast.Name))


def test_a_constant_has_one_value() -> None:
    """A second one in the same module would silently replace the first."""
    for path in PACKAGE.rglob("*.py"):
        counts = Counter(constants(ast.parse(path.read_text(encoding="utf-8"))))
        assert max(counts.values(), default=1) == 1, (path, counts.most_common(1))


def test_libraries_are_used_by_their_public_names() -> None:
    """What they keep to themselves may change with any version."""
    for path in PACKAGE.rglob("*.py"):
        lines = path.read_text(encoding="utf-8").splitlines()
        assert not [line for line in lines if PRIVATE.search(line)], path


def test_the_core_names_no_plugin() -> None:
    """Not even in a text that is imported later: entry points are the only door."""
    for path in PACKAGE.rglob("*.py"):
        if "plugins" not in path.relative_to(PACKAGE).parts:
            assert not re.search(r"\bplugins\b", path.read_text(encoding="utf-8")), path
