"""An event loop whose clock jumps to the next thing that is due: hours of waiting take no time."""

from __future__ import annotations

import asyncio
import random
import selectors
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class _JumpingSelector(selectors.SelectSelector):
    """Reports what is ready, and instead of waiting for more lets the clock jump."""

    now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0)
        if not ready:
            if timeout is None:
                raise RuntimeError("everything waits for something that never comes")
            self.now += max(0.0, timeout)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """For code that waits for nothing but time."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        """Seconds since the loop was made."""
        return self._jumping.now


def in_virtual_time(work: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """Make an async function an ordinary one that runs in virtual time, with chance seeded."""

    @wraps(work)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        random.seed(7)
        loop = VirtualLoop()
        try:
            return loop.run_until_complete(work(*args, **kwargs))
        finally:
            loop.close()

    return run


def now() -> float:
    """The virtual time."""
    return asyncio.get_running_loop().time()
