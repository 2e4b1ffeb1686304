"""Relevance that is judged without responses: an optional second task, before each label's.

A retrieval is a question with its documents. Rows of one retrieval rest on one retrieval label.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

from labeler.judges.task import JudgeReply, SupportKind, Task, TaskKind
from labeler.judges.tokens import RELEVANCE_TOKENS
from labeler.labeling.cache import Settled
from labeler.labeling.failures import repeated, task_failure
from labeler.labeling.run import Run
from labeler.labeling.tasks import LabelTasks, RetrievalTasks, resting
from labeler.labels.answers import RetrievalLabel
from labeler.labels.contract import CheckedAnswer, check_retrieval
from labeler.labels.record import LabelFailure
from labeler.labels.retrieval_record import RetrievalRecord, without_documents
from labeler.labels.signature import Signature, retrieval_key
from labeler.sentences.display import plural
from labeler.sentences.example import KeyedExample


class RetrievalKind(TaskKind[RetrievalLabel]):
    """The relevance of documents, judged without a response."""

    name = "retrieval"
    answer_type = RetrievalLabel
    typical_tokens = RELEVANCE_TOKENS
    rules = (
        "all_relevant_sentence_keys holds keys of document sentences and nothing else, each "
        "exactly as it begins its line."
    )

    def key(self, example: KeyedExample, signature: Signature) -> str:
        """Return the key of the retrieval label."""
        return retrieval_key(example, signature)

    def check(self, answer: RetrievalLabel, example: KeyedExample) -> CheckedAnswer[RetrievalLabel]:
        """Check the relevant sentences against those that were shown."""
        return check_retrieval(answer, example)

    def record(
        self,
        task: Task[RetrievalLabel],
        check: CheckedAnswer[RetrievalLabel],
        reply: JudgeReply[RetrievalLabel],
    ) -> RetrievalRecord:
        """Build the retrieval record."""
        return RetrievalRecord(
            key=task.key,
            example=task.example,
            label=check.answer,
            verbatim=reply.answer if check.answer != reply.answer else None,
            normalised={**reply.repairs, **check.repairs},
            signature=task.signature,
            reply=reply.facts,
            scores=reply.scores,
            not_measured=reply.not_measured,
        )

    def unsupported(self, judge: str) -> str:
        """Return the error message for a judge that gives whole labels only."""
        return f"judge {judge!r} judges relevance with the response alone: leave --relevance out"


@dataclass
class BlindRelevance:
    """The retrieval labels that the labels of a run rest on; each is asked once."""

    run: Run
    _failed: dict[str, LabelFailure] = field(default_factory=dict, init=False)
    """Failures by key; the records are in the store."""
    _asked: set[bytes] = field(default_factory=set, init=False)
    """Keys of the retrievals with documents, in 32 bytes each."""

    async def rest(self, factory: LabelTasks, task: Task[Any]) -> Task[Any] | Settled:
        """Return a label's task with its retrieval label, or the row's failure without one.

        Raises:
            BadRow: the retrieval is too long to ask.
            FatalJudgeError: no retrieval can be judged; earlier ones are stored.
        """
        if factory.relevance is None or not isinstance(task.kind, SupportKind):
            return task
        found = await self.outcome(factory.relevance, task)
        if isinstance(found, LabelFailure):
            return Settled(_failure(task, found), "store")
        return resting(task, found)

    async def outcome(
        self, relevance: RetrievalTasks, row: Task[Any]
    ) -> RetrievalRecord | LabelFailure:
        """Return the retrieval label of a row's task, or its failure.

        Raises:
            BadRow: the retrieval is too long to ask.
        """
        task = relevance.task(row)
        if not task.example.documents:
            return without_documents(task.key, task.example, task.signature)
        self._asked.add(bytes.fromhex(task.key))
        if task.key in self._failed:
            return self._failed[task.key]
        relevance.require_fit(task, self.run.cache.is_known)
        ((found, _),) = await self.run.settled([(relevance.judge, task)])
        if isinstance(found, LabelFailure):
            self._failed[task.key] = found
        return cast("RetrievalRecord | LabelFailure", found)  # what its task makes

    def report(self, rows: int) -> None:
        """Report the numbers of rows and retrieval labels."""
        self.run.notice(
            f"relevance: {plural(len(self._asked), 'retrieval label')} for {plural(rows, 'row')}, "
            f"{len(self._failed):,} failed"
        )


def _failure(task: Task[Any], found: LabelFailure) -> LabelFailure:
    """Return the failure of a row without a retrieval label; it cost nothing itself."""
    failure = repeated(found, task.example)
    message = failure.message.removeprefix(f"{failure.id!r}: ")
    message = f"its retrieval label: {message}"
    return task_failure(task, failure.reason, message, attempts=0, lasting=failure.lasting)
