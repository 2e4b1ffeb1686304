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
from harness import table
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
    found = dict[str, Counter[str]]()
    with tempfile.TemporaryDirectory() as folder:
        for file in files:
            labels = Path(folder) / f"{file.name}.labels.jsonl"
            labeler.api.write_labels(read_ragbench(file), labels)
            found[file.name.partition(".")[0]] = equal_values(labels)
    total = sum(found.values(), Counter[str]())
    columns = {"rows": "rows", **{metric: f"{metric} equal" for metric in COLUMNS}}
    columns |= {"normalised": "normalised", "violating": "kept as stored"}
    lines = (
        [name, *(one[key] for key in columns)] for name, one in (found | {"all": total}).items()
    )
    print(*table(["file", *columns.values()], lines), sep="\n")
    wrong = [metric for metric in COLUMNS if total[metric] != total["rows"]]
    return 1 if wrong or total["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
