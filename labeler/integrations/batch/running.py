"""Running a coroutine to its end from a script and from inside a running loop alike."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


def from_anywhere(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine, which runs on a thread of its own.

    So it works in a notebook, whose loop is running already; and a signal, which Python raises on
    the main thread wherever that is, cannot be swallowed by the loop in the middle of a callback.
    Whoever is interrupted here ends the work and waits for its end.
    """
    result: Future[T] = Future()
    running: Future[Callable[[], None]] = Future()
    thread = threading.Thread(target=_run, args=(work, running, result), name="labeler-batches")
    thread.start()
    try:
        return result.result()
    except BaseException:
        # Its own error, or a signal; in the first case there is nothing left to end.
        with contextlib.suppress(RuntimeError):
            running.result()()
        raise
    finally:
        thread.join()


def _run(
    work: Coroutine[Any, Any, T], running: Future[Callable[[], None]], result: Future[T]
) -> None:
    async def until_cancelled() -> T:
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task is not None  # noqa: S101 - a coroutine on a loop runs in a task
        running.set_result(lambda: _cancel(loop, task))
        return await work

    try:
        result.set_result(asyncio.run(until_cancelled()))
    except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
        result.set_exception(error)


def _cancel(loop: asyncio.AbstractEventLoop, task: asyncio.Task[Any]) -> None:
    """End a task from another thread.

    Raises:
        RuntimeError: its loop has ended already.
    """
    loop.call_soon_threadsafe(task.cancel)
