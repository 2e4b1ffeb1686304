from __future__ import annotations

import json
from typing import Any

import pytest
from openai import APIStatusError, OpenAI
from openai.types import Batch

from wire.calls import Json
from wire.clients import ask, client_of, record, request_of
from wire.provider import (
    COMPLETIONS,
    Call,
    Limits,
    Provider,
    expires,
)

NAMES = ["r1", "r2", "r3", "r4"]


def line(name: str, **changed: Any) -> Json:
    """One request of a batch."""
    return {
        "custom_id": name,
        "method": "POST",
        "url": COMPLETIONS,
        "body": request_of(record(name)),
        **changed,
    }


def jsonl(*lines: Json) -> bytes:
    """An input file."""
    return b"".join(json.dumps(each).encode() + b"\n" for each in lines)


GOOD = jsonl(*map(line, NAMES))


def created(client: OpenAI, content: bytes = GOOD, **settings: Any) -> Batch:
    """Upload a file and make a batch of it."""
    file = client.files.create(file=("in.jsonl", content), purpose="batch")
    return client.batches.create(
        input_file_id=file.id, endpoint=COMPLETIONS, completion_window="24h", **settings
    )


def ended(client: OpenAI, content: bytes = GOOD) -> Batch:
    """A batch that was looked up until it was over."""
    batch = created(client, content)
    for _ in range(10):
        batch = client.batches.retrieve(batch.id)
        if batch.status not in {"validating", "in_progress", "finalizing", "cancelling"}:
            return batch
    raise AssertionError(batch.status)


def lines_of(client: OpenAI, file_id: str | None) -> dict[str, Json]:
    """The lines of an output or error file by their custom id."""
    if file_id is None:
        return {}
    values = map(json.loads, client.files.content(file_id).text.splitlines())
    return {value["custom_id"]: value for value in values}


def counts(batch: Batch) -> tuple[int, int, int]:
    """Total, completed, failed."""
    found = batch.request_counts
    assert found is not None
    return found.total, found.completed, found.failed


# Files


def test_a_file_comes_back_byte_for_byte() -> None:
    """Also one whose content looks like the end of a form."""
    with Provider() as provider, client_of(provider) as client:
        content = b'{"a": "--x\r\n\r\n"}\n'
        file = client.files.create(file=("in.jsonl", content), purpose="batch")
        assert (file.bytes, file.filename, file.purpose) == (len(content), "in.jsonl", "batch")
        assert client.files.content(file.id).content == content


@pytest.mark.parametrize(
    ("changed", "param"),
    [
        ({"purpose": "vision"}, "purpose"),
        ({"file": ("in.txt", b"{}")}, "file"),
    ],
)
def test_an_upload_that_no_batch_can_use_is_refused(changed: Json, param: str) -> None:
    """The error names the field."""
    settings: Json = {"file": ("in.jsonl", b"{}"), "purpose": "batch", **changed}
    with Provider() as provider, client_of(provider) as client:
        with pytest.raises(APIStatusError) as caught:
            client.files.create(**settings)
        assert (caught.value.status_code, caught.value.param) == (400, param)
        assert provider.files.all == {}


# How a batch goes on


def test_a_batch_completes_on_the_second_look() -> None:
    """It is seen in progress half way, then with a line for every request."""
    with Provider() as provider, client_of(provider) as client:
        batch = created(client, metadata={"run": "7"})
        seen = [batch, *(client.batches.retrieve(batch.id) for _ in range(3))]
        output = lines_of(client, seen[-1].output_file_id)
    assert [b.status for b in seen] == ["validating", "in_progress", "completed", "completed"]
    assert [counts(b) for b in seen] == [(0, 0, 0), (4, 2, 0), (4, 4, 0), (4, 4, 0)]
    assert sorted(output) == NAMES
    assert (seen[-1].error_file_id, seen[-1].metadata) == (None, {"run": "7"})
    assert (seen[-1].model, seen[-1].errors) == ("model-1", None)
    assert None not in (seen[-1].in_progress_at, seen[-1].completed_at, seen[-1].expires_at)


def test_output_comes_in_another_order_by_the_seed() -> None:
    """The same for the same seed, and not the order of the input."""

    def order(seed: int) -> list[str]:
        names = [f"r{number}" for number in range(12)]
        with Provider(seed=seed) as provider, client_of(provider) as client:
            batch = ended(client, jsonl(*map(line, names)))
            return list(lines_of(client, batch.output_file_id))

    first = order(1)
    assert first == order(1)
    assert first != order(2)
    assert first != sorted(first, key=lambda name: int(name[1:]))


def test_lines_take_behaviors_from_the_script() -> None:
    """A refusal is an answer; an error status goes to the error file, and so does silence."""
    odd = {"r1": "500", "r2": "hang", "r3": "refusal", "r4": "503"}

    def script(call: Call) -> str:
        return next(behavior for name, behavior in odd.items() if name.encode() in call.raw)

    with Provider(script) as provider, client_of(provider) as client:
        batch = ended(client)
        output = lines_of(client, batch.output_file_id)
        errors = lines_of(client, batch.error_file_id)
    assert (counts(batch), list(output)) == ((4, 1, 3), ["r3"])
    assert errors["r1"]["response"]["status_code"] == 500
    assert errors["r1"]["response"]["body"]["error"]["code"] == "server_error"
    assert (errors["r2"]["response"], errors["r2"]["error"]["code"]) == (None, "request_timeout")
    assert errors["r4"]["response"]["body"].startswith("<html>")


