"""What the scripts of all tools share; it runs in the environment of each.

    python PEER_run.py --url URL --records RECORDS --out OUT --form FORM

The first line of OUT is a JSON object with the ``seconds`` that scoring took, imports aside, its
``cpu`` seconds, and what it was ``ended_by``. Each other line is one record: ``id``, ``values`` by
metric (``null`` where there is no number) and ``errors`` by metric.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

Row = dict[str, Any]
Form = Callable[[list[Row], argparse.Namespace], list[Row]]
"""What scores rows in one of a tool's forms, and returns the lines of OUT."""


class Clock:
    """Begins when it is made."""

    def __init__(self) -> None:
        self._began, self._cpu = time.perf_counter(), time.process_time()

    def taken(self, ended_by: str | None = None) -> Row:
        """Return the first line of OUT, for a run that ends now."""
        seconds, cpu = time.perf_counter() - self._began, time.process_time() - self._cpu
        return {"seconds": seconds, "cpu": cpu, "ended_by": ended_by}


def main(forms: Mapping[str, Form], metrics: Iterable[str]) -> None:
    """Read, score, write.

    Args:
        forms: the tool's forms by their names.
        metrics: what is asked for unless other metrics are named.
    """
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("--records", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--form", choices=list(forms), required=True)
    parser.add_argument("--timeout", type=float, default=30.0, help="of a request, if there is one")
    parser.add_argument("--concurrency", type=int, default=16)
    parser.add_argument("--metrics", default=",".join(metrics))
    parser.add_argument("--model", default="gpt-4o-mini", help="a name that every tool knows")
    parser.add_argument("--threshold", type=float, default=0.5, help="of metrics that have one")
    parser.add_argument("--keep", action="store_true", help="answers, for the next run")
    options = parser.parse_args()
    options.metrics = options.metrics.split(",") if options.metrics else []
    rows = [json.loads(line) for line in options.records.read_text(encoding="utf-8").splitlines()]
    lines = forms[options.form](rows, options)
    options.out.write_text("".join(json.dumps(one) + "\n" for one in lines), encoding="utf-8")
