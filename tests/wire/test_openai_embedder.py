"""The OpenAI embedder against a server of our own."""

from __future__ import annotations

import asyncio
import json
import logging
import math
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

import pytest

from labeler.errors import FatalJudgeError, JudgeError, RunPaused, UsageError
from labeler.judges.limits import Limits
from labeler.judges.openai.address import NO_KEY
from labeler.judges.pace import CURRENT, Pace
from labeler.judges.pricing import Price, find_price
from labeler.labels.record import Usage
from labeler.plugins.similarity import openai_embedder
from labeler.plugins.similarity.embedders import Embedded, as_vector, flat_price
from labeler.plugins.similarity.openai_embedder import OpenAIEmbedder
from wire.behaviors import body, named
from wire.embeddings_endpoint import vector
from wire.provider import Behavior, Json, Provider, error, page
from wire.runs import KEY, brief

ROUTE = "POST /v1/embeddings"
DOLLAR = flat_price(Decimal(1), "a test")


def embedder_of(provider: Provider, **settings: Any) -> OpenAIEmbedder:
    """An embedder of the provider that hardly sleeps."""
    given = {"api_key": KEY, "base_url": provider.url, "sleep": brief, **settings}
    return OpenAIEmbedder("embedder-1", **given)


def embed(embedder: OpenAIEmbedder, *texts: str, traffic: Pace | None = None) -> Embedded:
    """Embed texts."""

    async def go() -> Embedded:
        if traffic:
            CURRENT.set(traffic)
        try:
            return await embedder.embed(texts)
        finally:
            await embedder.aclose()

    return asyncio.run(go())


def answered(script: Any, *texts: str, **settings: Any) -> Embedded:
    """Embed texts, or "one", at a server that answers by a script."""
    with Provider(at={ROUTE: script}) as provider:
        return embed(embedder_of(provider, **settings), *(texts or ("one",)))


