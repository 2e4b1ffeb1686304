"""Start runs from options: their judges, store, events and tasks; in a thread for event loops."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import sys
import warnings
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

from labeler.data.label_files import is_store, write_outcomes
from labeler.errors import UsageError
from labeler.extensions import load, offered
from labeler.judges.opening import open_judge, open_judges
from labeler.judges.options import JudgeOptions
from labeler.labeling.options import (
    LabelOptions,
    RunOptions,
    StoreLike,
    StoreOptions,
)
from labeler.labeling.pipeline import run_tasks
from labeler.labeling.progress import Progress, RunEvent, RunEvents
from labeler.labeling.run import Run
from labeler.labeling.tasks import label_tasks
from labeler.labels.record import Outcome
from labeler.sentences.display import is_notebook
from labeler.store import LabelStore, MemoryStore

if TYPE_CHECKING:
    from labeler.data.options import RowSource
    from labeler.judges.judge import Judge
    from labeler.labeling.progress import OnEvent

T = TypeVar("T")
_END = object()
_LOG = logging.getLogger("labeler")


def label_rows(
    data: RowSource,
    options: LabelOptions,
    judges: Sequence[Judge],
    events: RunEvents | None = None,
) -> Generator[Outcome, None, None]:
    """Label rows, and write the labels if ``output`` names a file; see :func:`iter_labels`."""
    labels = _labels(data, options, judges, events)
    yield from labels if options.output is None else write_outcomes(labels, options.output)


def _labels(
    data: RowSource,
    options: LabelOptions,
    judges: Sequence[Judge],
    events: RunEvents | None,
) -> Generator[Outcome, None, None]:
    opened = options.open(data)
    tasks = [
        label_tasks(judge, options, extra=extra)
        for judge in judges
        for extra in range(options.repeat)
    ]
    with begin(options, events) as run:
        if options.are_voting:
            from labeler.labeling.vote import vote_rows  # noqa: PLC0415 - optional

            yield from vote_rows(run, opened, tasks, options.votes)
        else:
            found = run_tasks(run, opened, tasks)
            yield from cast("Generator[Outcome, None, None]", found)  # what a task of labels makes


def judges_of(options: JudgeOptions, *, default: str | None = None) -> list[Judge]:
    """Open the judges that options name, by default the one that a task other than labels needs."""
    several = getattr(options, "judges", None)
    if several is not None:
        return open_judges(several, options)
    if default is not None and options.judge is None:
        options = replace(options, judge=default)
    return [open_judge(options)]


def _checked_store(options: StoreOptions) -> StoreLike:
    if not isinstance(options.store, str | Path | LabelStore):
        raise UsageError(f"store must be a folder or a label store, got {options.store!r:.40}")
    return options.store


def begin(options: RunOptions, events: RunEvents | None = None) -> Run:
    """Begin a run that closes the store at its end if it opens it here."""
    limits, events = options.limits(), events or run_events(options)
    store, opened = _checked_store(options), None
    if isinstance(store, str | Path):
        from labeler.store.disk import DiskStore  # noqa: PLC0415 - not for other stores

        store = opened = DiskStore(store, notice=events.notice if events.listeners else None)
    run = Run(store, options, limits=limits, events=events)
    if opened is not None:  # an empty store is false
        run.closing.callback(opened.close)
    return run


def run_events(options: RunOptions) -> RunEvents:
    """Return the events of a run: with progress where somebody can see it."""
    listeners = options.listeners()
    if options.progress and (sys.stderr.isatty() or is_notebook()):
        listeners.insert(0, Progress(options.DOING))
    return RunEvents([*listeners, *_declared_listeners()])


def _declared_listeners() -> Iterator[OnEvent]:
    """Yield the listeners of installed packages; one that fails costs no run."""
    for name in offered("listeners"):
        try:
            listener: OnEvent | None = load("listeners", name)()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - anyone may register a listener
            _LOG.warning("listener %s: %s", name, error)
        else:
            yield from [_harmless(name, listener)] if listener else ()


def _harmless(name: str, listener: OnEvent) -> OnEvent:
    """Return a listener that warns once if it fails, and hears no more: nobody asked for it."""
    heard = [listener]

    def hear(event: RunEvent) -> None:
        try:
            for one in heard:
                one(event)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - labels are paid for
            heard.clear()
            _LOG.warning("listener %s failed: %s: %s", name, type(error).__name__, error)

    return hear


@contextmanager
def stored_labels(options: StoreOptions) -> Iterator[LabelStore]:
    """Open a store for reading; a folder that does not exist is an empty store."""
    from labeler.store.disk import DiskStore  # noqa: PLC0415 - not for other stores

    store = _checked_store(options)
    if not isinstance(store, str | Path):
        yield store
        return
    with DiskStore(store, create=False) if is_store(Path(store)) else MemoryStore() as own:
        yield own


async def in_thread(generator: Generator[T, None, None]) -> AsyncGenerator[T, None]:
    """Yield the values of a generator that blocks.

    A task that is cancelled closes the generator first: a run then starts no more requests, and
    stores the answers of those in flight, because they are paid for.
    """
    loop, context = asyncio.get_running_loop(), contextvars.copy_context()
    thread = ThreadPoolExecutor(1, "labeler-steps")

    def call(function: Callable[..., object], *given: object) -> asyncio.Future[object]:
        return loop.run_in_executor(thread, context.run, function, *given)

    try:
        while (value := await call(next, generator, _END)) is not _END:
            yield value  # type: ignore[misc] # one of the generator's values
    finally:
        closing = call(generator.close)
        thread.shutdown(wait=False)  # would block the loop if the task is cancelled once more
        await asyncio.shield(closing)
        thread.shutdown()


def warn_of_loop(name: str, instead: str) -> None:
    """Warn if the caller blocks an event loop; cells of notebooks wait for each other anyway."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    if not is_notebook():
        warnings.warn(
            f"labeler.{name} blocks the running event loop until it returns: use {instead}",
            RuntimeWarning,
            stacklevel=4,
        )
