"""Write the page of ``speed.py``: figures, goals, and a plot of the growth."""

from __future__ import annotations

import platform
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import chain, starmap
from pathlib import Path
from typing import NamedTuple

from speed_plot import Points, slope_of

PER_LABEL = 250
"""Microseconds of a processor that the numbers of a label may take."""
MEMORY = 200
"""Megabytes that the whole command may take."""
SPLITTER = 5.0
"""Megabytes a second that a splitter must do."""
SCAN = 0.5
"""Of the speed of SQLite alone, how much the scan of a store must have."""
LINEAR = 1.1
"""Slope of what grows as its input does, both axes logarithmic, with some slack."""
FLAT = 0.1
"""Slope of what does not grow, with some slack."""
FILE_OF, STORE = "label file of ", "store"
BARE, HELP = "bare typer program", "labeler --help"
COMMAND, COMMAND_DRAWN = "labeler metrics --no-intervals", "labeler metrics"
FEW, FEW_PLAIN = "labeler metrics, 10 labels", "labeler metrics, 10 labels, no intervals"

INTRODUCTION = """\
# Speed

Numbers are computed record by record: a line or a stored value becomes a checked label, the label
becomes its sets and counts, and each metric is one function of these. Memory holds how often each
distinct ratio occurred and, for intervals, a few bytes per record and metric, so that a command
reads any number of labels.
"""


Splitters = Mapping[str, dict[int, float]]
"""Megabytes a second of each splitter, by the size of a line; 0 for documents."""


class Run(NamedTuple):
    """What one process took.

    Attributes:
        seconds: from its start to its end, the loading of the program included.
        inside: processor time of the task alone, which other programs hardly change.
        megabytes: of memory at most.
        counted: what the task counted.
    """

    seconds: float
    inside: float
    megabytes: float
    counted: float


@dataclass
class Figures:
    """Measures tasks, several times each, and keeps the medians.

    Attributes:
        rounds: how many times each is measured.
        found: by name: the median run.
    """

    rounds: int
    found: dict[str, Run] = field(default_factory=dict)

    def measure(self, name: str, once: Callable[[], Run], rounds: int | None = None) -> Run:
        """Measure a task, as many times as all by default."""
        return self._keep(name, [once() for _ in range(rounds or self.rounds)])

    def measure_in_turn(self, tasks: Mapping[str, Callable[[], Run]]) -> None:
        """Measure short tasks in turn, three times as often: so the machine's speed cancels out."""
        rounds = [[once() for once in tasks.values()] for _ in range(3 * self.rounds)]
        for name, runs in zip(tasks, zip(*rounds, strict=True), strict=True):
            self._keep(name, runs)

    def _keep(self, name: str, runs: Sequence[Run]) -> Run:
        median = Run(*(statistics.median(column) for column in zip(*runs, strict=True)))
        self.found[name] = median
        print(f"{name}: {median.seconds:.2f} s, {median.megabytes:.0f} MB", flush=True)
        return median

    def inside(self, name: str, to: str) -> float:
        """How many times as much processor time one took as another."""
        return self.found[name].inside / self.found[to].inside


class Goal(NamedTuple):
    """What was to be reached, and what was.

    Attributes:
        what: what it is about.
        goal: what was to be reached.
        found: what was.
        met: whether that suffices.
    """

    what: str
    goal: str
    found: str
    met: bool


DECODERS = {
    "decode_msgspec": "msgspec, dicts and lists, unchecked",
    "decode_json": "json of the standard library, unchecked",
    "decode_models": "pydantic, types checked",
    "records": "labeler: types, key and references checked",
}

SCANS = {
    "scan_raw": "SQLite alone, the values",
    "scan_columns": "SQLite alone, and the columns that tell what a row is",
    "scan_rows": "labeler: each row seen to be a store's",
    "hash_values": "SHA-256 alone, of values in memory",
    "scan_checksums": "labeler: each row seen to be a store's, and its checksum right",
    "scan_unpacked": "and decompressed",
}


def growths(figures: Figures) -> dict[str, Points]:
    """How time and memory grow with the labels of a file.

    Time is that of the processor without the loading of the program; memory is that of the process.
    """
    runs = sorted(
        (int(name.removeprefix(FILE_OF).replace(",", "")), run)
        for name, run in figures.found.items()
        if name.startswith(FILE_OF)
    )
    return {
        "seconds": [(rows, run.inside) for rows, run in runs],
        "GB of memory": [(rows, run.megabytes / 1000) for rows, run in runs],
    }


def goals(figures: Figures, splitters: Splitters) -> list[Goal]:
    """What was to be reached, and whether it was.

    Args:
        figures: what was measured.
        splitters: how fast splitters are.
    """
    seconds, memory = growths(figures).values()
    rows = seconds[-1][0]
    return [
        _per_label("labeler metrics, whole command", figures.found[COMMAND_DRAWN], rows),
        _per_label("the same without intervals", figures.found[COMMAND], rows),
        Goal(
            "memory of the command",
            f"≤ {MEMORY} MB",
            f"{(command := figures.found[COMMAND_DRAWN].megabytes):.0f} MB",
            command <= MEMORY,
        ),
        _at_most("slope of time by labels", LINEAR, slope_of(seconds)),
        _at_most("slope of memory by labels: flat", FLAT, slope_of(memory)),
        _scan(figures, "scan of a store, to SQLite alone", "scan_rows", "scan_raw"),
        _scan(figures, "the same with checksums", "scan_checksums", "scan_raw"),
        _scan(figures, "… to SQLite and all columns", "scan_checksums", "scan_columns"),
        *chain.from_iterable(starmap(_splitting, splitters.items())),
        _at_most("labeler --help, to a bare typer program", 1.2, figures.inside(HELP, BARE)),
        _at_most("labeler metrics of 10 labels, to the same", 1.2, figures.inside(FEW, BARE)),
        _at_most("the same without intervals", 1.2, figures.inside(FEW_PLAIN, BARE)),
    ]


