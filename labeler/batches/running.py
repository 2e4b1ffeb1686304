"""Running a coroutine to its end from a script and from inside a running loop alike."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


def from_anywhere(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine; a notebook, whose loop is running, waits for another thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    result: Future[T] = Future()
    thread = threading.Thread(target=_into, args=(result, work), name="labeler-batches")
    thread.start()
    thread.join()
    return result.result()


def _into(result: Future[T], work: Coroutine[Any, Any, T]) -> None:
    try:
        result.set_result(asyncio.run(work))
    except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
        result.set_exception(error)
