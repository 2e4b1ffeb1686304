"""Sentence splitters: one catalog, each entry versioned, each returning character spans.

A splitter is a function from text to pieces in reading order. Its pieces cover all text but white
space, so nothing is lost and nothing stands twice. Its name and version enter every label's key.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from labeler.catalog import Catalog
from labeler.errors import BadRow
from labeler.sentences.example import (
    Example,
    KeyedExample,
    Piece,
    key_documents,
    key_reference,
    key_response,
)
from labeler.sentences.splitting.given import align

Split = Callable[[str], list[Piece]]


@dataclass(frozen=True)
class Splitter:
    """A named, versioned way to cut text into sentences."""

    name: str
    version: int
    split: Split

    def __str__(self) -> str:
        return f"{self.name}/{self.version}"


def _bring_your_own(_: str) -> list[Piece]:
    raise BadRow(
        "the row brings no sentences; give documents_sentences and response_sentences, "
        "or use another splitter than given",
        reason="given_sentences_incomplete",
    )


DEFAULT_SPLITTER = "general"
GIVEN = Splitter("given", 1, _bring_your_own)
"""For rows that bring their own sentences, which have it whatever splitter is chosen; as a choice,
it refuses rows that bring none."""

SPLITTERS: Catalog[Splitter] = Catalog("splitter")
SPLITTERS.add("general", "labeler.sentences.splitting.general:GENERAL")
SPLITTERS.add("ragbench", "labeler.sentences.splitting.ragbench:RAGBENCH")
SPLITTERS.add("given", GIVEN)


def key_example(example: Example, splitter: Splitter) -> KeyedExample:
    """Cut an example into keyed sentences, with the sentences it brings, else with the splitter.

    A row brings its own sentences in ``documents_sentences`` and ``response_sentences``. It has
    none for the reference, which the default splitter cuts then.

    Raises:
        BadRow: ``given_sentences_incomplete`` if the row brings only one of the two, or not one
            list a document; ``given_sentences_mismatch`` if they are not the sentences of its
            texts.
    """
    if example.documents_sentences is None and example.response_sentences is None:
        documents = [splitter.split(document) for document in example.documents]
        return _keyed(example, str(splitter), documents, splitter.split(example.response), splitter)
    return _key_given(example)


def _key_given(example: Example) -> KeyedExample:
    """Key the sentences that the row brings."""
    lists, response = example.documents_sentences, example.response_sentences
    if lists is None or response is None:
        absent = "documents_sentences" if lists is None else "response_sentences"
        raise _incomplete(
            f"the row has no {absent}; give documents_sentences and response_sentences, or neither"
        )
    if len(lists) != len(example.documents):
        raise _incomplete(
            f"documents_sentences has {len(lists)} lists for {len(example.documents)} documents; "
            "give one list a document, an empty one for a blank document"
        )
    texts = zip(example.documents, lists, strict=True)
    documents = [align(text, own, where=f"document {d}") for d, (text, own) in enumerate(texts)]
    pieces = align(example.response, response, where="response")
    return _keyed(example, str(GIVEN), documents, pieces, SPLITTERS[DEFAULT_SPLITTER])


def _incomplete(message: str) -> BadRow:
    return BadRow(message, reason="given_sentences_incomplete")


def _keyed(
    example: Example,
    used: str,
    documents: list[list[Piece]],
    response: list[Piece],
    for_reference: Splitter,
) -> KeyedExample:
    """Name every sentence, the reference's too where there is one."""
    reference = example.reference
    return KeyedExample(
        id=example.id,
        question=example.question,
        documents=key_documents(documents),
        response=key_response(response),
        reference=None if reference is None else key_reference(for_reference.split(reference)),
        splitter=used,
        metadata=example.metadata,
    )
