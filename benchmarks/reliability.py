"""Provoke the failures of long runs, and compare each figure with its goal.

    python benchmarks/reliability.py [--only NAME] [--quick] [--write docs/reliability.md]

The provider is a made-up one on this machine, in a process of its own; what is measured is the
command ``labeler label``, in another, as people start it. Where a goal is missed, the exit code
is 1.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import fault_run
import reliability_faults
import reliability_runs
from fault_figures import line, report
from peers.environments import cache_folder
from peers.environments import version as version_of
from reliability_faults import Found
from reliability_rates import rate, unrelated, unrelated_many
from reliability_runs import QUICK, Finding, Scale

RUNS = {
    **reliability_runs.RUNS,
    "rate": rate,
    "unrelated": unrelated,
    "unrelated-many": unrelated_many,
}
"""Every run, by the name that ``--only`` takes."""
ALONE = ("throughput", "unrelated", "unrelated-many")
"""Runs beside which nothing goes on."""
SHAPES = "faults"
"""The run that has a table of its own."""

Findings = Mapping[str, list[Finding]]

INTRO = """\
# Reliability

Long runs meet kills, limits, outages and wrong keys. Here they meet them on purpose. A made-up
provider (`tests/wire/provider.py`) answers on the same machine, in a process of its own that
outlives its clients and counts what it is asked and what it is paid for. Each line is a run of the
command `labeler label` as people start it, each with a new store; only throughput is measured in a
process that has imported everything. The figures say how labeler behaves, and nothing of the
quality of labels. Those marked with a clock (⏱) depend on the machine and on what else it does: all
processes of a run share its cores, and the runs that mostly wait (large and rate) go on beside the
others, once throughput is measured.
"""


def run_one(name: str, scale: Scale) -> list[Finding]:
    """Carry out one run in a folder of its own; what it found is told at once as well."""
    print(f"{name} …", file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix="reliability-") as folder:
        try:
            findings = list(RUNS[name](scale, Path(folder)))
        except Exception as error:  # noqa: BLE001 - the figures of the other runs are not lost
            what = f"{type(error).__name__}: {error}"
            findings = [Finding("the run itself", what, "ends", met=False)]
    print("\n".join(rows(name, findings)), file=sys.stderr)
    return findings


def run_all(
    names: Iterable[str], scale: Scale, also: Iterable[str] = ()
) -> tuple[Findings, Sequence[str]]:
    """Carry out runs; those that mostly wait for a limit go on beside the others.

    Args:
        names: of runs.
        scale: how large they are.
        also: lines that are made at the same time.
    """
    names = list(names)
    with ThreadPoolExecutor() as pool:
        found = {name: run_one(name, scale) for name in names if name in ALONE}
        lines = pool.submit(list, also)
        waiting = [name for name in names if name in {"large", "rate"}]
        beside = {name: pool.submit(run_one, name, scale) for name in waiting}
        rest = (name for name in names if name not in {*beside, *found})
        found |= {name: run_one(name, scale) for name in rest}
    found |= {name: job.result() for name, job in beside.items()}
    return {name: found[name] for name in names}, lines.result()


def without_verdict(finding: Finding) -> Finding:
    """A figure of a small scale: where it is a time, no goal holds."""
    return finding._replace(met=None) if finding.timing else finding


def heading(
    scale: Scale, load: tuple[float, float, float], options: Iterable[str]
) -> Iterator[str]:
    """What was run, with what, where."""
    yield f"Command: `{shlex.join(['python', 'benchmarks/reliability.py', *options])}`  "
    versions = ", ".join(
        f"{name} {version(name)}" for name in ("rag-labeler", "openai", "instructor")
    )
    yield f"Date: {datetime.now(UTC):%Y-%m-%d}, {versions}, Python {sys.version.split()[0]}  "
    yield (
        f"Machine: {os.cpu_count()} cores that others use too; load average {load[0]:.1f} when it "
        f"began and {os.getloadavg()[0]:.1f} when it ended  "
    )
    yield (
        f"Unless a line says otherwise: {scale.latency:g} s before each answer, "
        f"`--concurrency {scale.concurrency}`; kills, rate, unrelated and throughput with "
        f"{scale.many:,} records, two and outage with {scale.some:,}, budget and large with "
        f"{scale.few:,}  "
    )
    yield ""


def rows(name: str, findings: Iterable[Finding]) -> Iterator[str]:
    """The lines of one run."""
    for finding in findings:
        met = {True: "yes", False: "**no**", None: ""}[finding.met]
        clock = " ⏱" if finding.timing else ""
        yield line((name, finding.what + clock, finding.figure, finding.goal, met))


def table(found: Findings) -> Iterator[str]:
    """Every figure beside its goal."""
    yield line(("run", "what", "figure", "goal", "met"))
    yield line(["---"] * 5)
    for name, findings in found.items():
        yield from rows(name, findings)
    yield ""


def faults(cache: Path) -> Iterator[str]:
    """The fault run beside the peers, as ``fault_run.py`` prints it."""
    options = fault_run.arguments().parse_args(["--cache", str(cache)])
    weather = fault_run.Weather(options.share, options.seed, options.latency)
    notes: list[str] = []
    print("faults …", file=sys.stderr)
    found = fault_run.run_labeler(options, weather)
    found += fault_run.run_peers(options, weather, notes)
    peers = dict.fromkeys(name for name, _, _ in fault_run.FORMS)
    yield f"## {weather.share:.0%} of all calls go wrong"
    yield ""
    yield "Command: `python benchmarks/fault_run.py`  "
    yield (
        f"Peers: {', '.join(f'{peer} {version_of(peer)}' for peer in peers)}; "
        f"seed {weather.seed}, {weather.latency:g} s before each answer  "
    )
    yield f"Faults, each as likely: {', '.join(weather.kinds)}  "
    yield ""
    yield from report(found, notes)


def shapes(scale: Scale) -> list[Found]:
    """Servers that fail in one way each."""
    print(f"{SHAPES} …", file=sys.stderr)
    rows = scale.some if scale == QUICK else None
    with tempfile.TemporaryDirectory(prefix="reliability-") as folder:
        return list(reliability_faults.carry_out(Path(folder), rows=rows, seed=scale.seed))


def arguments() -> argparse.ArgumentParser:
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    add = parser.add_argument
    add("--only", choices=[*RUNS, SHAPES], action="append", help="one run; may be given again")
    add("--quick", action="store_true", help="at a small scale, to see that everything runs")
    add("--write", type=Path, help="a Markdown file for the result, besides standard output")
    add("--with-faults", action="store_true", help="the fault run beside the peers as well")
    add("--cache", type=Path, default=cache_folder(), help="where peers are installed: 1 GB")
    return parser


def main() -> int:
    """Run everything, print the table, and say by the exit code whether every goal was met."""
    options = arguments().parse_args()
    scale, load = (QUICK if options.quick else Scale()), os.getloadavg()
    faulty = faults(options.cache) if options.with_faults else ()
    names = options.only or [*RUNS, SHAPES]
    found, more = run_all([name for name in names if name != SHAPES], scale, faulty)
    shaped = shapes(scale) if SHAPES in names else []
    if options.quick:
        found = {
            name: [without_verdict(one) for one in findings] for name, findings in found.items()
        }
    given = [f"--only {name}" for name in options.only or ()] + ["--quick"] * options.quick
    given += ["--with-faults"] * options.with_faults
    lines = [*heading(scale, load, " ".join(given).split()), *table(found), *more]
    lines += reliability_faults.table(shaped) if shaped else ()
    print("\n".join(lines))
    if options.write:
        options.write.parent.mkdir(parents=True, exist_ok=True)
        text = "\n".join([INTRO, *lines]).rstrip() + "\n"
        options.write.write_text(text, encoding="utf-8")
    missed = any(finding.met is False for findings in found.values() for finding in findings)
    return int(missed or not all(one.met for one in shaped))


if __name__ == "__main__":
    sys.exit(main())
