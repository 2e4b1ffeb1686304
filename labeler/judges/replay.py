"""Answers from a file of label records: for tests, demonstrations, and reruns without a key."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from labeler.errors import JudgeError
from labeler.judges import JudgeReply, JudgeSpec
from labeler.prompting import JudgeRequest
from labeler.record import LabelRecord, Outcome, shown
from labeler.rows import read_outcomes
from labeler.signature import digest


class ReplayJudge:
    """Gives each record the answer that a recorded one with the same sentences got.

    Args:
        outcomes: records to answer from; failures among them are left out, and of two records
            with the same sentences the first counts.
        name: identifies the collection; it enters the labels' key as the model.
    """

    def __init__(self, outcomes: Iterable[Outcome], *, name: str) -> None:
        self.spec = JudgeSpec(judge="replay", model=name)
        self._records: dict[str, LabelRecord] = {}
        for outcome in outcomes:
            if isinstance(outcome, LabelRecord):
                self._records.setdefault(digest(shown(outcome.example)), outcome)

    @classmethod
    def from_file(cls, path: str | Path) -> ReplayJudge:
        """Answer from a label file; its content names the judge.

        Raises:
            UsageError: the file cannot be read or is not a label file.
        """
        outcomes = list(read_outcomes(path))
        content = hashlib.sha256(Path(path).read_bytes()).hexdigest()
        return cls(outcomes, name=f"records-{content[:12]}")

    async def label(self, request: JudgeRequest) -> JudgeReply:
        """Look the record's sentences up.

        Raises:
            JudgeError: no record has the same sentences (``not_recorded``).
        """
        record = self._records.get(digest(shown(request.example)))
        if record is None:
            raise JudgeError(
                f"none of {len(self._records)} recorded labels has the same question, documents "
                "and response, sentence by sentence",
                reason="not_recorded",
                attempts=0,
            )
        return JudgeReply(record.label, record.reply, record.scores)

    async def aclose(self) -> None:
        """Nothing is held."""
