"""Measure labeling on Ray with one worker and with two.

Run it as ``PYTHONPATH=.venv/ray python benchmarks/ray_label.py --write docs/measured/scale.md``:
it measures
in a folder of its own that it removes, and writes its table between the markers of that page.
Without ``--write`` it prints the table. The server of the tests answers, on this machine.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

SERVER = Path(__file__).parents[1] / "scripts/serve_provider.py"
LATENCY = 0.5
CONCURRENCY = 64
_WORDS = (
    *("quay", "harbour", "tide", "crane", "vessel", "timber"),
    *("storm", "granite", "lock", "warden", "ledger", "cargo"),
)
_BEGIN, _END = "<!-- measured -->", "<!-- end of measured -->"


def write_rows(path: Path, rows: int, first: int = 0) -> None:
    """Rows of the size of RAGBench's: four documents of eight sentences, a response of five."""
    chance = random.Random(first)

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


@contextmanager
def provider() -> Iterator[str]:
    """The loopback server: its address."""
    with subprocess.Popen(
        [sys.executable, str(SERVER), "--latency", str(LATENCY)],
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdout is not None  # noqa: S101 - it is a pipe
        try:
            command = shlex.split(server.stdout.readline())
            yield command[command.index("--base-url") + 1]
        finally:
            server.terminate()


def seconds(folder: Path, *arguments: object) -> float:
    """Run labeler in a process of its own: the seconds by the clock."""
    begin = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "labeler", *map(str, arguments)],
        cwd=folder,
        env={**os.environ, "OPENAI_API_KEY": "sk-none"},
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return time.perf_counter() - begin


def size(folder: Path, pattern: str) -> int:
    """Bytes of the files in a folder."""
    return sum(file.stat().st_size for file in folder.glob(pattern) if file.is_file())


def on_ray(folder: Path, rows: int, workers: int) -> float:
    """Rows a second, without the start: the difference of a run of all rows and one of a fifth."""
    took = {}
    for name, count in (("few", rows // 5), ("all", rows)):
        out = f"{name}-{workers}"
        write_rows(folder / name / "rows.parquet", count)
        with provider() as url:
            judge = ("--judge", "openai", "--model", "m", "--base-url", url)
            limits = ("--concurrency", CONCURRENCY, "--store", f"store-{out}")
            ray = ("--engine", "ray", "--workers", workers, "-o", out)
            took[name] = seconds(folder, "label", name, *ray, *judge, *limits)
    return (rows - rows // 5) / (took["all"] - took["few"])


def table(folder: Path, rows: int) -> str:
    """Measure everything once."""
    one, two = (on_ray(folder, rows, workers) for workers in (1, 2))
    shards = folder / "store-all-1" / "shards"
    merging = seconds(folder, "store", "merge", shards, "--into", "merged")
    return f"""\
Measured with {rows:,} rows on {os.cpu_count()} processors ({platform.machine()}, Python \
{platform.python_version()}, Ray {version("ray")}), {CONCURRENCY} requests \
of {LATENCY} s in flight a worker:

| what | measured |
| --- | --- |
| one worker | {one:.0f} rows/s |
| two workers | {two:.0f} rows/s |
| bytes of a row in stores of shards, merged store, label files | \
{size(shards, "*/*") / rows:.0f}, {size(folder / "merged", "cache.db*") / rows:.0f}, \
{size(folder / "all-1", "*.parquet") / rows:.0f} |
| `labeler store merge` | {rows / merging:.0f} rows/s |"""


def main() -> None:
    """Measure, and print or write the table."""
    options = argparse.ArgumentParser(description=main.__doc__)
    options.add_argument("--rows", type=int, default=5_000)
    options.add_argument("--write", type=Path, help="page whose table is replaced")
    given = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="ray-label-") as folder:
        text = table(Path(folder), given.rows)
    if given.write is None:
        print(text)
        return
    page = given.write.read_text(encoding="utf-8")
    begin, end = page.index(_BEGIN) + len(_BEGIN), page.index(_END)
    given.write.write_text(f"{page[:begin]}\n{text}\n{page[end:]}", encoding="utf-8")


if __name__ == "__main__":
    main()
