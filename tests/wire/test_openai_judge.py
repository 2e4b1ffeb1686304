"""The judge of OpenAI's API: what it sends, reads, waits for and hands out."""

from __future__ import annotations

import asyncio
import datetime as dt
import logging
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import pytest

from labeler.errors import JudgeError
from labeler.judges.judge import Judge, UnusableAnswer
from labeler.judges.limits import Limits, Quota, RateLimits, quota_of
from labeler.judges.openai import request as requests
from labeler.judges.openai.judge import OpenAIJudge
from labeler.judges.pace import CURRENT, Pace
from labeler.judges.task import JudgeReply, Task
from labeler.labels.answers import GPTLabelingOutput
from labeler.labels.record import Usage
from labeler.version import __version__
from support import samples
from wire.behaviors import FINGERPRINT, MODEL, named
from wire.provider import (
    Behavior,
    Call,
    Provider,
    Script,
    error,
    label_for,
    late,
    page,
)
from wire.runs import KEY, comes_true


class Pauses(list[float]):
    """Takes the place of sleeping and remembers how long it would have been."""

    async def __call__(self, seconds: float) -> None:
        """Remember."""
        self.append(seconds)


def judge_of(provider: Provider, **settings: Any) -> OpenAIJudge:
    """A judge of the provider that does not sleep unless told how, and looks nothing up."""
    unhurried = {"sleep": Pauses(), "preflight": False, "output_mode": "strict"}
    settings = {"api_key": KEY, "base_url": provider.url, **unhurried, **settings}
    return OpenAIJudge("model-1", **settings)


class Hurried(Pace):
    """A run's traffic that does not wait when it is asked to."""

    def __init__(self, **limits: Any) -> None:
        super().__init__(limits=Limits(**limits))

    def pause(self, seconds: float) -> None:
        """Wait no time, unless it is more than the run may."""
        super().pause(seconds if seconds > (self.limits.longest_wait or seconds) else 0.0)


async def ask(judge: Judge, *requests: Task, traffic: Pace | None = None) -> list[JudgeReply]:
    """Ask for several records at once, then close the judge; by default nothing is forgiven."""
    CURRENT.set(traffic or CURRENT.get() or Hurried(max_outage=0))
    try:
        replies = await asyncio.gather(*map(judge.label, requests))
        return cast("list[JudgeReply]", replies)  # labels were asked for
    finally:
        await judge.aclose()


def reply_of(
    provider: Provider, request: Task | None = None, *, traffic: Pace | None = None, **settings: Any
) -> JudgeReply:
    """The reply to one record."""
    request = request or samples.request()
    return asyncio.run(ask(judge_of(provider, **settings), request, traffic=traffic))[0]


def failure_of(script: Script, **settings: Any) -> tuple[JudgeError, Provider]:
    """The failure of one record, and the provider that caused it."""
    with Provider(script) as provider, pytest.raises(JudgeError) as caught:
        reply_of(provider, **settings)
    chain = caught.value.__cause__, caught.value.__context__
    assert chain == (None, None), "it could hold the key or documents"
    return caught.value, provider


# What is sent


def test_documents_reach_the_wire_as_rendered() -> None:
    """No template engine, dedent or image detection touches a message."""
    texts = [
        "Use {{ user }} and {{ 7*7 }} here.",
        "{% raw %}{% for x in y %}{# gone #}",
        "{{ ''.__class__ }}",
        "  indented\twith a trailing space ",
        "https://example.org/picture.png",
        "null \x00, bidi \u202e, separator \u2028, \U0001f600",
    ]
    question = "\n".join(texts)
    request = samples.request(
        samples.keyed_example(question=question, documents=[texts], response=texts)
    )
    with Provider(["unknown-key"]) as provider:
        reply_of(provider, request)
    for call in provider.calls:
        assert call.messages[:2] == [dict(message) for message in request.messages]
        assert [line["text"] for line in call.data["DOCUMENTS"]] == texts
    assert len(provider.calls) == 2


def test_only_set_parameters_are_sent() -> None:
    """Besides what every request has, each setting adds its own field."""
    settings: dict[str, Any] = {
        "temperature": 0.0,
        "top_p": 0.5,
        "seed": 7,
        "reasoning_effort": "low",
    }
    with Provider() as provider:
        reply_of(provider)
        reply_of(provider, **settings, max_output_tokens=900)
    bare, full = (call.body for call in provider.calls)
    assert set(bare) == {"model", "messages", "response_format", "prompt_cache_key", "stream"}
    assert bare["stream"] is False
    assert full == bare | settings | {"max_completion_tokens": 900}


def test_every_request_names_the_prompt_that_it_shares_with_others() -> None:
    """By a digest that is equal for all records of a run, and for their re-asks."""
    other = samples.request(samples.keyed_example(id="r2", documents=[["B."]], response=["B."]))
    with Provider(["unknown-key"]) as provider:
        reply_of(provider)
        reply_of(provider, other)
        reply_of(provider, prompt_cache="off")
    *named, off = (call.body for call in provider.calls)
    (key,) = {body["prompt_cache_key"] for body in named}
    assert (len(named), key.startswith("labeler-"), len(key)) == (3, True, 40)
    assert "prompt_cache" not in repr(off)


