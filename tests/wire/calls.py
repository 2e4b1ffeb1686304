"""What a request to the provider is, and whose record it carries."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final
from urllib.parse import unquote

Json = dict[str, Any]

COMPLETIONS: Final = "/v1/chat/completions"
EMBEDDINGS: Final = "/v1/embeddings"

_BLOCK = re.compile(r"^BEGIN (\w+) (\w+)\n(.*?)\n?^END \1 \2$", re.DOTALL | re.MULTILINE)
_AFTER = {"HISTORY", "TOOL_OUTPUTS", "REFERENCE", "RESPONSE"}
_SHORT = 8
"""Digits of the marker of a label's prompt."""
_ITEM = re.compile(r"(/v1/(?:files|batches|models)/)([^/]+)(.*)")


@dataclass(frozen=True)
class Call:
    """One request as it came: over a connection, or as a line of a batch."""

    number: int
    """Counts from 1."""
    method: str
    path: str
    """Without the query."""
    headers: Mapping[str, str]
    """Names in lower case."""
    raw: bytes
    query: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def body(self) -> Json:
        """The parsed body; empty where it is no JSON object."""
        if self.headers.get("content-type", "").startswith("multipart/"):
            return {}
        try:
            value = json.loads(self.raw or b"{}")
        except (ValueError, RecursionError):
            return {}
        return value if isinstance(value, dict) else {}

    @cached_property
    def route(self) -> str:
        """Method and path with ``{id}`` for what names one thing: ``GET /v1/files/{id}``."""
        path = _ITEM.sub(r"\1{id}\3", self.path)
        return f"{self.method} {path}"

    @cached_property
    def item(self) -> str:
        """The ``{id}`` of the path; empty where it has none."""
        found = _ITEM.fullmatch(self.path)
        return unquote(found[2]) if found else ""

    @property
    def messages(self) -> list[Json]:
        """The chat messages."""
        messages: list[Json] = self.body.get("messages", [])
        return messages

    @property
    def mode(self) -> str:
        """How the schema was sent: strict, schema, tools, json or prompt."""
        kind = self.body.get("response_format", {})
        if kind.get("type") == "json_schema":
            return "strict" if kind.get("json_schema", {}).get("strict") is True else "schema"
        if "tools" in self.body:
            return "tools"
        return "json" if kind.get("type") == "json_object" else "prompt"

    @property
    def schema_text(self) -> str:
        """The bytes of the schema as they came, of a text where that is what holds them."""
        raw = self.raw.decode()
        if self.mode in {"json", "prompt"}:
            raw = next(m["content"] for m in reversed(self.messages[:2]) if m["role"] == "user")
        found = re.search(r'(?:"schema": ?|"parameters": ?|JSON Schema:\n)(?={)', raw)
        if found is None:
            return ""
        _, end = json.JSONDecoder().raw_decode(raw, found.end())
        return raw[found.end() : end]

    @cached_property
    def asked_for(self) -> Json:
        """The properties of the schema that the answer must have, under their long names."""
        declared = self.body.get("response_format", {}).get("json_schema", {})
        schema = declared.get("schema") or json.loads(self.schema_text or "{}")
        return schema.get("properties", {})  # type: ignore[no-any-return]

    @cached_property
    def data(self) -> dict[str, list[Json]]:
        """The lines of each data block of the first user message, by the block's name."""
        return {
            name: [read_line(line) for line in text.split("\n") if line]
            for name, _, text in self._blocks
        }

    def keys(self, block: str) -> list[str]:
        """The sentence keys of a data block."""
        return [line["key"] for line in self.data.get(block, [])]

    @cached_property
    def identity(self) -> str:
        """Whose record it is: the fence marker of its data, else a digest of the whole request.

        A re-ask has the identity of the record that it is about. The marker of a label's prompt
        does not depend on the response, so its digest follows.
        """
        if self._blocks:
            marker = self._blocks[0][1]
            rest = "".join(text for name, _, text in self._blocks if name in _AFTER)
            own = hashlib.sha256(rest.encode()).hexdigest()[:8]
            return f"{marker}{own}" if len(marker) == _SHORT else marker
        return hashlib.sha256(self.raw).hexdigest()[:16]

    @cached_property
    def _blocks(self) -> list[tuple[str, str, str]]:
        users = [m["content"] for m in self.messages if m.get("role") == "user"]
        return _BLOCK.findall(users[0]) if users and isinstance(users[0], str) else []


