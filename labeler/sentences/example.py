"""The input row, and the same row as keyed sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from labeler.sentences.keys import document_key, reference_key, response_key


class Frozen(BaseModel):
    """Base of every stored value: immutable, no unknown fields, no input echoed in errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class Example(Frozen):
    """One input row as the user has it."""

    id: str
    """Names the row in outputs and errors. Not part of a label's key."""
    question: str
    """What the user asked."""
    documents: tuple[str, ...]
    """Retrieved documents (chunks) in retrieval order; an empty one keeps its index."""
    response: str
    """The generated answer under judgement."""
    reference: str | None = None
    """The ground-truth answer, where there is one."""
    metadata: dict[str, Any] = Field(default_factory=dict)
    """Every other column of the row, kept for grouping and never shown to a judge."""
    documents_sentences: tuple[tuple[str, ...], ...] | None = None
    """The documents' own sentences, one tuple a document, for the ``given`` splitter."""
    response_sentences: tuple[str, ...] | None = None
    """The response's own sentences, for the ``given`` splitter."""


# No model, as the other values are: there are dozens in each record, and a model is three objects
# that the garbage collector walks through. Fields are held to their types where a sentence is read
# as part of an example, not where it is made.
@dataclass(frozen=True, slots=True)
class Sentence:
    """The atom that labels point at."""

    __pydantic_config__ = ConfigDict(extra="forbid", hide_input_in_errors=True)

    key: str
    """``0a`` in a document, ``a`` in the response, ``ref.a`` in the reference."""
    text: str
    """The sentence as the judge sees it."""
    start: int
    """Offset of its first character in its document, response or reference, from 0."""
    end: int
    """Offset after its last character."""


class KeyedExample(Frozen):
    """An example as keyed sentences: all that a judge is shown, and all that metrics count."""

    id: str
    question: str
    documents: tuple[tuple[Sentence, ...], ...]
    """One tuple of sentences a document; empty for a blank document."""
    response: tuple[Sentence, ...]
    reference: tuple[Sentence, ...] | None = None
    splitter: str
    """Name and version of the splitter that made the sentences, such as ``general/1``."""
    metadata: dict[str, Any] = Field(default_factory=dict)

    def document_sentences(self) -> Iterator[Sentence]:
        """Every document sentence in reading order."""
        for document in self.documents:
            yield from document

    def document_keys(self) -> list[str]:
        """The keys of all document sentences, in reading order."""
        return [sentence.key for sentence in self.document_sentences()]

    def response_keys(self) -> list[str]:
        """The keys of all response sentences, in reading order."""
        return [sentence.key for sentence in self.response]


class Piece(NamedTuple):
    """A sentence before it has a key: text and character span in its source."""

    text: str
    start: int
    end: int


def key_documents(documents: list[list[Piece]]) -> tuple[tuple[Sentence, ...], ...]:
    """Give every document sentence its key."""
    return tuple(_named(pieces, partial(document_key, d)) for d, pieces in enumerate(documents))


def key_response(pieces: list[Piece]) -> tuple[Sentence, ...]:
    """Give every response sentence its key."""
    return _named(pieces, response_key)


def key_reference(pieces: list[Piece]) -> tuple[Sentence, ...]:
    """Give every sentence of the reference answer its key."""
    return _named(pieces, reference_key)


def _named(pieces: list[Piece], key: Callable[[int], str]) -> tuple[Sentence, ...]:
    return tuple(Sentence(key(s), *piece) for s, piece in enumerate(pieces))
