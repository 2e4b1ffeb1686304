"""What a judge has lived through, by which one record's fault is told from everyone's.

A 403 may say that a key is not good for a model, or that a filter dislikes one document. A server
that has labelled records with the same key, model and address most likely means the document.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from labeler.judges.openai.failures import Course, Symptom, diagnose

MOST_REJECTED = 10
"""Suspect failures in a row that stop a run even where the judge has worked before."""

MOST_GIVEN_UP = 3
"""Records that may run out of attempts before there is any usable answer: a server that is down is
not asked about a hundred thousand more."""


@dataclass
class Experience:
    """Lasts as long as its judge."""

    worked: bool = False
    """Whether there was ever a usable answer."""
    rejected: int = 0
    """Suspect failures since the latest usable answer."""
    alive: bool = False
    """Whether the server answered the look-up before the first record."""
    given_up: int = 0
    """Records that ran out of attempts before there was any sign of life."""

    def succeed(self) -> None:
        """Note a usable answer."""
        self.worked, self.rejected = True, 0

    def weigh(self, symptom: Symptom) -> tuple[Symptom, str]:
        """Note why a record failed; read it in the light of what came before.

        Returns:
            The symptom to go by, and what to add to its explanation.
        """
        course = diagnose(symptom).course
        if course in {Course.RETRY, Course.RATE} and not (self.alive or self.worked):
            self.given_up += 1
            if self.given_up >= MOST_GIVEN_UP:
                return replace(symptom, sign="unreachable"), f"the latest: {diagnose(symptom).what}"
        if course is not Course.SUSPECT or not self.worked:
            return symptom, ""
        self.rejected += 1
        if self.rejected < MOST_REJECTED:
            return replace(symptom, sign="rejected"), ""
        return symptom, f"{self.rejected} records in a row failed so, and none was labelled between"
