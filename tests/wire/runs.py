"""Whole runs against the provider: in this process, and as the command that people type."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import labeler
from labeler.api import iter_labels
from labeler.judges.openai.judge import OpenAIJudge
from labeler.labels.record import LabelFailure, LabelRecord, Outcome
from labeler.plugins.batch.client import OpenAIBatches
from labeler.plugins.batch.submission import Submission
from labeler.store import MemoryStore
from support.watching import Watch
from wire.provider import Provider

KEY = "sk-SENTINEL-0123456789"


def rows(count: int, start: int = 0) -> list[dict[str, Any]]:
    """Rows with content of their own."""
    return [
        {
            "id": f"r{n}",
            "question": f"What is item {n}?",
            "documents": [f"Item {n} is a lamp. It is red.", "Chairs are made of wood."],
            "response": f"Item {n} is a lamp. It is blue.",
        }
        for n in range(start, start + count)
    ]


def judge_of(provider: Provider, **settings: Any) -> OpenAIJudge:
    """The provider's model as a judge."""
    return OpenAIJudge("m", **{"api_key": KEY, "base_url": provider.url, **settings})


async def brief(_: float) -> None:
    """Hardly pause over a record's own back-off; what the traffic decides is waited for."""
    await asyncio.sleep(0.01)


def run(
    provider: Provider,
    given: list[dict[str, Any]],
    *,
    watch: Watch | None = None,
    judge: dict[str, Any] | None = None,
    **options: Any,
) -> list[Outcome]:
    """Label rows and return every outcome.

    Args:
        provider: who is asked.
        given: the rows.
        watch: told how it goes.
        judge: the judge's settings, besides short back-offs.
        options: those of ``iter_labels``; by default a store of its own that keeps nothing.
    """
    asked = judge_of(provider, **{"sleep": brief, **(judge or {})})
    return list(
        iter_labels(given, judge=asked, on_event=watch, **{"store": MemoryStore(), **options})
    )


def in_a_batch(
    provider: Provider,
    given: list[dict[str, Any]],
    store: Path,
    *,
    judge: OpenAIJudge | None = None,
    **options: Any,
) -> Submission:
    """Hand rows in as a batch, and collect their labels."""
    service = OpenAIBatches(api_key=KEY, base_url=provider.url, sleep=brief)
    given_to = judge or judge_of(provider)
    done: Submission = labeler.submit_batch(
        given, judge=given_to, batches=service, store=store, **options
    )
    labeler.collect_batches(service, store, wait=True)
    return done


def comes_true(condition: Callable[[], bool], seconds: float = 20.0) -> bool:
    """Whether something that another thread or process does happens before long."""
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.005)
    return condition()


def reasons(outcomes: Iterable[Outcome]) -> list[str]:
    """Reason codes of the failures, ``label`` for the others."""
    return [o.reason if isinstance(o, LabelFailure) else "label" for o in outcomes]


def records(outcomes: list[Outcome]) -> list[LabelRecord]:
    """Those that are labels."""
    return [outcome for outcome in outcomes if isinstance(outcome, LabelRecord)]


# As a process


class Done(NamedTuple):
    """How a command ended."""

    code: int
    err: str


def settings() -> dict[str, str]:
    """This environment without the user's settings, with this process's import path."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("OPENAI_", "LABELER_"))}
    return kept | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def row_file(folder: Path, given: Iterable[object], name: str = "rows.jsonl") -> Path:
    """A file of rows."""
    path = folder / name
    path.write_text("".join(json.dumps(row) + "\n" for row in given))
    return path


def labeling(
    provider: Provider, given: Path, *more: object, output: str = "labels.jsonl"
) -> list[str]:
    """The arguments of the command with which the provider labels rows."""
    asking = ["--judge", "openai", "--model", "m", "--base-url", provider.url, "-o", output]
    return ["label", str(given), *asking, *map(str, more)]


def process(arguments: list[str]) -> list[str]:
    """The same command as a process: for signals, kills and limits of the system."""
    return [sys.executable, "-m", "labeler", *arguments]


class Running:
    """A command that runs beside the test; what it says goes to a file, so that it never blocks."""

    def __init__(self, arguments: list[str], folder: Path, name: str = "run") -> None:
        self._heard = folder / f"{name}.err"
        with self._heard.open("w") as err:
            self.process = subprocess.Popen(arguments, cwd=folder, env=settings(), stderr=err)

    @property
    def err(self) -> str:
        """What it has said so far."""
        return self._heard.read_text()

    def says(self, text: str) -> bool:
        """Whether it says so before long."""
        return comes_true(lambda: text in self.err, 60)

    def end(self) -> Done:
        """Wait for its end."""
        return Done(self.process.wait(timeout=120), self.err)


@contextmanager
def running(arguments: list[str], folder: Path, name: str = "run") -> Iterator[Running]:
    """Start a command; it does not outlive the context."""
    started = Running(arguments, folder, name)
    try:
        yield started
    finally:
        started.process.kill()
        started.process.wait()
