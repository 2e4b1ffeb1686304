"""The seam to a provider's batch service: what it is asked to do, and what an answer of it means.

A batch is a file of requests that the provider answers within a day, for less. Nothing here knows
a client library; :class:`labeler.integrations.batch.openai.OpenAIBatches` is the one
implementation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from pydantic import Field

from labeler.judges.task import JudgeReply, Task
from labeler.labels.contract import Violation
from labeler.labels.record import Usage
from labeler.sentences.example import Frozen

RemoteStatus = Literal[
    "validating",
    "in_progress",
    "finalizing",
    "cancelling",
    "completed",
    "expired",
    "cancelled",
    "failed",
    "unknown",
]
"""What a batch is at; ``unknown`` stands for a word that we do not know."""

OVER: frozenset[RemoteStatus] = frozenset({"completed", "expired", "cancelled", "failed"})
"""Nothing more will come."""


class RemoteBatch(Frozen):
    """A batch as its provider describes it."""

    id: str
    status: RemoteStatus
    total: int = 0
    """Requests in it; 0 while they are not counted yet."""
    completed: int = 0
    failed: int = 0
    output_file: str | None = None
    error_file: str | None = None
    problems: tuple[str, ...] = ()
    """Short codes of why it was refused, with line numbers; never the provider's words."""

    @property
    def is_whole(self) -> bool:
        """Whether nothing more will come and the file of its answers, if there are any, is named.

        A server may say that a batch is over a moment before it names the file.
        """
        return self.status in OVER and (self.output_file is not None or not self.completed)


class History(Frozen):
    """What has happened for one record in earlier rounds, and how the next one is asked."""

    attempts: int = 0
    """Requests that were answered, with whatever."""
    answers: int = 0
    """Completions among them that held an answer."""
    readable: int = 0
    """Answers that fitted the schema."""
    reasks: int = 0
    broken: dict[str, int] = Field(default_factory=dict)
    """Violations by kind."""
    usage: Usage | None = None
    cap: int | None = None
    """Tokens that the next answer may have."""
    lengthened: bool = False
    answer: str | None = None
    """The answer that is sent back to be mended."""
    complaint: str | None = None
    """What is said about it."""


@dataclass(frozen=True)
class Asked:
    """One line of a batch: the request, and what went before it."""

    request: Task
    history: History
    reasks: int = 1
    """How often an answer may be sent back."""


@dataclass(frozen=True)
class GivenUp:
    """There is no label, and this is why."""

    reason: str
    message: str
    lasting: bool
    violations: tuple[Violation, ...] = ()


@dataclass(frozen=True)
class Again:
    """It has to be asked once more, in a later round."""

    reason: str
    history: History


@dataclass(frozen=True)
class Verdict:
    """What one line of an answer file comes to."""

    result: JudgeReply[Frozen] | GivenUp | Again
    history: History
    """What has happened by now, this answer included."""
    usage: Usage | None = None
    """What this answer alone was charged; ``None`` where the server does not say."""


@runtime_checkable
class BatchedSpec(Protocol):
    """What a judge's specification says of how its requests are sent, where they can be batched."""

    @property
    def base_url(self) -> str:
        """Where the judge is asked, which is where its batches are handed in."""
        ...

    @property
    def max_output_tokens(self) -> int | None:
        """Tokens that an answer may have, reasoning included."""
        ...

    @property
    def reasks(self) -> int:
        """How often a broken answer may be sent back."""
        ...


class BatchService(Protocol):
    """A provider that takes batches.

    Every method asks again by itself after a passing failure. It raises a
    :class:`~labeler.errors.FatalJudgeError` where asking again cannot help, and another
    :class:`~labeler.errors.JudgeError` where the server stays out of reach.
    """

    @property
    def base_url(self) -> str:
        """Where the batches are."""
        ...

    def line(self, asked: Asked) -> str:
        """The line that stands for a request in the file, named by the label's key.

        Raises:
            UsageError: its signature is not one of this provider's judge.
        """
        ...

    async def upload(self, path: Path) -> str:
        """Hand in a file of requests; returns the file's id."""
        ...

    async def create(self, file_id: str, marker: str, *, since: float, again: bool) -> RemoteBatch:
        """Start a batch, unless there is one of this marker already.

        Args:
            file_id: the uploaded file.
            marker: our own name for it, which the provider keeps with it.
            since: Unix time before which it cannot have been started.
            again: whether it may have been started already: then it is looked for first, as
                :meth:`find` does.

        Raises:
            JudgeError: it cannot be told whether there is one; none was started.
        """
        ...

    async def find(self, file_id: str, marker: str, *, since: float) -> RemoteBatch | None:
        """The batch that was started of a file, or ``None`` after several looks, with pauses.

        Args:
            file_id: as for :meth:`create`.
            marker: the same.
            since: the same.

        Raises:
            JudgeError: what the provider lists cannot be read, or is more than is read.
        """
        ...

    async def look(self, batch_id: str) -> RemoteBatch:
        """How a batch is getting on."""
        ...

    async def cancel(self, batch_id: str) -> RemoteBatch:
        """Ask for an end; what is answered by then stays."""
        ...

    async def download(self, file_id: str, path: Path) -> None:
        """Write a file of answers; it stands under its path only when it is whole and durable."""
        ...

    def read(
        self, asked: Asked, status: int, body: Mapping[str, Any] | None, *, worked: bool
    ) -> Verdict:
        """Judge the answer to one line as the same answer would be judged online.

        Args:
            asked: the line.
            status: HTTP status of the answer.
            body: its JSON body.
            worked: whether the same batch has brought a usable answer: then what might be
                everyone's fault is this record's.
        """
        ...

    async def aclose(self) -> None:
        """Close the connections."""
        ...
