"""JSON schemas of judge answers, loaded by name and version."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from labeler.labels import resources
from labeler.labels.signature import Artifact, digest

DEFAULT_SCHEMA = "label-trace/v1"


@dataclass(frozen=True)
class ResponseSchema:
    """A published JSON schema of an answer."""

    name: str
    text: str

    @cached_property
    def json_schema(self) -> Mapping[str, Any]:
        """The parsed schema."""
        schema: dict[str, Any] = json.loads(self.text)
        return schema

    @cached_property
    def compact(self) -> str:
        """The schema as it is sent: the same JSON without spaces."""
        return json.dumps(self.json_schema, separators=(",", ":"), ensure_ascii=False)

    @cached_property
    def artifact(self) -> Artifact:
        """Name and digest, as in a label's key; the order of fields is part of the digest."""
        return Artifact(name=self.name, digest=digest(self.text))


@lru_cache
def load_schema(name: str = DEFAULT_SCHEMA) -> ResponseSchema:
    """Load the published schema of a label profile, such as ``label-trace/v1``."""
    return ResponseSchema(name, resources.read("schemas", name, ".json"))
