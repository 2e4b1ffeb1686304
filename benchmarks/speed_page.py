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

MEMORY = 500
"""Megabytes that recomputing may take."""
SPLITTER = 5.0
"""Megabytes a second that a splitter must do."""
SCAN = 0.5
"""Of the speed of SQLite alone, how much the scan of a store must have."""
LINEAR = 1.1
"""Slope of what grows as its input does, both axes logarithmic, with some slack."""
FLAT = 0.1
"""Slope of what does not grow, with some slack."""
INDEX, BYTES, BUILDING, OF = "index", "JSON bytes", "building an index of ", "index of "
STREAM_OF = "label file of "
DISK, CACHE = ", from the disk", ", cached"
WITH_INTERVALS = "index with intervals, cached"
BARE, HELP = "bare typer program", "labeler --help"
FLOOR, COMMAND = "reading the JSON bytes, cached", "labeler metrics, 12 metrics from the index"
COMMAND_DRAWN = "the same with intervals"
COMMAND_MEMORY = 200
"""Megabytes that the whole command may take."""
FEW, FEW_PLAIN = "labeler metrics, 10 labels", "labeler metrics, 10 labels, no intervals"

INTRODUCTION = """\
# Speed

Numbers are recomputed from a columnar index: what each label says, counted once, as arrays in files
that are mapped, not decoded. `labeler index STORE` makes it, and `labeler index labels.jsonl`, and
`labeler index FOLDER` of a folder of Parquet labels; that of a store is brought up to date when a
run ends and when metrics are computed, by what came since. All metrics of labels that ship are
served by it, with `--by`, `--group` and intervals, and equal those of the records to the last bit.
A metric of your own is served if it is vectorized ([metrics.md](metrics.md)); else the records are
read for it alone, and a line says so. They are also read for `--rows`, for `--no-index`, and for
a store together with other labels. An index that is damaged, stale or of another version is rebuilt
or ignored with a notice; it can be removed at any time.

A label file has one index, `labels.jsonl.index` next to it. A store has segments in its folder
`index`: each update adds one, more than 16 are merged, and none is changed once it is written. A
file begins with its magic, the version of its format, and the place and the checksum of its header,
which is JSON and names place, length and checksum of every array. It also says whether all rows are
distinct, and which labels share questions. A label is kept as counts: its document sentences and
their characters by mark (relevant, utilized, both, neither), and the marks of its documents,
response sentences and claims, of which equal ones are kept once. Indexes of earlier versions are
ignored with a notice and rebuilt.

It is as with the store itself: checksums of the arrays show damage, not forgery. A label that is
tampered with after it was indexed is noticed when it is read, not when it is counted; `--no-index`
reads them all.

A label file without an index is decoded and checked as strictly as ever, without building a model
of each label: types, unknown fields, the key from the sentences and the signature, the profile, and
every key that is named. What does not pass is left to the models. A decoder that checks nothing is
several times as fast, and no reader that checks comes near it: to read every field and to take the
SHA-256 of the sentences, without looking at a single key, takes longer than the goal allows. Who
recomputes often makes an index. Both that key and the checksum of a stored record are SHA-256: what
it alone takes, on bytes that are in memory already, stands in the table of the store, and no scan
with checksums is faster than that and SQLite together. From 10,000 records or
groups on, intervals of more than 64 distinct ones are drawn by narrow ranges.
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

    def seconds(self, name: str) -> float:
        """The median time of a whole process."""
        return self.found[name].seconds

    def ratio(self, name: str, to: str) -> float:
        """How many times as long one took as another."""
        return self.seconds(name) / self.seconds(to)

    def inside(self, name: str, to: str) -> float:
        """The same of the processor time of the tasks alone."""
        return self.found[name].inside / self.found[to].inside


class Goal(NamedTuple):
    """What was to be reached, and what was.

    Attributes:
        what: what it is about.
        goal: what was to be reached.
        found: what was.
        met: whether that suffices; ``None`` where nothing was to be reached.
    """

    what: str
    goal: str
    found: str
    met: bool | None


DECODERS = {
    "decode_slim": "msgspec, what metrics count alone, unchecked",
    "decode_structs": "msgspec, typed structs of all fields, no further checks",
    "decode_digests": "the same, and the sentences written as JSON, and the SHA-256 of that",
    "decode_msgspec": "msgspec, dicts and lists, unchecked",
    "decode_json": "json of the standard library, unchecked",
    "decode_labels": "labeler: typed, key and references checked",
    "stream": "labeler metrics without an index: the same, and all metrics",
    "records": "labeler metrics --no-index: a model of each label",
}

UNCHECKED = ("decode_slim", "decode_structs", "decode_msgspec", "decode_json")
"""Decoders that check nothing but types at most."""

SCANS = {
    "scan_raw": "SQLite alone, the values",
    "scan_columns": "SQLite alone, and the columns that tell what a row is",
    "scan_rows": "labeler: each row seen to be a store's",
    "hash_values": "SHA-256 alone, of values in memory",
    "scan_checksums": "labeler: each row seen to be a store's, and its checksum right",
    "scan_unpacked": "and decompressed",
    "index_store": "and decoded, checked, counted and written to an index",
}


def growths(figures: Figures) -> dict[str, Points]:
    """How time and memory grow with the labels, of an index and of a label file.

    Time is that of the processor without the loading of the program; memory is that of the process.
    """
    grown: dict[str, Points] = {}
    for prefix, what in ((OF, "from an index"), (STREAM_OF, "from a label file")):
        runs = sorted(
            (int(name.removeprefix(prefix).replace(",", "")), run)
            for name, run in figures.found.items()
            if name.startswith(prefix)
        )
        grown[f"{what}: seconds"] = [(rows, run.inside) for rows, run in runs]
        grown[f"{what}: GB of memory"] = [(rows, run.megabytes / 1000) for rows, run in runs]
    return grown


def goals(figures: Figures, splitters: Splitters) -> list[Goal]:
    """What was to be reached, and whether it was.

    Args:
        figures: what was measured.
        splitters: how fast splitters are.
    """
    recomputing = (INDEX + DISK, INDEX + CACHE, WITH_INTERVALS)
    memory = max(figures.found[name].megabytes for name in recomputing)
    decoder = min(UNCHECKED, key=lambda name: figures.found[name].inside)
    index_seconds, _, file_seconds, file_memory = growths(figures).values()
    of_disk = "reading the labels' JSON bytes from the disk"
    return [
        _at_most(
            f"index from the disk, to {of_disk}", 1.0, figures.ratio(INDEX + DISK, BYTES + DISK)
        ),
        _at_most("the same, both cached", 1.0, figures.ratio(INDEX + CACHE, BYTES + CACHE)),
        _at_most(
            f"with intervals of 10,000 resamples, to {of_disk}",
            5.0,
            figures.ratio(WITH_INTERVALS, BYTES + DISK),
        ),
        _at_most(
            "labeler metrics, whole command, to reading the JSON bytes, processor, cached",
            1.0,
            figures.inside(COMMAND, FLOOR),
        ),
        _at_most("the same with intervals", 2.0, figures.inside(COMMAND_DRAWN, FLOOR)),
        Goal(
            "memory of the command",
            f"≤ {COMMAND_MEMORY} MB",
            f"{(command := figures.found[COMMAND_DRAWN].megabytes):.0f} MB",
            command <= COMMAND_MEMORY,
        ),
        Goal("memory of recomputing", f"≤ {MEMORY} MB", f"{memory:.0f} MB", memory <= MEMORY),
        _at_most(
            "label file, to the fastest decoder: " + DECODERS[decoder],
            1.3,
            figures.inside("stream", decoder),
        ),
        _at_most(
            "label file, to typed structs of all fields",
            1.3,
            figures.inside("stream", "decode_structs"),
        ),
        Goal(
            "typed structs, the sentences' JSON and SHA-256, to the fastest decoder",
            "",
            f"{figures.inside('decode_digests', decoder):.2f}",
            None,
        ),
        _scan(figures, "scan of a store, to SQLite alone", "scan_rows", "scan_raw"),
        _scan(figures, "the same with checksums", "scan_checksums", "scan_raw"),
        _scan(figures, "… to SQLite and all columns", "scan_checksums", "scan_columns"),
        *chain.from_iterable(starmap(_splitting, splitters.items())),
        _at_most("labeler --help, to a bare typer program", 1.2, figures.inside(HELP, BARE)),
        _at_most("labeler metrics of 10 labels, to the same", 1.2, figures.inside(FEW, BARE)),
        _at_most("the same without intervals", 1.2, figures.inside(FEW_PLAIN, BARE)),
        _at_most("slope of time from an index, by labels", LINEAR, slope_of(index_seconds)),
        _at_most("slope of time from a label file", LINEAR, slope_of(file_seconds)),
        _at_most("slope of memory from a label file: flat", FLAT, slope_of(file_memory)),
    ]


_VERDICTS = {True: "met", False: "**not met**", None: ""}


def _at_most(what: str, limit: float, found: float) -> Goal:
    return Goal(what, f"≤ {limit:g}", f"{found:.2f}", found <= limit)


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
            f"store of {found['index_store'].counted:,.0f} labels",
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
    streamed = found["stream"].counted
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
                ["all TRACe definitions and sentence ratios", "s", "MB of memory"],
                (
                    [name, f"{run.seconds:.2f}", f"{run.megabytes:.0f}"]
                    for name, run in found.items()
                    if name.startswith((BYTES, INDEX, BUILDING, STREAM_OF)) and name not in SCANS
                ),
            ),
            *_table(
                [f"{streamed:,.0f} labels of a file", "labels/s", "MB of memory"],
                (
                    [text, f"{streamed / found[task].inside:,.0f}", f"{found[task].megabytes:.0f}"]
                    for task, text in DECODERS.items()
                ),
            ),
            *_scans(figures),
            *_table(
                ["whole command", "ms of processor"],
                (
                    [name, f"{found[name].inside * 1000:,.0f}"]
                    for name in (FLOOR, COMMAND, COMMAND_DRAWN, BARE, HELP, FEW, FEW_PLAIN)
                ),
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
        f"{rows:,} synthetic labels, {megabytes:,.0f} MB of JSON; their shapes: {shapes}. An index "
        "of ten times as many holds copies of the first ones."
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown processor"
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{len(names)} cores of {names[0]}" if names else "unknown processor"
