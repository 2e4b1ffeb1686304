"""Measure how fast rows are labeled and numbers are recomputed: docs/measured/speed.md.

    python benchmarks/speed.py [--only NAME] [--rows N] [--write docs/measured/speed.md]

- ``labels``: numbers of stored labels, next to decoders and SQLite; splitters and start-up. Labels
  are synthetic, in the shape of RAGBench's rows (``speed_labels.py``). 2 GB, 20 minutes.
- ``numbers``: ``labeler metrics`` on a numbers file of ten times as many records.
- ``reruns``: runs over stored labels; a function that costs nothing labels. 3 GB, ten minutes.
- ``rows``: memory that read rows leave. ``hosted``: memory of runs with a hosted model.
- ``votes``: an ensemble next to one run with as many judge calls, 0.2 s each.
- ``calls``: a call to a hosted model next to the bare openai client (``calls.py``).

Each step is a process of its own (``speed_tasks.py``). Steps that are compared take turns; figures
are medians. Ratios within one run hold on other machines too.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import statistics
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

import calls
import labeler
from harness import (
    ROOT,
    Finding,
    ServerProcess,
    at_least,
    at_most,
    day,
    findings_table,
    options,
    publish,
    spent,
    table,
    write_rows,
)
from labeler.calculators.export import write_numbers
from labeler.calculators.outcomes import checked_outcomes, measure_outcomes
from labeler.judges.embedded import EmbeddedJudge
from labeler.judges.task import JudgeReply, Task
from labeler.sentences.splitting import SPLITTERS
from peers.records import made_up
from speed_labels import ragbench_shapes, rows_like_ragbench, write_labels
from speed_plot import Points, plot, slope_of

TASKS = ROOT / "benchmarks" / "speed_tasks.py"
_TABLES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
GOALS: Mapping[str, float] = _TABLES["goals"]
DECODERS: Mapping[str, str] = _TABLES["decoders"]
SCANS: Mapping[str, str] = _TABLES["scans"]
_TYPER = """
import typer
app = typer.Typer(add_completion=False, rich_markup_mode=None)
@app.command()
def one(name: str = ""): print("hello")
@app.command()
def two(name: str = ""): print("hello")
app()
"""


class Run(NamedTuple):
    """What one step took.

    Attributes:
        cpu: processor time; of a task, without the loading of the program.
        megabytes: of memory at most.
        counted: what the task counted.
    """

    cpu: float
    megabytes: float
    counted: float = 0


def task(name: str, *arguments: object) -> Run:
    """Run a task once."""
    printed = spent(sys.executable, TASKS, name, *arguments, keep=True, env=_environment()).printed
    return Run(**json.loads(printed.splitlines()[-1]))


def command(*words: object) -> Run:
    """Run a whole command once."""
    took = spent(*words, env=_environment())
    return Run(took.cpu, took.megabytes)


def _environment() -> dict[str, str]:
    # Where byte code may not be kept, every start would compile the program again.
    return {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}


def in_turn(steps: Mapping[str, Callable[[], Run]], rounds: int) -> dict[str, Run]:
    """Run steps in turn, so that all see the same load, and return their medians."""
    runs = [[once() for once in steps.values()] for _ in range(rounds)]
    medians = {
        name: Run(*map(statistics.median, zip(*own, strict=True)))
        for name, own in zip(steps, zip(*runs, strict=True), strict=True)
    }
    for name, run in medians.items():
        print(f"{name}: {run.cpu:.2f} s of a processor, {run.megabytes:.0f} MB", file=sys.stderr)
    return medians


# -- labels ----------------------------------------------------------------------------------------


def labels(folder: Path, rows: int, rounds: int) -> Iterator[str]:
    """Recompute numbers of stored labels; a plot of the growth is written next to the page."""
    files = {size: folder / f"{size}.jsonl" for size in (rows // 100, rows // 10, rows)}
    for size, path in files.items():
        write_labels(path, size)
    path, store = files[rows], folder / "store"
    task("fill_store", store, path, rows)
    sums = {f"label file of {n:,}": partial(task, "summarize", p) for n, p in files.items()}
    found = in_turn(sums | {"store": partial(task, "summarize", store)}, rounds)
    found |= in_turn({name: partial(task, name, path) for name in DECODERS}, rounds)
    found |= in_turn({name: partial(task, name, store) for name in SCANS}, rounds)
    metrics = partial(command, "labeler", "metrics", path)
    found |= in_turn({"whole": metrics, "plain": partial(metrics, "--no-intervals")}, rounds)
    names = [*sums]
    growth = {
        "seconds": [(n, found[name].cpu) for n, name in zip(files, names, strict=True)],
        "GB of memory": [
            (n, found[name].megabytes / 1e3) for n, name in zip(files, names, strict=True)
        ],
    }
    (folder / "growth.svg").write_text(plot(growth), encoding="utf-8")
    speeds = splitting(rows, rounds)
    starts = starting(folder, files[rows // 100], rounds)
    megabytes = path.stat().st_size / 1e6
    yield _circumstances(rounds, rows, megabytes)
    yield ""
    yield from findings_table(label_goals(growth, found, speeds, starts))
    yield "\n![Growth of recomputing](speed.svg)\n"
    heads = ["µs of a processor a label", "MB of memory"]

    def cost(run: Run, count: float) -> list[str]:
        return [f"{1e6 * run.cpu / count:.0f}", f"{run.megabytes:.0f}"]

    summed = ([name, *cost(found[name], found[name].counted)] for name in [*names, "store"])
    yield from table(["default metrics", *heads], summed)
    yield ""
    decoded = ([text, *cost(found[name], rows)] for name, text in DECODERS.items())
    yield from table([f"{rows:,} labels of a file", *heads], decoded)
    yield ""
    raw, columns = found["scan_raw"], found["scan_columns"]
    scanned = (
        [
            text,
            f"{raw.counted / 1e6 / run.cpu:,.0f}",
            f"{raw.cpu / run.cpu:.2f}",
            f"{columns.cpu / run.cpu:.2f}",
        ]
        for name, text in SCANS.items()
        for run in [found[name]]
    )
    sizes = ["MB/s", "of SQLite, values", "of SQLite, columns"]
    yield from table([f"store of {found['store'].counted:,.0f} labels", *sizes], scanned)
    yield ""
    yield from table(
        ["start-up", "ms of processor"], ([k, f"{1e3 * v.cpu:,.0f}"] for k, v in starts.items())
    )
    yield ""
    lines = [[f"`{SPLITTERS['general']}`", *(f"{speed:.1f}" for speed in speeds.values())]]
    yield from table(
        ["splitter, MB/s", "documents", "one line of 1 MB", "one line of 10 MB"], lines
    )


def splitting(rows: int, rounds: int) -> dict[int, float]:
    """Return megabytes a second by the size of a line; 0 for documents as they are."""
    scale = min(1, rows / 10**5)
    sizes = {n: partial(task, "split", int(n * scale)) for n in (0, 10**6, 10**7)}
    found = in_turn({str(n): once for n, once in sizes.items()}, rounds)
    return {int(n): run.counted / 1e6 / run.cpu for n, run in found.items()}


def starting(folder: Path, path: Path, rounds: int) -> dict[str, Run]:
    """Start commands, a bare typer program first."""
    few, bare = folder / "few.jsonl", folder / "bare.py"
    with path.open("rb") as source:
        few.write_bytes(b"".join(source.readline() for _ in range(10)))
    bare.write_text(_TYPER, encoding="utf-8")
    metrics = partial(command, "labeler", "metrics", few)
    commands = {
        "bare typer program": partial(command, sys.executable, bare, "one"),
        "labeler --help": partial(command, "labeler", "--help"),
        "labeler metrics, 10 labels": metrics,
        "labeler metrics, 10 labels, no intervals": partial(metrics, "--no-intervals"),
    }
    return in_turn(commands, 3 * rounds)


def label_goals(
    growth: Mapping[str, Points],
    found: Mapping[str, Run],
    speeds: Mapping[int, float],
    starts: Mapping[str, Run],
) -> Iterator[Finding]:
    """Yield what was to be reached, and what was."""
    seconds, memory = growth.values()
    each, most, rows = (
        "µs of a processor a label",
        GOALS["µs of a processor a label"],
        seconds[-1][0],
    )
    drawn, plain = found["whole"], found["plain"]
    yield at_most(f"labeler metrics, whole command, {each}", 1e6 * drawn.cpu / rows, most)
    yield at_most(f"the same without intervals, {each}", 1e6 * plain.cpu / rows, most)
    yield at_most("memory of the command", drawn.megabytes, GOALS["megabytes"], " MB")
    yield at_most("slope of time by labels", slope_of(seconds), GOALS["linear"])
    yield at_most("slope of memory by labels: flat", slope_of(memory), GOALS["flat"])
    for what, scan, to in (
        ("scan of a store, to SQLite alone", "scan_rows", "scan_raw"),
        ("the same with checksums", "scan_checksums", "scan_raw"),
        ("… to SQLite and all columns", "scan_checksums", "scan_columns"),
    ):
        yield at_least(what, found[to].cpu / found[scan].cpu, GOALS["scan to SQLite"])
    what = f"splitter `{SPLITTERS['general']}`, documents, one core"
    yield at_least(what, speeds[0], GOALS["MB/s of a splitter"], " MB/s")
    line = [(size, size / speed) for size, speed in speeds.items() if size]
    what = "slope of its time, one line of 1 MB and of 10 MB"
    yield at_most(what, slope_of(line), GOALS["linear"])
    bare, *others = starts.items()
    for name, run in others:
        what = f"{name}, to a bare typer program"
        yield at_most(what, run.cpu / bare[1].cpu, GOALS["start to a bare typer program"])


def _circumstances(rounds: int, rows: int, megabytes: float) -> str:
    packages = ", ".join(f"{n} {version(n)}" for n in ("numpy", "pyarrow", "msgspec", "pydantic"))
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    cores = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    shapes = "those of real RAGBench rows, drawn at random" if ragbench_shapes() else "made up"
    return (
        f"{day()}; {platform.machine()}, {len(cores)} cores of {cores[0] if cores else 'unknown'}; "
        f"Python {platform.python_version()}, {packages}. Medians of {rounds} processes, of "
        f"start-ups {3 * rounds}, in turn; rates are by the processor time of the task alone. "
        f"{rows:,} synthetic labels, {megabytes:,.0f} MB of JSON; their shapes: {shapes}."
    )


# -- numbers, reruns, rows, hosted, votes ----------------------------------------------------------

MEASURED, REPEATS = 4000, 6
"""Rows that are measured, and their repetitions in a row group, as large as the command's."""


