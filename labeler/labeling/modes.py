"""Output modes of judges that may choose theirs: that of stored labels comes first.

The labels themselves say in which mode they were made: those of the first rows of a run, else some
other labels of the same judge. Another mode would ask for all of them again. Each schema has a mode
of its own: a server may accept one for a small schema only. A schema without labels begins in the
mode of most labels, else as strict; the judge changes it if the server refuses it before the first
answer.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from labeler.data.rows import Row
from labeler.errors import BadRow, StoreError
from labeler.judges.judge import Judge
from labeler.judges.openai.request import MODES, mode_facts, mode_of
from labeler.judges.task import Task
from labeler.sentences.example import Example
from labeler.store.memory import LabelStore

if TYPE_CHECKING:
    from labeler.labeling.tasks import TaskFactory

ROWS, LABELS_READ = 20, 200
"""Rows of a run and labels of a store at most from which a mode is read."""


@runtime_checkable
class ChoosesMode(Protocol):
    """A judge with output modes."""

    auto: bool
    """True if the user named no mode."""

    def choose_modes(self, known: Mapping[str, str], others: str | None) -> None:
        """Ask in the modes of stored labels, by schema, and at first in another for others."""


def choose_mode(
    judge: Judge, tasks: Iterable[Task[Any]], store: LabelStore, is_known: Callable[[str], bool]
) -> None:
    """Have a judge ask in the output modes of stored labels, unless the user named one.

    Args:
        judge: any judge.
        tasks: first tasks of a run, in any mode.
        store: where labels are looked up.
        is_known: returns whether a key has a record or is in a batch.
    """
    if isinstance(judge, ChoosesMode) and judge.auto:
        asked = known_modes(tasks, is_known)
        known = {schema: mode for schema, mode in asked.items() if mode}
        if not asked or len(known) < len(asked):
            known = _modes_in_store(judge, store) | known
        judge.choose_modes(known, _most(known.values()))


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


def known_modes(
    tasks: Iterable[Task[Any]], is_known: Callable[[str], bool]
) -> dict[str, str | None]:
    """Return the first mode in which a task is known, by schema; ``None`` where none is."""
    found = dict[str, str | None]()
    for task in tasks:
        if found.get(task.schema.name) is None:
            modes = (mode for mode in MODES if is_known(task.in_mode(mode_facts(mode)).key))
            found[task.schema.name] = next(modes, None)
    return found


def _modes_in_store(judge: Judge, store: LabelStore) -> dict[str, str]:
    """Return the mode of most labels of a judge, by schema, of those that are read."""
    spec, modes = judge.spec, defaultdict[str, list[str]](list)
    with suppress(StoreError):  # a damaged label is reported when its row is needed
        for record in islice(store, LABELS_READ):
            by = record.signature
            if (by.judge, by.model) == (spec.judge, spec.model):
                modes[by.response_schema.name].append(mode_of(by))
    return {schema: mode for schema, found in modes.items() if (mode := _most(found))}


def _most(modes: Iterable[str]) -> str | None:
    """Return the most frequent mode; ``None`` without any."""
    counted = Counter(modes)
    return max(counted, key=counted.__getitem__, default=None)
