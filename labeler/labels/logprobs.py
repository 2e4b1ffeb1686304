"""Probabilities of scores, from the log-probabilities of an answer's tokens.

A server returns alternatives and their probabilities for each token of an answer. At the place of
the score, these are the probabilities of the other scores.
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
        others: alternative tokens with their log-probabilities.
    """

    text: bytes
    logprob: float
    others: tuple[tuple[bytes, float], ...] = ()


_SCORE = re.compile(rb'"score"\s*:\s*(-?\d{1,6})(?!\d)')
"""Quotation marks inside JSON strings are escaped, so this never matches within one."""
_DIGITS = re.compile(rb"-?\d*")
_TWO_DIGITS = 2


def distribution_of(tokens: Sequence[Token], score: int, scale: range) -> dict[int, float] | None:
    """Return the probability of each score, as far as the tokens show it.

    A score of two digits may be one token or two. If a token that was not chosen is the beginning
    of a longer score (``1`` of ``10``), and no token with two digits is among those of its place,
    it is unknown which score it would have become, and so is the distribution.

    Args:
        tokens: tokens of the whole answer, in order.
        score: score of the answer.
        scale: valid scores.

    Returns:
        Probabilities by score, which need not add up to 1; ``None`` where the tokens do not hold
        this score, once, or a score remains unknown.
    """
    text = b"".join(token.text for token in tokens)
    found = list(_SCORE.finditer(text))
    if len(found) != 1 or int(found[0][1]) != score:
        return None
    known: dict[int, float] = {}
    for value, probability in _walk(list(_from(tokens, found[0].start(1))), scale):
        if value is None and probability:
            return None
        if value is not None and value in scale:
            known[value] = known.get(value, 0.0) + probability
    likely = {value: min(1.0, p) for value, p in sorted(known.items()) if p > 0}
    return likely or None


def has_prefixes(scale: range) -> bool:
    """Return True if a score of a scale is the beginning of another, as 1 is of 10."""
    return any(_grows(str(score).encode(), scale) for score in scale)


def expected_score(distribution: Mapping[int, float]) -> Fraction:
    """The probability-weighted score: Σ p·s over Σ p, exact for the given probabilities.

    Args:
        distribution: probabilities by score, at least one above 0.
    """
    mass = sum(map(Fraction, distribution.values()))
    return sum((Fraction(p) * score for score, p in distribution.items()), Fraction(0)) / mass


class _Place(NamedTuple):
    """One place of the score: its token and the alternatives."""

    chosen: bytes
    probability: float
    others: list[tuple[bytes, float]]


def _from(tokens: Sequence[Token], start: int) -> Iterator[_Place]:
    """Yield the places from an offset on, without the text before it."""
    offset = 0
    for token in tokens:
        lead = token.text[: max(0, start - offset)]
        offset += len(token.text)
        if offset > start:
            others = [(_without(lead, text), math.exp(logprob)) for text, logprob in token.others]
            yield _Place(token.text[len(lead) :], math.exp(token.logprob), others)


def _without(lead: bytes, text: bytes) -> bytes:
    """Remove the text before the score from a token; white space is optional."""
    if lead and text.startswith(lead):
        return text[len(lead) :]
    return text if lead.strip() else text.lstrip()


def _walk(places: list[_Place], scale: range) -> Iterator[tuple[int | None, float]]:
    """Yield the scores that the answer might have had, ``None`` for unknown, and probabilities."""
    before, reached = b"", 1.0
    for place in places:
        texts = [place.chosen, *(text for text, _ in place.others)]
        merges = any(len(_digits(text)) >= _TWO_DIGITS for text in texts)
        for text, probability in place.others:
            value, digits = _value(before, text), _digits(text)
            if digits and not (merges or _ends(text)) and _grows(before + digits, scale):
                yield None, reached * probability
            elif value is not None:
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
    """Return whether a number ends within a token."""
    return len(_digits(text)) < len(text)


def _value(before: bytes, text: bytes) -> int | None:
    """Return the number that a token completes or continues."""
    try:
        return int(before + _digits(text))
    except ValueError:
        return None


def _grows(number: bytes, scale: range) -> bool:
    """Return whether a longer score on the scale begins with this."""
    return any(
        len(one) > len(number) and one.startswith(number)
        for one in (str(score).encode() for score in scale)
    )
