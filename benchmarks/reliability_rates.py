"""Servers that limit the rate, for our own load and for that of others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from harness import Finding, at_least, at_most, write_rows
from reliability_runs import Scale, complete, read
from reliability_serving import Ended, Labeling, Manner, Server, records

_AT_ONCE = 3
"""Runs that mostly wait, side by side."""

TELLINGS: Mapping[str, Mapping[str, Any]] = {
    "stated in `x-ratelimit` headers": {"headers": True, "retry_after": False},
    "stated by `Retry-After` only": {"headers": False, "retry_after": True},
    "not stated": {"headers": False, "retry_after": False},
}
"""How a server can let its limit be known."""

UNRELATED = {0.001: 0.95, 0.005: 0.9, 0.01: 0.9, 0.02: 0.85, 0.05: 0.75}
"""Shares of requests that are refused at any load, and the least part of the throughput that
remains."""
_WAIT = 5.0
"""Seconds that three answers ask to wait."""
_LEAST_WITH_WAITS = 0.9
"""The least part of the throughput that remains with them."""


class Limited(NamedTuple):
    """A run on a server that limits the rate."""

    manner: Manner
    labeled: int
    """Records."""
    concurrency: int
    ended: Ended
    stats: dict[str, Any]
    out: Path

    @property
    def throughput(self) -> float:
        """Records a second, from the first request to the last answer."""
        return self.labeled / float(self.stats["seconds"])

    @property
    def refused(self) -> float:
        """Percentage of requests that were answered with 429."""
        limited = self.stats["limited"] + self.stats["unrelated"]
        return 100 * float(limited / self.stats["calls"])


def rate(scale: Scale, folder: Path) -> Iterator[Finding]:
    """The server takes no more than so many requests a second."""
    cases = {
        f"{scale.rate:g} requests/s, {burst} at once, {name}": Manner(
            scale.latency, rate=scale.rate, burst=burst, **telling
        )
        for burst in scale.bursts
        for name, telling in TELLINGS.items()
    }
    found = _side_by_side(cases.values(), scale.many, scale.concurrency, folder)
    for case, run in zip(cases, found, strict=True):
        allowed = scale.rate * run.stats["seconds"] + (run.manner.burst or 0)
        done = at_least(f"{case}: achieved / allowed", run.labeled / allowed, 0.9, timing=True)
        yield done._replace(figure=f"{done.figure} in {run.stats['seconds']:.0f} s")
        yield at_most(f"{case}: answered with 429", run.refused, 2, " %", timing=True)
        yield complete(read(run.out), run.labeled, run.ended, f"{case}: labeled, each once")


def unrelated(scale: Scale, folder: Path) -> Iterator[Finding]:
    """A share of requests is rejected at any load, as where others share the quota."""
    yield from _unrelated(scale, folder, *scale.loads[0], waits=True)


def unrelated_many(scale: Scale, folder: Path) -> Iterator[Finding]:
    """The same with many requests in flight."""
    yield from _unrelated(scale, folder, *scale.loads[-1], waits=False)


def _unrelated(
    scale: Scale, folder: Path, concurrency: int, latency: float, *, waits: bool
) -> Iterator[Finding]:
    calm = Manner(latency, seed=scale.seed)
    manners = [calm, *(calm._replace(unrelated=share) for share in UNRELATED)]
    if waits:
        middle = range(scale.many // 2, scale.many // 2 + 3)
        manners.append(calm._replace(refused=tuple(middle), wait=_WAIT))
    alone, *others = _side_by_side(manners, scale.many, concurrency, folder)
    case = f"{concurrency} in flight, {latency:g} s each"
    yield Finding(f"{case}: records/s", f"{alone.throughput:.0f}", timing=True)
    for run in others:
        share = run.manner.unrelated
        fault = f"{share:.1%} unrelated 429s" if share else f"`Retry-After: {_WAIT:g}` three times"
        what = f"{case}: {fault}, part of that"
        part = run.throughput / alone.throughput
        yield at_least(what, part, UNRELATED.get(share, _LEAST_WITH_WAITS), timing=True)
        yield complete(
            read(run.out), run.labeled, run.ended, f"{case}: {fault}: labeled, each once"
        )


def _side_by_side(
    manners: Iterable[Manner], count: int, concurrency: int, folder: Path
) -> list[Limited]:
    """Label the same rows at several servers."""
    rows = write_rows(folder / "rows.jsonl", records(count))

    def one(case: tuple[int, Manner]) -> Limited:
        number, manner = case
        own = folder / f"run-{number}"
        own.mkdir()
        with Server(manner) as server:
            command = Labeling(server.url, rows, own / "store", own / "out.jsonl", concurrency)
            ended = command.run()
            return Limited(manner, count, concurrency, ended, server.settled(), command.out)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(one, enumerate(manners)))
