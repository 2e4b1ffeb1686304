"""Messages between a parent and a worker: numbers and texts, so that neither can run code there."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from multiprocessing.connection import Connection
from queue import Empty, SimpleQueue
from typing import Any, Literal, TypeAlias, cast

from msgspec import Struct, field, msgpack

from labeler.data.rows import Row
from labeler.integrations.ray.quotas import Allocation, Spending
from labeler.labeling.cache import Origin
from labeler.labeling.canaries import CanaryCounts
from labeler.labels.record import RECORDS, AnyOutcome, LabelFailure
from labeler.sentences.example import Example

MOST = 64
"""Messages that are sent or read at once, if they wait anyway."""


class Sent(Struct, frozen=True, array_like=True):
    """An outcome or an example as JSON.

    Attributes:
        kind: that of the outcome, or ``example``.
        text: the JSON.
    """

    kind: str
    text: str

    @classmethod
    def of(cls, value: AnyOutcome | Example) -> Sent:
        """Return the form of a value that is sent."""
        kind = "example" if isinstance(value, Example) else value.kind
        return cls(kind, value.model_dump_json())

    def read(self) -> AnyOutcome:
        """Return the outcome."""
        if self.kind == "failure":
            return LabelFailure.model_validate_json(self.text)
        return cast("AnyOutcome", RECORDS[self.kind].model_validate_json(self.text))


# From the parent


class Asked(Struct, frozen=True, tag=True):
    """A row.

    Attributes:
        where: its place in the input.
        content: the example, or the failure in its place.
    """

    where: str
    content: Sent

    @classmethod
    def of(cls, row: Row) -> Asked:
        """Return the form of a row that is sent."""
        return cls(row.where, Sent.of(row.content))

    def read(self) -> Row:
        """Return the row."""
        if self.content.kind == "example":
            return Row(self.where, Example.model_validate_json(self.content.text))
        return Row(self.where, LabelFailure.model_validate_json(self.content.text))


class Awaited(Struct, frozen=True, tag=True):
    """The parent waits for an outcome, and sends no more rows meanwhile.

    Attributes:
        number: the outcomes of this worker up to that one.
    """

    number: int


class End(Struct, frozen=True, tag=True):
    """No more rows come."""


class Stop(Struct, frozen=True, tag=True):
    """Send nothing more; the second time, drop what is in flight."""


class Answer(Struct, frozen=True, tag=True):
    """The result of a call of the quota server."""

    number: int
    value: Allocation | float | None


# From a worker


class Reached(Struct, frozen=True, tag=True):
    """The outcome of a row.

    Attributes:
        outcome: the outcome.
        origin: its source.
        judged: fresh judgments before it; ``None`` stands for the outcome itself.
        votes: the votes on the row, if there was a vote.
    """

    outcome: Sent
    origin: Origin
    judged: list[Sent | None]
    votes: list[Sent | None] | None


class Notice(Struct, frozen=True, tag=True):
    """A message for people."""

    text: str


class Question(Struct, frozen=True, tag=True):
    """A call of the quota server.

    Attributes:
        number: of the answer.
        method: the name of the method.
        name: of the holder or the rate.
        spending: of the holder.
        amount: dollars or units.
    """

    number: int
    method: Literal["lease", "settle", "grant", "give_back"]
    name: str
    spending: Spending = Spending()
    amount: Decimal = Decimal(0)


class Ended(Struct, frozen=True, tag=True):
    """The end of a worker's run.

    Attributes:
        known: dollars that answers cost.
        doubtful: dollars that requests without an answer may have cost.
        judged: fresh judgments after the last outcome.
        ordered: results of canaries that demand a verdict.
        plain: results of those that do not.
        failed: canaries without a label.
        ending: kind of the error that ended it early, if any.
        message: of that error.
    """

    known: Decimal = Decimal(0)
    doubtful: Decimal = Decimal(0)
    judged: list[Sent] = []
    ordered: CanaryCounts = field(default_factory=CanaryCounts)
    plain: CanaryCounts = field(default_factory=CanaryCounts)
    failed: int = 0
    ending: str = ""
    message: str = ""


ToWorker: TypeAlias = Asked | Awaited | End | Stop | Answer
ToParent: TypeAlias = Reached | Notice | Question | Ended


class Channel:
    """Sends and receives messages in threads of its own.

    A signal that interrupts the main thread therefore never cuts a message in two, and neither side
    waits for the other to read.

    Args:
        connection: to the other process.
        kind: of the messages that come.
        receive: called with each message.
        lost: called when nothing more comes.
    """

    def __init__(
        self,
        connection: Connection[Any, Any],
        kind: Any,  # noqa: ANN401 - a union is no type
        receive: Callable[[Any], object],
        lost: Callable[[], object],
    ) -> None:
        self._connection, self._receive, self._lost = connection, receive, lost
        self._decode = msgpack.Decoder(list[kind]).decode
        self._outbox: SimpleQueue[object] = SimpleQueue()
        self._writer = threading.Thread(target=self._write, name="labeler-send", daemon=True)
        self._writer.start()
        threading.Thread(target=self._read, name="labeler-receive", daemon=True).start()

    def put(self, message: ToWorker | ToParent) -> None:
        """Send a message soon; does nothing if the other process has ended."""
        self._outbox.put(message)

    def flush(self) -> None:
        """Wait until everything is sent; nothing can be sent later."""
        self._outbox.put(self)
        self._writer.join()

    def _write(self) -> None:
        encode = msgpack.Encoder().encode
        open_ = True
        while open_:
            batch = [self._outbox.get()]
            with suppress(Empty):
                while len(batch) < MOST:
                    batch.append(self._outbox.get_nowait())
            open_ = batch[-1] is not self
            with suppress(OSError):  # the reading thread notices that the other side has ended
                self._connection.send_bytes(encode(batch if open_ else batch[:-1]))

    def _read(self) -> None:
        try:
            while True:
                for message in self._decode(self._connection.recv_bytes()):
                    self._receive(message)
        except (EOFError, OSError):
            pass  # the other process has ended
        finally:
            self._lost()
