"""The command line: it translates and nothing else.

Rows go to standard output or to files, messages to standard error. Exit codes: 0 all well, 1 some
rows failed or a gate was missed, 2 wrong use or a run that cannot go on, 4 the budget is used up,
75 come back later: the server asks for it, or a batch is not answered yet, 130 and 143 interrupted,
141 the reader of the labels left. A command's module is imported when the command is named, and
everything heavy inside the command, so that short ones and ``--help`` answer at once.
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
"""What Unix calls a temporary failure."""

_UNREAD = "the reader left before all was written"


class _Home(NamedTuple):
    """Location of a command.

    Attributes:
        module: a module of this package.
        function: the function of the command.
        lacking: message if the reader leaves early; empty for commands whose output is a view.
    """

    module: str
    function: str
    lacking: str = ""


class _Commands(UserDict[str, Any]):
    """Commands by name, imported on first use."""

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - typer's own kind of command
        found = super().__getitem__(name)
        if isinstance(found, _Home):
            found = self.data[name] = _imported(name, found)
        return found


def _imported(name: str, home: _Home) -> Any:  # noqa: ANN401 - typer's own kind of command
    module = importlib.import_module(f"{__name__}.{home.module}")
    alone = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    command = getattr(module, home.function)
    if "labeler.data.options" in sys.modules:  # else no parameter of it is an options class
        from labeler.cli.options import expand_options

        command = expand_options(command)
    alone.command(name)(_guarded(command, home.lacking))
    return get_command(alone)


def _guarded(command: Callable[P, T], lacking: str) -> Callable[P, T]:
    """Catch a closed pipe before typer does, which would report a failure."""

    @functools.wraps(command)
    def run_command(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            result = command(*args, **kwargs)
            sys.stdout.flush()
        except BrokenPipeError:
            raise ReaderGone(lacking) from None
        return result

    return run_command


def _group(commands: dict[str, _Home], told: str) -> typer.Typer:
    """Return a group of commands, which are imported on first use."""

    class Group(TyperGroup):
        """Lists the commands, then the subgroups."""

        def __init__(self, **settings: Any) -> None:  # noqa: ANN401 - as typer passes them
            super().__init__(**settings)
            self.commands = _Commands(commands | dict(self.commands))

    return typer.Typer(
        cls=Group,
        help=told,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )


app = _group(
    {
        "label": _Home("labeling", "label", _UNREAD),
        "estimate": _Home("estimating", "estimate"),
        "score": _Home("scoring", "score"),
        "length": _Home("scoring", "length"),
        "metrics": _Home("reading", "metrics"),
        "compare": _Home("comparing", "compare"),
        "check": _Home("checking", "check"),
        "agree": _Home("agreeing", "agree"),
        "index": _Home("indexing", "index"),
        "similarity": _Home("similarity", "similarity"),
        "show": _Home("reading", "show"),
        "audit": _Home("auditing", "audit"),
        "report": _Home("reporting", "report"),
        "review": _Home("reviewing", "review"),
        "diff": _Home("diffing", "diff"),
        "calibrate": _Home("reading", "calibrate"),
        "export": _Home("labeling", "export", _UNREAD),
        "schema": _Home("artifacts", "schema"),
        "prompt": _Home("artifacts", "prompt"),
    },
    "Label RAG records with an LLM judge once, and compute metrics from the labels for ever.",
)
app.add_typer(
    _group(
        {
            "apply": _Home("corrections", "apply"),
            "export": _Home("corrections", "export"),
            "import": _Home("corrections", "import_"),
        },
        "Take what people said of a judge's labels to other tools and back, and into numbers.",
    ),
    name="corrections",
)
app.add_typer(
    _group(
        {
            "ragbench": _Home("labeling", "import_ragbench", _UNREAD),
            "labels": _Home("labeling", "import_labels"),
        },
        "Bring in labels that were made elsewhere.",
    ),
    name="import",
)
app.add_typer(
    _group(
        {
            "submit": _Home("batching", "submit"),
            "status": _Home("batching", "status"),
            "collect": _Home("batching", "collect"),
            "cancel": _Home("batching", "cancel"),
        },
        "Have rows labelled within a day, for half the price.",
    ),
    name="batch",
)
app.add_typer(_group({"merge": _Home("stores", "merge")}, "Work on label stores."), name="store")


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


def run() -> int:  # noqa: PLR0911 - one line for each way to end
    """Run the command line and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.encoding.lower() != "utf-8":
            stream.reconfigure(encoding="utf-8", errors="replace")
    try:
        with signals_raise():
            return int(app(prog_name="labeler", standalone_mode=False) or 0)
    except Interrupted as interrupt:
        _complain("interrupted; run it again to go on: what is stored costs nothing")
        return interrupt.exit_code
    except typer.Exit as leaving:
        return leaving.exit_code
    except TyperException as error:
        return _complain(f"{error.format_message()}\ntry '{_at(error)} --help'")
    except RunPaused as error:
        _complain(str(error))
        return TRY_LATER
    except LabelerError as error:
        return _complain(str(error))
    except ReaderGone as gone:
        return _part(gone)
    except OSError as error:
        # Errors of reading name their file; this one is about the output.
        _let_go(sys.stdout)
        return _complain(f"cannot write the output: {error.strerror or error}")


def _part(gone: ReaderGone) -> int:
    """Report what the reader missed, if standard error is still open."""
    _let_go(sys.stdout)
    if gone.exit_code:
        try:
            _complain(str(gone))
        except BrokenPipeError:  # it had both streams
            _let_go(sys.stderr)
    return gone.exit_code


def _let_go(stream: TextIO) -> None:
    """Drop a stream's buffer: Python would try to write it again on exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _at(error: TyperException) -> str:
    """Return the command that was used wrongly, as far as it was parsed."""
    context = getattr(error, "ctx", None)
    return context.command_path if context else "labeler"


def _complain(message: str) -> int:
    sys.stderr.write(f"labeler: {visible(message)}\n")
    return WRONG_USE
