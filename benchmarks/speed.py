"""Measure how fast numbers are recomputed from stored labels, next to decoders and SQLite.

Run as ``LABELER_TEST_DATA=FOLDER python benchmarks/speed.py --write docs/measured/speed.md``, with
RAGBench's rows in the folder: without them, texts are made up, and their splitting says little. It
makes synthetic labels in the shape of these rows (see ``speed_labels.py``), measures every step in
a process of its own (``speed_tasks.py``), takes the median of several runs, and prints ratios
within this one run: these hold on other machines too. It needs about 2 GB in a folder of its own,
which it removes, and about 20 minutes. Other benchmarks write the other parts of the page, which
are kept.
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
    COMMAND,
    COMMAND_DRAWN,
    DECODERS,
    FEW,
    FEW_PLAIN,
    FILE_OF,
    HELP,
    SCANS,
    STORE,
    Figures,
    Run,
    growths,
    page,
)
from speed_plot import plot
from speed_reruns import part_of, written_into

TASKS = Path(__file__).with_name("speed_tasks.py")
KEPT = ("reruns", "hosted", "rows", "calls", "first table")
"""Parts of the page that other benchmarks and people write, in their order."""


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
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=_environment())
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}:\n{done.stderr}")
    return done.stdout


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and write the page."""
    given = _arguments(arguments)
    folder = Path(tempfile.mkdtemp(prefix="speed-", dir=given.folder))
    try:
        figures, text = _measured(folder, given.rows, given.rounds)
    finally:
        shutil.rmtree(folder)
    if given.write and given.write.exists():
        before = given.write.read_text(encoding="utf-8")
        for name in KEPT:
            text = written_into(text, part_of(before, name), name)
    print(text)
    if given.write:
        given.write.write_text(text, encoding="utf-8")
        given.write.with_suffix(".svg").write_text(plot(growths(figures)), encoding="utf-8")
    return 0


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000, help="labels to make")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each measurement")
    parser.add_argument("--folder", type=Path, help="where there is room")
    parser.add_argument("--write", type=Path, help="the page, such as docs/measured/speed.md")
    return parser.parse_args(arguments)


def _measured(folder: Path, rows: int, rounds: int) -> tuple[Figures, str]:
    figures = Figures(rounds)
    files = {size: folder / f"{size}.jsonl" for size in (rows // 100, rows // 10, rows)}
    for size, path in files.items():
        write_labels(path, size)
        figures.measure(f"{FILE_OF}{size:,}", lambda path=path: run("summarize", path))  # type: ignore[misc]
    labels = files[rows]
    for task in DECODERS:
        figures.measure(task, lambda task=task: run(task, labels))  # type: ignore[misc]
    run("fill_store", folder / "store", labels, rows)
    for task in SCANS:
        figures.measure(task, lambda task=task: run(task, folder / "store"))  # type: ignore[misc]
    figures.measure(STORE, lambda: run("summarize", folder / "store"))
    metrics = [sys.executable, "-m", "labeler", "metrics", str(labels)]
    figures.measure(COMMAND, lambda: _timed([*metrics, "--no-intervals"]))
    figures.measure(COMMAND_DRAWN, lambda: _timed(metrics))
    splitters = {
        str(SPLITTERS[name]): {size: _split(name, size, rounds) for size in (0, 10**6, 10**7)}
        for name in ("general",)
    }
    _measure_start(figures, folder, files[rows // 100])
    megabytes = labels.stat().st_size / 1e6
    shapes = "those of real RAGBench rows, drawn at random" if ragbench_shapes() else STATED
    return figures, page(figures, rows, megabytes, splitters, shapes)


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
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, env=_environment()) as child:
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{' '.join(command)} failed")
    processor = used.ru_utime + used.ru_stime
    return Run(time.perf_counter() - begin, processor, used.ru_maxrss / 1024, 0)


if __name__ == "__main__":
    sys.exit(main())
