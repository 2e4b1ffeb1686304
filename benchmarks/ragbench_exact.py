"""Recompute the published TRACe columns of RAGBench rows and count the equal ones.

    python benchmarks/ragbench_exact.py [FOLDER]

Every row is imported, written out and read back, and its four metrics are computed in the
``ragbench`` dialect. Equal means float-equal. Exits with 1 where any value differs.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path

import labeler
from labeler.labels.record import LabelRecord
from labeler.plugins.ragbench import read_ragbench
from ragbench_data import ragbench_files

COLUMNS = {
    "relevance:ragbench": "relevance_score",
    "utilization:ragbench": "utilization_score",
    "completeness:ragbench": "completeness_score",
    "adherence:ragbench": "adherence_score",
}
"""Metric ids, and the published columns that they reproduce."""


def equal_values(labels: Path) -> Counter[str]:
    """Count rows, rows without a label, and equal values by metric."""
    counts: Counter[str] = Counter()
    for outcome in labeler.api.read_labels(labels):
        counts["rows"] += 1
        if not isinstance(outcome, LabelRecord):
            counts["failed"] += 1
            continue
        (row,) = labeler.metrics([outcome], COLUMNS)
        published = outcome.example.metadata["published"]
        for metric, column in COLUMNS.items():
            counts[metric] += row.metrics[metric].value == float(published[column])
        counts["normalised"] += bool(outcome.normalised)
        counts["violating"] += bool(outcome.violations)
    return counts


def main() -> int:
    """Print one line a file, and the totals."""
    files = ragbench_files(sys.argv[1] if len(sys.argv) > 1 else None)
    if not files:
        print("no RAGBench rows here: name a folder of .jsonl.gz files; nothing was compared")
        return 0
    heads = [
        "file",
        "rows",
        *(f"{metric} equal" for metric in COLUMNS),
        "normalised",
        "kept as stored",
    ]
    print("| " + " | ".join(heads) + " |")
    print("|---" * len(heads) + "|")
    total: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for file in files:
            labels = Path(folder) / f"{file.name}.labels.jsonl"
            labeler.api.write_labels(read_ragbench(file), labels)
            counts = equal_values(labels)
            total.update(counts)
            print_line(file.name.partition(".")[0], counts)
    print_line("all", total)
    wrong = [metric for metric in COLUMNS if total[metric] != total["rows"]]
    return 1 if wrong or total["failed"] else 0


def print_line(name: str, counts: Counter[str]) -> None:
    """Print one row of the table."""
    cells = [
        counts["rows"],
        *(counts[m] for m in COLUMNS),
        counts["normalised"],
        counts["violating"],
    ]
    print(f"| {name} | " + " | ".join(map(str, cells)) + " |")


if __name__ == "__main__":
    sys.exit(main())
