"""The input row, the same row as keyed sentences, and the keys, in RAGBench's scheme.

The key of a document sentence is the document's index and the sentence's position in bijective
base-26 letters: ``0a`` … ``0z``, ``0aa`` … The key of a response sentence is the letters alone, of
a reference sentence ``ref.`` and the letters. Sentences of tool outputs (``t0a``) and of earlier
turns (``h0a``) have keys like documents. Every key has exactly one position, and every position
below 10**18 exactly one key.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from labeler.sentences.display import brief

REFERENCE_PREFIX = "ref."
# Numbers have at most 18 digits: far above any record, and far below what Python parses slowly.
_KEY_FORM = re.compile(
    r"(?P<place>ref\.|(?P<kind>[th]?)(?P<number>0|[1-9][0-9]{0,17}))?(?P<letters>[a-z]{1,13})",
    re.ASCII,
)
DOCUMENT, RESPONSE, REFERENCE, TOOL_OUTPUT, HISTORY = range(5)
"""Parts of a record, see :class:`Position`."""
_PART = {"": DOCUMENT, "t": TOOL_OUTPUT, "h": HISTORY}


class Position(NamedTuple):
    """The position of a key; positions sort in reading order.

    Attributes:
        part: 0 document, 1 response, 2 reference, 3 tool output, 4 earlier turn.
        document: index of the document in retrieval order, of the tool output or of the turn; 0 for
            response and reference.
        sentence: 0-based position of the sentence in its text.
    """

    part: int
    document: int
    sentence: int


@lru_cache(maxsize=1024)
def letters(index: int) -> str:
    """Write a position as bijective base-26 letters: 0 → ``a``, 25 → ``z``, 26 → ``aa``.

    Raises:
        ValueError: the index is negative.
    """
    if index < 0:
        raise ValueError(f"a sentence position is 0 or more, got {index}")
    out = ""
    index += 1
    while index:
        index, digit = divmod(index - 1, 26)
        out = chr(ord("a") + digit) + out
    return out


def index_of(text: str) -> int:
    """Parse bijective base-26 letters: ``a`` → 0, ``aa`` → 26. Inverse of :func:`letters`.

    Raises:
        ValueError: the text is not one or more of the letters a to z.
    """
    if not text or not text.isascii() or not text.isalpha() or not text.islower():
        raise ValueError(f"sentence letters are a to z, got {text!r}")
    value = 0
    for char in text:
        value = value * 26 + ord(char) - ord("a") + 1
    return value - 1


def document_key(document: int, sentence: int) -> str:
    """Return the key of a document sentence: (0, 26) → ``0aa``."""
    if document < 0:
        raise ValueError(f"a document index is 0 or more, got {document}")
    return f"{document}{letters(sentence)}"


def is_key(text: str) -> bool:
    """Return True if a text is a key in its canonical spelling."""
    return _KEY_FORM.fullmatch(text) is not None


@lru_cache(maxsize=4096)
def position(key: str) -> Position:
    """Parse a key. ``sorted(keys, key=position)`` is reading order.

    Raises:
        ValueError: the text is not a key in its canonical spelling.
    """
    match = _KEY_FORM.fullmatch(key)
    if match is None:
        raise ValueError(f"not a sentence key: {key!r}; keys look like 0a, a, ref.a, h0a, t0a")
    place, sentence = match["place"], index_of(match["letters"])
    if place is None:
        return Position(RESPONSE, 0, sentence)
    if place == REFERENCE_PREFIX:
        return Position(REFERENCE, 0, sentence)
    return Position(_PART[match["kind"]], int(match["number"]), sentence)


Speaker = Literal["user", "assistant"]
"""Who speaks in a turn of a conversation."""


class Frozen(BaseModel):
    """Base of every stored value: immutable, no unknown fields, no input echoed in errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    def __repr__(self) -> str:
        defaults = {
            name: field.get_default(call_default_factory=True, validated_data={})
            for name, field in type(self).model_fields.items()
        }
        shown = [(n, v) for n, v in self.__repr_args__() if n is None or defaults.get(n) != v]
        return brief(type(self).__name__, shown)

    def __str__(self) -> str:
        return repr(self)


