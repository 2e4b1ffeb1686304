"""Labeling on many processors and machines with Ray Data, shard by shard: the engine ``ray``.

A shard is some rows of a Parquet file, which one worker labels together. The variable
``RAY_ADDRESS`` names the cluster; otherwise Ray is started here, with a new token.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import pickle
import re
import secrets
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.compute as pc
import pyarrow.parquet as pq

from labeler.cli.label import RunReport, exit_code
from labeler.cli.terminal import notify
from labeler.data.formats import Raw
from labeler.data.formats.arrow_files import arrow_errors, raw_rows
from labeler.data.formats.parquet_files import READ_LIMITS, ParquetRows
from labeler.data.label_files import SHARDS, parts_of, replaced, write_outcomes
from labeler.data.lines import is_remote, open_bytes
from labeler.data.options import ExampleOptions
from labeler.data.rows import RowStream
from labeler.errors import FatalJudgeError, LabelerError, UsageError
from labeler.judges.judge import Judge
from labeler.judges.limits import Budget
from labeler.judges.opening import open_judge
from labeler.judges.prompting import prompt_file, read_instructions
from labeler.labeling.options import LabelOptions, TaskOptions
from labeler.labeling.pipeline import run_tasks
from labeler.labeling.progress import RunCounts, RunEvents
from labeler.labeling.run import Run, require_bounds
from labeler.labeling.tasks import LabelTasks, label_tasks
from labeler.labels.record import AnyRecord
from labeler.sentences.display import plural
from labeler.store.disk import DiskStore
from labeler.version import install_command

SHARD_ROWS = 1000  # at most: a worker labels them in minutes
_MOST_BEGUN = 4  # workers that may begin a shard; all but the last one died
_MANIFEST = "_labeling.json"  # holds the configuration; Parquet readers ignore it


@dataclass(frozen=True)
class Work:
    """The configuration of all workers; ``store`` and ``output`` are folders that all can reach."""

    judge: Callable[[], Judge]
    options: LabelOptions
    store: Path
    output: Path

    def tasks(self) -> LabelTasks:
        """Open the judge, which finds its secrets where this runs."""
        return label_tasks(self.judge(), self.options)


class Shard(NamedTuple):
    """The rows of a row group from ``start`` on, before ``stop``, with one name in all runs."""

    name: str
    file: str
    group: int
    start: int
    stop: int

    def raws(self) -> Iterator[Raw]:
        """Read the rows, which are numbered as in the whole file."""
        with arrow_errors(self.file), open_bytes(self.file) as source:
            rows = ParquetRows(self.file, source)
            before = sum(rows.counts[: self.group]) + self.start
            batches = rows.batches(self.group, self.start, self.stop)
            yield from raw_rows(self.file, batches, before=before)


def plan(
    inputs: Sequence[str], work: Work, notice: Callable[[str], object]
) -> dict[Shard, RunCounts | None]:
    """Return the shards of Parquet files, each with its counts if it is finished; nothing is sent.

    Raises:
        UsageError: the rows cannot be labeled, the budget cannot be kept, or the output folder or
            the store cannot be used.
    """
    names = [part for name in inputs for part in parts_of(name) or [name]]
    files = sorted({name if is_remote(name) else str(Path(name).absolute()) for name in names})
    if others := [file for file in files if not file.lower().endswith(".parquet")]:
        raise UsageError(f"{others[0]} is not a Parquet file or a folder of them, as Ray needs")
    found = [shard for file in files for shard in _shards_of(file)]
    shards = {shard.name: shard for shard in found}
    if len(shards) < len(found):
        raise UsageError("two of the files have the same name and the same rows: name one of them")
    tasks, options = work.tasks(), work.options
    require_bounds([tasks.judge], options.limits())
    RowStream(options.open(files), tasks.needs, notice)  # a fault of all rows costs nothing
    _require_own_folder(work, set(shards), tasks.judge)
    DiskStore(work.store).close()
    with ThreadPoolExecutor() as readers:
        labels = (work.output / f"{name}.parquet" for name in shards)
        counts = readers.map(partial(_counts, retry_failed=options.retry_failed), labels)
        return dict(zip(shards.values(), counts, strict=True))


def _shards_of(file: str) -> Iterator[Shard]:
    """Yield the shards of a file, named after it and its footer, which has sizes and extremes."""
    with arrow_errors(file), open_bytes(file) as source:
        counts = ParquetRows(file, source).counts
        source.seek(-8, 2)
        length = int.from_bytes(source.read(4), "little")
        source.seek(-8 - length, 2)
        digest = hashlib.sha256(source.read(length)).hexdigest()[:12]
    stem = re.sub(r"[^A-Za-z0-9_-]+", "_", Path(file).stem)[:60]
    for group, count in enumerate(counts):
        for start in range(0, count, SHARD_ROWS):
            name = f"{stem}-{digest}-{group:05d}-{start:07d}"
            yield Shard(name, file, group, start, min(start + SHARD_ROWS, count))


def _require_own_folder(work: Work, names: set[str], judge: Judge) -> None:
    """Reject labels of other rows or of another configuration; record the configuration."""
    with suppress(OSError):  # writing to it reports the fault
        work.output.mkdir(parents=True, exist_ok=True)
    if strange := sorted({file.stem for file in work.output.glob("*.parquet")} - names):
        raise UsageError(
            f"{work.output / strange[0]}.parquet has labels of other rows: their file was changed "
            "or is not named; name all files, or write to another folder, after 'labeler store "
            f"merge {work.store}/shards --into {work.store}', which buys no label twice"
        )
    asked = [option.name for kind in (TaskOptions, ExampleOptions) for option in fields(kind)]
    facts = {name: getattr(work.options, name) for name in asked} | judge.spec.sampling()
    wanted = {name: str(value) for name, value in {**facts, "judge": judge.spec}.items()}
    manifest = work.output / _MANIFEST
    if not manifest.exists():
        with replaced(manifest) as file:
            json.dump(wanted, file, indent=1)
    before = json.loads(manifest.read_bytes())
    for name in sorted(wanted.keys() | before.keys()):
        if before.get(name) != wanted.get(name):
            raise UsageError(
                f"{work.output} has labels of another configuration: {name} was "
                f"{before.get(name)}, and is {wanted.get(name)} now; write to another folder"
            )


def _counts(file: Path, *, retry_failed: bool) -> RunCounts | None:
    """Return the counts of a finished label file; ``None`` if a row of its shard can be asked."""
    if not file.exists():
        return None
    with arrow_errors(str(file)):
        columns = ["key", "reason", "message", "lasting"]
        table = pq.ParquetFile(file, **READ_LIMITS).read(columns=columns, use_threads=False)
    failed = table.filter(pc.is_valid(table["reason"])).to_pylist()
    # A failure without a key is a row that no judge can be asked about.
    if any(row["key"] and (retry_failed or not row["lasting"]) for row in failed):
        return None
    counts = RunCounts()
    counts.origins["store"] = table.num_rows - len(failed)
    counts.reasons.update(row["reason"] for row in failed)
    counts.failures = [row["message"] for row in failed[:3]]
    return counts


class ShardStore(DiskStore):
    """The store of one shard, by name, in front of the label store, which is only read.

    Any process that labels the shard finds the labels that were paid for before.
    """

    def __init__(self, whole: DiskStore, name: str) -> None:
        super().__init__(whole.directory / SHARDS / name)
        self._whole = whole

    def _find(self, *names: str) -> Any | None:  # noqa: ANN401 - as in the base
        finders = (super()._find, self._whole._find)  # noqa: SLF001 - of the same class
        found = (find(name) for name in names for find in finders)  # a label goes before a failure
        return next(filter(None, found), None)

    def __iter__(self) -> Iterator[AnyRecord]:
        return chain(super().__iter__(), self._whole)

    def __len__(self) -> int:
        return super().__len__() + len(self._whole)


@dataclass
class Purse:
    """The budget of a run, divided among its workers.

    A share is out of the purse until its worker returns the rest, so the budget is never exceeded.
    The share of a worker that died stays out: its requests may have been charged.
    """

    left: Decimal | None
    workers: int
    out: list[Decimal] = field(default_factory=list)
    begun: Counter[str] = field(default_factory=Counter)

    def take(self, shard: str) -> tuple[Decimal | None, int]:
        """Return a share, ``None`` without a cap, and how many workers have begun the shard."""
        self.begun[shard] += 1
        if self.left is None:
            return None, self.begun[shard]
        share = self.left / max(1, self.workers - len(self.out))
        self.left -= share
        self.out.append(share)
        return share, self.begun[shard]

    def give_back(self, share: Decimal, spent: Decimal) -> None:
        """Return the rest of a share."""
        self.out.remove(share)
        self.left = (self.left or 0) + share - spent

    def lost(self) -> RunCounts:
        """Return the cost that the workers which died may have had."""
        counts = RunCounts()
        counts.spent = Budget()
        counts.spent.doubtful = sum(self.out, Decimal(0))
        return counts


@dataclass
class Worker:
    """Labels shards as one machine labels rows, within its share of the limits of all workers."""

    work: Work
    workers: int
    take: Callable[[str], tuple[Decimal | None, int]]
    give_back: Callable[[Decimal, Decimal], object]

    @cached_property
    def _tasks(self) -> LabelTasks:
        return self.work.tasks()

    def label(self, shard: Shard) -> tuple[RunCounts, LabelerError | None]:
        """Label a shard; return counts, and the error that ends the run if there is one.

        Without a share the shard is left to the next run.
        """
        events, (share, begun) = RunEvents(), self.take(shard.name)
        counts = events.counts
        try:
            if begun > _MOST_BEGUN:
                fault = f"{begun - 1} workers died of {shard.name}, perhaps for want of memory"
                raise FatalJudgeError(f"{fault}; what was labeled is stored", reason="lost")
            if share == 0:
                counts.reasons["budget"] += shard.stop - shard.start
            else:
                self._label(shard, share, events)
        except LabelerError as error:
            return counts, error
        finally:
            if share is not None:
                self.give_back(share, counts.spent.spent if counts.spent else Decimal(0))
        return counts, None

    def _label(self, shard: Shard, share: Decimal | None, events: RunEvents) -> None:
        options, tasks = self.work.options, self._tasks
        with (
            DiskStore(self.work.store, create=False) as whole,
            ShardStore(whole, shard.name) as store,
            Run(
                store,
                options,
                limits=options.limits().share(self.workers, share),
                pending=self.work.store,
                events=events,
            ) as run,
        ):
            labels = run_tasks(run, options.open_part(shard.raws), [tasks])
            deque(write_outcomes(labels, self.work.output / f"{shard.name}.parquet"), maxlen=0)


def label_on_machines(
    inputs: list[str], given: LabelOptions, output: str | None, workers: int | None
) -> int:
    """Label Parquet files with Ray, print the counts and cost, and return the exit code."""
    if output in {None, "-"} or "://" in output or output.endswith((".parquet", ".jsonl", ".gz")):
        raise UsageError(f"--engine ray writes a folder: give one as -o FOLDER, got {output!r}")
    _ray()
    if (own := prompt_file(given.prompt)) is not None:
        raise UsageError(f"--prompt {own}: workers of Ray have no such file; use --instructions")
    # A worker on another machine has no file of instructions.
    price, instructions = given.find_price(), read_instructions(given.instructions) or None
    given = replace(given, price=price, instructions=instructions)
    judge = partial(open_judge, given, also=given.restrictions, notice=notify)
    work = Work(judge, given, Path(str(given.store)).absolute(), Path(output).absolute())
    shards = plan(inputs, work, notify)
    left = [shard for shard, counts in shards.items() if counts is None]
    rows = sum(shard.stop - shard.start for shard in shards)
    notify(f"{plural(rows, 'row')} in {plural(len(shards), 'shard')}, {len(left)} of them left")
    with RunReport("labeling", price) as progress:
        RunEvents([progress]).start(rows)
        for counts in filter(None, shards.values()):
            progress.counts.add(counts)
        unreported = len(left)
        try:
            with closing(_reports(work, left, workers)) as reports:
                for counts in reports if left else ():
                    progress.counts.add(counts)
                    unreported -= 1
        finally:
            counted = progress.counts.origins
            progress.close(f"{counted['judge']} labeled", f"{counted['store']} from the store")
            if unreported > 0:  # what they have labeled is stored
                notify(f"not counted: labels and cost of {plural(unreported, 'unfinished shard')}")
    notify(
        f"labels are in {work.output}, stored shard by shard: 'labeler store merge "
        f"{work.store}/shards --into {work.store}' makes one store of them"
    )
    return exit_code(progress)


def _ray() -> Any:  # noqa: ANN401 - it need not be installed
    """Return Ray, which reads these variables when it is imported."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    if not {"RAY_ADDRESS", "RAY_AUTH_MODE", "RAY_AUTH_TOKEN_PATH"} & os.environ.keys():
        # Ray listens on the network, and without a token anyone there could run code.
        os.environ["RAY_AUTH_MODE"] = "token"
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    try:
        import ray.data  # noqa: PLC0415 - slow to import
    except ImportError as missing:
        raise UsageError(f"--engine ray needs Ray: {install_command('ray')}") from missing
    return ray


