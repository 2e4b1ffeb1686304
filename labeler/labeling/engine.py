"""An event loop in a thread of its own, behind plain futures.

Labeling therefore works in a script, inside a running loop, and in a notebook.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any, NoReturn, TypeVar

from labeler.judges.pace import CURRENT, Pace, Stopped

T = TypeVar("T")

_AHEAD = 16
"""Unfinished jobs for each request in flight: no place idles while some jobs pause or wait."""
_READY, _FEWEST_READY = 2, 32
"""Jobs that only wait for a slot, for each request in flight, and at least: to prepare more of them
takes the interpreter from the requests in flight, most of all at the start."""


def succeeded(future: Future[Any]) -> bool:
    """Return whether a job has a result."""
    return future.done() and not future.cancelled() and future.exception() is None


class Engine:
    """An event loop in its own thread.

    A job that raises stops all jobs: errors of one record must not be raised here. Jobs limit their
    concurrency themselves, by taking a slot of their traffic control.

    Args:
        traffic: traffic control of the jobs; ``current()`` returns it within a job.
        grace: seconds that running jobs may take when the engine stops: they are paid for.
        last: coroutine function that runs on the loop at the very end, such as to close clients.
        after: called when all is done, such as to close the store that jobs write to.
    """

    def __init__(
        self,
        traffic: Pace,
        *,
        grace: float,
        last: Callable[[], Awaitable[None]],
        after: Callable[[], None] = lambda: None,
    ) -> None:
        self._traffic = traffic
        self._grace, self._last, self._after = grace, last, after
        self._loop = asyncio.new_event_loop()
        self._submitted = self._started = self._ended = 0
        self._stopped = False
        self._jobs: set[asyncio.Task[Any]] = set()
        self._failed: Future[NoReturn] = Future()
        self._thread = threading.Thread(target=self._run, name="labeler-engine", daemon=True)
        self._thread.start()
        # Python closes an abandoned generator only after it has stopped all threads.
        atexit.register(self.stop)

    def submit(
        self, job: Callable[[], Coroutine[Any, Any, T]], traffic: Pace | None = None
    ) -> Future[T]:
        """Start a job; waits while very many are unfinished, or many wait for a slot.

        Args:
            job: makes the coroutine.
            traffic: the job's traffic control, if it is not the engine's.

        Raises:
            Exception: that of the first job that failed.
        """
        traffic = traffic or self._traffic
        while not self._has_room(traffic):
            self._traffic.moved.wait()
        self._raise_failure()
        self._submitted += 1
        return asyncio.run_coroutine_threadsafe(self._watched(job, traffic), self._loop)

    def _has_room(self, traffic: Pace) -> bool:
        """Return whether another job may start; if not, ``moved`` is set when that may change."""
        self._traffic.moved.clear()
        ready = self._submitted - self._started + traffic.ready
        return self._traffic.stopping.is_set() or (
            ready < max(_FEWEST_READY, _READY * traffic.concurrency)
            and self._submitted - self._ended < _AHEAD * self._traffic.concurrency
        )

    def wait(self, future: Future[T]) -> T:
        """Return the result of a job.

        Raises:
            Exception: that of the first job that failed, if this one has no result.
        """
        if not future.done():
            either: list[Future[Any]] = [future, self._failed]
            wait(either, return_when=FIRST_COMPLETED)
        if not succeeded(future):
            self._raise_failure()
        return future.result()

    @property
    def failed(self) -> bool:
        """True if a job raised, which stopped all jobs."""
        return self._failed.done()

    def wait_for_any(self, futures: Iterable[Future[Any]]) -> bool:
        """Wait until one more of several jobs is done; return False if that is not to come."""
        unfinished = [future for future in futures if not future.done()]
        if self.failed or not unfinished:
            return False
        wait([*unfinished, self._failed], return_when=FIRST_COMPLETED)
        return True

    def stop(self) -> None:
        """Start no more jobs, let running ones finish, then end the thread. Idempotent.

        An interrupt while waiting cancels running jobs at once.
        """
        if self._stopped:
            return
        if threading.current_thread() is self._thread:
            # The garbage collector may close an abandoned run in this thread, which cannot wait
            # for itself.
            threading.Thread(target=self.stop, name="labeler-stop").start()
            return
        self._stopped = True
        atexit.unregister(self.stop)
        try:
            self._call(self._drain(self._grace))
        except BaseException:
            self._call(self._drain(0))
            raise
        finally:
            # A client that cannot be closed does not affect the labels.
            with contextlib.suppress(Exception):
                self._call(self._finish())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
            self._after()

    def _call(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _raise_failure(self) -> None:
        if self._failed.done():
            self._failed.result()

    async def _watched(self, job: Callable[[], Coroutine[Any, Any, T]], traffic: Pace) -> T:
        self._started += 1
        self._traffic.moved.set()
        stopping = self._traffic.stopping
        if stopping.is_set():
            raise asyncio.CancelledError
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a coroutine on a loop runs in a task
        self._jobs.add(task)
        CURRENT.set(traffic)
        try:
            return await job()
        except (asyncio.CancelledError, Stopped) as error:
            if not stopping.is_set():
                self._fail(RuntimeError("a job cancelled itself"))
            raise asyncio.CancelledError from error
        except Exception as error:
            self._fail(error)
            raise
        except BaseException as error:
            # asyncio would let it end the loop and all futures.
            self._fail(RuntimeError(f"a job raised {type(error).__name__}"))
            raise asyncio.CancelledError from error
        finally:
            self._jobs.discard(task)
            self._ended += 1
            self._traffic.moved.set()

    def _fail(self, error: Exception) -> None:
        self._traffic.stop()
        if not self._failed.done():
            self._failed.set_exception(error)

    async def _drain(self, grace: float) -> None:
        self._traffic.stop()
        if not self._jobs:
            return
        _, late = await asyncio.wait(set(self._jobs), timeout=grace)
        for job in late:
            job.cancel()
        await asyncio.gather(*late, return_exceptions=True)

    async def _finish(self) -> None:
        try:
            await self._last()
        finally:
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
