"""The reliability runs at the smallest scale: what they count, not how fast anything is."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from contextlib import nullcontext, redirect_stderr
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import labeler
import reliability
import reliability_rates
from labeler import cli
from reliability import RUNS, run_one, table, without_verdict
from reliability_runs import QUICK, Finding, Scale, at_most, exactly
from reliability_server import Reliable
from reliability_serving import (
    Ended,
    Labeling,
    Manner,
    Server,
    records,
)

TINY = replace(QUICK, few=16, some=24, many=24, most=40, kills=1, large=20_000, outage=0.3)
SIMILAR = {"throughput", "memory", "unrelated", "unrelated-many", "kills-blind", "two"}
"""Runs of the same parts as another one, and those of times alone."""


class InTurn(nullcontext[None]):
    """Carries out in this thread, one after another, what the runs have threads for."""

    def __enter__(self) -> Any:
        """Be the pool."""
        return self

    map = staticmethod(map)


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither servers nor commands are processes, but for the commands that are killed."""
    serving: dict[Server, Reliable] = {}

    def entered(server: Server) -> Server:
        serving[server] = Reliable(Manner(**json.loads(server._command[-1])))
        server.url = serving[server].__enter__().url
        return server

    def run(command: Labeling, *options: object) -> Ended:
        monkeypatch.setattr(sys, "argv", ["labeler", *command.arguments(*options)])
        with redirect_stderr(io.StringIO()) as said:
            return Ended(cli.run(), 1, said.getvalue())

    monkeypatch.setattr(Server, "__enter__", entered)
    monkeypatch.setattr(Server, "__exit__", lambda server, *_: serving.pop(server).__exit__())
    monkeypatch.setattr(Labeling, "run", run)
    monkeypatch.setattr(reliability_rates, "ThreadPoolExecutor", InTurn)


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.skipif(sys.platform == "win32", reason="there is no kill -9")
@pytest.mark.parametrize("name", sorted(set(RUNS) - SIMILAR))
def test_every_goal_that_is_no_matter_of_time_is_met(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each run ends, and what it counts is as it should be whatever the scale."""
    first = dict([*reliability_rates.TELLINGS.items()][:1])
    monkeypatch.setattr(reliability_rates, "TELLINGS", first)
    findings = run_one(name, TINY)
    counted = [finding for finding in findings if not finding.timing and finding.met is not None]
    assert counted
    assert not [finding for finding in counted if not finding.met]


@pytest.mark.usefixtures("in_this_process")
def test_both_clients_send_one_request_a_record() -> None:
    """Their figures are compared, so that they must do the same; the run itself checks it."""
    rate, cpu = run_one("throughput", replace(TINY, many=8))
    assert rate.timing
    assert cpu.met is None
    assert "server" in cpu.figure


@pytest.mark.usefixtures("in_this_process")
def test_the_server_notes_requests_after_a_good_answer(tmp_path: Path) -> None:
    """The same record asked for in two stores is asked for again."""
    rows = list(records(3))
    with Server(Manner(latency=0.0)) as server:
        judge = labeler.OpenAIJudge("m", api_key="none", base_url=server.url)
        for store in ("one", "two"):
            assert not labeler.label(rows, judge=judge, store=tmp_path / store).failures
        stats = server.settled()
    assert (stats["calls"], stats["again"], stats["paid"]["duplicates"]) == (6, 3, 3)


def test_a_run_that_breaks_is_a_missed_goal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its line says what happened, and the others go on."""

    def breaks(_: Scale, __: Path) -> Iterator[Finding]:
        raise TimeoutError("nothing happened")

    monkeypatch.setitem(RUNS, "kills", breaks)
    (finding,) = run_one("kills", TINY)
    assert (finding.met, finding.figure) == (False, "TimeoutError: nothing happened")


def test_a_missed_goal_is_the_exit_code(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The page is written all the same."""
    monkeypatch.setitem(RUNS, "key", lambda *_: iter([exactly("requests", 2, 1)]))
    page = tmp_path / "docs" / "page.md"
    monkeypatch.setattr(sys, "argv", ["reliability.py", "--only", "key", "--write", str(page)])
    assert reliability.main() == 1
    assert "| requests | 2 | 1 | **no** |" in page.read_text(encoding="utf-8")
    assert "`python benchmarks/reliability.py --only key`" in capsys.readouterr().out


def test_times_of_a_small_scale_are_held_to_no_goal() -> None:
    """Otherwise a quick look would end as a failure on a slow machine."""
    slow, wrong = at_most("", 9, 2, timing=True), at_most("", 9, 2)
    assert without_verdict(slow).met is None
    assert without_verdict(wrong).met is False
    assert any("⏱" in line for line in table([slow]))
