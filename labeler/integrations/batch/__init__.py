"""Labels for half the price within a day: hand rows in, look on, collect.

Everything is written down in the store's folder before it is waited for. A process that ends at any
moment loses nothing and buys nothing twice: run the same again.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from labeler.data.rows import Rows
from labeler.errors import StoreError, UsageError
from labeler.integrations.batch import collecting, submitting
from labeler.integrations.batch import status as looking
from labeler.integrations.batch.addresses import require_address
from labeler.integrations.batch.collecting import Collection, Pricing, Waiting
from labeler.integrations.batch.commands import command
from labeler.integrations.batch.folder import Pending, pending
from labeler.integrations.batch.lines import FileLimits
from labeler.integrations.batch.running import from_anywhere
from labeler.integrations.batch.service import BatchedSpec, BatchService
from labeler.integrations.batch.status import BatchView
from labeler.integrations.batch.submitting import Submission
from labeler.labeling.tasks import LabelTasks
from labeler.store.disk import DiskStore

T = TypeVar("T")


def submit_batch(
    rows: Rows,
    how: LabelTasks,
    service: BatchService,
    store: str | Path,
    *,
    retry_failed: bool = False,
    limits: FileLimits | None = None,
) -> Submission:
    """Hand in every judgement that labeling the rows would buy now; see :func:`submitting.submit`.

    How long an answer may be, and how often it is sent back to be mended, is the judge's to say.

    Raises:
        UsageError: the judge cannot be asked in batches or not at the service's address, the rows
            cannot be read, or two share an id and differ; nothing was sent.
        FatalJudgeError: the provider does not take it; what was prepared stays.
        JudgeError: the provider could not be reached; run it again to go on.
        StoreError: the store or a batch cannot be read or written.
    """
    spec = _batched_spec(how, service)
    with DiskStore(store) as opened:
        return _finished(
            submitting.submit(
                rows,
                how,
                service,
                opened,
                cap=spec.max_output_tokens,
                reasks=spec.reasks,
                retry_failed=retry_failed,
                limits=limits,
            ),
            service,
            store,
        )


def _batched_spec(how: LabelTasks, service: BatchService) -> BatchedSpec:
    spec = how.judge.spec
    if not isinstance(spec, BatchedSpec):
        raise UsageError(
            f"the judge {spec} cannot be asked in batches: use one that is reached over the "
            "network, such as OpenAIJudge"
        )
    if spec.base_url != service.base_url:
        raise UsageError(
            f"the judge is asked at {spec.base_url}, and batches are handed in at "
            f"{service.base_url}: make both with the same base_url"
        )
    return spec


def batch_status(store: str | Path, service: BatchService | None = None) -> list[BatchView]:
    """How every batch of a store is getting on; see :func:`looking.status`."""
    return _finished(looking.status(service, Path(store)), service, store)


def collect_batches(
    service: BatchService,
    store: str | Path,
    *,
    name: str | None = None,
    resubmit: bool = True,
    waiting: Waiting | None = None,
    limits: FileLimits | None = None,
    price: Pricing = lambda _: None,
    say: Callable[[str], None] | None = None,
) -> Collection:
    """Store what batches have answered, and ask again where due; see :func:`collecting.collect`."""
    _require_store(store)
    with DiskStore(store, notice=say) as opened:
        return _finished(
            collecting.collect(
                service,
                opened,
                name=name,
                resubmit=resubmit,
                waiting=waiting,
                limits=limits,
                price=price,
                say=say or (lambda _: None),
            ),
            service,
            store,
        )


def cancel_batch(
    service: BatchService, store: str | Path, name: str, *, drop: bool = False
) -> list[str]:
    """End a batch; what is answered by then can be collected. See :func:`looking.cancel`."""
    _require_store(store)
    with DiskStore(store) as opened:
        return _finished(looking.cancel(service, opened, name, drop=drop), service, store)


def _require_store(store: str | Path) -> None:
    if not Path(store).is_dir():
        raise UsageError(f"there is no label store in {store}; name the one that batches belong to")


def _finished(work: Coroutine[Any, Any, T], service: BatchService | None, store: str | Path) -> T:
    """The result of work on batches, after which the service's connections are closed."""

    async def run() -> T:
        try:
            return await work
        except OSError as error:
            raise StoreError(
                f"the batches of {store} cannot be read or written: {error}; mend that and run "
                "this again: nothing is lost"
            ) from error
        finally:
            if service is not None:
                await service.aclose()

    return from_anywhere(run())


__all__ = [
    "BatchView",
    "Collection",
    "FileLimits",
    "Pending",
    "Submission",
    "Waiting",
    "batch_status",
    "cancel_batch",
    "collect_batches",
    "command",
    "pending",
    "require_address",
    "submit_batch",
]
