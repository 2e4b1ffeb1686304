"""The replay judge: answers from a label file, for tests, demos and reruns without a key."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from labeler.data.label_files import read_outcomes
from labeler.errors import JudgeError
from labeler.judges.judge import JudgeSpec
from labeler.judges.task import LABEL_KINDS, JudgeReply, Task
from labeler.labels.answers import GPTLabelingOutput, lowered
from labeler.labels.record import LabelRecord, Outcome, ReplyFacts, records_of
from labeler.labels.signature import digest, shown
from labeler.sentences.example import KeyedExample


class ReplayJudge:
    """Answers each record with the recorded label of the same sentences.

    Args:
        outcomes: the recorded labels; failures are skipped, and the first of several records with
            the same sentences counts.
        name: identifies the collection; it is the model in label keys.
    """

    answers = LABEL_KINDS
    reads_prompts = False

    def __init__(self, outcomes: Iterable[Outcome], *, name: str) -> None:
        self.spec = JudgeSpec(judge="replay", model=name)
        self._records: dict[str, list[LabelRecord]] = {}
        self._splitters: dict[str, None] = {}
        for outcome in outcomes:
            if isinstance(outcome, LabelRecord):
                self._splitters[outcome.example.splitter] = None
                for key in _digests(outcome.example):
                    self._records.setdefault(key, []).append(outcome)

    @classmethod
    def from_file(cls, path: str | Path) -> ReplayJudge:
        """Return a judge that answers from a label file, named by the file's content.

        Raises:
            UsageError: the file cannot be read or is not a label file.
        """
        outcomes = list(records_of(read_outcomes(path), "label"))
        content = hashlib.sha256(Path(path).read_bytes()).hexdigest()
        return cls(outcomes, name=f"records-{content[:12]}")

    async def label(self, task: Task) -> JudgeReply:
        """Return the recorded answer for the record's sentences.

        Raises:
            JudgeError: no record has the same sentences (``not_recorded``).
        """
        referenced = task.prompt.shows_reference
        same = self._records.get(digest(shown(task.example, reference=referenced)), [])
        record = next((r for r in same if isinstance(r.label, task.answer_type)), None)
        if record is None:
            raise JudgeError(
                f"no recorded label of profile {task.kind.name!r} has the same question, "
                f"documents and response, sentence by sentence{self._other_splitters(task)}",
                reason="not_recorded",
                attempts=0,
            )
        facts = ReplyFacts(
            served_model=record.reply.served_model,
            attempts=0,
            thresholds=record.reply.thresholds,
        )
        answer = lowered(_recorded_answer(record), task.answer_type)
        return JudgeReply(answer, facts, record.scores, not_measured=record.not_measured)

    def _other_splitters(self, task: Task) -> str:
        """Name the splitters of the recorded labels if none has the task's."""
        used, known = task.example.splitter, self._splitters
        if used in known or not known:
            return ""
        listed = ", ".join(f"{name:.40}" for name in islice(known, 3))
        return f"; {used} splits these rows and {listed} the recorded ones: see --splitter"

    async def aclose(self) -> None:
        """Nothing to release."""


def _digests(example: KeyedExample) -> set[str]:
    """Return the digests of a record's sentences, with and without the reference answer."""
    return {digest(shown(example, reference=referenced)) for referenced in (False, True)}


def _recorded_answer(record: LabelRecord) -> GPTLabelingOutput:
    """Return the recorded answer as the judge wrote it, if a judge may answer so."""
    stored = record.verbatim
    if stored is None or record.violations:
        return record.label
    if isinstance(stored, GPTLabelingOutput):
        return stored
    if any(entry.fully_supported is None for entry in stored.sentence_support_information):
        return record.label
    return GPTLabelingOutput.model_validate(stored.model_dump())
