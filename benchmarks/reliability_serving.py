"""A server and ``labeler label`` as processes that the reliability runs start."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from harness import ServerProcess
from peers.records import made_up

MODEL = "stub-1"

_LONGEST_RUN = 1_800.0
"""Seconds after which a process is given up."""
_LOOK = 0.02
"""Seconds between looks at the server's counters."""
_UNLIKE = 1_000
"""Made-up records that differ in more than their question."""

Row = dict[str, Any]


class Manner(NamedTuple):
    """How a server treats its callers."""

    latency: float = 0.2
    """Seconds before each answer."""
    rate: float | None = None
    """Requests that it takes in a second; ``None`` for any number."""
    burst: int | None = None
    """Requests that it takes at once after a rest."""
    headers: bool = True
    """True if it states its limits."""
    retry_after: bool = True
    """True if it names the seconds that a refused client should wait."""
    count_tokens: bool = False
    """True if it states the tokens that the texts have, instead of a fixed number."""
    bad_key: bool = False
    """True if it accepts no key."""
    down_at: int | None = None
    """The number of the request with which an outage begins."""
    down_seconds: float = 0.0
    unrelated: float = 0.0
    """Share of requests that meet a rate limit whatever the load."""
    refused: tuple[int, ...] = ()
    """Numbers of requests that meet one as well."""
    wait: float | None = None
    """Seconds that these answers ask to wait."""
    seed: int = 1


class Server(ServerProcess):
    """A server of the reliability runs, while its context is entered."""

    def __init__(self, manner: Manner) -> None:
        super().__init__("reliability_server", json.dumps(manner._asdict()))

    def stats(self) -> dict[str, Any]:
        """The server's counters now."""
        connection = HTTPConnection(urlsplit(self.url).netloc, timeout=30)
        try:
            connection.request("GET", "/stats")
            counters: dict[str, Any] = json.load(connection.getresponse())
        finally:
            connection.close()
        return counters

    def settled(self) -> dict[str, Any]:
        """The counters once nothing is being answered any more."""
        wait_until(lambda: self.stats()["in_flight"] == 0)
        return self.stats()


class Ended(NamedTuple):
    """How a process ended."""

    code: int
    seconds: float
    said: str
    """What it wrote on standard error."""

    @property
    def last_words(self) -> str:
        """The last line of that."""
        return next(reversed(self.said.splitlines()), "")


@dataclass(frozen=True)
class Labeling:
    """The command that labels rows, with all that is the same in each start of it."""

    url: str
    rows: Path
    store: Path
    out: Path
    concurrency: int
    options: tuple[str, ...] = ()
    judge: str = "openai"

    def arguments(self, *options: object) -> list[str]:
        """What the command line is given."""
        asked = ("--judge", self.judge, "--model", MODEL, "--base-url", self.url)
        places = ("--store", self.store, "-o", self.out, "--concurrency", self.concurrency)
        return [str(one) for one in ("label", self.rows, *asked, *places, *self.options, *options)]

    def start(self, *options: object) -> subprocess.Popen[str]:
        """Start it; what it says goes to a file next to its output."""
        with self._said.open("w") as said:
            return subprocess.Popen(
                [sys.executable, "-m", "labeler", *self.arguments(*options)],
                cwd=self.out.parent,
                env=_environment(),
                stderr=said,
                text=True,
            )

    def run(self, *options: object) -> Ended:
        """Start it and wait for its end."""
        began = time.perf_counter()
        return self.end(self.start(*options), began)

    def end(self, process: subprocess.Popen[str], began: float) -> Ended:
        """Wait for the end of what was started."""
        try:
            code = process.wait(_LONGEST_RUN)
        except BaseException:
            process.kill()
            raise
        return Ended(code, time.perf_counter() - began, self._said.read_text())

    @property
    def _said(self) -> Path:
        return self.out.with_suffix(".said")


def _environment() -> Mapping[str, str]:
    """Ours, without what would change how the command runs."""
    ours = ("OPENAI_", "TYPESAFE_", "LABELER_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return kept | {"OPENAI_API_KEY": "sk-made-up-0123456789"}


def wait_until(condition: Callable[[], bool], seconds: float = 300.0) -> None:
    """Wait for something to become true.

    Raises:
        TimeoutError: it did not.
    """
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"nothing happened in {seconds:g} s")
        time.sleep(_LOOK)


def records(count: int, seed: int = 1) -> Iterator[Row]:
    """Made-up records; beyond a thousand they repeat but for their id and question."""
    some = made_up(min(count, _UNLIKE), seed)
    for number in range(count):
        row = some[number % len(some)]
        case = f"Case {number}: {row['question'].partition(': ')[2]}"
        yield {**row, "id": f"made-{number}", "question": case}


def short_records(count: int) -> Iterator[Row]:
    """The same, each with a single document and a single sentence of response."""
    for row in records(count):
        answer = row["response"].partition(". ")[0] + "."
        yield {**row, "documents": row["documents"][:1], "response": answer}
