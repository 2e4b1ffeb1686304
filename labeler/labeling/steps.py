"""Generators that label, advanced in a thread so that the caller's event loop stays free."""

from __future__ import annotations

import asyncio
import contextvars
import warnings
from collections.abc import AsyncGenerator, Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from labeler.sentences.display import is_notebook

T = TypeVar("T")
_END = object()


async def in_thread(generator: Generator[T, None, None]) -> AsyncGenerator[T, None]:
    """Yield the values of a generator that blocks.

    A task that is cancelled closes the generator first: a run then starts no more requests, and
    stores the answers of those in flight, because they are paid for.
    """
    loop, context = asyncio.get_running_loop(), contextvars.copy_context()
    thread = ThreadPoolExecutor(1, "labeler-steps")

    def call(function: Callable[..., object], *given: object) -> asyncio.Future[object]:
        return loop.run_in_executor(thread, context.run, function, *given)

    try:
        while (value := await call(next, generator, _END)) is not _END:
            yield value  # type: ignore[misc] # one of the generator's values
    finally:
        closing = call(generator.close)
        thread.shutdown(wait=False)  # would block the loop if the task is cancelled once more
        await asyncio.shield(closing)
        thread.shutdown()


def warn_of_loop(name: str, instead: str) -> None:
    """Warn if the caller blocks an event loop; cells of notebooks wait for each other anyway."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    if not is_notebook():
        warnings.warn(
            f"labeler.{name} blocks the running event loop until it returns: use {instead}",
            RuntimeWarning,
            stacklevel=4,
        )