def numbers(folder: Path, rows: int, _: int) -> Iterator[str]:
    """Read a numbers file: measured rows, again and again as rows of their own."""
    own, some, path = (folder / name for name in ("l.jsonl", "some.parquet", "numbers.parquet"))
    count = 10 * rows
    write_labels(own, min(MEASURED, rows))
    write_numbers(measure_outcomes(checked_outcomes(own), facts=True), {}, some)
    parts = pa.concat_tables([pq.read_table(some)] * REPEATS)
    with pq.ParquetWriter(path, parts.schema, compression="zstd") as writer:
        for start in range(0, count, parts.num_rows):
            part = parts.slice(0, count - start)
            places = range(start, start + part.num_rows)
            keys: list[object] = [f"{number + 1:016x}" for number in places]
            columns: dict[str, list[object]] = {
                "id": [f"row-{number}" for number in places],
                "position": list(places),
                **dict.fromkeys(("key", "question_group"), keys),
            }
            for name, cells in columns.items():
                place = parts.column_names.index(name)
                part = part.set_column(place, parts.schema.field(name), pa.array(cells))
            writer.write_table(part)
    most, found = GOALS["seconds of a numbers file"], []
    for more in ([], ["--by", "subset"]):
        took = spent("labeler", "metrics", path, *more)
        what = f"{' '.join(['labeler metrics', *more])}, {count:,} records, {day()}: seconds"
        found.append(at_most(what, took.seconds, most))
        found.append(Finding("… seconds of a processor", f"{took.cpu:.1f}", timing=True))
        found.append(Finding("… megabytes", f"{took.megabytes:.0f}"))
    return findings_table(found)


