"""A server on which each kind of fault meets some of the calls."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from fault_figures import Work
from fault_run import Weather, label_run
from peers.records import made_up
from reliability_runs import Finding, Scale, at_most, exactly

_SHARE = 0.1
_TIMES_IDEAL = 2.0
_LATENCY_OF_JUDGES = 1.0
"""Seconds before an answer from which the judge is the bound, not this machine's processors."""


def mixed(scale: Scale, _: Path) -> Iterator[Finding]:
    """A tenth of all calls goes wrong; the package is called, in this process."""
    for latency, timeout in scale.mixed:
        work = Work(made_up(scale.some, scale.seed), scale.concurrency, timeout)
        began = time.process_time()
        run = label_run(work, Weather(_SHARE, scale.seed, latency))
        cpu = time.process_time() - began
        case = f"{latency:g} s before each answer, {scale.concurrency} in flight"
        ended = len(run.valid) + run.true_failures
        yield Finding(
            f"{case}: rows that end as a label or with the true reason",
            f"{len(run.valid):,} + {run.true_failures:,} of {scale.some:,}",
            "all",
            ended == scale.some and not run.unsaved,
        )
        yield exactly(f"{case}: requests after a good answer had come", run.asked_again or 0, 0)
        wall = at_most(
            f"{case}: wall time for {run.calls:,} calls, ideally {run.ideal_seconds:.1f} s",
            run.seconds,
            _TIMES_IDEAL * (run.ideal_seconds or 0),
            " s",
            timing=True,
        )
        if latency < _LATENCY_OF_JUDGES:
            wall = wall._replace(goal="none set: processors are the bound", met=None)
        yield wall
        each = 1_000 * cpu / scale.some
        yield Finding(f"{case}: CPU a record", f"{each:.1f} ms", timing=True)
