"""Measure reruns over stored labels, and the memory of runs and of their rows.

Run it as ``python benchmarks/speed_reruns.py --write docs/measured/speed.md``.
Rows are made at random in RAGBench's size and labeled by a function that costs nothing, so that
what is measured is the run. Each step is a process of its own: processor time is that of the whole
process, user and system. Stores are not removed before the end: 100,000 rows need 3 GB, and ten
minutes of a processor in all.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from server_process import ServerProcess

GOAL, NEW, ROWS, MEMORY = 0.6, 1, 40, 200
"""Milliseconds of a rerun a row, what a new row costs to one of a first run, bytes that
a row leaves in memory, and megabytes of a run."""
RERUN = "the same again"


class Spent(NamedTuple):
    """What a process took: seconds of a processor, and megabytes of memory at most."""

    seconds: float
    megabytes: float
    printed: str


def write_rows(path: Path, count: int, changed: int = 0) -> None:
    """Write rows of RAGBench's size; the last ones are others by their ids and questions."""
    rng = random.Random(3)
    words = ["".join(rng.choices("etaoinshrdlu", k=rng.randint(2, 9))) for _ in range(999)]
    pool = [
        f"{' '.join(rng.choices(words, k=rng.randint(10, 30))).capitalize()}." for _ in range(9999)
    ]
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            name = f"{'new' if number >= count - changed else 'row'}-{number}"
            documents = [
                " ".join(rng.choices(pool, k=rng.randint(3, 9))) for _ in range(rng.randint(2, 6))
            ]
            row = {
                "id": name,
                "question": f"What of {name}?",
                "documents": documents,
                "response": " ".join(rng.choices(pool, k=rng.randint(2, 6))),
                "subset": number % 12,
            }
            file.write(json.dumps(row) + "\n")


def trusting(task: Any) -> dict[str, Any]:  # noqa: ANN401 - any task
    """Answer that the first sentence supports everything."""
    keys = task.example.document_keys()
    return {
        "relevance_explanation": "The first one answers it.",
        "all_relevant_sentence_keys": keys[:3],
        "overall_supported_explanation": "All of it is there.",
        "overall_supported": True,
        "sentence_support_information": [
            {
                "response_sentence_key": key,
                "explanation": "The first sentence says so.",
                "supporting_sentence_keys": keys[:1],
                "fully_supported": True,
            }
            for key in task.example.response_keys()
        ],
        "all_utilized_sentence_keys": keys[:2],
    }


def label(rows: str, store: str, output: str) -> None:
    """Label a file of rows."""
    import labeler  # noqa: PLC0415 - this process alone needs it

    judge = labeler.judge("trusting", version=1)(trusting)
    labeler.label(rows, judge=judge, store=store, output=output)


def copy(rows: str, labels: str, output: str) -> None:
    """Read the rows and copy the labels: what no rerun can do without."""
    with Path(rows).open("rb") as file:
        for _line in file:
            pass
    with Path(labels).open("rb") as source, Path(output).open("wb") as target:
        target.writelines(source)


def read_rows(count: str) -> None:
    """Read made-up short rows, and print the bytes of memory that each one adds."""
    from labeler.data.formats.objects import python_source  # noqa: PLC0415 - as above
    from labeler.data.rows import Rows, RowStream  # noqa: PLC0415 - as above

    deque(RowStream(Rows([python_source(_Short(1000).__iter__, 1000)])), maxlen=0)
    before, most, done = _memory(), [0], threading.Event()

    def watch() -> None:
        while not done.wait(0.05):
            most[0] = max(most[0], _memory())

    watcher = threading.Thread(target=watch)
    watcher.start()
    counted = sum(
        1 for _ in RowStream(Rows([python_source(_Short(int(count)).__iter__, int(count))]))
    )
    done.set()
    watcher.join()
    print((max(most[0], _memory()) - before) / counted)


