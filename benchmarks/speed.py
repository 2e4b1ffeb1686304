"""Measure how fast numbers are recomputed from stored labels, next to disk and decoders.

Run it as ``python benchmarks/speed.py --write docs/speed.md``. It makes a million synthetic
labels in the shape of RAGBench (see ``speed_labels.py``), measures every step in a process of
its own (``speed_tasks.py``), takes the median of several runs, and prints ratios within this
one run: these hold on other machines too. It needs about 14 GB in a folder of its own, which it
removes, and about an hour. ``--rows`` takes fewer labels.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from labeler.sentences.splitting import SPLITTERS
from speed_labels import STATED, ragbench_shapes, write_labels
from speed_page import (
    BARE,
    BUILDING,
    BYTES,
    CACHE,
    COMMAND,
    COMMAND_DRAWN,
    DECODERS,
    DISK,
    FEW,
    FEW_PLAIN,
    FLOOR,
    HELP,
    INDEX,
    OF,
    SCANS,
    STREAM_OF,
    WITH_INTERVALS,
    Figures,
    Run,
    growths,
    page,
)
from speed_plot import plot
from speed_reruns import measure as measure_reruns
from speed_reruns import part_of, written_into

TASKS = Path(__file__).with_name("speed_tasks.py")
STREAMED = 100_000
"""Labels of a file that is read line by line, and of the store: rates do not hang on how many."""


def run(task: str, *arguments: object) -> Run:
    """Run a task once."""
    begin = time.perf_counter()
    done = _process([sys.executable, str(TASKS), task, *map(str, arguments)])
    seconds = time.perf_counter() - begin
    facts = json.loads(done.splitlines()[-1])
    return Run(seconds, facts["processor"], facts["megabytes"], facts["count"])


def _environment() -> dict[str, str]:
    # Where byte code may not be kept, every start would compile the program again.
    return {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}


def _process(command: Sequence[str]) -> str:
    done = subprocess.run(  # noqa: S603 - our own
        command, capture_output=True, text=True, check=False, env=_environment()
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}:\n{done.stderr}")
    return done.stdout


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and write the page."""
    given = _arguments(arguments)
    folder = Path(tempfile.mkdtemp(prefix="speed-", dir=given.folder))
    try:
        figures, text = _measured(folder, given.rows, given.rounds, ten=given.ten)
        passes = [given.rows, 10 * given.rows] if given.ten else [given.rows]
        count = min(given.rows, STREAMED)
        served = [rows for rows in (2_000, 20_000) if rows <= count]
        for name, part in measure_reruns(folder, count, passes, served).items():
            text = written_into(text, part, name)
    finally:
        shutil.rmtree(folder)
    if given.write and given.write.exists():  # measured apart, with nothing else on the machine
        calls = part_of(given.write.read_text(encoding="utf-8"), "calls")
        text = written_into(text, calls, "calls") if calls else text
    print(text)
    if given.write:
        given.write.write_text(text, encoding="utf-8")
        given.write.with_suffix(".svg").write_text(plot(growths(figures)), encoding="utf-8")
    return 0


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="labels to make")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each measurement")
    parser.add_argument("--ten", action="store_true", help="also an index of ten times as many")
    parser.add_argument(
        "--small", action="store_true", help="200 labels, once: to see that it runs"
    )
    parser.add_argument("--folder", type=Path, help="where there is room")
    parser.add_argument("--write", type=Path, help="the page, such as docs/speed.md")
    given = parser.parse_args(arguments)
    if given.small:
        given.rows, given.rounds = 200, 1
    return given


