"""The requests of a part: written up to a size limit, and read again by label key."""

from __future__ import annotations

import json
import operator
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, Self

from pydantic import Field, ValidationError

from labeler.data.lines import BOM
from labeler.errors import LabelerError, StoreError, validation_faults
from labeler.judges.openai.attempts import AttemptLog
from labeler.judges.openai.request import request_body
from labeler.judges.openai.spec import spec_of
from labeler.judges.options import CapField
from labeler.judges.prompting import OWN, Prompt, load_prompt
from labeler.judges.task import Task, judged_task
from labeler.labels.profiles import family_of
from labeler.labels.record import RetrievalBasis, Usage
from labeler.labels.schemas import load_schema
from labeler.labels.signature import Signature
from labeler.plugins.batch.folder import BatchFolder, BatchInfo, BatchPart, write_durably
from labeler.sentences.characters import plain_json
from labeler.sentences.example import Frozen, KeyedExample

ENDPOINT: Literal["/v1/chat/completions"] = "/v1/chat/completions"


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
        # A file cannot hold lone surrogates.
        plain = answer and answer.encode("utf-8", "replace").decode()
        return cls(**kept, answer=plain, complaint=complaint)

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

    def line(self, cap_field: CapField) -> str:
        """Return the line of the uploaded file, named by the label's key.

        Its body equals the online request.

        Args:
            cap_field: name that the server has for the cap of an answer.
        """
        task, history = self.task, self.history
        messages: list[Mapping[str, Any]] = list(task.messages)
        if history.complaint is not None:
            messages.append({"role": "assistant", "content": history.answer or ""})
            messages.append({"role": "user", "content": history.complaint})
        spec = spec_of(task.signature.model, {**task.signature.sampling, "cap_field": cap_field})
        # A server that refuses the fields for caching would refuse every line of a file.
        body = request_body(spec, task, messages, history.cap, cached=False)
        line = {"custom_id": task.key, "method": "POST", "url": ENDPOINT, "body": body}
        text = json.dumps(line, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        # Some servers would take a line separator inside a text for the end of the line.
        return plain_json(text)


class SavedRequest(Frozen):
    """Everything needed to read an answer, and to ask again, without the input rows."""

    key: str
    example: KeyedExample
    signature: Signature
    history: History
    retrieval: RetrievalBasis | None = Field(default=None, exclude_if=operator.not_)
    """The retrieval label that a label rests on."""
    prompt: Prompt | None = Field(default=None, exclude_if=operator.not_)
    """The prompt, if it is the user's own."""

    @classmethod
    def of(cls, request: BatchRequest) -> Self:
        """Return what is saved of a request."""
        task = request.task
        return cls(
            key=task.key,
            example=task.example,
            signature=task.signature,
            history=request.history,
            retrieval=getattr(task.kind, "basis", None),
            prompt=task.prompt if family_of(task.prompt.name) == OWN else None,
        )

    def request(self) -> BatchRequest:
        """Rebuild the request.

        Raises:
            StoreError: the line was changed, or its prompt or schema has changed since.
        """
        signature = self.signature
        try:
            prompt = self.prompt or load_prompt(signature.prompt.name if signature.prompt else "")
            prompt = prompt.with_instructions(signature.instructions)
            schema = load_schema(signature.response_schema.name)
        except LabelerError as error:
            raise StoreError(f"request {self.key}: {error}") from error
        same = (prompt.artifact, schema.artifact) == (signature.prompt, signature.response_schema)
        task = judged_task(self.example, signature, prompt, schema, self.retrieval)
        if not same or task.key != self.key:
            raise StoreError(
                f"request {self.key} is not what its key says: it was damaged or edited, or "
                "written by a version of labeler with other prompts"
            )
        return BatchRequest(task, self.history)


class PartWriter:
    """Writes requests to as many parts as the limits require.

    Use as a context manager. The state of a part is written last, after its files are durable.

    Args:
        directory: the folder of the batch.
        info: facts of the batch.
        now: Unix time.
        parent: the part whose requests are sent again; ``None`` for a new batch.
    """

    def __init__(
        self, directory: Path, info: BatchInfo, *, now: float, parent: BatchPart | None = None
    ) -> None:
        self.parts: list[BatchPart] = []
        self._directory, self._info, self._limits = directory, info, info.limits
        self._prefix, self._width = (f"{parent.name}-", 2) if parent else ("", 4)
        self._round, self._now = parent.round + 1 if parent else 1, now
        self._open = ExitStack()
        self._files: list[IO[bytes]] = []
        self._lines = self._size = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with self._open:
            if kind is None:
                self._finish()

    def add(self, request: BatchRequest) -> bool:
        """Write a request; ``False`` if it alone exceeds the size of a file."""
        line = request.line(self._info.cap_field).encode() + b"\n"
        if len(line) > self._limits.size:
            return False
        if self._lines == self._limits.lines or self._size + len(line) > self._limits.size:
            self._finish()
        if not self._files:
            for kind in ("keys", "asked.jsonl", "lines.jsonl"):
                path = self._directory / f"part-{self._name}.{kind}"
                self._files.append(self._open.enter_context(path.open("wb")))
        saved = SavedRequest.of(request).model_dump_json().encode()
        written = (request.task.key.encode() + b"\n", saved + b"\n", line)
        for file, content in zip(self._files, written, strict=True):
            file.write(content)
        self._lines, self._size = self._lines + 1, self._size + len(line)
        return True

    @property
    def _name(self) -> str:
        return f"{self._prefix}{len(self.parts) + 1:0{self._width}d}"

    def _finish(self) -> None:
        """Make the files of the present part durable, then its state."""
        if not self._files:
            return
        for file in self._files:
            file.flush()
            os.fsync(file.fileno())
        self._open.close()
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
        self._files, self._lines, self._size = [], 0, 0


class RequestFile(Mapping[str, BatchRequest]):
    """The saved requests of a part by key, each read when it is needed.

    Use as a context manager.

    Raises:
        StoreError: the file does not hold the requests of the part, or a line is damaged.
    """

    def __init__(self, folder: BatchFolder, part: BatchPart) -> None:
        self._path = folder.file(part, "asked.jsonl")
        keys = folder.keys(part)
        try:
            self._file = self._path.open("rb")
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
        return iter(self._offsets)

    def __len__(self) -> int:
        return len(self._offsets)

    def __contains__(self, key: object) -> bool:
        return key in self._offsets

    def __getitem__(self, key: str) -> BatchRequest:
        self._file.seek(self._offsets[key])
        try:
            saved = SavedRequest.model_validate_json(self._file.readline().removeprefix(BOM))
        except ValidationError as error:
            fault = validation_faults(error)[0]["msg"]
            raise StoreError(f"{self._path}: request {key}: {fault}") from error
        if saved.key != key:
            raise StoreError(f"{self._path}: request {key} stands in another's place")
        return saved.request()


def _line_offsets(file: IO[bytes]) -> Iterator[int]:
    start = 0
    for line in file:
        yield start
        start += len(line)
