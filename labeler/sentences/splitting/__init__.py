"""Sentence splitters: a catalog of versioned functions from text to pieces.

Given sentences are aligned with their text; they may differ from it only in white space, as
``str.isspace`` defines it. Pieces are in reading order and cover all text except white space
exactly once. The name and version of a splitter enter every label's key, so a released version
never changes its output.

To add a splitter, write a ``split`` function in a new module here and register a :class:`Splitter`
in ``SPLITTERS``.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from labeler.catalog import Catalog
from labeler.errors import BadRow, UsageError
from labeler.sentences.conversation import read_conversation
from labeler.sentences.example import (
    REFERENCE_PREFIX,
    Example,
    KeyedExample,
    KeyedToolOutput,
    KeyedTurn,
    Piece,
    key_sentences,
)

_OWN_NAMES = frozenset({"general", "given", "ragbench"})
Split = Callable[[str], list[Piece]]


@dataclass(frozen=True, eq=False)
class Splitter:
    """A named, versioned function that splits text into sentences.

    Raises:
        UsageError: it has the name of a splitter of this package, whose labels it would join.
    """

    name: str
    version: int
    split: Split

    def __post_init__(self) -> None:
        if self.name in _OWN_NAMES and not self.is_own:
            raise UsageError(
                f"splitter {self.name!r} comes with labeler, and its labels would be taken for "
                "yours: give your splitter a name of its own"
            )

    @property
    def is_own(self) -> bool:
        """True for one of this package, whose pieces are known to hold the whole text."""
        return str(getattr(self.split, "__module__", "")).startswith("labeler.")

    def __str__(self) -> str:
        return f"{self.name}/{self.version}"


def _no_given_sentences(_: str) -> list[Piece]:
    raise BadRow(
        "the row brings no sentences; give documents_sentences and response_sentences, "
        "or use another splitter than given",
        reason="given_sentences_incomplete",
    )


GIVEN = Splitter("given", 1, _no_given_sentences)
"""The splitter of rows with given sentences, whichever splitter is chosen. If it is chosen, it
rejects rows without given sentences."""

SPLITTERS: Catalog[Splitter] = Catalog("splitter", group="splitters", of=Splitter)
SPLITTERS.add("general", "labeler.sentences.splitting.general:GENERAL")
SPLITTERS.add("given", GIVEN)


def key_example(
    example: Example, splitter: Splitter, *, shows_conversation: bool = False
) -> KeyedExample:
    """Split an example into keyed sentences: its given sentences, else those of the splitter.

    Rows give sentences in ``documents_sentences`` and ``response_sentences``. They give none for
    other texts, which ``general`` splits then.

    Args:
        example: the row.
        splitter: splitter of texts without given sentences.
        shows_conversation: True if earlier turns and tool outputs are shown; else they stay
            metadata.

    Raises:
        BadRow: ``given_sentences_incomplete`` if a row gives only one of the two, or not one list
            per document; ``given_sentences_mismatch`` if its texts have other sentences;
            ``splitter`` if the splitter fails on a text; ``wrong_type`` or ``too_long`` if turns
            or tool outputs cannot be shown.
    """
    if example.documents_sentences is None and example.response_sentences is None:
        used = for_others = splitter
        documents = [_split(splitter, document) for document in example.documents]
        response = _split(splitter, example.response)
    else:
        used, for_others = GIVEN, SPLITTERS["general"]
        documents, response = _given_pieces(example)
    reference = None
    if example.reference is not None:
        reference = key_sentences(REFERENCE_PREFIX, _split(for_others, example.reference))
    return KeyedExample(
        id=example.id,
        question=example.question,
        documents=tuple([key_sentences(str(d), pieces) for d, pieces in enumerate(documents)]),
        response=key_sentences("", response),
        reference=reference,
        splitter=str(used),
        **_conversation(example, for_others, is_shown=shows_conversation),
    )


def _conversation(example: Example, splitter: Splitter, *, is_shown: bool) -> dict[str, Any]:
    """Return the keyed turns and tool outputs of an example, or its metadata with them."""
    if example.history is None and example.tool_outputs is None:
        return {"metadata": example.metadata}
    given = {"history": example.history, "tool_outputs": example.tool_outputs}
    if not is_shown:
        hidden = {name: value for name, value in given.items() if value is not None}
        return {"metadata": {**hidden, **example.metadata}}
    turns, outputs = read_conversation(**given, where=repr(example.id))
    return {
        "metadata": example.metadata,
        "history": tuple(
            KeyedTurn(turn.role, key_sentences(f"h{number}", _split(splitter, turn.text)))
            for number, turn in enumerate(turns)
            if turn.role != "tool"
        ),
        "tool_outputs": tuple(
            KeyedToolOutput(key_sentences(f"t{number}", _split(splitter, output.text)), output.name)
            for number, output in enumerate(outputs)
        ),
    }


def _split(splitter: Splitter, text: str) -> list[Piece]:
    """Split a text; an error of the splitter concerns this row alone."""
    try:
        return (_pieces if len(text) > _LONGEST_KEPT else _split_once)(splitter, text)
    except (BadRow, UsageError):
        raise
    except Exception as error:  # anyone may register a splitter
        raise BadRow(
            f"the splitter {splitter} failed on a text of {len(text)} characters: "
            f"{type(error).__name__}: {str(error)[:200]}; use another splitter, or mend the text",
            reason="splitter",
        ) from error


def _pieces(splitter: Splitter, text: str) -> list[Piece]:
    """Return the pieces of a text.

    Raises:
        ValueError: a third party's splitter lost, repeated or moved a part of the text.
    """
    pieces = list(splitter.split(text))  # an iterator would be empty the next time
    if not splitter.is_own:
        whole = _visible(text)
        spans = "".join(text[one.start : one.end] for one in pieces)
        if _visible(spans) != whole or _visible("".join(one.text for one in pieces)) != whole:
            raise ValueError("its pieces are not the text, each part once and in order")
    return pieces


def _visible(text: str) -> str:
    """Leave out white space and invisible characters, which splitters may drop or repeat."""
    return "".join(one for one in text if one.isprintable() and one != " ")


# The first rows are split again for each question about the store, and documents repeat.
_split_once = lru_cache(maxsize=256)(_pieces)


_LONGEST_KEPT = 4_000
"""Characters of a text whose sentences are kept for the next rows: each may become a sentence of
several hundred bytes."""


def _given_pieces(example: Example) -> tuple[list[list[Piece]], list[Piece]]:
    """Align the given sentences of the documents and of the response with their texts."""
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
    return documents, align(example.response, response, where="response")


def _incomplete(message: str) -> BadRow:
    return BadRow(message, reason="given_sentences_incomplete")


_SHOWN = 20


def align(text: str, sentences: Sequence[str], *, where: str = "text") -> list[Piece]:
    """Find the span of every given sentence; the piece's text is the given sentence.

    Characters other than white space are matched in order, each exactly once. A blank text has no
    sentences.

    Args:
        text: the source.
        sentences: its sentences, in order.
        where: name of the source in errors, such as ``document 3``.

    Raises:
        BadRow: ``given_sentences_mismatch`` if a sentence is blank or differs from the text, or if
            the text continues after the last sentence.
    """
    visible = "".join(text.split())
    offsets = array("Q", (place for place, char in enumerate(text) if not char.isspace()))
    pieces: list[Piece] = []
    at = 0
    for number, sentence in enumerate(sentences):
        wanted = "".join(sentence.split())
        if not wanted:
            raise _bad(f"{where}: given sentence {number} is blank; leave it out")
        if not visible.startswith(wanted, at):
            problem = _difference(text, offsets[at:], sentence)
            raise _bad(f"{where}: given sentence {number} is not in it: {problem}")
        start, end = offsets[at], offsets[at + len(wanted) - 1] + 1
        pieces.append(Piece(text=sentence, start=start, end=end))
        at += len(wanted)
    if at < len(visible):
        raise _bad(
            f"{where}: the given sentences end before it does: at character {offsets[at]} it "
            f"continues with {_shown(text, offsets[at])}; give all of its sentences"
        )
    return pieces


def _difference(text: str, offsets: Sequence[int], sentence: str) -> str:
    """Describe where a sentence differs from the text at the given offsets."""
    own = [offset for offset, char in enumerate(sentence) if not char.isspace()]
    for here, there in zip(offsets, own, strict=False):
        if text[here] != sentence[there]:
            place, found, wanted = here, _shown(text, here), _shown(sentence, there)
            break
    else:
        place, found, wanted = len(text), "ended", _shown(sentence, own[len(offsets)])
    return (
        f"at character {place} the text has {found}, the sentence {wanted}; "
        "they may differ in white space alone"
    )


def _shown(text: str, start: int) -> str:
    """Quote the text at an offset."""
    return repr(text[start : start + _SHOWN])


def _bad(message: str) -> BadRow:
    return BadRow(message, reason="given_sentences_mismatch")
