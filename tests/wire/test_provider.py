"""The server of the tests is as strict as the provider, else tests of judges would pass in vain.

The tests of judges, batches and embedders show its answers, faults and limits.
"""

from __future__ import annotations

import contextlib
import copy
import http.client
import json
import math
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from wire.clients import ask, client_of, record, request_of
from wire.provider import (
    COMPLETIONS,
    FAULTS,
    Call,
    Json,
    Limits,
    ModelCard,
    Provider,
    Rates,
    faulty,
    format_problems,
)
from wire.rates import Bucket

STRICT: Json = {
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
    assert format_problems(STRICT) == []


@pytest.mark.parametrize("word", SPOILS)
def test_what_strict_mode_forbids_is_refused(word: str) -> None:
    """Each rule of the provider is found broken, and named."""
    spoiled = copy.deepcopy(STRICT)
    SPOILS[word](spoiled)
    assert word in "; ".join(format_problems(spoiled))


CARD = ModelCard("thinking", refuses=frozenset({"temperature", "max_tokens"}))
THINKING = request_of(model="thinking")
EMBEDDING, BATCH = "/v1/embeddings", "/v1/batches"


@pytest.mark.parametrize(
    ("path", "body", "code", "param"),
    [
        ("/v1/other", {}, "unknown_url", None),
        (COMPLETIONS, request_of(model="new"), "model_not_found", "model"),
        (COMPLETIONS, THINKING | {"temperature": 0}, "unsupported_value", "temperature"),
        (COMPLETIONS, THINKING | {"max_tokens": 9}, "unsupported_parameter", "max_tokens"),
        *(
            (EMBEDDING, {"model": "thinking", "input": text}, None, "input")
            for text in ("", [], ["a", ""], 7)
        ),
        (EMBEDDING, {"model": "thinking", "input": "a", "dimensions": 0}, None, "dimensions"),
        (BATCH, {"endpoint": EMBEDDING}, None, "endpoint"),
        (BATCH, {"completion_window": "48h"}, None, "completion_window"),
        (BATCH, {"input_file_id": "file-none"}, None, "input_file_id"),
        (BATCH, {"metadata": {"a": "x" * 513}}, None, "metadata"),
    ],
)
def test_wrong_requests_are_refused(
    path: str, body: Json, code: str | None, param: str | None
) -> None:
    """With the provider's code and the parameter; without a key, everything is."""
    with Provider(models=[CARD]) as provider, client_of(provider) as client:
        if path == BATCH:
            file = client.files.create(file=("in.jsonl", b"{}"), purpose="batch")
            right = {"endpoint": COMPLETIONS, "completion_window": "24h", "input_file_id": file.id}
            body = right | body
        reply = ask(provider, body, path)
        assert ask(provider, body, path, key="").code in {"missing_api_key", "unknown_url"}
        assert (provider.paid, provider.batches.all) == ({}, {})
    assert reply.status in {400, 404}
    assert code is None or reply.code == code
    assert reply.body["error"].get("param") == param


def line(name: str, **changed: Any) -> Json:
    """One request of a batch."""
    body = request_of(record(name))
    return {"custom_id": name, "method": "POST", "url": COMPLETIONS, "body": body, **changed}


def jsonl(*lines: Json) -> bytes:
    """An input file."""
    return b"".join(json.dumps(each).encode() + b"\n" for each in lines)


GOOD = jsonl(*map(line, ("r1", "r2")))
FLAWS: dict[str, tuple[bytes, str]] = {
    "no JSON": (b'{"custom_id": \n', "invalid_json_line"),
    "no object": (b"[]\n", "invalid_json_line"),
    "used before": (jsonl(line("r1")), "duplicate_custom_id"),
    "no id": (jsonl(line("r2", custom_id=None)), "missing_required_parameter"),
    "a GET": (jsonl(line("r2", method="GET")), "invalid_method"),
    "elsewhere": (jsonl(line("r2", url="/v1/embeddings")), "url_mismatch"),
    "no body": (jsonl(line("r2", body=None)), "missing_required_parameter"),
    "two models": (jsonl(line("r2", body=request_of(model="other"))), "model_mismatch"),
}


@pytest.mark.parametrize(
    ("content", "limits", "error"),
    [
        *((jsonl(line("r1")) + flaw, Limits(), (code, 2)) for flaw, code in FLAWS.values()),
        (b"\n", Limits(), ("empty_file", None)),
        (GOOD, Limits(lines=1), ("too_many_tasks", None)),
        (GOOD, Limits(size=len(GOOD) - 1), ("file_too_large", None)),
        (GOOD, Limits(2, len(GOOD)), None),
    ],
    ids=[*FLAWS, "empty", "lines", "size", "at the limits"],
)
def test_a_batch_with_a_flaw_fails(
    content: bytes, limits: Limits, error: tuple[str, int | None] | None
) -> None:
    """The error names the line, and nothing of it is executed; at the limits it passes."""
    with Provider(limits=limits) as provider, client_of(provider) as client:
        file = client.files.create(file=("in.jsonl", content), purpose="batch")
        batch = client.batches.create(
            input_file_id=file.id, endpoint=COMPLETIONS, completion_window="24h"
        )
        for _ in range(3):
            batch = client.batches.retrieve(batch.id)
        executed = len(provider.batch_lines)
    found = batch.errors.data if batch.errors else []
    assert [(one.code, one.line) for one in found or []] == ([error] if error else [])
    assert (batch.status, executed) == (("failed", 0) if error else ("completed", 2))


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
            assert provider.stats()["paid"]["duplicates"] == max(0, times - 1)


def test_requests_and_tokens_above_the_rate_are_refused() -> None:
    """With the time to wait; a prompt counts with its cap, and one that never passes has none."""
    with Provider(rates=Rates(1 / 3600, burst=1)) as provider:
        replies = [ask(provider, request_of()) for _ in range(2)]
        assert (provider.limited, provider.paid.total()) == (1, 1)
    assert [reply.status for reply in replies] == [200, 429]
    assert 3500 < int(replies[1].headers["retry-after"]) <= 3600
    with Provider(rates=Rates(tokens_per_minute=10_000)) as provider:
        sizes = (5_000, 5_000, 20_000)
        _, late, never = (ask(provider, request_of(max_completion_tokens=n)) for n in sizes)
    assert (late.status, late.body["error"]["type"]) == (429, "tokens")
    assert ("retry-after" in late.headers, "retry-after" in never.headers) == (True, False)


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


def test_a_stated_share_of_calls_misbehaves() -> None:
    """By the record and how often it was asked, not by the order; none at 0, every one at 1."""
    bodies = (json.dumps(request_of(record(f"r{number}"))).encode() for number in range(500))
    calls = [Call(n, "POST", COMPLETIONS, {}, raw) for n, raw in enumerate(bodies, 1)]
    one, other = faulty(0.2, seed=7), faulty(0.2, seed=7)
    picked = {call.identity: (one(call), one(call)) for call in calls}
    assert 70 <= sum(bool(first) for first, _ in picked.values()) <= 130
    assert any(first and not second for first, second in picked.values())
    again = {call.identity: other(call) for call in reversed(calls)}
    assert again == {name: first for name, (first, _) in picked.items()}
    assert set(map(faulty(1), calls)) == set(FAULTS)
    assert set(map(faulty(0), calls)) == {None}


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
