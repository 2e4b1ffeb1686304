"""A limit of what is compared: time grows with the size of a record, not with its square."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain

from labeler.sentences.example import KeyedExample, Sentence
from labeler.sentences.words import STOP_WORDS, stems, surface_words

MOST_PAIRS = 2_000_000
"""Pairs of a sentence that is judged and a sentence that it is compared with."""


def most_compared(example: KeyedExample) -> int:
    """Return how many sentences of a text each judged sentence of a record is compared with."""
    return max(1, MOST_PAIRS // max(1, len(example.response) + len(example.reference or ())))


def limited(example: KeyedExample) -> KeyedExample:
    """Return a record without the evidence that shares the fewest words with what is judged.

    It is the same record unless it is larger than the limit.
    """
    most, evidence = most_compared(example), list(example.evidence_sentences())
    if len(evidence) <= most:
        return example
    judged = (one.text for one in (*example.response, *(example.reference or ())))
    kept = {one.key for one in closest_part(evidence, [example.question, *judged], most)}

    def part(sentences: Iterable[Sentence]) -> tuple[Sentence, ...]:
        return tuple(one for one in sentences if one.key in kept)

    changes = {
        "documents": tuple(map(part, example.documents)),
        "history": tuple(replace(o, sentences=part(o.sentences)) for o in example.history),
        "tool_outputs": tuple(
            replace(one, sentences=part(one.sentences)) for one in example.tool_outputs
        ),
    }
    return example.model_copy(update=changes)


def closest_part(
    sentences: Sequence[Sentence], texts: Iterable[str], most: int
) -> Sequence[Sentence]:
    """Return the sentences that share most words with some texts, in order.

    Args:
        sentences: the sentences to choose from.
        texts: the texts.
        most: number of sentences to return.
    """
    if len(sentences) <= most:
        return sentences
    wanted = set(chain.from_iterable(stems(surface_words(text)) for text in texts)) - STOP_WORDS
    shared = [len(wanted.intersection(stems(surface_words(one.text)))) for one in sentences]
    best = sorted(range(len(sentences)), key=lambda place: (-shared[place], place))[:most]
    return [sentences[place] for place in sorted(best)]