def read_line(line: str) -> Json:
    """What a line of a data block says: a question, or the key and text of a sentence.

    Between the key and the text of an earlier turn stands its role.
    """
    if line.startswith('"'):
        return {"question": json.loads(line)}
    key, _, text = line.partition(" ")
    return {"key": key, "text": json.loads(text[text.index('"') :])}


def questions_for(call: Call) -> Json:
    """Questions that the response's first sentence would reply to, spelled much like it."""
    said = call.data["RESPONSE"][0]["text"]
    ways = ("What is to be said of this:", "Is it so that", "Why")
    return {
        "noncommittal_explanation": "it says something",
        "noncommittal": False,
        "questions": [f"{way} {said}" for way in ways],
    }


def label_for(call: Call) -> Json:
    """A label of the profile that the schema asks for, which keeps the contract.

    The first document sentence is relevant and supports all; each sentence makes one claim.
    """
    if "noncommittal" in call.asked_for:
        return questions_for(call)
    if "score" in call.asked_for:
        scale = call.asked_for["score"]["enum"]
        return {"reasoning": "it lies between", "score": scale[len(scale) // 2]}
    if "steps" in call.asked_for:
        return {"steps": ["Read the response.", "Weigh it."]}
    first = call.keys("DOCUMENTS")[:1]
    support = [
        {
            "response_sentence_key": key,
            "explanation": f"{key} follows from {first}",
            "supporting_sentence_keys": [*first],
            "fully_supported": bool(first),
        }
        for key in call.keys("RESPONSE")
    ]
    label: Json = {
        "relevance_explanation": "the first sentence answers the question",
        "all_relevant_sentence_keys": [*first],
        "overall_supported_explanation": "every sentence follows from the first",
        "overall_supported": bool(first),
        "sentence_support_information": support,
        "all_utilized_sentence_keys": [*first],
    }
    if "response_claims" in call.asked_for:
        label |= _claims(call, first)
    asked = [name for name in call.asked_for if name in label]
    return {name: label[name] for name in asked or label}


def written(call: Call, label: Json) -> Json:
    """A label in the form that the schema of a call asks for."""
    return decided(label) if '"decision"' in call.schema_text else label


def decided(label: Json) -> Json:
    """A label with its verdicts in decisions."""
    lists = ("sentence_support_information", "response_claims")
    return label | {
        name: [_decided(entry) for entry in label[name]] for name in lists if name in label
    }


def _decided(entry: Json) -> Json:
    verdict = entry.get("verdict", "entailment" if entry.get("fully_supported") else "neutral")
    names = {
        "entailment": ("supporting_sentence_keys", "contradicting_sentence_keys"),
        "contradiction": ("contradicting_sentence_keys",),
        "neutral": (),
    }[verdict]
    taken = [name for name in (*names, "fully_supported", "verdict") if name in entry]
    left = {name: value for name, value in entry.items() if name not in _DECIDED}
    return left | {"decision": {name: entry[name] for name in taken}}


_DECIDED = {"supporting_sentence_keys", "contradicting_sentence_keys", "fully_supported", "verdict"}


def _claims(call: Call, first: list[str]) -> Json:
    """A claim of each response sentence, and of each sentence of the reference answer."""
    is_compared = "reference_claims" in call.asked_for
    response_claims = [
        {
            "response_sentence_key": key,
            "claim": f"What {key} says.",
            "supporting_sentence_keys": [*first],
            "contradicting_sentence_keys": [],
            "verdict": "entailment" if first else "neutral",
            "relevant_to_question": True,
            **({"reference_verdict": "entailment"} if is_compared else {}),
        }
        for key in call.keys("RESPONSE")
    ]
    reference_claims = [
        {
            "reference_sentence_key": key,
            "claim": f"What {key} says.",
            "supporting_sentence_keys": [*first],
            "response_verdict": "entailment",
        }
        for key in call.keys("REFERENCE")
    ]
    return {
        "response_claims": response_claims,
        "response_sentences_without_claims": [],
        "reference_claims": reference_claims,
        "reference_sentences_without_claims": [],
    }
