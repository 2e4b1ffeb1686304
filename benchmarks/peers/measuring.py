"""Run each tool of the comparison in its own process, against a counting server."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import ServerProcess, spent, write_rows
from peers.environments import interpreter, own_interpreter, quiet, run_peer, said_by, size
from peers.records import made_up, with_references
from peers.results import Installed, Plan, Reuse, Run, Spent, Subject, Tool

_IMPORTS = 3
"""How often an import is timed, after one that is not."""

_MODELS = ("gpt-4o-mini", "gpt-4o")
"""The judge model, and another."""


def measure(subjects: Iterable[Subject], plan: Plan, cache: Path, notes: list[str]) -> list[Tool]:
    """Measure tools; they take turns, so that all see the same load.

    Args:
        subjects: which.
        plan: how much.
        cache: where environments are kept.
        notes: gets a line for each tool that does not run.
    """
    pythons = {peer: _python(peer, cache, notes) for peer in {one.peer: 0 for one in subjects}}
    ready = [
        Bench(one, python, plan) for one in subjects if (python := pythons[one.peer]) is not None
    ]
    rounds: dict[str, list[Run]] = {bench.subject.name: [] for bench in ready}
    for number in range(plan.rounds):
        for bench in ready:
            _say(f"{bench.subject.name}: round {number + 1}")
            rounds[bench.subject.name].append(bench.alone(plan.records))
    return [bench.finished(rounds[bench.subject.name]) for bench in ready]


def _python(peer: str, cache: Path, notes: list[str]) -> Path | None:
    """The Python that has a tool, which is installed if need be; what hinders it is noted."""
    _say(f"{peer}: environment")
    try:
        return own_interpreter(cache) if peer == "labeler" else interpreter(peer, cache)
    except (OSError, subprocess.SubprocessError) as error:
        notes.append(f"{peer} is left out: {said_by(error)}")
        return None


def _say(what: str) -> None:
    print(f"{what} …", file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Bench:
    """A tool with all that it takes to run it."""

    subject: Subject
    python: Path
    plan: Plan

    def alone(self, count: int, **changed: Any) -> Run:  # noqa: ANN401 - options of the script
        """Run the tool in a working directory of its own; see :meth:`Turn.run`."""
        with tempfile.TemporaryDirectory() as folder:
            return Turn(self, Path(folder)).run(count, **changed)

    def finished(self, rounds: Sequence[Run]) -> Tool:
        """The tool with its rounds and all else that is measured of it."""
        one, plan = self.subject, self.plan
        _say(f"{one.name}: about {plan.calls} calls, reuse, import")
        records = plan.calls // one.calls
        return Tool(
            name=one.name,
            metrics=one.metrics,
            rounds=rounds,
            loaded=self.alone(records) if records > plan.records else rounds[-1],
            reuse=self._reuse() if one.reuses else None,
            installed=self._installed() if one.own_column else None,
        )

    def _reuse(self) -> Reuse:
        """Runs that share a working directory; the server answers at once."""
        count, other = self.plan.reused, _MODELS[1]
        fewer = {"metrics": ",".join(self.subject.fewer)}
        with tempfile.TemporaryDirectory() as folder:
            turn = Turn(self, Path(folder))

            def calls(**changed: Any) -> int:  # noqa: ANN401 - options of the script
                return turn.run(count, latency=0, keep=True, **changed).spent.calls

            return Reuse(
                records=count,
                metrics=len(self.subject.fewer),
                first=calls(**fewer),
                rerun=calls(**fewer),
                added=calls(),
                threshold=calls(threshold=0.7) if self.subject.threshold else None,
                other_model=calls(model=other),
                whole=self.alone(count, latency=0, model=other).spent.calls,
            )

    def _installed(self) -> Installed:
        """What the environment takes, and what importing the tool does."""
        megabytes, packages = size(self.python)
        imports = self.subject.imports
        _seconds(self.python, imports)
        began = [_seconds(self.python, imports) for _ in range(_IMPORTS)]
        without = [_seconds(self.python, "pass") for _ in range(_IMPORTS)]
        return Installed(megabytes, packages, statistics.median(began) - statistics.median(without))


# -- runs -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Turn:
    """Runs of one tool that share a working directory, and with it what the tool keeps there."""

    bench: Bench
    home: Path

    def run(self, count: int, **changed: Any) -> Run:  # noqa: ANN401 - options of the script
        """Run the tool on made-up records.

        Args:
            count: of records.
            changed: options of its script that differ; ``latency`` is the server's.
        """
        subject, plan = self.bench.subject, self.bench.plan
        rows = with_references(made_up(count))
        records = write_rows(self.home / "records.jsonl", rows)
        server = CountingProcess(records, changed.pop("latency", plan.latency))
        options = {
            "form": subject.form,
            "timeout": plan.timeout,
            "concurrency": plan.concurrency,
            "model": _MODELS[0],
            "metrics": ",".join(subject.metrics),
        }
        python, given = self.bench.python, options | changed
        whole, results = run_peer(subject.peer, python, rows, server, home=self.home, **given)
        values = [value for result in results for value in result["values"].values()]
        known = {"missing": values.count(None), "ended_by": whole["ended_by"]}
        return Run(count, whole["seconds"], whole["cpu"], server.spent, **known)


class CountingProcess(ServerProcess):
    """The counting server, while its context is entered."""

    def __init__(self, records: Path, latency: float) -> None:
        self.spent = Spent(0, 0, 0, 0, 0, 0, 0.0, {})
        """What it was sent; known at the end."""
        super().__init__("peers.counting", "--records", str(records), "--latency", str(latency))

    def on_end(self, output: str) -> None:
        """Read the counts."""
        if output.strip():
            self.spent = Spent(**json.loads(output))


def _seconds(python: Path, code: str) -> float:
    """How long Python takes to run something."""
    with tempfile.TemporaryDirectory() as home:
        command = (python, "-W", "ignore", "-c", code)
        return spent(*command, cwd=home, env=quiet(Path(home)), stderr=subprocess.DEVNULL).seconds
