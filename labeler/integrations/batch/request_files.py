"""The files of a part: requests written up to a size limit, and read again by label key."""

from __future__ import annotations

import operator
import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self

from pydantic import Field, ValidationError

from labeler.data.lines import BOM
from labeler.errors import LabelerError, StoreError, validation_faults
from labeler.integrations.batch.folder import BatchFolder, BatchPart, write_durably
from labeler.judges.openai.attempts import AttemptLog
from labeler.judges.options import CapField
from labeler.judges.prompting import load_prompt
from labeler.judges.task import Task, judged_task
from labeler.labels.record import RetrievalBasis, Usage
from labeler.labels.schemas import load_schema
from labeler.labels.signature import Signature
from labeler.sentences.example import Frozen, KeyedExample

MOST_LINES = 50_000
"""OpenAI's limit for one file."""
MOST_BYTES = 190_000_000
"""Slightly less than OpenAI's limit of 200 MB for one file."""


@dataclass(frozen=True)
class FileLimits:
    """Limits of one file of requests."""

    lines: int = MOST_LINES
    size: int = MOST_BYTES
    """In bytes."""


class History(Frozen):
    """The attempt log of a record's earlier rounds, and the re-ask of the next one."""

    attempts: int = 0
    answers: int = 0
    readable: int = 0
    broken: dict[str, int] = Field(default_factory=dict)
    usage: Usage | None = None
    cap: int | None = None
    cap_raised: bool = False
    answer: str | None = None
    """The answer that is sent back for correction."""
    complaint: str | None = None
    """The message that names its violations."""

    @classmethod
    def of(cls, log: AttemptLog, *, answer: str | None, complaint: str | None) -> Self:
        """Return the history that a log leaves to the next round."""
        kept = {name: getattr(log, name) for name in _LOGGED}
        return cls(**kept, answer=answer, complaint=complaint)

    def log(self, task: Task[Any]) -> AttemptLog:
        """Return the log that goes on from here."""
        kept = {name: getattr(self, name) for name in _LOGGED}
        return AttemptLog(task, **kept | {"broken": Counter(self.broken)})


_LOGGED = frozenset(History.model_fields) - {"answer", "complaint"}


@dataclass(frozen=True)
class BatchRequest:
    """One line of a batch: a task and its history."""

    task: Task[Any]
    history: History
    reasks: int = 1
    """How often an answer may be sent back."""
    cap_field: CapField = "max_completion_tokens"


class SavedRequest(Frozen):
    """Everything needed to read an answer, and to ask again, without the input rows."""

    key: str
    example: KeyedExample
    signature: Signature
    history: History
    retrieval: RetrievalBasis | None = Field(default=None, exclude_if=operator.not_)
    """The retrieval label that a label rests on."""

    def task(self) -> Task[Any]:
        """Rebuild the task.

        Raises:
            StoreError: the line was changed, or its prompt or schema has changed since.
        """
        try:
            prompt = load_prompt(self.signature.prompt.name if self.signature.prompt else "")
            schema = load_schema(self.signature.response_schema.name)
        except LabelerError as error:
            raise StoreError(f"request {self.key}: {error}") from error
        same = (prompt.artifact, schema.artifact) == (
            self.signature.prompt,
            self.signature.response_schema,
        )
        task = judged_task(self.example, self.signature, prompt, schema, self.retrieval)
        if not same or task.key != self.key:
            raise StoreError(
                f"request {self.key} is not what its key says: it was damaged or edited, or "
                "written by a version of labeler with other prompts"
            )
        return task


