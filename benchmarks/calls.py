"""Measure what a call to a hosted model costs ``labeler label``, next to the bare openai client.

Run it as ``python benchmarks/calls.py --write docs/measured/speed.md``, with nothing else
on the machine: it
writes its part of that page. The bare client sends the same bodies over the same transport and
throws the answers away (``reliability_client.py``); labeler also reads, splits, checks, stores
and writes. Both are processes of their own, started in turn, and so is the server. Their
clocks start when everything is imported.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import NamedTuple

from reliability_serving import Manner, Server, records, write_rows
from speed_reruns import written_into

CLIENT = Path(__file__).with_name("reliability_client.py")
ROWS, FEW, LATENCY = 2_000, 50, 0.2


class Took(NamedTuple):
    """What a client took, in seconds of the clock and of a processor."""

    seconds: float
    cpu: float


class Round(NamedTuple):
    """Both clients, one after the other."""

    labeler: Took
    bare: Took


def rounds(folder: Path, rows: int, concurrency: int, count: int) -> list[Round]:
    """Run both clients in turn.

    Args:
        folder: where files are made.
        rows: records to label.
        concurrency: requests in flight.
        count: rounds.
    """
    path = write_rows(folder / f"rows-{rows}.jsonl", records(rows))
    return [
        Round(*(_run(client, path, concurrency, folder) for client in Round._fields))
        for _ in range(count)
    ]


def _run(client: str, rows: Path, concurrency: int, folder: Path) -> Took:
    with tempfile.TemporaryDirectory(dir=folder) as own, Server(Manner(LATENCY)) as server:
        arguments = [client, server.url, str(rows), str(concurrency), own]
        done = subprocess.run(
            [sys.executable, str(CLIENT), *arguments], stdout=subprocess.PIPE, text=True, check=True
        )
    return Took(**json.loads(done.stdout.splitlines()[-1]))


def measure(
    folder: Path, rows: int = ROWS, few: int = FEW, count: int = 3, *, is_busy: bool = False
) -> str:
    """Return the page's part.

    Args:
        folder: where files are made.
        rows: records of a run.
        few: records of a short run.
        count: rounds of runs.
        is_busy: whether other work runs on the machine, which the part then says.
    """
    busy, wide = (rounds(folder, rows, concurrency, count) for concurrency in (64, 256))
    short = rounds(folder, few, 16, count + 2)
    lines = table(busy, wide, short, rows, few)
    today = f"{datetime.now(UTC):%d %B %Y}".lstrip("0")
    ours, theirs = (
        1000 * median(one.cpu for one in each) / rows for each in zip(*busy, strict=True)
    )
    return _PAGE.format(
        today=today + ", next to other work on the machine, which slows both" * is_busy,
        milliseconds=1000 * LATENCY,
        ours=ours,
        theirs=theirs,
        rounds=count,
        lines="\n".join(lines),
    )


_PAGE = """\
## A call to a hosted model

{today}. Answers come after {milliseconds:.0f} ms. With 64 in flight, a call takes {ours:.1f} ms of
a processor, and {theirs:.1f} ms with the bare openai client, which sends the same bodies over the
same transport and throws the answers away. labeler reads, splits, checks, stores and writes as
well. It begins with 16 requests in flight and doubles them every quarter of a
second, because it cannot know what a server bears; the bare client begins with all. Medians of
{rounds} or more.

| to the bare client | goal | found |  |
| --- | --: | --: | --: |
{lines}

Written by `benchmarks/calls.py`."""


def table(
    busy: list[Round], wide: list[Round], short: list[Round], rows: int, few: int
) -> Iterator[str]:
    """Yield the lines of the table."""
    idle = median(1 - one.bare.cpu / one.bare.seconds for one in busy)
    yield _line("bare client, 64 in flight: share of its processor that is idle", 0.1, idle)
    cost = median(one.labeler.cpu / one.bare.cpu for one in busy)
    yield _line("processor time of a call", 1.0, cost, at_most=True)
    for concurrency, goal, found in ((64, 0.95, busy), (256, 0.95, wide)):
        yield _line(f"rate, {rows:,} records, {concurrency} in flight", goal, _rate(found))
    yield _line(f"time of {few} records, 16 in flight", 1.15, 1 / _rate(short), at_most=True)


def _rate(found: list[Round]) -> float:
    return median(one.bare.seconds / one.labeler.seconds for one in found)


def _line(what: str, goal: float, found: float, *, at_most: bool = False) -> str:
    is_met = found <= goal if at_most else found >= goal
    sign, verdict = "≤" if at_most else "≥", "met" if is_met else "**not met**"
    return f"| {what} | {sign} {goal:g} | {found:.2f} | {verdict} |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print, or write the page's part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS, help="records of a run")
    parser.add_argument("--few", type=int, default=FEW, help="records of a short run")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each client")
    parser.add_argument("--busy", action="store_true", help="other work runs on the machine")
    parser.add_argument("--write", type=Path, help="the page, such as docs/measured/speed.md")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="calls-") as folder:
        part = measure(Path(folder), given.rows, given.few, given.rounds, is_busy=given.busy)
    print(part)
    if given.write:
        page = given.write.read_text(encoding="utf-8")
        given.write.write_text(written_into(page, part, "calls"), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
