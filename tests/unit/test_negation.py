"""Negations in the words of sentences."""

from __future__ import annotations

import pytest

from labeler.sentences.statements import affirms, denials, negations
from labeler.sentences.words import stems, surface_words


def words(text: str) -> list[str]:
    """The stems of a text."""
    return stems(surface_words(text))


@pytest.mark.parametrize(
    "claim",
    [
        "The gate is not opened at noon.",
        "The gate isn't opened at noon.",
        "The gate is never opened at noon.",
        "The old gate is not open.",
    ],
)
def test_a_denial_of_what_a_sentence_affirms(claim: str) -> None:
    """The words around the negation are in the sentence, next to each other."""
    (denial,) = denials(words(claim))
    assert affirms(words("Daily the gate is open."), denial)
    assert not affirms(words("Daily the gate is not open."), denial)
    assert not affirms(words("The master opens it."), denial)


@pytest.mark.parametrize(
    ("claim", "document"),
    [
        ("Visitors do not need a ticket.", "Visitors need a ticket."),
        ("It has no gate house.", "It has a gate house."),
        ("The lock won't open early.", "The lock will open early."),
        ("Ships cannot enter the basin.", "Ships can enter the basin."),
    ],
)
def test_denials_leave_out_articles_and_supporting_verbs(claim: str, document: str) -> None:
    """So that a copy with a negation is found whatever verb it needs."""
    assert any(affirms(words(document), denial) for denial in denials(words(claim)))


@pytest.mark.parametrize(
    "claim",
    [
        "If the gate is not open, wait.",
        "Make sure that the gate is not open.",
        "The documents do not mention the gate.",
        "Not all gates are open.",
        "No, the gate is not open.",
        "It noted the gate.",
    ],
)
def test_what_denies_nothing(claim: str) -> None:
    """Conditions, statements about documents, denials of a part, and negative answers."""
    assert not list(denials(words(claim)))


def test_negations_are_counted_without_an_answer() -> None:
    """The word "noted" does not negate."""
    assert negations(words("No, it is not here and cannot come, as noted.")) == 2
