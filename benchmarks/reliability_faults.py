"""Servers that fail in one way each, and what a run of ``labeler label`` makes of them.

    python benchmarks/reliability.py --only faults

Each shape has a server, a new store and two runs: one against the fault, one after its repair. The
seed of the scale picks the rows that a fault of some rows meets.
"""

from __future__ import annotations

import gzip
import json
import re
import sqlite3
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event

from harness import table, write_rows
from labeler.data.label_files import STORE_FILE as FILE
from labeler.labeling.options import LabelOptions
from labeler.labels.record import LabelRecord
from labeler.store import FAILURE
from labeler.store.disk import DiskStore
from reliability_serving import Ended, Labeling, short_records
from wire.calls import Call
from wire.connections import Connection, Wire
from wire.faults import dice_of
from wire.provider import BEHAVIOURS, Behavior, Provider, body, changes, error, says

MOST_CALLS = 10
"""Requests of any kind that a refusal of every row may cost."""
_AT_ONCE = 8
"""Shapes at the same time."""
_LOOKUP = "GET /v1/models/{id}"


@dataclass(frozen=True)
class Shape:
    """One way to fail."""

    name: str
    fault: Behavior | None
    """``None``: nothing listens."""
    share: float = 1.0
    """Rows that meet it."""
    calls: int | None = None
    """Requests with which it ends; ``None`` if the server does not recover by itself."""
    rows: int = 200
    most: int | None = None
    """Requests that it may cost; ``None`` without a goal."""
    options: tuple[str, ...] = ()
    latency: float = 0.0
    lookup: bool = False
    """True if the look-up of the model fails in the same way."""


@dataclass(frozen=True)
class Found:
    """The figures of one shape."""

    shape: Shape
    requests: int
    labels: int
    reasons: str
    """Of failed rows, with their numbers."""
    lasting: int
    repaired: int
    said: str
    """The line that the user reads."""

    @property
    def met(self) -> bool:
        """True if it was cheap, stored only faults of rows, and healed."""
        shape = self.shape
        cheap = shape.most is None or self.requests <= shape.most
        healed = self.repaired == shape.rows - self.lasting
        return cheap and healed and (not self.lasting or 0 < shape.share < 1)


def refused(name: str, fault: Behavior, *, lookup: bool = False) -> Shape:
    """A fault that refuses every row."""
    return Shape(name, fault, rows=2_000, most=MOST_CALLS, lookup=lookup)


async def cut_off(_: Call, wire: Wire) -> None:
    """Reset the connection in the middle of the answer."""
    if isinstance(wire, Connection):
        await wire.send(wire.head(200, 9_999) + b'{"id":')
        wire.reset()


async def bomb(_: Call, wire: Wire) -> None:
    """Send 64 MB of blanks in 64 kB."""
    await wire.respond(200, _BOMB, {"content-encoding": "gzip"})


_BOMB = gzip.compress(b" " * (1 << 26))
_GOOGLE = {"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": "API key not valid."}}
_GOOGLE_BUSY = {
    "error": {
        "code": 429,
        "status": "RESOURCE_EXHAUSTED",
        "message": "You exceeded your current quota",
        "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "3s"}],
    }
}


def stated(status: int, value: object) -> Behavior:
    """A body of a provider's own form."""
    return body(json.dumps(value).encode(), status)


def used(**counters: int) -> Behavior:
    """A good answer with other counters of tokens."""
    return changes(lambda value: value.update(usage=counters))


PAID = ("--price", "0,1", "--max-output-tokens", "100", "--budget", "0.5")

SHAPES = (
    refused("`response_format` refused, 400", error(400, message="response_format is unknown")),
    refused("wrong key, 401", BEHAVIOURS["401"], lookup=True),
    refused("wrong key, 401 at completions only", BEHAVIOURS["401"]),
    refused("wrong key at Gemini, 400", stated(400, [_GOOGLE]), lookup=True),
    refused("unknown field at Mistral, 422", stated(422, {"detail": [{"msg": "Extra inputs"}]})),
    refused("no credit, 402 in a 200", stated(200, {"error": {"code": 402, "message": "credits"}})),
    refused("no credit, 402", BEHAVIOURS["402"]),
    refused("forbidden, 403", BEHAVIOURS["403"]),
    refused("unknown model, 404", BEHAVIOURS["404"]),
    refused("wrong path, 404", error(404)),
    refused("`insufficient_quota`, 429", BEHAVIOURS["429-quota"]),
    refused("redirect, 307", BEHAVIOURS["redirect"]),
    Shape("quota at Gemini, 429 with `retryDelay`, ends", stated(429, _GOOGLE_BUSY), calls=20),
    Shape("`json_validate_failed`, 400, 5 % of rows", error(400, "json_validate_failed"), 0.05),
    Shape("time-out below the latency", BEHAVIOURS["ok"], most=MOST_CALLS, latency=6.0,
          options=("--timeout", "3")),
    Shape('`finish_reason: "error"` in a 200',
          changes(lambda value: value["choices"][0].update(finish_reason="error"))),
    Shape("HTML page, 200", BEHAVIOURS["html"]),
    Shape("no choices", BEHAVIOURS["no-choices"]),
    Shape("content filter on all rows", BEHAVIOURS["filtered"]),
    Shape("too long, 400, 10 % of rows", BEHAVIOURS["400-context"], 0.1),
    Shape("prompt cut", used(prompt_tokens=300, completion_tokens=9)),
    Shape("answers above the cap, with a budget",
          used(prompt_tokens=9_000, completion_tokens=5_000), options=PAID),
    Shape("oversized answers", says("x" * (1 << 21))),
    Shape("gzip bomb", bomb),
    Shape("cut-off JSON", BEHAVIOURS["truncated"]),
    Shape("broken contract", BEHAVIOURS["unknown-key"]),
    Shape("broken contract, 10 % of rows", BEHAVIOURS["unknown-key"], 0.1),
    Shape("connection refused", None),
    Shape("reset in mid-answer", cut_off),
    Shape("failing, 500", BEHAVIOURS["500"]),
    Shape("overloaded, 529, ends", error(529, "overloaded_error"), calls=20),
)  # fmt: skip
"""Every shape, in the order of the table."""


