from __future__ import annotations

import asyncio
import contextlib
import copy
import http.client
import json
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from wire.clients import ask, client_of, comes_true, record, request_of, send
from wire.provider import (
    BEHAVIOURS,
    COMPLETIONS,
    FAULTS,
    Call,
    Json,
    Provider,
    Wire,
    done_but,
    faulty,
    format_problems,
    late,
    spread,
)

GOOD: Json = {
    "type": "json_schema",
    "json_schema": {
        "name": "label_v1",
        "strict": True,
        "schema": {
            "type": "object",
            "additionalProperties": False,
            "required": ["a", "b"],
            "properties": {
                "a": {"type": "string", "title": "A", "description": "Said."},
                "b": {"type": "array", "items": {"$ref": "#/$defs/B"}},
            },
            "$defs": {
                "B": {
                    "type": "object",
                    "additionalProperties": False,
                    "required": ["c"],
                    "properties": {"c": {"type": "boolean"}},
                }
            },
        },
    },
}


def _schema(value: Json) -> Json:
    schema: Json = value["json_schema"]["schema"]
    return schema


SPOILS: dict[str, Callable[[Json], Any]] = {
    "json_schema": lambda value: value.update(type="json_object"),
    "strict": lambda value: value["json_schema"].pop("strict"),
    "name": lambda value: value["json_schema"].update(name="label/v1"),
    "'additionalProperties'": lambda value: _schema(value).pop("additionalProperties"),
    "schema.B: 'additionalProperties'": lambda value: _schema(value)["$defs"]["B"].update(
        additionalProperties=True
    ),
    "'required'": lambda value: _schema(value)["required"].pop(),
    "'default'": lambda value: _schema(value)["properties"]["a"].update(default=""),
    "'minLength'": lambda value: _schema(value)["properties"]["a"].update(minLength=1),
    "siblings": lambda value: _schema(value)["properties"]["b"]["items"].update(title="B"),
    "identical first keys": lambda value: _schema(value)["properties"]["b"].update(
        anyOf=[{"properties": {"x": {}}}, {"properties": {"x": {}, "y": {}}}]
    ),
    "root": lambda value: value["json_schema"].update(schema={"type": "array"}),
}


def test_a_strict_format_passes() -> None:
    """Titles, descriptions, references and lists are permitted."""
    assert format_problems(GOOD) == []


@pytest.mark.parametrize("word", SPOILS)
def test_what_strict_mode_forbids_is_refused(word: str) -> None:
    """Each rule of the provider is found broken, and named."""
    spoiled = copy.deepcopy(GOOD)
    SPOILS[word](spoiled)
    assert word in "; ".join(format_problems(spoiled))


# Over HTTP


def test_the_server_speaks_plain_http() -> None:
    """Any client can ask it, and it records what came."""
    message = 'BEGIN DOCUMENTS m\n0a "x"\nEND DOCUMENTS m'
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": message}],
        "response_format": GOOD,
    }
    with Provider() as provider:
        answer = ask(provider, body).body
    assert json.loads(answer["choices"][0]["message"]["content"])["overall_supported"] is True
    assert (provider.calls[0].keys("DOCUMENTS"), provider.calls[0].body) == (["0a"], body)
    assert provider.calls[0].identity == "m"


def test_the_library_reads_its_answers() -> None:
    """A completion is one for the real client."""
    with Provider() as provider, client_of(provider) as client:
        found = client.chat.completions.create(**request_of())
    assert found.usage is not None
    assert (found.usage.prompt_tokens, found.choices[0].finish_reason) == (10_000, "stop")


def test_requests_may_come_in_pieces_and_in_a_row() -> None:
    """A request is answered when it is whole, and the next of the same connection after it."""
    body = json.dumps(request_of()).encode()
    head = f"POST {COMPLETIONS} HTTP/1.1\r\nAuthorization: Bearer k\r\nContent-Length: {len(body)}"
    whole = head.encode() + b"\r\n\r\n" + body
    with Provider() as provider, socket.create_connection(("127.0.0.1", provider.port), 10) as peer:
        for start in range(0, len(whole), 1000):
            peer.sendall(whole[start : start + 1000])
        peer.sendall(whole)
        with peer.makefile("rb") as answers:
            for _ in range(2):
                assert answers.readline() == b"HTTP/1.1 200 OK\r\n"
                headers = iter(answers.readline, b"\r\n")
                length = next(int(h[15:]) for h in list(headers) if h.startswith(b"content-length"))
                assert json.loads(answers.read(length))["object"] == "chat.completion"
    assert [call.number for call in provider.calls] == [1, 2]


