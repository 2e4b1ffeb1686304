"""Measure the time to label a row on one worker and on several, and extrapolate.

Run it as ``python benchmarks/ray_label.py --write docs/scale.md``, with ``.[dev,ray]`` installed:
it measures, in a folder of its own that it removes, and writes its tables between the markers of
that page. Without ``--write`` it prints them. It takes some minutes. The server is that of the
tests, on this machine: it answers after a fixed time, so that what is measured is the worker.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from labeler.integrations.ray.run import plan, run
from labeler.integrations.ray.worker import Work
from labeler.judges.embedded.judge import EmbeddedJudge
from labeler.labeling.options import LabelOptions

TESTS = Path(__file__).parents[1] / "tests"
LATENCY = 0.5
CONCURRENCY = 64
HUNDRED_MILLION = 100_000_000
SERVER_SECONDS = 3.0
"""Seconds that a hosted model takes for one record: an assumption of the table."""
PRICE = (0.25, 2.0)
"""US dollars for a million tokens, prompt and answer: an assumption, that of a small model."""
MACHINES = 10
_WORDS = (
    *("quay", "harbour", "tide", "crane", "vessel", "timber"),
    *("storm", "granite", "lock", "warden", "ledger", "cargo"),
)
_BEGIN, _END = "<!-- measured -->", "<!-- end of measured -->"


@dataclass(frozen=True)
class Took:
    """What a command took."""

    seconds: float
    cpu: float
    said: str


@dataclass(frozen=True)
class Figures:
    """What was measured; bytes and tokens a row."""

    embedded: dict[int, float]
    """Rows a second on Ray, by the number of workers."""
    hosted: float
    hosted_cpu: float
    """Seconds of a processor for a row of a hosted model."""
    prompt: float
    completion: float
    shard: float
    store: float
    partition: float
    merge: float
    """Rows a second."""


def write_rows(path: Path, rows: int, first: int = 0) -> None:
    """Rows of the size of RAGBench's: four documents of eight sentences, a response of five."""
    chance = random.Random(first)  # noqa: S311 - no secret

    def sentence() -> str:
        return " ".join(chance.choice(_WORDS) for _ in range(14)).capitalize() + "."

    numbers = range(first, first + rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table(
        {
            "id": [f"r{number}" for number in numbers],
            "question": [f"What of {number}? {sentence()}" for number in numbers],
            "documents": [
                [" ".join(sentence() for _ in range(8)) for _ in range(4)] for _ in numbers
            ],
            "response": [" ".join(sentence() for _ in range(5)) for _ in numbers],
        }
    )
    pq.write_table(table, path, row_group_size=250)


def command(folder: Path, *arguments: object) -> Took:
    """Run labeler in a process of its own."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.perf_counter()
    process = subprocess.Popen(  # noqa: S603 - ours
        [sys.executable, "-m", "labeler", *map(str, arguments)],
        cwd=folder,
        env={**os.environ, "OPENAI_API_KEY": "sk-none", "RAY_USAGE_STATS_ENABLED": "0"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None  # noqa: S101 - it is a pipe
    said = process.stderr.read()
    process.stderr.close()
    process.wait()
    seconds = time.perf_counter() - begin
    if process.returncode:
        raise SystemExit(f"labeler {arguments} failed: {said}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Took(seconds, cpu, said)


@contextmanager
def provider() -> Iterator[str]:
    """The loopback server: its address."""
    with subprocess.Popen(  # noqa: S603 - ours
        [sys.executable, "-m", "wire.provider", "--latency", str(LATENCY), "--count-tokens"],
        cwd=TESTS,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdout is not None  # noqa: S101 - it is a pipe
        try:
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


def size(folder: Path, pattern: str = "**/*") -> int:
    """Bytes of the files in a folder."""
    return sum(file.stat().st_size for file in folder.glob(pattern) if file.is_file())


def on_ray_by(folder: Path, rows: int, workers: int) -> float:
    """Rows a second that the embedded judge does, from when each worker has done its first part."""
    from labeler.integrations.ray.cluster import label_on_ray  # noqa: PLC0415 - Ray reads the environment first

    work = Work(
        EmbeddedJudge,
        str(folder / f"out-{workers}"),
        LabelOptions(store=folder / f"store-{workers}"),
    )
    times, done = [], []
    for report in run(plan([str(folder / "in")], work), work, label_on_ray, workers):
        times.append(time.perf_counter())
        done.append(report.rows)
    if sum(done) != rows:
        raise SystemExit(f"{sum(done)} of {rows} rows were labeled")
    return sum(done[workers:]) / (times[-1] - times[workers - 1])


def measure(folder: Path, rows: int) -> Figures:
    """Measure everything once."""
    write_rows(folder / "in" / "rows.parquet", rows)
    write_rows(folder / "few" / "rows.parquet", rows // 10)
    embedded = {workers: on_ray_by(folder, rows, workers) for workers in (1, 2)}
    begin = ("label", "--engine", "ray", "--workers", 1, "--judge", "openai", "--model", "m")
    with provider() as url:
        options = ("--base-url", url, "--concurrency", CONCURRENCY, "--input", "in", "-o", "out")
        asked = command(folder, *begin, *options, "--store", "store")
    spent = re.search(r"; (\d+) prompt tokens .*?; (\d+) completion tokens", asked.said)
    if spent is None:
        raise SystemExit(f"no tokens in: {asked.said}")
    alone, few = hosted_alone(folder, "in"), hosted_alone(folder, "few")
    shards = folder / "store" / "shards"
    merged = command(folder, "store", "merge", shards, "--into", "merged")
    starting = command(folder, "schema").seconds
    return Figures(
        embedded,
        (rows - rows // 10) / (alone.seconds - few.seconds),
        (alone.cpu - few.cpu) / (rows - rows // 10),
        int(spent[1]) / rows,
        int(spent[2]) / rows,
        size(shards) / rows,
        size(folder / "merged", "cache.db*") / rows,
        size(folder / "out", "*.parquet") / rows,
        rows / (merged.seconds - starting),
    )


def hosted_alone(folder: Path, rows: str) -> Took:
    """One worker with the loopback server, without Ray."""
    with provider() as url:
        options = ("--base-url", url, "--concurrency", CONCURRENCY, "--store", f"alone-{rows}")
        judge = ("--judge", "openai", "--model", "m")
        output = ("-o", f"alone-{rows}.parquet")
        return command(folder, "label", f"{rows}/rows.parquet", *judge, *options, *output)


def tables(found: Figures, rows: int) -> str:
    """The tables of the page."""
    return "\n".join([*_measured(found, rows), "", *_reckoned(found)])


def _measured(found: Figures, rows: int) -> list[str]:
    each = found.embedded[2] / found.embedded[1]
    return [
        (
            f"Measured with {rows:,} rows on {os.cpu_count()} processors ({platform.machine()}, "
            f"Python {platform.python_version()}, Ray {version('ray')}):"
        ),
        "",
        "| what | measured |",
        "| --- | --- |",
        f"| embedded, one worker | {found.embedded[1]:.0f} rows/s |",
        f"| embedded, two workers | {found.embedded[2]:.0f} rows/s, {each:.2f} times |",
        (
            f"| hosted model, one worker, {CONCURRENCY} in flight, answers after {LATENCY} s | "
            f"{found.hosted:.0f} rows/s; {1000 * found.hosted_cpu:.1f} ms of a processor a row |"
        ),
        (
            f"| tokens of a row, profile trace | {found.prompt:.0f} prompt, {found.completion:.0f} "
            "answer |"
        ),
        (
            "| bytes of a row: stores of parts, merged store, partitions | "
            f"{found.shard:.0f}, {found.store:.0f}, {found.partition:.0f} |"
        ),
        f"| `labeler store merge` | {found.merge:.0f} rows/s |",
    ]


def _reckoned(found: Figures) -> list[str]:
    n = HUNDRED_MILLION
    dollars = n * (found.prompt * PRICE[0] + found.completion * PRICE[1]) / 1e6
    most = 1 / found.hosted_cpu
    workers = MACHINES * 16
    rate = min(workers * most, workers * CONCURRENCY / SERVER_SECONDS)
    tokens = rate * 60 * (found.prompt + found.completion) / 1e6

    def terabytes(each: float) -> str:
        return f"{n:,} * {each:.0f} B = {n * each / 1e12:.2f} TB"

    return [
        (
            f"100 million rows, reckoned from that; a model that takes {SERVER_SECONDS:g} s "
            f"an answer, at ${PRICE[0]} and ${PRICE[1]} a million tokens, {MACHINES} machines of "
            "16 processors:"
        ),
        "",
        "| what | arithmetic |",
        "| --- | --- |",
        f"| calls | {n:,}, one a row |",
        (
            f"| dollars | {n:,} * ({found.prompt:.0f} * {PRICE[0]} + {found.completion:.0f} * "
            f"{PRICE[1]}) / 10⁶ = ${dollars:,.0f}; half of it in batches |"
        ),
        (
            f"| rows a second that the workers can ask | the least of {workers} / "
            f"{found.hosted_cpu:.4f} s = {workers * most:.0f} and {workers} * {CONCURRENCY} / "
            f"{SERVER_SECONDS:g} s = {workers * CONCURRENCY / SERVER_SECONDS:.0f} |"
        ),
        (
            f"| hours, where the provider allows that | {n:,} / {rate:.0f} / 3600 = "
            f"{n / rate / 3600:.1f} h, at {tokens:.0f} million tokens a minute |"
        ),
        (
            f"| hours, at 10 million tokens a minute | {n:,} * "
            f"{found.prompt + found.completion:.0f} / 10⁷ / 60 = "
            f"{n * (found.prompt + found.completion) / 1e7 / 60:.0f} h |"
        ),
        (
            f"| hours of embedded | {n:,} / ({workers} * {found.embedded[1]:.0f}) / 3600 "
            f"= {n / (workers * found.embedded[1]) / 3600:.1f} h |"
        ),
        f"| stores of parts | {terabytes(found.shard)} |",
        (
            f"| one merged store | {terabytes(found.store)}; {n:,} / {found.merge:.0f} / 3600 = "
            f"{n / found.merge / 3600:.0f} h to merge |"
        ),
        f"| partitions | {terabytes(found.partition)} in {n // 5000:,} files |",
    ]


def main() -> None:
    """Measure, and print or write the tables."""
    options = argparse.ArgumentParser(description=main.__doc__)
    options.add_argument("--rows", type=int, default=10_000)
    options.add_argument("--write", type=Path, help="page whose tables are replaced")
    given = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="ray-label-") as folder:
        text = tables(measure(Path(folder), given.rows), given.rows)
    if given.write is None:
        print(text)
        return
    page = given.write.read_text(encoding="utf-8")
    begin, end = page.index(_BEGIN) + len(_BEGIN), page.index(_END)
    given.write.write_text(f"{page[:begin]}\n{text}\n{page[end:]}", encoding="utf-8")


if __name__ == "__main__":
    main()
