"""Batches from the first byte handed in to the last label stored, against a server of our own."""

from __future__ import annotations

import asyncio
import errno
import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import labeler
from labeler.api import open_rows
from labeler.errors import FatalJudgeError, JudgeError, StoreError, UsageError
from labeler.judges.pricing import given_price
from labeler.labeling.options import LabelOptions
from labeler.labeling.tasks import label_tasks
from labeler.labels.record import LabelFailure, LabelRecord, Outcome
from labeler.plugins.batch import client, delete_requests, folder
from labeler.plugins.batch.client import OpenAIBatches
from labeler.plugins.batch.collect import Collection
from labeler.plugins.batch.folder import Batch, pending_keys
from labeler.plugins.batch.folder import batches as folders
from labeler.plugins.batch.remote import RemoteBatch
from labeler.plugins.batch.submission import Submission
from labeler.store.disk import DiskStore
from labeler.store.maintenance import RowSelection
from support.stored import failures_in, store_of
from wire.behaviors import Behavior, named
from wire.behaviors import body as sends
from wire.provider import Call, Provider, Script, completes, done_but, expires, fails, never
from wire.runs import KEY, brief, judge_of, rows, run


def service(provider: Provider, kind: type[OpenAIBatches] = OpenAIBatches) -> OpenAIBatches:
    """The provider's batches, with short pauses."""
    return kind(api_key=KEY, base_url=provider.url, sleep=brief)


def submit(
    provider: Provider,
    store: Path,
    given: Sequence[dict[str, Any]],
    kind: type[OpenAIBatches] = OpenAIBatches,
    *,
    judge: dict[str, Any] | None = None,
    **settings: Any,
) -> Submission:
    """Hand rows in."""
    how = {"judge": judge_of(provider, **(judge or {})), "batches": service(provider, kind)}
    done: Submission = labeler.submit_batch(given, **how, store=store, **settings)
    return done


def collect(
    provider: Provider, store: Path, kind: type[OpenAIBatches] = OpenAIBatches, **settings: Any
) -> Collection:
    """Look until everything is over."""
    at = service(provider, kind)
    done: Collection = labeler.collect_batches(at, store, wait=True, **settings)
    return done


def stored(store: Path) -> tuple[list[LabelRecord], list[LabelFailure]]:
    """Labels and failures of a store."""
    with DiskStore(store, create=False) as opened:
        labels = [record for record in opened if isinstance(record, LabelRecord)]
    return labels, failures_in(store)


def file_lines(provider: Provider, number: int = 0) -> list[dict[str, Any]]:
    """The lines of a file that was handed in."""
    files = [file for file in provider.files.all.values() if file.purpose == "batch"]
    return [json.loads(line) for line in files[number].content.splitlines()]


# What is handed in


def test_a_batch_asks_what_the_online_judge_asks(tmp_path: Path) -> None:
    """The body of each line is the online one's, but for caching and streams, in the same order.

    Nobody else can read the folder, in which there is no key.
    """

    def fields(body: dict[str, Any]) -> list[tuple[str, str]]:
        return sorted((name, json.dumps(value)) for name, value in body.items())

    settings: dict[str, Any] = {"temperature": 0.5, "seed": 7, "extra_body": {"top_k": 20}}
    settings |= {"max_output_tokens": 900, "cap_field": "max_tokens"}
    odd = "  tab\t, bidi \u202e, separator \u2028, {{ 7*7 }}, \U0001f600 "
    given = [*rows(2), {**rows(1)[0], "id": "odd", "question": odd, "documents": [odd + "Yes."]}]
    with Provider() as provider:
        online = judge_of(provider, prompt_cache="off", **settings)
        labeler.label(given, judge=online, store=tmp_path / "online")
        submit(provider, tmp_path / "batch", given, judge=settings)
        in_file = {line["custom_id"]: fields(line["body"]) for line in file_lines(provider)}
        assert all(call.body.pop("stream") is False for call in provider.calls)
        assert sorted(in_file.values()) == sorted(fields(call.body) for call in provider.calls)
    assert len(in_file) == 3
    assert set(in_file) == {record.key for record in stored(tmp_path / "online")[0]}
    for path in (tmp_path / "batch" / "batches", folders(tmp_path / "batch")[0].path):
        assert path.stat().st_mode & 0o777 == 0o700
    assert KEY not in "".join(held.read_text() for held in path.iterdir())


def test_what_costs_nothing_is_left_out(tmp_path: Path) -> None:
    """Stored labels, pending rows, rows alike and bad rows, and those that another run asks about.

    Lasting failures are handed in only on request. An estimate leaves out the same.
    """
    with Provider(["ok", "refusal"]) as provider:
        labeler.label(rows(2), judge=judge_of(provider), store=tmp_path, concurrency=1)
        assert submit(provider, tmp_path, rows(1, 2)).lines == 1
        twin = {**rows(1, 3)[0], "id": "twin"}
        bad = {**rows(1, 9)[0], "response": ""}
        conflict = {**rows(1)[0], "question": "Other?"}
        how = label_tasks(judge_of(provider), LabelOptions())
        asked = how.task(next(iter(open_rows(rows(1, 5)))).content)  # type: ignore[arg-type]  # an example
        with DiskStore(tmp_path) as other:
            lease = other.lease(asked.key)
            assert lease
            done = submit(provider, tmp_path, [*rows(6), twin, bad, conflict])
            lease.release()
        assert done.lines == 2
        assert done.left_out == {
            "stored": 1, "failed before": 1, "in a batch": 1, "alike": 1,
            "being labeled by another run": 1,
        }  # fmt: skip
        assert [failure.reason for failure in done.bad] == ["empty_response", "id_conflict"]
        assert submit(provider, tmp_path, rows(2), retry_failed=True).lines == 1
        found = labeler.estimate(rows(6), model="m", base_url=provider.url, store=tmp_path).rows
        assert (found.stored, found.pending, found.asked) == (1, 4, 1)
        assert collect(provider, tmp_path).results.labeled == 4


