"""Whole runs through bad weather: nothing is lost, nothing is paid twice, and they end."""

from __future__ import annotations

import asyncio
import os
import random
import re
import resource
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import labeler
from labeler.errors import FatalJudgeError
from labeler.judges import concurrency
from labeler.plugins.batch.client import OpenAIBatches
from labeler.plugins.batch.folder import pending_keys
from labeler.store import MemoryStore
from labeler.store.disk import DiskStore
from support.command import Command
from support.watching import Watch
from wire.connections import Wire
from wire.dialects import nested
from wire.provider import Behavior, Call, Provider, answers
from wire.runs import (
    KEY,
    Running,
    brief,
    comes_true,
    labeling,
    process,
    reasons,
    row_file,
    rows,
    run,
    running,
)

AWAY = "the server does not answer: asking with one request at a time until it does"
BACK = "the server answers again"
SLOWER = "the server limits the rate: continuing with 8 requests"
BUSY = nested(503, "The request queue is full.")
WAITS = "another run is labeling some of these rows: waiting for its labels"


def stored(folder: Path) -> int:
    """How many labels a store holds."""
    with DiskStore(folder, create=False) as store:
        return len(store)


class Held:
    """Answers wait until they are let go; then they, and all later ones, are good.

    Used as the script of a provider.
    """

    def __init__(self) -> None:
        self.going = threading.Event()

    def __call__(self, _: Call) -> Behavior:
        """The same for every call."""
        return self._behave

    async def _behave(self, call: Call, wire: Wire) -> None:
        while not self.going.is_set():
            await wire.pause(0.05)
        await answers()(call, wire)


# Outages


