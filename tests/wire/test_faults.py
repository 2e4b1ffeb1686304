"""The table of faults: what a server or a damaged store does, and what comes of it.

It judges whatever carries requests and keeps labels: a row states an outcome, the requests sent
and the waits, and nothing of how they come about.
"""

from __future__ import annotations

import datetime as dt
import gzip
import json
import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from email.utils import format_datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from labeler.errors import StoreError
from labeler.judges.openai.request import MODES
from labeler.labels.record import LabelRecord
from labeler.store.disk import DiskStore
from labeler.store.maintenance import merge_stores, verify_store
from support.command import Command
from support.records import sample_record
from wire.behaviors import Behavior, error, says
from wire.calls import Call
from wire.connections import Wire
from wire.damaged import (
    behind,
    body_of,
    chunked,
    doubled,
    event_stream,
    followed,
    good,
    in_message,
    packed,
    sent,
    stated,
    two_members,
    whole,
)
from wire.provider import Provider
from wire.runs import KEY, labeling, reasons, row_file, rows, run


class Row(NamedTuple):
    """One row of the table: a fault that a single row meets again and again."""

    behavior: Behavior
    outcome: str = "label"
    """``label``, or the reason of the failure."""
    requests: int = 1
    says: str = ""
    """Part of the failure's message."""
    waits: tuple[float, ...] = ()
    """Seconds of the pauses at least."""


def edited(change: Callable[[dict[str, Any]], object]) -> Behavior:
    """A good answer with another completion around it."""

    async def behave(call: Call, wire: Wire) -> None:
        await wire.respond(200, body_of(call, change))

    return behave


def answered(**fields: Any) -> Behavior:
    """A good answer in other fields of the message."""
    return edited(in_message(**fields))


def raw_body(make: Callable[[bytes], bytes]) -> Behavior:
    """A good answer with another body."""
    return sent(lambda wire, body: whole(wire, make(body)))


def called(text: str) -> list[dict[str, Any]]:
    """A call of a tool."""
    return [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": text}}]


def object_of(text: str) -> Any:
    """A text of JSON as the value that it holds."""
    return json.loads(text)


def out_of_order(value: dict[str, Any]) -> None:
    """A second choice stands before the first."""
    other = {"index": 1, "finish_reason": "stop", "message": {"content": "Another one."}}
    value["choices"].insert(0, other)


def at_the_cap(value: dict[str, Any]) -> None:
    """The answer is whole, and said to be cut off."""
    value["choices"][0]["finish_reason"] = "length"


def ends(reason: str) -> Behavior:
    """An empty answer that ends for a reason."""
    return says("", finish=reason)


def limited(seconds: float, ahead: float) -> Behavior:
    """A 429 with a date, of a server whose clock is ahead."""

    async def behave(call: Call, wire: Wire) -> None:
        now = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=ahead)
        headers = {
            "date": format_datetime(now, usegmt=True),
            "retry-after": format_datetime(now + dt.timedelta(seconds=seconds), usegmt=True),
        }
        await error(429, "rate_limit_exceeded", headers=headers)(call, wire)

    return behave


