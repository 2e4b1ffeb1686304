"""Safe terminal output.

Documents, answers and explanations are untrusted text. Control sequences, direction overrides and
markup in them are escaped before they reach the terminal.
"""

from __future__ import annotations

import _thread
import json
import os
import shlex
import signal
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

from labeler.extensions import is_own, offered, package_of
from labeler.sentences import display
from labeler.sentences.characters import plain_json, visible
from labeler.sentences.display import (
    Display,
    Displayed,
    Section,
    console,
    display_of,
)

if TYPE_CHECKING:
    from labeler.calculators import SummaryRow

SOME_FAILED, WRONG_USE, BUDGET_REACHED, TRY_LATER = 1, 2, 4, 75
"""Exit codes; the last is ``EX_TEMPFAIL`` of Unix."""


class LineWriter:
    """Writes lines of any length unbroken; loads rich only for a terminal.

    Args:
        stderr: True for standard error, False for standard output.
    """

    def __init__(self, *, stderr: bool = False) -> None:
        self._stream = sys.stderr if stderr else sys.stdout
        self._console = console(stderr=stderr) if self._stream.isatty() else None
        self.width = self._console.width if self._console else display.WIDTH
        """Width that tables should fit, in columns."""

    def write(self, text: str, *, bold: bool = False) -> None:
        """Write lines.

        Args:
            text: untrusted text, without the final line break.
            bold: True for bold print on a terminal.
        """
        if self._console is None:
            self._stream.write(visible(text) + "\n")
            return
        from rich.text import Text

        self._console.print(Text(visible(text), style="bold" if bold else ""), soft_wrap=True)


def print_sections(sections: Iterable[Section], *, stderr: bool = False) -> None:
    """Print headings, tables and lines, and last the columns that were dropped for their width."""
    out, hidden, gap = LineWriter(stderr=stderr), dict[str, None](), False
    for heading, grids, lines in sections:
        if heading is not None:
            out.write(heading if gap else f"\n{heading}")
            gap = False
        for grid in grids:
            parts, dropped = grid.parts(out.width)
            hidden |= dict.fromkeys(dropped)
            for part in parts:
                head, body = part.block(out.width)
                out.write(head if gap else f"\n{head}", bold=True)
                out.write(f"{body}\n")
                gap = True
        if lines:
            out.write("\n".join(lines))
            gap = False
    if hidden:
        out.write(f"columns hidden to fit the terminal: {', '.join(hidden)} (--json has all)")


def print_found(
    found: Displayed, more: str, *, details: bool = False, as_json: bool = False
) -> None:
    """Print a value as JSON, in short, or its first line and its details.

    Args:
        found: the value, which has ``in_full`` and ``as_json``.
        more: a line below the short form, such as the options that show more.
        details: True for its details.
        as_json: True for JSON, whatever else is asked for.
    """
    if as_json:
        print_json(found.as_json())  # type: ignore[attr-defined]  # each has it
    elif details:
        LineWriter().write(display_of(found).title, bold=True)
        print_sections(found.in_full())  # type: ignore[attr-defined]  # as above
    else:
        print_display(found, more)


def print_display(shown: Displayed | Display, more: str = "", *, stderr: bool = False) -> None:
    """Print what Python shows of a value, but in full.

    Args:
        shown: the value, or its display.
        more: a line below it, such as the options that show more.
        stderr: True for standard error.
    """
    view = shown if isinstance(shown, Display) else display_of(shown)
    LineWriter(stderr=stderr).write(view.title, bold=True)
    warning = f"Warning: {view.warning}" if view.warning else ""
    grids = [view.grid] if view.grid and view.grid.rows else []
    lines = [*filter(None, [warning, *view.notes, more])]
    print_sections([Section(None, grids, lines)], stderr=stderr)


_FRAMED_WIDTH = 72
"""Least width of a terminal in which names in a framed table are not folded."""


