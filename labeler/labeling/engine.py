"""An event loop in a thread of its own: jobs run there, and the caller's thread waits for them.

Labeling therefore works in a script, inside a running loop, and in a notebook.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import threading
import weakref
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from labeler.judges.pace import CURRENT, Pace, Stopped

T = TypeVar("T")
Work = Callable[[], Coroutine[Any, Any, T]]
"""Makes a coroutine."""

_AHEAD = 16
"""Unfinished jobs for each request in flight: no place idles while some jobs pause or wait."""
_READY, _FEWEST_READY = 2, 32
"""Jobs that only wait for a slot, for each request in flight, and at least."""
_LATEST = 0.02
"""Seconds until the caller's thread goes on at the latest. Woken for each job, it would take the
interpreter from the requests in flight; it goes on sooner where half of the room is free."""


@dataclass(eq=False, slots=True)
class Job(Generic[T]):
    """A coroutine that runs on the engine's loop.

    Attributes:
        succeeded: True once it has a result.
        result: the result.
    """

    succeeded: bool = False
    result: T = field(init=False, repr=False)


_RUNNING = weakref.WeakSet["Engine"]()


def hurry() -> None:
    """Let no engine of this process wait for its running jobs; a signal's handler may call this."""
    for engine in tuple(_RUNNING):
        engine.hurry()


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
        self._most_ready = max(_FEWEST_READY, _READY * traffic.concurrency)
        self._grace, self._last, self._after = grace, last, after
        self._loop = asyncio.new_event_loop()
        self._handed = deque[tuple[Job[Any], Work[Any]]]()
        """Jobs that the caller has handed over to the loop."""
        self._is_starting = False
        self._submitted = self._started = self._ended = 0
        self._tasks: set[asyncio.Task[Any]] = set()
        self._doubts: dict[asyncio.Future[None], Callable[[], bool]] = {}
        """Jobs that wait for others; see :meth:`until`."""
        self._waits: str | None = None
        """Why the caller's thread waits: for ``room`` or an ``end``."""
        self._asleep = threading.Lock()
        """Held while the caller's thread has to wait. The wait of an event raises an error of its
        own lock if it is interrupted twice."""
        self._wake_up: asyncio.TimerHandle | None = None
        self._error: Exception | None = None
        self._stopped = False
        traffic.moved = self._moved
        self._thread = threading.Thread(target=self._run, name="labeler-engine", daemon=True)
        self._thread.start()
        # Python closes an abandoned generator only after it has stopped all threads.
        atexit.register(self.stop)
        _RUNNING.add(self)

    def submit(self, work: Work[T]) -> Job[T]:
        """Start a job.

        Raises:
            Exception: that of the first job that failed.
        """
        self._raise_failure()
        job: Job[T] = Job()
        self._submitted += 1
        self._handed.append((job, work))
        if not self._is_starting:
            self._is_starting = True
            self._loop.call_soon_threadsafe(self._start)
        return job

    @property
    def room(self) -> int:
        """Jobs that may be submitted: not many more than soon begin."""
        ready = self._submitted - self._started + self._traffic.ready
        unfinished = self._submitted - self._ended - len(self._doubts)
        return min(self._most_ready - ready, _AHEAD * self._traffic.concurrency - unfinished)

    def wait_for(self, job: Job[Any], *, or_room: bool = False) -> None:
        """Wait until a job has a result, or there is room for another one.

        Raises:
            Exception: that of the first job that failed, if this one has no result.
        """
        self._waits = "room" if or_room else "end"
        try:
            while True:
                self._asleep.acquire(blocking=False)
                if job.succeeded or (or_room and self.room > 0):
                    return
                self._raise_failure()
                if self._doubts:
                    self._loop.call_soon_threadsafe(self._moved)
                self._asleep.acquire()
        finally:
            self._waits = None

    def wait(self, job: Job[T]) -> T:
        """Return the result of a job; see :meth:`wait_for`."""
        if not job.succeeded:
            self.wait_for(job)
        return job.result

    async def all_of(self, parts: Sequence[Work[T]]) -> list[T]:
        """Run the parts of a job at once, within the job; an error of one stops all jobs."""
        return await asyncio.gather(*(self._task(self._watched(part)) for part in parts))

    async def until(self, is_known: Callable[[], bool]) -> None:
        """Wait, at the end of a job, until something is known that other jobs may show.

        The wait ends too if the run stops, or if all jobs wait like this and the caller for them.
        """
        turn = self._loop.create_future()
        self._doubts[turn] = is_known
        self._loop.call_soon(self._moved)
        try:
            await self._traffic.until(turn)
        finally:
            del self._doubts[turn]

    def drain(self) -> None:
        """Start no more jobs, and let running ones finish."""
        if not self._stopped:
            self._call(self._drain())

    def stop(self) -> None:
        """Start no more jobs, let running ones finish, then end the thread. Idempotent.

        An interrupt while waiting cancels running jobs at once.
        """
        if self._stopped or not self._thread.is_alive():  # a forked process lacks it
            return
        if threading.current_thread() is self._thread:
            # The garbage collector may close an abandoned run in this thread, which cannot wait
            # for itself.
            threading.Thread(target=self.stop, name="labeler-stop").start()
            return
        self._stopped = True
        atexit.unregister(self.stop)
        try:
            self._call(self._drain())
        except BaseException:
            self.hurry()
            self._call(self._drain())
            raise
        finally:
            # A client that cannot be closed does not affect the labels.
            with contextlib.suppress(Exception):
                self._call(self._finish())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
            self._after()

    def hurry(self) -> None:
        """Cancel running jobs at once if the engine stops, or when it does."""
        self._grace = 0.0
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._cancel)

    def _call(self, work: Coroutine[Any, Any, None]) -> None:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        running = threading.Lock()
        running.acquire()
        future.add_done_callback(lambda _: running.release())
        running.acquire()  # a future waits as an event does: see above
        future.result()

    def _raise_failure(self) -> None:
        if self._error is not None:
            raise self._error
        if self._traffic.stopping.is_set():
            raise CancelledError

    def _start(self) -> None:
        """Start a job, and others in later rounds of the loop: each may take long at first."""
        self._is_starting = False
        if self._handed and not self._traffic.stopping.is_set():
            self._is_starting = True
            self._task(self._finished(*self._handed.popleft()))
            self._loop.call_soon(self._start)

    def _task(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _finished(self, job: Job[T], work: Work[T]) -> None:
        """Run a job; its error is the engine's."""
        self._started += 1
        self._moved()
        with contextlib.suppress(Exception, asyncio.CancelledError):
            job.result = await self._watched(work)
            job.succeeded = True
        self._ended += 1
        self._moved()

    async def _watched(self, work: Work[T]) -> T:
        stopping = self._traffic.stopping
        if stopping.is_set():
            raise asyncio.CancelledError
        CURRENT.set(self._traffic)
        try:
            return await work()
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

    def _fail(self, error: Exception) -> None:
        self._error = self._error or error
        self._traffic.stop()

    def _moved(self) -> None:
        """Wake the jobs and the caller's thread where they wait for what has changed."""
        unfinished = self._submitted - self._ended
        room = self.room if self._waits == "room" else 0
        is_over = self._waits is not None and room <= 0 and len(self._doubts) == unfinished
        for turn, is_known in self._doubts.items():
            if (is_over or is_known()) and not turn.done():
                turn.set_result(None)
        if self._waits is None or not self._asleep.locked():
            return
        if room >= self._most_ready // 2 or not unfinished or self._traffic.stopping.is_set():
            self._wake()
        elif self._wake_up is None:
            self._wake_up = self._loop.call_later(_LATEST, self._wake)

    def _wake(self) -> None:
        if self._wake_up is not None:
            self._wake_up.cancel()
            self._wake_up = None
        if self._asleep.locked():
            self._asleep.release()

    async def _drain(self) -> None:
        self._traffic.stop()
        if not self._tasks:
            return
        _, late = await asyncio.wait(set(self._tasks), timeout=self._grace)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)

    def _cancel(self) -> None:
        if self._traffic.stopping.is_set():
            for task in self._tasks:
                task.cancel()

    async def _finish(self) -> None:
        try:
            await self._last()
        finally:
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
