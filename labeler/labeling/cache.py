"""The label cache: each task is judged once, by one run, and saved before its outcome is used."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from labeler.errors import FatalJudgeError, JudgeError, RunPaused, UnstorableRecord, UsageError
from labeler.extensions import call_declared, every
from labeler.judges.concurrency import Health
from labeler.judges.judge import Judge, ModeRejected, UnusableAnswer
from labeler.judges.pace import Stopped, current, wake
from labeler.judges.task import JudgeReply, Task
from labeler.labeling.failures import (
    judge_bug,
    record_or_failure,
    task_failure,
    unstorable,
    unusable,
)
from labeler.labeling.progress import JudgeCall, Origin, RunEvents
from labeler.labels.record import AnyOutcome, LabelFailure, LabelRecord
from labeler.store import LabelStore, Lease

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 1.0
"""Seconds between two attempts to lease a key that another run holds."""


PendingLabels = Callable[[str], str | None]
"""Names the batch, or the like, that a label with a key will come from; ``None`` if none will."""


def pending_labels(folder: Path | None) -> dict[str, PendingLabels]:
    """Return functions, by name, that find labels that are bought already and still to come.

    Installed packages declare them in the group ``labeler.pending``: functions from the folder of a
    store to such a function.

    Args:
        folder: of the store; ``None`` if the labels are in memory.

    Raises:
        ExtensionError: a package cannot load, or is not declared; its labels would be bought twice.
    """
    found = every("pending") if folder else {}
    return {name: call_declared("pending", name, make, folder) for name, make in found.items()}


class Settled(NamedTuple):
    """A final outcome and its source."""

    outcome: AnyOutcome
    origin: Origin


class ServedLabels:
    """Compares stored labels that are served with the judge that would be asked otherwise.

    The host is not part of a label's key, so that labels stay valid when a server moves. A stub
    under a real model's name, or a store in a cloned folder, would answer for the real server
    without a word.

    Args:
        notice: receives messages for people.
        same_host: True to reject labels that another host gave.
    """

    def __init__(self, notice: Callable[[str], object], *, same_host: bool) -> None:
        self._notice, self._same_host = notice, same_host
        self._elsewhere: dict[str, Counter[str]] = {}
        """Numbers of labels by the host that gave them, by the host that the run asks."""
        self._changed = set[str]()

    def check(self, judge: Judge, outcome: AnyOutcome) -> None:
        """Compare a stored outcome with its judge.

        Raises:
            UsageError: another host gave it, and the run rejects that.
        """
        if isinstance(outcome, LabelFailure):
            return
        reply = outcome.reply
        own: str | None = getattr(judge, "host", None)
        if own and reply.host and _canonical(reply.host) != _canonical(own):
            if self._same_host:
                raise UsageError(
                    f"--same-host: {reply.host} gave a stored label of these rows, and this run "
                    f"asks {own}: give another --store, or run without --same-host"
                )
            self._elsewhere.setdefault(own, Counter())[reply.host] += 1
        source: str | None = getattr(judge, "source", None)
        name = str(judge.spec)
        if source and reply.system_fingerprint not in {None, source} and name not in self._changed:
            self._changed.add(name)
            self._notice(
                f"judge {name}: its source has changed since it gave the stored labels, which are "
                "used as they are: give it another version to ask again"
            )

    def report(self) -> None:
        """Report the hosts that gave the served labels, if the run asks others."""
        for own, others in self._elsewhere.items():
            listed = ", ".join(f"{count:,} from {host}" for host, count in others.most_common())
            self._notice(
                f"stored labels of another host were used: {listed}, while this run asks {own}; "
                "give another --store to ask it instead, or --same-host to stop"
            )
        self._elsewhere.clear()


@dataclass
class LabelCache:
    """Cached judge calls.

    Attributes:
        store: where records and lasting failures are looked up and saved.
        retry_failed: True to repeat tasks with a lasting failure in the store.
        pending: find labels that are bought already and still to come.
        events: the run's events.
        same_host: True to reject stored labels of another host than the one asked.
    """

    store: LabelStore
    retry_failed: bool = False
    pending: Mapping[str, PendingLabels] = field(default_factory=dict)
    events: RunEvents = field(default_factory=RunEvents)
    same_host: bool = False
    served: ServedLabels = field(init=False)
    """Compares stored outcomes with their judges."""
    _waited: bool = field(default=False, init=False)
    _failed: set[str] = field(default_factory=set, init=False)
    """Keys with a new lasting failure: ``retry_failed`` repeats a task once in a run."""
    _undecided: dict[str, tuple[Health, int]] = field(default_factory=dict, init=False)
    """Failures that last if their judge is well: its health, and its labels before the failure.
    They are kept in memory: a kill costs asking again."""

    def __post_init__(self) -> None:
        self.served = ServedLabels(self.events.notice, same_host=self.same_host)

    @property
    def is_new(self) -> bool:
        """True without any record, and without a pending label."""
        return not len(self.store) and not any(self.pending.values())

    def find(self, task: Task[Any]) -> AnyOutcome | None:
        """Return the stored outcome of a task, or a failure if its label is pending."""
        key = task.key
        # Before the store: a batch that is collected meanwhile stores its labels before it closes.
        batch = self.batch_of(key)
        repeats = self.retry_failed and key not in self._failed
        known = self.store.get(key) if repeats else self.store.outcome(key)
        if known is None and batch:
            message = f"it is in batch {batch}; collect that, or run again when it is over"
            return task_failure(task, "in_batch", message, attempts=0)
        return known

    def is_known(self, key: str) -> bool:
        """Return whether a key has a record or a pending label."""
        return self.batch_of(key) is not None or self.store.get(key) is not None

    def batch_of(self, key: str) -> str | None:
        """Return the name of the batch that may still answer a key."""
        for name, pending in self.pending.items():
            batch: str | None = call_declared("pending", name, pending, key)
            if batch:
                return batch
        return None

    async def judge(self, judge: Judge, task: Task[Any]) -> Settled:
        """Ask the judge and save the outcome, unless another run did so meanwhile.

        Raises:
            ModeRejected: the task has to be asked in another output mode, under another key.
        """
        known: AnyOutcome | None = self.store.get(task.key)
        if known is not None:
            return self._served(judge, known)
        async with Leased(self, task.key) as saving:
            known = self.find(task)
            if known is not None:
                return self._served(judge, known)
            # The slot is held until the outcome is saved: a crash then costs at most the requests
            # in flight, and nothing is bought while nothing can be saved.
            async with current().slot():
                outcome = await self._ask(judge, task)
                if not isinstance(outcome, LabelFailure):
                    current().labeled()
                return await self._save(task, outcome, saving)

    def _served(self, judge: Judge, known: AnyOutcome) -> Settled:
        self.served.check(judge, known)
        return Settled(known, "store")

    async def _ask(self, judge: Judge, task: Task[Any]) -> AnyOutcome:
        """Ask the judge and check its answer; errors of this record alone become a failure."""
        try:
            return record_or_failure(task, await self._reply(judge, task))
        except (UsageError, RunPaused, ModeRejected):  # they concern every record
            raise
        except FatalJudgeError as error:
            message = f"{task.example.id!r}: {error}"
            raise FatalJudgeError(message, reason=error.reason, attempts=error.attempts) from None
        except UnusableAnswer as error:
            return unusable(task, error)
        except JudgeError as error:
            return task_failure(task, error.reason, str(error), attempts=error.attempts)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - its bug costs a record, no run
            return judge_bug(task, error)

    async def _reply(self, judge: Judge, task: Task[Any]) -> JudgeReply[Any]:
        """Call the judge and report the call."""
        call = JudgeCall(judge.spec, task)
        self.events.call("call", call)
        try:
            reply = await judge.label(task)
        except BaseException as error:
            self.events.call("reply", call._replace(error=error))
            raise
        self.events.call("reply", call._replace(facts=reply.facts))
        return reply

    async def _save(
        self, task: Task[Any], outcome: AnyOutcome, saving: list[Future[bool]]
    ) -> Settled:
        """Save a record; return the outcome that the store holds. A failure is saved later.

        Raises:
            Stopped: the run is being stopped; the store finishes saving on its own.
        """
        if isinstance(outcome, LabelFailure):
            if outcome.lasting:
                health = current().health
                self._undecided[task.key] = (health, health.labels)
            return Settled(outcome, "judge")
        # Its task made the key of a label and checked the answer; other kinds are checked now.
        is_checked = isinstance(outcome, LabelRecord)
        saving.append(self.store.put(outcome, is_checked=is_checked))
        try:
            new = await until_saved(saving[-1])
        except UnstorableRecord as error:
            return await self._save(task, unstorable(task, outcome, error), saving)
        if new:
            return Settled(outcome, "judge")
        # A record that was imported meanwhile stays: the store keeps its first answer.
        return Settled(self.store.get(task.key) or outcome, "judge")

    def is_decided(self, key: str) -> bool:
        """Return whether it is known if a key's failure lasts: its judge gave a label after it."""
        health, labels = self._undecided.get(key, (None, 0))
        return health is None or health.labels > labels

    async def decided(self, outcome: LabelFailure, *, stopped: bool) -> AnyOutcome:
        """Save a lasting failure if its judge gave a label in this run; else it does not last.

        Args:
            outcome: a lasting failure of :meth:`judge`.
            stopped: true if the run is stopping, perhaps for the same reason.
        """
        key = outcome.key or ""
        certain = self.is_decided(key)
        health, _ = self._undecided.pop(key, (None, 0))
        if health is not None and health.labels and (certain or not stopped):
            self._failed.add(key)
            try:
                # Also while the run stops: the row's failure is then passed on.
                new = await asyncio.wrap_future(self.store.put(outcome))
            except UnstorableRecord:
                self._failed.discard(key)
            else:
                return outcome if new else self.store.get(key) or outcome
        lasts = key in self._failed
        return outcome if lasts else outcome.model_copy(update={"lasting": False})

    async def wait_for(self, key: str) -> Lease:
        """Wait until the run that holds a key's lease releases it."""
        if not self._waited:
            self._waited = True
            self.events.notice("another run is labeling some of these rows: waiting for its labels")
        stopping, pause = current().stopping, _FIRST_PAUSE
        while (lease := self.store.lease(key)) is None:
            if stopping.is_set():
                raise Stopped
            await asyncio.sleep(pause)
            pause = min(_LONGEST_PAUSE, pause * 1.5)
        return lease