class PartWriter:
    """Writes requests to as many parts as the limits require.

    Use as a context manager. The state of a part is written last, after its files are durable.

    Args:
        directory: the folder of the batch.
        line: makes the line that is uploaded.
        limits: of one file.
        now: Unix time.
        parent: the part whose requests are sent again; empty for a new batch.
        round_: how often the requests will have been sent.
    """

    def __init__(
        self,
        directory: Path,
        line: Callable[[BatchRequest], str],
        *,
        limits: FileLimits,
        now: float,
        parent: str = "",
        round_: int = 1,
    ) -> None:
        self.parts: list[BatchPart] = []
        self._directory, self._line, self._limits = directory, line, limits
        self._now, self._parent, self._round = now, parent, round_
        self._files: list[IO[bytes]] = []
        self._name, self._lines, self._size = "", 0, 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._finish()
        for file in self._files:
            file.close()

    def add(self, request: BatchRequest) -> bool:
        """Write a request; ``False`` if it alone exceeds the size of a file."""
        line = self._line(request).encode() + b"\n"
        if len(line) > self._limits.size:
            return False
        if self._lines == self._limits.lines or self._size + len(line) > self._limits.size:
            self._finish()
        if not self._files:
            self._open()
        task = request.task
        saved = SavedRequest(
            key=task.key,
            example=task.example,
            signature=task.signature,
            history=request.history,
            retrieval=getattr(task.kind, "basis", None),
        )
        written = (task.key.encode() + b"\n", saved.model_dump_json().encode() + b"\n", line)
        for file, content in zip(self._files, written, strict=True):
            file.write(content)
        self._lines, self._size = self._lines + 1, self._size + len(line)
        return True

    def _open(self) -> None:
        """Open the files of the next part."""
        number = len(self.parts) + 1
        self._name = f"{self._parent}-{number:02d}" if self._parent else f"{number:04d}"
        for kind in ("keys", "asked.jsonl", "lines.jsonl"):
            self._files.append((self._directory / f"part-{self._name}.{kind}").open("wb"))

    def _finish(self) -> None:
        """Make the files of the present part durable, then its state."""
        if not self._files:
            return
        while self._files:
            with self._files.pop() as file:
                file.flush()
                os.fsync(file.fileno())
        part = BatchPart(
            name=self._name,
            round=self._round,
            lines=self._lines,
            size=self._size,
            prepared=self._now,
        )
        state = self._directory / f"part-{part.name}.json"
        write_durably(state, part.model_dump_json().encode())
        self.parts.append(part)
        self._lines = self._size = 0


class RequestFile:
    """The saved requests of a part, read one by one on demand.

    Use as a context manager.

    Raises:
        StoreError: the file does not hold the requests of the part.
    """

    def __init__(self, folder: BatchFolder, part: BatchPart) -> None:
        self._path, self._info = folder.file(part.name, "asked.jsonl"), folder.info
        keys = folder.keys(part)
        try:
            self._file: IO[bytes] = self._path.open("rb")
            self._offsets = dict(zip(keys, _line_offsets(self._file), strict=False))
        except OSError as error:
            raise StoreError(f"{self._path}: cannot be read: {error}") from error
        if len(self._offsets) != part.lines:
            self._file.close()
            raise StoreError(
                f"{self._path}: holds fewer requests than the {part.lines} of its part"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def __iter__(self) -> Iterator[str]:
        """Yield every key, in the order of the requests."""
        return iter(self._offsets)

    def __contains__(self, key: object) -> bool:
        return key in self._offsets

    def __getitem__(self, key: str) -> BatchRequest:
        """Return the request of a key.

        Raises:
            StoreError: its line is damaged.
        """
        self._file.seek(self._offsets[key])
        try:
            line = self._file.readline().removeprefix(BOM)
            saved = SavedRequest.model_validate_json(line)
        except ValidationError as error:
            fault = validation_faults(error)[0]["msg"]
            raise StoreError(f"{self._path}: request {key}: {fault}") from error
        if saved.key != key:
            raise StoreError(f"{self._path}: request {key} stands in another's place")
        info = self._info
        return BatchRequest(saved.task(), saved.history, info.reasks, info.cap_field)


def _line_offsets(file: IO[bytes]) -> Iterator[int]:
    start = 0
    for line in file:
        yield start
        start += len(line)
