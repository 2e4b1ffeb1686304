"""Parts labeled by actors of Ray Data; the only module that uses Ray.

If the variable ``RAY_ADDRESS`` names a cluster, its machines do the work. Otherwise Ray is started
here, with one process for each worker and a new token, and stopped after the run. Ray's usage
statistics are off.
"""

from __future__ import annotations

import logging
import os
import re
import secrets
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from typing import Any, cast

from labeler.errors import FatalJudgeError, UsageError
from labeler.integrations.ray.parts import InputPart
from labeler.integrations.ray.quotas import Quotas, QuotaServer, Spending
from labeler.integrations.ray.worker import PartReport, Work, Worker
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
        f"--engine ray needs Ray, which is not installed: {install_command('ray')}; or use one "
        "machine, without --engine"
    ) from missing

_DEAD_WORKERS = "dead"
"""The ending of a report on the spending of workers that died."""
_ERROR_LINE = re.compile(r"^[\w.]*(?:Error|Exception|Exit)\b.*", re.MULTILINE)
_MOST_BLOCKS = 2000
_STDERR = 2
_LOG_LEVEL_LINE = b"Set ray log level"


def label_on_ray(
    work: Work, parts: list[InputPart], workers: int
) -> Generator[PartReport, None, None]:
    """Label parts with actors of Ray.

    Args:
        work: the labeling configuration.
        parts: the parts to be labeled.
        workers: actors, each with its own processor.

    Raises:
        FatalJudgeError: Ray failed; labels made until then are stored.
    """
    with _cluster(workers), _translated_errors():
        quotas = ray.remote(num_cpus=0)(QuotaServer).remote(work.limits, workers)
        items = [{"part": part.model_dump_json()} for part in parts]
        blocks = min(len(items), _MOST_BLOCKS)
        reports = ray.data.from_items(items, override_num_blocks=blocks).map_batches(
            _Actor,
            batch_size=1,
            fn_constructor_args=(work, workers, quotas),
            compute=ray.data.ActorPoolStrategy(size=min(workers, blocks)),
            num_cpus=1,
        )
        reported = Spending()
        for row in reports.iter_rows():
            report = PartReport.model_validate_json(row["report"])
            reported = Spending(reported.known + report.known, reported.doubtful + report.doubtful)
            yield report
        if work.limits.budget is not None:
            final: Spending = ray.get(quotas.final.remote())
            yield PartReport(
                known=final.known - reported.known,
                doubtful=final.doubtful - reported.doubtful,
                ending=_DEAD_WORKERS,
            )


def processor_count() -> int:
    """Return how many workers can run at once."""
    if os.environ.get("RAY_ADDRESS") or ray.is_initialized():
        with _cluster(1):
            return max(1, int(ray.cluster_resources().get("CPU", 1)))
    return os.cpu_count() or 1


class _Actor:
    """A worker with Ray Data's interface."""

    def __init__(self, work: Work, workers: int, quotas: Any) -> None:  # noqa: ANN401 - a handle
        self._worker = Worker(work, workers, cast("Quotas", _RemoteQuotas(quotas)))

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[str]]:
        """Label the parts of a batch."""
        parts = [InputPart.model_validate_json(str(text)) for text in batch["part"]]
        return {"report": [self._worker.label_part(part).model_dump_json() for part in parts]}


class _RemoteQuotas:
    """Calls a quota server that is an actor, and waits for its answers."""

    def __init__(self, server: Any) -> None:  # noqa: ANN401 - a handle
        self._server = server

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - a method of the server
        return partial(_call, getattr(self._server, name))


def _call(method: Any, *arguments: object) -> Any:  # noqa: ANN401 - a method of a handle
    try:
        return ray.get(method.remote(*arguments))
    except RayError as error:
        raise FatalJudgeError(
            f"what shares out the limits of all workers is lost ({type(error).__name__}): nothing "
            "more is sent; run it again to go on, what was labeled is stored",
            reason="ledger_lost",
        ) from error


@contextmanager
def _cluster(workers: int) -> Generator[None, None, None]:
    """Connect to the cluster of the environment, or start one of our own."""
    ours = not ray.is_initialized()
    if ours:
        _connect(os.environ.get("RAY_ADDRESS"), workers)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = context.print_on_execution_start = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    try:
        yield
    finally:
        if ours:
            ray.shutdown()


def _connect(address: str | None, workers: int) -> None:
    """Join a cluster, or start one here."""
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    local = {"address": "local", "num_cpus": workers, "include_dashboard": False}
    try:
        with _filtered_stderr():
            ray.init(**(local if address is None else {"address": address}), **quiet)
    except (OSError, RuntimeError, ValueError, RayError) as error:
        what = "Ray cannot be started here" if address is None else f"no Ray answers at {address}"
        raise UsageError(
            f"{what}: {type(error).__name__}: {str(error)[:200]}; check RAY_ADDRESS, which names a "
            "cluster (without it one is started here), and RAY_AUTH_TOKEN, which must be its token"
        ) from error


@contextmanager
def _filtered_stderr() -> Generator[None, None, None]:
    """Suppress only the line in which Ray reports its log level."""
    try:
        ours = os.dup(_STDERR)
    except OSError:  # there is no stderr
        yield
        return
    with tempfile.TemporaryFile() as captured:
        os.dup2(captured.fileno(), _STDERR)
        try:
            yield
        finally:
            os.dup2(ours, _STDERR)
            os.close(ours)
            captured.seek(0)
            os.write(_STDERR, b"".join(line for line in captured if _LOG_LEVEL_LINE not in line))


@contextmanager
def _translated_errors() -> Generator[None, None, None]:
    """Turn Ray's errors into a :class:`FatalJudgeError`."""
    try:
        yield
    except RayError as error:
        raise FatalJudgeError(
            f"Ray cannot go on: {_last_line(error)}; run it again to go on, what was labeled is "
            "stored",
            reason="ray",
        ) from error


def _last_line(error: RayError) -> str:
    """Return Ray's message without the tracebacks of other machines."""
    found = _ERROR_LINE.search(str(error))
    return f"{type(error).__name__}{f': {found[0]:.300}' if found else ''}"
