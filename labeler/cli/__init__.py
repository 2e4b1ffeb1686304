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
import re
import sys
from collections import UserDict
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple, ParamSpec, TextIO, TypeVar

import typer
from typer.core import TyperCommand
from typer.exceptions import TyperException
from typer.main import get_command

from labeler.cli.help import HelpfulCommand, PlainGroup
from labeler.cli.interrupt import Interrupted, ReaderGone, signals_raise
from labeler.errors import LabelerError, RunPaused, on_command_line
from labeler.extensions import load, offered, package_of
from labeler.sentences.characters import visible
from labeler.version import __version__

P = ParamSpec("P")
T = TypeVar("T")

WRONG_USE = 2
TRY_LATER = 75
"""``EX_TEMPFAIL`` of Unix."""

_GATE = re.compile(r"\w\s*[<>=]=?\s*[\d.]")
"""A gate that is written as in words, such as ``adherence>=0.8``."""
_PIPE_CLOSED = "the reader left before all was written"


class _Command(NamedTuple):
    """Location of a command's function.

    Attributes:
        panel: heading that the command is listed under.
        module: a module of this package.
        function: the function of the command.
        pipe_closed: message if the reader closes the pipe; empty for commands that only show data.
    """

    panel: str | None
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


class _Declared(TyperCommand):
    """A command that an installed package declares, imported when it is used, not when listed."""

    def __init__(self, name: str) -> None:
        point = offered("commands")[name]
        line = point.name.partition(" ")[2] or f"From the package {package_of(point)}."
        super().__init__(name.rpartition(".")[2], help=line)
        self.declared, self.rich_help_panel = name, "Plug-ins"

    def make_context(self, info_name: Any, args: Any, parent: Any = None, **extra: Any) -> Any:  # noqa: ANN401 - as typer passes them
        return self.loaded().make_context(info_name, args, parent, **extra)

    def loaded(self) -> Any:  # noqa: ANN401 - a command of typer
        """Import the command; its attribute ``pipe_closed`` is as in :class:`_Command`."""
        found = load("commands", self.declared)
        if isinstance(found, typer.Typer):
            return get_command(found)
        return _made(found, pipe_closed=getattr(found, "pipe_closed", _PIPE_CLOSED))


def _load(name: str, location: _Command) -> Any:  # noqa: ANN401 - a command of typer
    module = importlib.import_module(f"{__name__}.{location.module}")
    return _made(getattr(module, location.function), name, location.panel, location.pipe_closed)


def _made(
    function: Callable[..., Any], name: str = "", panel: str | None = None, pipe_closed: str = ""
) -> Any:  # noqa: ANN401 - a command of typer
    """Make a command of a function whose parameters are options or classes of options."""
    if "labeler.data.options" in sys.modules:  # else no parameter is an options class
        from labeler.cli.options import expand_options

        function = expand_options(function)
    single = _typer(add_completion=False)
    runnable = _raise_closed_pipe(function, pipe_closed)
    single.command(name or None, cls=HelpfulCommand, rich_help_panel=panel)(runnable)
    return get_command(single)


def _typer(**settings: Any) -> typer.Typer:  # noqa: ANN401 - those of typer
    settings["context_settings"] = {"help_option_names": ["-h", "--help"]}
    return typer.Typer(rich_markup_mode="rich", pretty_exceptions_enable=False, **settings)


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


def _group(commands: dict[str, _Command], description: str, prefix: str = "") -> typer.Typer:
    """Return a group of commands, which are imported on first use.

    Args:
        commands: the commands by name.
        description: shown in help.
        prefix: start of the names of commands that installed packages add to this group, such as
            ``import.``; those without a dot are added to the root.
    """

    class Group(PlainGroup):
        """Lists the commands, then the subgroups; shows its help if no command is given."""

        def __init__(self, **settings: Any) -> None:  # noqa: ANN401 - as typer passes them
            super().__init__(**settings)
            self.commands = _Commands(commands | dict(self.commands))

        def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - typer's own
            bare = not args and not ctx.resilient_parsing  # completion parses without running
            return super().parse_args(ctx, ["--help"] if bare else args)

        def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401 - typer's own
            return [*super().list_commands(ctx), *sorted(_names_after(prefix))]

        def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401 - typer's own
            known = super().get_command(ctx, cmd_name)
            return (
                _Declared(prefix + cmd_name)
                if known is None and cmd_name in _names_after(prefix)
                else known
            )

    return _typer(cls=Group, help=description)