class _Short(Sequence[dict[str, Any]]):
    """Short rows, made when they are read."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, place: Any) -> Any:  # noqa: ANN401 - of a sequence
        name = f"row-{place}"
        return {"id": name, "question": name, "documents": ["It is."], "response": "It is."}

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return map(self.__getitem__, range(self._count))


def _memory() -> int:
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def hosted(rows: str, store: str, output: str) -> None:
    """Label by a model on this machine: the server is another process than ``labeler label``."""
    with ServerProcess("peers.server", "--share", "0", "--latency", "0.05") as server:
        used = ["--model", "model", "--base-url", server.url, "--concurrency", "64"]
        run = ["-m", "labeler", "label", rows, *used, "--store", store, "--output", output]
        keyed = {**os.environ, "OPENAI_API_KEY": "none"}
        process = subprocess.Popen([sys.executable, *run], env=keyed, stderr=subprocess.DEVNULL)
        _, status, used_up = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(run)} failed")
    print(used_up.ru_maxrss / 1024)


TASKS: dict[str, Callable[..., None]] = {f.__name__: f for f in (label, copy, read_rows, hosted)}


def spent(*task: object) -> Spent:
    """Run a task in a process of its own."""
    command = [sys.executable, __file__, *map(str, task)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        printed = child.stdout.read() if child.stdout else ""
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{' '.join(command)} failed")
    return Spent(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, printed)


def measure(
    folder: Path, count: int, passes: Sequence[int], served: Sequence[int]
) -> dict[str, str]:
    """Measure what is asked for, and return parts of the page by their names.

    Args:
        folder: where there is room: 30 KB a row.
        count: rows of a run; 0 for none.
        passes: rows that are read.
        served: rows of runs with a hosted model.
    """
    parts = {"reruns": _reruns(folder, count)} if count else {}
    held = {rows: _hosted(folder, rows) for rows in served}
    name = "`labeler label`, a hosted model in a process of its own, {:,} rows, 64 in flight, MB"
    if held:
        parts["hosted"] = _goals((name.format(n), MEMORY, held[n], 0) for n in held)
    kept = {rows: float(spent("read_rows", rows).printed) for rows in passes}
    name = "reading {:,} short rows, bytes of memory a row"
    if kept:
        parts["rows"] = _goals((name.format(n), ROWS, kept[n], 1) for n in kept)
    return parts


def _reruns(folder: Path, count: int) -> str:
    """Return the part about reruns."""
    new, few = max(1, count // 10), max(10, count // 20)
    rows, other, some = (folder / name for name in ("rows.jsonl", "other.jsonl", "some.jsonl"))
    write_rows(rows, count)
    write_rows(other, count, changed=new)
    write_rows(some, few)
    store, first, again, out = (folder / name for name in ("store", "first", "again", "out"))
    bought = spent("label", rows, store, first)
    rerun = spent("label", rows, store, again)
    if first.read_bytes() != again.read_bytes():
        raise SystemExit("the rerun wrote other bytes")
    copied = spent("copy", rows, first, out)
    mixed = spent("label", other, store, out)
    alone = spent("label", some, folder / "few", out)  # with the start of a process
    runs = {
        "labeling": (count, bought),
        RERUN: (count, rerun),
        "with a tenth of the rows new": (count, mixed),
        "reading the rows, copying the labels": (count, copied),
        "labeling fewer": (few, alone),
    }
    known = rerun.seconds * (count - new) / count
    ratio = (mixed.seconds - known) / (bought.seconds * new / count)
    goals = [
        (f"rerun of {count:,} rows, ms of a processor a row", GOAL, rerun.seconds / count * 1e3, 3),
        ("a new row among nine known ones, to one of the first run", NEW, ratio, 2),
        ("memory of these runs, MB", MEMORY, max(run.megabytes for _, run in runs.values()), 0),
    ]
    table = ["| | rows | ms of a processor a row | MB of memory |", "| --- | --: | --: | --: |"]
    for name, (number, run) in runs.items():
        cost = run.seconds / number * 1e3
        table.append(f"| {name} | {number:,} | {cost:.3f} | {run.megabytes:.0f} |")
    return f"""## Reruns

Rows have the size of RAGBench's. Each run is a process, and its start is counted. The rerun wrote
the same bytes as the first run.

{_goals(goals)}

{chr(10).join(table)}"""


def _hosted(folder: Path, count: int) -> float:
    rows = folder / f"hosted-{count}.jsonl"
    write_rows(rows, count)
    return float(spent("hosted", rows, folder / f"hosted-{count}", folder / "out").printed)


_VERDICTS = {True: "met", False: "**not met**"}


def _goals(rows: Iterable[tuple[str, float, float, int]]) -> str:
    """Return a table of names, goals, and what was found, with so many places."""
    today = f"{datetime.now(UTC):%d %B %Y}".lstrip("0")
    table = [f"| | goal | found, {today} | |", "| --- | --: | --: | --: |"]
    for name, goal, found, places in rows:
        table.append(f"| {name} | ≤ {goal} | {found:.{places}f} | {_VERDICTS[found <= goal]} |")
    return "\n".join(table)


def written_into(page: str, part: str, name: str = "reruns") -> str:
    """Return a page with another part of a name, at its end if it had none."""
    begin, end = _marks(name)
    before, begun, rest = page.partition(begin)
    after = rest.partition(end)[2]
    return f"{before}{'' if begun else chr(10)}{begin}\n{part}\n{end}{after or chr(10)}"


def part_of(page: str, name: str) -> str:
    """Return the part of a name; nothing if the page has none."""
    begin, end = _marks(name)
    return page.partition(begin)[2].partition(end)[0].strip("\n")


def _marks(name: str) -> tuple[str, str]:
    return f"<!-- {name} -->", f"<!-- end of {name} -->"


def main(arguments: Sequence[str]) -> int:
    """Run one task, or measure and write the page's parts."""
    if arguments and arguments[0] in TASKS:
        TASKS[arguments[0]](*arguments[1:])
        return 0
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000, help="rows of a run, 0 for none")
    parser.add_argument("--passes", type=int, nargs="*", default=[10**6], help="rows that are read")
    parser.add_argument(
        "--hosted", type=int, nargs="*", default=[2_000, 20_000], help="rows of hosted models"
    )
    parser.add_argument("--folder", type=Path, help="where there is room")
    parser.add_argument("--write", type=Path, help="the page, such as docs/measured/speed.md")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="reruns-", dir=given.folder) as folder:
        parts = measure(Path(folder), given.rows, given.passes, given.hosted)
    print(*parts.values(), sep="\n\n")
    if given.write:
        page = given.write.read_text(encoding="utf-8")
        for name, part in parts.items():
            page = written_into(page, part, name)
        given.write.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