@pytest.mark.parametrize(("name", "limit", "parts"), [("LINES", 4, 3), ("BYTES", 15_000, 5)])
def test_large_work_is_split(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, limit: int, parts: int
) -> None:
    """No file has more lines or bytes than allowed, and every row comes back."""
    monkeypatch.setattr(folder, f"MOST_{name}", limit)
    with Provider() as provider:
        done = submit(provider, tmp_path, rows(10))
        files = [len(file.content) for file in provider.files.all.values()]
        assert (done.parts, len(files), done.lines) == (parts, parts, 10)
        assert max(files) <= folder.MOST_BYTES
        assert max(len(file_lines(provider, n)) for n in range(parts)) <= folder.MOST_LINES
        assert collect(provider, tmp_path).results.labeled == 10


def test_a_row_that_no_file_can_hold_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One enormous row does not keep the others back."""
    monkeypatch.setattr(folder, "MOST_BYTES", 20_000)
    huge = {**rows(1, 1)[0], "documents": ["word " * 10_000]}
    with Provider() as provider:
        done = submit(provider, tmp_path, [*rows(1), huge])
        assert (done.lines, [failure.reason for failure in done.bad]) == (1, ["oversize"])
        only = submit(provider, tmp_path, [huge])
    assert (only.batch, only.lines, len(folders(tmp_path))) == (None, 0, 1)


def test_a_judge_without_batches_or_of_another_address_is_refused(tmp_path: Path) -> None:
    """Rows do not go to a server that the judge does not name."""
    with Provider() as provider:
        elsewhere = judge_of(provider, base_url="http://127.0.0.1:9/v1")
        for judge, said in (("embedded", "cannot be asked in batches"), (elsewhere, "base_url")):
            with pytest.raises(UsageError, match=said):
                labeler.submit_batch(
                    rows(1), judge=judge, batches=service(provider), store=tmp_path
                )
        assert not provider.requests


# What comes back

_JUDGED_ALIKE = [
    "ok", "unknown-key", "special-key", "missing-sentence", "twice-sentence", "empty-support",
    "malformed", "fenced", "extra-field", "lone-surrogate", "empty", "no-content", "list-content",
    "refusal", "filtered", "truncated", "no-usage", "text-usage", "null-usage", "odd-model",
    "odd-finish", "400", "400-context", "400-filter", "413", "no-choices", "word-verdict",
]  # fmt: skip


def _facts(outcome: Outcome) -> dict[str, Any]:
    """What must not depend on how the answer came."""
    if isinstance(outcome, LabelFailure):
        return outcome.model_dump(exclude={"message"})
    return outcome.model_dump(exclude={"reply": {"seconds", "created_at"}})


def _number(call: Call) -> int:
    """The number of the row that a request is about."""
    return int(re.findall(r"What is item (\d+)", call.messages[1]["content"])[0])


def _each_its_own(times: int) -> Callable[[Call], str]:
    """A script that answers record n with the n-th behavior, so many times, and well after."""
    asked: Counter[int] = Counter()

    def pick(call: Call) -> str:
        number = _number(call)
        asked[number] += 1
        return _JUDGED_ALIKE[number] if asked[number] <= times else "ok"

    return pick


@pytest.mark.parametrize("times", [1, 2])
def test_an_answer_means_the_same_as_online(tmp_path: Path, times: int) -> None:
    """Label, failure, reason, usage, counts and what is stored: once bad or twice, as online."""
    given = [{**row, "domain": "lamps"} for row in rows(len(_JUDGED_ALIKE))]
    with Provider(_each_its_own(times)) as provider:
        online = judge_of(provider, sleep=brief)
        expected = labeler.label(given, judge=online, store=tmp_path / "online")
        sent = len(provider.calls)
    with Provider(_each_its_own(times), port=provider.port) as provider:
        submit(provider, tmp_path / "batch", given)
        collect(provider, tmp_path / "batch")
        assert len(provider.batch_lines) == sent
    labels, failures = stored(tmp_path / "batch")
    outcomes: list[Outcome] = [*labels, *failures]
    told = {outcome.id: _facts(outcome) for outcome in outcomes}
    for outcome, behavior in zip(expected, _JUDGED_ALIKE, strict=True):
        assert told[outcome.id] == _facts(outcome), behavior
    assert len(outcomes) == len(given)


Change = Callable[[list[bytes]], list[bytes]]
"""Makes other lines of an output file."""


def _ended(provider: Provider, store: Path, count: int = 0) -> str:
    """Submit rows, if any, and let every batch end; return the name of the new one."""
    name = submit(provider, store, rows(count)).batch if count else None
    for _ in range(4):
        labeler.batch_status(store, service(provider))
    return str(name)


def _rewritten(provider: Provider, change: Change) -> None:
    """Change the output files of a provider."""
    for file in list(provider.files.all.values()):
        if file.purpose == "batch_output":
            lines = change(file.content.splitlines(keepends=True))
            file.content = b"".join(lines)


def _also(line: bytes) -> Change:
    """Add a line to an output file."""
    return lambda lines: [*lines, line]


def _with(line: bytes, **facts: object) -> bytes:
    """Return a line with other facts of its response."""
    value = json.loads(line)
    value["response"] |= facts
    return json.dumps(value).encode() + b"\n"


def _each_with(**facts: object) -> Change:
    """Give every line other facts of its response."""
    return lambda lines: [_with(line, **facts) for line in lines]


def _with_words(line: bytes, text: str, other: str = "") -> bytes:
    """Return a line that answers the same request with a text, or with another word in it."""
    body = json.loads(line)["response"]["body"]
    message = body["choices"][0]["message"]
    message["content"] = message["content"].replace(text, other) if other else text
    return _with(line, body=body)


def _bare(line: bytes) -> bytes:
    """Return a line with the body in place of the response, or the error next to it, as vLLM."""
    value = json.loads(line)
    body = value["response"].pop("body")
    value |= {"response": body} if "choices" in body else {"error": body}
    return json.dumps(value).encode() + b"\n"


@dataclass(frozen=True)
class Case:
    """A server's behavior, the rows that it gets, and totals of the outcome that are not 0."""

    server: dict[str, Any]
    results: dict[str, int]
    batches: int = 1
    """Batches that the server was asked to start."""
    count: int = 2
    lasting: int = 0
    """Stored failures."""
    reason: str = ""
    change: Change | None = None
    """Changes the files of answers."""
    sees: Callable[[RemoteBatch], RemoteBatch] = lambda remote: remote
    """Changes the state of the batch that the client sees."""
    notice: str = ""
    """Part of the only notice."""
    paid: int = 1
    """Most answers that are paid for one request."""


