"""Labels rows: every row is split, looked up, judged once, checked, and saved.

A row that cannot be labeled becomes a failure in the same stream and never ends the run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from labeler.data.rows import Row, Rows
from labeler.errors import BadRow
from labeler.judges.task import Task
from labeler.labeling.canaries import Canaries
from labeler.labeling.failures import bad_row
from labeler.labeling.modes import choose_mode, first_tasks
from labeler.labeling.run import Pending, Run, settled
from labeler.labeling.tasks import MissingField, TaskFactory, hides_conversation, needs_of
from labeler.labels.record import AnyOutcome, LabelFailure, LabelRecord
from labeler.sentences.example import Example

if TYPE_CHECKING:
    from labeler.labeling.retrievals import Retrievals


def run_tasks(
    run: Run,
    rows: Rows,
    factories: Sequence[TaskFactory],
    canaries: Canaries | None = None,
    *,
    judges_retrievals: bool = True,
) -> Generator[AnyOutcome, None, None]:
    """Submit the tasks of several factories for each row; yield their outcomes in that order.

    Every record is durable in the store before it is yielded.

    Args:
        run: the run, which the caller ends.
        rows: read twice: once before any spend, then some way ahead of the outcomes.
        factories: build the tasks of each row.
        canaries: records to judge once more with planted sentences; collects the results.
        judges_retrievals: False if the retrieval labels that labels rest on were judged before.

    Raises:
        FatalJudgeError: no record can be labeled; earlier labels are stored.
        RunPaused: the server asks to wait longer than the limits allow.
        StoreError: labels cannot be read or saved.
        UsageError: the rows cannot be read, two share an id and differ (nothing was sent), or
            they changed during the run.
    """
    for factory in factories:
        run.traffic_for(factory.judge)  # closed at the end, even if nothing is asked
        choose_mode(factory.judge, first_tasks(factory, rows), run.cache.store, run.cache.is_known)
    total = run.count(rows, needs_of(factories), hides_conversation=hides_conversation(factories))
    if run.listener:
        run.listener.on_start(total.distinct * len(factories), total.repeated)
    retrievals = None
    if any(getattr(factory, "relevance", None) for factory in factories):
        from labeler.labeling.retrievals import Retrievals  # noqa: PLC0415 - for blind relevance

        retrievals = Retrievals(run)
        if judges_retrievals:
            retrievals.judge(rows, factories, total.distinct, canaries)
    yield from submit_rows(
        run, rows, total.distinct, factories, canaries=canaries, retrievals=retrievals
    )


def submit_rows(
    run: Run,
    rows: Rows,
    expected: int,
    factories: Sequence[TaskFactory],
    *,
    canaries: Canaries | None = None,
    retrievals: Retrievals | None = None,
    with_unreadable: bool = True,
) -> Generator[AnyOutcome, None, None]:
    """Submit the tasks of several factories for each row after a first pass over the rows.

    Args:
        run: the run.
        rows: rows.
        expected: distinct rows of the first pass.
        factories: build the tasks of each row.
        canaries: records to judge once more with planted sentences.
        retrievals: the retrieval labels that labels rest on, judged before.
        with_unreadable: whether to yield failures of rows that no judge can be asked about.
    """
    submission = _Submission(run, factories, canaries or Canaries(0), retrievals, with_unreadable)
    for outcome, origin in run.in_order(rows, submission.submit, expected=expected):
        submission.collect_canaries(wait=False)
        if run.listener:
            run.listener.on_result(outcome, origin)
        yield outcome
    submission.collect_canaries(wait=True)


@dataclass
class _Submission:
    """Submits the tasks of rows and of their canaries."""

    run: Run
    factories: Sequence[TaskFactory]
    canaries: Canaries
    retrievals: Retrievals | None
    with_unreadable: bool
    _planted: deque[Pending] = field(default_factory=deque, init=False)

    def submit(self, row: Row) -> Iterator[Pending]:
        """Submit the tasks of a row, and yield each before the next one is submitted."""
        if isinstance(row.content, LabelFailure):
            if self.with_unreadable:
                yield settled(row.content, "row")
            return
        for factory in self.factories:
            yield from self._submit(row.where, row.content, factory)

    def _submit(self, where: str, example: Example, factory: TaskFactory) -> Iterator[Pending]:
        try:
            task = factory.task(example)
            pending = self._pending(factory, task)
        except BadRow as error:
            if self.with_unreadable or isinstance(error, MissingField):
                yield settled(bad_row(error, f"{where}: {error}", example), "row")
            return
        yield pending
        planted = self.canaries.perturbed(task)
        if planted:
            try:
                self._planted.append(self._pending(factory, planted))
            except BadRow as error:
                failure = bad_row(error, str(error), planted.example)
                self._planted.append(settled(failure, "row"))

    def _pending(self, factory: TaskFactory, task: Task) -> Pending:
        """Submit a task, unless its retrieval label failed."""
        rested = self.retrievals.rest(factory, task) if self.retrievals else task
        if isinstance(rested, LabelFailure):
            return settled(rested, "store")
        return self.run.submit(factory.judge, rested, self.run.windows_of(factory, rested))

    def collect_canaries(self, *, wait: bool) -> None:
        """Collect the outcomes of canaries: all of them, or the first ones that succeeded.

        The error of a canary that failed reaches the run through the wait for a row's outcome: only
        there are the outcomes before it passed on.
        """
        while self._planted and (wait or self._planted[0].succeeded):
            outcome = self._planted.popleft().settle().outcome
            if isinstance(outcome, LabelRecord | LabelFailure):  # canaries are labels
                self.canaries.add(outcome)
