"""Provoke the failures of long runs, and compare each figure with its goal.

    python benchmarks/reliability.py [--only NAME] [--quick] [--write docs/measured/reliability.md]

The provider is a made-up one on this machine, in a process of its own; what is measured is the
command ``labeler label``, in another, as people start it. Each run has a section of the page, and
those of other runs stay. Where a goal is missed, the exit code is 1.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import fault_run
import reliability_decisions
import reliability_faults
import reliability_runs
from fault_figures import line, report
from hostile_input import measure
from peers.environments import cache_folder
from peers.environments import version as version_of
from reliability_mixed import mixed
from reliability_rates import rate, unrelated, unrelated_many
from reliability_runs import QUICK, RESPONSES, Finding, Scale, at_most


def memory(_: Scale, __: Path) -> Iterator[Finding]:
    """Hostile files and answers are read."""
    for one in measure():
        yield at_most(f"{one.case} ({one.outcome})", one.megabytes, one.goal, " MB")


RUNS: dict[str, Callable[[Scale, Path], Iterator[Finding]]] = {
    "unrelated": unrelated,
    "unrelated-many": unrelated_many,
    "mixed": mixed,
    "memory": memory,
    "rate": rate,
    **reliability_runs.RUNS,
    "decisions": reliability_decisions.decisions,
}
"""Every run, by the name that ``--only`` takes."""
ALONE = ("throughput", "unrelated", "unrelated-many", "mixed")
"""Runs that have the machine to themselves."""
SHAPES, PEERS = "faults", "peers"
"""Runs that have tables of their own."""
TITLES: Mapping[str, str] = {
    "unrelated": "Rate limits that others cause",
    "unrelated-many": "Rate limits that others cause, with many requests in flight",
    SHAPES: "Servers that fail in one way each",
    "mixed": "10 % of all calls go wrong",
    PEERS: "10 % of all calls go wrong, next to other tools",
    "memory": "Memory for hostile files and answers",
    "kills": "A process that is killed",
    "kills-blind": "A process that is killed, with blind relevance",
    "decisions": "A judge that answers in probabilities: kills, faults and a budget",
    "jevcompat": "A judge that answers in probabilities: faults of its server",
    "budget": "A budget for a part of the rows",
    "two": "Two processes on one store",
    "rate": "A server that limits the rate",
    "outage": "An outage",
    "large": "One large record",
    "key": "A wrong key",
    "throughput": "Throughput",
}
"""Sections of the page, in order, by the run that makes each; real_deciders.py makes jevcompat."""

INTRO = """\
# Reliability

Every goal below is met: no stored label is lost or paid for twice, and a kill costs at most the
answers in flight. Long runs meet kills, limits, outages and wrong keys; here they meet them on
purpose.