def _unnamed(times: int, **facts: int) -> Callable[[RemoteBatch], RemoteBatch]:
    """Leave out the name of the file of answers, some times after the batch has ended."""
    left = iter(range(times))

    def change(remote: RemoteBatch) -> RemoteBatch:
        is_late = remote.status == "completed" and next(left, None) is not None
        return remote.model_copy(update={"output_file": None, **facts}) if is_late else remote

    return change


def _all_completed(remote: RemoteBatch) -> RemoteBatch:
    """Count failed requests as completed too."""
    return remote.model_copy(update={"completed": remote.completed + remote.failed})


def _file(status: str) -> Behavior:
    """An uploaded file."""
    return sends(json.dumps({"id": "file-0001", "status": status}).encode())


_ANSWERS, _FILES = "GET /v1/files/{id}/content", "POST /v1/files"
_STARTS, _LOOKS, _LISTS = "POST /v1/batches", "GET /v1/batches/{id}", "GET /v1/batches"
_LABELED, _AGAIN = {"labeled": 2}, {"labeled": 2, "again": 1}
_ODD = {"labeled": 2, "odd": 1}
_NO_ANSWERS: list[object] = [
    None, "text", "\ud800", {"choices": "x"}, {"_fields_set": 1, "__cls": 2},
    {"choices": [{"message": {"content": "\ud800"}}]},
]  # fmt: skip

