"""A judge that answers in probabilities, killed on a server that fails one time in five."""

from __future__ import annotations

import json
import random
import re
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path

from harness import Finding, at_most, exactly, write_rows
from reliability_runs import Scale, complete, read, stored
from reliability_serving import Labeling, records, wait_until
from wire.calls import Json
from wire.decider import Decider, overlap

SHARE = 0.2
"""Share of the requests that end with a fault."""
_PRICE = Decimal(100)
"""US dollars per million tokens of input."""
_EACH = Decimal("0.05")
"""US dollars a record that the first start may spend: a third of what one costs."""
_LEAST = Decimal(2)
"""US dollars that hold the worst case of a first request, which is several times what it costs."""
_CASE = re.compile(r"Case (\d+):")


class _FaultyDecider(Decider):
    """Fails now and then, and counts the good answers by record.

    Args:
        seconds: before each answer.
        draw: picks the requests and the faults.
    """

    def __init__(self, seconds: float, draw: random.Random) -> None:
        super().__init__(overlap)
        self._seconds, self._draw = seconds, draw
        self.good, self.faults, self.tokens = Counter[str](), Counter[str](), 0

    def respond(self, path: str, body: Json) -> tuple[int, bytes]:
        """Return status and body of an answer, or of a fault."""
        status, content = super().respond(path, body)
        time.sleep(self._seconds)
        answered: Json = json.loads(content)
        self.tokens += answered["usage"]["input_tokens"]
        if self._draw.random() < SHARE:
            fault = self._draw.choice(list(_FAULTS))
            self.faults[fault] += 1
            return _FAULTS[fault](answered)
        self.good[_CASE.findall(body.get("input") or body["state"])[0]] += 1
        return status, content


def _said(status: int, body: object) -> Callable[[Json], tuple[int, bytes]]:
    return lambda _: (status, json.dumps(body).encode())


def _without_one(body: Json) -> tuple[int, bytes]:
    """Leave the last answer out."""
    answers = body["answers"]
    answers.pop() if isinstance(answers, list) else answers.popitem()
    return 200, json.dumps(body).encode()


_FAULTS: dict[str, Callable[[Json], tuple[int, bytes]]] = {
    "429": _said(429, {"error": {"message": "slow down", "code": "rate_limit_exceeded"}}),
    "500": _said(500, {"error": {"message": "broken"}}),
    "529": _said(529, {"detail": {"error_type": "overloaded", "message": "later"}}),
    "cut": lambda _: (200, b'{"model": "m", "answers": '),
    "no answers": lambda body: (200, json.dumps(body | {"answers": 3}).encode()),
    "an answer too few": _without_one,
}


def decisions(scale: Scale, folder: Path) -> Iterator[Finding]:
    """Kill the command again and again, on each of both APIs."""
    for name in ("decisions", "systemone"):
        (folder / name).mkdir()
        yield from _killed_runs(name, scale, folder / name)


def _killed_runs(name: str, scale: Scale, folder: Path) -> Iterator[Finding]:
    rows = write_rows(folder / "rows.jsonl", records(scale.few))
    draw = random.Random(scale.seed)
    kills = max(1, scale.kills // 4)
    budget = max(scale.few * _EACH, _LEAST)
    with _FaultyDecider(scale.latency, draw) as server:
        places = (folder / "store", folder / "labels.jsonl")
        priced = ("--price", f"{_PRICE},0")
        command = Labeling(server.url, rows, *places, scale.concurrency, priced, name)
        first = command.run("--budget", budget)
        spent = server.tokens * _PRICE / 1_000_000
        lost = [_killed(server, command, scale.few, kills + 1) for _ in range(kills)]
        command.run()
        ended = command.run("--retry-failed")
        calls = len(server.requests)
        again = command.run()
        sent = len(server.requests) - calls
    killed = [one for one in lost if one is not None]
    yield Finding(
        f"`{name}`, a budget of ${budget} first: spent",
        f"${spent:.4f}, exit {first.code}",
        "no more, exit 4",
        0 < spent <= budget and first.code == 4,  # noqa: PLR2004 - the documented code
    )
    yield exactly(f"`{name}`: processes killed while they worked", len(killed), kills)
    yield complete(read(command.out), scale.few, ended, f"`{name}`: labeled, each once")
    most = max(killed, default=0)
    yield at_most(f"`{name}`: good answers lost with one kill", most, scale.concurrency)
    twice = server.good.total() - scale.few - sum(killed)
    yield exactly(f"`{name}`: further good answers for a labeled record", twice, 0)
    yield exactly(f"`{name}`: requests when it runs again, exit {again.code}", sent, 0)
    faults = f"{server.faults.total():,} of {calls:,}"
    yield Finding(f"`{name}`: answers with a fault, of {len(server.faults)} kinds", faults)


def _killed(server: _FaultyDecider, command: Labeling, count: int, parts: int) -> int | None:
    """Kill a command after one of so many parts of the good answers that are still to come.

    Returns:
        How many of its answers were not stored; ``None`` if the command ended before.
    """
    good, before = server.good.total(), stored(command.store)
    enough = good + max(1, (count - before) // parts)
    process = command.start()
    wait_until(lambda: process.poll() is not None or server.good.total() >= enough)
    process.kill()
    if process.wait() != -signal.SIGKILL:
        return None
    time.sleep(1)  # requests in flight end
    return server.good.total() - good - (stored(command.store) - before)
