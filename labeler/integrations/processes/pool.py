"""The parent of worker processes: sends them rows, and passes their outcomes on in order."""

from __future__ import annotations

import atexit
import math
import multiprocessing
import pickle
import signal
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import islice
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any, cast

from labeler.data.row_ids import identified
from labeler.data.rows import Row, Rows
from labeler.errors import FatalJudgeError, UsageError, error_of
from labeler.integrations.processes.channel import (
    Answer,
    Asked,
    Awaited,
    Channel,
    End,
    Ended,
    Notice,
    Question,
    Reached,
    Stop,
    ToParent,
)
from labeler.integrations.processes.worker import (
    LAST_SECONDS,
    Job,
    answer_to,
    block_outside_signals,
    work,
)
from labeler.integrations.ray.quotas import QuotaServer, WorkerQuotas
from labeler.judges.traffic.limits import Limits
from labeler.labeling.cache import Settled
from labeler.labeling.canaries import Canaries
from labeler.labeling.modes import ROWS
from labeler.labeling.options import LabelOptions
from labeler.labeling.retrievals import Retrievals
from labeler.labeling.run import Run, require_unchanged
from labeler.labeling.votes import VoteCounter
from labeler.labels.record import LabelRecord
from labeler.sentences.example import Example

LOST = "lost"
"""Reason of the error if a worker ended unasked."""
_DROP_SECONDS = 5.0
"""Seconds that a worker has to drop its requests."""
_CONTEXT = multiprocessing.get_context("spawn")


class ProcessPool:
    """Worker processes that share a store and the limits of one run.

    Args:
        options: of the run.
        canaries: collects the results of copies with planted sentences.
        votes: receives the votes on rows, if anybody counts them.

    Attributes:
        limits: those of the run in this process, which judges retrievals and no rows.

    Raises:
        UsageError: processes cannot share what the options name.
    """

    def __init__(
        self, options: LabelOptions, canaries: Canaries, votes: VoteCounter | None
    ) -> None:
        self._options = _sendable(options, canaries)
        self._canaries, self._votes = canaries, votes
        self._pause = _CONTEXT.Value("d", -math.inf, lock=False)
        limits, count = options.limits(), options.processes
        self._server = QuotaServer(limits, count)
        self._own = WorkerQuotas(limits, count, self._server, self._pause)
        self.limits: Limits = replace(limits, shared=self._own)
        self._lock = threading.Lock()
        self._news = threading.Event()
        self._noticed: Counter[str] = Counter()

    def in_order(
        self, run: Run, rows: Rows, *, expected: int, retrievals: Retrievals | None, width: int = 1
    ) -> Generator[Settled, None, None]:
        """Yield one outcome of each row, in the rows' order; the processes live as long.

        See :class:`labeler.labeling.pipeline.Elsewhere`.

        Raises:
            LabelerError: of a worker, or because one was lost; labels made until then are stored.
        """
        self._own.release()
        failed = retrievals.failed if retrievals else {}
        job = Job(self._options, list(islice(rows, ROWS)), failed)
        workers: list[_Worker] = []
        order: deque[_Worker] = deque()
        stop = partial(self._stop, workers, run)
        atexit.register(stop)
        read, most = 0, run.most_ahead(width)
        try:
            self._start(job, workers, run.notice)
            for row in identified(rows):
                read += 1
                worker = workers[_route(row) % len(workers)]
                worker.channel.put(Asked.of(row))
                order.append(worker)
                while order and (order[0].reached or len(order) >= most):
                    yield self._next(order, workers, run)
            for worker in workers:
                worker.channel.put(End())
            while order:
                yield self._next(order, workers, run)
            while not all(worker.over for worker in workers):
                self._wait(workers)
            for worker in workers:
                worker.raise_error()
            require_unchanged(read, expected)
        except FatalJudgeError:
            stop()
            # Earlier outcomes are paid for and passed on.
            while order and order[0].reached:
                yield self._next(order, workers, run)
            raise
        finally:
            atexit.unregister(stop)
            stop()

    def _start(self, job: Job, workers: list[_Worker], notice: Callable[[str], object]) -> None:
        """Start the processes; each has its share of the requests in flight."""
        concurrency, count = job.options.concurrency, job.options.processes
        resource_tracker.ensure_running()  # it unblocks signals when it starts
        with _outside_signals_blocked():
            for number in range(count):
                share = concurrency // count + (number < concurrency % count)
                own = replace(job, options=replace(job.options, concurrency=share))
                workers.append(_Worker(self, own, notice))

    def start(self, job: Job) -> tuple[Any, Any]:
        """Start a process; return it, and the connection to it."""
        ours, theirs = _CONTEXT.Pipe()
        process = _CONTEXT.Process(target=work, args=(theirs, job, self._pause))
        process.start()
        theirs.close()
        return process, ours

    def call(self, question: Question) -> Answer:
        """Call the quota server for a worker; on the thread that hears it."""
        with self._lock:
            return answer_to(question, self._server)

    def is_news(self, text: str, count: int) -> bool:
        """Return whether a message is not one that another worker has sent as often before.

        Args:
            text: the message.
            count: how often this worker has sent it.
        """
        with self._lock:
            self._noticed[text] = max(known := self._noticed[text], count)
            return count > known

    def wake(self) -> None:
        """Wake the main thread."""
        self._news.set()

    def _wait(self, workers: Sequence[_Worker]) -> None:
        """Wait for news.

        Raises:
            LabelerError: a worker has failed.
        """
        for worker in workers:
            worker.raise_error()
        self._news.wait()
        self._news.clear()

    def _next(self, order: deque[_Worker], workers: Sequence[_Worker], run: Run) -> Settled:
        """Wait for the next outcome, and report what came with it."""
        worker = order[0]
        if not worker.reached:
            worker.channel.put(Awaited(worker.read + 1))
        while not worker.reached:
            self._wait(workers)
        order.popleft()
        reached = worker.reached.popleft()
        worker.read += 1
        outcome = reached.outcome.read()
        if run.listener:
            for judged in reached.judged:
                run.listener.on_judged(judged.read() if judged else outcome)
        if reached.votes is not None and self._votes:
            votes = [vote.read() if vote else None for vote in reached.votes]
            self._votes.count(cast("list[LabelRecord | None]", votes))
        return Settled(outcome, reached.origin)

    def _stop(self, workers: list[_Worker], run: Run) -> None:
        """Have workers that are not over send nothing more, and wait for their end.

        An interrupt while waiting drops their requests at once.
        """
        try:
            self._end(workers, LAST_SECONDS)
        except BaseException:
            self._end(workers, _DROP_SECONDS)
            raise
        finally:
            while workers:
                worker = workers.pop()
                worker.close()
                self._settle(worker.ended or Ended(), run)
            if self.limits.budget is not None:
                # The money of a lost worker may be spent.
                final = self._server.final()
                run.budget.known, run.budget.doubtful = final.known, final.doubtful

    def _end(self, workers: Sequence[_Worker], seconds: float) -> None:
        """Stop workers, and wait for their end."""
        until = time.monotonic() + seconds
        for worker in workers:
            if not worker.over:
                worker.channel.put(Stop())
        while (left := until - time.monotonic()) > 0 and not all(one.over for one in workers):
            self._news.wait(left)
            self._news.clear()

    def _settle(self, ended: Ended, run: Run) -> None:
        """Count what a worker reports at its end."""
        run.budget.known += ended.known
        run.budget.doubtful += ended.doubtful
        if run.listener:
            for judged in ended.judged:
                run.listener.on_judged(judged.read())
        self._canaries.merge(ended.ordered, ended.plain, ended.failed)