def test_a_line_is_held_to_the_strict_schema() -> None:
    """What is refused online is refused in a batch."""
    loose = line("r1")
    loose["body"]["response_format"]["json_schema"]["strict"] = False
    with Provider() as provider, client_of(provider) as client:
        batch = ended(client, jsonl(loose, line("r2")))
        errors = lines_of(client, batch.error_file_id)
    assert errors["r1"]["response"]["body"]["error"]["code"] == "invalid_json_schema"
    assert counts(batch) == (2, 1, 1)


def test_a_batch_that_expires_returns_what_was_done() -> None:
    """The rest stands in the error file as expired, and is not charged."""
    with Provider(batches=expires(0.5)) as provider, client_of(provider) as client:
        batch = ended(client)
        output = lines_of(client, batch.output_file_id)
        errors = lines_of(client, batch.error_file_id)
        assert len(provider.batch_lines) == provider.paid.total() == 2
    assert (batch.status, counts(batch)) == ("expired", (4, 2, 2))
    assert sorted([*output, *errors]) == NAMES
    assert {e["error"]["code"] for e in errors.values()} == {"batch_expired"}
    assert {e["response"] for e in errors.values()} == {None}


def test_a_cancelled_batch_returns_what_was_done() -> None:
    """It is cancelling until it is looked up; no line is executed after that."""
    with Provider() as provider, client_of(provider) as client:
        batch = created(client)
        client.batches.retrieve(batch.id)
        assert client.batches.cancel(batch.id).status == "cancelling"
        batch = client.batches.retrieve(batch.id)
        errors = lines_of(client, batch.error_file_id)
        assert (batch.status, counts(batch)) == ("cancelled", (4, 2, 2))
        assert {e["error"]["code"] for e in errors.values()} == {"batch_cancelled"}
        assert len(provider.batch_lines) == 2
        with pytest.raises(APIStatusError) as caught:
            client.batches.cancel(batch.id)
    assert caught.value.status_code == 409


# Validation


def failing(content: bytes, **settings: Any) -> list[tuple[str | None, int | None]]:
    """Codes and line numbers of a batch that fails; nothing of it is executed."""
    with Provider(**settings) as provider, client_of(provider) as client:
        batch = ended(client, content)
        assert (provider.batch_lines, batch.output_file_id) == ([], None)
    assert batch.status == "failed"
    assert batch.errors is not None
    return [(error.code, error.line) for error in batch.errors.data or []]


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


@pytest.mark.parametrize("flaw", FLAWS)
def test_a_line_with_a_flaw_fails_the_batch(flaw: str) -> None:
    """The error names the line."""
    content, code = FLAWS[flaw]
    assert failing(jsonl(line("r1")) + content) == [(code, 2)]


@pytest.mark.parametrize(
    ("content", "limits", "code"),
    [
        (b"\n", Limits(), "empty_file"),
        (GOOD, Limits(lines=3), "too_many_tasks"),
        (GOOD, Limits(size=len(GOOD) - 1), "file_too_large"),
    ],
)
def test_a_file_out_of_bounds_fails_the_batch(content: bytes, limits: Limits, code: str) -> None:
    """Its size and the number of its lines are limited; at the limits it passes."""
    assert failing(content, limits=limits) == [(code, None)]
    with Provider(limits=Limits(4, len(GOOD))) as provider, client_of(provider) as client:
        assert ended(client).status == "completed"


@pytest.mark.parametrize(
    ("changed", "param"),
    [
        ({"endpoint": "/v1/embeddings"}, "endpoint"),
        ({"completion_window": "48h"}, "completion_window"),
        ({"input_file_id": "file-none"}, "input_file_id"),
        ({"metadata": {"a": "x" * 513}}, "metadata"),
    ],
)
def test_a_batch_with_a_wrong_parameter_is_not_created(changed: Json, param: str) -> None:
    """The error names the parameter."""
    with Provider() as provider, client_of(provider) as client:
        file = client.files.create(file=("in.jsonl", GOOD), purpose="batch")
        right = {
            "input_file_id": file.id,
            "endpoint": COMPLETIONS,
            "completion_window": "24h",
        }
        refused = ask(provider, {**right, **changed}, "/v1/batches")
        assert provider.batches.all == {}
    assert refused.status in {400, 404}
    assert refused.body["error"]["param"] == param


# Finding batches


def test_batches_are_listed_newest_first_in_pages() -> None:
    """The library's pages go through all of them, and a look at the list moves none."""
    with Provider() as provider, client_of(provider) as client:
        made = [created(client).id for _ in range(5)]
        page = client.batches.list(limit=2)
        assert ([b.id for b in page.data], page.has_more) == (made[:-3:-1], True)
        assert [b.id for b in client.batches.list(limit=2)] == made[::-1]
        assert {b.status for b in client.batches.list()} == {"validating"}


# Failures on the way
