"""Recompute every metric of a store or label file: no judge, no network, no key.

    python scripts/recompute.py LABELS [COLUMN]

Prints one JSON object a metric; with a metadata column, one for each of its values. Copy this file
and change it.
"""

from __future__ import annotations

import json
import os
import sys

import labeler


def main(labels: str, by: str | None = None) -> None:
    """Print the summary of all metrics in all definitions."""
    for row in labeler.summary(labeler.api.read_labels(labels), ["all"], by=by):
        print(json.dumps(row.as_json(labeler.__version__), ensure_ascii=False))


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    try:
        main(*sys.argv[1:])
    except labeler.LabelerError as error:
        sys.exit(str(error))
    except BrokenPipeError:  # the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
