from __future__ import annotations

import gzip
import http.client
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from labeler.data.corrections.file import CorrectionsFile
from labeler.data.label_files import write_outcomes
from support.command import Command
from support.judged import correction
from support.labeled import relabeled
from support.review_sessions import labels

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals are those of Unix")

ADDRESS = re.compile(r"open http://127\.0\.0\.1:(\d+)/#token=(\S+)")


class Running(NamedTuple):
    """A running review app."""

    process: subprocess.Popen[str]
    port: int
    token: str

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """Send a request as our page would."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        headers = {
            "Authorization": f"Bearer {self.token}",
            "Origin": f"http://127.0.0.1:{self.port}",
            "Content-Type": "application/json",
        }
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        found = json.loads(answer.read())
        connection.close()
        return answer.status, found

    def agree(self, position: int) -> int:
        """Agree with a label."""
        _, item = self.ask("GET", f"/api/records/{position}")
        said = {"key": item["key"], "answer": "agree"}
        return self.ask("POST", f"/api/records/{position}", said)[0]

    def end(self, number: signal.Signals) -> str:
        """Send a signal; what it said until its end."""
        self.process.send_signal(number)
        return self.process.communicate(timeout=60)[1]


REVIEW = [sys.executable, "-m", "labeler", "review", "labels.jsonl"]


@contextmanager
def opened(folder: Path, *options: str) -> Iterator[Running]:
    """Run ``labeler review`` over four labels in a folder."""
    path = folder / "labels.jsonl"
    if not path.exists():
        list(write_outcomes(labels(), path))
    process = subprocess.Popen([*REVIEW, *options], cwd=folder, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if found := ADDRESS.search(line):
                yield Running(process, int(found[1]), found[2])
                return
        pytest.fail(f"the review app printed no address and exited with {process.wait()}")
    finally:
        process.kill()
        process.communicate()


def test_answers_survive_a_killed_app_and_a_signal_ends_the_next_one(tmp_path: Path) -> None:
    """On the same port, and with what is stored, where, and what uses it; no second may take it."""
    with opened(tmp_path, "--annotator", "ann") as session:
        connection = http.client.HTTPConnection("127.0.0.1", session.port, timeout=60)
        connection.request("GET", "/%2e%2e/%2e%2e/../etc/passwd")
        answer = connection.getresponse()
        assert (answer.status, answer.getheader("Server")) == (404, None)
        connection.close()
        taken = [*REVIEW, "--port", str(session.port)]
        second = subprocess.run(
            taken, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
        )
        assert second.returncode == 2
        assert f"cannot listen on port {session.port}" in second.stderr
        assert session.agree(0) == 200
        session.end(signal.SIGKILL)
    with opened(tmp_path, "--annotator", "ann", "--port", str(session.port)) as again:
        assert again.port == session.port
        assert again.token != session.token
        status, overview = again.ask("GET", "/api/overview")
        said = again.end(signal.SIGINT)
    assert (status, overview["counts"]["agree"], overview["counts"]["next_open"]) == (200, 1, 1)
    assert again.process.returncode == 128 + signal.SIGINT
    assert "1 judgment stored in labels.corrections.jsonl" in said
    assert "labeler corrections apply labels.jsonl labels.corrections.jsonl" in said
    assert "labeler agree labels.jsonl --human labels.corrections.jsonl" in said
    assert "Traceback" not in said


NAMES = ("   ", "a\nb", "a\tb", "a\x1bb", "a\x85b", "x" * 101)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        # No file is there that it could stand next to.
        (("-",), "--corrections"),
        # Not when the first judgment is to be stored, which would spoil a packed file.
        (("labels.jsonl", "--corrections", "nowhere/c.jsonl"), "there is no such folder"),
        (("labels.jsonl", "--corrections", "c.jsonl.gz"), "gunzip"),
        # A short line: it goes into every correction.
        *((("labels.jsonl", "--annotator", name), "annotator's name") for name in NAMES),
    ],
)
def test_wrong_use_is_told_of_at_once(
    labeler_command: Command, arguments: tuple[str, ...], words: str
) -> None:
    """Before any page is open."""
    list(write_outcomes(labels(), "labels.jsonl"))
    Path("c.jsonl.gz").write_bytes(gzip.compress(b""))
    code, _, err = labeler_command("review", *arguments)
    assert (code, words in err) == (2, True)


TWINS = (
    "4 of 4 labels to review, in the order of the file\n",
    "in the order of the file, 1 row repeats the judgment of another\n",
    "4 of 4 labels to review, in the order of the file, 2 rows repeat the judgment of",
)


def test_what_is_to_be_reviewed_is_told(
    monkeypatch: pytest.MonkeyPatch, labeler_command: Command
) -> None:
    """With rows that share a judgment, and those judged already; other labels count apart."""
    monkeypatch.setattr("labeler.cli.review._serve", lambda *_, **__: 0)
    for twins, expected in enumerate(TWINS):
        others = [relabeled(one, {"id": f"other-{n}"}) for n, one in enumerate(labels()[:twins])]
        list(write_outcomes([*labels(), *others], "labels.jsonl"))
        assert expected in labeler_command("review", "labels.jsonl", "--queue", "order")[2]
    file = CorrectionsFile("labels.corrections.jsonl")
    file.append(*(correction(one) for one in [*labels(3), relabeled(labels()[0], model="m-2")]))
    _, _, err = labeler_command("review", "labels.jsonl")
    assert "has 3 judgments already" in err
    assert "has 1 judgment of other labels" in err


def test_a_plan_is_read_with_its_own_labels_only(
    monkeypatch: pytest.MonkeyPatch, labeler_command: Command
) -> None:
    """Answers to a plan of other labels would be refused after the reading."""
    monkeypatch.setattr("labeler.cli.review._serve", lambda *_, **__: 0)
    for name, some in (("labels.jsonl", labels()), ("others.jsonl", labels()[1:])):
        list(write_outcomes(some, name))
    made = labeler_command("certify", "labels.jsonl", "--within", ".1", "--plan", "plan.csv")
    assert made[0] == 0
    for line, code, told in (
        ("labels.jsonl --plan plan.csv", 0, "nothing was answered, and no file written"),
        (
            "labels.jsonl --plan plan.csv --blind --sample 5",
            2,
            "--plan cannot be combined with --sample, --blind",
        ),
        ("others.jsonl --plan plan.csv", 2, "made of other labels"),
    ):
        found, _, err = labeler_command("review", *line.split())
        assert (found, told in err) == (code, True)
