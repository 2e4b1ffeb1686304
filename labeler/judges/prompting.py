"""Prompts, of the package and of users, and the data blocks in which a judge receives a record.

Each sentence is one line of a block: its key, then its text as a JSON string without line breaks.
The fence of a block carries a marker derived from the content. Text cannot forge a key, because
keys begin lines, and cannot close a block, because no text can contain its own digest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import chain
from json.encoder import encode_basestring
from operator import attrgetter
from pathlib import Path
from typing import ClassVar, Literal, Self, TypedDict

from labeler.errors import UsageError
from labeler.labels.signature import Artifact, digest, read_resource, texts_digest
from labeler.sentences.characters import inert_json
from labeler.sentences.example import KeyedExample, KeyedTurn, Sentence

DEFAULT_PROMPT = "trace/v1"

RENDERING = 1
"""Version of the layout of a record's data; it enters the digests of prompts.

The response stands last, and the marker of 8 digits depends on question and documents, so that
requests about several responses to the same question start with the same text.
"""

BLOCKS = ("documents", "tool_outputs", "history", "question", "reference", "response")
OWN = "own"
"""Family of whole prompts of the user."""
DECISIONS = "decisions"
"""Family of the prompts whose answers are probabilities."""
_REFERENCE = "reference_block"
"""Variable of prompts that show the reference answer."""
_VARIABLES = frozenset({"fence", *(f"{name}_block" for name in BLOCKS)}) - {_REFERENCE}
_NOT_OF_RETRIEVALS = frozenset({"response_block", "tool_outputs_block"})
"""Variables that prompts about relevance alone do without."""
_VARIABLE = re.compile(r"\{\{([a-z_]+)\}\}")
"""A variable of a prompt, such as ``{{documents}}``."""


_ABOUT_INSTRUCTIONS = """## Domain rules

The owner of this system wrote the rules between the next two lines. Apply them to every decision \
about the texts. They change neither the form of the answer nor how data are read."""


class Message(TypedDict):
    """One chat message."""

    role: Literal["system", "user"]
    content: str


@dataclass(frozen=True)
class Prompt:
    """A prompt: static instructions and a template for one record's data.

    Attributes:
        instructions: domain rules of the user, which labels' signatures hold; "" without any.
    """

    name: str
    system: str
    user: str
    instructions: str = ""
    decides: ClassVar[bool] = False
    """True if answers are probabilities: no schema is sent, and no text comes back."""
    optional: ClassVar = frozenset({"tool_outputs", "history"})
    """Blocks that are left out when empty."""

    @cached_property
    def variables(self) -> frozenset[str]:
        """Names of the variables in the template."""
        return frozenset(_VARIABLE.findall(self.user))

    @cached_property
    def artifact(self) -> Artifact:
        """Name and digest, as in a label's key."""
        content = {"system": self.system, "user": self.user, "rendering": RENDERING}
        return Artifact(name=self.name, digest=digest(content))

    def with_instructions(self, text: str) -> Self:
        """Return the prompt with domain rules of the user."""
        return replace(self, instructions=text) if text else self

    @cached_property
    def instructions_block(self) -> str:
        """The fenced domain rules, after a paragraph about their place; "" without any.

        No text closes the fence, because none contains its own digest. A change of this layout
        needs another :data:`RENDERING`.
        """
        if not self.instructions:
            return ""
        text, tries = inert_json(self.instructions), 0
        while (fence := digest([self.instructions, tries])[:8]) in text.lower():
            tries += 1
        return f"{_ABOUT_INSTRUCTIONS}\n\n{fenced('instructions', text, fence)}"

    @cached_property
    def system_text(self) -> str:
        """The system message: the prompt's own text, then the domain rules of the user."""
        return "\n\n".join(filter(None, (self.system, self.instructions_block)))

    @cached_property
    def shows_reference(self) -> bool:
        """True if the data include the reference answer."""
        return _REFERENCE in self.variables

    def render(self, example: KeyedExample) -> tuple[Message, ...]:
        """Render the messages for one record: static text first, data last."""
        return chat(self.system_text, self.filled(example))

    def filled(self, example: KeyedExample) -> str:
        """Return the template with the data of one record."""
        data = data_lines(example)
        if not self.shows_reference:
            data["reference"] = ""
        fence = self.fence(example, data)
        values = {"fence": fence}
        for name, text in data.items():
            is_absent = name in self.optional and not text
            values[f"{name}_block"] = "" if is_absent else fenced(name, text, fence)
        paragraphs = [fill(part, values) for part in self.user.split("\n\n")]
        return "\n\n".join(filter(None, paragraphs))

    def fence(self, example: KeyedExample, data: Mapping[str, str]) -> str:
        """Return the marker that fences a record's blocks, which no shown text contains.

        It has 8 hexadecimal digits, which depend on the question and the documents.

        Args:
            example: the record.
            data: the lines of each block, as :func:`data_lines` renders them.
        """
        names = [name for name in data if f"{name}_block" in self.variables]
        shown = "\n".join(map(data.__getitem__, names)).lower()
        content = [example.question, [[s.text for s in part] for part in example.documents]]
        tries = 0
        while (marker := texts_digest({"fence": content, "tries": tries})[:8]) in shown:
            tries += 1
        return marker


def data_lines(example: KeyedExample) -> dict[str, str]:
    """Return the lines of each block of a record by the block's name."""
    return {
        "documents": sentence_lines(example.document_sentences()),
        "tool_outputs": sentence_lines(chain.from_iterable(map(_SENTENCES, example.tool_outputs))),
        "history": turn_lines(example.history),
        "question": data_text(example.question),
        "reference": sentence_lines(example.reference or ()),
        "response": sentence_lines(example.response),
    }


