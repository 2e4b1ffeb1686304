"""The failures of long runs, provoked one by one; each run yields its findings."""

from __future__ import annotations

import random
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import labeler
from fault_run import Weather, Work, label_run
from harness import Finding, at_least, at_most, exactly, write_rows
from hostile_input import measure
from labeler.api import stored_outcomes
from labeler.data.label_files import STORE_FILE as FILE
from labeler.labels.record import LabelFailure
from peers.records import made_up
from reliability_serving import (
    MODEL,
    Ended,
    Labeling,
    Manner,
    Server,
    records,
    short_records,
    wait_until,
)


@dataclass(frozen=True)
class Scale:
    """How large the runs are."""

    few: int = 1_000
    """Records of the runs on budget and on one large record."""
    some: int = 2_000
    """Records of the runs on two processes and on an outage."""
    many: int = 3_000
    """Records of the runs on kills and rates."""
    most: int = 100_000
    """Rows of the run with a bad key."""
    concurrency: int = 64
    latency: float = 0.2
    kills: int = 20
    rate: float = 50.0
    bursts: Sequence[int] = (50, 10)
    loads: Sequence[tuple[int, float]] = ((64, 1.0), (256, 8.0))
    """Requests in flight and seconds before each answer where others use up the quota. Slow, so
    that the machine is fast enough for all of them."""
    mixed: Sequence[tuple[float, float]] = ((1.5, 6.0), (0.2, 2.0))
    """Seconds before each answer where all kinds of faults occur, and of the time-out."""
    large: int = 1_000_000
    """Characters of the large document."""
    tokens_per_minute: int = 320_000
    """Fewer than the large record has."""
    outage: float = 20.0
    seed: int = 1


QUICK = Scale(
    few=24,
    some=48,
    many=48,
    most=200,
    concurrency=8,
    latency=0.02,
    kills=2,
    rate=200.0,
    bursts=(20,),
    loads=((8, 0.02),),
    mixed=((0.02, 0.5),),
    large=100_000,
    tokens_per_minute=30_000_000,
    outage=0.5,
)
"""For a look at whether the runs run; its figures say nothing."""


class File(NamedTuple):
    """What is in a label file."""

    ids: Sequence[str]
    labels: dict[str, Any]
    """By id."""
    reasons: Counter[str]
    """Of failures."""


def read(path: Path) -> File:
    """Read a label file; one that is not there holds nothing."""
    ids, labels, reasons = [], {}, Counter[str]()
    for outcome in labeler.api.read_labels(path) if path.exists() else ():
        if isinstance(outcome, LabelFailure):
            ids.append(outcome.id)
            reasons[outcome.reason] += 1
        else:
            ids.append(outcome.example.id)
            labels[outcome.example.id] = outcome.label
    return File(ids, labels, reasons)


def complete(file: File, count: int, ended: Ended, what: str = "labeled, each once") -> Finding:
    """Every row must be in the file once, with a label, and the command must say so."""
    once = len(file.ids) == len(set(file.ids)) == len(file.labels) == count
    figure = f"{len(file.labels):,} of {count:,}, exit {ended.code}"
    if file.reasons:
        figure += f", failures: {dict(file.reasons)}"
    if ended.code:
        figure += f", {ended.last_words!r}"
    return Finding(what, figure, "all, exit 0", once and ended.code == 0)


def _labeling(server: Server, rows: Path, scale: Scale, name: str = "labels") -> Labeling:
    folder = rows.parent
    return Labeling(server.url, rows, folder / "store", folder / f"{name}.jsonl", scale.concurrency)


# -- kills ----------------------------------------------------------------------------------------


def kills(scale: Scale, folder: Path) -> Iterator[Finding]:
    """The process is killed again and again, at moments that a seed picks."""
    rows = write_rows(folder / "rows.jsonl", records(scale.many))
    yield from _kills(scale, rows, scale.many, scale.many)