@pytest.mark.parametrize(
    "noise", [b"hello\r\n\r\n", b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked"]
)
def test_what_is_no_request_ends_the_connection(noise: bytes) -> None:
    """So does a request that does not state its length."""
    with Provider() as provider, socket.create_connection(("127.0.0.1", provider.port), 10) as peer:
        peer.sendall(noise + b"\r\n\r\n")
        assert peer.recv(1) == b""
    assert provider.requests == []


def test_other_routes_and_strangers_are_refused() -> None:
    """An unknown address is not found, and without a key nothing is done; both count as calls."""
    with Provider() as provider:
        assert ask(provider, {}, "/v1/other").code == "unknown_url"
        assert ask(provider, request_of(), key="").code == "missing_api_key"
        assert len(provider.calls) == 2
        assert provider.paid == {}


def test_a_peer_that_leaves_ends_its_call() -> None:
    """Nothing is in flight any more, and nobody is charged."""
    with Provider(["hang", late(3600)]) as provider:
        for number in (1, 2):
            with send(provider, request_of()):
                assert comes_true(lambda: provider.in_flight == 1)
            assert comes_true(lambda: provider.in_flight == 0)
            assert len(provider.calls) == number
        assert provider.paid == {}


def test_it_counts_how_many_it_answers_at_once() -> None:
    """Every answer waits here until three are being made."""
    provider = Provider(lambda _: together)

    async def together(call: Call, wire: Wire) -> None:
        while provider.most_in_flight < 3:  # noqa: ASYNC110 - the counter is no event
            await asyncio.sleep(0.001)
        await BEHAVIOURS["ok"](call, wire)

    with provider, contextlib.ExitStack() as peers:
        for _ in range(3):
            peers.enter_context(send(provider, request_of()))
        assert comes_true(lambda: provider.paid.total() == 3)
        assert comes_true(lambda: provider.in_flight == 0)
    assert provider.most_in_flight == 3


def test_latencies_depend_on_the_record_alone() -> None:
    """Seeded, whatever the order in which records are asked."""
    calls = made_calls(50)
    first, second, other = (spread(0.1, seed=seed) for seed in (1, 1, 2))
    found = {call.identity: first(call) for call in calls}
    assert found == {call.identity: second(call) for call in reversed(calls)}
    assert found != {call.identity: other(call) for call in calls}
    assert 0.05 < sorted(found.values())[25] < 0.2


# What is charged


def test_an_answer_is_charged_when_it_was_sent_to_its_end() -> None:
    """Refusals and broken labels cost; errors, half answers and answers without usage do not."""
    costly = ["ok", "refusal", "truncated", "malformed", "unknown-key", "drift"]
    free = ["429", "500", "503", "reset", "close", "short", "no-usage", "html"]
    for behaviors, times in ((costly, len(costly)), (free, 0)):
        with Provider(behaviors) as provider:
            for _ in behaviors:
                with contextlib.suppress(OSError, http.client.HTTPException):
                    ask(provider, request_of(record("r1")))
            assert list(provider.paid.values()) == ([times] if times else [])
            assert provider.tokens == (10_000 * times, 10 * times)


def test_a_record_that_is_paid_twice_shows() -> None:
    """By its data, whatever else the request holds."""
    with Provider() as provider:
        for parameters in ({}, {"temperature": 0}):
            ask(provider, request_of(record("r1"), **parameters))
        ask(provider, request_of(record("r2")))
    assert sorted(provider.paid.values()) == [1, 2]
    assert provider.stats()["paid"] == {"records": 2, "answers": 3, "duplicates": 1}


def test_an_answer_can_get_lost_on_the_way() -> None:
    """It was made, but the peer saw an error, so that it is not charged."""
    with Provider([done_but("500")]) as provider:
        assert ask(provider, request_of()).status == 500
        assert provider.paid == {}


def test_tokens_are_counted_from_the_text() -> None:
    """Four bytes each, rounded up over messages and schema; the answer by its content."""
    body = request_of()
    schema = json.dumps(body["response_format"]["json_schema"]["schema"])
    size = sum(len(m["content"].encode()) for m in body["messages"]) + len(schema.encode())
    with Provider(count_tokens=True) as provider:
        answer = ask(provider, body).body
        assert provider.tokens == (
            answer["usage"]["prompt_tokens"],
            answer["usage"]["completion_tokens"],
        )
    content = answer["choices"][0]["message"]["content"]
    assert answer["usage"]["prompt_tokens"] == -(-size // 4)
    assert answer["usage"]["completion_tokens"] == -(-len(content.encode()) // 4)


def test_a_long_prefix_is_cached_after_its_first_use() -> None:
    """From 1,024 tokens on, in steps of 128, for the same model."""

    def cached(system: str, model: str = "m") -> int:
        body = request_of(model=model)
        body["messages"][0]["content"] = system
        usage = ask(provider, body).body["usage"]
        tokens: int = usage["prompt_tokens_details"]["cached_tokens"]
        return tokens

    with Provider(count_tokens=True) as provider:
        long, short = "x" * 4 * 1300, "x" * 4 * 1023
        assert [cached(long), cached(long), cached(long, "n")] == [0, 1280, 0]
        assert [cached(short), cached(short)] == [0, 0]
        assert provider.cached_tokens == 1280


# Faults


def made_calls(count: int) -> list[Call]:
    """Calls for records of their own."""
    bodies = (json.dumps(request_of(record(f"r{number}"))).encode() for number in range(count))
    return [Call(n, "POST", COMPLETIONS, {}, raw) for n, raw in enumerate(bodies, 1)]


def test_a_stated_share_of_calls_misbehaves() -> None:
    """All kinds come up; none at 0, every one at 1."""
    calls = made_calls(500)
    picked = [pick for pick in map(faulty(0.2, seed=7), calls) if pick]
    assert 70 <= len(picked) <= 130
    assert set(map(faulty(1), calls)) == set(FAULTS)
    assert set(map(faulty(0), calls)) == {None}


def test_faults_depend_on_the_record_and_how_often_it_was_asked() -> None:
    """Not on the order; a record that failed may well pass the next time."""
    calls = made_calls(100)
    one, other = faulty(0.5, seed=3), faulty(0.5, seed=3)
    first = {call.identity: (one(call), one(call)) for call in calls}
    turned = [other(call) for call in reversed(calls)]
    again = {call.identity: (turned[-n], other(call)) for n, call in enumerate(calls, 1)}
    assert first == again
    assert any(before and not after for before, after in first.values())
    assert first != {call.identity: (p(call), p(call)) for p in [faulty(0.5)] for call in calls}


# In a process of its own


@pytest.fixture
def served() -> Iterator[Callable[..., str]]:
    """Starts the provider as a program, and gives its address; ends it after the test."""
    started: list[subprocess.Popen[str]] = []

    def serve(*options: str) -> str:
        program = [sys.executable, str(Path(__file__).with_name("provider.py")), *options]
        started.append(subprocess.Popen(program, stdout=subprocess.PIPE, text=True))
        assert started[-1].stdout is not None
        return started[-1].stdout.readline().strip()

    yield serve
    for process in started:
        with process:
            process.terminate()


def test_it_runs_in_a_process_of_its_own(served: Callable[..., str]) -> None:
    """Its first line is its address, and its counters can be read from outside."""
    far = served("ok", "500", "--requests-per-second", "0.001", "--burst", "3", "--count-tokens")
    replies = [ask(far, request_of()) for _ in range(4)]
    stats = ask(far, path="/stats", key="").body
    assert [reply.status for reply in replies] == [200, 500, 200, 429]
    assert (stats["calls"], stats["limited"], stats["in_flight"]) == (4, 1, 0)
    assert stats["paid"] == {"records": 1, "answers": 2, "duplicates": 1}
    assert stats["tokens"]["prompt"] == 2 * replies[0].body["usage"]["prompt_tokens"]


def test_a_process_misbehaves_as_told(served: Callable[..., str]) -> None:
    """A share of calls, of the kinds named, after a latency."""
    far = served(
        *[
            "--faults",
            "1",
            "--kinds",
            "500",
            "--seed",
            "7",
            "--latency",
            "0.001",
            "--spread",
            "0.1",
        ]
    )
    assert [ask(far, request_of()).status for _ in range(3)] == [500] * 3


def test_an_unknown_behavior_is_a_wrong_use() -> None:
    """The program names it."""
    program = [sys.executable, str(Path(__file__).with_name("provider.py")), "nonsense"]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert (done.returncode, "unknown behaviors ['nonsense']" in done.stderr) == (2, True)
