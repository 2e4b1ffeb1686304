"""Time of an ensemble, next to one run with as many judge calls: votes run side by side.

``python benchmarks/votes.py`` labels 160 rows once, then 32 rows by five votes. Every answer of the
judge takes 0.2 s. The ratio should be 1.3 at most.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Any

import labeler
from labeler.judges.embedded import EmbeddedJudge
from labeler.judges.task import JudgeReply, Task

ROWS, VOTES = 32, 5
CONCURRENCY = 64
LATENCY = 0.2
"""Seconds of each answer."""
MOST = 1.3
REPEATS = 3


class SlowJudge(EmbeddedJudge):
    """The embedded judge behind a slow line."""

    async def label(self, task: Task) -> JudgeReply:
        """Answer after the latency."""
        await asyncio.sleep(LATENCY)
        return await super().label(task)


def rows(count: int) -> list[dict[str, Any]]:
    """Make rows with content of their own."""
    return [
        {
            "id": f"r{n}",
            "question": f"What is item {n}?",
            "documents": [f"Item {n} is a lamp. It is red.", "Chairs are made of wood."],
            "response": f"Item {n} is a lamp. It is blue.",
        }
        for n in range(count)
    ]


def seconds(label: Callable[[], Iterable[object]], expected: int) -> float:
    """Time one run."""
    began = time.perf_counter()
    if sum(1 for _ in label()) != expected:
        raise SystemExit("the run lost rows")
    return time.perf_counter() - began


def run(count: int, votes: int) -> Callable[[], Iterable[object]]:
    """Return a run over rows with so many votes on each."""
    given = rows(count)
    return lambda: labeler.iter_labels(
        given,
        judge=SlowJudge(),
        repeat=votes,
        store=labeler.MemoryStore(),
        concurrency=CONCURRENCY,
    )


def ratio() -> float:
    """Print the best time of both kinds of run and return their ratio."""
    seconds(run(1, 1), 1)  # loads modules
    once = min(seconds(run(ROWS * VOTES, 1), ROWS * VOTES) for _ in range(REPEATS))
    voted = min(seconds(run(ROWS, VOTES), ROWS) for _ in range(REPEATS))
    print(f"{ROWS * VOTES} rows once: {once:.2f} s")
    print(f"{ROWS} rows, {VOTES} votes each: {voted:.2f} s")
    print(f"ratio {voted / once:.2f} (at most {MOST})")
    return voted / once


if __name__ == "__main__":
    raise SystemExit(ratio() > MOST)
