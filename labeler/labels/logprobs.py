"""The probabilities of scores, read from the log-probabilities of an answer's tokens.

A server tells, for each token of an answer, which others might have stood in its place and how
likely each was. Where the score stands, these are the probabilities of the other scores.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple


class Token(NamedTuple):
    """One token of an answer.

    Attributes:
        text: its bytes.
        logprob: natural logarithm of its probability.
        others: further tokens that might have stood in its place, with their log-probabilities.
    """

    text: bytes
    logprob: float
    others: tuple[tuple[bytes, float], ...] = ()


_SCORE = re.compile(rb'"score"\s*:\s*(-?\d{1,6})(?!\d)')
"""Inside a JSON text's strings a quotation mark is escaped, so this is never part of one."""
_DIGITS = re.compile(rb"-?\d*")
_TWO_DIGITS = 2


def distribution_of(tokens: Sequence[Token], score: int, scale: range) -> dict[int, float] | None:
    """How likely each score was, as far as the tokens tell.

    A score of two digits may be one token or two. Where a token that was not chosen is a score by
    itself and the beginning of another (``1`` and ``10``), and the vocabulary keeps digits apart,
    nobody knows which of them it would have become: its probability is left out.

    Args:
        tokens: of the whole answer, in order.
        score: the score that was read from it.
        scale: the scores that count.

    Returns:
        Probabilities by score, which need not add up to 1; ``None`` where the tokens do not hold
        this score, once.
    """
    text = b"".join(token.text for token in tokens)
    found = list(_SCORE.finditer(text))
    if len(found) != 1 or int(found[0][1]) != score:
        return None
    known: dict[int, float] = {}
    for value, probability in _walk(list(_from(tokens, found[0].start(1))), scale):
        if value in scale:
            known[value] = known.get(value, 0.0) + probability
    likely = {value: min(1.0, p) for value, p in sorted(known.items()) if p > 0}
    return likely or None


def expected_score(distribution: Mapping[int, float]) -> Fraction:
    """The probability-weighted score: Σ p·s over Σ p, exact for the given probabilities.

    Args:
        distribution: probabilities by score, of which one at least is above 0.
    """
    mass = sum(map(Fraction, distribution.values()))
    return sum((Fraction(p) * score for score, p in distribution.items()), Fraction(0)) / mass


class _Place(NamedTuple):
    """What might stand at one place of the score: the token that does, then the others."""

    chosen: bytes
    probability: float
    others: list[tuple[bytes, float]]


def _from(tokens: Sequence[Token], start: int) -> Iterator[_Place]:
    """The places from an offset on; what tokens hold before it is cut off."""
    offset = 0
    for token in tokens:
        lead = token.text[: max(0, start - offset)]
        offset += len(token.text)
        if offset > start:
            others = [(_without(lead, text), math.exp(logprob)) for text, logprob in token.others]
            yield _Place(token.text[len(lead) :], math.exp(token.logprob), others)


def _without(lead: bytes, text: bytes) -> bytes:
    """A token without what stands before the score; white space may be there or not."""
    if lead and text.startswith(lead):
        return text[len(lead) :]
    return text if lead.strip() else text.lstrip()


def _walk(places: list[_Place], scale: range) -> Iterator[tuple[int, float]]:
    """Every score that the answer might have had, with its probability."""
    before, reached = b"", 1.0
    for place in places:
        texts = [place.chosen, *(text for text, _ in place.others)]
        merges = any(len(_digits(text)) >= _TWO_DIGITS for text in texts)
        for text, probability in place.others:
            value = _value(before, text)
            is_whole = merges or _ends(text) or not _grows(before + text, scale)
            if value is not None and is_whole:
                yield value, reached * probability
        value = _value(before, place.chosen)
        before, reached = before + _digits(place.chosen), reached * place.probability
        if value is not None and (_ends(place.chosen) or not _grows(before, scale)):
            yield value, reached
            return
    if _value(b"", before) is not None:
        yield int(before), reached


def _digits(text: bytes) -> bytes:
    found = _DIGITS.match(text)
    return found[0] if found else b""


def _ends(text: bytes) -> bool:
    """Whether a number ends within a token."""
    return len(_digits(text)) < len(text)


def _value(before: bytes, text: bytes) -> int | None:
    """The number that a token ends or goes on with."""
    try:
        return int(before + _digits(text))
    except ValueError:
        return None


def _grows(number: bytes, scale: range) -> bool:
    """Whether a score on the scale begins with this and goes on."""
    return any(
        len(one) > len(number) and one.startswith(number)
        for one in (str(score).encode() for score in scale)
    )
