from __future__ import annotations

import math

import pytest
from openai import APIStatusError, NotFoundError

from wire.clients import ask, client_of, request_of
from wire.provider import MODEL, ModelCard, Provider, Rates
from wire.rates import Bucket, RetryAfter, duration

CARDS = [
    ModelCard("old", shutdown_date="2027-01-14"),
    ModelCard(
        "org/thinking", served="thinking-1", refuses=frozenset({"temperature", "max_tokens"})
    ),
]


# Models


def test_models_say_when_they_shut_down() -> None:
    """As a date, or not at all; names with a slash are found too."""
    with Provider(models=CARDS) as provider, client_of(provider) as client:
        assert client.models.retrieve("old").shutdown_date == "2027-01-14"
        assert client.models.retrieve("org/thinking").shutdown_date is None
        assert [model.id for model in client.models.list()] == ["old", "org/thinking"]
        assert provider.calls == []
        assert provider.routes["GET /v1/models/{id}"] == 2


def test_an_unknown_model_is_not_found() -> None:
    """In look-ups, completions and embeddings alike."""
    with Provider(models=CARDS) as provider, client_of(provider) as client:
        with pytest.raises(NotFoundError) as caught:
            client.models.retrieve("new")
        assert (caught.value.code, caught.value.param) == ("model_not_found", "model")
        with pytest.raises(NotFoundError):
            client.embeddings.create(model="new", input="x")
        assert ask(provider, request_of(model="new")).code == "model_not_found"


def test_any_model_exists_unless_models_are_given() -> None:
    """All of them answer as the same one."""
    with Provider() as provider, client_of(provider) as client:
        assert client.models.retrieve("whatever").id == "whatever"
        assert ask(provider, request_of(model="whatever")).body["model"] == MODEL


def test_a_model_answers_under_the_name_that_it_is_served_as() -> None:
    """Its snapshot where it has one."""
    with Provider(models=CARDS) as provider:
        names = [
            ask(provider, request_of(model=name)).body["model"] for name in ("old", "org/thinking")
        ]
    assert names == ["old", "thinking-1"]


def test_a_model_refuses_parameters_that_it_does_not_take() -> None:
    """A temperature other than 1, and the old name of the cap; other models take both."""
    with Provider(models=CARDS) as provider:
        cool = ask(provider, request_of(model="org/thinking", temperature=0))
        capped = ask(provider, request_of(model="org/thinking", max_tokens=9))
        fine = [
            ask(provider, request_of(model="org/thinking", temperature=1, max_completion_tokens=9)),
            ask(provider, request_of(model="old", temperature=0, max_tokens=9)),
        ]
    assert [reply.status for reply in fine] == [200, 200]
    found = [(reply.status, reply.code, reply.body["error"]["param"]) for reply in (cool, capped)]
    assert found == [
        (400, "unsupported_value", "temperature"),
        (400, "unsupported_parameter", "max_tokens"),
    ]


# Embeddings


def test_equal_texts_have_equal_vectors_of_length_one() -> None:
    """The library asks for base64 by default, and gets the numbers that floats are."""
    with Provider() as provider, client_of(provider) as client:
        found = client.embeddings.create(model="m", input=["a", "b", "a"])
        a, b, again = (item.embedding for item in found.data)
        plain = client.embeddings.create(model="m", input="a", encoding_format="float")
        assert provider.tokens == (2, 0)
    assert len(a) == 1536
    assert a == again != b
    assert math.isclose(math.hypot(*a), 1, rel_tol=1e-5)
    assert plain.data[0].embedding == pytest.approx(a, rel=1e-6)
    assert found.usage.prompt_tokens == 1


def test_embeddings_have_the_dimensions_asked_for() -> None:
    """And no other number than 1 to 3072."""
    with Provider() as provider, client_of(provider) as client:
        found = client.embeddings.create(model="m", input="a", dimensions=8)
        assert len(found.data[0].embedding) == 8
        with pytest.raises(APIStatusError) as caught:
            client.embeddings.create(model="m", input="a", dimensions=0)
        assert caught.value.param == "dimensions"


