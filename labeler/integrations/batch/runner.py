"""Run a coroutine on batches to its end, from a script or inside a running event loop."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from labeler.errors import StoreError

if TYPE_CHECKING:
    from labeler.integrations.batch.client import OpenAIBatches

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T], client: OpenAIBatches | None, store: str | Path) -> T:
    """Return the result of a coroutine, and close the client's connections.

    It runs on its own thread, and therefore also in a notebook, whose loop is already running. A
    signal, which Python raises on the main thread, cannot be swallowed inside a callback of the
    loop; it cancels the work, and the caller waits for the work's end.
    """
    result: Future[T] = Future()
    cancel: Future[Callable[[], object]] = Future()

    async def main() -> T:
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task is not None  # noqa: S101 - a coroutine on a loop runs in a task
        # call_soon_threadsafe raises a RuntimeError once the loop has ended.
        cancel.set_result(lambda: loop.call_soon_threadsafe(task.cancel))
        try:
            return await work
        except OSError as error:
            raise StoreError(
                f"the batches of {store} cannot be read or written: {error}; mend that and run "
                "this again: nothing is lost"
            ) from error
        finally:
            if client is not None:
                await client.aclose()

    def target() -> None:
        try:
            result.set_result(asyncio.run(main()))
        except BaseException as error:  # noqa: BLE001 - the caller raises it again
            result.set_exception(error)

    thread = threading.Thread(target=target, name="labeler-batches")
    thread.start()
    try:
        return result.result()
    except BaseException:
        # The work's own error, or a signal; after the former nothing is left to cancel.
        with contextlib.suppress(RuntimeError):
            cancel.result()()
        raise
    finally:
        thread.join()
