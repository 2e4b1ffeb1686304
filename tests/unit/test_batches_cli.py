"""Batches from the command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from labeler.cli import run
from wire.provider import Provider, expires, never

KEY = "sk-SENTINEL-0123456789"


class Command:
    """Runs the command line in this process."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], url: str
    ) -> None:
        self._monkeypatch, self._capsys, self.url = monkeypatch, capsys, url

    def __call__(self, name: str, *arguments: object) -> tuple[int, str, str]:
        """Exit code, standard output, standard error."""
        argv = ["labeler", "batch", name, *map(str, arguments), "--base-url", self.url]
        self._monkeypatch.setattr(sys, "argv", argv)
        code = run()
        out, err = self._capsys.readouterr()
        return code, out, err


@pytest.fixture
def provider() -> Iterator[Provider]:
    """A server whose first batch expires half-way, if it has two lines."""
    with Provider(batches=[expires(0.5)]) as server:
        yield server


@pytest.fixture
def command(
    provider: Provider,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> Command:
    """The command, in a folder of its own with two rows in ``rows.jsonl``."""
    monkeypatch.chdir(tmp_path)
    for name in ("LABELER_MODEL", "LABELER_STORE", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    lines = [json.dumps(row(number)) for number in range(2)]
    Path("rows.jsonl").write_text("\n".join(lines), "utf-8")
    return Command(monkeypatch, capsys, provider.url)


def row(number: int) -> dict[str, Any]:
    """A row with content of its own."""
    return {
        "id": f"r{number}",
        "question": f"What is item {number}?",
        "documents": [f"Item {number} is a lamp. It is red."],
        "response": f"Item {number} is a lamp.",
    }


def test_a_batch_is_handed_in_looked_at_and_collected(command: Command) -> None:
    """The way from rows to labels, with what is said on it."""
    code, name, err = command("submit", "rows.jsonl", "--model", "m")
    assert (code, len(name.split())) == (0, 1)
    assert "2 requests handed in, 1 file, 0.0 MB" in err
    code, out, _ = command("status")
    assert code == 0
    assert all(word in out for word in (name.strip()[:8], "in_progress", "wait"))
    code, out, err = command("collect", "--price", "2,20")
    assert (code, out) == (0, "")
    assert "1 labels stored, 0 failed, 1 asked again (expired 1)" in err
    assert "100 prompt tokens (40 cached), 10 completion tokens, $0.0002 in batches" in err
    for _ in range(3):
        code, _, err = command("collect")
    assert command("status", "--json")[1].count('"state": "collected"') == 2
    code, _, err = command("submit", "rows.jsonl", "--model", "m")
    assert (code, err.strip()) == (0, "nothing to hand in (stored 2)")


def test_json_is_one_object_for_programs(command: Command) -> None:
    """Submit, status and collect can be read by a program."""
    _, out, _ = command("submit", "rows.jsonl", "--model", "m", "--json")
    submitted = json.loads(out)
    assert (submitted["lines"], submitted["parts"], submitted["bad"]) == (2, 1, [])
    views = json.loads(command("status", "--json")[1])
    assert (views[0]["name"], views[0]["lines"]) == (submitted["batch"], 2)
    collected = json.loads(command("collect", "--json")[1])
    assert (collected["parts"], collected["still_open"]) == (1, 1)
    assert collected["results"]["usage"]["prompt_tokens"] == 100


def test_bad_rows_are_told_and_end_in_1(command: Command, tmp_path: Path) -> None:
    """The others are handed in."""
    bad = {**row(2), "response": ""}
    (tmp_path / "rows.jsonl").write_text(f"{json.dumps(row(0))}\n{json.dumps(bad)}\nno\n", "utf-8")
    code, _, err = command("submit", "rows.jsonl", "--model", "m")
    assert code == 1
    assert "1 requests handed in" in err
    assert "2 rows cannot be asked about" in err
    assert "empty response" in err


def test_a_cancelled_batch_can_be_collected(command: Command, provider: Provider) -> None:
    """What it has is stored, and rows without an answer end in 1."""
    provider.batches.take(never(0.5))
    name = command("submit", "rows.jsonl", "--model", "m")[1].strip()
    command("status")
    code, _, err = command("cancel", name)
    assert (code, err) == (0, "part 0001: cancelling; collect what was answered\n")
    code, _, err = command("collect", name)
    assert code == 1
    assert "without an answer (cancelled" in err


def test_nothing_is_told_of_a_store_without_batches(command: Command) -> None:
    """And no store is made by looking."""
    assert command("status")[2] == ".labeler has no batches\n"
    code, _, err = command("collect")
    assert (code, "there is no label store in .labeler" in err) == (2, True)
    assert not Path(".labeler").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["submit", "rows.jsonl"], "needs --model"),
        (["submit", "none.jsonl", "--model", "m"], "cannot read none.jsonl"),
        (["submit", "rows.jsonl", "--model", "m", "--prompt", "none"], "none"),
    ],
)
def test_wrong_use_is_told(command: Command, arguments: list[str], said: str) -> None:
    """With exit code 2, and nothing is sent."""
    code, _, err = command(arguments[0], *arguments[1:])
    assert (code, said in err) == (2, True)


def test_a_key_that_does_not_fit_ends_in_2(command: Command, provider: Provider) -> None:
    """The key is not shown."""
    command("submit", "rows.jsonl", "--model", "m")
    provider._scripts["GET /v1/batches/{id}"] = lambda _: "401"
    code, _, err = command("collect")
    assert (code, "the API key was not accepted" in err, KEY in err) == (2, True, False)


def test_without_a_key_or_an_address_nothing_is_sent(
    command: Command, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The environment does not redirect documents; status tells what was last heard."""
    command("submit", "rows.jsonl", "--model", "m")
    monkeypatch.setenv("OPENAI_BASE_URL", command.url)
    monkeypatch.setattr(sys, "argv", ["labeler", "batch", "collect"])
    assert (run(), "only where it is told" in capsys.readouterr().err) == (2, True)
    monkeypatch.delenv("OPENAI_BASE_URL")
    monkeypatch.delenv("OPENAI_API_KEY")
    assert (run(), "needs none" in capsys.readouterr().err) == (2, True)
    monkeypatch.setattr(sys, "argv", ["labeler", "batch", "status"])
    assert run() == 0
    told = capsys.readouterr()
    assert "validating" in told.out
    assert "nobody was asked" in told.err


def test_waiting_ends_cleanly_on_a_signal(command: Command, provider: Provider) -> None:
    """SIGTERM while it waits: one line, exit code 143, and everything is where it was."""
    provider.batches.take(never(1.0))
    command("submit", "rows.jsonl", "--model", "m")
    waiting = subprocess.Popen(
        [sys.executable, "-m", "labeler", "batch", "collect", "--wait", "--base-url", command.url],
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        stderr=subprocess.PIPE,
        text=True,
    )
    while provider.routes["GET /v1/batches/{id}"] == 0 and waiting.poll() is None:
        time.sleep(0.02)  # the other process works meanwhile
    waiting.send_signal(signal.SIGTERM)
    _, err = waiting.communicate(timeout=60)
    assert waiting.returncode == 143
    assert "Traceback" not in err
    assert "run it again to go on" in err
    provider.batches.take(expires(1.0), "batch_0001")
    assert command("collect", "--wait")[0] == 0