class Example(Frozen):
    """One input row.

    Attributes:
        id: names the row in outputs and errors; not part of a label's key.
        question: as the user asked it.
        documents: retrieved texts (chunks), in retrieval order; an empty one keeps its index.
        response: what the system answered.
        reference: the answer that was expected, if there is one.
        metadata: all other columns, for grouping; never shown to a judge.
        documents_sentences: the sentences of each document, for the splitter ``given``.
        response_sentences: the sentences of the response, for the splitter ``given``.
        history: the earlier turns of the conversation, ``{"role": …, "text": …}`` each, in any form
            of :mod:`labeler.sentences.conversation`; read when a prompt shows them, else metadata.
        tool_outputs: what tools returned, texts or ``{"name": …, "text": …}``; likewise.

    Example:
        >>> row = labeler.Example(id="1", question="Why?", documents=("It is so.",), response="So.")
        >>> len(labeler.label([row], judge="embedded"))
        1
    """

    id: str
    question: str
    documents: tuple[str, ...]
    response: str
    reference: str | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    documents_sentences: tuple[tuple[str, ...], ...] | None = None
    response_sentences: tuple[str, ...] | None = None
    history: Any = None
    tool_outputs: Any = None


# A dataclass instead of a pydantic model: a record has dozens of sentences, and a model is three
# objects for the garbage collector. Types are checked when an example is read. The
# docstrings of this class and the next are part of published schemas.
@dataclass(frozen=True, slots=True)
class Sentence:
    """The atom that labels point at."""

    __pydantic_config__ = ConfigDict(extra="forbid", hide_input_in_errors=True)

    key: str
    """``0a`` in a document, ``a`` in the response, ``ref.a`` in the reference, ``h0a`` in an
    earlier turn, ``t0a`` in a tool output."""
    text: str
    """The sentence as shown to the judge."""
    start: int
    """Offset of the first character in its document, response or other text, from 0."""
    end: int
    """Offset after the last character."""


@dataclass(frozen=True, slots=True)
class KeyedTurn:
    """An earlier turn of the conversation."""

    __pydantic_config__ = ConfigDict(extra="forbid", hide_input_in_errors=True)

    role: Speaker
    """The speaker."""
    sentences: tuple[Sentence, ...]


@dataclass(frozen=True, slots=True)
class KeyedToolOutput:
    """What a tool returned before the response."""

    __pydantic_config__ = ConfigDict(extra="forbid", hide_input_in_errors=True)

    sentences: tuple[Sentence, ...]
    name: str | None = None
    """Name of the tool, for people; not shown to the judge."""


class KeyedExample(Frozen):
    """An example as keyed sentences: all that a judge is shown, and all that metrics count."""

    id: str
    question: str
    documents: tuple[tuple[Sentence, ...], ...]
    """One tuple of sentences per document; empty for a blank document."""
    response: tuple[Sentence, ...]
    reference: tuple[Sentence, ...] | None = None
    splitter: str
    """Name and version of the splitter, such as ``general/1``."""
    metadata: dict[str, Any] = Field(default_factory=dict)
    history: tuple[KeyedTurn, ...] = Field(default=(), exclude_if=operator.not_)
    """Earlier turns that the judge is shown; absent without any."""
    tool_outputs: tuple[KeyedToolOutput, ...] = Field(default=(), exclude_if=operator.not_)
    """Tool outputs that the judge is shown; likewise absent."""

    def document_sentences(self) -> Iterator[Sentence]:
        """Return an iterator over every document sentence in reading order."""
        return chain.from_iterable(self.documents)

    def document_keys(self) -> list[str]:
        """Return the keys of all document sentences, in reading order."""
        return [*map(_KEY, self.document_sentences())]

    def conversation_sentences(self) -> Iterator[Sentence]:
        """Return an iterator over the sentences of tool outputs and earlier turns."""
        return chain.from_iterable(map(_SENTENCES, (*self.tool_outputs, *self.history)))

    def evidence_sentences(self) -> Iterator[Sentence]:
        """Return an iterator over every sentence that may support a response.

        These are the sentences of documents, tool outputs and earlier turns.
        """
        return chain(self.document_sentences(), self.conversation_sentences())

    def response_keys(self) -> list[str]:
        """Return the keys of all response sentences, in reading order."""
        return [*map(_KEY, self.response)]


_KEY, _SENTENCES = map(operator.attrgetter, ("key", "sentences"))


class Piece(NamedTuple):
    """A sentence without a key: text and character span in its source."""

    text: str
    start: int
    end: int


def key_sentences(prefix: str, pieces: Iterable[Piece]) -> tuple[Sentence, ...]:
    """Assign keys to the sentences of a text.

    Args:
        prefix: of the text's keys, such as ``0`` for the first document.
        pieces: the sentences, in reading order.
    """
    return tuple([Sentence(prefix + letters(s), *piece) for s, piece in enumerate(pieces)])
