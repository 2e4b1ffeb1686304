"""From rows to stored labels: the only orchestration.

Each row is split, keyed and looked up; what the store does not hold is judged once, checked
against its own sentences, and saved before it is passed on. A row that cannot be labelled becomes
a failure in the same stream and never ends the run.
"""

from __future__ import annotations

import asyncio
import traceback
from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from labeler import __version__
from labeler.engine import Engine
from labeler.errors import BadRow, FatalJudgeError, JudgeError, UsageError
from labeler.judges import Judge, JudgeReply, UnusableAnswer
from labeler.labels import VerbatimLabel, Violation, check_label
from labeler.prompting import JudgeRequest
from labeler.recipe import Recipe
from labeler.record import LabelFailure, LabelRecord, Outcome, Usage
from labeler.rows import Row, Rows, distinct, survey
from labeler.stores import LabelStore

DEFAULT_CONCURRENCY = 16
GRACE_SECONDS = 60.0
"""How long requests in flight may take to finish when a run is stopped: they are paid for."""

_WINDOW = 64
"""Rows held for each request in flight: one slow answer does not keep the others waiting."""

Origin = Literal["judge", "store", "row"]
"""Where an outcome came from: a fresh judgement, the store, or the input row itself."""


class Watcher(Protocol):
    """Someone who is told how a run goes, such as a progress bar."""

    def begin(self, rows: int, repeated: int) -> None:
        """Told before any spend how many rows there are, and how many repeat an earlier one."""

    def seen(self, outcome: Outcome, origin: Origin) -> None:
        """Told of each outcome as it is yielded."""


def label_rows(
    rows: Rows,
    how: Recipe,
    store: LabelStore,
    *,
    concurrency: int = DEFAULT_CONCURRENCY,
    watcher: Watcher | None = None,
    after: Callable[[], None] = lambda: None,
) -> Generator[Outcome, None, None]:
    """Label rows in order; every label is durable in the store before it is yielded.

    Args:
        rows: read twice: once whole, before any spend, then a window ahead of what is yielded.
        how: judge, splitter, prompt and schema.
        store: where labels are looked up and saved.
        concurrency: requests in flight at most.
        watcher: told how the run goes.
        after: called at the very end, however the run ends.

    Raises:
        FatalJudgeError: no record can be labelled; what was labelled until then is stored.
        StoreError: labels cannot be read or saved.
        UsageError: the rows cannot be read, two share an id and differ (nothing was sent), or
            they changed while they were being labelled.
    """
    engine = Engine(concurrency, grace=GRACE_SECONDS, last=how.judge.aclose, after=after)
    window = _Window(engine, how, store, watcher)
    try:
        total = survey(rows)
        if watcher:
            watcher.begin(total.distinct, total.repeated)
        for row in distinct(rows):
            window.admit(row)
            while window.ready() or len(window) >= _WINDOW * concurrency:
                yield window.pop()
        while window:
            yield window.pop()
        if window.admitted != total.distinct:
            raise UsageError(
                f"the rows changed while they were read: {total.distinct} at first, then "
                f"{window.admitted}; run it again, what was labelled is stored"
            )
    finally:
        engine.stop()


class _Window:
    """Rows that were read and not yet yielded, in input order."""

    def __init__(
        self, engine: Engine, how: Recipe, store: LabelStore, watcher: Watcher | None
    ) -> None:
        self.admitted = 0
        self._engine, self._how, self._store, self._watcher = engine, how, store, watcher
        self._slots: deque[_Slot] = deque()
        self._asked: dict[str, Future[Outcome]] = {}

    def __len__(self) -> int:
        return len(self._slots)

    def ready(self) -> bool:
        """Whether the row that is due next has its outcome."""
        return bool(self._slots) and self._slots[0].future.done()

    def admit(self, row: Row) -> None:
        """Take a row in; waits while very many requests are unfinished."""
        self.admitted += 1
        self._slots.append(self._slot(row))

    def _slot(self, row: Row) -> _Slot:
        if isinstance(row.content, LabelFailure):
            return _Slot(_done(row.content), "row")
        try:
            request = self._how.request(row.content)
        except BadRow as error:
            failure = LabelFailure(
                id=row.content.id,
                reason=error.reason,
                message=f"{row.where}: {error}",
                metadata=row.content.metadata,
            )
            return _Slot(_done(failure), "row")
        if request.key in self._asked:  # the same sentences under another id: asked for already
            return _Slot(self._asked[request.key], "store", request)
        stored = self._store.get(request.key)
        if stored is not None:
            return _Slot(_done(stored), "store", request)
        future = self._engine.submit(lambda: _judge(self._how.judge, request, self._store))
        self._asked[request.key] = future
        return _Slot(future, "judge", request)

    def pop(self) -> Outcome:
        """The outcome of the row that is due next, waited for if need be."""
        slot = self._slots.popleft()
        outcome = slot.named(self._engine.wait(slot.future))
        if slot.origin == "judge" and slot.request:
            # From here on the store answers; a failure may be tried anew.
            del self._asked[slot.request.key]
        if self._watcher:
            self._watcher.seen(outcome, slot.origin)
        return outcome


