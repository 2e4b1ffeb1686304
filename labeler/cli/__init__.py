"""The command line.

Rows go to standard output or to files, messages to standard error. Exit codes:

- 0: success
- 1: some rows failed, or a gate was missed
- 2: a usage error, or a run that cannot continue
- 4: the budget is used up
- 75: try again later: the server asks to wait, or a batch is unfinished
- 129, 130 and 143: interrupted
- 141: the reader closed the pipe before all labels were written

A command's module is imported when the command runs, and heavy modules inside the command's
function, which keeps small commands and ``--help`` fast.
"""

from __future__ import annotations

import functools
import importlib
import io
import os
import sys
from collections import UserDict
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple, ParamSpec, TextIO, TypeVar

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException
from typer.main import get_command

from labeler.cli.interrupt import Interrupted, ReaderGone, signals_raise
from labeler.errors import LabelerError, RunPaused
from labeler.sentences.characters import visible
from labeler.version import __version__

P = ParamSpec("P")
T = TypeVar("T")

WRONG_USE = 2
TRY_LATER = 75
"""``EX_TEMPFAIL`` of Unix."""

_PIPE_CLOSED = "the reader left before all was written"


class _Command(NamedTuple):
    """Location of a command's function.

    Attributes:
        module: a module of this package.
        function: the function of the command.
        pipe_closed: message if the reader closes the pipe; empty for commands that only show data.
    """

    module: str
    function: str
    pipe_closed: str = ""


class _Commands(UserDict[str, Any]):
    """Commands by name, imported on first use."""

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - a command of typer
        found = super().__getitem__(name)
        if isinstance(found, _Command):
            found = self.data[name] = _load(name, found)
        return found


def _load(name: str, location: _Command) -> Any:  # noqa: ANN401 - a command of typer
    module = importlib.import_module(f"{__name__}.{location.module}")
    single = _typer()
    command = getattr(module, location.function)
    if "labeler.data.options" in sys.modules:  # else no parameter is an options class
        from labeler.cli.options import expand_options

        command = expand_options(command)
    single.command(name)(_raise_closed_pipe(command, location.pipe_closed))
    return get_command(single)


def _typer(**settings: Any) -> typer.Typer:  # noqa: ANN401 - those of typer
    return typer.Typer(
        add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False, **settings
    )


def _raise_closed_pipe(command: Callable[P, T], message: str) -> Callable[P, T]:
    """Replace a closed pipe's error, which typer would report as a failure."""

    @functools.wraps(command)
    def run_command(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            result = command(*args, **kwargs)
            sys.stdout.flush()
        except BrokenPipeError:
            raise ReaderGone(message) from None
        return result

    return run_command


def _group(commands: dict[str, _Command], description: str) -> typer.Typer:
    """Return a group of commands, which are imported on first use."""

    class Group(TyperGroup):
        """Lists the commands, then the subgroups."""

        def __init__(self, **settings: Any) -> None:  # noqa: ANN401 - as typer passes them
            super().__init__(**settings)
            self.commands = _Commands(commands | dict(self.commands))

    return _typer(cls=Group, help=description, no_args_is_help=True)


app = _group(
    {
        "label": _Command("labeling", "label", _PIPE_CLOSED),
        "estimate": _Command("estimating", "estimate"),
        "score": _Command("scoring", "score"),
        "length": _Command("scoring", "length"),
        "metrics": _Command("reading", "metrics"),
        "compare": _Command("comparing", "compare"),
        "check": _Command("checking", "check"),
        "agree": _Command("agreeing", "agree"),
        "index": _Command("indexing", "index"),
        "similarity": _Command("similarity", "similarity"),
        "show": _Command("reading", "show"),
        "audit": _Command("auditing", "audit"),
        "report": _Command("reporting", "report"),
        "review": _Command("reviewing", "review"),
        "diff": _Command("diffing", "diff"),
        "calibrate": _Command("reading", "calibrate"),
        "export": _Command("labeling", "export", _PIPE_CLOSED),
        "schema": _Command("artifacts", "schema"),
        "prompt": _Command("artifacts", "prompt"),
    },
    "Label RAG records with an LLM judge once, and compute metrics from the labels for ever.",
)
app.add_typer(
    _group(
        {
            "apply": _Command("corrections", "apply"),
            "export": _Command("corrections", "export"),
            "import": _Command("corrections", "import_"),
        },
        "Take what people said of a judge's labels to other tools and back, and into numbers.",
    ),
    name="corrections",
)
app.add_typer(
    _group(
        {
            "ragbench": _Command("labeling", "import_ragbench", _PIPE_CLOSED),
            "labels": _Command("labeling", "import_labels"),
        },
        "Bring in labels that were made elsewhere.",
    ),
    name="import",
)
app.add_typer(
    _group(
        {
            "submit": _Command("batching", "submit"),
            "status": _Command("batching", "status"),
            "collect": _Command("batching", "collect"),
            "cancel": _Command("batching", "cancel"),
        },
        "Have rows labelled within a day, for half the price.",
    ),
    name="batch",
)
app.add_typer(
    _group(
        {
            "merge": _Command("stores", "merge"),
            "verify": _Command("stores", "verify"),
            "delete": _Command("deleting", "delete"),
        },
        "Work on label stores.",
    ),
    name="store",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"labeler {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and leave."
        ),
    ] = False,
) -> None:
    pass


def run() -> int:  # noqa: PLR0911 - one line for each outcome
    """Run the command line and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.encoding.lower() != "utf-8":
            stream.reconfigure(encoding="utf-8", errors="replace")
    try:
        with signals_raise():
            return int(app(prog_name="labeler", standalone_mode=False) or 0)
    except Interrupted as interrupt:
        _print_error("interrupted; run it again to go on: what is stored costs nothing")
        return interrupt.exit_code
    except typer.Exit as leaving:
        return leaving.exit_code
    except TyperException as error:
        return _print_error(f"{error.format_message()}\ntry '{_command_path(error)} --help'")
    except RunPaused as error:
        _print_error(str(error))
        return TRY_LATER
    except LabelerError as error:
        return _print_error(str(error))
    except ReaderGone as error:
        return _report_closed_pipe(error)
    except OSError as error:
        # Input errors are raised as UsageError; this one is about the output.
        _discard(sys.stdout)
        return _print_error(f"cannot write the output: {error.strerror or error}")


def _report_closed_pipe(error: ReaderGone) -> int:
    """Print the message, if standard error is still open, and return the exit code."""
    _discard(sys.stdout)
    if error.exit_code:
        try:
            _print_error(str(error))
        except BrokenPipeError:  # the same reader had both streams
            _discard(sys.stderr)
    return error.exit_code


def _discard(stream: TextIO) -> None:
    """Discard a stream's buffer, which Python would write again on exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _command_path(error: TyperException) -> str:
    """Return the misused command, as far as it was parsed."""
    context = getattr(error, "ctx", None)
    return context.command_path if context else "labeler"


def _print_error(message: str) -> int:
    sys.stderr.write(f"labeler: {visible(message)}\n")
    return WRONG_USE
