"""What is known before the first label, and runs against a server that no row pleases."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from labeler.errors import FatalJudgeError
from labeler.judges.openai import retries
from labeler.judges.pricing import given_price
from labeler.labels.record import LabelFailure
from labeler.store import MemoryStore
from support.command import Command
from support.watching import Watch
from wire.behaviors import body, sets
from wire.connections import Wire
from wire.provider import Call, Provider, Step, error
from wire.runs import KEY, labeling, reasons, row_file, rows, run

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
        *((date, None) for date in (in_days(300), "soon", "", None)),
    ],
)
def test_a_model_that_goes_away_soon_is_told_once(shutdown: str | None, said: str | None) -> None:
    """A near end is worth a word, an end far off, unstated or unreadable is not; all go on."""
    watch = Watch()
    card = body(json.dumps({"id": "m", "shutdown_date": shutdown}).encode())
    with Provider(at={LOOK_UP: lambda _: card}) as provider:
        assert reasons(run(provider, rows(20), watch=watch)) == ["label"] * 20
    assert len(watch.notices) == (said is not None)
    assert (said or "") in "".join(watch.notices)


@pytest.mark.parametrize(
    "step",
    [
        *("404", "403", "500", "429", "html", "bad-json", "reset", "hang"),
        error(405),
        error(401, message="Missing scopes: api.model.read"),
        body(b'{"shutdown_date": ["2026"]}'),
    ],
)
def test_a_server_without_models_is_asked_all_the_same(
    step: Step, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is concluded from the look-up but a bad key, and its wait ends."""
    monkeypatch.setattr(retries, "PATIENCE", 0.3)
    watch = Watch()
    with Provider(at={LOOK_UP: lambda _: step}) as provider:
        assert reasons(run(provider, rows(3), watch=watch)) == ["label"] * 3
    # The HTTP client itself repeats a look-up once that ended without an answer.
    assert (provider.routes[LOOK_UP] in {1, 2}, provider.routes[COMPLETION]) == (True, 3)
    assert watch.notices == []


def test_the_look_up_is_made_once_where_something_is_asked() -> None:
    """Records that come at once wait for it; a run over stored labels needs no key that works."""
    store, given = MemoryStore(), rows(40)
    with Provider(latency=0.02) as provider:
        run(provider, given, store=store, concurrency=16)
        assert provider.routes == {LOOK_UP: 1, COMPLETION: 40}
    with Provider(at={LOOK_UP: lambda _: "401"}) as provider:
        assert reasons(run(provider, given, store=store)) == ["label"] * 40
        assert not provider.routes
        assert reasons(run(provider, rows(3), judge={"preflight": False})) == ["label"] * 3
        assert provider.routes == {COMPLETION: 3}


def test_leaving_during_the_look_up_waits_for_nobody(
    tmp_path: Path, labeler_command: Command
) -> None:
    """A server that hangs there keeps no one who presses Ctrl-C."""

    def hang(_: Call) -> str:
        os.kill(os.getpid(), signal.SIGINT)
        return "hang"

    with Provider(at={LOOK_UP: hang}) as provider:
        assert labeler_command(*labeling(provider, row_file(tmp_path, rows(4))))[0] == 130
        assert provider.routes == {LOOK_UP: 1}


FEW = 8
STRICT = {"output_mode": "strict"}


def test_the_message_of_a_stop_quotes_the_server() -> None:
    """Its words are what tells the cause; they are made safe for a terminal."""
    refused = error(400, message=f"response_format is not supported\x1b[2J for {KEY}")
    with (
        Provider(lambda _: refused) as provider,
        pytest.raises(FatalJudgeError, match="8 times with no success") as caught,
    ):
        run(provider, rows(50), judge=STRICT)
    words = "response_format is not supported<U+001B>[2J for [key]"
    assert f'the server: "{words}"' in str(caught.value)


def test_refusals_after_a_label_stop_no_run() -> None:
    """They speak about rows."""
    with Provider(lambda call: "refusal" if call.number > 2 else None) as provider:
        outcomes = run(provider, rows(110), concurrency=1)
    assert reasons(outcomes).count("refusal") == 109


def test_a_server_that_changes_its_mind_stops_the_run_and_lasts_nowhere() -> None:
    """Fifty rows alike with no label between: what it refused is asked again."""
    store = MemoryStore()
    with (
        Provider(lambda call: error(403) if call.number > 3 else None) as provider,
        pytest.raises(FatalJudgeError, match="50 times"),
    ):
        run(provider, rows(60), store=store, concurrency=1)
    with Provider() as provider:
        assert reasons(run(provider, rows(60), store=store)) == ["label"] * 60


@pytest.mark.parametrize(("mode", "few"), [("strict", FEW), ("auto", FEW - 4)])
def test_few_requests_go_before_the_first_label(mode: str, few: int) -> None:
    """All places open with it; four more modes might have to be tried, each with one request."""
    most = [0]

    async def slow(call: Call, wire: Wire) -> None:
        most[0] = max(most[0], provider.in_flight)
        await wire.pause(0.3)
        await error(500)(call, wire)

    judge = {"output_mode": mode}
    with Provider(lambda call: slow if call.number <= few else None, latency=0.05) as provider:
        assert reasons(run(provider, rows(60), concurrency=32, judge=judge)) == ["label"] * 60
    assert most[0] == few
    assert provider.most_in_flight > FEW


def test_a_failure_before_the_first_label_lasts_like_one_after_it() -> None:
    """The run waits for a label before it says so."""
    store = MemoryStore()
    with Provider(lambda call: "refusal" if "item 0?" in call.raw.decode() else None) as provider:
        first, *_ = run(provider, rows(30), store=store, concurrency=1)
        assert isinstance(first, LabelFailure)
        assert first.lasting
        assert run(provider, rows(1), store=store)[0].lasting  # type: ignore[union-attr]
        assert provider.routes[COMPLETION] == 30


def test_answers_above_their_cap_are_reserved_for() -> None:
    """A server that ignores the cap overspends once, not a budget many times over."""
    usage = {"prompt_tokens": 10_000, "completion_tokens": 5_000, "total_tokens": 15_000}
    settings = {"price": given_price("0,100"), "max_output_tokens": 100}  # $.5 an answer
    with Provider(lambda _: sets(usage=usage)) as provider:
        outcomes = run(provider, rows(40), judge=settings, budget=2, concurrency=1)
    assert Counter(reasons(outcomes)) == {"label": 3, "budget": 37}
