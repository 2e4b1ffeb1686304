"""Compare labeler with other tools on the same records, server and latency, in one table.

    python benchmarks/peers [--write docs/measured/peers.md] [--cache FOLDER] [--with ragchecker]

ragas, deepeval and trulens run next to labeler, each in a virtual environment of its own, which is
made on the first run under ``--cache``. The server is a made-up one on this machine: figures say
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
from datetime import UTC, datetime
from pathlib import Path

# All come before the folder of this file, whose modules are named like some of the tests'.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from peers.environments import ROOT, cache_folder, version
from peers.measuring import measure
from peers.page import INTRO, NOTES
from peers.results import Plan, Tool
from peers.subjects import EXTRAS, TOOLS, Subject
from peers.table import figures, rows_of, verdicts

_SKIPPED = {"ragchecker": "its environment takes 6.6 GB and many minutes to make"}
"""Why a tool runs only where it is asked for."""


def heading(plan: Plan, options: argparse.Namespace, load: Sequence[float]) -> Iterator[str]:
    """What was run, with what, where."""
    given = [f"--only {name}" for name in options.only or ()]
    given += [f"--with {name}" for name in options.extra] + ["--quick"] * options.quick
    if not options.quick and plan.rounds != Plan().rounds:
        given.append(f"--rounds {plan.rounds}")
    command = shlex.join(["python", "benchmarks/peers", *" ".join(given).split()])
    yield f"Command: `{command}`  "
    names = dict.fromkeys(one.peer for one in chosen(options) if one.peer != "labeler")
    versions = ", ".join(f"{name} {version(name)}" for name in names)
    yield (
        f"Date: {datetime.now(UTC):%Y-%m-%d}, rag-labeler {_own_version()}, {versions}, "
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


def _own_version() -> str:
    lines = (ROOT / "pyproject.toml").read_text(encoding="utf-8").splitlines()
    return next(line.split('"')[1] for line in lines if line.startswith("version = "))


def chosen(options: argparse.Namespace) -> list[Subject]:
    """The tools that run."""
    wanted = [one for one in TOOLS if not options.only or one.peer in {"labeler", *options.only}]
    return [*wanted, *(one for one in EXTRAS if one.peer in options.extra)]


def measured(plan: Plan, options: argparse.Namespace, notes: list[str]) -> list[Tool]:
    """Measure each tool; one that does not run becomes a note."""
    try:
        return measure(chosen(options), plan, options.cache, notes)
    except (OSError, subprocess.SubprocessError) as error:
        said = str(getattr(error, "stderr", None) or error).strip().splitlines()
        raise SystemExit(said[-1] if said else type(error).__name__) from error


def arguments() -> argparse.ArgumentParser:
    """The options."""
    parser = argparse.ArgumentParser(
        prog="python benchmarks/peers", description=(__doc__ or "").partition("\n")[0]
    )
    add = parser.add_argument
    peers = [*dict.fromkeys(one.peer for one in TOOLS if one.peer != "labeler")]
    add("--only", choices=peers, action="append", help="besides labeler; may be given again")
    extras = [one.peer for one in EXTRAS]
    add("--with", choices=extras, action="append", default=[], dest="extra", help="as well")
    add("--quick", action="store_true", help="at a small scale, to see that everything runs")
    add("--rounds", type=int, default=Plan().rounds, help="default: %(default)s")
    add("--write", type=Path, help="a Markdown file for the result, besides standard output")
    add("--cache", type=Path, default=cache_folder(), help="where tools are installed: 2 GB")
    return parser


def main() -> int:
    """Measure everything, print the table, and say by the exit code whether goals were met."""
    options = arguments().parse_args()
    plan = Plan.quick() if options.quick else Plan(rounds=options.rounds)
    load, notes = os.getloadavg(), list[str]()
    tools = measured(plan, options, notes)
    lines = [*heading(plan, options, load), *rows_of(tools, figures(plan)), ""]
    lines += [*(f"{note}  " for note in notes), *_skipped(options.extra)]
    print("\n".join(lines))
    if options.write:
        options.write.parent.mkdir(parents=True, exist_ok=True)
        text = "\n".join([INTRO, *lines, NOTES]).rstrip() + "\n"
        options.write.write_text(text, encoding="utf-8")
    return int(False in verdicts(tools, figures(plan)))


def _skipped(wanted: Sequence[str]) -> Iterator[str]:
    for name, reason in _SKIPPED.items():
        if name not in wanted:
            yield f"{name} is left out: {reason}; `--with {name}` runs it.  "


if __name__ == "__main__":
    sys.exit(main())
