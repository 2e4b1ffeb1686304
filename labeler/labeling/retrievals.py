"""Retrieval labels of a run: all are judged first, each once, then labels rest on them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from labeler.data.rows import Row, Rows
from labeler.errors import BadRow
from labeler.judges.task import SupportKind, Task
from labeler.labeling.failures import repeated
from labeler.labeling.run import Pending, Run
from labeler.labeling.tasks import LabelTasks, RetrievalTasks, TaskFactory
from labeler.labels.record import AnyOutcome, LabelFailure, RetrievalBasis
from labeler.labels.retrieval_record import RetrievalRecord, basis_of
from labeler.sentences.example import Example

NOT_JUDGED = "no_retrieval_label"
"""Reason of a failure: the row's retrieval was not judged before the row."""


@dataclass
class Retrievals:
    """The retrieval labels that the rows of a run rest on."""

    run: Run
    failed: dict[str, LabelFailure] = field(default_factory=dict)
    """Failures by key; the records are in the store."""
    _seen: set[bytes] = field(default_factory=set, init=False)
    """Keys of those that were submitted, in 32 bytes each."""

    def judge(self, rows: Rows, factories: Sequence[TaskFactory], expected: int) -> None:
        """Judge every retrieval of the rows once, before anything else is sent.

        Args:
            rows: rows, of which several lots may be given one after the other.
            factories: build the tasks of each row; those with a response are skipped.
            expected: rows of the first pass.

        Raises:
            FatalJudgeError: no retrieval can be judged; earlier ones are stored.
        """
        blind = [one for one in factories if isinstance(one, LabelTasks) and one.relevance]
        if not blind:
            return
        pass_ = _FirstPass(self, blind)
        for outcome, *_ in self.run.in_order(rows, pass_.submit, expected=expected):
            if isinstance(outcome, LabelFailure):
                self.failed[outcome.key or ""] = outcome
        self.run.notice(
            f"relevance: {len(self._seen):,} retrieval labels for {expected:,} rows, "
            f"{len(self.failed):,} failed"
        )

    def rest(self, factory: TaskFactory, task: Task[Any]) -> Task[Any] | LabelFailure:
        """Return a label's task with its retrieval label, or the row's failure without one.

        Raises:
            BadRow: the retrieval is too long to ask.
        """
        relevance = factory.relevance if isinstance(factory, LabelTasks) else None
        if relevance is None or not isinstance(task.kind, SupportKind):
            return task
        found = self.outcome(relevance, task)
        if isinstance(found, RetrievalRecord):
            return resting(task, basis_of(found, task.example))
        return _failure(task, found)

    def outcome(self, relevance: RetrievalTasks, task: Task[Any]) -> AnyOutcome | None:
        """Return the retrieval label of a row's task, or its failure; ``None`` if unknown."""
        whole, store = relevance.task(task), self.run.cache.store
        known = store.get(whole.key) or self.failed.get(whole.key) or relevance.answered(whole)
        if known is not None:
            return known
        relevance.require_fit(whole, self.run.cache.is_known)
        return self.run.cache.find(whole) or store.failure(whole.key)

    def submit(self, relevance: RetrievalTasks, whole: Task[Any]) -> Iterator[Pending]:
        """Submit a retrieval that was not submitted before."""
        key = bytes.fromhex(whole.key)
        if key in self._seen or relevance.answered(whole):
            return
        self._seen.add(key)
        relevance.require_fit(whole, self.run.cache.is_known)
        yield self.run.submit(relevance.judge, whole)


def resting(task: Task[Any], basis: RetrievalBasis) -> Task[Any]:
    """Return a label's task that rests on a retrieval label."""
    return replace(task, kind=replace(task.kind, basis=basis))  # type: ignore[type-var]


@dataclass
class _FirstPass:
    """Submits the retrievals of rows, each once."""

    retrievals: Retrievals
    factories: Sequence[LabelTasks]

    def submit(self, row: Row) -> Iterator[Pending]:
        """Submit the retrievals of a row that no earlier row has."""
        if not isinstance(row.content, Example):
            return
        for factory in self.factories:
            with suppress(BadRow):  # reported with the row
                task = factory.task(row.content)
                if relevance := factory.relevance:
                    yield from self.retrievals.submit(relevance, relevance.task(task))


def _failure(task: Task[Any], found: AnyOutcome | None) -> LabelFailure:
    """Return the failure of a row without a retrieval label; it cost nothing itself."""
    if isinstance(found, LabelFailure):
        failure = repeated(found, task.example)
        message = failure.message.removeprefix(f"{failure.id!r}: ")
        reason, lasting = failure.reason, failure.lasting
    else:
        message, reason, lasting = "it was not judged before this row", NOT_JUDGED, False
    return LabelFailure(
        id=task.example.id,
        reason=reason,
        message=f"{task.example.id!r}: its retrieval label: {message}",
        lasting=lasting,
        key=task.key,
        signature=task.signature,
        metadata=task.example.metadata,
    )
