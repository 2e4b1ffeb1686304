"""The command as a process: signals, pipes, terminals, full disks."""

from __future__ import annotations

import os
import pty
import re
import shlex
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TextIO

import pytest

from labeler import label
from labeler.store.disk import DiskStore
from support.command import Command
from wire.behaviors import Behavior
from wire.calls import Call
from wire.provider import Provider, late
from wire.runs import comes_true, labeling, process, row_file, settings

EXAMPLES = Path(__file__).parents[2] / "examples" / "rows.jsonl"
EMBEDDED = ["label", str(EXAMPLES), "--judge", "embedded"]


FEW_AT_ONCE = ("--concurrency", 4)


def many_rows(folder: Path, count: int) -> Path:
    """A row file."""
    rows = [
        {"id": str(n), "question": f"Q {n}?", "documents": [f"Fact {n}."], "response": f"Fact {n}."}
        for n in range(count)
    ]
    return row_file(folder, rows)


def asking(provider: Provider, rows: Path, *more: object, **output: str) -> list[str]:
    """The process that has a provider label rows."""
    return process(labeling(provider, rows, *FEW_AT_ONCE, *more, **output))


def started(
    command: list[str], folder: Path, provider: Provider, calls: int, terminal: int | None = None
) -> subprocess.Popen[str]:
    """Start a run, perhaps on a terminal, and wait until the provider has been asked that often."""
    err = subprocess.PIPE if terminal is None else terminal
    running = subprocess.Popen(
        command, cwd=folder, env=settings(), stdout=terminal, stderr=err, text=True
    )
    assert comes_true(lambda: len(provider.calls) >= calls, 60)
    return running


@pytest.fixture
def slow_provider() -> Iterator[Provider]:
    """Answers well, half a second late."""
    with Provider(lambda _: late(0.5)) as provider:
        yield provider


def test_a_signal_lets_paid_requests_finish(tmp_path: Path, labeler_command: Command) -> None:
    """Nothing new is sent, what was sent is stored, and the next run goes on from there."""

    def interrupting(call: Call) -> Behavior:
        if call.number == 6:
            os.kill(os.getpid(), signal.SIGINT)
        return late(0.1)

    with Provider(interrupting) as provider:
        command = labeling(provider, many_rows(tmp_path, 30), *FEW_AT_ONCE)
        code, _, err = labeler_command(*command)
        sent = len(provider.calls)
        assert (code, sent < 30, "Traceback" in err) == (130, True, False)
        assert "interrupted; run it again to go on" in err
        assert re.search(
            r"\d+ labeled by openai/m, 0 from the store, 0 failed, \d+ of 30 rows", err
        )
        assert "labels.jsonl was not written\n" in err
        assert not list(tmp_path.glob(".labels*"))
        code, _, err = labeler_command(*command)
        assert code == 0
        assert f"{30 - sent} labeled by openai/m, {sent} from the store, 0 failed" in err


def test_a_closed_terminal_lets_paid_requests_finish(
    tmp_path: Path, slow_provider: Provider
) -> None:
    """Messages have nowhere to go, and answers on their way are stored all the same."""
    screen, terminal = pty.openpty()
    command = asking(slow_provider, many_rows(tmp_path, 60))
    running = started(command, tmp_path, slow_provider, 6, terminal)
    os.close(terminal)
    os.close(screen)
    running.send_signal(signal.SIGHUP)
    assert running.wait(60) == 128 + signal.SIGHUP
    with DiskStore(tmp_path / ".labeler", create=False) as store:
        assert len(store) == len(slow_provider.calls) < 60


def test_nohup_outlives_the_terminal(tmp_path: Path, slow_provider: Provider) -> None:
    """A hangup that was ignored at the start stays ignored."""
    command = ["nohup", *asking(slow_provider, many_rows(tmp_path, 8))]
    running = started(command, tmp_path, slow_provider, 2)
    running.send_signal(signal.SIGHUP)
    running.communicate(timeout=60)
    assert running.returncode == 0


def test_a_second_signal_leaves_at_once(tmp_path: Path) -> None:
    """Requests that never end are dropped, without a screen of complaints."""
    with Provider(lambda _: "hang") as provider:
        running = started(asking(provider, many_rows(tmp_path, 20)), tmp_path, provider, 4)
        running.send_signal(signal.SIGINT)
        assert running.stderr is not None
        assert any("requests in flight may finish" in line for line in running.stderr)
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=30)
    assert running.returncode == 130
    assert not re.search("Traceback|destroyed", said)


def unread(command: list[str], folder: Path, *, both: bool = False) -> tuple[int, str]:
    """Run a command whose reader, of one stream or both, has left; exit code and what it said."""
    reader, pipe = os.pipe()
    os.close(reader)
    with os.fdopen(pipe, "w") as closed:
        return printing_to(closed, command, folder, closed if both else subprocess.PIPE)