_CASES = [
    # A line that is the fault of everyone is no lasting failure, unless others were labeled.
    *[Case({"script": [name]}, {"failed": 1}, count=1)
      for name in ("401", "402", "404", "400-parameter", "403")],
    Case({"script": ["ok", "403", "401"]}, {"labeled": 1, "failed": 2}, count=3),
    Case({"script": ["ok", *["403"] * 49]}, {"labeled": 1, "failed": 49}, count=50, lasting=49),
    Case({"script": ["ok", *["403"] * 50]}, {"labeled": 1, "failed": 50}, count=51),
    Case({"script": ["ok", *["413"] * 60]}, {"labeled": 1, "failed": 60}, count=61, lasting=60),
    # Requests that failed on the way are sent again, three times at most.
    *[Case({"script": [name]}, _AGAIN, 2) for name in ("500", "429", "json-null", "close")],
    Case({"script": ["no-choices"]}, _AGAIN, 2, paid=2),
    *[Case({}, {"labeled": 1, "again": 1}, 2, count=1, change=_each_with(body=body), paid=2)
      for body in _NO_ANSWERS],
    Case({"script": lambda _: "500"}, {"again": 2, "released": 1}, 3, count=1),
    Case({"batches": [expires(0.6)]}, {"labeled": 10, "again": 4}, 2, count=10),
    # A rejected batch releases its rows; one that finds the queue full waits.
    Case({"batches": [fails("invalid_model")]}, {"released": 2}, notice="invalid_model"),
    Case({"batches": [fails("no code: a sentence")]}, {"released": 2},
         notice="refused by the provider: no code"),
    Case({"batches": [fails("token_limit_exceeded")] * 2}, _LABELED, 3, notice="queue is full"),
    # Lines that make no sense are counted and left out.
    *[Case({}, _ODD, change=change, notice="a second line of one request")
      for change in (lambda lines: [*lines, lines[0]],
                     lambda lines: [_with(lines[0], status_code=500, body={}), *lines],
                     lambda lines: [_with_words(lines[0], "No."), *lines],
                     lambda lines: [*lines, _with_words(lines[0], "No.")],
                     lambda lines: [*lines, _with_words(lines[0], "lamp", "another lamp")])],
    *[Case({}, _ODD, change=_also(odd), notice=notice)
      for odd, notice in (
          (b'{"custom_id": "x", "response": {"status_code": 200}}\n', "was not asked for"),
          *((odd, "a line that cannot be read") for odd in (
              b"{broken\n", b"[" * 100_000 + b"\n", b"\xff\xfe\n", b'{"custom_id": 7}\n')))],
    # A server may begin files with a mark or blank lines, leave out statuses, and name empty files.
    Case({}, _LABELED, change=lambda lines: [b"\xef\xbb\xbf\r\n", *lines]),
    *[Case({}, _LABELED, change=_each_with(status_code=status)) for status in (None, 201)],
    Case({}, _LABELED, change=lambda lines: [
        _with(line, body=json.dumps(json.loads(line)["response"]["body"])) for line in lines]),
    Case({}, _LABELED, change=lambda lines: [*map(_bare, lines)]),
    Case({"script": ["400-context", "ok"]}, {"labeled": 1, "failed": 1}, lasting=1,
         reason="context_length", change=lambda lines: [*map(_bare, lines)]),
    Case({"script": ["400"]}, _AGAIN, 2,
         change=lambda lines: [one for one in lines if b'"status_code": 400' not in one]),
    # A server may count failed requests as completed, and name the file of answers late.
    Case({"script": ["400"]}, {"labeled": 1, "failed": 1}, lasting=1, sees=_all_completed),
    *[Case({}, _LABELED, sees=_unnamed(2, **counts), notice="does not name their file yet")
      for counts in ({}, {"completed": 0})],
    Case({}, _LABELED, sees=lambda remote: remote.model_copy(update={"error_file": "gone"}),
         notice="its file of errors is gone"),
    # Azure reads a file before it starts a batch of it.
    Case({"at": {_FILES: [done_but(_file("pending"))]},
          "more": {"GET /v1/files/{id}": _file("processed")}}, _LABELED),
    # Passing failures of each step change nothing.
    *[Case({"at": {step: ["500", "429", broken, "html", "json-null"]}}, _LABELED)
      for step, broken in ((_FILES, "close"), (_STARTS, "close"), (_LOOKS, "short"))],
    Case({"at": {_LOOKS: ["500"] * 100}}, _LABELED, notice="the server failed"),
    Case({"at": {_ANSWERS: ["500", "429", "close", "short"]}}, _LABELED),
    *[Case({"at": {_ANSWERS: [page] * 8}}, _LABELED, notice="check base_url")
      for page in ("html", "json-list", "json-null")],
    # A batch that was started unheard is found by its own name and not started again.
    *[Case({"at": {_STARTS: [done_but(name)]}}, _LABELED)
      for name in ("500", "close", "short", "503", "bad-json")],
]  # fmt: skip


@pytest.mark.parametrize("case", _CASES)
def test_every_behavior_of_a_server_has_its_outcome(tmp_path: Path, case: Case) -> None:
    """Results, stored labels and failures, batches started; no row stays reserved."""
    said: list[str] = []

    class Seeing(OpenAIBatches):
        async def retrieve(self, batch_id: str) -> RemoteBatch:
            return case.sees(await super().retrieve(batch_id))

    with Provider(**case.server) as provider:
        submit(provider, tmp_path, rows(case.count))
        if case.change is not None:
            _ended(provider, tmp_path)
            _rewritten(provider, case.change)
        done = collect(provider, tmp_path, Seeing, notice=said.append)
        assert len(provider.batches.all) == case.batches
        assert max(provider.paid.values(), default=1) == case.paid
    counted = done.results.model_dump(include={"labeled", "failed", "released", "again", "odd"})
    totals = {name: n if name == "labeled" else sum(n.values()) for name, n in counted.items()}
    assert {name: n for name, n in totals.items() if n} == case.results
    assert not case.reason or dict(done.results.failed) == {case.reason: 1}
    labels, failures = stored(tmp_path)
    assert (len(labels), len(failures)) == (totals["labeled"], case.lasting)
    assert not any("another lamp" in label.label.relevance_explanation for label in labels)
    assert (done.still_open, pending_keys(tmp_path)) == (0, {})
    assert done.results.cost is None  # no price is known
    assert len(said) == bool(case.notice)
    assert case.notice in "\n".join(said)
    assert "sentence" not in "\n".join(said)


