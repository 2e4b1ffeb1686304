"""Labels rows: every row is split, looked up, judged once, checked, and saved.

A row that cannot be labeled becomes a failure in the same stream and never ends the run.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from labeler.data.row_stream import RowStream
from labeler.data.rows import Row, Rows
from labeler.errors import BadRow
from labeler.judges.task import Task
from labeler.labeling.cache import Settled
from labeler.labeling.failures import bad_row
from labeler.labeling.modes import choose_mode, first_tasks
from labeler.labeling.run import Pending, Run
from labeler.labeling.tasks import LabelTasks, TaskFactory
from labeler.labels.record import AnyOutcome, LabelFailure

if TYPE_CHECKING:
    from labeler.labeling.blind import BlindRelevance


def run_tasks(
    run: Run, rows: Rows, factories: Sequence[TaskFactory]
) -> Generator[AnyOutcome, None, None]:
    """Submit the tasks of several factories for each row; return their outcomes in that order.

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
    return submit_rows(run, opened(run, rows, factories), factories)


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
    relevance = blind_relevance(run, factories)
    submit = partial(submit_row, run, factories, relevance)
    judged = relevance.judged(rows) if relevance else rows
    for found in run.in_order(judged, submit, width=len(factories)):
        for outcome, origin in found:
            if with_unreadable or origin != "row" or outcome.signature:
                run.events.result(outcome, origin)
                yield outcome


def blind_relevance(run: Run, factories: Sequence[TaskFactory]) -> BlindRelevance | None:
    """Return the retrieval labels that labels rest on; ``None`` if they rest on none."""
    blind = [one for one in factories if isinstance(one, LabelTasks) and one.relevance]
    if not blind:
        return None
    from labeler.labeling.blind import BlindRelevance  # noqa: PLC0415 - optional

    return BlindRelevance(run, blind)


def submit_row(
    run: Run,
    factories: Sequence[TaskFactory],
    relevance: BlindRelevance | None,
    row: Row,
    *,
    together: bool = False,
) -> list[Pending]:
    """Submit the tasks of a row; none before all of them are prepared.

    Args:
        run: the run.
        factories: build the tasks.
        relevance: the retrieval labels that labels rest on, judged before.
        row: the row.
        together: whether the row has one outcome if one of its tasks cannot be asked.
    """
    example = row.content
    if isinstance(example, LabelFailure):
        return [Settled(example, "row")]
    prepared: list[tuple[TaskFactory, Task[Any] | Settled]] = []
    for factory in factories:
        try:
            task = factory.task(example)
            one = relevance.rest(factory, task) if relevance else task
            if isinstance(factory, LabelTasks) and isinstance(one, Task):
                factory.require_fit(one, run.cache.is_known)
        except BadRow as error:
            one = Settled(bad_row(error, f"{row.where}: {error}", example), "row")
            if together:
                return [one]
        prepared.append((factory, one))
    return [
        run.submit(factory.judge, one) if isinstance(one, Task) else one
        for factory, one in prepared
    ]
