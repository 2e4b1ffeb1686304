"""Batches from the command line, and what is known of them on the disk."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from labeler.errors import StoreError, UsageError
from labeler.judges.openai.request import OpenAISpec
from labeler.labeling.cache import LabelCache
from labeler.plugins.batch import PendingKeys
from labeler.plugins.batch.folder import (
    Batch,
    BatchRequest,
    Results,
    batches,
    pending_keys,
    place,
    write_batches,
)
from labeler.plugins.batch.remote import RemoteBatch
from labeler.store import MemoryStore
from support import samples
from support.command import Command
from support.records import sample_record
from wire.behaviors import Behavior, body
from wire.provider import Call, Provider, completes, expires, never
from wire.runs import KEY, row_file, rows


class BatchCommand(NamedTuple):
    """Runs ``labeler batch`` in this process."""

    command: Command
    url: str

    def __call__(self, *arguments: object) -> tuple[int, str, str]:
        """Exit code, standard output, standard error."""
        return self.anywhere(*arguments, "--base-url", self.url)

    def anywhere(self, *arguments: object) -> tuple[int, str, str]:
        """The same without an address."""
        return self.command("batch", *arguments)

    def submit(self, *more: object) -> str:
        """Hand ``rows.jsonl`` in; the name of the submission."""
        return self("submit", "rows.jsonl", "--model", "m", *more)[1].strip()


@pytest.fixture
def provider() -> Iterator[Provider]:
    """A server whose first batch expires half-way, if it has two lines."""
    with Provider(batches=[expires(0.5)]) as server:
        yield server


@pytest.fixture
def command(
    labeler_command: Command, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> BatchCommand:
    """The command, in a folder of its own with two rows in ``rows.jsonl``."""
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    row_file(Path(), rows(2))
    return BatchCommand(labeler_command, provider.url)


def test_a_batch_is_handed_in_looked_at_and_collected(command: BatchCommand) -> None:
    """The way from rows to labels, with what is said on it."""
    code, name, err = command("submit", "rows.jsonl", "--judge", "openai:m")
    assert (code, len(name.split())) == (0, 1)
    handed_in, *_ = err.splitlines()
    assert handed_in == "2 requests handed in, 1 file"
    code, out, _ = command("status")
    assert code == 0
    assert all(word in out for word in (name.strip()[:8], "in_progress", "wait"))
    code, out, err = command("collect", "--price", "2,20")
    assert (code, out) == (75, "")
    assert "1 label stored, 0 failed, 1 asked again (expired 1)" in err
    assert "10000 prompt tokens (40 cached), 10 completion tokens, $0.0101 in batches" in err
    codes = [command("collect")[0] for _ in range(3)]
    assert codes == [75, 0, 0]
    assert command("status", "--json")[1].count('"state": "collected"') == 2
    code, _, err = command("submit", "rows.jsonl", "--model", "m")
    assert (code, err.strip()) == (0, "nothing to hand in (stored 2)")
    assert command.anywhere("status")[2] == ""  # no address has to be looked up


def test_json_is_one_object_for_programs(command: BatchCommand) -> None:
    """Submit, status and collect can be read by a program."""
    _, out, _ = command("submit", "rows.jsonl", "--model", "m", "--json")
    submitted = json.loads(out)
    assert (submitted["lines"], submitted["parts"], submitted["bad"]) == (2, 1, [])
    _, out, err = command("status", "--json")
    (view,) = json.loads(out)
    assert (view["name"], view["lines"]) == (f"{submitted['batch']}-0001", 2)
    assert err == ""
    collected = json.loads(command("collect", "--json")[1])
    assert collected["still_open"] == 1
    assert collected["results"]["usage"]["prompt_tokens"] == 10_000


def test_bad_rows_are_told_and_end_in_1(command: BatchCommand) -> None:
    """The others are handed in."""
    row_file(Path(), [*rows(1), {**rows(1, 2)[0], "response": ""}, 7])
    code, _, err = command("submit", "rows.jsonl", "--model", "m")
    said = ("1 request handed in", "2 rows cannot be asked about", "empty response")
    assert (code, [text in err for text in said]) == (1, [True] * 3)


def test_nothing_is_told_of_a_store_without_batches(command: BatchCommand) -> None:
    """And no store is made by looking."""
    assert command("status")[2] == ".labeler has no batches\n"
    code, _, err = command("collect")
    assert (code, "there is no label store in .labeler" in err) == (2, True)
    assert not Path(".labeler").exists()


def test_without_a_key_or_an_address_nothing_is_sent(
    command: BatchCommand, monkeypatch: pytest.MonkeyPatch, provider: Provider
) -> None:
    """The environment does not redirect documents, and no advice is given that does not fit."""
    asked = ["submit", "rows.jsonl", "--model", "m"]
    monkeypatch.setenv("OPENAI_BASE_URL", command.url)
    code, _, err = command.anywhere(*asked)
    assert (code, "on the command line only" in err) == (2, True)
    monkeypatch.delenv("OPENAI_BASE_URL")
    monkeypatch.delenv("OPENAI_API_KEY")
    code, _, err = command.anywhere(*asked)
    assert (code, "needs none" in err, "embedded" in err) == (2, True, False)
    for wrong, said in (
        (asked[:2], "needs --model"),
        ([*asked[:2], "--judge", "gemini:m"], "batches"),
    ):
        code, _, err = command.anywhere(*wrong)
        assert (code, said in err) == (2, True)  # as `label` says first
    assert not provider.requests


@pytest.mark.parametrize("key", [KEY, None])
def test_a_forgotten_address_is_named_and_gets_no_key(
    command: BatchCommand,
    monkeypatch: pytest.MonkeyPatch,
    provider: Provider,
    key: str | None,
) -> None:
    """Nothing is sent; the printed command can be copied, reaches the server, names no program."""
    monkeypatch.setenv("GATEWAY", "open")
    network = ["--header", "x-gateway=@GATEWAY", "--query", "api-version=1"]
    by_program = ["--api-key-command", f"{sys.executable} -c 'print(1)'"]
    command.submit("--store", "it's", *network, *by_program)
    if key is None:
        monkeypatch.delenv("OPENAI_API_KEY")
    sent = len(provider.requests)
    code, _, err = command.anywhere("collect", "--wait", "--store", "it's")
    assert (code, f"at {command.url}, not at https://api.openai.com/v1" in err) == (2, True)
    assert len(provider.requests) == sent
    words = shlex.split(err.split("`")[1])
    where = ["--store", "it's", "--base-url", command.url, *network]
    assert words == ["labeler", "batch", "collect", "--wait", *where]
    code, _, err = command.anywhere("status", "--store", "it's")
    assert (code, err.count(shlex.join(network))) == (2, 1)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    words.remove("--wait")
    code, _, err = command.anywhere(*words[2:])
    assert (code, "not answered yet" in err) == (75, True)
    assert {call.headers["x-gateway"] for call in provider.requests} == {"open"}


def test_a_batch_of_a_forgotten_address_is_not_cancelled_elsewhere(
    command: BatchCommand, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its address is named; letting go of its rows needs none, and no key."""
    name = command.submit()
    sent = len(provider.requests)
    code, _, err = command.anywhere("cancel", name)
    assert (code, f"`labeler batch cancel {name} --base-url {command.url}`" in err) == (2, True)
    monkeypatch.delenv("OPENAI_API_KEY")
    code, _, err = command.anywhere("cancel", name, "--drop")
    assert (code, err) == (0, f"{name}-0001: dropped\n")
    assert len(provider.requests) == sent


