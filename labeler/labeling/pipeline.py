"""Labels rows: every row is split, looked up, judged once, checked, and saved.

A row that cannot be labeled becomes a failure in the same stream and never ends the run.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from labeler.data.row_stream import RowStream
from labeler.data.rows import Row, Rows
from labeler.errors import BadRow
from labeler.judges.task import Task
from labeler.labeling.cache import Settled
from labeler.labeling.failures import bad_row
from labeler.labeling.modes import choose_mode, first_tasks
from labeler.labeling.run import Pending, Run
from labeler.labeling.tasks import LabelTasks, MissingField, TaskFactory
from labeler.labels.record import AnyOutcome, LabelFailure
from labeler.sentences.example import Example

if TYPE_CHECKING:
    from labeler.labeling.blind import BlindRelevance


def run_tasks(
    run: Run, rows: Rows, factories: Sequence[TaskFactory]
) -> Generator[AnyOutcome, None, None]:
    """Submit the tasks of several factories for each row; yield their outcomes in that order.

    Every record is durable in the store before it is yielded.

    Args:
        run: the run, which the caller ends.
        rows: read once, some way ahead of the outcomes.
        factories: build the tasks of each row.

    Raises:
        BadRows: the first rows all have the same fault; nothing was sent.
        FatalJudgeError: no record can be labeled; earlier labels are stored.
        RunPaused: the server asks to wait longer than the limits allow.
        StoreError: labels cannot be read or saved.
        UsageError: the rows cannot be read.
    """
    yield from submit_rows(run, opened(run, rows, factories), factories)


def opened(
    run: Run, rows: Rows, factories: Sequence[TaskFactory], *, outcomes: int | None = None
) -> RowStream:
    """Read the first rows, and have the judges ask in the output modes of stored labels.

    Args:
        run: the run.
        rows: rows of the run.
        factories: build the tasks of each row.
        outcomes: outcomes of each row, if not one for each factory.
    """
    stream = run.read(rows, factories, outcomes=outcomes)
    for factory in factories:
        first = () if run.cache.is_new else first_tasks(factory, stream.first)
        choose_mode(factory.judge, first, run.cache.store, run.cache.is_known)
    return stream


def submit_rows(
    run: Run,
    rows: Iterable[Row],
    factories: Sequence[TaskFactory],
    *,
    with_unreadable: bool = True,
) -> Generator[AnyOutcome, None, None]:
    """Submit the tasks of several factories for each row of a stream.

    Args:
        run: the run.
        rows: rows with ids of their own.
        factories: build the tasks of each row.
        with_unreadable: whether to yield failures of rows that no judge can be asked about.
    """
    rows, rest = judged_first(run, rows, factories)
    submission = Submission(run, factories, rest, with_unreadable)
    for found in run.in_order(rows, submission.submit, width=len(factories)):
        for outcome, origin in found:
            run.events.result(outcome, origin)
            yield outcome


def judged_first(
    run: Run, rows: Iterable[Row], factories: Sequence[TaskFactory]
) -> tuple[Iterable[Row], BlindRelevance | None]:
    """Have the retrievals of rows judged before the rows, where labels rest on them."""
    blind = [one for one in factories if isinstance(one, LabelTasks) and one.relevance]
    if not blind:
        return rows, None
    from labeler.labeling.blind import BlindRelevance  # noqa: PLC0415 - optional

    relevance = BlindRelevance(run, blind)
    return relevance.judged(rows), relevance


@dataclass(frozen=True)
class Submission:
    """Submits the tasks of rows.

    Attributes:
        run: the run.
        factories: build the tasks of each row.
        relevance: the retrieval labels that labels rest on, judged before.
        with_unreadable: whether rows that no judge can be asked about have an outcome.
        together: whether a row has one outcome if one of its tasks cannot be asked.
    """

    run: Run
    factories: Sequence[TaskFactory]
    relevance: BlindRelevance | None = None
    with_unreadable: bool = True
    together: bool = False

    def submit(self, row: Row) -> list[Pending]:
        """Submit the tasks of a row; none before all of them are prepared."""
        example = row.content
        if isinstance(example, LabelFailure):
            return [Settled(example, "row")] if self.with_unreadable else []
        prepared = [self._prepared(row, example, factory) for factory in self.factories]
        bad = [one for one in prepared if isinstance(one, Settled) and one.origin == "row"]
        if bad and self.together:
            return [bad[0]]
        pairs = zip(self.factories, prepared, strict=True)
        return [
            self.run.submit(factory.judge, one) if isinstance(one, Task) else one
            for factory, one in pairs
            if one is not None
        ]

    def _prepared(
        self, row: Row, example: Example, factory: TaskFactory
    ) -> Task[Any] | Settled | None:
        """Return a task that can be submitted, or its failure; ``None`` for neither."""
        try:
            task = factory.task(example)
            rested = self.relevance.rest(factory, task) if self.relevance else task
            if isinstance(rested, LabelFailure):
                return Settled(rested, "store")
            if isinstance(factory, LabelTasks):
                factory.require_fit(rested, self.run.cache.is_known)
        except BadRow as error:
            if not (self.with_unreadable or isinstance(error, MissingField)):
                return None
            return Settled(bad_row(error, f"{row.where}: {error}", example), "row")
        return rested
