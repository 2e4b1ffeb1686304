"""Time ``labeler metrics`` on a numbers file of a million records.

    PYTHONPATH=.:benchmarks python benchmarks/numbers_million.py [--rows 1000000]

The records are synthetic labels of RAGBench's size (``speed_labels.py``). A few thousand are
measured, and their rows repeat under ids and questions of their own. Prints the seconds and the
largest memory of the whole command, by the clock and by processor.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from labeler.calculators.export import write_numbers
from labeler.calculators.outcomes import checked_outcomes, measure_outcomes
from speed_labels import write_labels

MEASURED, REPEATS = 4000, 6
"""Rows that are measured, and their repetitions in a row group, as large as the command's."""


def write(folder: Path, count: int) -> Path:
    """Write a file of so many rows: measured ones, again and again as rows of their own."""
    labels, some, path = (folder / name for name in ("l.jsonl", "some.parquet", "numbers.parquet"))
    write_labels(labels, MEASURED)
    write_numbers(measure_outcomes(checked_outcomes(labels), facts=True), {}, some)
    table = pq.read_table(some)
    table = pa.concat_tables([table] * REPEATS)
    with pq.ParquetWriter(path, table.schema, compression="zstd") as writer:
        for start in range(0, count, table.num_rows):
            part = table.slice(0, count - start)
            numbers = range(start, start + part.num_rows)
            columns = {
                "id": [f"row-{number}" for number in numbers],
                "position": list(numbers),
                "key": [f"{number + 1:016x}" for number in numbers],
                "question_group": [f"{number + 1:016x}" for number in numbers],
            }
            for name, cells in columns.items():
                place = table.column_names.index(name)
                part = part.set_column(place, table.schema.field(name), pa.array(cells))
            writer.write_table(part)
    return path


def main() -> None:
    """Write the file and read it by the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        path = write(Path(made), options.rows)
        size = path.stat().st_size / options.rows
        print(f"{options.rows:,} rows, {size:.0f} bytes each")
        command = [sys.executable, "-m", "labeler", "metrics", str(path)]
        for more in ([], ["--by", "subset"]):
            before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
            subprocess.run([*command, *more], check=True, stdout=subprocess.DEVNULL)
            wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
            cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            named = " ".join(["labeler metrics", *more])
            print(f"{named}: {wall:.1f} s, {cpu:.1f} s of CPU, {after.ru_maxrss >> 10} MB at most")


if __name__ == "__main__":
    main()
