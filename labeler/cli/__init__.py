"""The command line.

Rows go to standard output or to files, messages to standard error. Exit codes:

- 0: success
- 1: some rows failed, or a gate was missed
- 2: a usage error, or a run that cannot continue
- 4: the budget is used up
- 75: try again later: the server asks to wait, or a batch is unfinished
- 129, 130 and 143: interrupted
- 141: the reader closed the pipe before all labels were written

A command's module is imported when the command runs, which keeps ``--help`` and others fast.
"""

from __future__ import annotations

import functools
import importlib
import io
import os
import pkgutil
import re
import sys
from collections.abc import Callable, Iterable
from functools import cache
from typing import Annotated, Any, ParamSpec, TextIO, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import TyperException
from typer.main import get_command

from labeler.cli.help import SHORT, HelpAll, HelpfulCommand
from labeler.cli.terminal import TRY_LATER, WRONG_USE, Interrupted, ReaderGone, signals_raise
from labeler.errors import LabelerError, RunPaused, on_command_line
from labeler.extensions import load, offered, package_of
from labeler.sentences.characters import visible
from labeler.version import __version__

P = ParamSpec("P")
T = TypeVar("T")

_GATE = re.compile(r"\w\s*[<>=]=?\s*[\d.]")
"""A gate that is written as in words, such as ``adherence>=0.8``."""
_GATE_OPTION = re.compile(r"Option '(--min|--max|--max-drop)' requires")
"""The message about a gate without a text."""
_PIPE_CLOSED = "the reader left before all was written"


_LABEL, _MEASURE, _COMPARE, _AUDIT = "Label", "Measure", "Compare", "Audit"
_EVIDENCE, _REVIEW, _STORE = "Evidence", "Review", "Store and files"
_COMMANDS = {
    "quickstart": (_LABEL, "label.quickstart"),
    "label": (_LABEL, "label.label"),
    "estimate": (_LABEL, "label.estimate"),
    "metrics": (_MEASURE, "measure.metrics"),
    "check": (_MEASURE, "check.check"),
    "report": (_MEASURE, "measure.report"),
    "compare": (_COMPARE, "compare.compare"),
    "diff": (_COMPARE, "compare.diff"),
    "agree": (_COMPARE, "compare.agree"),
    "thresholds": (_COMPARE, "compare.thresholds"),
    "audit": (_AUDIT, "audit.audit"),
    "show": (_AUDIT, "audit.show"),
    "worst": (_AUDIT, "audit.worst"),
    "exam": (_EVIDENCE, "evidence.exam"),
    "review": (_REVIEW, "review.review"),
    "certify": (_EVIDENCE, "evidence.certify"),
    "doubt": (_EVIDENCE, "evidence.doubt"),
    "prompt": (_STORE, "store.prompt"),
    "anchors.make": (None, "evidence.make_anchors"),
    "anchors.check": (None, "evidence.check_anchors"),
    "corrections.apply": (None, "review.apply"),
    "store.merge": (None, "store.merge"),
    "store.verify": (None, "store.verify"),
    "store.delete": (None, "store.delete"),
    "store.export": (None, "store.export"),
    "store.import": (None, "store.import_"),
}
"""Heading and function of each command; the name of one in a group has the group's before a dot."""
_WRITES = {"label", "store.export"}
"""Commands whose work is unfinished if the reader closes the pipe; the others only show data."""
_GROUPS = {
    "anchors": (
        _EVIDENCE,
        "See whether the judge has changed: ask it about the same records again.",
    ),
    "batch": (_LABEL, "Label rows within a day at half the price."),
    "corrections": (
        _REVIEW,
        "Exchange people's corrections with other tools, and apply them.",
    ),
    "import": (_STORE, "Import labels and traces that were made elsewhere."),
    "store": (_STORE, "Merge, verify, export, import and delete stored labels."),
}
"""Heading and description of each group."""