_LATE = body(b'{"id": "b", "status": "PAUSED", "expires_at": 1}')


@pytest.mark.parametrize(
    ("script", "code", "said"),
    [
        ({"POST /v1/chat/completions": lambda _: "refusal"}, 1, "2 failed (refusal 2)"),
        ({"GET /v1/batches/{id}": lambda _: "401"}, 2, "the API key was not accepted"),
        ({"GET /v1/batches/{id}": lambda _: "404"}, 2, "does not know it"),
        ({"GET /v1/batches/{id}": lambda _: _LATE}, 2, "has the status 'paused', which labeler"),
        ({"POST /v1/files": lambda _: "404"}, 2, "offers no batches at this address"),
        ({"POST /v1/files": lambda _: "413"}, 2, "the file is too large for this server"),
    ],
)
def test_a_wait_ends_in_1_for_failed_rows_and_in_2_where_waiting_does_not_help(
    command: BatchCommand,
    provider: Provider,
    script: dict[str, Callable[[Call], str | Behavior]],
    code: int,
    said: str,
) -> None:
    """The remedy is named, and the key is not shown."""
    provider.batches.courses = iter([completes(1)])
    provider._scripts.update(script)
    command.submit()
    found, _, err = command("collect", "--wait")
    assert (found, said in err, KEY in err) == (code, True, False)