_VERDICTS = {True: "met", False: "**not met**"}


def _at_most(what: str, limit: float, found: float) -> Goal:
    return Goal(what, f"≤ {limit:g}", f"{found:.2f}", found <= limit)


def _per_label(what: str, run: Run, rows: int) -> Goal:
    found = 1e6 * run.inside / rows
    what = f"{what}, µs of a processor a label"
    return Goal(what, f"≤ {PER_LABEL}", f"{found:.0f}", found <= PER_LABEL)


def _scan(figures: Figures, what: str, task: str, to: str) -> Goal:
    speed = 1 / figures.inside(task, to)
    return Goal(what, f"≥ {SCAN:g}", f"{speed:.2f}", speed >= SCAN)


def _splitting(name: str, speeds: dict[int, float]) -> Iterator[Goal]:
    what, documents = f"splitter `{name}`, documents, one core", speeds[0]
    yield Goal(what, f"≥ {SPLITTER:g} MB/s", f"{documents:.1f} MB/s", documents >= SPLITTER)
    line = slope_of([(size, size / speed) for size, speed in speeds.items() if size])
    yield _at_most("slope of its time, one line of 1 MB and of 10 MB", LINEAR, line)


def _scans(figures: Figures) -> list[str]:
    """Return the table of scans of a store."""
    found = figures.found
    stored = found["scan_raw"].counted / 1e6
    return _table(
        [
            f"store of {found[STORE].counted:,.0f} labels",
            *("MB/s", "of SQLite, values", "of SQLite, columns"),
        ],
        (
            [
                text,
                f"{stored / found[task].inside:,.0f}",
                f"{1 / figures.inside(task, 'scan_raw'):.2f}",
                f"{1 / figures.inside(task, 'scan_columns'):.2f}",
            ]
            for task, text in SCANS.items()
        ),
    )


def page(figures: Figures, rows: int, megabytes: float, splitters: Splitters, shapes: str) -> str:
    """The page, as Markdown.

    Args:
        figures: what was measured.
        rows: labels that were made.
        megabytes: their JSON.
        splitters: how fast splitters are.
        shapes: where the shapes of the labels come from.
    """
    found = figures.found
    commands = (BARE, HELP, FEW, FEW_PLAIN)
    return "\n".join(
        [
            INTRODUCTION,
            "## Measured\n",
            _circumstances(figures, rows, megabytes, shapes),
            "",
            *_table(
                ["", "goal", "found", ""],
                ([*goal[:3], _VERDICTS[goal.met]] for goal in goals(figures, splitters)),
            ),
            "![Growth of recomputing](speed.svg)\n",
            *_table(
                ["default metrics", "µs of a processor a label", "MB of memory"],
                (
                    [name, f"{1e6 * run.inside / run.counted:.0f}", f"{run.megabytes:.0f}"]
                    for name, run in found.items()
                    if name.startswith((FILE_OF, STORE))
                ),
            ),
            *_table(
                [f"{rows:,} labels of a file", "µs of a processor a label", "MB of memory"],
                (
                    [text, f"{1e6 * found[task].inside / rows:.0f}", f"{found[task].megabytes:.0f}"]
                    for task, text in DECODERS.items()
                ),
            ),
            *_scans(figures),
            *_table(
                ["start-up", "ms of processor"],
                ([name, f"{found[name].inside * 1000:,.0f}"] for name in commands),
            ),
            *_table(
                ["splitter, MB/s", "documents", "one line of 1 MB", "one line of 10 MB"],
                (
                    [f"`{name}`", *(f"{speed:.1f}" for speed in speeds.values())]
                    for name, speeds in splitters.items()
                ),
            ),
            "Written by `benchmarks/speed.py`.\n",
        ]
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [head, ["---", *["--:"] * (len(head) - 1)], *rows]
    return [*(f"| {' | '.join(line)} |" for line in lines), ""]


def _circumstances(figures: Figures, rows: int, megabytes: float, shapes: str) -> str:
    packages = ", ".join(f"{n} {version(n)}" for n in ("numpy", "pyarrow", "msgspec", "pydantic"))
    return (
        f"{datetime.now(UTC):%d %B %Y}; {platform.machine()}, {_processor()}; Python "
        f"{platform.python_version()}, {packages}. Medians of {figures.rounds} processes, of "
        f"start-ups {3 * figures.rounds} in turn; times are those of whole processes, rates are by "
        "the processor time of the task alone. "
        f"{rows:,} synthetic labels, {megabytes:,.0f} MB of JSON; their shapes: {shapes}."
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown processor"
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{len(names)} cores of {names[0]}" if names else "unknown processor"
