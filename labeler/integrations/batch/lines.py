"""The lines of a part: written until a limit is reached, and found again by their keys."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Self

from pydantic import ValidationError

from labeler.errors import LabelerError, StoreError
from labeler.integrations.batch.folder import BatchFolder, Part, write_durably
from labeler.integrations.batch.service import Asked, History
from labeler.judges.prompting import load_prompt
from labeler.judges.task import Task, label_task
from labeler.labels.record import label_key
from labeler.labels.schemas import load_schema
from labeler.labels.signature import Signature
from labeler.sentences.example import Frozen, KeyedExample

MOST_LINES = 50_000
"""What OpenAI takes in one file."""
MOST_BYTES = 190_000_000
"""A little less than the 200 MB that OpenAI takes in one file."""


@dataclass(frozen=True)
class FileLimits:
    """How large one part may be."""

    lines: int = MOST_LINES
    size: int = MOST_BYTES
    """In bytes."""


class AskedLine(Frozen):
    """All that is needed to read an answer, and to ask again, without the input rows."""

    key: str
    example: KeyedExample
    signature: Signature
    history: History

    def request(self) -> Task:
        """The request as it was.

        Raises:
            StoreError: the line was changed, or its prompt or schema is another by now.
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
        if not same or label_key(self.example, self.signature) != self.key:
            raise StoreError(
                f"request {self.key} is not what its key says: it was damaged or edited, or "
                "written by a version of labeler with other prompts"
            )
        return label_task(self.key, self.example, self.signature, prompt, schema)


class PartWriter:
    """Writes requests into as many parts as the limits ask for.

    Use as a context manager; a part's state is written last, when all else of it is durable.

    Args:
        directory: where the parts are put.
        parent: the part that is asked again for, empty for none.
        line: makes the line that is handed in.
        limits: when the next part begins.
        now: Unix time.
        round_: how often the requests are asked by now.
    """

    def __init__(
        self,
        directory: Path,
        line: Callable[[Asked], str],
        *,
        limits: FileLimits,
        now: float,
        parent: str = "",
        round_: int = 1,
    ) -> None:
        self.parts: list[Part] = []
        self._directory, self._line, self._limits = directory, line, limits
        self._now, self._parent, self._round = now, parent, round_
        self._open: _OpenPart | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._open is None:
            return
        if kind is None:
            self._finish(self._open)
        else:
            self._open.close()

    def add(self, asked: Asked) -> bool:
        """Write one request; ``False`` if it alone is more than a part may hold."""
        line = self._line(asked).encode() + b"\n"
        if len(line) > self._limits.size:
            return False
        if self._open is not None and not self._open.has_room(line, self._limits):
            self._finish(self._open)
            self._open = None
        if self._open is None:
            self._open = _OpenPart(self._directory, self._next_name())
        self._open.add(asked, line)
        return True

    def _next_name(self) -> str:
        number = len(self.parts) + 1
        return f"{self._parent}-{number:02d}" if self._parent else f"{number:04d}"

    def _finish(self, writing: _OpenPart) -> None:
        writing.close()
        part = Part(
            name=writing.name,
            round=self._round,
            lines=writing.lines,
            size=writing.size,
            prepared=self._now,
        )
        state = self._directory / f"part-{part.name}.json"
        write_durably(state, part.model_dump_json().encode())
        self.parts.append(part)


class _OpenPart:
    """The files of the part that is being written."""

    def __init__(self, directory: Path, name: str) -> None:
        self.name, self.lines, self.size = name, 0, 0
        self._files = ExitStack()
        self._keys, self._asked, self._requests = (
            self._files.enter_context((directory / f"part-{name}.{kind}").open("wb"))
            for kind in ("keys", "asked.jsonl", "lines.jsonl")
        )

    def has_room(self, line: bytes, limits: FileLimits) -> bool:
        """Whether another line fits."""
        return self.lines < limits.lines and self.size + len(line) <= limits.size

    def add(self, asked: Asked, line: bytes) -> None:
        """Write one request into all files."""
        request = asked.request
        known = AskedLine(
            key=request.key,
            example=request.example,
            signature=request.signature,
            history=asked.history,
        )
        self._keys.write(request.key.encode() + b"\n")
        self._asked.write(known.model_dump_json().encode() + b"\n")
        self._requests.write(line)
        self.lines, self.size = self.lines + 1, self.size + len(line)

    def close(self) -> None:
        """Make all of it durable."""
        with self._files:
            for file in (self._keys, self._asked, self._requests):
                file.flush()
                os.fsync(file.fileno())


class AskedFile:
    """The requests of a part, each read when it is wanted.

    Use as a context manager.

    Raises:
        StoreError: it does not hold what the part says.
    """

    def __init__(self, folder: BatchFolder, part: Part) -> None:
        self._path, self._reasks = folder.file(part.name, "asked.jsonl"), folder.facts.reasks
        keys = folder.keys(part)
        try:
            self._file: IO[bytes] = self._path.open("rb")
            self._places = dict(zip(keys, _starts(self._file), strict=False))
        except OSError as error:
            raise StoreError(f"{self._path}: cannot be read: {error}") from error
        if len(self._places) != part.lines:
            self._file.close()
            raise StoreError(
                f"{self._path}: holds fewer requests than the {part.lines} of its part"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def __iter__(self) -> Iterator[str]:
        """Every key, in the order of the requests."""
        return iter(self._places)

    def __contains__(self, key: object) -> bool:
        return key in self._places

    def __getitem__(self, key: str) -> Asked:
        """The request of a key.

        Raises:
            StoreError: its line is damaged.
        """
        self._file.seek(self._places[key])
        try:
            line = AskedLine.model_validate_json(self._file.readline())
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False, include_context=False)[0]
            raise StoreError(f"{self._path}: request {key}: {first['msg']}") from error
        if line.key != key:
            raise StoreError(f"{self._path}: request {key} stands in another's place")
        return Asked(line.request(), line.history, self._reasks)


def _starts(file: IO[bytes]) -> Iterator[int]:
    """Where each line begins."""
    start = 0
    for line in file:
        yield start
        start += len(line)
