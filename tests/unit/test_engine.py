"""The event loop behind a run, runs of coroutines, and signals."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import ExitStack, nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest

import labeler
from labeler import MemoryStore
from labeler.cli.terminal import Interrupted, announce, signals_raise
from labeler.judges.pace import Pace, current
from labeler.judges.task import JudgeReply, Task
from labeler.labeling.engine import Engine, hurry
from support.fakes import CountingJudge, agreeable
from wire.runs import rows


@pytest.fixture
def farewells() -> list[str]:
    """What was done at the very end."""
    return []


@pytest.fixture
def engine(farewells: list[str]) -> Iterator[Engine]:
    """An engine of two slots, stopped after the test if the test did not."""
    made = engine_of(2, farewells)
    yield made
    made.stop()


def engine_of(concurrency: int, farewells: list[str], grace: float = 10.0) -> Engine:
    """An engine that notes its farewell."""

    async def last() -> None:
        farewells.append("closed")

    return Engine(Pace(concurrency), grace=grace, last=last)


async def answer(value: int, seconds: float = 0.0) -> int:
    """A job."""
    await asyncio.sleep(seconds)
    return value


def test_stopping_lets_running_jobs_finish_and_starts_no_others(
    engine: Engine, farewells: list[str]
) -> None:
    """What was sent is paid for; what was not is not sent."""
    begun = threading.Event()

    async def placed() -> int:
        async with current().slot():
            begun.set()
            return await answer(7, 0.2)

    jobs = [engine.submit(placed) for _ in range(6)]
    assert begun.wait(10)
    engine.stop()
    assert engine.wait(jobs[0]) == 7
    for job in jobs[2:]:
        with pytest.raises(CancelledError):
            engine.wait(job)
    assert farewells == ["closed"]


@pytest.mark.parametrize(("wait", "most"), [("slot", 40), ("pause", 128), ("lease", 128)])
def test_no_more_jobs_are_made_than_soon_begin(wait: str, most: int) -> None:
    """Jobs that only wait for a slot are few; those that pause, or wait before, hold none up."""
    engine, going_on = engine_of(8, []), threading.Event()

    async def placed() -> None:
        async with current().slot() if wait != "lease" else nullcontext():
            while not going_on.is_set():
                await (current().sleep(0.01) if wait == "pause" else asyncio.sleep(0.01))

    def submit() -> None:
        while not going_on.is_set():
            job = engine.submit(placed)
            made.append(1)
            with suppress(CancelledError):
                engine.wait_for(job, or_room=True)

    made = list[int]()
    engine._traffic.labeled()  # the slot is held through pauses before the first label
    thread = threading.Thread(target=submit)
    thread.start()
    until = time.monotonic() + 10
    while len(made) < most and time.monotonic() < until:
        time.sleep(0.01)
    time.sleep(0.1)
    assert most <= len(made) <= most + 8
    going_on.set()
    thread.join(10)
    engine.stop()


@pytest.mark.parametrize("kind", ["coroutine", "thread"])
def test_patience_ends(farewells: list[str], kind: str) -> None:
    """A job that outlives the grace is cancelled, also one in a thread that hangs."""
    engine, going_on = engine_of(1, farewells, grace=0.05), threading.Event()

    async def outlive() -> None:
        await (asyncio.to_thread(going_on.wait) if kind == "thread" else asyncio.Event().wait())

    job = engine.submit(outlive)
    engine.stop()
    with pytest.raises(CancelledError):
        engine.wait(job)
    going_on.set()


def test_the_first_failure_ends_the_wait_for_all(engine: Engine) -> None:
    """It is raised at once, behind whatever slow job it happened, and nothing more is started."""

    async def fail() -> int:
        raise LookupError("fatal")

    endless = engine.submit(asyncio.Event().wait)
    engine.submit(fail)
    with pytest.raises(LookupError, match="fatal"):
        engine.wait(endless)
    with pytest.raises(LookupError, match="fatal"):
        engine.submit(lambda: answer(2))
    engine._grace = 0


def test_a_task_of_the_judge_is_no_job(farewells: list[str]) -> None:
    """A background task on the loop, without an end, does not make the stop wait for it."""
    engine = engine_of(1, farewells, grace=1e9)

    async def with_background() -> int:
        engine.background = asyncio.ensure_future(asyncio.Event().wait())  # type: ignore[attr-defined]
        return 1

    assert engine.wait(engine.submit(with_background)) == 1
    engine.stop()


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, asyncio.CancelledError])
def test_a_job_that_wants_to_leave_is_a_failure(engine: Engine, error: type[BaseException]) -> None:
    """It ends the run with an ordinary exception; the loop lives on and nobody hangs."""

    async def leave() -> int:
        raise error

    with pytest.raises(RuntimeError, match="a job"):
        engine.wait(engine.submit(leave))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_does_not_wait_for_its_parents_engine(engine: Engine) -> None:
    """It ends at once, though it has no thread to stop."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        signal.alarm(10)
        engine.stop()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


def test_an_engine_can_be_stopped_from_its_own_thread(farewells: list[str]) -> None:
    """As when the garbage collector closes an abandoned run there; what runs may finish."""
    done = threading.Event()

    async def last() -> None:
        farewells.append("closed")

    engine = Engine(Pace(2), grace=10, last=last, after=done.set)
    job = engine.submit(lambda: answer(7, 0.2))

    async def collected() -> None:
        engine.stop()

    asyncio.run_coroutine_threadsafe(collected(), engine._loop).result(5)
    assert done.wait(10)
    assert engine.wait(job) == 7
    assert farewells == ["closed"]