def _names_after(prefix: str) -> set[str]:
    """Return the names of commands that installed packages add to the group with a prefix."""
    found = {name.removeprefix(prefix) for name in offered("commands") if name.startswith(prefix)}
    return {name for name in found if "." not in name}


def _add_group(name: str, panel: str, commands: dict[str, _Command], description: str) -> None:
    group = _group(commands, description, f"{name}.")
    app.add_typer(group, name=name, rich_help_panel=panel)


app = _group(
    {
        "quickstart": _Command("Label", "starting", "quickstart"),
        "label": _Command("Label", "labeling", "label", _PIPE_CLOSED),
        "estimate": _Command("Label", "estimating", "estimate"),
        "metrics": _Command("Measure", "reading", "metrics"),
        "check": _Command("Measure", "checking", "check"),
        "report": _Command("Measure", "reporting", "report"),
        "compare": _Command("Compare", "comparing", "compare"),
        "diff": _Command("Compare", "diffing", "diff"),
        "agree": _Command("Compare", "agreeing", "agree"),
        "thresholds": _Command("Compare", "agreeing", "thresholds"),
        "audit": _Command("Audit", "auditing", "audit"),
        "show": _Command("Audit", "showing", "show"),
        "worst": _Command("Audit", "showing", "worst"),
        "exam": _Command("Evidence", "exams", "exam"),
        "review": _Command("Review", "reviewing", "review"),
        "certify": _Command("Evidence", "certifying", "certify"),
        "doubt": _Command("Evidence", "certifying", "doubt"),
        "prompt": _Command("Store and files", "artifacts", "prompt"),
    },
    "Label RAG records with an LLM judge once, and recompute metrics from stored labels.",
)
_add_group(
    "anchors",
    "Evidence",
    {
        "make": _Command(None, "exams", "make_anchors"),
        "check": _Command(None, "exams", "check_anchors"),
    },
    "See whether the judge has changed: ask it about the same records again.",
)
_add_group(
    "batch",
    "Label",
    {},
    "Label rows within a day at half the price.",
)
_add_group(
    "corrections",
    "Review",
    {
        "apply": _Command(None, "corrections", "apply"),
    },
    "Exchange people's corrections with other tools, and apply them.",
)
_add_group(
    "import",
    "Store and files",
    {},
    "Import labels and traces that were made elsewhere.",
)
_add_group(
    "store",
    "Store and files",
    {
        "merge": _Command(None, "stores", "merge"),
        "verify": _Command(None, "stores", "verify"),
        "delete": _Command(None, "stores", "delete"),
        "export": _Command(None, "stores", "export", _PIPE_CLOSED),
        "import": _Command(None, "stores", "import_"),
    },
    "Merge, verify, export, import and delete stored labels.",
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
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    pass


def run() -> int:
    """Run the command line and return its exit code."""
    with on_command_line():
        return _run()


def _run() -> int:  # noqa: PLR0911 - one line for each outcome
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
        return _print_error(f"{_plain(error)}\ntry '{_command_path(error)} --help'")
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


def _plain(error: TyperException) -> str:
    """Return the message of a fault in the command line, with what may be meant."""
    text = error.format_message().replace("Value error, ", "")
    if "unexpected extra argument" in text and _GATE.search(text):
        return f"{text}; a gate is an option: --min METRIC=NUMBER, or --max METRIC=NUMBER"
    return text


def _report_closed_pipe(error: ReaderGone) -> int:
    """Print the message of unfinished work, and return the exit code."""
    _discard(sys.stdout)
    if error.exit_code:
        _print_error(str(error))
    return error.exit_code


def _discard(stream: TextIO) -> None:
    """Discard a stream's buffer, which Python would write again on exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _command_path(error: TyperException) -> str:
    """Return the misused command, as far as it was parsed."""
    context = getattr(error, "ctx", None)
    return context.command_path if context else "labeler"


def _print_error(message: str) -> int:
    try:
        sys.stderr.write(f"labeler: {visible(message)}\n")
    except OSError:  # nobody reads: a closed terminal, or a pipe that had both streams
        _discard(sys.stderr)
    return WRONG_USE