ANSWERS = {
    # Answers in another place
    "arguments as an object": Row(
        answered(content=None, tool_calls=lambda text: called(object_of(text)))
    ),
    "two identical calls": Row(
        answered(content=None, tool_calls=lambda text: called(text) + called(text))
    ),
    "function_call": Row(answered(content=None, function_call=lambda text: {"arguments": text})),
    "content as an object": Row(answered(content=object_of)),
    "one part": Row(answered(content=lambda text: {"type": "text", "text": text})),
    "parts without a type": Row(answered(content=lambda t: [{"text": t[:9]}, {"text": t[9:]}])),
    "texts for parts": Row(answered(content=lambda text: [text[:9], text[9:]])),
    "reasoning_content": Row(answered(content="", reasoning_content=lambda text: text)),
    "reasoning, after thoughts": Row(
        answered(content=None, reasoning=lambda text: f"I see.\n{text}")
    ),
    "an event stream": Row(event_stream()),
    "an event stream with other line ends": Row(event_stream("\r\n")),
    # Paid answers in a damaged body
    "two members of gzip": Row(packed(two_members)),
    "bytes after gzip": Row(packed(lambda body: gzip.compress(body) + b"\0junk")),
    "gzip without its end": Row(packed(lambda body: gzip.compress(body)[:-8])),
    "bytes after the length": Row(sent(lambda wire, body: whole(wire, body) + b"}} more")),
    "a chunk's end after the length": Row(sent(lambda w, body: whole(w, body) + b"\r\n0\r\n\r\n")),
    "a longer length": Row(sent(stated(50), then_close=True)),
    "no last chunk": Row(sent(chunked(b""), then_close=True)),
    "a second value after the first": Row(raw_body(lambda body: body + b'{"error": "x"}')),
    "a byte order mark": Row(raw_body(lambda body: b"\xef\xbb\xbf" + body)),
    "a huge number": Row(raw_body(lambda b: b.replace(b'ed": 1', b'ed": ' + b"9" * 5000))),
    "choices twice": Row(raw_body(lambda body: body[:-1] + b', "choices": null}')),
    "choices out of order": Row(edited(out_of_order)),
    "a whole answer at the cap": Row(edited(at_the_cap)),
    "bytes that are no text, after it": Row(raw_body(lambda body: body + b"\xff\xfe")),
    "half of gzip": Row(
        packed(lambda body: gzip.compress(body)[:60]), "transport", 2, "answer is damaged"
    ),
    "a shorter length": Row(sent(stated(-5)), "transport", 2, "answer is damaged"),
    "a wrong checksum": Row(
        packed(lambda body: gzip.compress(body)[:-8] + b"\1" * 8), "transport", 2, "is damaged"
    ),
    "a bad chunk": Row(sent(chunked(b"zz\r\n\r\n")), "transport", 2, "is damaged"),
    "two lengths": Row(
        sent(lambda w, b: whole(w, b).replace(b"\r\n\r\n", b"\r\ncontent-length: 7\r\n\r\n", 1)),
        "transport", 2, "is damaged",
    ),
    "cut-off JSON": Row(raw_body(lambda body: body[:-9]), "transport", 2, "is damaged"),
    # No answer
    "empty": Row(says(""), "malformed", 2, "the answer is empty"),
    "empty next to thoughts": Row(
        answered(content="", reasoning_content="Is it 0a?"), "malformed", 2,
        "the answer is empty: the model wrote into reasoning_content only",
    ),
    "blank": Row(says(" \n"), "malformed", 2, "the answer is empty"),
    "SAFETY": Row(ends("SAFETY"), "content_filter"),
    "RECITATION": Row(ends("RECITATION"), "content_filter"),
    "IMAGE_SAFETY": Row(ends("IMAGE_SAFETY"), "content_filter"),
    "LANGUAGE": Row(ends("LANGUAGE"), "content_filter"),
    "PROHIBITED_CONTENT": Row(ends("PROHIBITED_CONTENT"), "content_filter"),
    "MAX_TOKENS": Row(ends("MAX_TOKENS"), "truncated"),
    # A secret
    "a key in escapes": Row(
        answered(
            content=lambda text: text.replace(
                "Item", "".join(f"\\u{ord(letter):04x}" for letter in KEY)
            )
        )
    ),
    # Waits, of the server's clock
    "a date, an hour ahead": Row(limited(7, ahead=3600), "rate_limit", 3, waits=(7.0, 7.0)),
    "a date, an hour behind": Row(limited(7, ahead=-3600), "rate_limit", 3, waits=(7.0, 7.0)),
}  # fmt: skip


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_has_this_outcome(name: str) -> None:
    """With these requests and waits; the first row of the run was labeled before."""
    row, waits = ANSWERS[name], []

    async def pause(seconds: float) -> None:
        waits.append(seconds)

    def script(call: Call) -> Behavior | None:
        return row.behavior if "Item 1 " in call.raw.decode() else None

    attempts = 3 if row.waits else 6
    with Provider(script) as provider:
        outcomes = run(
            provider,
            rows(2),
            concurrency=1,
            judge={"sleep": pause, "max_attempts": attempts, "timeout": 5.0},
            max_outage=0,
        )
        requests = provider.routes["POST /v1/chat/completions"] - 1
    assert (reasons(outcomes)[1], requests) == (row.outcome, row.requests)
    assert row.says in getattr(outcomes[1], "message", "")
    assert KEY not in outcomes[1].model_dump_json()
    if row.waits:
        assert all(least <= wait < least + 60 for wait, least in zip(waits, row.waits, strict=True))


