"""The look-up before the first record, and what the first records can tell."""

from __future__ import annotations

import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from labeler.judges.openai import client
from labeler.store.memory import MemoryStore
from support.command import Command
from support.watching import Watch
from wire.clients import comes_true
from wire.provider import ModelCard, Provider, Step, changes, error
from wire.runs import (
    labeling,
    process,
    reasons,
    row_file,
    rows,
    run,
    running,
)

LOOK_UP = "GET /v1/models/{id}"
COMPLETION = "POST /v1/chat/completions"


def in_days(days: int) -> str:
    """An ISO date so many days from now."""
    return (datetime.now(UTC) + timedelta(days=days)).date().isoformat()


@pytest.mark.parametrize("kind", ["401", "429-quota", "402"])
def test_a_bad_key_costs_one_request_in_all(
    tmp_path: Path, labeler_command: Command, kind: str
) -> None:
    """Of any kind, with 1,000 rows and many of them at once; and the exit code is 2."""
    with Provider(at={LOOK_UP: lambda _: kind}) as provider:
        given = row_file(tmp_path, rows(1_000))
        code, _, err = labeler_command(*labeling(provider, given))
    assert (code, provider.routes) == (2, {LOOK_UP: 1})
    assert "Traceback" not in err
    assert not (tmp_path / "labels.jsonl").exists()


@pytest.mark.parametrize(
    ("shutdown", "said"),
    [
        (in_days(20), "shuts model 'm' down on"),
        (in_days(-3), "now: stored labels stay"),
        (in_days(300), None),
        ("soon", None),
        ("", None),
        (None, None),
    ],
)
def test_a_model_that_goes_away_soon_is_told_once(shutdown: str | None, said: str | None) -> None:
    """A near end is worth a word, an end far off, unstated or unreadable is not; all go on."""
    watch = Watch()
    with Provider(models=[ModelCard("m", shutdown_date=shutdown)]) as provider:
        outcomes = run(provider, rows(20), watch=watch)
    assert reasons(outcomes) == ["label"] * 20
    assert len(watch.notices) == (said is not None)
    assert (said or "") in "".join(watch.notices)


@pytest.mark.parametrize(
    "step",
    [
        *("404", "403", "500", "429", "html", "bad-json", "reset", "hang"),
        error(405),
        changes(lambda value: value.update(shutdown_date=["2026"])),
    ],
)
def test_a_server_without_models_is_asked_all_the_same(
    step: Step, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is concluded from the look-up but a bad key, and it does not wait for ever."""
    monkeypatch.setattr(client, "PATIENCE", 0.3)
    watch = Watch()
    with Provider(at={LOOK_UP: lambda _: step}) as provider:
        assert reasons(run(provider, rows(3), watch=watch)) == ["label"] * 3
    # The HTTP client itself repeats a look-up once that ended without an answer.
    assert (provider.routes[LOOK_UP] in {1, 2}, provider.routes[COMPLETION]) == (True, 3)
    assert watch.notices == []


def test_records_that_come_at_once_share_one_look_up() -> None:
    """The others wait for it."""
    with Provider(latency=0.02) as provider:
        run(provider, rows(40), concurrency=16)
    assert provider.routes == {LOOK_UP: 1, COMPLETION: 40}


def test_nothing_is_looked_up_where_everything_is_stored() -> None:
    """A run that asks for nothing needs no key that works."""
    store = MemoryStore()
    with Provider() as provider:
        run(provider, rows(3), store=store)
    with Provider(at={LOOK_UP: lambda _: "401"}) as provider:
        assert reasons(run(provider, rows(3), store=store)) == ["label"] * 3
    assert not provider.routes


def test_the_look_up_can_be_left_out() -> None:
    """Then the first record is the first request."""
    with Provider(at={LOOK_UP: lambda _: "401"}) as provider:
        outcomes = run(provider, rows(3), judge={"preflight": False})
    assert reasons(outcomes) == ["label"] * 3
    assert provider.routes == {COMPLETION: 3}


def test_leaving_during_the_look_up_waits_for_nobody(tmp_path: Path) -> None:
    """A server that hangs there keeps no one who presses Ctrl-C."""
    with Provider(at={LOOK_UP: lambda _: "hang"}) as provider:
        asking = process(labeling(provider, row_file(tmp_path, rows(4))))
        with running(asking, tmp_path) as hanging:
            assert comes_true(lambda: provider.routes == {LOOK_UP: 1}, 60)
            hanging.process.send_signal(signal.SIGINT)
            assert hanging.process.wait(timeout=10) == 130
        assert provider.routes == {LOOK_UP: 1}