def test_a_part_that_finds_the_queue_full_waits_for_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is handed in again, under a name of its own, when nothing else is under way."""
    monkeypatch.setattr(folder, "MOST_LINES", 1)
    courses = [completes(3), fails("token_limit_exceeded"), fails("token_limit_exceeded")]
    with Provider(batches=courses) as provider:
        submit(provider, tmp_path, rows(3))
        done = collect(provider, tmp_path)
        assert (done.results.labeled, done.results.released) == (3, {})
        assert sorted(provider.paid.values()) == [1, 1, 1]
        names = [(batch.metadata or {})["labeler_part"] for batch in provider.batches.all.values()]
    assert [name.rpartition("-")[2] for name in names] == [
        "0001", "0002", "0003", "0002/1", "0003/1",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("says", "window", "notice"),
    [
        ("Limit: 1,000 enqueued tokens. Please try again.", 1e5, "never fits: .* 1,000 tokens"),
        ("Try again.", -4000.0, "a day of looks has not helped"),
    ],
)
def test_a_part_that_never_fits_ends_the_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, window: float, notice: str
) -> None:
    """The queue is too small, or is full for longer than any batch of others can take."""
    monkeypatch.setattr("labeler.plugins.batch.collect._WINDOW", window)
    said: list[str] = []
    with Provider(batches=fails("token_limit_exceeded", says)) as provider:
        name = str(submit(provider, tmp_path, rows(4)).batch)
        done = collect(provider, tmp_path, notice=said.append)
    assert (done.stuck, done.still_open, len(pending_keys(tmp_path))) == (1, 1, 4)
    assert re.search(f"{notice}.*cancel {name}-0001 --drop", "\n".join(said), re.DOTALL), said


def test_a_long_wait_gives_up_no_batch_that_is_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look that fails late says nothing about the answers, which are paid for."""
    monkeypatch.setattr("labeler.plugins.batch.collect._Collector._waited_long", lambda _: True)
    with Provider(at={_LOOKS: ["500"] * 10}) as provider:
        submit(provider, tmp_path, rows(2))
        done = collect(provider, tmp_path)
    assert (done.stuck, done.results.labeled) == (0, 2)


def _first_fail(count: int) -> Callable[[Call], str | None]:
    """A script in which the first so many rows are answered with 500."""
    return lambda call: "500" if _number(call) < count else None


@pytest.mark.parametrize("failing", [0, 4])
@pytest.mark.parametrize("is_renamed", [True, False])
def test_answers_that_are_missing_are_fetched_again_and_not_bought_again(
    tmp_path: Path, failing: int, is_renamed: bool
) -> None:
    """A file with fewer good answers than the provider counts is not believed, but stored.

    Lines of errors do not stand for answers; the next look may name another file.
    """
    said: list[str] = []
    good = 10 - failing
    with Provider(_first_fail(failing)) as provider:
        _ended(provider, tmp_path, 10)
        batch = provider.batches.all["batch_0001"]
        answers = provider.files.all[str(batch.output_file_id)]
        whole = answers.content
        answers.content = b"".join(whole.splitlines(keepends=True)[:3])
        done = labeler.collect_batches(service(provider), tmp_path, notice=said.append)
        assert (done.still_open, len(stored(tmp_path)[0]), len(said)) == (1, 3, 1)
        assert f"hold 3 answers, and the provider counts {good}" in said[0]
        if is_renamed:
            batch.output_file_id = provider.files.add("batch_output", whole).id
        else:
            answers.content = whole
        assert collect(provider, tmp_path).results.labeled == good
        assert sorted(provider.paid.values()) == [1] * good
    every = RowSelection(frozenset(row["id"] for row in rows(10)))
    assert delete_requests(tmp_path, every, set(), dry_run=False) == 10
    left = [path for path in tmp_path.glob("batches/*/*") if b"What is item" in path.read_bytes()]
    assert not left


@pytest.mark.parametrize(
    ("change", "answers"),
    [
        (lambda lines: lines[:3], None),
        (lambda lines: [b"{broken\n", *lines[1:]], None),
        (lambda lines: lines, "500"),
        (lambda lines: lines, "html"),
    ],
)
def test_nobody_waits_forever_for_answers_that_stay_missing(
    tmp_path: Path, change: Change, answers: str | None
) -> None:
    """After some looks the wait ends, and the user has to decide; nothing is bought again."""
    notices: list[str] = []
    with Provider(at={_ANSWERS: lambda _: answers}) as provider:
        name = _ended(provider, tmp_path, 4)
        _rewritten(provider, change)
        done = collect(provider, tmp_path, notice=notices.append)
        short = (3, "hold 3 answers, and the provider counts 4")
        held, said = (0, "could not fetch the answers") if answers else short
        assert (done.stuck, done.still_open, len(stored(tmp_path)[0])) == (1, 1, held)
        assert sorted(provider.paid.values()) == [1] * 4
    assert (len(notices), said in notices[0]) == (2, True)
    assert f"`labeler batch cancel {name}-0001 --drop" in notices[1]


@pytest.mark.parametrize("name", ["asked.jsonl", "output.jsonl"])
def test_a_file_that_cannot_be_read_does_not_keep_others_from_being_collected(
    tmp_path: Path, name: str
) -> None:
    """The wait ends with an error that names the file, after the others are stored."""
    with Provider() as provider:
        for number in range(2):
            submit(provider, tmp_path, rows(1, number))
        _ended(provider, tmp_path)
        file = folders(tmp_path)[0].path / name
        file.unlink(missing_ok=True)
        file.mkdir()
        with pytest.raises((StoreError, UsageError), match=name):
            collect(provider, tmp_path)
    assert len(stored(tmp_path)[0]) == 1


