"""Measure reruns over stored labels, and the memory of runs and of their first pass.

Run it as ``python benchmarks/speed_reruns.py --write docs/speed.md``; ``speed.py`` does so too.
Rows are made at random in RAGBench's size and labeled by a function that costs nothing, so that
what is measured is the run. Each step is a process of its own: processor time is that of the whole
process, user and system. Stores are not removed before the end: 100,000 rows need 3 GB.
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
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

GOAL, FIRST_PASS, MEMORY = 0.15, 40, 200
"""Milliseconds of a rerun a row, bytes of the first pass a row, and megabytes of a run."""


class Spent(NamedTuple):
    """What a process took: seconds of a processor, and megabytes of memory at most."""

    seconds: float
    megabytes: float
    printed: str


def write_rows(path: Path, count: int, changed: int = 0) -> None:
    """Write rows of RAGBench's size; the last ones are others by their ids and questions."""
    rng = random.Random(3)  # noqa: S311 - no secret
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
    """Read the rows twice and copy the labels: what no rerun can do without."""
    for _ in range(2):
        with Path(rows).open("rb") as file:
            for _line in file:
                pass
    with Path(labels).open("rb") as source, Path(output).open("wb") as target:
        target.writelines(source)


def first_pass(count: str) -> None:
    """Count made-up short rows, and print the bytes of memory that each one adds."""
    from labeler.data.first_pass import count_rows  # noqa: PLC0415 - as above
    from labeler.data.rows import RowSequence  # noqa: PLC0415 - as above

    count_rows(RowSequence(_Short(1000)))
    before, most, done = _memory(), [0], threading.Event()

    def watch() -> None:
        while not done.wait(0.05):
            most[0] = max(most[0], _memory())

    watcher = threading.Thread(target=watch)
    watcher.start()
    counted = count_rows(RowSequence(_Short(int(count)))).distinct
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


TASKS: dict[str, Callable[..., None]] = {f.__name__: f for f in (label, copy, first_pass)}


def spent(*task: object) -> Spent:
    """Run a task in a process of its own."""
    command = [sys.executable, __file__, *map(str, task)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:  # noqa: S603 - our own
        printed = child.stdout.read() if child.stdout else ""
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{' '.join(command)} failed")
    return Spent(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, printed)


def measure(folder: Path, count: int, passes: Sequence[int]) -> str:
    """Measure everything, and return the part of the page."""
    small, new = max(10, count // 50), max(1, count // 10)
    rows, other, few = (folder / name for name in ("rows.jsonl", "other.jsonl", "few.jsonl"))
    write_rows(rows, count)
    write_rows(other, count, changed=new)
    write_rows(few, small)
    store, first, again, out = (folder / name for name in ("store", "first", "again", "out"))
    runs = {f"labeling {small:,} rows": spent("label", few, folder / "few", out)}
    runs[f"labeling {count:,} rows"] = bought = spent("label", rows, store, first)
    runs["the same again"] = rerun = spent("label", rows, store, again)
    if first.read_bytes() != again.read_bytes():
        raise SystemExit("the rerun wrote other bytes")
    runs["with a tenth of the rows new"] = mixed = spent("label", other, store, out)
    for path in store.glob("memo.db*"):
        path.unlink()
    runs["again without its memo, as over an older store"] = spent("label", rows, store, out)
    runs["reading the rows twice, copying the labels"] = spent("copy", rows, first, out)
    table = ["| | ms of a processor a row | MB of memory |", "| --- | --: | --: |"]
    for name, run in runs.items():
        number = small if name.endswith(f" {small:,} rows") else count
        table.append(f"| {name} | {run.seconds / number * 1e3:.3f} | {run.megabytes:.0f} |")
    share = (mixed.seconds - rerun.seconds * (count - new) / count) / (bought.seconds * new / count)
    held = [(number, float(spent("first_pass", number).printed)) for number in passes]
    today = f"{datetime.now(UTC):%d %B %Y}".lstrip("0")
    goals = f"A rerun may take {GOAL} ms a row, a run {MEMORY} MB, a first pass {FIRST_PASS} bytes."
    return "\n".join(
        [
            "## Reruns",
            "",
            f"{today}, with other work on the machine. {goals}",
            f"New rows cost {share:.2f} times what as many cost in the first run.",
            "",
            *table,
            "",
            "| first pass over short rows | bytes of memory a row |",
            "| --- | --: |",
            *(f"| {number:,} | {held_:.1f} |" for number, held_ in held),
        ]
    )


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
    """Run one task, or measure all and write the page's part."""
    if arguments and arguments[0] in TASKS:
        TASKS[arguments[0]](*arguments[1:])
        return 0
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000, help="rows of a run")
    parser.add_argument(
        "--passes", type=int, nargs="*", default=[10**6, 10**7], help="rows of first passes"
    )
    parser.add_argument("--folder", type=Path, help="where there is room")
    parser.add_argument("--write", type=Path, help="the page, such as docs/speed.md")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="reruns-", dir=given.folder) as folder:
        part = measure(Path(folder), given.rows, given.passes)
    print(part)
    if given.write:
        page = given.write.read_text(encoding="utf-8")
        given.write.write_text(written_into(page, part), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
