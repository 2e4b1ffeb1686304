"""Ctrl-C and SIGTERM: stop admitting, let paid requests finish, leave; a second one leaves at once.

A reader that leaves a pipe interrupts too, where what it read is not all there is.

typer would turn KeyboardInterrupt into an exit of its own before we could say anything, so a signal
raises an exception that only we know. Python drops what is raised while it tidies up, say in the
callback of a weak reference: then the signal is sent again.
"""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_STDERR = 2
_UNIX_EXIT = 128
_SOON = 0.02
"""Seconds after which a signal is sent again, when the tidying is most likely over."""
_BROKEN_PIPE = 13
"""SIGPIPE's number; not every system has the name."""


class Interrupted(BaseException):
    """A signal asked the program to stop."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number
        self.exit_code = _UNIX_EXIT + number


class ReaderGone(Exception):
    """Whoever read our standard output has closed it.

    Args:
        lacking: what is not done for that reason; nothing where the command only shows what is.
    """

    def __init__(self, lacking: str = "") -> None:
        super().__init__(lacking)
        self.exit_code = _UNIX_EXIT + _BROKEN_PIPE if lacking else 0


class _Notice:
    """What the first signal says at once, where there is something to wait for."""

    text = ""


def announce(text: str) -> None:
    """Have a first signal say this before the waiting begins."""
    _Notice.text = text


@contextmanager
def signals_raise() -> Iterator[None]:
    """Within this, signals raise :class:`Interrupted`; a thread cannot receive any."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # A signal that whoever started us has ignored, as a shell does for background jobs, stays so.
    heard = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, _raise) for number in heard}
    told_of_lost = sys.unraisablehook
    sys.unraisablehook = _sending_again(told_of_lost)
    try:
        yield
    finally:
        sys.unraisablehook = told_of_lost
        _Notice.text = ""
        for number, handler in before.items():
            signal.signal(number, handler)


def _raise(number: int, _frame: FrameType | None) -> None:
    if _Notice.text:
        # Not by way of sys.stderr: it may be in the middle of a write.
        os.write(_STDERR, f"\n{_Notice.text}\n".encode())
        _Notice.text = ""
    raise Interrupted(number)


def _sending_again(before: Callable[[Any], object]) -> Callable[[Any], object]:
    """What Python tells of exceptions that it drops; of ours, the signal is sent again."""

    def told(unraisable: Any) -> None:  # noqa: ANN401 - its type is no class that one may name
        lost = unraisable.exc_value
        if isinstance(lost, Interrupted):
            # Not by way of threading: what is being tidied up may hold its lock.
            _thread.start_new_thread(_send_again, (lost.number,))
        else:
            before(unraisable)

    return told


def _send_again(number: int) -> None:
    time.sleep(_SOON)
    main = threading.main_thread().ident
    if main is not None and signal.getsignal(number) is _raise:
        signal.pthread_kill(main, number)
