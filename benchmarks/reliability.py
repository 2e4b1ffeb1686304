"""Provoke the failures of long runs, and compare each figure with its goal.

    python benchmarks/reliability.py [--only NAME] [--quick] [--write docs/measured/reliability.md]

The provider is a made-up one on this machine, in a process of its own; what is measured is the
command ``labeler label``, in another, as people start it. Each run has a part of the page. Where a
goal is missed, the exit code is 1.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path

import fault_run
import reliability_decisions
import reliability_faults
import reliability_runs
from harness import Finding, findings_table, options, publish, today
from reliability_rates import rate, unrelated, unrelated_many
from reliability_runs import QUICK, RESPONSES, Scale

RUNS: dict[str, Callable[[Scale, Path], Iterator[Finding]]] = {
    "unrelated": unrelated,
    "unrelated-many": unrelated_many,
    "rate": rate,
    **reliability_runs.RUNS,
    "decisions": reliability_decisions.decisions,
}
"""Every run, by the name that ``--only`` takes."""
ALONE = ("unrelated", "unrelated-many", "mixed")
"""Runs that have the machine to themselves."""
SHAPES, PEERS = "faults", "peers"
"""Runs that have tables of their own."""


def run_one(name: str, scale: Scale) -> list[Finding]:
    """Carry out one run in a folder of its own; its findings are printed at once as well."""
    print(f"{name} …", file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix="reliability-") as folder:
        try:
            findings = list(RUNS[name](scale, Path(folder)))
        except Exception as error:  # noqa: BLE001 - the figures of the other runs are not lost
            what = f"{type(error).__name__}: {error}"
            findings = [Finding("the run itself", what, "ends", met=False)]
    print("\n".join(findings_table(findings)), file=sys.stderr)
    return findings


def run_all(names: Iterable[str], scale: Scale) -> Mapping[str, list[Finding]]:
    """Carry out runs; those that mostly wait for a limit go on next to the others."""
    names = list(names)
    with ThreadPoolExecutor() as pool:
        found = {name: run_one(name, scale) for name in names if name in ALONE}
        waiting = [name for name in names if name in {"large", "rate"}]
        side_runs = {name: pool.submit(run_one, name, scale) for name in waiting}
        rest = (name for name in names if name not in {*side_runs, *found})
        found |= {name: run_one(name, scale) for name in rest}
    return found | {name: job.result() for name, job in side_runs.items()}


def heading(name: str, load: float, *more: str) -> Iterator[str]:
    """What was run, with what, where."""
    command = ["python benchmarks/reliability.py", "--only", name, *more]
    yield f"Command: `{' '.join(command)}`  "
    packages = ("rag-labeler", "openai", "instructor")
    versions = ", ".join(f"{package} {version(package)}" for package in packages)
    yield f"Date: {today()}, {versions}, Python {sys.version.split()[0]}  "
    yield (
        f"Machine: {os.cpu_count()} cores; load average {load:.1f} when it began and "
        f"{os.getloadavg()[0]:.1f} when it ended\n"
    )


def about(name: str, scale: Scale) -> str:
    """What holds for all lines of a run."""
    count = {
        "key": scale.most,
        **dict.fromkeys(("two", "outage", "mixed"), scale.some),
        "kills-blind": scale.some // RESPONSES * RESPONSES,
        **dict.fromkeys(("budget", "large", "decisions"), scale.few),
    }.get(name, scale.many)
    if name == "memory":
        return (
            "The greatest memory of a process that reads one case, and what becomes of the case.\n"
        )
    if name == "mixed":
        return (
            f"{count:,} records. Hosted judges take a second or more for an answer; at 0.2 s, the\n"
            "processors of this machine are the bound, whatever goes wrong.\n"
        )
    if name in {"unrelated", "unrelated-many"}:
        return f"{count:,} records, at several servers side by side.\n"
    over = f", {RESPONSES} over each retrieval" * (name == "kills-blind")
    return (
        f"{count:,} records{over}, {scale.latency:g} s before each answer, "
        f"`--concurrency {scale.concurrency}`.\n"
    )


def shapes(scale: Scale) -> list[reliability_faults.Found]:
    """Servers that fail in one way each."""
    print(f"{SHAPES} …", file=sys.stderr)
    rows = scale.some if scale == QUICK else None
    with tempfile.TemporaryDirectory(prefix="reliability-") as folder:
        return list(reliability_faults.carry_out(Path(folder), rows=rows, seed=scale.seed))


def main() -> int:
    """Run everything, publish the parts, and say by the exit code whether every goal was met."""
    parser = options(__doc__)
    names = [*RUNS, SHAPES, PEERS]
    parser.add_argument("--only", choices=names, action="append", help="may be given again")
    parser.add_argument("--quick", action="store_true", help="to see that everything runs")
    given = parser.parse_args()
    scale, load = (QUICK if given.quick else Scale()), os.getloadavg()[0]
    chosen = given.only or [*RUNS, SHAPES]
    found = run_all([name for name in chosen if name in RUNS], scale)
    if given.quick:  # where it is a time, no goal holds
        found = {
            name: [one._replace(met=None) if one.timing else one for one in own]
            for name, own in found.items()
        }
    bodies = {name: [about(name, scale), *findings_table(found[name])] for name in found}
    met = all(one.met is not False for own in found.values() for one in own)
    if SHAPES in chosen:
        shaped = shapes(scale)
        bodies[SHAPES] = [*reliability_faults.lines(shaped)]
        met = met and all(one.met for one in shaped)
    if PEERS in chosen:
        bodies[PEERS] = [*fault_run.peers()]
    words = ["--quick"] if given.quick else []
    for name, body in bodies.items():
        publish(given.write, name, [*heading(name, load, *words), *body])
    return int(not met)


if __name__ == "__main__":
    sys.exit(main())