def _reports(
    work: Work, shards: Sequence[Shard], workers: int | None
) -> Generator[RunCounts, None, None]:
    """Label one or more shards by actors, one a processor; yield counts of each, in any order."""
    ray = _ray()
    try:
        ray.init(
            address=(address := os.environ.get("RAY_ADDRESS")) or "local",
            log_to_driver=False,
            logging_level=logging.ERROR,
            **{} if address else {"num_cpus": workers, "include_dashboard": False},
        )
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = context.print_on_execution_start = False
        logging.getLogger("ray.data").setLevel(logging.ERROR)
        workers = min(workers or int(ray.cluster_resources().get("CPU", 1)), len(shards))
        purse = ray.remote(num_cpus=0)(Purse).remote(work.options.limits().budget, workers)
        items = [{"shard": pickle.dumps(shard)} for shard in shards]
        reports = ray.data.from_items(items, override_num_blocks=min(len(items), 2000)).map_batches(
            _Actor,
            batch_size=1,
            fn_constructor_args=(work, workers, purse),
            compute=ray.data.ActorPoolStrategy(size=workers),
            num_cpus=1,
        )
        for row in reports.iter_rows():
            counts, error = pickle.loads(row["report"])  # noqa: S301 - of our own worker
            yield counts
            if error is not None:
                raise error
        yield ray.get(purse.lost.remote())
    except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        end = str(error).strip()[-300:]  # after the tracebacks of other machines
        raise FatalJudgeError(
            f"Ray cannot go on: {type(error).__name__}: {end}; check RAY_ADDRESS and "
            "RAY_AUTH_TOKEN if they are set; the same command goes on, what was labeled is stored",
            reason="ray",
        ) from error
    finally:
        ray.shutdown()


class _Actor:
    """A worker with Ray Data's interface; its purse is an actor, too."""

    def __init__(self, work: Work, workers: int, purse: Any) -> None:  # noqa: ANN401 - a handle
        ray = _ray()
        self._worker = Worker(
            work,
            workers,
            take=lambda shard: ray.get(purse.take.remote(shard)),
            give_back=lambda *rest: ray.get(purse.give_back.remote(*rest)),
        )

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[bytes]]:
        shards = map(pickle.loads, batch["shard"])
        return {"report": [pickle.dumps(self._worker.label(shard)) for shard in shards]}
