"""Print the worked examples of the metrics' definitions: published next to computed.

    python scripts/worked_examples.py

Exits with 1 where a figure differs that is not known for the document's own slip.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from published_examples import Figure, figures

_HEAD = ("document", "example", "metric", "printed", "computed", "")


def table(rows: Iterable[Figure]) -> str:
    """The figures in columns, each document named once, and under them why slips are slips."""
    shown, previous, slips = [_HEAD], "", []
    for row in rows:
        source = "" if row.source == previous else row.source
        previous = row.source
        shown.append((source, row.example, row.metric, row.printed, row.shown, row.verdict))
        if row.slip:
            slips.append(f"slip: {row.metric} of {row.example!r}: {row.slip}")
    return "\n".join([*_aligned(shown), "", *dict.fromkeys(slips)])


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def main() -> int:
    """Print the table."""
    found = figures()
    print(table(found))
    counts = {word: sum(f.verdict == word for f in found) for word in ("equal", "slip", "differs")}
    print("; ".join(f"{count} {word}" for word, count in counts.items()))
    return 1 if counts["differs"] else 0


if __name__ == "__main__":
    sys.exit(main())
