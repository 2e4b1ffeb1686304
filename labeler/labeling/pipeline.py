"""Labels rows: every row is split, looked up, judged once, checked, and saved.

A row that cannot be labeled becomes a failure in the same stream and never ends the run.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from statistics import mode
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from labeler.data.rows import Row, Rows, RowStream
from labeler.errors import BadRow, StoreError, UsageError
from labeler.judges.judge import Judge
from labeler.judges.task import MODES, Task, mode_of
from labeler.labeling.cache import LabelCache, Settled
from labeler.labeling.failures import bad_row
from labeler.labeling.run import Run
from labeler.labeling.tasks import LabelTasks, TaskFactory
from labeler.labels.record import AnyOutcome, LabelFailure
from labeler.sentences.example import Example
from labeler.store import LabelStore

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

    Each row has ``outcomes``, by default one for each factory.
    """
    stream = run.read(rows, factories, outcomes=outcomes)
    for factory in factories:
        first = () if run.cache.is_new else first_tasks(factory, stream.first)
        choose_mode(factory.judge, first, run.cache)
    return stream


def submit_rows(
    run: Run, rows: Iterable[Row], factories: Sequence[TaskFactory]
) -> Generator[AnyOutcome, None, None]:
    """Submit the tasks of several factories for each row of a stream, with ids of their own."""
    relevance = blind_relevance(run, factories)
    judged = partial(judge_row, run, factories, relevance)
    count = 0
    for found in run.in_order(rows, judged, len(factories)):
        count += 1
        for outcome, origin in found:
            run.events.result(outcome, origin)
            yield outcome
    if relevance:
        relevance.report(count)


def require_different(rows: Iterable[Row], factories: Sequence[TaskFactory]) -> None:
    """Check, before any spend, that factories differ about the first row that has tasks.

    Raises:
        UsageError: two of them would ask the same judge the same, as a judge that is named twice.
    """
    known = set[str]()
    for example in (row.content for row in rows if isinstance(row.content, Example)):
        for factory in factories:
            with suppress(BadRow):  # the row may lack what some of them need
                task = factory.task(example)
                if task.key in known:
                    raise UsageError(
                        f"judge {task.signature.judge}/{task.signature.model} is named twice, and "
                        "would give one answer twice; have it answer several times by repeating it "
                        "(repeat)"
                    )
                known.add(task.key)
        if known:
            return


def blind_relevance(run: Run, factories: Sequence[TaskFactory]) -> BlindRelevance | None:
    """Return the retrieval labels that labels rest on; ``None`` if they rest on none."""
    if not any(isinstance(one, LabelTasks) and one.relevance for one in factories):
        return None
    from labeler.labeling.blind import BlindRelevance  # noqa: PLC0415 - optional

    return BlindRelevance(run)


async def judge_row(
    run: Run,
    factories: Sequence[TaskFactory],
    relevance: BlindRelevance | None,
    row: Row,
    *,
    together: bool = False,
) -> list[Settled]:
    """Judge the tasks of a row, within a job; none before all of them are prepared.

    Args:
        run: the run.
        factories: build the tasks.
        relevance: the retrieval labels that labels rest on.
        row: the row.
        together: True if the row has one outcome if one of its tasks cannot be asked.
    """
    if isinstance(row.content, LabelFailure):
        return [Settled(row.content, "row")]
    prepared: list[Task[Any] | Settled] = []
    one: Task[Any] | Settled
    for factory in factories:
        try:
            one = task = await build_task(factory, row)
            if relevance and isinstance(factory, LabelTasks):
                one = await relevance.rest(factory, task)
            if isinstance(factory, LabelTasks) and isinstance(one, Task):
                factory.require_fit(one, run.cache.is_known)
        except BadRow as error:
            one = Settled(bad_row(error, f"{row.where}: {error}", row.content), "row")
            if together:
                return [one]
        prepared.append(one)
    pairs = zip(factories, prepared, strict=True)
    asked = [(factory.judge, task) for factory, task in pairs if isinstance(task, Task)]
    settled = iter(await run.settled(asked))
    return [one if isinstance(one, Settled) else next(settled) for one in prepared]


_LONG = 256 << 10
"""Bytes of a row that is split in a thread of its own, for the sake of the requests in flight."""


async def build_task(factory: TaskFactory, row: Row) -> Task[Any]:
    """Build a row's task on the event loop, or in a thread if it is very long.

    Raises:
        BadRow: nothing can be asked about it.
    """
    assert isinstance(row.content, Example)  # noqa: S101 - a failure has no task
    if row.memory < _LONG:
        return factory.task(row.content)
    return await asyncio.to_thread(factory.task, row.content)


# Judges that may choose their output mode begin in that of stored labels, because another mode
# would ask for all of them again. The labels of the first rows of a run show it, else some other
# labels of the same judge. Each schema has a mode of its own: a server may accept one for a small
# schema only. A schema without labels begins in the mode of most labels, else as strict; the judge
# changes it if the server refuses it before the first answer.
ROWS, LABELS_READ = 20, 200
"""Rows of a run and labels of a store at most from which a mode is read."""


@runtime_checkable
class ChoosesMode(Protocol):
    """A judge with output modes."""

    auto: bool
    """True if the user named no mode."""

    def choose_modes(self, known: Mapping[str, str], others: str | None) -> None:
        """Ask in the modes of stored labels, by schema, and at first in another for others."""


def choose_mode(judge: Judge, tasks: Iterable[Task[Any]], cache: LabelCache) -> None:
    """Have a judge ask in the output modes of stored labels, unless it has none or a named one.

    The tasks are the first ones of a run, in any mode.
    """
    if not isinstance(judge, ChoosesMode) or not judge.auto:
        return
    known, schemas = dict[str, str](), set[str]()
    for task in tasks:
        schema = task.schema.name
        schemas.add(schema)
        for one in MODES if schema not in known else ():
            if cache.is_known(task.in_mode(one).key):
                known[schema] = one
                break
    if not schemas or schemas - known.keys():
        known = _modes_in_store(judge, cache.store) | known
    judge.choose_modes(known, mode(known.values()) if known else None)


def first_tasks(factory: TaskFactory, rows: Iterable[Row]) -> Iterator[Task[Any]]:
    """Yield the tasks of the first rows and of their retrievals."""
    relevance = getattr(factory, "relevance", None)
    for row in islice(rows, ROWS):
        if isinstance(row.content, Example):
            with suppress(BadRow):
                task = factory.task(row.content)
                yield task
                if relevance is not None:
                    yield relevance.task(task)


def _modes_in_store(judge: Judge, store: LabelStore) -> dict[str, str]:
    """Return the mode of most labels of a judge, by schema, of those that are read."""
    spec, modes = judge.spec, defaultdict[str, list[str]](list)
    with suppress(StoreError):  # a damaged label is reported when its row is needed
        for record in islice(store, LABELS_READ):
            by = record.signature
            if (by.judge, by.model) == (spec.judge, spec.model):
                modes[by.response_schema.name].append(mode_of(by))
    return {schema: mode(found) for schema, found in modes.items()}