REFUSALS = {
    "llama.cpp": error(400, None, "failed to parse grammar"),
    "llama.cpp, its own fault": error(500, "server_error", "Failed to initialize: Grammar error"),
    "vLLM": error(400, None, "Invalid grammar request with cache hit: False"),
    "xgrammar": error(400, None, "Grammar error: Unimplemented keys: ['minItems']"),
    "Gemini": error(400, None, "The schema produces a constraint that has too many states"),
    "outlines": error(422, None, "Unsupported keyword: pattern"),
    "SGLang": error(500, None, "Failed to compile the JSON schema"),
    "Ollama": error(500, None, "failed to load model vocabulary required for format"),
    "Anthropic": error(400, None, "output_format.schema: 'minItems' other than 0 or 1"),
    "another": error(400, None, "schema is too complex to be compiled"),
}
ROUTED = {
    "error": {
        "code": 400,
        "message": "Provider returned error",
        "metadata": {"raw": '{"error":{"message":"Invalid grammar request"}}'},
    }
}


@pytest.mark.parametrize("server", [*REFUSALS, "OpenRouter"])
def test_a_schema_that_is_refused_in_any_words_is_asked_for_in_the_next_mode(server: str) -> None:
    """By one more request, and every row gets its label."""

    async def routed(_: Call, wire: Wire) -> None:
        await wire.json(400, ROUTED)

    def script(call: Call) -> Behavior | None:
        return REFUSALS.get(server, routed) if call.mode == "strict" else None

    with Provider(script, modes=MODES) as provider:
        outcomes = run(provider, rows(3), concurrency=1)
    assert reasons(outcomes) == ["label"] * 3
    assert [call.mode for call in provider.calls] == ["strict", *["schema"] * 3]


# Connections


