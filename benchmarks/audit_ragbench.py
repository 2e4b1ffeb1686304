"""Audit RAGBench's published labels, and measure the value of the suspicion score.

    python benchmarks/audit_ragbench.py [FOLDER] [--write docs/measured/audit.md]

The folder holds RAGBench rows as gzipped JSON Lines, one file a subset; by default it is the one
of ``ragbench_data.py``. Three things are printed as Markdown: how often each check flags the
published labels, the most suspicious of them by id, and how well suspicion of the embedded judge's
labels finds the records in which its verdict on the whole response differs from the published one.
With ``--write`` they replace the parts of that name in a page, which stand between
``<!-- begin NAME -->`` and ``<!-- end NAME -->``.

Weights were chosen on ``development`` rows (train and validation). False alarms of the checks of
texts and explanations were mended by reading findings in rows of every split, without regard to
whether the embedded judge was right there.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from judge_figures import area
from judges import judged_labels, line, shown, split_of, true_labels
from labeler.audit import Audit, audit_labels, findings_of, suspicion_score
from labeler.labels.record import LabelRecord
from ragbench_data import ragbench_files, ragbench_folder

EXAMPLES = 3
DEEP = (50, 200)
"""How many of the most suspicious records a person might read."""


# -- the published labels -------------------------------------------------------------------------


def subset_of(record: LabelRecord) -> str:
    """The data set of a row, without the split."""
    return str(record.example.metadata["dataset_name"]).rsplit("_", 1)[0]


def with_subset(record: LabelRecord) -> LabelRecord:
    """A record with a column to count by."""
    metadata = {**record.example.metadata, "subset": subset_of(record)}
    example = record.example.model_copy(update={"metadata": metadata})
    return record.model_copy(update={"example": example})


def rates_table(found: Audit) -> Iterator[str]:
    """Rates of all checks that had something to look at, over all rows and by subset."""
    subsets = sorted({row.group or "" for row in found.rows})
    yield line(["check", "applies to", "flagged", "rate", *subsets])
    yield line(["---", *["--:"] * (3 + len(subsets))])
    for check in found.checks:
        rows = [row for row in found.rows if row.check is check]
        records, flagged = sum(row.records for row in rows), sum(row.flagged for row in rows)
        if records:
            shares = [
                percent(
                    sum(row.flagged for row in rows if row.group == subset),
                    sum(row.records for row in rows if row.group == subset),
                )
                for subset in subsets
            ]
            counts = [f"{records:,}", flagged, percent(flagged, records)]
            yield line([f"`{check.id}`", *counts, *shares])


def percent(part: int, whole: int) -> str:
    """A share as a cell."""
    return f"{100 * part / whole:.2f} %" if whole else "n/a"


def examples(found: Audit) -> Iterator[str]:
    """The most suspicious records, one of each subset, by id: keys and counts alone."""
    seen: set[str | None] = set()
    for record in found.ranked():
        if record.group not in seen and len(seen) < EXAMPLES:
            seen.add(record.group)
            yield f"- `{record.id}`, suspicion score {record.suspicion:.2f}:"
            for finding in record.findings:
                keys = f" ({', '.join(finding.keys)})" if finding.keys else ""
                yield f"  - `{finding.check}`{keys}"


# -- value of the suspicion score -----------------------------------------------------------------


class Ranked(NamedTuple):
    """A record to rank: its suspicion score, and true if the verdict is wrong."""

    suspicion: float
    wrong: bool


def share_among(rows: Sequence[Ranked], deep: int) -> float | None:
    """Share of wrong verdicts among the most suspicious; ties are averaged."""
    left, wrong = float(min(deep, len(rows))), 0.0
    if not left:
        return None
    read = left
    ordered = sorted(rows, key=lambda row: -row.suspicion)
    for _, equal in groupby(ordered, key=lambda row: row.suspicion):
        group = list(equal)
        taken = min(left, len(group))
        wrong += taken * fmean(row.wrong for row in group)
        left -= taken
    return wrong / read


def suspicion_table(pairs: Sequence[tuple[LabelRecord, LabelRecord]]) -> Iterator[str]:
    """The suspicion score's power to find wrong verdicts, next to the lowest support score."""
    among = [f"wrong among {deep} most suspicious" for deep in DEEP]
    yield line(["rows", "records", "ranked by", "AUROC", "wrong on average", *among])
    yield line(["---", "--:", "---", *["--:"] * (2 + len(DEEP))])
    for split in ("development", "test"):
        part = [(truth, judged) for truth, judged in pairs if split_of(truth) == split]
        for name, score in (("suspicion score", _suspicion), ("lowest support score", _lowest)):
            rows = [Ranked(score(judged), _differs(truth, judged)) for truth, judged in part]
            wrong = fmean(row.wrong for row in rows) if rows else None
            cells = [shown(area(rows)), *(shown(v) for v in (wrong, *_among(rows)))]
            yield line([split, f"{len(rows):,}", name, *cells])


def _among(rows: Sequence[Ranked]) -> list[float | None]:
    return [share_among(rows, deep) for deep in DEEP]


def _suspicion(record: LabelRecord) -> float:
    return suspicion_score(findings_of(record))


def _lowest(record: LabelRecord) -> float:
    return -min(record.scores.support.values(), default=0.0) if record.scores else 0.0


def _differs(truth: LabelRecord, judged: LabelRecord) -> bool:
    return truth.label.overall_supported != judged.label.overall_supported


# -- all of it ------------------------------------------------------------------------------------


def report(truth: Sequence[LabelRecord]) -> dict[str, list[str]]:
    """Every part by its name, line by line."""
    records = [with_subset(record) for record in truth]
    started = time.process_time()
    found = audit_labels(records, by="subset")
    each = (time.process_time() - started) / len(records)
    judged = {outcome.id: outcome for outcome in judged_labels(None, truth).outcomes}
    pairs = [(t, j) for t in truth if isinstance(j := judged[t.id], LabelRecord)]
    return {
        "rates": [
            (
                f"{len(records):,} records: {found.worst['contradiction']:,} with a contradiction, "
                f"{found.worst['suspicion']:,} suspicious, {found.worst['note']:,} with "
                f"notes only; {each * 1000:.1f} ms of processor time a record."
            ),
            "",
            *rates_table(found),
        ],
        "examples": list(examples(found)),
        "doubt": list(suspicion_table(pairs)),
    }


def replaced(page: str, parts: dict[str, Iterable[str]]) -> str:
    """A page with its parts of those names replaced."""
    for name, lines in parts.items():
        begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
        if page.count(begin) != 1 or page.count(end) != 1:
            raise SystemExit(f"the page must hold {begin} and {end} once each")
        before, _, rest = page.partition(begin)
        page = "\n".join([before + begin, *lines, end + rest.partition(end)[2]])
    return page


def main() -> None:
    """Read, audit_labels, judge, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", nargs="?", type=Path, default=ragbench_folder())
    parser.add_argument("--write", type=Path, metavar="FILE", help="also put them into a page")
    options = parser.parse_args()
    files = ragbench_files(options.folder)
    if not files:
        parser.error(f"no RAGBench rows in {options.folder}; name a folder of .jsonl.gz files")
    truth = [o for o in true_labels(files, "all") if isinstance(o, LabelRecord)]
    parts = report(truth)
    for name, lines in parts.items():
        print(f"## {name}\n", *lines, "", sep="\n")
    if options.write:
        page = options.write.read_text(encoding="utf-8")
        options.write.write_text(replaced(page, dict(parts)), encoding="utf-8")


if __name__ == "__main__":
    main()
