"""Measure how much faster ``--processes 2`` labels than one process.

Run it as ``python benchmarks/processes.py --write docs/scale.md``: it writes its table between the
markers of that page. Each run is measured by the clock, which other work on the machine disturbs,
and by the processor time of all its processes. Two processes that share the work evenly,
each on a free processor, are faster by twice the ratio of the processor times: what they do besides
labeling is counted there. The server of the hosted model is a process of its own.
"""

from __future__ import annotations

import argparse
import re
import shutil
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from ray_label import LATENCY, Took, command, provider, write_rows

_BEGIN, _END = "<!-- processes -->", "<!-- end of processes -->"
_CONCURRENCY = 64
_EMBEDDED = ("--judge", "embedded", "--concurrency", _CONCURRENCY)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print, or write the table of a page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--write", type=Path, help="the page, such as docs/scale.md")
    given = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="processes-"))
    try:
        write_rows(folder / "rows.parquet", given.rows)
        text = table(given.rows, folder)
    finally:
        shutil.rmtree(folder)
    print(text)
    if given.write:
        page = given.write.read_text(encoding="utf-8")
        between = re.compile(f"(?<={_BEGIN}\n).*?(?={_END})", re.DOTALL)
        given.write.write_text(between.sub(lambda _: text, page), encoding="utf-8")
    return 0


def table(rows: int, folder: Path) -> str:
    """Measure, and return the table."""
    hosted = ["--judge", "openai", "--model", "m", "--concurrency", _CONCURRENCY]
    embedded = _both(folder, "embedded", _EMBEDDED)
    apart = 2 * embedded[0].seconds / _at_once(folder)
    with provider() as url:
        lines = [
            line(f"embedded, {_CONCURRENCY} at once", rows, embedded),
            line(
                f"hosted model, {_CONCURRENCY} in flight, answers after {LATENCY:g} s",
                rows,
                _both(folder, "hosted", [*hosted, "--base-url", url]),
            ),
        ]
    head = "| judge | rows/s, 1 process | 2 processes | times, by the clock | on free processors |"
    said = (
        f"\nTwo runs of one process each, at once and with nothing in common, were {apart:.2f} "
        "times as fast\nas one after the other (embedded).\n"
    )
    return "\n".join([f"{rows:,} rows:\n", head, "| --- | --: | --: | --: | --: |", *lines, said])


def _at_once(folder: Path) -> float:
    """Return the seconds of two runs with the embedded judge at once."""
    begin = time.perf_counter()
    with ThreadPoolExecutor() as threads:
        list(threads.map(partial(_labeled_alone, folder), ("left", "right")))
    return time.perf_counter() - begin


def _labeled_alone(folder: Path, name: str) -> None:
    command(folder, "label", "rows.parquet", "-o", f"{name}.jsonl", "--store", name, *_EMBEDDED)


def line(judge: str, rows: int, took: Sequence[Took]) -> str:
    """Return a line of the table, of runs in one process and in two."""
    one, two = took
    return (
        f"| {judge} | {rows / one.seconds:.0f} | {rows / two.seconds:.0f} "
        f"| {one.seconds / two.seconds:.2f} | {2 * one.cpu / two.cpu:.2f} |"
    )


def _both(folder: Path, name: str, judge: Sequence[object]) -> list[Took]:
    return [
        command(
            folder,
            *("label", "rows.parquet", "-o", f"{name}-{count}.jsonl", *judge),
            *("--store", f"{name}-{count}", "--processes", count),
        )
        for count in (1, 2)
    ]


if __name__ == "__main__":
    raise SystemExit(main())