class LazyCommand(TyperCommand):
    """A command that is listed or completed without importing it.

    Args:
        name: its full name, with its group's name.
    """

    def __init__(self, name: str) -> None:
        self.full_name, self.is_own = name, name in _COMMANDS
        if self.is_own:
            panel, self._place = _COMMANDS[name]
            line = _first_line(*self._place.split("."))
        else:
            point, panel = offered("commands")[name], "Plug-ins"
            line = point.name.partition(" ")[2] or f"From the package {package_of(point)}."
        super().__init__(name.rpartition(".")[2], help=line)
        self.rich_help_panel = panel

    def make_context(self, info_name: Any, args: Any, parent: Any = None, **extra: Any) -> Any:  # noqa: ANN401 - as typer passes them
        """Return the context of the command itself."""
        return self.loaded().make_context(info_name, args, parent, **extra)

    def loaded(self) -> Any:  # noqa: ANN401 - a command of typer
        """Import the command; a declared one may have its own message, ``pipe_closed``."""
        if self.is_own:
            module, _, function = self._place.partition(".")
            found = getattr(importlib.import_module(f"{__name__}.{module}"), function)
            message = _PIPE_CLOSED if self.full_name in _WRITES else ""
            return _made(found, str(self.name), message)
        found = load("commands", self.full_name)
        if isinstance(found, typer.Typer):
            return get_command(found)
        return _made(found, str(self.name), getattr(found, "pipe_closed", _PIPE_CLOSED))


def _first_line(module: str, function: str) -> str:
    """Return the first line of a function's help, if possible without importing its module."""
    try:
        source = (pkgutil.get_data(__name__, f"{module}.py") or b"").decode()
    except OSError:  # a program that is frozen into one file has no sources
        found = getattr(importlib.import_module(f"{__name__}.{module}"), function)
        return str(found.__doc__).partition("\n")[0]
    pattern = rf'^def {function}\(.*?^    """(.*?)(""")?$'
    line = re.search(pattern, source, re.MULTILINE | re.DOTALL)
    return line[1] if line else ""


@cache
def _made(function: Callable[..., Any], name: str, pipe_closed: str) -> Any:  # noqa: ANN401 - a command of typer
    """Make a command of a function whose parameters are options or classes of options."""
    from labeler.cli.options import expand_options

    single = _typer(add_completion=False)
    expanded = expand_options(function, {"help_all": HelpAll} if name in SHORT else None)
    runnable = _raise_closed_pipe(expanded, pipe_closed)
    single.command(name, cls=HelpfulCommand)(runnable)
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


class _Group(TyperGroup):
    """Lists the commands, then the subgroups; shows its help if no command is given."""

    prefix = ""
    """Start of the names of its commands, such as ``import.``; commands of the root have no dot."""

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 - as typer passes them
        super().__init__(**settings)
        unloaded: dict[str, Any] = dict.fromkeys(self._own(_COMMANDS))
        self.commands = unloaded | dict(self.commands)
        self._listed: dict[str, LazyCommand] = {}
        self._listing = False

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - typer's own
        bare = not args and not ctx.resilient_parsing  # completion parses without running
        return super().parse_args(ctx, ["--help"] if bare else args)

    def format_help(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - typer's own
        from rich.markup import escape

        self._listing, self._listed = True, {}
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            command.help = escape(command.help)
        super().format_help(ctx, formatter)
        self._listing, self._listed = False, {}

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401 - typer's own
        return [*super().list_commands(ctx), *sorted(self._own(offered("commands")))]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401 - typer's own
        if found := super().get_command(ctx, cmd_name):
            return found
        if cmd_name not in self.commands and cmd_name not in self._own(offered("commands")):
            return None
        if cmd_name not in self._listed:
            self._listed[cmd_name] = LazyCommand(self.prefix + cmd_name)
        command = self._listed[cmd_name]
        return command if self._listing or ctx.resilient_parsing else command.loaded()

    def _own(self, names: Iterable[str]) -> list[str]:
        own = (name.removeprefix(self.prefix) for name in names if name.startswith(self.prefix))
        return [name for name in own if "." not in name]


app = _typer(
    cls=_Group,
    help="Label RAG records with an LLM judge once, and recompute metrics from stored labels.",
)
for _name, (_panel, _line) in _GROUPS.items():
    _class = type("Group", (_Group,), {"prefix": f"{_name}."})
    app.add_typer(_typer(cls=_class, help=_line), name=_name, rich_help_panel=_panel)


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
    if gate := _GATE_OPTION.match(text):
        return f"{text} Write METRIC=NUMBER, such as {gate[1]} adherence=0.9"
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
