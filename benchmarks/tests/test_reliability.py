"""The reliability runs at the smallest scale: what they count, not how fast anything is."""

from __future__ import annotations

import io
import json
import sys
from contextlib import nullcontext, redirect_stderr
from dataclasses import replace
from typing import Any

import pytest

import reliability_rates
from labeler import cli
from reliability import RUNS, run_one
from reliability_runs import QUICK
from reliability_server import Reliable
from reliability_serving import (
    Ended,
    Labeling,
    Manner,
    Server,
)

TINY = replace(QUICK, few=16, some=24, many=24, most=40, kills=1, large=20_000, outage=0.3)
SIMILAR = {"memory", "unrelated", "unrelated-many", "kills-blind", "two"}
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
