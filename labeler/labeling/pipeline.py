"""Labels rows: every row is split, looked up, judged once, checked, and saved.

A row that cannot be labeled becomes a failure in the same stream and never ends the run.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from labeler.data.rows import KnownRow, RecalledRows, Row, RowFile, Rows
from labeler.errors import BadRow
from labeler.judges.judge import JudgeSpec
from labeler.judges.task import Task
from labeler.labeling.cache import Settled
from labeler.labeling.failures import bad_row
from labeler.labeling.modes import choose_mode, first_tasks
from labeler.labeling.run import Pending, Run, RunCounts, settled
from labeler.labeling.tasks import (
    LabelTasks,
    MissingField,
    TaskFactory,
    needs_of,
)
from labeler.labels.record import AnyOutcome, LabelFailure
from labeler.sentences.example import Example
from labeler.store.memory import MemoryStore

if TYPE_CHECKING:
    from labeler.labeling.recalling import Recalling
    from labeler.labeling.retrievals import Retrievals

_TOGETHER, _LARGE = 32, 1 << 21
"""Rows that are split together, and bytes of memory that they take, at most."""
_FIRST = 8
"""Rows that are split before the first request: as many as are asked before the first label."""


def run_tasks(
    run: Run,
    rows: Rows,
    factories: Sequence[TaskFactory],
    *,
    judges_retrievals: bool = True,
    as_lines: bool = False,
) -> Generator[AnyOutcome, None, None]:
    """Submit the tasks of several factories for each row; yield their outcomes in that order.

    Every record is durable in the store before it is yielded.

    Args:
        run: the run, which the caller ends.
        rows: read twice: once before any spend, then some way ahead of the outcomes.
        factories: build the tasks of each row.
        judges_retrievals: False if the retrieval labels that labels rest on were judged before.
        as_lines: whether stored labels may come as :class:`labeler.data.label_files.LabelLine`.

    Raises:
        FatalJudgeError: no record can be labeled; earlier labels are stored.
        RunPaused: the server asks to wait longer than the limits allow.
        StoreError: labels cannot be read or saved.
        UsageError: the rows cannot be read (nothing was sent), or
            they changed during the run.
    """
    for factory in factories:
        run.traffic_for(factory.judge)  # closed at the end, even if nothing is asked
        first = () if run.cache.is_new else first_tasks(factory, rows)
        choose_mode(factory.judge, first, run.cache.store, run.cache.is_known)
    recalling = _recalling(run, rows, factories, as_lines=as_lines)
    total = run.count(recalling.first_pass if recalling else rows, needs_of(factories))
    if run.listener:
        run.listener.on_start(total * len(factories))
    retrievals = None
    if any(getattr(factory, "relevance", None) for factory in factories):
        from labeler.labeling.retrievals import Retrievals  # noqa: PLC0415 - for blind relevance

        retrievals = Retrievals(run)
        if judges_retrievals:
            retrievals.judge(rows, factories, total)
    yield from submit_rows(
        run,
        recalling.labeled if recalling else rows,
        total,
        factories,
        retrievals=retrievals,
        recalling=recalling,
    )


def _recalling(
    run: Run,
    rows: Rows,
    factories: Sequence[TaskFactory],
    *,
    as_lines: bool,
) -> Recalling | None:
    """Open the memo of the run's store; ``None`` if the rows have more to them than their lines."""
    factory, store = factories[0], run.cache.store
    if (
        not isinstance(rows, RowFile)
        or not isinstance(factory, LabelTasks)
        or isinstance(store, MemoryStore)
        or not rows.is_plain
        or len(factories) > 1
    ):
        return None
    from labeler.labeling.recalling import recall_rows  # noqa: PLC0415 - for stores on disk

    as_lines = as_lines and isinstance(run.listener, RunCounts | None)
    return recall_rows(rows, factory, store, run.closing, as_lines=as_lines)


