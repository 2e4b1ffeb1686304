"""Turns a keyed example into the request that a judge is sent.

Sentences travel as JSON lines inside blocks whose fence carries a marker derived from their own
content: text cannot forge a key, because keys live in a field of their own, and cannot close a
block, because no text can contain the digest of itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Literal, TypedDict

from labeler import resources
from labeler.characters import inert_json
from labeler.errors import UsageError
from labeler.example import KeyedExample, Sentence
from labeler.labels import GPTLabelingOutput
from labeler.profiles import Profile, profile_of
from labeler.signature import Artifact, Signature, digest

DEFAULT_PROMPT = "trace/v1"
DEFAULT_SCHEMA = "label-trace/v1"

RENDERING = 1
"""Version of the data block layout below; it enters every prompt's digest."""

_VARIABLES = frozenset({"marker", "question", "documents", "response"})
_REFERENCE = "reference"
"""The variable of prompts that show the reference answer too."""
_VARIABLE = re.compile(r"\{\{([a-z_]+)\}\}")


class Message(TypedDict):
    """One chat message."""

    role: Literal["system", "user"]
    content: str


@dataclass(frozen=True)
class Prompt:
    """A prompt: static instructions, and a frame for one record's data."""

    name: str
    system: str
    user: str

    @cached_property
    def artifact(self) -> Artifact:
        """Name and digest, as they enter a label's key."""
        content = {"system": self.system, "user": self.user, "rendering": RENDERING}
        return Artifact(name=self.name, digest=digest(content))

    @cached_property
    def shows_reference(self) -> bool:
        """Whether the reference answer is part of the data."""
        return _REFERENCE in _VARIABLE.findall(self.user)

    def render(self, example: KeyedExample) -> tuple[Message, ...]:
        """Write the messages for one record: static text first, data last."""
        values = {
            "marker": marker(example, reference=self.shows_reference),
            "question": _line({"question": example.question}),
            "documents": _sentences(example.document_sentences()),
            "response": _sentences(example.response),
            _REFERENCE: _sentences(example.reference or ()),
        }
        # One pass over the frame: text that came in as a value is never looked at again.
        user = _VARIABLE.sub(lambda match: values[match[1]], self.user)
        return ({"role": "system", "content": self.system}, {"role": "user", "content": user})


def parse_prompt(name: str, text: str) -> Prompt:
    """Read a prompt file: a ``# System`` part, then a ``# User`` part with ``{{variables}}``.

    Raises:
        UsageError: a part or a variable is missing, or a variable is unknown.
    """
    match = re.fullmatch(r"# System\n(.+?)\n# User\n(.+)", text.replace("\r\n", "\n"), re.DOTALL)
    if not match:
        raise UsageError(
            f"prompt {name!r} needs a line '# System' first and a line '# User' after it"
        )
    system, user = match[1].strip(), match[2].strip()
    found = set(_VARIABLE.findall(user)) - {_REFERENCE}
    if found != _VARIABLES:
        missing, unknown = sorted(_VARIABLES - found), sorted(found - _VARIABLES)
        raise UsageError(
            f"prompt {name!r}: its '# User' part must use each of {sorted(_VARIABLES)}; "
            f"and may use {_REFERENCE!r}; missing {missing}, unknown {unknown}"
        )
    return Prompt(name, system, user)


@lru_cache
def load_prompt(name: str = DEFAULT_PROMPT) -> Prompt:
    """Load a prompt that ships with the package, such as ``trace/v1``."""
    return parse_prompt(name, resources.read("prompts", name, ".md"))


@dataclass(frozen=True)
class ResponseSchema:
    """The shape that an answer must have, as it is published."""

    name: str
    text: str

    @cached_property
    def json_schema(self) -> Mapping[str, Any]:
        """The schema itself."""
        schema: dict[str, Any] = json.loads(self.text)
        return schema

    @cached_property
    def artifact(self) -> Artifact:
        """Name and digest, as they enter a label's key; the order of fields is part of both."""
        return Artifact(name=self.name, digest=digest(self.text))


@lru_cache
def load_schema(name: str = DEFAULT_SCHEMA) -> ResponseSchema:
    """Load the published schema of a label profile, such as ``label-trace/v1``."""
    return ResponseSchema(name, resources.read("schemas", name, ".json"))


@dataclass(frozen=True)
class JudgeRequest:
    """One record to be judged, and all that can change the answer."""

    key: str
    """The label's key, 64 hexadecimal digits."""
    example: KeyedExample
    signature: Signature
    prompt: Prompt
    schema: ResponseSchema

    @property
    def profile(self) -> Profile:
        """How much is asked."""
        return profile_of(self.schema.name)

    @property
    def output(self) -> type[GPTLabelingOutput]:
        """The class of the label that is asked for."""
        return self.profile.output

    @cached_property
    def messages(self) -> tuple[Message, ...]:
        """The chat messages, rendered on first use."""
        return self.prompt.render(self.example)


def marker(example: KeyedExample, *, reference: bool = False) -> str:
    """The fence marker of a record: 16 hexadecimal digits, fixed by all content that is shown."""
    texts: list[Any] = [[s.text for s in document] for document in example.documents]
    content: list[Any] = [example.question, texts, [s.text for s in example.response]]
    if reference:
        content.append([s.text for s in example.reference or ()])
    return digest({"fence": content})[:16]


def _sentences(sentences: Iterable[Sentence]) -> str:
    return "\n".join(_line({"key": s.key, "text": s.text}) for s in sentences)


def _line(value: Mapping[str, str]) -> str:
    """One JSON line, in which nothing can pass for a line break or a model's control token."""
    return inert_json(json.dumps(value, ensure_ascii=False))