A made-up provider (`tests/wire/provider.py`) answers on the same machine. It runs in another
process, outlives its clients, and counts its requests and charges. Each line is a run of the
command `labeler label`, as people start it, with a new store; throughput, and 10 % of all calls
that go wrong, are measured in a process that has imported everything. The figures show how
labeler behaves, not how good labels are. Those with a clock (⏱) depend on the machine and on what
else it does: all processes of a run share its cores. Each section names the command that made it;
with `--write docs/measured/reliability.md` it replaces its section alone.
"""


def run_one(name: str, scale: Scale) -> list[Finding]:
    """Carry out one run in a folder of its own; its findings are printed at once as well."""
    print(f"{name} …", file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix="reliability-") as folder:
        try:
            findings = list(RUNS[name](scale, Path(folder)))
        except Exception as error:  # noqa: BLE001 - the figures of the other runs are not lost
            what = f"{type(error).__name__}: {error}"
            findings = [Finding("the run itself", what, "ends", met=False)]
    print("\n".join(table(findings)), file=sys.stderr)
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


def without_verdict(finding: Finding) -> Finding:
    """A figure of a small scale: where it is a time, no goal holds."""
    return finding._replace(met=None) if finding.timing else finding


def heading(name: str, load: float, *options: str) -> Iterator[str]:
    """What was run, with what, where."""
    yield f"## {TITLES[name]}"
    yield ""
    command = ["python benchmarks/reliability.py", "--only", name, *options]
    yield f"Command: `{' '.join(command)}`  "
    versions = ", ".join(
        f"{name} {version(name)}" for name in ("rag-labeler", "openai", "instructor")
    )
    yield f"Date: {datetime.now(UTC):%Y-%m-%d}, {versions}, Python {sys.version.split()[0]}  "
    yield (
        f"Machine: {os.cpu_count()} cores; load average {load:.1f} when it began and "
        f"{os.getloadavg()[0]:.1f} when it ended"
    )
    yield ""


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


def table(findings: Iterable[Finding]) -> Iterator[str]:
    """Every figure with its goal."""
    yield line(("what", "figure", "goal", "met"))
    yield line(["---"] * 4)
    for finding in findings:
        met = {True: "yes", False: "**no**", None: ""}[finding.met]
        clock = " ⏱" if finding.timing else ""
        yield line((finding.what + clock, finding.figure, finding.goal, met))


def peers(cache: Path) -> Iterator[str]:
    """The fault run next to other tools, as ``fault_run.py`` prints it."""
    options = fault_run.arguments().parse_args(["--cache", str(cache)])
    weather = fault_run.Weather(options.share, options.seed, options.latency)
    notes: list[str] = []
    found = fault_run.run_labeler(options, weather)
    found += fault_run.run_peers(options, weather, notes)
    names = dict.fromkeys(name for name, _, _ in fault_run.FORMS)
    yield (
        f"Peers: {', '.join(f'{name} {version_of(name)}' for name in names)}; "
        f"seed {weather.seed}, {weather.latency:g} s before each answer  "
    )
    yield f"Faults, each as likely: {', '.join(weather.kinds)}  "
    yield ""
    yield from report(found, notes)


def shapes(scale: Scale) -> list[reliability_faults.Found]:
    """Servers that fail in one way each."""
    print(f"{SHAPES} …", file=sys.stderr)
    rows = scale.some if scale == QUICK else None
    with tempfile.TemporaryDirectory(prefix="reliability-") as folder:
        return list(reliability_faults.carry_out(Path(folder), rows=rows, seed=scale.seed))


def merged(page: str, sections: Mapping[str, str]) -> str:
    """Return a page whose sections are replaced or added; those of other runs stay.

    Args:
        page: the former page.
        sections: by run.
    """
    parts = re.split(r"^(?=## )", page, flags=re.MULTILINE)[1:]
    former = {part.partition("\n")[0].removeprefix("## "): part.rstrip() + "\n" for part in parts}
    texts = (sections.get(name) or former.get(title) for name, title in TITLES.items())
    return "\n".join([INTRO, *filter(None, texts)])


def arguments() -> argparse.ArgumentParser:
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    add = parser.add_argument
    names = [*RUNS, SHAPES, PEERS]
    add("--only", choices=names, action="append", help="one run; may be given again")
    add("--quick", action="store_true", help="at a small scale, to see that everything runs")
    add("--write", type=Path, help="a Markdown page whose sections of these runs are replaced")
    add("--cache", type=Path, default=cache_folder(), help=f"where {PEERS} are installed: 1 GB")
    return parser


def main() -> int:
    """Run everything, print the sections, and say by the exit code whether every goal was met."""
    options = arguments().parse_args()
    scale, load = (QUICK if options.quick else Scale()), os.getloadavg()[0]
    names = options.only or [*RUNS, SHAPES]
    found = run_all([name for name in names if name in RUNS], scale)
    if options.quick:
        found = {name: [*map(without_verdict, findings)] for name, findings in found.items()}
    bodies = {name: [about(name, scale), *table(found[name])] for name in found}
    met = all(finding.met is not False for findings in found.values() for finding in findings)
    if SHAPES in names:
        shaped = shapes(scale)
        bodies[SHAPES] = [*reliability_faults.table(shaped)]
        met = met and all(one.met for one in shaped)
    if PEERS in names:
        bodies[PEERS] = [*peers(options.cache)]
    small = ["--quick"] * options.quick
    sections = {
        name: "\n".join([*heading(name, load, *small), *body]).rstrip() + "\n"
        for name, body in bodies.items()
    }
    print("\n".join(sections.values()))
    if options.write:
        options.write.parent.mkdir(parents=True, exist_ok=True)
        former = options.write.read_text(encoding="utf-8") if options.write.exists() else ""
        options.write.write_text(merged(former, sections), encoding="utf-8")
    return int(not met)


if __name__ == "__main__":
    sys.exit(main())
