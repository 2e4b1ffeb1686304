"""Relevance that is judged without responses: an optional second task, before each label's.

A retrieval is a question with its documents. Rows of one retrieval rest on one retrieval label.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from labeler.data.rows import Row
from labeler.errors import BadRow
from labeler.judges.prompting import Message, Prompt
from labeler.judges.task import JudgeReply, SupportKind, Task, TaskKind
from labeler.judges.tokens import RELEVANCE_TOKENS
from labeler.labeling.cache import Settled
from labeler.labeling.failures import repeated, task_failure
from labeler.labeling.run import Pending, Run
from labeler.labeling.tasks import LabelTasks, RetrievalTasks, TaskFactory, resting
from labeler.labels.answers import RetrievalLabel
from labeler.labels.contract import CheckedAnswer, check_retrieval
from labeler.labels.record import AnyOutcome, LabelFailure
from labeler.labels.retrieval_record import RetrievalRecord
from labeler.labels.signature import Signature, retrieval_key
from labeler.sentences.example import Example, KeyedExample

NOT_JUDGED = "no_retrieval_label"
"""Reason of a failure: the row's retrieval was not judged before the row."""


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

    def messages(self, prompt: Prompt, example: KeyedExample) -> tuple[Message, ...]:
        """Render the question and the documents."""
        return prompt.render(example)

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
    """The retrieval labels that the labels of a run rest on."""

    run: Run
    factories: Sequence[LabelTasks]
    _failed: dict[str, LabelFailure] = field(default_factory=dict, init=False)
    """Failures by key; the records are in the store."""
    _seen: set[bytes] = field(default_factory=set, init=False)
    """Keys of those that were submitted, in 32 bytes each."""

    def judged(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield rows in order, each once its retrievals are judged; each retrieval is asked once.

        Raises:
            FatalJudgeError: no retrieval can be judged; earlier ones are stored.
        """
        count, waiting = 0, deque[Row]()

        def submit(row: Row) -> list[Pending]:
            waiting.append(row)
            return self._submit(row)

        for found in self.run.in_order(rows, submit):
            for outcome, _ in found:
                if isinstance(outcome, LabelFailure):
                    self._failed[outcome.key or ""] = outcome
            count += 1
            yield waiting.popleft()
        self.run.notice(
            f"relevance: {len(self._seen):,} retrieval labels for {count:,} rows, "
            f"{len(self._failed):,} failed"
        )

    def rest(self, factory: TaskFactory, task: Task[Any]) -> Task[Any] | Settled:
        """Return a label's task with its retrieval label, or the row's failure without one.

        Raises:
            BadRow: the retrieval is too long to ask.
        """
        relevance = factory.relevance if isinstance(factory, LabelTasks) else None
        if relevance is None or not isinstance(task.kind, SupportKind):
            return task
        found = self.outcome(relevance, task)
        if isinstance(found, RetrievalRecord):
            return resting(task, found)
        return Settled(_failure(task, found), "store")

    def outcome(self, relevance: RetrievalTasks, row: Task[Any]) -> AnyOutcome | None:
        """Return the retrieval label of a row's task, or its failure; ``None`` if unknown."""
        task, cache = relevance.task(row), self.run.cache
        known = relevance.stored(task, cache.store) or self._failed.get(task.key)
        if known is not None:
            return known
        relevance.require_fit(task, cache.is_known)
        return cache.find(task) or cache.store.failure(task.key)

    def _submit(self, row: Row) -> list[Pending]:
        """Submit the retrievals of a row that no earlier row has."""
        pending = list[Pending]()
        if isinstance(row.content, Example):
            for factory in self.factories:
                with suppress(BadRow):  # reported with the row
                    pending += self._asked(factory, row.content)
        return pending

    def _asked(self, factory: LabelTasks, example: Example) -> Iterator[Pending]:
        relevance = factory.relevance
        if relevance is None:
            return
        task = relevance.task(factory.task(example))
        key = bytes.fromhex(task.key)
        if key in self._seen or not task.example.documents:
            return
        self._seen.add(key)
        relevance.require_fit(task, self.run.cache.is_known)
        yield self.run.submit(relevance.judge, task)


def _failure(task: Task[Any], found: AnyOutcome | None) -> LabelFailure:
    """Return the failure of a row without a retrieval label; it cost nothing itself."""
    if isinstance(found, LabelFailure):
        failure = repeated(found, task.example)
        message = failure.message.removeprefix(f"{failure.id!r}: ")
        reason, lasting = failure.reason, failure.lasting
    else:
        message, reason, lasting = "it was not judged before this row", NOT_JUDGED, False
    return task_failure(
        task, reason, f"its retrieval label: {message}", attempts=0, lasting=lasting
    )
