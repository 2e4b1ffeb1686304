"""The event loop behind the pipeline: bounded, stoppable, and gone afterwards."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError

import pytest

from labeler.engine import Engine
from labeler.errors import UsageError


@pytest.fixture
def farewells() -> list[str]:
    """What was done at the very end."""
    return []


@pytest.fixture
def engine(farewells: list[str]) -> Iterator[Engine]:
    """An engine of two slots, stopped after the test if the test did not."""
    made = Engine(2)
    yield made
    if not farewells:
        stop(made, farewells)


def stop(engine: Engine, farewells: list[str], grace: float = 10.0) -> None:
    """Stop an engine and note its farewell."""

    async def last() -> None:
        farewells.append("closed")

    engine.stop(grace=grace, last=last)


async def answer(value: int, seconds: float = 0.0) -> int:
    """A job."""
    await asyncio.sleep(seconds)
    return value


def test_results_and_errors_reach_the_caller(engine: Engine) -> None:
    """Through plain futures."""

    async def fail() -> int:
        raise ValueError("broken")

    assert [
        f.result() for f in [engine.submit(lambda: answer(1)), engine.submit(lambda: answer(2))]
    ] == [1, 2]
    with pytest.raises(ValueError, match="broken"):
        engine.submit(fail).result()


def test_stopping_lets_running_jobs_finish_and_starts_no_others(
    engine: Engine, farewells: list[str]
) -> None:
    """What was sent is paid for; what was not is not sent."""
    jobs = [engine.submit(lambda: answer(7, 0.2)) for _ in range(6)]
    time.sleep(0.05)
    stop(engine, farewells)
    assert [job.result() for job in jobs[:2]] == [7, 7]
    for job in jobs[2:]:
        with pytest.raises(CancelledError):
            job.result()
    assert farewells == ["closed"]


def test_patience_ends(engine: Engine, farewells: list[str]) -> None:
    """A job that outlives the grace is cancelled."""
    job = engine.submit(lambda: answer(7, 60))
    time.sleep(0.05)
    stop(engine, farewells, grace=0.05)
    with pytest.raises(CancelledError):
        job.result()


def test_nothing_is_left(farewells: list[str]) -> None:
    """No thread, whether it worked or not."""
    before = threading.active_count()
    engine = Engine(1)
    stop(engine, farewells)
    assert threading.active_count() == before


def test_no_slots_no_engine() -> None:
    """At least one job must be able to run."""
    with pytest.raises(UsageError, match="1 or more"):
        Engine(0)