def test_waiting_ends_cleanly_on_a_signal(command: BatchCommand, provider: Provider) -> None:
    """SIGTERM while it waits: one line, exit code 143, and everything is where it was."""
    provider.batches.courses = iter([never(1.0)])
    command.submit()
    provider._scripts["GET /v1/batches/{id}"] = lambda _: os.kill(os.getpid(), signal.SIGTERM)
    code, _, err = command("collect", "--wait")
    assert (code, "run it again to go on" in err, "Traceback" in err) == (143, True, False)
    del provider._scripts["GET /v1/batches/{id}"]
    provider.batches.all["batch_0001"].course = expires(1.0)
    codes = [command("collect")[0] for _ in range(2)]  # each look takes the batch a step further
    assert codes[-1] == 0


SUBMISSION = "20261122T104500Z-0123abcd"
NAME = f"{SUBMISSION}-0001"


def asked(number: int = 0) -> BatchRequest:
    """A request of its own."""
    example = samples.keyed_example(id=f"r{number}", question=f"What is {number}?")
    return BatchRequest.of(samples.request(example))


def prepared(store: Path, count: int = 3) -> Batch:
    """A batch that is prepared and not sent."""
    spec = OpenAISpec(model="m", base_url="http://127.0.0.1/v1")
    requests = ((one, one.line(spec)) for one in map(asked, range(count)))
    place(write_batches(store / "batches" / SUBMISSION, spec, requests))
    return Batch.read(store / "batches" / NAME)


def keys(count: int = 3) -> list[str]:
    """The keys of the requests."""
    return [asked(number).task.key for number in range(count)]


# What is pending

REMOTE = RemoteBatch.model_validate({"id": "b"})


@pytest.mark.parametrize(
    ("step", "state", "expected"),
    [
        ({}, "prepared", 3),
        ({"file_id": "f"}, "uploaded", 3),
        ({"file_id": "f", "remote": REMOTE}, "created", 3),
        ({"file_id": "f", "remote": REMOTE, "results": Results()}, "collected", 0),
        ({"is_dropped": True}, "dropped", 0),
    ],
)
def test_what_may_still_be_answered_is_pending(
    tmp_path: Path, step: dict[str, Any], state: str, expected: int
) -> None:
    """From the moment that it is written down until it is collected or dropped."""
    prepared(tmp_path).save(**step)
    assert Batch.read(tmp_path / "batches" / NAME).state == state
    found = pending_keys(tmp_path)
    assert found == dict.fromkeys(keys()[:expected], NAME)


def test_a_batch_that_is_handed_in_meanwhile_is_noticed(tmp_path: Path) -> None:
    """A run that has looked already sees it with the next key, and takes output modes of it."""
    batch_of = PendingKeys(tmp_path)
    assert batch_of(keys()[0]) is None
    prepared(tmp_path)
    assert batch_of(keys()[0]) == NAME
    assert batch_of("0" * 64) is None
    assert LabelCache(MemoryStore()).is_new
    assert not LabelCache(MemoryStore(), pending={"batch": batch_of}).is_new