def carry_out(folder: Path, *, rows: int | None, seed: int) -> Iterator[Found]:
    """Carry out every shape.

    Args:
        folder: for the files of the runs.
        rows: at most, of each run; ``None`` for all.
        seed: picks the rows that a fault of some rows meets.
    """

    def one(number: int) -> Found:
        own = folder / str(number)
        own.mkdir()
        shape = SHAPES[number]
        return _run(shape, own, min(shape.rows, rows or shape.rows), seed)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        yield from pool.map(one, range(len(SHAPES)))


INTRO = f"""\
A run meets the fault, the server is repaired, and the same command runs again, with the default
concurrency. Requests include the look-up of the model. Goals: a refusal of all rows and a time-out
below the latency cost at most {MOST_CALLS} requests, a fault that all rows meet stores no failure,
and after the repair every row without a stored failure has its label. Stored failures are asked
again with `--retry-failed`.
"""


def lines(found: Iterable[Found]) -> Iterator[str]:
    """Yield the lines of the table, below its heading."""
    yield INTRO
    heads = ["fault", "rows", "requests", "labels", "failures", "stored lasting"]
    heads += ["labels after the repair", "met", "the user reads"]
    yield from table(heads, map(_cells, found))


def _cells(found: Found) -> list[str]:
    numbers = (f"{n:,}" for n in (found.shape.rows, found.requests, found.labels))
    after = (f"{found.lasting:,}", f"{found.repaired:,}", "yes" if found.met else "**no**")
    return [found.shape.name, *numbers, found.reasons, *after, found.said.replace("|", "\\|")]


def _run(shape: Shape, folder: Path, rows: int, seed: int) -> Found:
    """Label with the fault, repair the server, and label again."""
    path = write_rows(folder / "rows.jsonl", short_records(rows))
    is_broken = Event()
    is_broken.set()
    with ExitStack() as stack:
        server = stack.enter_context(_server(shape, seed, is_broken))
        command = Labeling(
            server.url, path, folder / "store", folder / "labels.jsonl", LabelOptions().concurrency
        )
        if shape.fault is None:
            stack.close()
        ended = command.run(*shape.options)
        requests = sum(server.routes.values())
        labels, lasting = _stored(command.store)
        is_broken.clear()
        if shape.fault is None:
            stack.enter_context(Provider(port=server.port, record=False))
        again = command.run(*shape.options)
    repaired, _ = _stored(command.store)
    healed = repaired == rows - lasting
    return Found(
        shape=replace(shape, rows=rows),
        requests=requests,
        labels=labels,
        reasons=_reasons(ended),
        lasting=lasting,
        repaired=repaired,
        said=_said(ended) if healed else f"{_said(ended)}; after the repair: {_said(again)}",
    )


def _server(shape: Shape, seed: int, is_broken: Event) -> Provider:
    """The server of a shape, which is repaired once it is no longer marked as broken."""
    fault = shape.fault or BEHAVIOURS["ok"]

    def pick(call: Call) -> Behavior | None:
        if not is_broken.is_set():
            return None
        if shape.calls is not None:
            return fault if call.number <= shape.calls else None
        # The same for a row however often it is asked.
        return fault if dice_of(seed, call, 0).random() < shape.share else None

    return Provider(
        pick,
        at={_LOOKUP: lambda _: fault if shape.lookup and is_broken.is_set() else None},
        latency=lambda _: shape.latency if is_broken.is_set() else 0.0,
        record=False,
    )


def _stored(store: Path) -> tuple[int, int]:
    """Labels and lasting failures that a store holds."""
    if not (store / FILE).exists():
        return 0, 0
    with closing(sqlite3.connect(store / FILE)) as database:
        names = [str(name) for (name,) in database.execute("SELECT key FROM Cache")]
    lasting = sum(name.startswith(FAILURE) for name in names)
    with DiskStore(store, create=False) as opened:  # it may hold failures alone
        return sum(isinstance(one, LabelRecord) for one in opened), lasting


def _reasons(ended: Ended) -> str:
    """The failures by reason, as the run counts them."""
    found = re.search(r"failed \(([^)]*)\)", ended.said)
    return found[1] if found else "none"


def _said(ended: Ended) -> str:
    """The error that ended the run, else the first failure, else what the run counts."""
    lines = [line.strip() for line in ended.said.splitlines()]
    marks = ("labeler: ", "'made-")
    found = next((line for mark in marks for line in lines if line.startswith(mark)), lines[0])
    return re.sub(r"^.*? at 127\.0\.0\.1:\d+, ", "… ", found)