STRAYS = {
    "twice at once": doubled(0),
    "twice": doubled(0.01),
    "twice, later": doubled(0.2),
    "behind a 504": behind(504, 0.02),
    "behind a 503, later": behind(503, 0.6),
    "behind a 429": behind(429, 0.02),
    "behind an error in a 200": behind(200, 0.02),
    "another response": followed(b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 2\r\n\r\n{}"),
    "a part of a response": followed(b"HTTP/1.1 200 OK\r\ncontent-ty"),
    "a line break": followed(b"\r\n"),
    "anything": followed(b"anything\r\n\r\n"),
}


@pytest.mark.parametrize("stray", STRAYS)
def test_every_label_belongs_to_its_row(stray: str) -> None:
    """Whatever a server sends after an answer, with many requests over few connections."""
    dice, count = random.Random(1), 0  # noqa: S311 - latencies

    def script(_: Call) -> Behavior:
        nonlocal count
        count += 1
        return STRAYS[stray] if count % 50 == 25 else good(dice.uniform(0.005, 0.03))

    with Provider(script) as provider:
        outcomes = run(provider, rows(300), concurrency=16)
    named = [
        outcome.label.relevance_explanation if isinstance(outcome, LabelRecord) else outcome.reason
        for outcome in outcomes
    ]
    assert named == [f"Item {n} is a lamp." for n in range(300)]


def test_connections_are_used_again() -> None:
    """Those of good answers, after a short rest."""
    with Provider(latency=0.05) as provider:
        opened = set[int]()
        connect = provider._connect
        provider._connect = lambda: opened.add(len(opened)) or connect()  # type: ignore[func-returns-value,method-assign]
        assert reasons(run(provider, rows(60), concurrency=2)) == ["label"] * 60
    assert len(opened) < 30


# Stores

COUNT = 120
PAGE = 4096


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of many labels."""
    folder = tmp_path_factory.mktemp("sound") / "store"
    with DiskStore(folder) as store:
        for saved in [store.put(sample_record(n)) for n in range(COUNT)]:
            saved.result(10)
    return folder


def pages(file: Path, kind: int) -> list[int]:
    """Where the pages of a kind begin: 13 for rows, 10 for entries of an index."""
    content = file.read_bytes()
    return [at for at in range(PAGE, len(content), PAGE) if content[at] == kind]


def lost_rows(file: Path, _: str) -> None:
    """Overwrite 512 bytes of a page of rows, so that SQLite finds fewer and says nothing."""
    sound = file.read_bytes()
    for at in pages(file, 13):
        for start in range(at + 512, at + PAGE, 512):
            file.write_bytes(sound[:start] + bytes(512) + sound[start + 512 :])
            if 0 < _found(file) < COUNT:
                return
    raise AssertionError("no such page")


def _found(file: Path) -> int:
    """Count the rows that are there by number; 0 if SQLite reports the damage by itself."""
    with closing(sqlite3.connect(file)) as db:
        try:
            numbers = [n for (n,) in db.execute("SELECT rowid FROM Cache ORDER BY key")]
            return sum(
                len(db.execute("SELECT 1 FROM Cache WHERE rowid = ?", (n,)).fetchall())
                for n in numbers
            )
        except sqlite3.DatabaseError:
            return 0


def flipped_bit(file: Path, key: str) -> None:
    """Change a digit of a key in the index of keys into another one; the row keeps its key."""
    content = bytearray(file.read_bytes())
    places = (content.find(key.encode(), at, at + PAGE) for at in pages(file, 10))
    (at,) = (place for place in places if place >= 0)
    content[at + 40] ^= 2 if chr(content[at + 40]) in "af" else 1
    file.write_bytes(content)


def lost_entries(file: Path, key: str) -> None:
    """Remove half of a page of the index of keys."""
    content = bytearray(file.read_bytes())
    (start,) = (at for at in pages(file, 10) if content.find(key.encode(), at, at + PAGE) >= 0)
    entries = int.from_bytes(content[start + 3 : start + 5])
    content[start + 3 : start + 5] = (entries // 2).to_bytes(2)
    file.write_bytes(content)


DAMAGES = {"lost rows": lost_rows, "a flipped bit": flipped_bit, "lost entries": lost_entries}


@pytest.fixture(params=DAMAGES)
def damaged(request: pytest.FixtureRequest, sound: Path, tmp_path: Path) -> Path:
    """The same store, damaged."""
    folder = tmp_path / "damaged"
    shutil.copytree(sound, folder)
    DAMAGES[request.param](folder / "cache.db", sample_record(7).key)
    return folder


def test_damage_is_an_error_wherever_records_are_read(
    damaged: Path, labeler_command: Command, tmp_path: Path
) -> None:
    """No command works on fewer records than were stored, and ends well."""
    with DiskStore(damaged, create=False) as store, pytest.raises(StoreError, match="damaged"):
        list(store)
    for command in (
        ["metrics", damaged],
        ["metrics", damaged, "-o", tmp_path / "numbers.csv"],
        ["audit", damaged],
        ["check", damaged, "--min", "adherence=0"],
        ["report", damaged, "-o", tmp_path / "page.html"],
        ["compare", damaged, damaged],
        ["length", damaged],
        ["agree", damaged, damaged],
        ["show", damaged, sample_record(3).id],
        ["export", "--store", damaged, "-o", tmp_path / "labels.jsonl"],
    ):
        code, _, err = labeler_command(*command)
        assert (code, "damaged" in err) == (2, True), (command, err)


def test_damage_is_reported_and_sound_records_are_rescued(damaged: Path, tmp_path: Path) -> None:
    """By a verification and by a merge, which copies what can be read."""
    found = verify_store(damaged)
    assert found.damaged or found.damaged_keys
    merged = merge_stores([damaged], tmp_path / "new")
    assert merged.new == COUNT or merged.damaged
    assert merged.new > COUNT * 0.9


@pytest.mark.parametrize("damage", ["a flipped bit", "lost entries"])
def test_a_label_that_its_key_does_not_find_is_not_bought_again(
    damage: str, tmp_path: Path, labeler_command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is reported before anything is sent."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with Provider() as provider:
        command = labeling(provider, row_file(tmp_path, rows(40)))
        assert labeler_command(*command)[0] == 0
        file = tmp_path / ".labeler" / "cache.db"
        with closing(sqlite3.connect(file)) as db:
            keys = [key for (key,) in db.execute("SELECT key FROM Cache ORDER BY key")]
        DAMAGES[damage](file, keys[-1])
        sent_before = provider.routes["POST /v1/chat/completions"]
        code, _, err = labeler_command(*command)
        assert (code, "do not find" in err) == (2, True), err
        assert provider.routes["POST /v1/chat/completions"] == sent_before