def reruns(folder: Path, count: int, _: int) -> Iterator[str]:
    """Label rows, then again, then with a tenth of them new."""
    new, few = max(1, count // 10), max(10, count // 20)
    rows = write_rows(folder / "rows.jsonl", rows_like_ragbench(count))
    other = write_rows(folder / "other.jsonl", rows_like_ragbench(count, changed=new))
    some = write_rows(folder / "some.jsonl", rows_like_ragbench(few))
    store, first, again, out = (folder / name for name in ("store", "first", "again", "out"))
    steps: dict[str, tuple[int, Sequence[object]]] = {
        "labeling": (count, ("label", rows, store, first)),
        "the same again": (count, ("label", rows, store, again)),
        "with a tenth of the rows new": (count, ("label", other, store, out)),
        "reading the rows, copying the labels": (count, ("copy", rows, first, out)),
        "labeling fewer": (few, ("label", some, folder / "few", out)),
    }
    runs = {name: command(sys.executable, TASKS, *step) for name, (_, step) in steps.items()}
    if first.read_bytes() != again.read_bytes():
        raise SystemExit("the rerun wrote other bytes")
    bought, rerun, mixed = (run.cpu / count for run in list(runs.values())[:3])
    ratio = (mixed - rerun * (count - new) / count) / (bought * new / count)
    memory = max(run.megabytes for run in runs.values())
    what = f"rerun of {count:,} rows, {day()}, ms of a processor a row"
    yield from findings_table(
        [
            at_most(what, 1e3 * rerun, GOALS["ms of a rerun a row"]),
            at_most(
                "a new row among nine known ones, to one of the first run",
                ratio,
                GOALS["a new row to one of a first run"],
            ),
            at_most("memory of these runs", memory, GOALS["megabytes"], " MB"),
        ]
    )
    yield ""
    lines = (
        [name, f"{n:,}", f"{1e3 * runs[name].cpu / n:.3f}", f"{runs[name].megabytes:.0f}"]
        for name, (n, _) in steps.items()
    )
    yield from table(["", "rows", "ms of a processor a row", "MB of memory"], lines)


def read(_: Path, rows: int, __: int) -> Iterator[str]:
    """Read short rows; the bytes of memory that each leaves."""
    found = task("read_rows", 10 * rows)
    what = f"reading {10 * rows:,} short rows, {day()}, bytes of memory a row"
    return findings_table([at_most(what, found.counted, GOALS["bytes of a read row"])])


def hosted(folder: Path, rows: int, _: int) -> Iterator[str]:
    """Label by a model on this machine: the server is another process than ``labeler label``."""
    found = []
    for count in (rows // 50, rows // 5):
        path = write_rows(folder / f"hosted-{count}.jsonl", rows_like_ragbench(count))
        with ServerProcess("peers.server", "--share", 0, "--latency", 0.05) as server:
            used = ("--model", "model", "--base-url", server.url, "--concurrency", 64)
            places = ("--store", folder / f"hosted-{count}", "--output", folder / "out")
            keyed = {**os.environ, "OPENAI_API_KEY": "none"}
            took = spent("labeler", "label", path, *used, *places, env=keyed, stderr=-3)
        what = f"`labeler label`, a hosted model, {count:,} rows, 64 in flight, {day()}"
        found.append(at_most(what, took.megabytes, GOALS["megabytes"], " MB"))
    return findings_table(found)


class SlowJudge(EmbeddedJudge):
    """The embedded judge behind a slow line."""

    async def label(self, task: Task) -> JudgeReply:
        """Answer after a fifth of a second."""
        await asyncio.sleep(0.2)
        return await super().label(task)


def votes(_: Path, __: int, rounds: int) -> Iterator[str]:
    """Label 160 rows once, and 32 rows by five votes."""

    def seconds(count: int, repeat: int) -> float:
        rows, store = made_up(count), labeler.MemoryStore()
        how: dict[str, Any] = {"judge": SlowJudge(), "repeat": repeat, "concurrency": 64}
        began = time.perf_counter()
        if sum(1 for _ in labeler.iter_labels(rows, store=store, **how)) != count:
            raise SystemExit("the run lost rows")
        return time.perf_counter() - began

    seconds(1, 1)  # loads modules
    once, voted = (min(seconds(*how) for _ in range(rounds)) for how in ((160, 1), (32, 5)))
    what = f"32 rows, 5 votes each, {day()}: {voted:.2f} s, to 160 rows once: {once:.2f} s"
    return findings_table([at_most(what, voted / once, GOALS["votes to one run"])])


PARTS: Mapping[str, Callable[[Path, int, int], Iterator[str]]] = {
    "labels": labels,
    "numbers": numbers,
    "reruns": reruns,
    "hosted": hosted,
    "rows": read,
    "votes": votes,
    "calls": calls.measure,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write."""
    parser = options(__doc__)
    parser.add_argument("--only", choices=list(PARTS))
    parser.add_argument("--rows", type=int, default=100_000, help="labels or rows to make")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each measurement")
    parser.add_argument("--folder", type=Path, help="where there is room")
    given = parser.parse_args(arguments)
    for name in [given.only] if given.only else PARTS:
        with tempfile.TemporaryDirectory(prefix="speed-", dir=given.folder) as folder:
            page = None if name == "numbers" else given.write  # its figures stand on no page
            publish(page, name, PARTS[name](Path(folder), given.rows, given.rounds))
            if given.write and name == "labels":
                plotted = Path(folder, "growth.svg").read_text(encoding="utf-8")
                given.write.with_suffix(".svg").write_text(plotted, encoding="utf-8")


if __name__ == "__main__":
    main()