# What comes back


def test_a_reply_is_a_plain_label_with_its_facts() -> None:
    """The class is ours alone; model, tokens, host and time are kept."""
    with Provider() as provider:
        reply = reply_of(provider)
    assert type(reply.answer) is GPTLabelingOutput
    assert reply.answer == GPTLabelingOutput.model_validate(label_for(provider.calls[0]))
    facts = reply.facts
    assert (facts.served_model, facts.system_fingerprint) == (MODEL, FINGERPRINT)
    assert facts.usage == Usage(prompt_tokens=10_000, completion_tokens=10, cached_tokens=40)
    assert facts.host == f"127.0.0.1:{provider.port}"
    assert (facts.attempts, facts.broken_contracts) == (1, {})
    assert (facts.labeler_version, facts.seconds is not None) == (__version__, True)
    made = dt.datetime.fromisoformat(facts.created_at or "")
    assert abs(dt.datetime.now(dt.UTC) - made) < dt.timedelta(minutes=1)


def test_records_that_run_at_once_do_not_mix() -> None:
    """Each answer, the first one too short, is checked against its own record, in any order."""
    lengths = [["A.", "B."], ["A.", "B.", "C."]] * 8
    requests = [
        samples.request(samples.keyed_example(id=f"r{n}", documents=[[f"{n}."]], response=response))
        for n, response in enumerate(lengths)
    ]
    asked = Counter[str]()

    def script(call: Call) -> Behavior:
        asked[call.identity] += 1
        then = named("missing-sentence" if asked[call.identity] == 1 else "ok")
        return late(0.1 if len(call.keys("RESPONSE")) == 2 else 0.01, then)

    with Provider(script) as provider:
        replies = asyncio.run(ask(judge_of(provider), *requests))
    judged = [len(reply.answer.sentence_support_information) for reply in replies]
    assert (judged, len(provider.calls)) == ([2, 3] * 8, 32)


# Broken contracts


def test_a_broken_contract_is_counted_and_paid_for() -> None:
    """In the facts of a label, and in a failure, which names what was broken."""
    twice = Usage(prompt_tokens=20_000, completion_tokens=20, cached_tokens=80)
    with Provider(["unknown-key"]) as provider:
        facts = reply_of(provider).facts
    assert (facts.attempts, facts.broken_contracts, facts.usage) == (2, {"unknown_key": 1}, twice)

    failure, provider = failure_of(["unknown-key"] * 2)
    assert isinstance(failure, UnusableAnswer)
    assert [violation.kind for violation in failure.violations] == ["unknown_key"]
    assert (failure.attempts, failure.usage) == (2, twice)


# Pauses


@pytest.mark.parametrize("spelled", [str.lower, str.title])
@pytest.mark.parametrize("sent", [partial(error, 500), partial(page, 200)])
def test_the_quotas_of_headers_set_the_pace(
    sent: Callable[..., Behavior], spelled: Callable[[str], str]
) -> None:
    """What the server says of its limits reaches the pace, also with an error or a page."""
    reported: list[tuple[str, Quota]] = []

    class Listening(RateLimits):
        def follow(self, unit: str, quota: Quota) -> None:
            reported.append((unit, quota))

    said = {"requests": ("500", "499", "1m0.12s"), "tokens": ("30000", "29000", "20ms")}
    headers = {
        spelled(f"x-ratelimit-{name}-{unit}"): text
        for unit, texts in said.items()
        for name, text in zip(("limit", "remaining", "reset"), texts, strict=True)
    }
    with Provider([sent(headers=headers)]) as provider:
        pace = Hurried()
        pace.server_rates = Listening(pace.clock)
        reply_of(provider, traffic=pace)
    quotas = {"requests": Quota(500, 499, 60.12), "tokens": Quota(30000, 29000, 0.02)}
    assert reported == [*quotas.items()]


@pytest.mark.parametrize(
    ("reset", "seconds"),
    [
        *((text, None) for text in ("", "soon", "1x", "-1s", "nan", "1s garbage")),
        *((text, 30.0) for text in ("1764547230", "1764547230000", "2025-12-01T00:00:30Z")),
        ("1e9", 0.0),
    ],
)
def test_quotas_of_a_minute_and_moments_of_reset_are_read(
    reset: str, seconds: float | None
) -> None:
    """As Cerebras and SambaNova name them, by the server's clock; nonsense is left alone."""
    said = {"limit": "5", "remaining": "4", "reset": reset}
    headers = {f"x-ratelimit-{name}-tokens-minute": text for name, text in said.items()}
    found = quota_of(headers | {"date": "Mon, 01 Dec 2025 00:00:00 GMT"}, "tokens")
    assert (found and found.reset) == seconds


