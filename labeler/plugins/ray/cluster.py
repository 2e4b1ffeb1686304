"""Workers as actors of Ray Data; the only module that uses Ray.

The variable ``RAY_ADDRESS`` names the cluster; otherwise Ray is started here, with a new token.
"""

from __future__ import annotations

import logging
import os
import pickle
import secrets
from collections.abc import Generator, Sequence
from typing import Any

from labeler.errors import FatalJudgeError, UsageError, error_of
from labeler.labeling.progress import RunCounts
from labeler.plugins.ray.shards import Purse, Shard, Work, Worker
from labeler.version import install_command

# Ray reads these when it is imported.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
if not {"RAY_ADDRESS", "RAY_AUTH_MODE", "RAY_AUTH_TOKEN_PATH"} & os.environ.keys():
    # Ray listens on the network, and without a token anyone there could run code.
    os.environ["RAY_AUTH_MODE"] = "token"
    os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))

try:
    import ray
    import ray.data
    from ray.exceptions import RayError
except ImportError as missing:
    raise UsageError(
        f"--engine ray needs Ray, which is not installed: {install_command('ray')}"
    ) from missing


def label_on_ray(
    work: Work, shards: Sequence[Shard], workers: int | None = None
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
    except (OSError, RuntimeError, ValueError, RayError) as error:
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
        self._worker = Worker(
            work,
            workers,
            take=lambda shard: ray.get(purse.take.remote(shard)),
            give_back=lambda *rest: ray.get(purse.give_back.remote(*rest)),
        )

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[bytes]]:
        shards = map(pickle.loads, batch["shard"])
        return {"report": [pickle.dumps(self._worker.label(shard)) for shard in shards]}
