"""Witnesses: labels of the embedded judge over the sentences of stored labels, kept next to them.

A witness costs no request. Its key names the sentences, so that the witness of other sentences is
never found. A file that cannot be read, holds anything but sound labels, or says something else
than the judge says now, is made again.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Collection, Coroutine
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self, TypeVar

import msgspec

from labeler.data.label_files import is_store, is_table, read_outcomes, to_line
from labeler.data.lines import STDIO, is_remote, open_bytes, replacing
from labeler.errors import LabelerError
from labeler.judges.embedded.judge import EmbeddedJudge
from labeler.judges.prompting import load_prompt
from labeler.judges.task import Task
from labeler.labeling.failures import record_or_failure
from labeler.labeling.tasks import LabelTasks
from labeler.labels.profiles import DEFAULT_PROFILE, PROFILES
from labeler.labels.record import LabelRecord
from labeler.labels.schemas import load_schema
from labeler.labels.witness import Witness
from labeler.sentences.splitting import GIVEN

T = TypeVar("T")

MANY = 10_000
"""Missing witnesses above which the time that they take is reported."""
_TIMED = 50
"""Witnesses that are timed for it."""
_SUFFIX, _IN_STORE = ".witness", "witness.jsonl"
"""Not ``.jsonl`` next to a file, so that patterns for label files leave it out."""


def witness_path(labels: str) -> Path | None:
    """Return where the witnesses of labels are kept; ``None`` if nowhere.

    ``labels.jsonl`` → ``labels.witness``; for a store, the file ``witness.jsonl`` in it.
    """
    path = Path(labels)
    if labels == STDIO or is_remote(labels):
        return None
    if is_store(path):
        return path / _IN_STORE
    name = path.name.removesuffix(".gz").removesuffix(".jsonl").removesuffix(".parquet")
    return path.with_name(name + _SUFFIX) if path.is_file() else None


def drop_witnesses(store: Path) -> None:
    """Delete the witnesses of a store, which hold texts of its labels."""
    (store / _IN_STORE).unlink(missing_ok=True)


class Witnesses:
    """Returns the witness of each label, from a file or made now. Use as a context manager.

    New ones are added to the file at the end; a folder that cannot be written keeps none.

    Args:
        labels: label file, store folder, or ``-``.
        notice: receives a message once it is known that very many witnesses are missing.
    """

    def __init__(self, labels: str, notice: Callable[[str], object] = lambda _: None) -> None:
        self._labels, self._notice = labels, notice
        self._path = witness_path(labels)
        self._judge = EmbeddedJudge()
        prompt, profile = load_prompt(f"{DEFAULT_PROFILE}/v1"), PROFILES[DEFAULT_PROFILE]
        schema = load_schema(profile.schema_of(prompt.name))
        self._tasks = LabelTasks(judge=self._judge, splitter=GIVEN, prompt=prompt, schema=schema)
        self._stored: dict[str, Witness] = {}
        self._fits: bool | None = None
        """Whether the judge says today what the file says; ``None`` before the first look-up."""
        self._used: set[str] = set()
        """Keys of stored witnesses in use."""
        self._made: dict[str, Witness] = {}
        self._seconds = 0.0
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        self._opened = ExitStack()
        self._new: IO[bytes] | None = None
        if self._path is not None:
            with suppress(OSError):
                new = tempfile.TemporaryFile(dir=self._path.parent)
                self._new = self._opened.enter_context(new)
            self._stored = _read(self._path)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._opened, suppress(OSError, msgspec.DecodeError):
            if self._made and self._path and self._new:
                # An audit that stopped early has not looked up all that is in use.
                kept = self._used if kind is None else self._stored.keys()
                _write(self._path, kept, self._new, mode=Path(self._labels).stat().st_mode)

    def __call__(self, record: LabelRecord) -> Witness | None:
        """Return the witness of a label; ``None`` for a response without sentences."""
        example = record.example.model_copy(update={"splitter": str(GIVEN)})
        task = self._tasks.keyed_task(example)
        with self._lock:
            return self._of(task)

    def _of(self, task: Task) -> Witness | None:
        if task.key in self._stored and self._file_fits(task):
            self._used.add(task.key)
            return self._stored[task.key]
        return self._made.get(task.key) or self._make(task)

    def _file_fits(self, task: Task) -> bool:
        """Return whether the file says what the judge says, by the first witness found in it."""
        if self._fits is None:
            outcome = record_or_failure(task, _result(self._judge.label(task)))
            now = Witness.of(outcome) if isinstance(outcome, LabelRecord) else None
            self._fits = self._stored[task.key] == now
            if not self._fits:
                self._stored = {}
        return self._fits

    def _make(self, task: Task) -> Witness | None:
        started = time.perf_counter()
        outcome = record_or_failure(task, _result(self._judge.label(task)))
        found = Witness.of(outcome) if isinstance(outcome, LabelRecord) else None
        if found is not None:
            if self._new:
                self._new.write(to_line(outcome).encode() + b"\n")
            self._made[task.key] = found
            self._seconds += time.perf_counter() - started
            if len(self._made) == _TIMED:
                self._report_time()
        return found

    def _report_time(self) -> None:
        missing = _count(self._labels) - len(self._stored)
        if missing > MANY:
            minutes = max(0.1, missing * self._seconds / _TIMED / 60)
            self._notice(
                f"up to {missing:,} witnesses are missing; they take about {minutes:.1f} minutes, "
                "once (--no-witness leaves them out)"
            )


def _read(path: Path) -> dict[str, Witness]:
    """Read stored witnesses; a file that is not sound has none."""
    found = {}
    if path.is_file():
        try:
            for outcome in read_outcomes(path):
                if not isinstance(outcome, LabelRecord) or not (known := Witness.of(outcome)):
                    return {}
                found[outcome.key] = known
        except (LabelerError, OSError):
            return {}
    return found


class _Line(msgspec.Struct):
    key: str


_KEY = msgspec.json.Decoder(_Line)


def _write(path: Path, kept: Collection[str], new: IO[bytes], *, mode: int) -> None:
    """Write the kept lines of a file, then new ones, for readers of the labels only."""
    with replacing(path) as partial, partial.open("wb") as file:
        partial.chmod(mode & 0o666)
        if kept:
            with path.open("rb") as old:
                file.writelines(one for one in old if one.strip() and _KEY.decode(one).key in kept)
        new.seek(0)
        file.writelines(new)


def _count(labels: str) -> int:
    """Return the number of stored outcomes, at least approximately; 0 if unknown."""
    path = Path(labels)
    if is_store(path):
        from labeler.store.disk import DiskStore  # noqa: PLC0415 - not needed for files

        with DiskStore(path, create=False) as store:
            return len(store)
    # What a second reader takes from a pipe, the first one misses.
    if is_table(labels) or not path.is_file():
        return 0
    with open_bytes(labels) as file:
        return sum(1 for _ in file)


def _result(coroutine: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine that never waits."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    raise TypeError("this judge must not wait")