def test_a_label_that_is_collected_meanwhile_is_found() -> None:
    """A batch stores its labels before it closes; between both look-ups nothing is lost."""
    store, record = MemoryStore(), sample_record()

    class Collected(dict[str, str]):
        def __call__(self, _: str) -> None:
            store.put(record)

    task: Any = SimpleNamespace(key=record.key)
    assert LabelCache(store, pending={"batch": Collected()}).find(task) == record


# What is damaged


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("batch.json", None),
        ("batch.json", b""),
        ("batch.json", b"[]"),
        ("batch.json", b'{"version": 2}'),
        ("batch.json", b'{"spec": {"model": "m"}, "created": 0}'),
        ("batch.json", b"\xff"),
        ("asked.jsonl", None),
        ("asked.jsonl", b""),
        ("asked.jsonl", b"not a key\n" * 3),
    ],
)
def test_a_damaged_batch_is_refused_and_named(
    tmp_path: Path, file: str, content: bytes | None
) -> None:
    """Nothing is taken for free that may be paid for already; ``None`` for a file that is gone."""
    folder = prepared(tmp_path)
    (folder.path / file).unlink(missing_ok=True)
    if content is not None:
        (folder.path / file).write_bytes(content)
    with pytest.raises(StoreError, match=file):
        pending_keys(tmp_path)


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda text: text.replace("What is 1?", "What is 2?"), "not what its key says"),
        (lambda text: text.replace("trace/v1", "trace/v9"), "trace/v9"),
        (lambda text: text.replace('"example"', '"story"'), "Field required"),
        (lambda text: text.splitlines(keepends=True)[1], "1 of the 3"),
    ],
)
def test_a_request_that_was_changed_is_refused(
    tmp_path: Path, edit: Callable[[str], str], said: str
) -> None:
    """An answer is never stored for sentences that were not shown."""
    folder = prepared(tmp_path)
    path = folder.file("asked")
    path.write_text(edit(path.read_text()))
    with pytest.raises(StoreError, match=said):
        _ = folder.label_keys(), [request.task for request in folder.requests()]


def test_an_unknown_batch_is_refused_with_those_that_there_are(tmp_path: Path) -> None:
    """A path is no name either; the name of a submission stands for its batches."""
    prepared(tmp_path)
    for name in ("x", "..", f"../batches/{NAME}", NAME[:-1]):
        with pytest.raises(UsageError, match=NAME):
            batches(tmp_path, name)
    for name in (SUBMISSION, NAME):
        assert [one.name for one in batches(tmp_path, name)] == [NAME]


@pytest.mark.parametrize(
    ("field", "written", "read"),
    [
        ("status", "COMPLETED", "completed"), ("status", "JOB_STATE_SUCCEEDED", "completed"),
        ("status", "canceled", "cancelled"), ("status", "TIMEOUT_EXCEEDED", "expired"),
        ("status", "InProgress", "in_progress"), ("status", "in-progress", "in_progress"),
        ("status", "paused", "paused"), ("status", None, "unknown"), ("status", 7, "unknown"),
        ("expires_at", "soon", None), ("expires_at", 2e12, None), ("expires_at", 5, 5.0),
        ("errors", [{"code": "empty_file"}], ("empty_file",)), ("errors", "text", ()),
        *[("errors", {"data": problems}, ()) for problems in (None, 5, "text", {"code": "x"})],
        *[("errors", {"data": [{"code": "x", "message": f"Limit: {n} enqueued tokens"}]}, ("x",))
          for n in ("9,000", "0", ",", "none")],
    ],
)  # fmt: skip
def test_a_server_may_describe_a_batch_in_its_own_way(
    field: str, written: object, read: object
) -> None:
    """With other words than OpenAI's, or values that make no sense."""
    found = RemoteBatch.model_validate_json(json.dumps({"id": "b", field: written}))
    names = {"expires_at": "expires", "errors": "problems"}
    assert getattr(found, names.get(field, field)) == read
