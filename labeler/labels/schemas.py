"""Prompts and schemas that ship with the package, and JSON schemas of judge answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from labeler.errors import UnknownName
from labeler.labels.signature import Artifact, digest

_PACKAGE = Path(__file__).parent.parent


def resource_folder(kind: str) -> Path:
    """Return the folder of one kind of resource, inside the package or next to it.

    Args:
        kind: ``prompts`` or ``schemas``.

    Raises:
        UnknownName: the installation is broken, because neither folder exists.
    """
    for place in (_PACKAGE / kind, _PACKAGE.parent / kind):
        if place.is_dir():
            return place
    raise UnknownName(
        f"no {kind} folder in {_PACKAGE} or next to it: "
        "reinstall the package, its wheel carries them"
    )


def resource_names(kind: str, suffix: str) -> list[str]:
    """Return the sorted names of all resources of a kind, such as ``trace/v1``."""
    root = resource_folder(kind)
    found = (path.relative_to(root).as_posix() for path in root.rglob(f"*{suffix}"))
    return sorted(name.removesuffix(suffix) for name in found)


def read_resource(kind: str, name: str, suffix: str) -> str:
    """Read one resource as text.

    Raises:
        UnknownName: no resource has that name.
    """
    folder, known = resource_folder(kind), resource_names(kind, suffix)
    if name not in known:
        have = ", ".join(known)
        raise UnknownName(f"no {kind.rstrip('s')} {name!r} in {folder}; have: {have}")
    return (folder / f"{name}{suffix}").read_text(encoding="utf-8")


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
    return ResponseSchema(name, read_resource("schemas", name, ".json"))
