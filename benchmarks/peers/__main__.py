"""Compare labeler with other tools on the same records, server and latency, in one table.

    python benchmarks/peers [--only PEER] [--quick] [--write docs/measured/peers.md]

ragas, deepeval and trulens run next to labeler, each in a virtual environment of its own, which is
made on the first run. The server is a made-up one on this machine: figures say
what the tools ask and what it takes, and nothing of the quality of what they find. Where labeler
misses a goal, the exit code is 1.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import version as installed
from pathlib import Path

# Before the folder of this file, whose modules are named like some of the tests'.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness import options, publish, today
from peers.environments import cache_folder, said_by, version
from peers.measuring import measure
from peers.results import TOOLS, Plan, Subject
from peers.table import figures, rows_of, verdicts


def heading(plan: Plan, given: argparse.Namespace, load: Sequence[float]) -> Iterator[str]:
    """What was run, with what, where."""
    words = [f"--only {name}" for name in given.only or ()]
    if given.quick:
        words.append("--quick")
    if not given.quick and plan.rounds != Plan().rounds:
        words.append(f"--rounds {plan.rounds}")
    yield f"Command: `{shlex.join(['python', 'benchmarks/peers', *' '.join(words).split()])}`  "
    names = dict.fromkeys(one.peer for one in chosen(given) if one.peer != "labeler")
    versions = ", ".join(f"{name} {version(name)}" for name in names)
    yield (
        f"Date: {today()}, rag-labeler {installed('rag-labeler')}, {versions}, "
        f"Python {sys.version.split()[0]}  "
    )
    yield (
        f"Machine: {os.cpu_count()} cores that others use too; load average {load[0]:.1f} when it "
        f"began and {os.getloadavg()[0]:.1f} when it ended  "
    )
    yield (
        f"Times: {plan.records} records, {plan.latency:g} s before each answer, "
        f"concurrency {plan.concurrency}, median of {plan.rounds} rounds in which the tools take "
        f"turns; reuse: {plan.reused} records  "
    )
    yield ""


def chosen(given: argparse.Namespace) -> list[Subject]:
    """The tools that run."""
    return [one for one in TOOLS if not given.only or one.peer in {"labeler", *given.only}]


def main() -> int:
    """Measure everything, publish the table, and say by the exit code whether goals were met."""
    parser = options(__doc__)
    peers = [*dict.fromkeys(one.peer for one in TOOLS if one.peer != "labeler")]
    parser.add_argument("--only", choices=peers, action="append", help="may be given again")
    parser.add_argument("--quick", action="store_true", help="to see that everything runs")
    parser.add_argument("--rounds", type=int, default=Plan().rounds, help="default: %(default)s")
    given = parser.parse_args()
    plan = Plan.quick() if given.quick else Plan(rounds=given.rounds)
    load, notes = os.getloadavg(), list[str]()
    try:
        tools = measure(chosen(given), plan, cache_folder(), notes)
    except (OSError, subprocess.SubprocessError) as error:
        raise SystemExit(said_by(error)) from error
    lines = [*heading(plan, given, load), *rows_of(tools, figures(plan))]
    publish(given.write, "table", [*lines, "", *(f"{note}  " for note in notes)])
    return int(False in verdicts(tools, figures(plan)))


if __name__ == "__main__":
    sys.exit(main())
