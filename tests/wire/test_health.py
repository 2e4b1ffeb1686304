"""Runs against a server that no row pleases: they stop soon, say why, and keep nothing of it."""

from __future__ import annotations

import pytest

from labeler.errors import FatalJudgeError
from labeler.judges.pricing import given_price
from labeler.labels.record import LabelFailure
from labeler.store.memory import MemoryStore
from wire.connections import Wire
from wire.provider import Call, Provider, changes, error
from wire.runs import KEY, reasons, rows, run

COMPLETION = "POST /v1/chat/completions"
FEW = 8
STRICT = {"output_mode": "strict"}


def test_the_message_of_a_stop_quotes_the_server() -> None:
    """Its words are what tells the cause; they are made safe for a terminal."""
    refused = error(400, message=f"response_format is not supported\x1b[2J for {KEY}")
    with (
        Provider(lambda _: refused) as provider,
        pytest.raises(FatalJudgeError, match="8 ended alike, and none was labeled") as caught,
    ):
        run(provider, rows(50), judge=STRICT)
    words = "response_format is not supported<U+001B>[2J for [key]"
    assert f'the server: "{words}"' in str(caught.value)


def test_refusals_after_a_label_stop_no_run() -> None:
    """They speak about rows."""
    with Provider(lambda call: "refusal" if call.number > 2 else None) as provider:
        outcomes = run(provider, rows(120), concurrency=1)
    assert reasons(outcomes).count("refusal") == 119


def test_a_server_that_changes_its_mind_stops_the_run_and_lasts_nowhere() -> None:
    """Fifty rows alike with no label between: what it refused is asked again."""
    store = MemoryStore()
    with (
        Provider(lambda call: error(403) if call.number > 20 else None) as provider,
        pytest.raises(FatalJudgeError, match="50 ended alike"),
    ):
        run(provider, rows(80), store=store, concurrency=1)
    with Provider() as provider:
        assert reasons(run(provider, rows(80), store=store)) == ["label"] * 80


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
    longer = changes(lambda value: value.update(usage=usage))
    settings = {"price": given_price("0,100"), "max_output_tokens": 100}  # $.5 an answer
    with Provider(lambda _: longer) as provider:
        outcomes = run(provider, rows(40), judge=settings, budget=2, concurrency=1)
    assert reasons(outcomes).count("label") == 3
    assert reasons(outcomes).count("budget") == 37