@pytest.fixture
def texts_per_request(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Set how many texts share a request."""
    return partial(monkeypatch.setattr, openai_embedder, "TEXTS_PER_REQUEST")


def reasons(found: Embedded) -> list[str]:
    """What stands for each text."""
    return [v.reason if isinstance(v, JudgeError) else "vector" for v in found.vectors]


def sent(provider: Provider) -> list[Any]:
    """The texts of each request."""
    return [call.body["input"] for call in provider.requests]


def test_texts_come_back_as_the_servers_vectors(caplog: pytest.LogCaptureFixture) -> None:
    """In order, in single precision, with what it took; logs hold neither texts nor the key."""
    caplog.set_level(logging.DEBUG)  # where the library writes whole bodies
    with Provider() as provider:
        found = embed(embedder_of(provider), "SENTINEL-TEXT", "two")
    assert found.vectors == tuple(as_vector(vector(text)) for text in ("SENTINEL-TEXT", "two"))
    assert (found.facts.attempts, found.facts.served_model) == (1, "embedder-1")
    assert found.facts.usage == Usage(prompt_tokens=4)
    assert "SENTINEL" not in caplog.text


def test_many_texts_go_into_few_requests(texts_per_request: Callable[[int], None]) -> None:
    """So many in each, the rest in the last, and the vectors stay in order."""
    texts_per_request(3)
    texts = [f"text {n}" for n in range(7)]
    with Provider() as provider:
        found = embed(embedder_of(provider), *texts)
        assert sent(provider) == [texts[:3], texts[3:6], texts[6:]]
    assert found.vectors == tuple(as_vector(vector(text)) for text in texts)
    assert found.facts.attempts == 3


def test_only_what_is_set_is_sent() -> None:
    """Dimensions where they are chosen; the key as a header and nowhere else."""
    with Provider() as provider:
        embed(embedder_of(provider), "one")
        found = embed(embedder_of(provider, dimensions=8), "one")
        plain, chosen = (call.body for call in provider.requests)
        assert provider.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert plain == {"model": "embedder-1", "input": ["one"], "encoding_format": "base64"}
    assert chosen == {**plain, "dimensions": 8}
    assert found.vectors == (as_vector(vector("one", 8)),)


def test_an_empty_text_is_not_sent() -> None:
    """It has an error in its place, and the others their vectors; no texts are no request."""
    with Provider() as provider:
        found = embed(embedder_of(provider), "", "one", "")
        assert reasons(found) == ["empty_text", "vector", "empty_text"]
        assert reasons(embed(embedder_of(provider), "")) == ["empty_text"]
        assert embed(embedder_of(provider)).vectors == ()
        assert sent(provider) == [["one"]]


# What a server may send instead


def answering(vectors: list[Any], numbers: list[Any] | None = None, **more: Any) -> Behavior:
    """The server sends these vectors, whatever the texts; without a number that is "none"."""
    data = [
        {"object": "embedding", "embedding": vector}
        | ({} if number == "none" else {"index": number})
        for number, vector in zip(numbers or range(len(vectors)), vectors, strict=True)
    ]
    return body(json.dumps({"object": "list", "model": "e", "data": data, **more}).encode())


@pytest.mark.parametrize(
    "answer",
    [
        answering([[2.0], [1.0]], [1, "none"]),  # a 0 is left out
        answering([[1.0], [2.0]], ["none", "none"]),  # in the order of the texts
        answering([[2.0], [1.0]], [1, 0]),
    ],
)
def test_vectors_are_in_the_order_of_their_numbers_if_they_have_any(answer: Behavior) -> None:
    """They are paid for; some servers do not know base64, and send lists."""
    found = answered([answer], "one", "two")
    assert (found.vectors, found.facts.attempts) == (((1.0,), (2.0,)), 1)


STRANGE: dict[str, Behavior] = {
    "no vectors": answering([]),
    "too few": answering([[1.0]]),
    "too many": answering([[1.0], [1.0], [1.0]]),
    "of several sizes": answering([[1.0], [1.0, 2.0]]),
    "not numbers": answering([[math.nan], [math.inf]]),
    "null": answering([None, None]),
    "data null": body(b'{"data": null}'),
    "one number twice": answering([[1.0], [1.0]], numbers=[0, 0]),
    "no numbers": answering([[1.0], [1.0]], numbers=[None, None]),
    "numbered by text": answering([[1.0], [1.0]], numbers=["0", "1"]),
    "a list": body(b"[]"),
    "no JSON": body(b"{"),
    "a page": page(200),
    "an error": body(b'{"error": {"code": 502, "message": "upstream"}}'),
    "words": body(b'{"detail": "overloaded"}'),
    **{name: named(name) for name in ("500", "503", "reset", "429")},
}  # fmt: skip


@pytest.mark.parametrize("strange", STRANGE.values(), ids=STRANGE.keys())
def test_an_answer_without_a_vector_for_each_text_is_asked_for_again(strange: Behavior) -> None:
    """Nothing of it is taken, and nothing foreign is raised."""
    found = answered([strange], "one", "two")
    assert found.vectors == tuple(as_vector(vector(text)) for text in ("one", "two"))
    assert found.facts.attempts == 2


@pytest.mark.parametrize(
    ("strange", "given", "words"),
    [
        (STRANGE["no vectors"], {}, "after 2 requests"),
        (STRANGE["null"], {}, "after 2 requests"),
        (STRANGE["a page"], {"max_attempts": 2}, "after 2 requests"),
        # Other vectors than their key says.
        (answering([[1.0, 2.0]] * 2), {"dimensions": 3}, "size that was not requested"),
    ],
)
def test_a_server_that_never_sends_vectors_is_given_up(
    strange: Behavior, given: Any, words: str
) -> None:
    """Each text says why, after so many requests; vectors that are paid for are asked for twice."""
    found = answered(lambda _: strange, "one", "two", **given)
    assert (reasons(found), found.facts.attempts) == (["transport", "transport"], 2)
    said = str(found.vectors[0])
    assert words in said
    assert len(said.splitlines()) == 1
    assert "pydantic" not in said


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        *((None, None), ({}, None), ({"prompt_tokens": "7"}, None), ({"prompt_tokens": -1}, None)),
        *(({"prompt_tokens": 10**7}, None), ({"prompt_tokens": True}, None)),
        *(({"prompt_tokens": 7}, 7), ({"total_tokens": 7}, 7)),  # some servers send one of the two
    ],
)
def test_a_strange_count_of_tokens_is_no_count(usage: Json | None, tokens: int | None) -> None:
    """The vectors are taken all the same."""
    found = answered([answering([[1.0]], usage=usage)])
    counted = None if tokens is None else Usage(prompt_tokens=tokens)
    assert (found.vectors, found.facts.usage) == (((1.0,),), counted)


def test_a_vector_that_is_not_finite_costs_its_text_alone() -> None:
    """Models overflow on single texts, each time."""
    found = answered([answering([[math.nan], [1.0]])], "one", "two")
    assert (reasons(found), found.facts.attempts) == (["malformed", "vector"], 1)


# Failures


@pytest.mark.parametrize(
    ("refusal", "reason"),
    [
        (error(400, "context_length_exceeded", "the maximum context is 8192"), "context_length"),
        # A filter answers as though the key were not good enough, and has answered others before.
        (error(403, "forbidden"), "permission"),
    ],
)
def test_the_text_that_the_server_does_not_take_is_found(
    refusal: Behavior, reason: str, texts_per_request: Callable[[int], None]
) -> None:
    """The others of its request get their vectors."""
    texts_per_request(3)
    odd = {True: refusal, False: None}
    found = answered(lambda call: odd["ODD" in call.body["input"]], *"abcd", "ODD", "f")
    assert reasons(found) == ["vector"] * 4 + [reason, "vector"]
    assert "ODD" not in str(found.vectors[4])


@pytest.mark.parametrize(
    ("behavior", "reason"),
    [
        (error(401, "invalid_api_key", f"Incorrect key {KEY}"), "authentication"),
        (error(429, "insufficient_quota"), "quota"),
        (error(404, "model_not_found", param="model"), "not_found"),
    ],
)
def test_what_concerns_every_text_ends_the_run(behavior: Behavior, reason: str) -> None:
    """At once, in our words, without the key and without the texts."""
    with Provider(at={ROUTE: lambda _: behavior}) as provider:
        with pytest.raises(FatalJudgeError) as caught:
            embed(embedder_of(provider), "SENTINEL-TEXT", "two")
        assert len(provider.requests) == 1
    assert caught.value.reason == reason
    assert "embedder openai/embedder-1 at 127.0.0.1" in str(caught.value)
    assert "SENTINEL" not in str(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None


@pytest.mark.parametrize(
    ("behavior", "reason"),
    [
        (error(400, "strange_code", "no"), "bad_request"),
        (error(400, "unsupported_parameter", param="dimensions"), "parameter"),
        (error(307, headers={"location": "http://127.0.0.1:9/"}), "redirect"),
        (error(403, "forbidden"), "permission"),
        (error(500), "transport"),
    ],
)
def test_eight_texts_alike_end_the_run(
    behavior: Behavior, reason: str, texts_per_request: Callable[[int], None]
) -> None:
    """One text could be at fault, eight are not, where no text has a vector."""
    texts_per_request(2)
    with Provider(at={ROUTE: lambda _: behavior}) as provider:
        embedder = embedder_of(provider, max_attempts=1)
        with pytest.raises(FatalJudgeError, match="8 times") as caught:
            embed(embedder, *map(str, range(100)))
        alone = [texts for texts in sent(provider) if len(texts) == 1]
    assert caught.value.reason == reason
    assert len(alone) in {0, 8}


def test_a_server_that_wants_a_key_where_none_is_set_names_the_variable() -> None:
    """The embedder's own, for a host that is neither OpenAI's nor the judge's."""
    with pytest.raises(FatalJudgeError, match="EMBEDDER_API_KEY is not set, so no key was sent"):
        answered(["401"], api_key=NO_KEY)


def test_a_server_that_asks_to_wait_too_long_pauses_the_run() -> None:
    """Longer than the run may; a run that was stopped asks nothing."""
    busy = error(429, "rate_limit_exceeded", headers={"retry-after": "600"})
    with Provider(at={ROUTE: [busy]}) as provider, pytest.raises(RunPaused):
        embed(embedder_of(provider), "one", traffic=Pace(limits=Limits(longest_wait=60)))
    (traffic := Pace()).stop()
    with Provider() as provider:
        assert reasons(embed(embedder_of(provider), "one", traffic=traffic)) == ["interrupted"]
        assert provider.requests == []


# Money


def test_a_budget_is_never_overspent(texts_per_request: Callable[[int], None]) -> None:
    """A request whose worst case does not fit is not sent; the texts say so."""
    texts_per_request(1)
    traffic = Pace(limits=Limits(budget=Decimal("0.0045")))
    with Provider() as provider:
        embedder = embedder_of(provider, price=DOLLAR)
        found = embed(embedder, "x" * 4000, "y" * 4000, traffic=traffic)
        assert len(provider.requests) == 1
    assert reasons(found) == ["vector", "budget"]
    assert traffic.budget.spent == Decimal("0.001")


def test_the_table_knows_the_price_of_embeddings() -> None:
    """Of texts alone; a chat model's is none, nor is that of a server that it does not know."""
    price = find_price("text-embedding-3-small", has_answers=False)
    assert isinstance(price, Price)
    assert price.tiers[0][:2] == (Decimal("0.02"), Decimal(0))
    assert "text-embedding-3-small" in price.source
    assert find_price("text-embedding-3-small") is None
    assert find_price("gpt-4o-mini", has_answers=False) is None
    assert find_price("text-embedding-3-small", "http://127.0.0.1:1/v1", has_answers=False) is None


# Settings


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"dimensions": 0}, "dimensions"),
        ({"timeout": 0}, "timeout"),
        ({"max_attempts": 0}, "max_attempts"),
        ({"api_key": ""}, "the API key is empty"),
        ({"header": {"x": "@Y"}}, "header: Input should be a valid list"),
        ({"model": ""}, "model"),
        ({"base_url": "http://example.com/v1"}, "in the clear"),
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, Any], said: str) -> None:
    """When the embedder is made; an empty name of a model too."""
    with pytest.raises(UsageError, match=said):
        OpenAIEmbedder(**{"model": "m", "api_key": KEY, **settings})