class _Worker:
    """A worker process, as its parent sees it.

    Attributes:
        channel: to the process.
        reached: outcomes that came and are not read yet.
        read: how many were.
        ended: what it reported at its end.
        over: true if nothing more comes.
    """

    def __init__(self, pool: ProcessPool, job: Job, notice: Callable[[str], object]) -> None:
        self.reached: deque[Reached] = deque()
        self.read = 0
        self.ended: Ended | None = None
        self.over = False
        self._began = False
        self._pool, self._notice = pool, notice
        self._noticed: Counter[str] = Counter()
        self._process, connection = pool.start(job)
        self.channel = Channel(connection, ToParent, self._hear, self._lose)

    def raise_error(self) -> None:
        """Raise what ended the process early.

        Raises:
            LabelerError: its own error, or that it was lost.
        """
        if not self.over:
            return
        if self.ended is None:
            self._process.join(_DROP_SECONDS)
            raise _lost(self._process.exitcode, began=self._began)
        if self.ended.message:
            raise error_of(self.ended.ending, self.ended.message)

    def close(self) -> None:
        """End the process if it has not ended."""
        self._process.join(_DROP_SECONDS if self.over else 0)
        if self._process.exitcode is None:
            self._process.kill()
            self._process.join()
        self._process.close()

    def _hear(self, message: ToParent) -> None:
        self._began = True
        if isinstance(message, Question):
            self.channel.put(self._pool.call(message))
        elif isinstance(message, Notice):
            self._noticed[message.text] += 1
            if self._pool.is_news(message.text, self._noticed[message.text]):
                self._notice(message.text)
        elif isinstance(message, Ended):
            self.ended = message
        else:
            self.reached.append(message)
            self._pool.wake()

    def _lose(self) -> None:
        self.over = True
        self._pool.wake()


def _lost(exit_code: int | None, *, began: bool) -> FatalJudgeError:
    by = signal.Signals(-exit_code).name if exit_code and exit_code < 0 else f"code {exit_code}"
    remedy = "run it again to go on, what was labeled is stored"
    if not began:
        remedy = "a script does this below 'if __name__ == \"__main__\":', which processes need"
    return FatalJudgeError(
        f"a worker process ended unasked, by {by}: nothing more is sent; {remedy}", reason=LOST
    )


def _route(row: Row) -> int:
    """Return a number by which rows with the same label go to the same worker."""
    content = row.content
    if isinstance(content, Example):
        return hash((content.question, content.response))
    return hash(row.where)


def _sendable(options: LabelOptions, canaries: Canaries) -> LabelOptions:
    """Return options that can be sent to another process.

    Raises:
        UsageError: processes cannot share what they name.
    """
    count = options.processes
    if not isinstance(options.store, str | Path):
        raise UsageError(f"{count} processes share a store on disk: name a folder as the store")
    if options.concurrency < count:
        raise UsageError(
            f"{count} processes with at most {options.concurrency} requests in flight: give a "
            f"--concurrency of {count} or more, or fewer --processes"
        )
    sent = replace(
        options,
        canaries=canaries.share,
        canary_seed=canaries.seed,
        votes=None,
        listener=None,
        on_event=None,
    )
    try:
        pickle.dumps(sent)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise UsageError(
            f"each of {count} processes makes its own judge, and what was given cannot be sent to "
            f"another process ({error}): name the judge and its settings, or use a function that "
            "stands at the top of a module"
        ) from error
    return sent


@contextmanager
def _outside_signals_blocked() -> Iterator[None]:
    """Start processes that never hear of signals from outside; here they come afterwards."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    block_outside_signals()
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
