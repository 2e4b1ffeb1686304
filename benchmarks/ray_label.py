"""Measure labeling on Ray with one worker and with two.

    PYTHONPATH=.venv/ray python benchmarks/ray_label.py [--rows N] [--write docs/measured/scale.md]

It measures in a folder of its own that it removes. A server of the tests answers, on loopback.
"""

from __future__ import annotations

import os
import platform
import tempfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from harness import options, publish, spent, table
from reliability_serving import Manner, Server
from speed_labels import rows_like_ragbench

LATENCY = 0.5
CONCURRENCY = 64


def size(folder: Path, pattern: str) -> int:
    """Bytes of the files in a folder."""
    return sum(file.stat().st_size for file in folder.glob(pattern) if file.is_file())


def on_ray(folder: Path, rows: int, workers: int) -> float:
    """Rows a second, without the start: the difference of a run of all rows and one of a fifth."""
    took = {}
    for name, count in (("few", rows // 5), ("all", rows)):
        out, source = f"{name}-{workers}", folder / name
        source.mkdir(exist_ok=True)
        made = pa.Table.from_pylist(list(rows_like_ragbench(count)))
        pq.write_table(made, source / "rows.parquet", row_group_size=250)
        with Server(Manner(LATENCY)) as server:
            judge = ("--judge", "openai", "--model", "m", "--base-url", server.url)
            limits = ("--concurrency", CONCURRENCY, "--store", f"store-{out}")
            ray = ("--engine", "ray", "--workers", workers, "-o", out)
            env = {**os.environ, "OPENAI_API_KEY": "sk-none"}
            took[name] = spent("labeler", "label", name, *ray, *judge, *limits, cwd=folder, env=env)
    return (rows - rows // 5) / (took["all"].seconds - took["few"].seconds)


def measured(folder: Path, rows: int) -> Iterator[str]:
    """Measure everything once."""
    one, two = (on_ray(folder, rows, workers) for workers in (1, 2))
    shards = folder / "store-all-1" / "shards"
    merging = spent("labeler", "store", "merge", shards, "--into", "merged", cwd=folder).seconds
    sizes = [size(shards, "*/*"), size(folder / "merged", "cache.db*")]
    sizes.append(size(folder / "all-1", "*.parquet"))
    yield (
        f"Measured with {rows:,} rows on {os.cpu_count()} processors ({platform.machine()}, Python "
        f"{platform.python_version()}, Ray {version('ray')}), {CONCURRENCY} requests of "
        f"{LATENCY} s in flight a worker:\n"
    )
    stores = "bytes of a row in stores of shards, merged store, label files"
    lines = [
        ("one worker", f"{one:.0f} rows/s"),
        ("two workers", f"{two:.0f} rows/s"),
        (stores, ", ".join(f"{each / rows:.0f}" for each in sizes)),
        ("`labeler store merge`", f"{rows / merging:.0f} rows/s"),
    ]
    yield from table(["what", "measured"], lines, left=2)


def main() -> None:
    """Measure, print and write the table."""
    parser = options(__doc__)
    parser.add_argument("--rows", type=int, default=5_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ray-label-") as folder:
        publish(given.write, "measured", measured(Path(folder), given.rows))


if __name__ == "__main__":
    main()
