"""Parts labelled by the actors of Ray Data, and files counted; the one module that imports Ray.

Where the variable ``RAY_ADDRESS`` names a cluster, its machines do the work. Otherwise Ray is
started here, with as many processes as there are workers and a token of its own, and ended when the
run is over. Ray's usage statistics are off.
"""

from __future__ import annotations

import logging
import os
import re
import secrets
import tempfile
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from labeler.calculators.column_summary import SummaryRequest
from labeler.errors import FatalJudgeError, UsageError
from labeler.integrations.ray.counting import CountReport, report_of
from labeler.integrations.ray.labeling import PartReport, Work, Worker
from labeler.integrations.ray.parts import Part
from labeler.integrations.ray.shares import Ledger, Spending, Told

# Before Ray is imported: it reads them then.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
if not {"RAY_ADDRESS", "RAY_AUTH_MODE", "RAY_AUTH_TOKEN_PATH"} & os.environ.keys():
    # Ray listens beyond this machine, and without a token anyone there could run code.
    os.environ["RAY_AUTH_MODE"] = "token"
    os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))

try:
    import ray
    import ray.data
    from ray.exceptions import RayError
except ImportError as missing:
    raise UsageError(
        "--engine ray needs Ray, which is not installed: pip install 'rag-labeler[ray]', or use "
        "one machine, without --engine"
    ) from missing

T = TypeVar("T")

_DEAD = "dead"
"""The ending of a report that tells what workers spent that died."""
_SAYING = re.compile(r"^[\w.]*(?:Error|Exception|Exit)\b.*", re.MULTILINE)
_MOST_BLOCKS = 2000
_STDERR = 2
_LEVEL_SET = b"Set ray log level"
_AHEAD = 4
"""Files for each worker that are counted, or wait for that, before the next counts are added."""


def on_ray(work: Work, parts: list[Part], workers: int) -> Generator[PartReport, None, None]:
    """Label parts with actors of Ray.

    Args:
        work: what is asked.
        parts: what is to be labelled.
        workers: actors, each with a processor of its own.

    Raises:
        FatalJudgeError: Ray cannot go on; what was labelled until then is stored.
    """
    with _cluster(workers), _lost():
        ledger = ray.remote(num_cpus=0)(Ledger).remote(work.limits, workers)
        items = [{"part": part.to_json()} for part in parts]
        blocks = min(len(items), _MOST_BLOCKS)
        reports = ray.data.from_items(items, override_num_blocks=blocks).map_batches(
            _Actor,
            batch_size=1,
            fn_constructor_args=(work, workers, ledger),
            compute=ray.data.ActorPoolStrategy(size=min(workers, blocks)),
            num_cpus=1,
        )
        told = Spending()
        for row in reports.iter_rows():
            report = PartReport.from_json(row["report"])
            told = Spending(told.known + report.known, told.doubtful + report.doubtful)
            yield report
        if work.limits.budget is not None:
            final: Spending = ray.get(ledger.final.remote())
            known, doubtful = final.known - told.known, final.doubtful - told.doubtful
            yield PartReport("", known=known, doubtful=doubtful, ending=_DEAD)


def counts_on_ray(
    asked: SummaryRequest, files: Sequence[str], workers: int
) -> Generator[CountReport, None, None]:
    """Count label files with Ray tasks; see :data:`~labeler.integrations.ray.counting.CountEngine`.

    Raises:
        FatalJudgeError: Ray cannot go on.
    """
    with _cluster(workers), _lost():
        count, what = ray.remote(num_cpus=1)(report_of), ray.put(asked)
        begun: deque[Any] = deque()
        for number, file in enumerate(files):
            begun.append(count.remote(file, what, number))
            if len(begun) >= _AHEAD * workers:
                yield ray.get(begun.popleft())
        while begun:
            yield ray.get(begun.popleft())


def processors() -> int:
    """How many workers there can be at once."""
    if os.environ.get("RAY_ADDRESS") or ray.is_initialized():
        with _cluster(1):
            return max(1, int(ray.cluster_resources().get("CPU", 1)))
    return os.cpu_count() or 1