def print_catalog(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a framed table of names and descriptions; the last column is folded."""
    from rich.table import Table

    out, table = console(), Table(show_lines=True)
    table.add_column(headings[0], overflow="fold", no_wrap=out.width >= _FRAMED_WIDTH)
    for heading in headings[1:]:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*row)
    out.print(table)


def print_lines(lines: Sequence[str]) -> None:
    """Print lines of any length on standard output; print nothing if there are none."""
    if lines:
        LineWriter().write("\n".join(lines))


def print_json(value: object) -> None:
    """Print a value as one line of JSON, with control characters escaped."""
    sys.stdout.write(plain_json(json.dumps(value, ensure_ascii=False)) + "\n")


def next_command(rows: Iterable[SummaryRow], source: str) -> Iterator[str]:
    """Yield a line with the command that makes a report, if there is a label and a source."""
    if source and any(row.labeled and row.metric.kind == "label" for row in rows):
        yield f"Next: labeler report {shlex.quote(source)}"


def notify(message: str) -> None:
    """Print a message on standard error."""
    sys.stderr.write(visible(message) + "\n")


def notify_repeated(records: int) -> None:
    """Report the number of records that were left out because they repeat, if there are any."""
    if records:
        from labeler.calculators.metrics_row import REPEATED

        notify(REPEATED.format(records))


def notify_selected(labels: Iterable[str | None]) -> None:
    """Warn of labels that people selected and corrected; tables have the warning as a note."""
    from labeler.labels.signature import selection_warnings

    for warning in selection_warnings(labels):
        notify(warning)


def counted(counts: Mapping[str, int]) -> str:
    """Return `` (refusal 2, contract 1)``, or an empty string if there are no counts."""
    listed = ", ".join(f"{name} {count}" for name, count in counts.items())
    return f" ({listed})" if listed else ""


def print_declared(group: str) -> None:
    """Print the names that other installed packages declare, with their packages.

    Args:
        group: such as ``metrics``; see :func:`labeler.extensions.offered`.
    """
    for name, point in offered(group).items():
        if not is_own(point):
            LineWriter().write(f"{visible(name)} of {visible(package_of(point))}")


_HANGUP = getattr(signal, "SIGHUP", None)
"""The terminal was closed; Windows lacks it."""
_SIGNALS = tuple(filter(None, (signal.SIGINT, signal.SIGTERM, _HANGUP)))
_STDOUT, _STDERR = 1, 2
_UNIX_EXIT = 128
_HURRYING = 2
"""Number of the signal that hurries without an exception."""
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


class _Stopping:
    """The message of the first signal, the action of the next ones, and the number of both."""

    text = ""
    hurry: Callable[[], None] | None = None
    signals = 0


def announce(text: str, hurry: Callable[[], None] | None = None) -> None:
    """Set the message that the first signal prints, and a function that the next ones call.

    The second signal only calls the function: its exception would end what the first one unwinds,
    and would not reach a wait that begins after it.
    """
    _Stopping.text, _Stopping.hurry = text, hurry


@contextmanager
def signals_raise() -> Iterator[None]:
    """Raise :class:`Interrupted` on signals; does nothing outside the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # Signals ignored by the parent process stay ignored, as in background jobs and nohup.
    handled = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    previous = {number: signal.signal(number, _raise) for number in handled}
    hook = sys.unraisablehook

    def send_again(unraisable: Any) -> None:  # noqa: ANN401 - its class is private
        """Send the signal of a dropped exception again."""
        dropped = unraisable.exc_value
        if not isinstance(dropped, Interrupted):
            hook(unraisable)
            return
        _Stopping.signals -= 1
        # The code being cleaned up may hold a lock of threading.
        _thread.start_new_thread(_send_again, (dropped.number,))

    sys.unraisablehook = send_again
    _Stopping.signals = 0
    try:
        yield
    finally:
        sys.unraisablehook = hook
        announce("")
        for number, handler in previous.items():
            signal.signal(number, handler)


def _raise(number: int, _frame: FrameType | None) -> None:
    _Stopping.signals += 1
    if _Stopping.signals > 1 and _Stopping.hurry:
        _Stopping.hurry()
        if _Stopping.signals == _HURRYING:
            return
    if _Stopping.text or number == _HANGUP:
        text, _Stopping.text = _Stopping.text, ""
        try:
            # sys.stderr may be in the middle of a write.
            os.write(_STDERR, f"\n{text}\n".encode())
        except OSError:  # the terminal is closed: an error there must not end paid requests
            for descriptor in (_STDOUT, _STDERR):
                if stat.S_ISCHR(os.fstat(descriptor).st_mode):
                    os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
    raise Interrupted(number)


def _send_again(number: int) -> None:
    time.sleep(_RESEND_DELAY)
    main = threading.main_thread().ident
    if main is not None and signal.getsignal(number) is _raise:
        signal.pthread_kill(main, number)
