"""Labeling on many processors and machines with Ray Data, shard by shard: the engine ``ray``.

The variable ``RAY_ADDRESS`` names the cluster; otherwise Ray is started here, with a new token.
"""

from __future__ import annotations

import logging
import os
import pickle
import secrets
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from labeler.cli.label import RunReport, exit_code
from labeler.cli.terminal import notify, plural
from labeler.errors import FatalJudgeError, UsageError, error_of
from labeler.judges.opening import open_judge
from labeler.judges.prompting import prompt_file, read_instructions
from labeler.labeling.options import LabelOptions
from labeler.labeling.progress import RunCounts, RunEvents
from labeler.plugins.ray.shards import Purse, Shard, Work, Worker, plan
from labeler.version import install_command


def label_on_machines(
    inputs: list[str], given: LabelOptions, output: str | None, workers: int | None
) -> int:
    """Label Parquet files with Ray, print the counts and cost, and return the exit code."""
    if output in {None, "-"} or "://" in output or output.endswith((".parquet", ".jsonl", ".gz")):
        raise UsageError(f"--engine ray writes a folder: give one as -o FOLDER, got {output!r}")
    ray = _ray()
    if (own := prompt_file(given.prompt)) is not None:
        raise UsageError(
            f"--prompt {own} is not for --engine ray, whose workers have no such file: use "
            "--instructions"
        )
    # A worker on another machine has no files of prices and instructions.
    price, instructions = given.find_price(), read_instructions(given.instructions) or None
    given = replace(given, price=price, prices=None, instructions=instructions)
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
        try:
            with closing(_reports(ray, work, left, workers)) as reports:
                for counts in reports if left else ():
                    progress.counts.add(counts)
        finally:
            counted = progress.counts.origins
            progress.close(f"{counted['judge']} labeled", f"{counted['store']} from the store")
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
        raise UsageError(
            f"--engine ray needs Ray, which is not installed: {install_command('ray')}"
        ) from missing
    return ray


def _reports(
    ray: Any,  # noqa: ANN401 - the module
    work: Work,
    shards: Sequence[Shard],
    workers: int | None,
) -> Generator[RunCounts, None, None]:
    """Label one or more shards by actors, one a processor; yield counts of each, in any order.

    Raises:
        LabelerError: a worker or Ray cannot go on; labels made until then are stored.
    """
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
            counts, ending, message = pickle.loads(row["report"])  # noqa: S301 - of our own worker
            yield counts
            if ending:
                raise error_of(ending, message)
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