@pytest.fixture
def quick_breaker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Probes that follow one another at once."""
    monkeypatch.setattr(concurrency, "_FIRST_PAUSE", 0.02)
    monkeypatch.setattr(concurrency, "_LONGEST_PAUSE", 0.05)


@pytest.mark.usefixtures("quick_breaker")
@pytest.mark.parametrize(
    ("kind", "concurrency", "calls"),
    [("503", 16, 60), ("reset", 16, 60), ("html", 16, 60), (BUSY, 16, 60), ("503", 1, 8)],
)
def test_an_outage_loses_no_record(kind: str | Behavior, concurrency: int, calls: int) -> None:
    """The run says once that it waits, and once that it goes on."""
    watch = Watch()
    with Provider(lambda call: kind if 20 <= call.number < 20 + calls else None) as provider:
        # One request at a time is the hardest: a record must not use its attempts up alone.
        pauses = {"sleep": asyncio.sleep} if concurrency == 1 else {}
        outcomes = run(provider, rows(60), watch=watch, concurrency=concurrency, judge=pauses)
    assert reasons(outcomes) == ["label"] * 60
    assert set(provider.paid.values()) == {1}
    assert len(provider.calls) == 60 + calls
    told = [text for text in watch.notices if not text.startswith(SLOWER)]
    assert [text.startswith((AWAY, BACK)) for text in told] == [True, True]


def test_a_busy_server_gets_fewer_requests_at_once() -> None:
    """As after rate limits: it is not away while it answers some."""
    watch = Watch()
    with Provider(lambda call: BUSY if call.number in range(20, 32) else None, latency=0.02) as it:
        assert reasons(run(it, rows(60), watch=watch)) == ["label"] * 60
    assert [text.startswith(SLOWER) for text in watch.notices] == [True]


def test_an_outage_without_end_stops_the_run_and_keeps_what_there_is() -> None:
    """Past the longest that is waited out, ten records are given up, not a hundred thousand."""
    store = MemoryStore()
    with (
        Provider(lambda call: "503" if call.number > 11 else None) as provider,
        pytest.raises(FatalJudgeError, match="the server is up") as caught,
    ):
        run(provider, rows(2000), store=store, max_outage=0.05, concurrency=4)
    assert caught.value.reason == "unreachable"
    assert len(store) == 10
    assert len(provider.calls) < 150


# Several runs on one store


@contextmanager
def two_runs(provider: Provider, folder: Path, given: Path) -> Iterator[tuple[Running, Running]]:
    """Two runs of the same rows; the first has asked, and the second waits for its answers."""
    asking = [process(labeling(provider, given, output=name)) for name in ("a.jsonl", "b.jsonl")]
    with running(asking[0], folder, "a") as first:
        assert comes_true(lambda: bool(provider.calls), 60)
        with running(asking[1], folder, "b") as second:
            assert second.says(WAITS)
            yield first, second


def test_two_processes_pay_for_each_record_once(tmp_path: Path) -> None:
    """Both end well with all labels, and the one that waits says so."""
    given, held = row_file(tmp_path, rows(60)), Held()
    with Provider(held) as provider, two_runs(provider, tmp_path, given) as (first, second):
        held.going.set()
        ends = [first.end(), second.end()]
    assert [end.code for end in ends] == [0, 0]
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()
    assert len(provider.paid) == 60
    assert set(provider.paid.values()) == {1}
    bought = [int(n) for end in ends for n in re.findall(r"(\d+) labeled by", end.err)]
    requests = [int(n) for end in ends for n in re.findall(r"(\d+) requests", end.err)]
    assert sum(bought) == sum(requests) == 60
    assert sum(end.err.count(WAITS) for end in ends) >= 1


def test_the_rows_of_a_run_that_was_killed_are_taken_over(tmp_path: Path) -> None:
    """Whoever waits for them goes on at once, and pays once for each; a signal ends the wait."""
    given, held = row_file(tmp_path, rows(30)), Held()
    with Provider(held) as provider, two_runs(provider, tmp_path, given) as (first, second):
        with running(process(labeling(provider, given, output="c.jsonl")), tmp_path, "c") as third:
            assert third.says(WAITS)
            third.process.send_signal(signal.SIGTERM)
            assert third.process.wait(timeout=30) == 128 + signal.SIGTERM
        first.process.send_signal(signal.SIGKILL)
        first.process.wait(timeout=60)
        held.going.set()
        done = second.end()
    assert done.code == 0
    assert "30 labeled by openai/m, 0 from the store" in done.err
    assert len((tmp_path / "b.jsonl").read_text().splitlines()) == 30
    assert set(provider.paid.values()) == {1}


def test_a_batch_beside_a_run_buys_nothing_twice(tmp_path: Path, labeler_command: Command) -> None:
    """It leaves out what the run has asked for; the run leaves out what the batch has."""
    given, held = row_file(tmp_path, rows(40)), Held()
    submit = ["batch", "submit", given, "--model", "m"]
    with Provider(held) as provider:
        asking = process(labeling(provider, given, "--concurrency", 2))
        with running(asking, tmp_path) as beside:
            assert comes_true(lambda: bool(provider.calls), 60)
            assert labeler_command(*submit, "--base-url", provider.url)[0] == 0
            waiting = len(pending_keys(tmp_path / ".labeler"))
            held.going.set()
            done = beside.end()
        assert done.code == 1
        assert f"{waiting} failed (in_batch {waiting})" in done.err
        service = OpenAIBatches(api_key=KEY, base_url=provider.url, sleep=brief)
        labeler.collect_batches(service, tmp_path / ".labeler", wait=True)
        assert labeler_command(*labeling(provider, given))[0] == 0
    assert 0 < waiting < 40
    assert len(provider.paid) == 40
    assert set(provider.paid.values()) == {1}


def test_a_signal_ends_the_wait_for_a_server_that_is_away(
    tmp_path: Path, labeler_command: Command
) -> None:
    """Neither the pause between probes nor that of a record is waited out."""
    given = row_file(tmp_path, rows(40))

    def away(call: Call) -> str | None:
        if call.number == 13:  # eight failed before
            os.kill(os.getpid(), signal.SIGTERM)
        return "503" if call.number > 5 else None

    with Provider(away) as provider:
        code, _, err = labeler_command(*labeling(provider, given, "--concurrency", 4))
        assert (code, AWAY in err, "Traceback" in err) == (128 + signal.SIGTERM, True, False)
        assert stored(tmp_path / ".labeler") == provider.paid.total() == 4


# Trouble with the store


def bulky(count: int) -> list[dict[str, Any]]:
    """Rows that do not pack well."""
    dice = random.Random(7)  # noqa: S311 - text, no secret
    return [{**row, "documents": [dice.randbytes(8000).hex()]} for row in rows(count)]


@pytest.mark.parametrize("is_left", [False, True])
def test_a_disk_that_fills_up_loses_nothing(
    tmp_path: Path, labeler_command: Command, is_left: bool
) -> None:
    """The run says what to do and waits; once there is room it goes on, and pays once for each.

    One Ctrl-C is enough to leave it: it says what is lost, and the next run pays for that alone.
    """
    given = row_file(tmp_path, bulky(120))
    with Provider() as provider:
        asking = labeling(provider, given, "--concurrency", 4, output="/dev/null")
        with running(narrow(asking), tmp_path) as full:
            assert full.says("free space, quota, limit on file sizes")
            if is_left:
                full.process.send_signal(signal.SIGINT)
            else:
                no_limit = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
                assert 0 < stored(tmp_path / ".labeler") < 120
                resource.prlimit(full.process.pid, resource.RLIMIT_FSIZE, no_limit)
            done = full.end()
        assert (done.code, "Traceback" in done.err) == (130 if is_left else 0, False)
        kept, before = stored(tmp_path / ".labeler"), len(provider.calls)
        assert ("lost labels: " in done.err) == (kept < provider.paid.total())
        assert (kept < 120) == is_left
        assert labeler_command(*asking)[0] == 0
        assert len(provider.calls) - before == 120 - kept


@pytest.mark.parametrize(("limit", "code"), [("-S -n 100", 0), ("-n 100", 2)])
def test_a_run_may_open_the_files_that_its_requests_need(
    tmp_path: Path, limit: str, code: int
) -> None:
    """It raises its own limit; where that is not allowed, it does not begin."""
    with Provider() as provider:
        asking = process(labeling(provider, row_file(tmp_path, rows(2)), "--concurrency", 60))
        limited = ["/bin/bash", "-c", f'ulimit {limit}; exec "$@"', "bash", *asking]
        with running(limited, tmp_path) as run_:
            assert run_.end().code == code
    assert len(provider.calls) == 2 - code


def narrow(arguments: list[str]) -> list[str]:
    """A command that can write no file longer than 700 kB."""
    return ["/bin/bash", "-c", 'ulimit -S -f 700; exec "$@"', "bash", *process(arguments)]