def test_a_batch_that_its_server_lost_keeps_no_other_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is named, and its row stays reserved until it is dropped; one that waited is sent.

    Requests that are sent again wait for their batch, and a lost one is never collected.
    """
    monkeypatch.setattr(folder, "MOST_LINES", 1)
    said: list[str] = []
    courses = [never(), completes(), fails("token_limit_exceeded")]
    with Provider(batches=courses) as provider:
        name = str(submit(provider, tmp_path, rows(3)).batch)
        lost = folders(tmp_path)[0]
        again = ((one, b"{}") for one in lost.requests())
        folder.place(folder.write_batches(lost.path, lost.spec, again))
        del provider.batches.all["batch_0001"]
        done = collect(provider, tmp_path, notice=said.append)
        assert (done.stuck, done.still_open, done.results.labeled) == (1, 2, 2)
        assert "does not know it" in said[0]
        assert provider.routes[_STARTS] == 4
        labeler.cancel_batch(service(provider), tmp_path, name, drop=True)
        assert pending_keys(tmp_path) == {}
        assert submit(provider, tmp_path, rows(3)).lines == 1


def test_what_is_dropped_is_not_handed_in_again(tmp_path: Path) -> None:
    """A part whose answers are missing prepares further ones, and letting go of it is final."""
    with Provider(_first_fail(1)) as provider:
        name = _ended(provider, tmp_path, 4)
        _rewritten(provider, lambda lines: lines[:1])
        labeler.collect_batches(service(provider), tmp_path)
        labeler.cancel_batch(service(provider), tmp_path, name, drop=True)
        assert collect(provider, tmp_path).still_open == 0
        assert pending_keys(tmp_path) == {}
        assert len(provider.batches.all) == 1
        assert submit(provider, tmp_path, rows(4)).lines == 3


# What it costs


def test_money_is_told_at_the_price_of_a_batch(tmp_path: Path) -> None:
    """Tokens of every round, at half the price; answers without usage are counted.

    A cut-off answer is asked again with twice the cap, under the name that the server has for it.
    """
    capped = {"max_output_tokens": 100, "cap_field": "max_tokens"}
    with Provider(["unknown-key", "no-usage", "truncated"]) as provider:
        submit(provider, tmp_path, rows(3), judge=capped)
        price = given_price("2,10,1").batched()
        results = collect(provider, tmp_path, price=lambda _: price).results
        caps = [line.body["max_tokens"] for line in provider.batch_lines]
    assert (results.answered, results.unmetered) == (5, 1)
    assert (results.usage.prompt_tokens, results.usage.cached_tokens) == (40_000, 160)
    # Four times 9,960 uncached at $1, 40 cached at $0.5, 10 written at $5, per million.
    assert str(results.cost) == "0.04012"
    assert sorted(caps) == [100] * 4 + [200]


# Interruptions


class Killed(Exception):
    """Stands for the end of the process."""


class Fuse:
    """Ends the process, as it were, after some requests and states that are written down."""

    left = 0

    def burn(self) -> None:
        """One step nearer."""
        self.left -= 1
        if self.left == 0:
            raise Killed


@pytest.fixture
def fuse(monkeypatch: pytest.MonkeyPatch) -> Fuse:
    """A fuse that burns a step after every request, and after every state that is written down."""
    made, save = Fuse(), Batch.save

    def mortal_save(self: Batch, **changes: Any) -> None:
        save(self, **changes)
        made.burn()

    def mortal(real: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def step(*given: Any, **options: Any) -> Any:
            done = await real(*given, **options)
            made.burn()
            return done

        return step

    monkeypatch.setattr(Batch, "save", mortal_save)
    for name in ("upload", "create", "download"):
        monkeypatch.setattr(OpenAIBatches, name, mortal(getattr(OpenAIBatches, name)))
    return made


@pytest.mark.parametrize(("handed_in", "least"), [(False, 5), (True, 12)])
def test_what_is_killed_goes_on(tmp_path: Path, fuse: Fuse, handed_in: bool, least: int) -> None:
    """After whatever step it ends, the next one finishes it: no row twice, none lost."""
    is_killed, step = True, 0
    while is_killed:
        step += 1
        store = tmp_path / str(step)
        with Provider(["unknown-key", "refusal"], batches=[expires(0.8)]) as provider:
            if handed_in:
                submit(provider, store, rows(5))
            fuse.left = step
            with suppress(Killed):
                collect(provider, store) if handed_in else submit(provider, store, rows(5))
            is_killed = fuse.left == 0
            fuse.left = 0
            submit(provider, store, rows(5))
            collect(provider, store)
            labels, failures = stored(store)
            assert (len(labels), [failure.reason for failure in failures]) == (4, ["refusal"])
            assert len(provider.batches.all) == 2
            assert len(provider.batch_lines) == 6
    assert step > least


_NAMED = {"id": "other", "object": "batch", "created_at": 2_000_000_000}


def _listed(data: object, *, more: bool = False) -> Behavior:
    """A page of a list of batches."""
    return sends(json.dumps({"object": "list", "data": data, "has_more": more}).encode())


@pytest.mark.parametrize("late", [1, 2])
def test_a_batch_that_is_listed_late_is_not_started_again(tmp_path: Path, late: int) -> None:
    """After a failure that leaves it open it is looked for again, with pauses, before a second."""
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    unheard: dict[str, Script] = {_STARTS: [done_but("500")], _LISTS: [_listed([])] * late}
    with Provider(at=unheard) as provider:
        at = OpenAIBatches(api_key=KEY, base_url=provider.url, sleep=pause)
        labeler.submit_batch(rows(3), judge=judge_of(provider), batches=at, store=tmp_path)
        assert provider.routes[_LISTS] == late + 1
        assert collect(provider, tmp_path).results.labeled == 3
        assert sorted(provider.paid.values()) == [1, 1, 1]
    assert [seconds for seconds in pauses if seconds >= 10] == [10.0, 20.0][:late]


@pytest.mark.parametrize(
    "listed",
    [
        _listed([None, _NAMED]), _listed([{**_NAMED, "id": 7}]), _listed(None),
        _listed([], more=True), sends(b"null"), sends(b"{"), named("html"),
        _listed([_NAMED], more=True),  # without an end
    ],
)  # fmt: skip
def test_a_list_that_leaves_it_open_starts_nothing(
    tmp_path: Path, listed: Behavior, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether a batch was started cannot be told from such a list: it is said, and stays open."""
    monkeypatch.setattr(client, "_MOST_PAGES", 3)
    with Provider(at={_STARTS: [done_but("500")]}) as provider:
        provider._scripts[_LISTS] = lambda _: listed
        with pytest.raises(JudgeError, match="could not list batches at") as caught:
            submit(provider, tmp_path, rows(2))
        assert not isinstance(caught.value, FatalJudgeError)
        assert "labeler batch cancel" in str(caught.value)
        provider._scripts[_LISTS] = lambda _: None
        assert collect(provider, tmp_path).results.labeled == 2
        assert len(provider.batches.all) == 1
        assert sorted(provider.paid.values()) == [1, 1]


