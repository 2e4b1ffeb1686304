"""Answers from a file of label records: for tests, demonstrations, and reruns without a key."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from labeler.data.label_files import read_outcomes
from labeler.errors import JudgeError
from labeler.judges.judge import JudgeSpec
from labeler.judges.task import LABEL_KINDS, JudgeReply, Task
from labeler.labels.answers import GPTLabelingOutput, lowered
from labeler.labels.record import LabelRecord, Outcome, ReplyFacts, records_of, shown
from labeler.labels.signature import digest
from labeler.sentences.example import KeyedExample


class ReplayJudge:
    """Gives each record the answer that a recorded one with the same sentences got.

    Args:
        outcomes: records to answer from; failures among them are left out, and of two records
            with the same sentences the first counts.
        name: identifies the collection; it enters the labels' key as the model.
    """

    answers = LABEL_KINDS

    def __init__(self, outcomes: Iterable[Outcome], *, name: str) -> None:
        self.spec = JudgeSpec(judge="replay", model=name)
        self._records: dict[str, list[LabelRecord]] = {}
        for outcome in outcomes:
            if isinstance(outcome, LabelRecord):
                for shown_as in _names(outcome.example):
                    self._records.setdefault(shown_as, []).append(outcome)

    @classmethod
    def from_file(cls, path: str | Path) -> ReplayJudge:
        """Answer from a label file; its content names the judge.

        Raises:
            UsageError: the file cannot be read or is not a label file.
        """
        outcomes = list(records_of(read_outcomes(path), "label"))
        content = hashlib.sha256(Path(path).read_bytes()).hexdigest()
        return cls(outcomes, name=f"records-{content[:12]}")

    async def label(self, request: Task) -> JudgeReply:
        """Look the record's sentences up.

        Raises:
            JudgeError: no record has the same sentences (``not_recorded``).
        """
        referenced = request.prompt.shows_reference
        same = self._records.get(digest(shown(request.example, reference=referenced)), [])
        record = next((r for r in same if isinstance(r.label, request.answer_type)), None)
        if record is None:
            raise JudgeError(
                f"no recorded label of profile {request.kind.name!r} has the same question, "
                "documents and response, sentence by sentence",
                reason="not_recorded",
                attempts=0,
            )
        facts = ReplyFacts(served_model=record.reply.served_model, attempts=0)
        return JudgeReply(lowered(_said(record), request.answer_type), facts, record.scores)

    async def aclose(self) -> None:
        """Nothing is held."""


def _names(example: KeyedExample) -> set[str]:
    """What requests about the same sentences look for, with the reference answer and without."""
    return {digest(shown(example, reference=referenced)) for referenced in (False, True)}


def _said(record: LabelRecord) -> GPTLabelingOutput:
    """The recorded answer in its own words, where a judge may answer in them."""
    stored = record.verbatim
    if stored is None or record.violations:
        return record.label
    if isinstance(stored, GPTLabelingOutput):
        return stored
    if any(entry.fully_supported is None for entry in stored.sentence_support_information):
        return record.label
    return GPTLabelingOutput.model_validate(stored.model_dump())
