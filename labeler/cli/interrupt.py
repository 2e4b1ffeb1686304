"""Interrupts: Ctrl-C, SIGTERM, SIGHUP, and readers that close a pipe.

The first signal stops new requests and lets paid ones finish; a second one exits at once.

A signal raises an exception of our own, because typer turns KeyboardInterrupt into an exit without
our message. Python drops exceptions raised during cleanup, such as in a weak reference's callback;
the signal is then sent again.
"""

from __future__ import annotations

import _thread
import os
import signal
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_HANGUP = getattr(signal, "SIGHUP", None)
"""The terminal was closed; Windows lacks it."""
_SIGNALS = tuple(filter(None, (signal.SIGINT, signal.SIGTERM, _HANGUP)))
_STDOUT, _STDERR = 1, 2
_UNIX_EXIT = 128
_RESEND_DELAY = 0.02
"""Seconds before a signal is sent again, when cleanup has most likely ended."""
_SIGPIPE = 13
"""Number of the signal; some systems lack the name."""


class Interrupted(BaseException):
    """A signal asked the program to stop."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number
        self.exit_code = _UNIX_EXIT + number


class ReaderGone(Exception):
    """The reader of standard output has closed it.

    Args:
        lacking: message about the unfinished work; empty for commands that only show data.
    """

    def __init__(self, lacking: str = "") -> None:
        super().__init__(lacking)
        self.exit_code = _UNIX_EXIT + _SIGPIPE if lacking else 0


class _Notice:
    """Message printed at the first signal, if requests must be waited for."""

    text = ""


def announce(text: str) -> None:
    """Set the message that the first signal prints."""
    _Notice.text = text


@contextmanager
def signals_raise() -> Iterator[None]:
    """Raise :class:`Interrupted` on signals; does nothing outside the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # Signals ignored by the parent process stay ignored, as those of background jobs and nohup.
    handled = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    previous = {number: signal.signal(number, _raise) for number in handled}
    hook = sys.unraisablehook
    sys.unraisablehook = _resending(hook)
    try:
        yield
    finally:
        sys.unraisablehook = hook
        _Notice.text = ""
        for number, handler in previous.items():
            signal.signal(number, handler)


def _raise(number: int, _frame: FrameType | None) -> None:
    if _Notice.text or number == _HANGUP:
        text, _Notice.text = _Notice.text, ""
        try:
            # sys.stderr may be in the middle of a write.
            os.write(_STDERR, f"\n{text}\n".encode())
        except OSError:
            _leave_terminal()
    raise Interrupted(number)


def _leave_terminal() -> None:
    """Discard what is printed to a closed terminal: an error there must not end paid requests."""
    for descriptor in (_STDOUT, _STDERR):
        if stat.S_ISCHR(os.fstat(descriptor).st_mode):
            os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)


def _resending(previous: Callable[[Any], object]) -> Callable[[Any], object]:
    """Return a hook for dropped exceptions that sends a dropped signal again."""

    def hook(unraisable: Any) -> None:  # noqa: ANN401 - its class is private
        dropped = unraisable.exc_value
        if isinstance(dropped, Interrupted):
            # The code being cleaned up may hold a lock of threading.
            _thread.start_new_thread(_send_again, (dropped.number,))
        else:
            previous(unraisable)

    return hook


def _send_again(number: int) -> None:
    time.sleep(_RESEND_DELAY)
    main = threading.main_thread().ident
    if main is not None and signal.getsignal(number) is _raise:
        signal.pthread_kill(main, number)
