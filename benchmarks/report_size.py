"""Measure the size of a report and the time to write it.

Run from the repository: ``python benchmarks/report_size.py [RECORDS ...]``; by default 100, 1,000
and 10,000 records. They are RAGBench's own rows with their published labels, repeated under new
ids where there are not enough, as long and as various as real ones. The summary is by subset.
"""

from __future__ import annotations

import itertools
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from labeler.data.ragbench import read_ragbench
from labeler.labels.record import LabelRecord
from labeler.report import write_report
from ragbench_data import ragbench_files, ragbench_folder

SIZES = (100, 1_000, 10_000)
COLUMN = "dataset_name"


class Written(NamedTuple):
    """A report that was written.

    Attributes:
        records: how many records it has.
        files: its files.
        seconds: how long it took to measure, audit and write them.
    """

    records: int
    files: tuple[Path, ...]
    seconds: float

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.stat().st_size for file in self.files)


def main() -> None:
    """Write a report of each size and print a table."""
    if not ragbench_files():
        sys.exit(f"no *.jsonl.gz in {ragbench_folder()}: name their folder in LABELER_TEST_DATA")
    sizes = [int(argument) for argument in sys.argv[1:]] or list(SIZES)
    print("| records | files | MB | KB a record | seconds | records a second |")
    print("|--:|--:|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as folder:
        for size in sizes:
            print(row(written(size, Path(folder))))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"\npeak memory of the process, labels of one round included: {peak:,.0f} MB")


def row(report: Written) -> str:
    """A line of the table."""
    cells = (
        f"{report.records:,}",
        f"{len(report.files)}",
        f"{report.size / 1e6:.1f}",
        f"{report.size / 1e3 / report.records:.1f}",
        f"{report.seconds:.1f}",
        f"{report.records / report.seconds:,.0f}",
    )
    return f"| {' | '.join(cells)} |"


def written(records: int, folder: Path) -> Written:
    """Write a report of so many records into a folder.

    Args:
        records: how many.
        folder: where; the files are ``report-N.html`` and so on.
    """
    labels = list(itertools.islice(published(), records))
    began = time.perf_counter()
    files = write_report(
        again(labels, records), folder / f"report-{records}.html", name="RAGBench", by=COLUMN
    )
    return Written(records, tuple(files), time.perf_counter() - began)


def published() -> Iterator[LabelRecord]:
    """The published labels, a row of each subset in turn."""
    subsets = [records_of(path) for path in ragbench_files()]
    for together in itertools.zip_longest(*subsets):
        yield from (record for record in together if record is not None)


def records_of(path: Path) -> Iterator[LabelRecord]:
    """The labels of one subset."""
    return (outcome for outcome in read_ragbench(path) if isinstance(outcome, LabelRecord))


def again(labels: list[LabelRecord], records: int) -> Iterator[LabelRecord]:
    """So many labels: those there are, then the same under new ids."""
    for number, label in enumerate(itertools.islice(itertools.cycle(labels), records)):
        repeat = number // len(labels)
        if not repeat:
            yield label
            continue
        example = label.example.model_copy(update={"id": f"{label.id}#{repeat}"})
        # Neither id nor source is among what made the label: its key stays sound.
        yield label.model_copy(update={"example": example})


if __name__ == "__main__":
    main()
