"""Runs a judge concurrently on an event loop of its own, behind plain futures.

The loop lives in its own thread, so that labeling works from a script, inside a running loop and
in a notebook alike. This is the only place with concurrency in it.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class Engine:
    """An event loop on its own thread that runs at most ``concurrency`` jobs at once."""

    def __init__(self, concurrency: int) -> None:
        if concurrency < 1:
            raise ValueError(f"concurrency must be 1 or more, got {concurrency}")
        self._loop = asyncio.new_event_loop()
        self._slots = asyncio.Semaphore(concurrency)
        self._running: set[Future[Any]] = set()
        self._admitting = True
        self._thread = threading.Thread(target=self._run, name="labeler-engine", daemon=True)
        self._thread.start()

    def submit(self, job: Callable[[], Coroutine[Any, Any, T]]) -> Future[T]:
        """Start a job as soon as a slot is free.

        A job that has not started when the engine stops is cancelled; one that has may finish.
        """
        future = asyncio.run_coroutine_threadsafe(self._bounded(job), self._loop)
        self._running.add(future)
        future.add_done_callback(self._running.discard)
        return future

    async def _bounded(self, job: Callable[[], Coroutine[Any, Any, T]]) -> T:
        async with self._slots:
            if not self._admitting:
                raise asyncio.CancelledError
            return await job()

    def stop(self, *, grace: float, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Admit nothing more, let running jobs finish within a time, then end the thread.

        Args:
            grace: seconds that running jobs are given; what they were paid for is not thrown away.
            last: run on the loop at the very end, such as closing a client.
        """
        self._admitting = False
        try:
            asyncio.run_coroutine_threadsafe(self._drain(grace), self._loop).result()
            asyncio.run_coroutine_threadsafe(last(), self._loop).result()
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    async def _drain(self, grace: float) -> None:
        # The drain itself is a task of this loop; everything else on it is a job.
        jobs = asyncio.all_tasks() - {asyncio.current_task()}
        if not jobs:
            return
        _, late = await asyncio.wait(jobs, timeout=grace)
        for job in late:
            job.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*late, return_exceptions=True)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