def _measured(folder: Path, rows: int, rounds: int, *, ten: bool) -> tuple[Figures, str]:
    figures = Figures(rounds)
    sizes = sorted({max(1, rows // 100), max(1, rows // 10), rows})
    files = {size: folder / f"{size}.jsonl" for size in sizes}
    for size, path in files.items():
        write_labels(path, size)
        figures.found[f"{BUILDING}{size:,}"] = run("index", path)
    _measure_index(figures, files, rows)
    if ten:
        _measure_ten(figures, folder, files[rows], rows)
    streamed = files[rows] if rows <= STREAMED else files[sizes[-2]]
    _measure_decoders(figures, streamed)
    for size, path in files.items():
        once = 1 if size > STREAMED else rounds
        figures.measure(f"{STREAM_OF}{size:,}", lambda path=path: run("stream", path), once)  # type: ignore[misc]
    _measure_store(figures, folder / "store", streamed)
    splitters = {
        str(SPLITTERS[name]): {size: _split(name, size, rounds) for size in (0, 10**6, 10**7)}
        for name in ("general",)
    }
    _measure_start(figures, folder, files[sizes[0]])
    megabytes = files[rows].stat().st_size / 1e6
    shapes = "those of real RAGBench rows, drawn at random" if ragbench_shapes() else STATED
    return figures, page(figures, rows, megabytes, splitters, shapes)


def _side(path: Path) -> Path:
    return path.with_name(path.name + ".index")


def _measure_index(figures: Figures, files: dict[int, Path], rows: int) -> None:
    path, side = files[rows], _side(files[rows])

    def cold(task: str, of: Path) -> Run:
        run("forget", of)
        return run(task, of)

    figures.measure(BYTES + DISK, lambda: cold("read_bytes", path))
    figures.measure(INDEX + DISK, lambda: cold("metrics", side))
    figures.measure(BYTES + CACHE, lambda: run("read_bytes", path))
    figures.measure(INDEX + CACHE, lambda: run("metrics", side))
    figures.measure(WITH_INTERVALS, lambda: run("metrics", side, "intervals"))
    labeler = [sys.executable, "-m", "labeler", "metrics", str(path)]
    commands = {
        FLOOR: [sys.executable, str(TASKS), "read_bytes", str(path)],
        COMMAND: [*labeler, "--no-intervals"],
        COMMAND_DRAWN: labeler,
    }
    figures.measure_in_turn({name: partial(_timed, own) for name, own in commands.items()})
    figures.found[f"{OF}{rows:,}"] = figures.found[INDEX + CACHE]
    for size, other in list(files.items())[:-1]:
        figures.measure(f"{OF}{size:,}", lambda other=other: run("metrics", _side(other)))  # type: ignore[misc]


def _measure_ten(figures: Figures, folder: Path, path: Path, rows: int) -> None:
    first = folder / "first.jsonl"
    batch = min(rows, 1 << 15)
    with path.open("rb") as source, first.open("wb") as target:
        target.writelines(line for _, line in zip(range(batch), source, strict=False))
    run("index", first)
    many = folder / "ten.parquet"
    written = run("multiply", _side(first), -(-10 * rows // batch), many).counted
    figures.measure(f"{OF}{written:,.0f}", lambda: run("metrics", many))
    many.unlink()


def _measure_decoders(figures: Figures, path: Path) -> None:
    for task in DECODERS:
        figures.measure(task, lambda task=task: run(task, path))  # type: ignore[misc]


def _measure_store(figures: Figures, folder: Path, path: Path) -> None:
    run("fill_store", folder, path, STREAMED)
    for task in SCANS:
        figures.measure(task, lambda task=task: run(task, folder))  # type: ignore[misc]


def _split(name: str, size: int, rounds: int) -> float:
    """Megabytes a second of a splitter: of documents, or of a line of so many."""
    command = [sys.executable, str(TASKS), "split", name, str(size)]
    facts = [json.loads(_process(command)) for _ in range(rounds)]
    return float(statistics.median(one["bytes"] / 1e6 / one["seconds"] for one in facts))


_TYPER = """
import typer
app = typer.Typer(add_completion=False, rich_markup_mode=None)
@app.command()
def one(name: str = ""): print("hello")
@app.command()
def two(name: str = ""): print("hello")
app()
"""


def _measure_start(figures: Figures, folder: Path, path: Path) -> None:
    few = folder / "few.jsonl"
    with path.open("rb") as source:
        few.write_bytes(b"".join(source.readline() for _ in range(10)))
    bare = folder / "bare.py"
    bare.write_text(_TYPER, encoding="utf-8")
    labeler = [sys.executable, "-m", "labeler"]
    commands = {
        BARE: [sys.executable, str(bare), "one"],
        HELP: [*labeler, "--help"],
        FEW_PLAIN: [
            *labeler,
            "metrics",
            str(few),
            "--no-intervals",
        ],
        FEW: [*labeler, "metrics", str(few)],
    }
    figures.measure_in_turn({name: partial(_timed, own) for name, own in commands.items()})


def _timed(command: Sequence[str]) -> Run:
    begin = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, env=_environment()) as child:  # noqa: S603 - our own
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{' '.join(command)} failed")
    processor = used.ru_utime + used.ru_stime
    return Run(time.perf_counter() - begin, processor, used.ru_maxrss / 1024, 0)


if __name__ == "__main__":
    sys.exit(main())