def submit_rows(
    run: Run,
    rows: Rows | RecalledRows,
    expected: int,
    factories: Sequence[TaskFactory],
    *,
    retrievals: Retrievals | None = None,
    recalling: Recalling | None = None,
    with_unreadable: bool = True,
) -> Generator[AnyOutcome, None, None]:
    """Submit the tasks of several factories for each row after a first pass over the rows.

    Args:
        run: the run.
        rows: rows.
        expected: rows of the first pass.
        factories: build the tasks of each row.
        retrievals: the retrieval labels that labels rest on, judged before.
        recalling: returns the labels of known rows, and remembers those of others.
        with_unreadable: whether to yield failures of rows that no judge can be asked about.
    """
    submission = Submission(run, factories, retrievals, recalling, with_unreadable)
    submit, ahead = submission.submit, submission.ahead
    for outcome, origin, _ in run.in_order(rows, submit, expected=expected, ahead=ahead):
        if run.listener:
            run.listener.on_result(outcome, origin)
        yield outcome


def _portions(rows: Iterable[Row | KnownRow]) -> Iterator[list[Row | KnownRow]]:
    some, size, most = list[Row | KnownRow](), 0, _FIRST
    try:
        for row in rows:
            some.append(row)
            size += row.memory
            if len(some) >= most or size >= _LARGE:
                yield some
                some, size, most = [], 0, _TOGETHER
    except Exception:  # of the rows' source: those before it are labeled
        yield some
        raise
    yield some


@dataclass
class Submission:
    """Submits the tasks of rows."""

    run: Run
    factories: Sequence[TaskFactory]
    retrievals: Retrievals | None = None
    recalling: Recalling | None = None
    with_unreadable: bool = True
    _built: dict[tuple[int, int], tuple[JudgeSpec, Task]] = field(default_factory=dict, init=False)
    """Tasks of the next rows with the judge's settings, by identities of example and factory."""

    def ahead(self, rows: Iterable[Row | KnownRow]) -> Iterator[Row | KnownRow]:
        """Yield rows; some together are read, split and looked up before the first of them.

        Between two requests, each would take about twice as long.
        """
        for some in _portions(rows):
            self._built.clear()
            for row in some:
                if isinstance(row, Row) and isinstance(row.content, Example):
                    self._build(row.content)
            self.run.cache.look_ahead([task.key for _, task in self._built.values()])
            yield from some

    def _build(self, example: Example) -> None:
        for factory in self.factories:
            if isinstance(factory, LabelTasks):
                with suppress(Exception):  # raised again when the row is submitted
                    made = factory.judge.spec, factory.task(example)
                    self._built[id(example), id(factory)] = made

    def _task(self, factory: TaskFactory, example: Example) -> Task:
        """Return a row's task; a new one if the judge's settings changed since it was built."""
        spec, task = self._built.get((id(example), id(factory)), (None, None))
        return task if task and spec is factory.judge.spec else factory.task(example)

    def submit(self, row: Row | KnownRow) -> Iterator[Pending]:
        """Submit the tasks of a row, and yield each before the next one is submitted."""
        if isinstance(row, KnownRow):
            if self.recalling and row.label is not None:
                yield self.run.serve(self.factories[0].judge, self.recalling.outcome(row.label))
                return
            row = row.parse()
        if isinstance(row.content, LabelFailure):
            if self.with_unreadable:
                yield settled(row.content, "row")
            return
        for factory in self.factories:
            yield from self._submit(row, row.content, factory)

    def _submit(self, row: Row, example: Example, factory: TaskFactory) -> Iterator[Pending]:
        try:
            task = self._task(factory, example)
            pending = self._pending(factory, task)
        except BadRow as error:
            if self.with_unreadable or isinstance(error, MissingField):
                yield settled(bad_row(error, f"{row.where}: {error}", example), "row")
            return
        yield self._remembered(row, task, pending)

    def _remembered(self, row: Row, task: Task, pending: Pending) -> Pending:
        """Return an outcome that is remembered with the row's line once it is settled."""
        remember = self.recalling.remembering(row, task) if self.recalling else None
        if remember is None:
            return pending

        def settle() -> Settled:
            found = pending.settle()
            return found._replace(outcome=remember(found))

        return Pending(pending.futures, settle, pending.decided)

    def _pending(self, factory: TaskFactory, task: Task) -> Pending:
        """Submit a task, unless its retrieval label failed."""
        rested = self.retrievals.rest(factory, task) if self.retrievals else task
        if isinstance(rested, LabelFailure):
            return settled(rested, "store")
        if isinstance(factory, LabelTasks):
            factory.require_fit(rested, self.run.cache.is_known)
        return self.run.submit(factory.judge, rested)
