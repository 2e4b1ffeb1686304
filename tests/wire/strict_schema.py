"""What the provider refuses in a strict response format."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from wire.calls import Json

_FORBIDDEN = {
    "default", "oneOf", "allOf", "not", "if", "then", "else", "patternProperties", "uniqueItems",
    "minLength", "maxLength", "dependentRequired", "dependentSchemas", "propertyNames",
    "minProperties", "maxProperties", "contains", "prefixItems", "unevaluatedProperties",
}  # fmt: skip
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)


def format_problems(response_format: Json) -> list[str]:
    """Why the provider would refuse a response format; empty if it would not."""
    if response_format.get("type") != "json_schema":
        return ["response_format.type must be json_schema"]
    declared = response_format.get("json_schema", {})
    problems = []
    if not _NAME.fullmatch(declared.get("name", "")):
        problems.append("json_schema.name must match ^[a-zA-Z0-9_-]{1,64}$")
    if declared.get("strict") is not True:
        problems.append("json_schema.strict must be true here")
    schema = declared.get("schema", {})
    if schema.get("type") != "object" or "anyOf" in schema:
        problems.append("the root must be an object and no anyOf")
    return problems + list(schema_problems(schema, "schema"))


def schema_problems(schema: Any, where: str) -> Iterator[str]:
    """What strict mode does not permit in a schema, and where."""
    if not isinstance(schema, dict):
        return
    yield from (f"{where}: '{word}' is not permitted" for word in sorted(_FORBIDDEN & set(schema)))
    if "$ref" in schema and set(schema) - {"$ref", "description"}:
        yield f"{where}: $ref cannot have siblings"
    if schema.get("type") == "object" or "properties" in schema:
        yield from _object_problems(schema, where)
    children = {**schema.get("properties", {}), **schema.get("$defs", {})}
    for name, child in children.items():
        yield from schema_problems(child, f"{where}.{name}")
    yield from schema_problems(schema.get("items"), f"{where}.items")
    branches = schema.get("anyOf", [])
    firsts = [next(iter(branch["properties"])) for branch in branches if "properties" in branch]
    if len(set(firsts)) < len(firsts):
        yield f"{where}: objects provided via 'anyOf' must not share identical first keys"
    for child in branches:
        yield from schema_problems(child, f"{where}.anyOf")


def _object_problems(schema: Json, where: str) -> Iterator[str]:
    if schema.get("additionalProperties") is not False:
        yield f"{where}: 'additionalProperties' is required to be supplied and to be false"
    if missing := sorted(set(schema.get("properties", {})) - set(schema.get("required", []))):
        yield f"{where}: 'required' is required to include every key in properties: {missing}"
