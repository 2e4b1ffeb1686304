"""Cuts a sentence into the parts that may be true or false by themselves.

Only where punctuation says so: after a semicolon, and after a comma with a conjunction. Nobody
here knows what a verb is, so "Paris, Lyon, and Nice are cities" is cut too where the parts are long
enough. A cut that is missed costs a claim, one too many makes half a sentence of one.
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from labeler.sentences.example import Sentence
from labeler.sentences.statements import Claim, read_claim

FEWEST_WORDS = 3
"""Words that a part must claim with; a shorter one stays with what stands before it."""
MOST_CLAUSES = 8
"""What is left after so many stays with the last."""

_JOINT = re.compile(r";|,\s+(?:and|but|while|whereas|although|though)\b", re.IGNORECASE)


class Clause(NamedTuple):
    """A part of a sentence, as it is written and as it is read."""

    text: str
    claim: Claim


def whole(sentence: Sentence) -> Clause:
    """A sentence as one."""
    return Clause(sentence.text.strip(), read_claim(sentence))


def clauses(sentence: Sentence) -> list[Clause]:
    """The parts of a sentence, in order; the sentence itself where there is nothing to cut."""
    joints = [(0, 0), *(m.span() for m in _JOINT.finditer(sentence.text))]
    joints.append((len(sentence.text), len(sentence.text)))
    cut: list[tuple[int, int]] = []
    words = 0
    for (_, start), (end, _) in pairwise(joints):
        more = len(_part(sentence, start, end).claim.words)
        if cut and (min(words, more) < FEWEST_WORDS or len(cut) == MOST_CLAUSES):
            cut[-1] = (cut[-1][0], end)
            words += more
        else:
            cut.append((start, end))
            words = more
    parts = [_part(sentence, start, end) for start, end in cut]
    return parts if all(part.claim.words for part in parts) else [whole(sentence)]


def _part(sentence: Sentence, start: int, end: int) -> Clause:
    return whole(replace(sentence, text=sentence.text[start:end]))
