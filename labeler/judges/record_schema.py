"""Schemas that list a record's own keys, for servers that compile a schema cheaply."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from labeler.judges.terse import JOINED, NO_KEYS, SHORT, joined_keys
from labeler.labels.answers import SPECIAL_SUPPORT
from labeler.labels.schemas import ResponseSchema
from labeler.sentences.example import KeyedExample

KeysVersion = Literal["own-keys/1"]
KEYS_VERSION: KeysVersion = "own-keys/1"
"""Version of the schema that :func:`with_own_keys` makes. It is part of label keys."""


def with_own_keys(schema: ResponseSchema, example: KeyedExample) -> ResponseSchema:
    """Return a schema in which each pattern of a key is the list of the record's keys that fit it.

    In a terse schema, a pattern of several keys names those of the record.

    A list of keys has at most as many entries as there are keys, and each response sentence has one
    entry. The name is that of the published schema. Other schemas than version 2 of labels have no
    patterns, and stay as they are.
    """
    if not schema.has_decisions:
        return schema
    shown = (*example.evidence_sentences(), *example.response, *(example.reference or ()))
    keys = [*(sentence.key for sentence in shown), *SPECIAL_SUPPORT]
    listed = _listed(schema.json_schema, keys)
    sentences = "sentence_support_information"
    entries = listed["properties"][SHORT[sentences] if schema.is_terse else sentences]
    entries["minItems"] = entries["maxItems"] = len(example.response)
    return replace(schema, text=json.dumps(listed, ensure_ascii=False))


def _listed(part: Any, keys: Sequence[str]) -> Any:  # noqa: ANN401 - any part of a schema
    if isinstance(part, list):
        return [_listed(one, keys) for one in part]
    if not isinstance(part, dict):
        return part
    if "pattern" in part:
        fitting = [key for key in keys if re.search(part["pattern"], key)]
        if part["pattern"].startswith(JOINED):
            own = joined_keys("|".join(map(re.escape, fitting))) if fitting else f"^{NO_KEYS}$"
            return {"type": "string", "pattern": own}
        return {"type": "string", "enum": fitting}
    found = {name: _listed(value, keys) for name, value in part.items()}
    if "enum" in found.get("items", {}):
        found["maxItems"] = min(len(found["items"]["enum"]), found.get("maxItems", len(keys)))
    return found
