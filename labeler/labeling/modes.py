"""Output modes of judges that may choose theirs: that of stored labels comes first.

The labels themselves say in which mode they were made: those of the first rows of a run, else some
other labels of the same judge. Another mode would ask for all of them again. Without any, the judge
begins as strict and changes its mode if the server refuses it before the first label of the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from labeler.data.rows import Rows
from labeler.errors import BadRow, StoreError
from labeler.judges.judge import Judge
from labeler.judges.openai.request import MODES, mode_facts, mode_of
from labeler.judges.task import Task
from labeler.sentences.example import Example
from labeler.store.protocol import LabelStore

if TYPE_CHECKING:
    from labeler.labeling.tasks import TaskFactory

_ROWS, LABELS_READ = 20, 200
"""Rows of a run and labels of a store at most from which a mode or an edition is read."""


@runtime_checkable
class ChoosesMode(Protocol):
    """A judge with output modes."""

    auto: bool
    """True if the user named no mode."""

    def choose_mode(self, mode: str | None) -> None:
        """Ask in a mode from now on, whatever the server accepts; ``None``: see that."""


def choose_mode(
    judge: Judge, tasks: Iterable[Task[Any]], store: LabelStore, is_known: Callable[[str], bool]
) -> None:
    """Have a judge ask in the output mode of stored labels, unless the user named one.

    Args:
        judge: any judge.
        tasks: first tasks of a run, in any mode.
        store: where labels are looked up.
        is_known: returns whether a key has a record or is in a batch.
    """
    if isinstance(judge, ChoosesMode) and judge.auto:
        mode = known_mode(tasks, is_known) or _mode_in_store(judge, store)
        judge.choose_mode(mode)


def first_tasks(factory: TaskFactory, rows: Rows) -> Iterator[Task[Any]]:
    """Yield the tasks of the first rows and of their retrievals.

    For a long record, also yield its label's and a window's.
    """
    windows_of = getattr(factory, "windows_of", lambda *_: None)
    relevance = getattr(factory, "relevance", None)
    for row in islice(rows, _ROWS):
        if isinstance(row.content, Example):
            with suppress(BadRow):
                task = factory.task(row.content)
                yield task
                if relevance is not None:
                    yield relevance.task(task)
                windowed = windows_of(task, lambda _: False)
                if windowed is not None:
                    yield from (windowed.task, windowed.parts[0])


def known_mode(tasks: Iterable[Task[Any]], is_known: Callable[[str], bool]) -> str | None:
    """Return the first mode in which a task is known."""
    for task in tasks:
        for mode in MODES:
            if is_known(task.in_mode(mode_facts(mode)).key):
                return mode
    return None


def _mode_in_store(judge: Judge, store: LabelStore) -> str | None:
    """Return the mode of most labels of a judge, of those that are read; ``None`` without any."""
    spec, modes = judge.spec, list[str]()
    with suppress(StoreError):  # a damaged label is reported when its row is needed
        for record in islice(store, LABELS_READ):
            if (record.signature.judge, record.signature.model) == (spec.judge, spec.model):
                modes.append(mode_of(record.signature))
    return max(modes, key=modes.count, default=None)
