"""Prompts and schemas: published versions never change."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from export_schemas import SCHEMAS, rendered
from labeled import output, record
from labeler.errors import UnknownName
from labeler.labels import resources
from labeler.labels.profiles import PROFILES
from lock_artifacts import LOCK, digests

Json = dict[str, Any]


def test_published_versions_are_never_edited() -> None:
    """To change one, add the next version beside it, and its digest to the lock."""
    locked = json.loads(LOCK.read_text())
    changed = {name for name, digest in digests().items() if locked.get(name, digest) != digest}
    assert not changed, (
        f"published and edited: {sorted(changed)}; restore them and add a new version"
    )
    assert set(locked) == set(digests()), "name every file in tests/golden/digests.json"


@pytest.mark.parametrize("name", SCHEMAS)
def test_schemas_are_the_classes(name: str) -> None:
    """scripts/export_schemas.py writes what is in schemas/."""
    assert resources.read("schemas", name, ".json") == rendered(name)


def test_a_label_and_a_record_validate() -> None:
    """What we write is what the schemas say."""
    label, stored = (
        json.loads(resources.read("schemas", name, ".json"))
        for name in ("label-trace/v1", "record/v1")
    )
    jsonschema.validate(output().model_dump(mode="json"), label)
    jsonschema.validate(record().model_dump(mode="json"), stored)


@pytest.mark.parametrize("profile", list(PROFILES))
def test_the_label_schemas_are_strict_safe(profile: str) -> None:
    """Every object closed, every property required, no defaults: what strict mode accepts."""
    text = resources.read("schemas", PROFILES[profile].schema, ".json")
    for part in objects(json.loads(text)):
        assert part["additionalProperties"] is False
        assert part["required"] == list(part["properties"])
    assert '"default"' not in text
    assert '"anyOf"' not in text


@pytest.mark.parametrize("profile", list(PROFILES))
def test_the_label_schemas_say_what_binds_and_nothing_else(profile: str) -> None:
    """They go with every record; what fields mean stands in the prompt, and in record/v1."""
    schema = json.loads(resources.read("schemas", PROFILES[profile].schema, ".json"))
    words = {word for part in parts(schema) for word in part}
    assert words == {"type", "properties", "items", "required", "additionalProperties"} | (
        {"enum"} if profile != "trace" else set()
    )
    record = json.loads(resources.read("schemas", "record/v1", ".json"))
    for name, field in record["$defs"]["ReferenceLabelingOutput"]["properties"].items():
        assert field["description"], name


def parts(schema: Json) -> Iterator[Json]:
    """A schema and all schemas within it."""
    yield schema
    for part in [*schema.get("properties", {}).values(), *filter(None, [schema.get("items")])]:
        yield from parts(part)


def objects(schema: Json) -> list[Json]:
    """Those that describe an object."""
    return [part for part in parts(schema) if part["type"] == "object"]


def test_explanations_come_before_verdicts() -> None:
    """A model writes its reasons first: the order of fields is part of the method."""
    schema = json.loads(resources.read("schemas", "label-trace/v1", ".json"))
    fields = list(schema["properties"])
    assert fields.index("relevance_explanation") < fields.index("all_relevant_sentence_keys")
    assert fields.index("overall_supported_explanation") < fields.index("overall_supported")
    sentence = list(schema["properties"]["sentence_support_information"]["items"]["properties"])
    assert sentence.index("explanation") < sentence.index("fully_supported")


def test_an_unknown_name_lists_what_there_is() -> None:
    """And a name cannot walk out of its folder."""
    with pytest.raises(UnknownName, match=r"no prompt 'trace/v9' in .*; have: .*trace/v1"):
        resources.read("prompts", "trace/v9", ".md")
    with pytest.raises(UnknownName):
        resources.read("prompts", "../README", ".md")