@dataclass(frozen=True)
class _Slot:
    future: Future[Outcome]
    origin: Origin
    request: JudgeRequest | None = None

    def named(self, outcome: Outcome) -> Outcome:
        """The outcome under this row's name: another row may have asked for the judgement."""
        if self.request is None:
            return outcome
        example = self.request.example
        if isinstance(outcome, LabelRecord):
            return outcome.model_copy(update={"example": example})
        if self.origin == "judge":
            return outcome
        # What it cost is told once, by the row that asked.
        told = {"id": example.id, "metadata": example.metadata, "attempts": 0, "usage": None}
        return outcome.model_copy(update=told)


def _done(outcome: Outcome) -> Future[Outcome]:
    future: Future[Outcome] = Future()
    future.set_result(outcome)
    return future


async def _judge(judge: Judge, request: JudgeRequest, store: LabelStore) -> Outcome:
    """Ask for one label, check it, and save it; what another run saved meanwhile counts."""
    stored = store.get(request.key)
    if stored is not None:
        return stored
    outcome = await _ask(judge, request)
    if isinstance(outcome, LabelFailure):
        return outcome
    await asyncio.wrap_future(store.put(outcome))
    return store.get(request.key) or outcome


async def _ask(judge: Judge, request: JudgeRequest) -> Outcome:
    """Ask for one label and check it; what went wrong with this record alone is a failure."""
    try:
        return admit_reply(request, await judge.label(request))
    except UsageError:  # the judge is used wrongly: every record would say so
        raise
    except FatalJudgeError as error:
        message = f"{request.example.id!r}: {error}"
        raise FatalJudgeError(message, reason=error.reason, attempts=error.attempts) from None
    except UnusableAnswer as error:
        return _failure(
            request,
            error.reason,
            str(error),
            attempts=error.attempts,
            usage=error.usage,
            violations=error.violations,
        )
    except JudgeError as error:
        return _failure(request, error.reason, str(error), attempts=error.attempts)
    except Exception as error:  # noqa: BLE001 - a judge's bug costs its record, not the run
        return _failure(request, "judge_error", _bug(request, error))


def _bug(request: JudgeRequest, error: Exception) -> str:
    """Say where a judge broke; not its words, which may hold a key or a document."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return (
        f"judge {request.signature.judge!r} raised {type(error).__name__}{place}: "
        "a fault of the judge's code, not of the record"
    )


def admit_reply(request: JudgeRequest, reply: JudgeReply) -> Outcome:
    """Check an answer at the door: a record if it keeps the contract, else a failure."""
    checked = check_label(reply.answer, request.example)
    if checked.violations:
        return _failure(
            request,
            "contract",
            f"the judge broke the label contract: {'; '.join(map(str, checked.violations))}",
            attempts=reply.facts.attempts,
            usage=reply.facts.usage,
            violations=checked.violations,
        )
    changed = checked.label != reply.answer
    return LabelRecord(
        key=request.key,
        example=request.example,
        label=checked.label,
        verbatim=VerbatimLabel(**reply.answer.model_dump()) if changed else None,
        normalised=checked.normalised,
        signature=request.signature,
        reply=reply.facts.model_copy(update={"labeler_version": __version__}),
        scores=reply.scores,
    )


def _failure(
    request: JudgeRequest,
    reason: str,
    message: str,
    *,
    attempts: int = 1,
    usage: Usage | None = None,
    violations: tuple[Violation, ...] = (),
) -> LabelFailure:
    return LabelFailure(
        id=request.example.id,
        reason=reason,
        message=f"{request.example.id!r}: {message}",
        attempts=attempts,
        usage=usage,
        violations=violations,
        signature=request.signature,
        metadata=request.example.metadata,
    )