def waiting_for(event: threading.Event, asked: Callable[[], object] = int) -> CountingJudge:
    """Return a judge that reports its first request, and answers when an event is set."""

    def behavior(task: Task[Any]) -> JudgeReply[Any]:
        asked()
        assert event.wait(timeout=30)
        return agreeable(task)

    return CountingJudge(behavior)


def test_handlers_label_at_once_while_the_loop_is_free(tmp_path: Path) -> None:
    """Two runs with one store wait for what another coroutine of the same loop does."""

    async def service() -> list[labeler.Labels]:
        event = threading.Event()
        options: dict[str, Any] = {"judge": waiting_for(event), "store": tmp_path / "store"}
        runs = [asyncio.create_task(labeler.alabel([row], **options)) for row in rows(3)]
        await asyncio.sleep(0)
        event.set()
        return await asyncio.gather(*runs)

    done = asyncio.run(service())
    assert [labels[0].id for labels in done] == ["r0", "r1", "r2"]
    assert [labels.failures for labels in done] == [[], [], []]


@pytest.mark.parametrize("times", [1, 2])
def test_a_cancelled_task_keeps_the_paid_answers(times: int) -> None:
    """Requests in flight finish and their labels are stored, in the end by a thread alone."""
    store, event = MemoryStore(), threading.Event()

    async def client_leaves() -> None:
        asked, loop = asyncio.Event(), asyncio.get_running_loop()
        judge = waiting_for(event, lambda: loop.call_soon_threadsafe(asked.set))
        run = asyncio.create_task(labeler.alabel(rows(3), judge=judge, store=store))
        await asked.wait()
        for _ in range(times):
            run.cancel()
            await asyncio.sleep(0)
        if times == 1:  # the loop waits for what is in flight
            event.set()
        with pytest.raises(asyncio.CancelledError):
            await run
        assert bool(len(store)) == (times == 1)
        event.set()

    asyncio.run(client_leaves())
    until = time.monotonic() + 30
    while not len(store) and time.monotonic() < until:
        time.sleep(0.01)
    assert len(store) >= 1


@pytest.mark.parametrize("name", ["label", "iter_labels"])
def test_blocking_a_running_loop_is_noted(name: str) -> None:
    """The warning names the function for coroutines; without a loop there is none."""

    async def service() -> int:
        return len(list(getattr(labeler, name)(rows(3), judge="embedded", store=MemoryStore())))

    with pytest.warns(RuntimeWarning, match=rf"labeler\.{name} blocks .* labeler\.a{name}\("):
        assert asyncio.run(service()) == 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        getattr(labeler, name)(rows(3), judge="embedded", store=MemoryStore())


class Thing:
    """Something that can be referred to weakly."""


def tidy_up_and_wait(number: signal.Signals) -> None:
    """Have a signal come in a weak reference's callback, and then wait."""
    thing = Thing()
    reference = weakref.ref(thing, lambda _: signal.raise_signal(number))
    del thing
    assert reference() is None
    threading.Event().wait(30)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_comes_while_python_tidies_up_is_heard_once(number: signal.Signals) -> None:
    """What a weak reference's callback raises is dropped; sent again, it is not a second signal."""
    hurried: list[int] = []

    def interrupted_once() -> None:
        announce("", lambda: hurried.append(1))
        tidy_up_and_wait(number)

    with pytest.raises(Interrupted) as heard, signals_raise():
        interrupted_once()
    assert (heard.value.exit_code, hurried) == (128 + number, [])


def test_a_second_signal_before_the_wait_drops_running_jobs(farewells: list[str]) -> None:
    """Its exception ends the code that unwinds, and the engine is stopped afterwards."""

    def interrupted_twice() -> None:
        announce("", hurry)
        engine = engine_of(1, farewells, grace=60)
        engine.submit(lambda: answer(1, 60))
        with ExitStack() as unwinding:
            unwinding.callback(engine.stop)
            unwinding.callback(signal.raise_signal, signal.SIGINT)
            signal.raise_signal(signal.SIGINT)

    started = time.monotonic()
    with pytest.raises(Interrupted), signals_raise():
        interrupted_twice()
    assert time.monotonic() - started < 10
    assert farewells == ["closed"]


@pytest.mark.parametrize("stopping", [False, True])
def test_two_signals_at_once_end_a_wait_as_one_does(farewells: list[str], stopping: bool) -> None:
    """The second one comes while the first unwinds the wait, whose locks are then half open."""
    main = threading.get_ident()

    def interrupt() -> None:
        time.sleep(0.2)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.pthread_kill(main, number)

    made = engine_of(1, farewells, grace=60)

    def interrupted() -> None:
        announce("", made.hurry)
        job = made.submit(lambda: answer(1, 60))
        threading.Thread(target=interrupt).start()
        made.stop() if stopping else made.wait(job)

    with pytest.raises(Interrupted), signals_raise():
        interrupted()
    made.stop()
    assert farewells == ["closed"]


def test_other_exceptions_that_are_dropped_are_told_of_as_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And after it, all are."""
    told: list[str] = []

    def note(unraisable: sys.UnraisableHookArgs) -> None:
        told.append(str(unraisable.exc_value))

    def fail(_: object) -> None:
        raise ValueError("dropped")

    monkeypatch.setattr(sys, "unraisablehook", note)
    with signals_raise():
        weakref.finalize(thing := Thing(), fail, None)
        del thing
    assert told == ["dropped"]
    assert sys.unraisablehook is note