def test_a_batch_that_was_started_unheard_is_found_behind_many_others(tmp_path: Path) -> None:
    """The list is read page by page, again if need be, before a cancellation releases its rows."""
    unheard: dict[str, Script] = {_STARTS: [done_but("401")], _LISTS: [_listed([])]}
    with Provider(batches=never(), at=unheard) as provider:
        with pytest.raises(FatalJudgeError):
            submit(provider, tmp_path, rows(1))
        ours = provider.batches.all["batch_0001"]
        for number in range(130):
            other = replace(ours, id=f"other_{number}", input_file_id="file-other", metadata=None)
            provider.batches.all[other.id] = other
        labeler.cancel_batch(service(provider), tmp_path, folders(tmp_path)[0].name)
        assert ours.status == "cancelling"
        assert provider.routes[_LISTS] == 3


def test_a_full_disk_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be written is told as such, and the next one goes on."""

    def no_space(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    hand_in = partial(submit, given=rows(2))
    with Provider() as provider:
        for owner, step, use in ((Batch, "save", hand_in), (OpenAIBatches, "download", collect)):
            with monkeypatch.context() as patch:
                patch.setattr(owner, step, no_space)
                with pytest.raises(StoreError, match="No space left"):
                    use(provider, tmp_path)
            hand_in(provider, tmp_path)
        assert collect(provider, tmp_path).results.labeled == 2
        assert len(provider.batches.all) == 1


@pytest.mark.parametrize("behavior", ["401", "403", "429-quota"])
def test_a_part_that_is_refused_does_not_keep_others_from_being_collected(
    tmp_path: Path, behavior: str
) -> None:
    """Paid answers are stored; then the message names the refused part, and the way out.

    What was prepared waits for a key that fits.
    """
    refused = False
    with Provider(at={_FILES: lambda _: behavior if refused else None}) as provider:
        _ended(provider, tmp_path, 1)
        refused = True
        with pytest.raises(FatalJudgeError) as caught:
            submit(provider, tmp_path, rows(2))
        assert KEY not in str(caught.value)
        with pytest.raises(FatalJudgeError, match="labeler batch cancel") as caught:
            collect(provider, tmp_path)
        name = folders(tmp_path)[1].name
        assert str(caught.value).startswith(f"{name}: could not hand in")
        assert len(stored(tmp_path)[0]) == 1
        assert labeler.cancel_batch(service(provider), tmp_path, name) == [f"{name}: dropped"]
        assert pending_keys(tmp_path) == {}
        with pytest.raises(FatalJudgeError):
            submit(provider, tmp_path, rows(2))
        refused = False
        again = submit(provider, tmp_path, rows(2))
        assert (again.left_out, len(again.continued)) == ({"stored": 1, "in a batch": 1}, 1)


def test_a_collection_is_not_disturbed_by_labels_from_elsewhere(tmp_path: Path) -> None:
    """A key that was labeled meanwhile keeps its first label, and is not asked again."""
    with Provider(["ok", "ok", "ok", "500"]) as provider:
        submit(provider, tmp_path, rows(2))
        store_of(tmp_path, *run(provider, rows(2)))
        done = collect(provider, tmp_path)
        assert len(provider.batches.all) == 1
    assert done.results.again == {}
    assert {record.id for record in stored(tmp_path)[0]} == {"r0", "r1"}


# Looking on


def test_a_look_changes_nothing_and_asks_once_for_each_open_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One request for what is open, none for what is collected.

    The message about one that fails has its last known state.
    """
    monkeypatch.setattr(folder, "MOST_LINES", 2)

    def seen() -> list[tuple[int, str, str]]:
        return [(view.lines, view.state, view.next) for view in labeler.batch_status(tmp_path, at)]

    with Provider(batches=completes(3), at={_LOOKS: ["500"] * 12}) as provider:
        at = service(provider)
        submit(provider, tmp_path, rows(3))
        for view in labeler.batch_status(tmp_path, at):
            assert "the server failed" in view.trouble
            assert (view.state, view.next) == ("validating", "look again later")
        assert {view.state for view in labeler.batch_status(tmp_path)} == {"validating"}
        looks = provider.routes[_LOOKS]
        assert seen() == [(2, "in_progress", "wait"), (1, "in_progress", "wait")]
        assert provider.routes[_LOOKS] == looks + 2
        _ended(provider, tmp_path)
        assert seen() == [(2, "completed", "collect"), (1, "completed", "collect")]
        collect(provider, tmp_path)
        looks = provider.routes[_LOOKS]
        assert seen() == [(2, "collected", "done"), (1, "collected", "done")]
        assert provider.routes[_LOOKS] == looks
        assert sum(view.results.labeled for view in labeler.batch_status(tmp_path)) == 3


