"""Selects the tasks that a run would send now, and counts the others by reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from labeler.data.rows import Row
from labeler.errors import BadRow
from labeler.judges.task import Task
from labeler.labeling.failures import bad_row
from labeler.labeling.tasks import LabelTasks, PromptTasks, resting
from labeler.labels.record import LabelFailure
from labeler.sentences.example import Example
from labeler.store.memory import LabelStore

ALIKE, STORED, FAILED_BEFORE = "alike", "stored", "failed before"


class Selection:
    """Selects tasks by what a store holds; each row keeps 32 bytes for its key.

    Args:
        how: builds the tasks.
        store: where labels and failures are looked up.
        retry_failed: whether stored failures are asked about again.
    """

    def __init__(self, how: LabelTasks, store: LabelStore, *, retry_failed: bool) -> None:
        self.how, self.store, self._retry_failed = how, store, retry_failed
        self.rows = 0
        """Rows so far."""
        self.left_out: Counter[str] = Counter()
        """Tasks that cost nothing now, by reason."""
        self.unusable: Counter[str] = Counter()
        """Rows that cannot be judged, by reason."""
        self._seen: set[bytes] = set()

    def tasks(self, rows: Iterable[Row]) -> Iterator[Task[Any]]:
        """Yield each task that has to be asked, once."""
        for row in rows:
            self.rows += 1
            if isinstance(row.content, LabelFailure):
                self.reject(row.content)
                continue
            try:
                yield from self._of_row(row.content)
            except BadRow as error:
                self.reject(bad_row(error, f"{row.where}: {error}", row.content))

    def reject(self, failure: LabelFailure) -> None:
        """Count a row that cannot be judged."""
        self.unusable[failure.reason] += 1

    def is_known(self, key: str) -> bool:
        """Return whether a key has a record."""
        return self.store.get(key) is not None

    def defers(self) -> bool:
        """Return whether a row waits until the retrieval label that it rests on is stored."""
        return False

    def why_not(self, key: str) -> str:
        """Return why a new task is not asked; "" if it is."""
        if self.store.get(key) is not None:
            return STORED
        if not self._retry_failed and self.store.failure(key) is not None:
            return FAILED_BEFORE
        return ""

    def _of_row(self, example: Example) -> Iterator[Task[Any]]:
        task, relevance = self.how.task(example), self.how.relevance
        if relevance is not None:
            retrieval = relevance.task(task)
            found = relevance.stored(retrieval, self.store)
            if found is not None:
                task = resting(task, found)
            else:
                relevance.require_fit(retrieval, self.is_known)
                if Selection.why_not(self, retrieval.key) == FAILED_BEFORE:
                    self.left_out[FAILED_BEFORE] += 1  # its response would not be asked about
                    return
                if not self._has_seen(retrieval.key):
                    yield from self._new(relevance, retrieval)
                if self.defers():
                    return
        yield from self._new(self.how, task)

    def _new(self, how: PromptTasks, task: Task[Any]) -> Iterator[Task[Any]]:
        """Yield a task if it has to be asked, else count it."""
        how.require_fit(task, self.is_known)
        why = ALIKE if self._has_seen(task.key) else self.why_not(task.key)
        self._seen.add(bytes.fromhex(task.key))
        if why:
            self.left_out[why] += 1
        else:
            yield task

    def _has_seen(self, key: str) -> bool:
        return bytes.fromhex(key) in self._seen
