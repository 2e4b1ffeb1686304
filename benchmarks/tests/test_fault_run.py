"""The fault run's server, its counting, and a run at the smallest scale."""

from __future__ import annotations

from pathlib import Path

import pytest

import labeler
from fault_run import Server, Weather, Work, label_run, receiving
from labeler.store import MemoryStore
from peers import environments
from peers.records import made_up


def test_a_fault_run_accounts_for_every_record() -> None:
    """Three calls of ten go wrong: each record is a label or a true failure, and twice alike."""
    # None of these is asked again after a pause, so that the test takes no longer than it must.
    kinds = ("truncated", "refusal", "filtered", "malformed", "unknown-key")
    weather = Weather(share=0.3, seed=3, latency=0.0, kinds=kinds)
    work = Work(made_up(24), concurrency=8, timeout=60)
    run = label_run(work, weather)
    assert len(run.values) == 24
    assert 0 < run.true_failures == 24 - len(run.valid)
    assert (run.false_failures, run.asked_again) == (0, 0)
    assert (run.unsaved, run.numbers_missing) == (0, 0)
    again = label_run(work, weather)
    assert (again.values, again.calls) == (run.values, run.calls)


def test_requests_after_a_whole_good_answer_are_counted() -> None:
    """A second store buys all again; only the client knows that the first answers came whole."""
    rows = made_up(6)
    with Server(Weather(latency=0.0)) as server, receiving() as received:
        for _ in range(2):
            judge = labeler.OpenAIJudge("stub-1", api_key="none", base_url=server.url)
            labeler.label(rows, judge=judge, store=MemoryStore())
    assert (len(received.records), received.asked_again) == (6, 6)


def test_a_peer_gets_no_key_and_no_way_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its process is given what it needs by name; all but this machine is behind a dead proxy."""
    monkeypatch.setenv("OPENAI_API_KEY", "made-up")
    given = environments.quiet(tmp_path)
    assert "OPENAI_API_KEY" not in given
    assert (given["HOME"], given["NO_PROXY"]) == (str(tmp_path), "127.0.0.1")
    assert given["HTTPS_PROXY"].startswith("http://127.0.0.1:")
