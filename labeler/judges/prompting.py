"""Prompts, and the data blocks in which a judge receives a record.

Each sentence is one line of a block: its key, then its text as a JSON string without line breaks.
The fence of a block carries a marker derived from the content. Text cannot forge a key, because
keys begin lines, and cannot close a block, because no text can contain its own digest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Literal, TypedDict

from labeler.errors import UsageError
from labeler.labels import resources
from labeler.labels.signature import Artifact, digest
from labeler.sentences.characters import inert_json
from labeler.sentences.example import KeyedExample, Sentence

DEFAULT_PROMPT = "trace/v1"

RENDERING = 2
"""Version of the data block layout below. It enters every prompt's digest."""

_VARIABLES = frozenset({"marker", "question", "documents", "response"})
_REFERENCE = "reference"
"""Variable of prompts that show the reference answer."""
_VARIABLE = re.compile(r"\{\{([a-z_]+)\}\}")
"""A variable of a prompt, such as ``{{documents}}``."""
_JSON = json.JSONEncoder(ensure_ascii=False)


class Message(TypedDict):
    """One chat message."""

    role: Literal["system", "user"]
    content: str


@dataclass(frozen=True)
class Prompt:
    """A prompt: static instructions and a template for one record's data."""

    name: str
    system: str
    user: str

    @cached_property
    def artifact(self) -> Artifact:
        """Name and digest, as in a label's key."""
        content = {"system": self.system, "user": self.user, "rendering": RENDERING}
        return Artifact(name=self.name, digest=digest(content))

    @cached_property
    def shows_reference(self) -> bool:
        """True if the data include the reference answer."""
        return _REFERENCE in _VARIABLE.findall(self.user)

    def render(self, example: KeyedExample) -> tuple[Message, ...]:
        """Render the messages for one record: static text first, data last."""
        values = {
            "marker": marker(example, reference=self.shows_reference),
            "question": data_text(example.question),
            "documents": sentence_lines(example.document_sentences()),
            "response": sentence_lines(example.response),
            _REFERENCE: sentence_lines(example.reference or ()),
        }
        return chat(self.system, fill(self.user, values))


def chat(system: str, user: str) -> tuple[Message, ...]:
    """Return a system message and a user message."""
    return ({"role": "system", "content": system}, {"role": "user", "content": user})


def fill(template: str, values: Mapping[str, str]) -> str:
    """Replace each ``{{variable}}`` by its value, in one pass: values are never expanded."""
    return _VARIABLE.sub(lambda match: values[match[1]], template)


def parse_prompt(name: str, text: str) -> Prompt:
    """Parse a prompt file: a ``# System`` part, then a ``# User`` part with ``{{variables}}``.

    Raises:
        UsageError: a part or a variable is missing, or a variable is unknown.
    """
    system, user = prompt_parts(name, text)
    found = set(_VARIABLE.findall(user)) - {_REFERENCE}
    if found != _VARIABLES:
        missing, unknown = sorted(_VARIABLES - found), sorted(found - _VARIABLES)
        raise UsageError(
            f"prompt {name!r}: its '# User' part must use each of {sorted(_VARIABLES)}; "
            f"and may use {_REFERENCE!r}; missing {missing}, unknown {unknown}"
        )
    return Prompt(name, system, user)


def prompt_parts(name: str, text: str) -> tuple[str, str]:
    """Return the ``# System`` part and the ``# User`` part of a prompt file.

    Raises:
        UsageError: a part is missing.
    """
    match = re.fullmatch(r"# System\n(.+?)\n# User\n(.+)", text.replace("\r\n", "\n"), re.DOTALL)
    if not match:
        raise UsageError(
            f"prompt {name!r} needs a line '# System' first and a line '# User' after it"
        )
    return match[1].strip(), match[2].strip()


@lru_cache
def load_prompt(name: str = DEFAULT_PROMPT) -> Prompt:
    """Load a prompt of the package, such as ``trace/v1``."""
    return parse_prompt(name, resources.read("prompts", name, ".md"))


def marker(example: KeyedExample, *, reference: bool = False) -> str:
    """Return a record's fence marker: 16 hexadecimal digits that depend on all shown content."""
    texts: list[Any] = [[s.text for s in document] for document in example.documents]
    content: list[Any] = [example.question, texts, [s.text for s in example.response]]
    if reference:
        content.append([s.text for s in example.reference or ()])
    return digest({"fence": content})[:16]


def sentence_lines(sentences: Iterable[Sentence]) -> str:
    """Render sentences as the lines of a data block."""
    # Escaped as one text: no escaped sequence spans two lines.
    return inert_json("\n".join(_line(s.key, s.text) for s in sentences))


def sentence_line(key: str, text: str) -> str:
    """Render a sentence as a line of a data block, such as ``0a "Paris is the capital."``."""
    return inert_json(_line(key, text))


def _line(key: str, text: str) -> str:
    return f"{key} {_JSON.encode(text)}"


def data_text(text: str) -> str:
    """Return a JSON string without line breaks and control tokens of models."""
    return inert_json(_JSON.encode(text))