def test_pauses_grow_and_are_jittered() -> None:
    """Without advice each pause is drawn between nothing and 1, 2, 4, … seconds, 60 at most."""
    pauses = Pauses()
    failure_of(["500"] * 9, sleep=pauses, max_attempts=9)
    assert len(pauses) == 8
    for pause, limit in zip(pauses, [1, 2, 4, 8, 16, 32, 60, 60], strict=True):
        assert 0 <= pause <= limit
    assert len(set(pauses)) == 8


# Interruptions


@pytest.mark.parametrize(
    ("where", "end"), [("pause", "stop"), ("pause", "cancel"), ("request", "cancel")]
)
def test_a_record_ends_with_the_run(where: str, end: str) -> None:
    """In a request or a pause without end; cancelling is not swallowed, and nothing is left."""

    async def label() -> None:
        loop, traffic, reached = asyncio.get_running_loop(), Pace(), asyncio.Event()

        async def for_ever(_: float) -> None:
            reached.set()
            await asyncio.Event().wait()

        def pick(_: Call) -> str:
            if where == "request":
                loop.call_soon_threadsafe(reached.set)
            return "429-wait" if where == "pause" else "hang"

        CURRENT.set(traffic)
        with Provider(pick) as provider:
            judge = judge_of(provider, sleep=for_ever)
            task = asyncio.create_task(judge.label(samples.request()))
            await reached.wait()
            if end == "stop":
                traffic.stop()
            else:
                task.cancel()
            try:
                await task
            finally:
                await judge.aclose()
                assert asyncio.all_tasks() == {asyncio.current_task()}
                assert comes_true(lambda: provider.in_flight == 0)
                assert len(provider.calls) == 1

    with pytest.raises(UnusableAnswer if end == "stop" else asyncio.CancelledError):
        asyncio.run(label())


@pytest.mark.parametrize(
    ("behavior", "settings", "reason", "paid"),
    [
        *((name, {}, "interrupted", 0) for name in ("500", "429-wait", "reset")),
        *((name, {}, "interrupted", 10_000) for name in ("unknown-key", "malformed")),
        ("truncated", {"max_output_tokens": 50}, "interrupted", 10_000),
        # What would not be asked again keeps its reason.
        ("refusal", {}, "refusal", 10_000),
        ("truncated", {}, "truncated", 10_000),
        ("unknown-key", {"reasks": 0}, "contract", 10_000),
        ("500", {"max_attempts": 1}, "transport", 0),
    ],
)
def test_a_stopping_run_sends_nothing_more(
    behavior: str, settings: dict[str, Any], reason: str, paid: int
) -> None:
    """It was stopped while the first request was on the wire; what the answer cost is told."""

    async def label() -> None:
        loop, traffic = asyncio.get_running_loop(), Hurried()
        script = iter([behavior])  # another call would find it at its end

        def pick(_: Call) -> str:
            loop.call_soon_threadsafe(traffic.stop)
            return next(script)

        CURRENT.set(traffic)
        with Provider(pick) as provider:
            await ask(judge_of(provider, sleep=asyncio.sleep, **settings), samples.request())

    with pytest.raises(UnusableAnswer) as caught:
        asyncio.run(label())
    failure = caught.value
    assert (failure.reason, failure.attempts) == (reason, 1)
    assert (failure.usage.prompt_tokens if failure.usage else 0) == paid
    assert str(failure).endswith("run it again to go on") == (reason == "interrupted")


@pytest.mark.parametrize("error", [KeyError, KeyboardInterrupt])
@pytest.mark.parametrize("where", ["pause", "request"])
def test_what_no_server_can_cause_comes_out_as_it_is(
    where: str, error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bug or Ctrl-C, inside a request or between two of them; nothing is sent again."""

    async def pause(_: float) -> None:
        raise error

    def body(*_: object, **__: object) -> None:
        raise error

    with Provider(["500"] * 2) as provider:
        judge = judge_of(provider, sleep=pause)
        if where == "request":
            monkeypatch.setattr(requests, "request_body", body)
        with pytest.raises(error):
            asyncio.run(ask(judge, samples.request()))
    assert len(provider.calls) == (where == "pause")


# Secrets


def test_instructor_is_silent_while_a_judge_asks(caplog: pytest.LogCaptureFixture) -> None:
    """It would log every failed record as an error of its own; elsewhere it may talk."""
    caplog.set_level(logging.INFO)
    failure_of(["malformed"] * 2)
    assert not [record for record in caplog.records if record.name.startswith("instructor")]
    logging.getLogger("instructor.v2.retry").error("someone else's call")
    assert "someone else's call" in caplog.text


def test_the_key_is_in_nothing_that_a_judge_hands_out() -> None:
    """Not in the judge's own texts, its specification, or a reply."""
    with Provider() as provider:
        judge = judge_of(provider)
        reply = asyncio.run(ask(judge, samples.request()))[0]
    seen = [judge, judge.spec, judge.spec.model_dump(), judge.spec.sampling(), vars(judge), reply]
    assert not [thing for thing in seen if "SENTINEL" in repr(thing)]
