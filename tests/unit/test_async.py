"""Labeling from coroutines, such as the handlers of a web service."""

from __future__ import annotations

import asyncio
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import labeler
from labeler import MemoryStore
from labeler.errors import UsageError
from labeler.judges.task import JudgeReply, Task
from support.fakes import CountingJudge, agreeable

ROWS = [
    {"id": f"r{n}", "question": "What?", "documents": ["A lamp."], "response": f"Lamp {n}."}
    for n in range(3)
]


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
        runs = [asyncio.create_task(labeler.alabel([row], **options)) for row in ROWS]
        await asyncio.sleep(0)
        event.set()
        return await asyncio.gather(*runs)

    done = asyncio.run(service())
    assert [labels[0].id for labels in done] == ["r0", "r1", "r2"]
    assert [labels.failures for labels in done] == [[], [], []]


def test_outcomes_come_one_by_one_and_a_file_is_written(tmp_path: Path) -> None:
    """In input order; the file appears when all are there."""

    async def service() -> list[str]:
        path = tmp_path / "labels.jsonl"
        run = labeler.aiter_labels(ROWS, judge="embedded", store=MemoryStore(), output=path)
        return [outcome.id async for outcome in run]

    assert asyncio.run(service()) == ["r0", "r1", "r2"]
    assert len(labeler.load(tmp_path / "labels.jsonl")) == 3


def test_a_cancelled_task_keeps_the_paid_answers() -> None:
    """Requests in flight finish, and their labels are stored; no thread is left."""
    store, event, began = MemoryStore(), threading.Event(), threading.active_count()

    async def client_leaves() -> None:
        asked, loop = asyncio.Event(), asyncio.get_running_loop()
        judge = waiting_for(event, lambda: loop.call_soon_threadsafe(asked.set))
        run = asyncio.create_task(labeler.alabel(ROWS, judge=judge, store=store))
        await asked.wait()
        run.cancel()
        event.set()
        with pytest.raises(asyncio.CancelledError):
            await run

    asyncio.run(client_leaves())
    assert len(store) >= 1
    assert threading.active_count() == began


def test_a_task_that_is_cancelled_twice_frees_the_loop() -> None:
    """The answer in flight is stored all the same, by the thread."""
    store, event = MemoryStore(), threading.Event()

    async def client_leaves() -> None:
        asked, loop = asyncio.Event(), asyncio.get_running_loop()
        judge = waiting_for(event, lambda: loop.call_soon_threadsafe(asked.set))
        run = asyncio.create_task(labeler.alabel(ROWS, judge=judge, store=store))
        await asked.wait()
        for _ in range(2):
            run.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await run
        assert not len(store)
        event.set()

    asyncio.run(client_leaves())
    for thread in threading.enumerate():
        if thread.name.startswith("labeler"):
            thread.join(30)
    assert len(store) >= 1


def test_errors_of_a_run_reach_the_coroutine() -> None:
    """As from the function that blocks."""
    with pytest.raises(UsageError, match="repeat must be a whole number, 1 or more"):
        asyncio.run(labeler.alabel(ROWS, judge="embedded", store=MemoryStore(), repeat=0))
    with pytest.raises(TypeError, match=r"alabel\(\) has no option 'stroe'; .*'store'"):
        asyncio.run(labeler.alabel(ROWS, stroe=MemoryStore()))  # type: ignore[call-arg]


@pytest.mark.parametrize("name", ["label", "iter_labels"])
def test_blocking_a_running_loop_is_noted(name: str) -> None:
    """The warning names the function for coroutines; without a loop there is none."""

    async def service() -> int:
        return len(list(getattr(labeler, name)(ROWS, judge="embedded", store=MemoryStore())))

    with pytest.warns(RuntimeWarning, match=rf"labeler\.{name} blocks .* labeler\.a{name}\("):
        assert asyncio.run(service()) == 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        getattr(labeler, name)(ROWS, judge="embedded", store=MemoryStore())