@pytest.mark.parametrize("texts", ["", [], ["a", ""], 7])
def test_embeddings_of_nothing_are_refused(texts: object) -> None:
    """An empty text has no vector."""
    with Provider() as provider:
        reply = ask(provider, {"model": "m", "input": texts}, "/v1/embeddings")
    assert (reply.status, reply.body["error"]["param"]) == (400, "input")


# Rates

SLOW = 1 / 3600
"""Requests a second: nothing comes back while a test runs."""


def test_requests_above_the_rate_are_refused() -> None:
    """After the burst comes a 429 with the time to wait, and it is counted."""
    with Provider(rates=Rates(SLOW, burst=2)) as provider:
        replies = [ask(provider, request_of()) for _ in range(3)]
        assert (provider.limited, provider.paid.total()) == (1, 2)
    assert [reply.status for reply in replies] == [200, 200, 429]
    assert replies[2].code == "rate_limit_exceeded"
    assert 3500 < int(replies[2].headers["retry-after"]) <= 3600


def test_the_wait_can_come_in_milliseconds_or_not_at_all() -> None:
    """As the provider does it, and as a lesser one does."""
    waits = {}
    headers: tuple[RetryAfter, RetryAfter] = ("retry-after-ms", None)
    for header in headers:
        with Provider(rates=Rates(SLOW, burst=1, retry_after=header)) as provider:
            ask(provider, request_of())
            waits[header] = ask(provider, request_of()).headers
    assert 3_500_000 < int(waits["retry-after-ms"]["retry-after-ms"]) <= 3_600_000
    assert not any(name.startswith("retry-after") for name in waits[None])


def test_tokens_above_the_rate_are_refused() -> None:
    """A prompt counts with its cap; one that could never pass is told so, without a wait."""
    with Provider(rates=Rates(tokens_per_minute=10_000)) as provider:
        assert ask(provider, request_of(max_completion_tokens=5_000)).status == 200
        reply = ask(provider, request_of(max_completion_tokens=5_000))
        assert (reply.status, reply.body["error"]["type"]) == (429, "tokens")
        never = ask(provider, request_of(max_completion_tokens=20_000))
    assert never.body["error"]["message"].startswith("Request too large")
    assert "retry-after" not in never.headers


def test_every_answer_states_the_limits() -> None:
    """In the provider's notation, on good answers and refusals; other routes state none."""
    rates = Rates(1 / 60, burst=1, tokens_per_minute=60_000)
    with Provider(rates=rates) as provider:
        first, second = (ask(provider, request_of()).headers for _ in range(2))
        other = ask(provider, path="/v1/models").headers
    limits = [first[f"x-ratelimit-limit-{kind}"] for kind in ("requests", "tokens")]
    assert limits == ["1", "60000"]
    assert [h["x-ratelimit-remaining-requests"] for h in (first, second)] == ["0", "0"]
    assert int(first["x-ratelimit-remaining-tokens"]) < 60_000
    assert first["x-ratelimit-reset-requests"][-1] == first["x-ratelimit-reset-tokens"][-1] == "s"
    assert not any(name.startswith("x-ratelimit") for name in other)


def test_limits_can_be_kept_secret() -> None:
    """Without headers only the refusal shows that there are any."""
    with Provider(rates=Rates(SLOW, burst=1, headers=False)) as provider:
        replies = [ask(provider, request_of()) for _ in range(2)]
    assert [reply.status for reply in replies] == [200, 429]
    assert not any("ratelimit" in name for reply in replies for name in reply.headers)


def test_a_bucket_fills_with_the_time() -> None:
    """Never beyond its size; what is missing takes its time."""
    now = [0.0]
    bucket = Bucket(2, 10, lambda: now[0])
    bucket.take(10)
    assert (bucket.wait(4), bucket.wait(11), bucket.until_full) == (2, math.inf, 5)
    now[0] = 3
    assert (bucket.level, bucket.wait(6), bucket.wait(7)) == (6, 0, 0.5)
    now[0] = 100
    assert bucket.level == 10


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (0.12, "120ms"), (1, "1s"), (1.5, "1.5s"), (360, "6m0s"), (3661.25, "1h1m1.25s")],
)
def test_durations_are_in_the_notation_of_the_headers(seconds: float, text: str) -> None:
    """Milliseconds below a second, then hours, minutes and seconds."""
    assert duration(seconds) == text