class _Actor:
    """A worker, as Ray Data calls it."""

    def __init__(self, work: Work, workers: int, ledger: Any) -> None:  # noqa: ANN401 - a handle
        self._worker = Worker(work, workers, _Link(ledger))

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[str]]:
        """Label the parts of a batch."""
        parts = [Part.from_json(str(text)) for text in batch["part"]]
        return {"report": [self._worker.label_part(part).to_json() for part in parts]}


class _Link:
    """The way to a ledger that is an actor."""

    def __init__(self, ledger: Any) -> None:  # noqa: ANN401 - a handle
        self._ledger = ledger

    def lease(self, holder: str, spending: Spending, worst: Any) -> Told:  # noqa: ANN401
        """Ask for money."""
        told: Told = _answer(self._ledger.lease.remote, holder, spending, worst)
        return told

    def settle(self, holder: str, spending: Spending) -> None:
        """Give back what is left."""
        _answer(self._ledger.settle.remote, holder, spending)

    def grant(self, name: str, amount: float) -> float:
        """Take requests or tokens."""
        return float(_answer(self._ledger.grant.remote, name, amount))

    def give_back(self, name: str, amount: float) -> None:
        """Return what was taken and not used."""
        _answer(self._ledger.give_back.remote, name, amount)

    def begin(self, part: str) -> str:
        """Whether a part may be begun."""
        return str(_answer(self._ledger.begin.remote, part))


def _answer(ask: Callable[..., Any], *arguments: object) -> Any:  # noqa: ANN401
    try:
        return ray.get(ask(*arguments))
    except RayError as error:
        raise FatalJudgeError(
            f"what shares out the limits of all workers is lost ({type(error).__name__}): nothing "
            "more is sent; run it again to go on, what was labelled is stored",
            reason="ledger_lost",
        ) from error


@contextmanager
def _cluster(workers: int) -> Generator[None, None, None]:
    """Ray, as the environment says or as processes of ours."""
    ours = not ray.is_initialized()
    if ours:
        _begin(os.environ.get("RAY_ADDRESS"), workers)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = context.print_on_execution_start = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    try:
        yield
    finally:
        if ours:
            ray.shutdown()


def _begin(address: str | None, workers: int) -> None:
    """Join a cluster, or start one here."""
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    local = {"address": "local", "num_cpus": workers, "include_dashboard": False}
    try:
        with _hushed():
            ray.init(**(local if address is None else {"address": address}), **quiet)
    except (OSError, RuntimeError, ValueError, RayError) as error:
        what = "Ray cannot be started here" if address is None else f"no Ray answers at {address}"
        raise UsageError(
            f"{what}: {type(error).__name__}: {str(error)[:200]}; check RAY_ADDRESS, which names a "
            "cluster (without it one is started here), and RAY_AUTH_TOKEN, which must be its token"
        ) from error


@contextmanager
def _hushed() -> Generator[None, None, None]:
    """Keep back the line by which Ray says that it was told to say little, and no other."""
    try:
        ours = os.dup(_STDERR)
    except OSError:  # there is no standard error
        yield
        return
    with tempfile.TemporaryFile() as said:
        os.dup2(said.fileno(), _STDERR)
        try:
            yield
        finally:
            os.dup2(ours, _STDERR)
            os.close(ours)
            said.seek(0)
            os.write(_STDERR, b"".join(line for line in said if _LEVEL_SET not in line))


@contextmanager
def _lost() -> Generator[None, None, None]:
    """Say in our words that Ray cannot go on."""
    try:
        yield
    except RayError as error:
        raise FatalJudgeError(
            f"Ray cannot go on: {_last_line(error)}; run it again to go on, what was labelled is "
            "stored",
            reason="ray",
        ) from error


def _last_line(error: RayError) -> str:
    """What Ray says, without the traces of other machines."""
    said = _SAYING.search(str(error))
    return f"{type(error).__name__}{f': {said[0]:.300}' if said else ''}"