def printing_to(
    out: TextIO, command: list[str], folder: Path, err: TextIO | int = subprocess.PIPE
) -> tuple[int, str]:
    """Run a command with another standard output; its exit code and what it said."""
    own = settings()
    done = subprocess.run(
        command, cwd=folder, env=own, stdout=out, stderr=err, text=True, timeout=120, check=False
    )
    return done.returncode, done.stderr


def test_labels_that_nobody_reads_to_the_end_are_no_success(
    tmp_path: Path, labeler_command: Command
) -> None:
    """`labeler label … | head -1` says where it stopped, and the next run goes on there."""
    command = ["label", str(many_rows(tmp_path, 30)), "--judge", "embedded"]
    code, err = unread(process(command), tmp_path)
    said = re.fullmatch(
        r"labeler: the reader left after (\d+) rows?; run it again to go on: what is stored "
        r"costs nothing\n",
        err,
    )
    assert (code, said and 1 <= int(said[1]) <= 29) == (141, True)
    code, _, err = labeler_command(*command, "-o", "x.jsonl")
    stored = re.search(r"(\d+) from the store, 0 failed", err)
    assert said
    assert (code, stored and int(stored[1]) >= int(said[1])) == (0, True)


def test_what_was_spent_is_told_though_nobody_reads_the_labels(tmp_path: Path) -> None:
    """Money is."""
    with Provider() as provider:
        rows = many_rows(tmp_path, 1)
        command = asking(provider, rows, "--price", "100,400,10", output="-")
        code, err = unread(command, tmp_path)
    assert code == 141
    assert "the reader left after 1 row; run it again" in err
    assert "1 request; 10000 prompt tokens (40 cached); 10 completion tokens; $1.0004 by" in err


def test_who_leaves_a_pipe_is_told_what_is_missing(tmp_path: Path) -> None:
    """With both streams closed nobody hears; half a store is a failure; a view may be left."""
    label(EXAMPLES, judge="embedded", store=tmp_path / ".labeler").save(tmp_path / "labels.jsonl")
    assert unread(process(EMBEDDED), tmp_path, both=True)[0] == 141
    told = unread(process(["store", "export"]), tmp_path)
    assert told == (141, "labeler: the reader left before all was written\n")
    # `labeler metrics … | head -1` ends with 0 and says nothing of pipes.
    assert unread(process(["metrics", "labels.jsonl"]), tmp_path) == (0, "")


def test_a_full_disk_is_one_clear_line(tmp_path: Path) -> None:
    """And the program ends."""
    with Path("/dev/full").open("w") as full:
        code, err = printing_to(full, process(EMBEDDED), tmp_path)
    said = "labeler: cannot write the output: No space left on device"
    assert (code, err.splitlines()[-1], "Traceback" in err) == (2, said, False)


def test_closed_streams_stop_no_run(tmp_path: Path) -> None:
    """A scheduler may start a command without any; no other file gets their numbers."""
    command = f"{shlex.join(process([*EMBEDDED, '-o', 'labels.jsonl']))} <&- >&- 2>&-"
    assert subprocess.call(["/bin/bash", "-c", command], cwd=tmp_path, env=settings()) == 0


def on_a_terminal(command: str, folder: Path) -> tuple[int, str]:
    """Run a shell command with standard error on a terminal; its exit code and what was shown."""
    screen, terminal = pty.openpty()
    bash, env = ["/bin/bash", "-c", command], settings() | {"TERM": "xterm"}
    running = subprocess.Popen(bash, cwd=folder, env=env, stderr=terminal, stdout=terminal)
    os.close(terminal)
    shown = b""
    with suppress(OSError):  # Linux says so when the other side is closed
        while part := os.read(screen, 65536):
            shown += part
    os.close(screen)
    return running.wait(timeout=60), shown.decode()


def test_a_progress_bar_keeps_its_hands_off_standard_output(tmp_path: Path) -> None:
    """With the bar on a terminal, labels go where they are sent."""
    code, shown = on_a_terminal(f"{shlex.join(process(EMBEDDED))} | cat > out.jsonl", tmp_path)
    assert (code, len((tmp_path / "out.jsonl").read_text().splitlines())) == (0, 14)
    assert ("labeling" in shown, "14 of 14" in shown, '"kind"' in shown) == (True, True, False)


def test_a_terminal_shows_labels_without_obeying_them(tmp_path: Path) -> None:
    """Direction overrides in a label are escaped on their way to a screen."""
    row = {"id": "1", "question": "Q\u202e\x9b?", "documents": ["Fact."], "response": "Fact."}
    rows = row_file(tmp_path, [row])
    command = process(["label", str(rows), "--judge", "embedded", "-o", "-"])
    _, shown = on_a_terminal(shlex.join(command), tmp_path)
    assert "\\u202e\\u009b" in shown
    assert not {"\u202e", "\x9b"} & set(shown)


def test_any_encoding_gets_utf_8(tmp_path: Path) -> None:
    """Tables and JSON are written in UTF-8 whatever the locale says."""
    told = settings() | {"PYTHONIOENCODING": "latin-1"}
    shown = subprocess.check_output(process(["metrics", "--list"]), cwd=tmp_path, env=told)
    assert "↑" in shown.decode("utf-8")
