"""What a judge has lived through, by which one record's fault is told from everyone's.

A 403 may say that a key is not good for a model, or that a filter dislikes one document. A server
that has labelled records with the same key, model and address most likely means the document.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from labeler.judges.failures import Course, Symptom, diagnose

MOST_REJECTED = 10
"""Suspect failures in a row that stop a run even where the judge has worked before."""


@dataclass
class Experience:
    """Lasts as long as its judge."""

    worked: bool = False
    """Whether there was ever a usable answer."""
    rejected: int = 0
    """Suspect failures since the latest usable answer."""

    def succeed(self) -> None:
        """Note a usable answer."""
        self.worked, self.rejected = True, 0

    def weigh(self, symptom: Symptom) -> tuple[Symptom, str]:
        """Note why a record failed; read it in the light of what came before.

        Returns:
            The symptom to go by, and what to add to its explanation.
        """
        if diagnose(symptom).course is not Course.SUSPECT or not self.worked:
            return symptom, ""
        self.rejected += 1
        if self.rejected < MOST_REJECTED:
            return replace(symptom, sign="rejected"), ""
        return symptom, f"{self.rejected} records in a row failed so, and none was labelled between"