def kills_blind(scale: Scale, folder: Path) -> Iterator[Finding]:
    """The same with several responses over each retrieval, which is judged by itself."""
    retrievals = list(records(scale.some // RESPONSES))
    rows = [
        {**row, "id": f"{row['id']}-{number}", "response": f"{row['response']} Part {number}."}
        for number in range(RESPONSES)
        for row in retrievals
    ]
    path, fewer = (
        write_rows(folder / "rows.jsonl", rows),
        replace(scale, kills=max(1, scale.kills // 2)),
    )
    asked = len(rows) + len(retrievals)
    yield from _kills(fewer, path, len(rows), asked, "--relevance", "blind")


RESPONSES = 3
"""Responses over each retrieval."""


def _kills(scale: Scale, rows: Path, labels: int, asked: int, *options: str) -> Iterator[Finding]:
    """Kill a process again and again; it makes so many labels by so many requests."""
    draw = random.Random(scale.seed)
    with Server(Manner(scale.latency)) as server:
        command = replace(_labeling(server, rows, scale), options=options)
        lost = [_killed(server, command, draw, asked // scale.kills) for _ in range(scale.kills)]
        ended = command.run()
        stats = server.settled()
    repeated = [requests for requests in lost if requests is not None]
    yield exactly("processes killed with `kill -9` while they worked", len(repeated), scale.kills)
    yield complete(read(command.out), labels, ended, "labeled in the end, each once")
    yield Finding(
        "store: records that can be read; `PRAGMA integrity_check`",
        f"{stored(command.store):,}; {(said := _integrity(command.store))}",
        f"{asked:,}; ok",
        stored(command.store) == asked and said == "ok",
    )
    yield at_most(
        "requests lost with one kill, at most", max(repeated, default=0), scale.concurrency
    )
    yield at_most(
        "requests lost with one kill, on average",
        (stats["calls"] - asked) / max(1, len(repeated)),
        scale.concurrency,
    )
    yield at_most(
        "of these, for a record that a good answer had been sent for, on average",
        stats["again"] / max(1, len(repeated)),
        scale.concurrency,
    )


def _killed(server: Server, command: Labeling, draw: random.Random, share: int) -> int | None:
    """Start, kill, and count the requests that brought no stored label; ``None`` if it ended.

    Args:
        server: whose requests are counted.
        command: what is started.
        draw: picks the moment.
        share: requests that one start may send without those after it running out of records.
    """
    sent, before = server.stats()["calls"], stored(command.store)
    enough = sent + draw.randint(1, max(1, share))
    process = command.start()
    wait_until(lambda: process.poll() is not None or server.stats()["calls"] >= enough)
    time.sleep(draw.random() * 0.05)
    process.kill()
    if process.wait() != -signal.SIGKILL:
        return None
    lost: int = server.settled()["calls"] - sent - (stored(command.store) - before)
    return lost


def stored(store: Path) -> int:
    """How many records a store holds; each is read and checked against its checksum."""
    if not (store / FILE).exists():
        return 0
    return sum(not isinstance(one, LabelFailure) for one in stored_outcomes(store))


def _integrity(store: Path) -> str:
    with closing(sqlite3.connect(store / FILE)) as database:
        return str(database.execute("PRAGMA integrity_check").fetchone()[0])


# -- budget ---------------------------------------------------------------------------------------


PRICE = "1,4"
"""US dollars per million tokens of prompts and of answers."""
_CAP = 1_000
"""Tokens that an answer may have."""
_PART = Decimal("0.37")


def budget(scale: Scale, folder: Path) -> Iterator[Finding]:
    """There is money for a part of the records."""
    count = scale.few
    rows = write_rows(folder / "rows.jsonl", records(count))
    with Server(Manner(scale.latency, count_tokens=True)) as server:
        expected, at_most_each = _expected(rows, server.url)
        cap = (expected * _PART).quantize(Decimal("0.0001"))
        command = _labeling(server, rows, scale)
        priced = ("--price", PRICE, "--max-output-tokens", _CAP)
        ended = command.run(*priced, "--budget", cap)
        first, spent = read(command.out), _spent(server.settled())
        again = command.run(*priced, "--budget", expected * 3)
        stats = server.settled()
    yield Finding(
        f"spent of ${cap} (37 % of the estimate), by the provider's own count",
        f"${spent:.4f}",
        "no more",
        spent <= cap,
    )
    # A request is sent if its worst case fits, so that about one worst case remains.
    least = 1 - Decimal("1.5") * at_most_each / cap
    yield at_least("part of it that was used", float(spent / cap) * 100, float(least) * 100, " %")
    left = count - len(first.labels)
    yield Finding(
        "records that remained, and ended with the reason `budget`",
        f"{left:,}, {first.reasons['budget']:,}, exit {ended.code}",
        "all, exit 4",
        0 < left == first.reasons["budget"] == len(first.ids) - len(first.labels)
        and len(first.ids) == count
        and ended.code == 4,  # noqa: PLR2004 - the documented code
    )
    yield complete(read(command.out), count, again, "run again with more money: labeled")
    yield exactly("run again with more money: paid twice", stats["paid"]["duplicates"], 0)


def _expected(rows: Path, url: str) -> tuple[Decimal, Decimal]:
    """What labeling would cost, as estimated, and what one record would at most."""
    estimate = labeler.estimate(
        rows,
        judge=labeler.OpenAIJudge(MODEL, api_key="none", base_url=url),
        store=rows.parent / "store",
        price=labeler.judges.find_price(MODEL, url, given=PRICE),
        max_output_tokens=_CAP,
    )
    if estimate.online is None or estimate.online.at_most is None:
        raise RuntimeError("the estimate has no price")
    return estimate.online.expected, estimate.online.at_most / estimate.rows.asked


def _spent(stats: dict[str, Any]) -> Decimal:
    prompt, completion = map(Decimal, PRICE.split(","))
    tokens: dict[str, int] = stats["tokens"]
    return (prompt * tokens["prompt"] + completion * tokens["completion"]) / 1_000_000


# -- two processes --------------------------------------------------------------------------------


def two(scale: Scale, folder: Path) -> Iterator[Finding]:
    """Two processes label the same rows into one store at the same time."""
    alone, pair = folder / "alone", folder / "pair"
    for place in (alone, pair):
        place.mkdir()
        write_rows(place / "rows.jsonl", records(scale.some))
    with Server(Manner(scale.latency)) as server:
        single = _labeling(server, alone / "rows.jsonl", scale).run()
    with Server(Manner(scale.latency)) as server:
        commands = [_labeling(server, pair / "rows.jsonl", scale, name) for name in ("one", "two")]
        began = time.perf_counter()
        processes = [command.start() for command in commands]
        ends = [
            command.end(process, began)
            for command, process in zip(commands, processes, strict=True)
        ]
        stats = server.settled()
    one, other = (read(command.out) for command in commands)
    yield exactly("labels paid twice", stats["paid"]["duplicates"], 0)
    yield exactly("requests", stats["calls"], scale.some)
    for file, ended, name in zip((one, other), ends, ("first", "second"), strict=True):
        yield complete(file, scale.some, ended, f"{name} process: labeled, each once")
    differing = sum(one.labels.get(id_) != label for id_, label in other.labels.items())
    yield exactly("labels in which the two files differ", differing, 0)
    yield Finding(
        "seconds of both, next to those of one process alone",
        f"{max(ended.seconds for ended in ends):.1f} and {single.seconds:.1f}",
        timing=True,
    )


# -- one large record -----------------------------------------------------------------------------


def large(scale: Scale, folder: Path) -> Iterator[Finding]:
    """One record is larger than what the limit lets through in a minute."""
    count, limit = scale.few, scale.tokens_per_minute
    rows = list(short_records(count))
    text = " ".join(str(row["documents"][0]) for row in records(1 + scale.large // 400))
    rows[count // 2]["documents"].append(text[: scale.large])
    path = write_rows(folder / "rows.jsonl", rows)
    with Server(Manner(scale.latency, count_tokens=True)) as server:
        command = _labeling(server, path, scale)
        ended = command.run("--tokens-per-minute", limit)
        stats = server.settled()
    used = sum(stats["tokens"].values())
    # A minute's worth is there at once; the rest has to flow in.
    least = max(0.0, used / limit - 1) * 60
    size = f"{scale.large / 1e6:g} MB among {count:,} at {limit:,} tokens/min"
    yield complete(read(command.out), count, ended, f"{size}: labeled, each once")
    yield at_most(
        f"{size}: seconds, next to {least:.0f} that {used:,} tokens take at that rate",
        ended.seconds,
        least * 1.1 + 10,
        " s",
        timing=True,
    )


# -- a bad key ------------------------------------------------------------------------------------


def key(scale: Scale, folder: Path) -> Iterator[Finding]:
    """The provider does not know the key."""
    rows = write_rows(folder / "rows.jsonl", short_records(scale.most))
    with Server(Manner(scale.latency, bad_key=True)) as server:
        ended = _labeling(server, rows, scale).run()
        sent = sum(server.settled()["routes"].values())
    yield exactly(f"{scale.most:,} rows: requests sent, of any kind", sent, 1)
    yield exactly(f"{scale.most:,} rows: exit code", ended.code, 2)
    yield Finding(f"{scale.most:,} rows: seconds until then", f"{ended.seconds:.1f}", timing=True)


# -- an outage ------------------------------------------------------------------------------------


def outage(scale: Scale, folder: Path) -> Iterator[Finding]:
    """The server answers 503 for some time in the middle of a run."""
    count = scale.some
    rows = write_rows(folder / "rows.jsonl", records(count))
    manner = Manner(scale.latency, down_at=count // 2, down_seconds=scale.outage)
    with Server(manner) as server:
        command = _labeling(server, rows, scale)
        ended = command.run()
        stats = server.settled()
    yield complete(read(command.out), count, ended, "labeled, each once")
    yield at_most(
        f"requests in the first 2 of {scale.outage:g} s",
        stats["at_once_in_outage"],
        2 * scale.concurrency,
    )
    later = stats["in_outage"] - stats["at_once_in_outage"]
    if scale.outage > 2:  # noqa: PLR2004 - the seconds above
        yield at_most(
            "requests a second in the rest of it", later / (scale.outage - 2), 1, timing=True
        )
    back = stats["back_after"]
    yield Finding(
        "seconds from its end to the next good answer",
        "none came" if back is None else f"{back:.1f}",
        timing=True,
    )
    yield exactly("labels paid twice", stats["paid"]["duplicates"], 0)


# -- faults of all kinds, and hostile input --------------------------------------------------------


_SHARE = 0.1
_TIMES_IDEAL = 2.0
_LATENCY_OF_JUDGES = 1.0
"""Seconds before an answer from which the judge is the bound, not this machine's processors."""


def mixed(scale: Scale, _: Path) -> Iterator[Finding]:
    """A tenth of all calls goes wrong; the package is called, in this process."""
    for latency, timeout in scale.mixed:
        work = Work(made_up(scale.some, scale.seed), scale.concurrency, timeout)
        began = time.process_time()
        run = label_run(work, Weather(_SHARE, scale.seed, latency))
        cpu = time.process_time() - began
        case = f"{latency:g} s before each answer, {scale.concurrency} in flight"
        ended = len(run.valid) + run.true_failures
        yield Finding(
            f"{case}: rows that end as a label or with the true reason",
            f"{len(run.valid):,} + {run.true_failures:,} of {scale.some:,}",
            "all",
            ended == scale.some and not run.unsaved,
        )
        yield exactly(f"{case}: requests after a good answer had come", run.asked_again or 0, 0)
        wall = at_most(
            f"{case}: wall time for {run.calls:,} calls, ideally {run.ideal_seconds:.1f} s",
            run.seconds,
            _TIMES_IDEAL * (run.ideal_seconds or 0),
            " s",
            timing=True,
        )
        if latency < _LATENCY_OF_JUDGES:
            wall = wall._replace(goal="none set: processors are the bound", met=None)
        yield wall
        each = 1_000 * cpu / scale.some
        yield Finding(f"{case}: CPU a record", f"{each:.1f} ms", timing=True)


def memory(_: Scale, __: Path) -> Iterator[Finding]:
    """Hostile files and answers are read."""
    return measure()


RUNS: dict[str, Callable[[Scale, Path], Iterator[Finding]]] = {
    "mixed": mixed,
    "memory": memory,
    "kills": kills,
    "kills-blind": kills_blind,
    "budget": budget,
    "two": two,
    "large": large,
    "key": key,
    "outage": outage,
}
"""Runs by the name that ``--only`` takes."""
