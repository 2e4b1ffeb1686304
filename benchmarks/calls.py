"""What a call to a hosted model costs ``labeler label``, next to the bare openai client.

    python benchmarks/speed.py --only calls --rounds 9 --write docs/measured/speed.md

The bare client sends the same bodies over the same transport and throws the answers away
(``reliability_client.py``); labeler also reads, splits, checks, stores and writes. Both are
processes of their own, started in turn, and so is the server. Their clocks start when everything is
imported.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import NamedTuple

from harness import ROOT, at_least, at_most, day, findings_table, spent, write_rows
from reliability_serving import Manner, Server, records

CLIENT = ROOT / "benchmarks" / "reliability_client.py"
ROWS, FEW, LATENCY = 2_000, 50, 0.2


class Took(NamedTuple):
    """What a client took, in seconds of the clock and of a processor."""

    seconds: float
    cpu: float


class Round(NamedTuple):
    """Both clients, one after the other."""

    labeler: Took
    bare: Took


def run_rounds(folder: Path, rows: int, concurrency: int, count: int) -> list[Round]:
    """Run both clients in turn.

    Args:
        folder: where files are made.
        rows: records to label.
        concurrency: requests in flight.
        count: rounds.
    """
    path = write_rows(folder / f"rows-{rows}.jsonl", records(rows))
    return [
        Round(*(_run(client, path, rows, concurrency) for client in Round._fields))
        for _ in range(count)
    ]


def _run(client: str, path: Path, rows: int, concurrency: int) -> Took:
    with tempfile.TemporaryDirectory() as own, Server(Manner(LATENCY)) as server:
        command = (sys.executable, CLIENT, client, server.url, path, concurrency, own)
        printed = spent(*command, keep=True).printed
        if (sent := server.settled()["calls"]) != rows:
            raise SystemExit(f"{client} sent {sent} requests for {rows} records")
    return Took(**json.loads(printed.splitlines()[-1]))


def measure(folder: Path, rows: int, rounds: int) -> Iterator[str]:
    """Yield the page's part: runs with 64 and 256 in flight, and short ones with 16.

    Args:
        folder: where files are made.
        rows: records of a run, at most 2,000.
        rounds: rounds of runs.
    """
    rows = min(rows, ROWS)
    busy, wide = (run_rounds(folder, rows, concurrency, rounds) for concurrency in (64, 256))
    short = run_rounds(folder, min(rows, FEW), 16, rounds + 2)
    ours, theirs = (1000 * median(one.cpu for one in own) / rows for own in zip(*busy, strict=True))
    yield (
        f"{day()}. Answers come after {1000 * LATENCY:.0f} ms. With 64 in flight, a call takes "
        f"{ours:.1f} ms of a processor, and {theirs:.1f} ms with the bare openai client. Medians "
        f"of {rounds} rounds or more, to the bare client:\n"
    )
    idle = median(1 - one.bare.cpu / one.bare.seconds for one in busy)
    cost = median(one.labeler.cpu / one.bare.cpu for one in busy)
    yield from findings_table(
        [
            at_least("bare client, 64 in flight: share of its processor that is idle", idle, 0.1),
            at_most("processor time of a call", cost, 1),
            at_least(f"rate, {rows:,} records, 64 in flight", _rate(busy), 0.95),
            at_least(f"rate, {rows:,} records, 256 in flight", _rate(wide), 0.95),
            at_most(f"time of {min(rows, FEW)} records, 16 in flight", 1 / _rate(short), 1.15),
        ]
    )


def _rate(found: list[Round]) -> float:
    return median(one.bare.seconds / one.labeler.seconds for one in found)