def test_a_cancelled_batch_gives_what_it_has_and_lets_the_rest_go(tmp_path: Path) -> None:
    """Answers that were paid for are stored; one that would be asked again is let go too.

    A batch that is over needs no cancelling: its answers can be collected.
    """
    courses = [completes(), never(0.8)]
    with Provider(["ok", "ok", "unknown-key", "500", "ok"], batches=courses) as provider:
        over = _ended(provider, tmp_path / "over", 1)
        told = labeler.cancel_batch(service(provider), tmp_path / "over", over)
        assert told == [f"{over}-0001: completed; collect what was answered"]
        assert collect(provider, tmp_path / "over").results.labeled == 1
        assert labeler.cancel_batch(service(provider), tmp_path / "over", over) == []
        name = _ended(provider, tmp_path, 5)
        assert "cancelling" in labeler.cancel_batch(service(provider), tmp_path, name)[0]
        results = collect(provider, tmp_path).results
        assert results.labeled == 2
        assert results.released == {"cancelled": 1, "contract": 1, "transport": 1}
        assert len(provider.batches.all) == 2
        assert submit(provider, tmp_path, rows(5)).lines == 3


def test_open_batches_are_at_one_address(tmp_path: Path) -> None:
    """Another is refused, with the command that collects them, until none of them is open."""
    with Provider() as provider, Provider() as other:
        submit(provider, tmp_path, rows(1))
        go_on = f"`labeler batch collect --wait --store {tmp_path} --base-url {provider.url}`"
        for use in (partial(submit, given=rows(1, 1)), collect):
            with pytest.raises(UsageError, match=re.escape(go_on)):
                use(other, tmp_path)
        assert not other.requests
        collect(provider, tmp_path)
        submit(other, tmp_path, rows(1, 1))
        assert collect(other, tmp_path).results.labeled == 1


def test_two_at_once_do_not_work_on_the_same_batches(tmp_path: Path) -> None:
    """The second is rejected, and one that waits goes on later; nothing is bought twice."""
    waiting: list[Future[Collection]] = []

    class Rival(OpenAIBatches):
        """Lets others try while it uploads."""

        async def upload(self, path: Path) -> str:
            with pytest.raises(StoreError, match="another command is at work"):
                await asyncio.to_thread(submit, provider, tmp_path, rows(2))
            waiting.append(pool.submit(collect, provider, tmp_path))
            await asyncio.sleep(0.2)
            return await super().upload(path)

    with Provider() as provider, ThreadPoolExecutor() as pool:
        assert submit(provider, tmp_path, rows(2), Rival).lines == 2
        assert waiting[0].result().results.labeled == 2
        assert len(provider.batches.all) == 1


def test_a_key_that_expires_before_an_upload_is_fetched_again(tmp_path: Path) -> None:
    """The whole file is sent with the new one."""
    keys = iter([KEY, f"{KEY}-2"])
    path = tmp_path / "requests.jsonl"
    path.write_text('{"n": 1}\n' * 50_000)

    async def upload_twice() -> None:
        batches = OpenAIBatches(api_key=lambda: next(keys), base_url=provider.url, sleep=brief)
        for _ in range(2):
            await batches.upload(path)
        await batches.aclose()

    steps = iter([None, "401"])
    with Provider(at={_FILES: lambda _: next(steps, None)}) as provider:
        asyncio.run(upload_twice())
    assert [one.content for one in provider.files.all.values()] == [path.read_bytes()] * 2
    assert [call.headers["authorization"][-2:] for call in provider.requests] == ["89", "89", "-2"]
