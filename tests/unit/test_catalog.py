"""Catalogs."""

from __future__ import annotations

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