@dataclass
class Leased:
    """Holds a key's lease until the futures in its list are done, even if cancelled."""

    cache: LabelCache
    key: str
    saving: list[Future[bool]] = field(default_factory=list)
    lease: Lease = field(init=False)

    async def __aenter__(self) -> list[Future[bool]]:
        self.lease = self.cache.store.lease(self.key) or await self.cache.wait_for(self.key)
        return self.saving

    async def __aexit__(self, *_: object) -> None:
        for saved in self.saving:
            saved.add_done_callback(lambda _: self.lease.release())
        if not self.saving:
            self.lease.release()


async def until_saved(saving: Future[bool]) -> bool:
    """Wait until a value is saved.

    Raises:
        Stopped: the run is being stopped; the store finishes saving on its own.
    """
    loop = asyncio.get_running_loop()
    woken: asyncio.Future[None] = loop.create_future()

    def pass_on(_: object) -> None:
        with suppress(RuntimeError):  # the run is over, and its loop closed
            loop.call_soon_threadsafe(wake, woken)

    saving.add_done_callback(pass_on)
    await current().until(woken)
    if not saving.done():
        raise Stopped
    return saving.result()


def _canonical(host: str) -> str:
    """Return a host in one spelling."""
    name, colon, port = host.lower().removesuffix(":443").rpartition(":")
    if not colon or not port.isdigit():
        name, port = host.lower().removesuffix(":443"), ""
    return f"{'localhost' if name in _LOOPBACK else name}:{port}"