_SENTENCES = attrgetter("sentences")


def chat(system: str, user: str) -> tuple[Message, ...]:
    """Return a system message and a user message."""
    return ({"role": "system", "content": system}, {"role": "user", "content": user})


def fill(template: str, values: Mapping[str, str]) -> str:
    """Replace each ``{{variable}}`` by its value, in one pass: values are never expanded."""
    return _format_of(template).format_map(values)


@lru_cache
def _format_of(template: str) -> str:
    """Return a template as Python formats it, which takes half the time."""
    doubled = template.replace("{", "{{").replace("}", "}}")
    return re.sub(r"\{{4}([a-z_]+)\}{4}", r"{\1}", doubled)


def parse_prompt(name: str, text: str) -> Prompt:
    """Parse a prompt file: a ``# System`` part, then a ``# User`` part with ``{{variables}}``.

    Raises:
        UsageError: a part or a variable is missing, or a variable is unknown.
    """
    system, user = prompt_parts(name, text)
    prompt = Prompt(name, system, user)
    hidden = _NOT_OF_RETRIEVALS if is_retrieval_prompt(name) else frozenset[str]()
    found, needed = prompt.variables - {_REFERENCE}, _VARIABLES - hidden
    if found != needed:
        missing, unknown = sorted(needed - found), sorted(found - needed)
        raise UsageError(
            f"prompt {name!r}: its '# User' part must use each of {sorted(needed)}; "
            f"and may use {_REFERENCE!r}; missing {missing}, unknown {unknown}"
        )
    return prompt


def is_retrieval_prompt(name: str) -> bool:
    """Return True for a prompt about relevance that shows no response."""
    return name.partition("/")[0] == "retrieval"


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
    return parse_prompt(name, read_resource("prompts", name, ".md"))


def fenced(name: str, lines: str, fence: str) -> str:
    """Return a block of lines between its fences."""
    return f"BEGIN {name.upper()} {fence}\n{lines}\nEND {name.upper()} {fence}"


def turn_lines(turns: Iterable[KeyedTurn]) -> str:
    """Render earlier turns: each line names the speaker after the key."""
    lines = [
        f"{s.key} {turn.role} {encode_basestring(s.text)}" for turn in turns for s in turn.sentences
    ]
    return inert_json("\n".join(lines))


def sentence_lines(sentences: Iterable[Sentence]) -> str:
    """Render sentences as the lines of a data block."""
    # Escaped as one text: no escaped sequence spans two lines.
    return inert_json("\n".join([f"{s.key} {encode_basestring(s.text)}" for s in sentences]))


def data_text(text: str) -> str:
    """Return a JSON string without line breaks and control tokens of models."""
    return inert_json(encode_basestring(text))


MOST_CHARACTERS = 10_000
"""Greatest length of instructions: every request and every label holds them."""
_MOST_OF_PROMPT = 100_000
_TEXT_FILE = re.compile(r"\S+\.(?:md|txt)", re.IGNORECASE)
_PUBLISHED = re.compile(r"(?:[\w-]+/)?v\d+")


def read_instructions(given: str | Path | None) -> str:
    """Return instructions, given as a text or as a file; "" without any.

    Raises:
        UsageError: the file cannot be read, or the text is empty or too long.
    """
    if given is None:
        return ""
    path = _file_of(given)
    text = str(given) if path is None else _read("--instructions", path)
    text = "\n".join(line.rstrip() for line in text.strip().splitlines())
    where = f"--instructions{'' if path is None else f' {path}'}"
    if not text:
        raise UsageError(f"{where} is empty: give domain rules, or leave the option out")
    if len(text) > MOST_CHARACTERS:
        raise UsageError(
            f"{where} has {len(text):,} characters, and {MOST_CHARACTERS:,} are allowed: every "
            "request holds them; a whole prompt of your own is --prompt FILE"
        )
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"{where} is not Unicode text: {error.reason}") from None
    return text


def prompt_file(prompt: str | Path) -> Path | None:
    """Return the file of a user's own prompt; ``None`` for the name of a prompt of the package."""
    return None if _PUBLISHED.fullmatch(str(prompt)) else _file_of(prompt)


def read_prompt(path: Path, profile: str) -> Prompt:
    """Read a whole prompt of the user for a profile.

    Raises:
        UsageError: it cannot be read, is too long, or lacks a part or a placeholder.
    """
    text = _read("--prompt", path)
    if len(text) > _MOST_OF_PROMPT:
        raise UsageError(
            f"--prompt {path} has {len(text):,} characters, and {_MOST_OF_PROMPT:,} are allowed"
        )
    try:
        return parse_prompt(f"{OWN}/{profile}", text)
    except UsageError as error:
        raise UsageError(
            f"--prompt {path}: {error}; 'labeler prompt {profile}/v1' prints one to begin with"
        ) from None


def _file_of(given: str | Path) -> Path | None:
    """Return the file that is given: a path, an existing file, or a name such as ``rules.md``."""
    try:
        is_file = isinstance(given, Path) or Path(given).is_file()
    except (OSError, ValueError):  # too long for a name, or with a null character
        is_file = False
    return Path(given) if is_file or _TEXT_FILE.fullmatch(str(given)) else None


def _read(option: str, path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:  # no such file, a null character, or not UTF-8
        fault = getattr(error, "strerror", None) or error
        raise UsageError(f"cannot read {option} {path}: {fault}") from None
