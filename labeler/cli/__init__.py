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
import io
import os
import pkgutil
import re
import sys
from collections.abc import Callable, Iterable
from copy import copy
from functools import cache
from traceback import extract_tb
from typing import Annotated, Any, TextIO

import typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import TyperException
from typer.main import get_command

from labeler.cli.terminal import TRY_LATER, WRONG_USE, Interrupted, ReaderGone, signals_raise
from labeler.errors import LabelerError, RunPaused, UsageError, on_command_line
from labeler.extensions import blaming, load, offered, package_of
from labeler.sentences.characters import visible
from labeler.sentences.words import read_table
from labeler.version import __version__

_GATE = re.compile(r"\w\s*[<>=]=?\s*[\d.]")
"""A gate that is written as in words, such as ``adherence>=0.8``."""
_GATE_OPTION = re.compile(r"Option '(--min|--max|--max-drop)' requires")
"""The message about a gate without a text."""
GATE_EXAMPLES = {
    "--min": "adherence=0.9",
    "--max": "hallucination_rate=0.1",
    "--max-drop": "adherence=0.02",
}
"""Gates that can be missed, by option."""
_PIPE_CLOSED = "the reader left before all was written"


_DECLARED = read_table(__file__, "commands")
_COMMANDS = {
    name: (None if "." in name else heading, place)
    for heading, places in _DECLARED["commands"].items()
    for name, place in places.items()
}
"""Heading and function of each command."""
SHORT = _DECLARED["short"]
"""Options that short help shows, and examples, by command."""
_WRITES = {"label", "store.export"}
"""Commands whose work is unfinished if the reader closes the pipe; the others only show data."""


class LazyCommand(TyperCommand):
    """A command that is listed or completed without importing it.

    Args:
        name: its full name, with its group's name.
    """

    def __init__(self, name: str) -> None:
        self.full_name, self.is_own = name, name in _COMMANDS
        if self.is_own:
            panel, self._place = _COMMANDS[name]
            line = _first_line(*self._place.split(":"))
        else:
            point, panel = offered("commands")[name], "Plug-ins"
            line = point.name.partition(" ")[2] or f"From the package {package_of(point)}."
        super().__init__(name.rpartition(".")[2], help=line.replace("[", r"\["))  # no markup
        self.rich_help_panel = panel

    def make_context(self, info_name: Any, args: Any, parent: Any = None, **extra: Any) -> Any:  # noqa: ANN401 - as typer passes them
        """Return the context of the command itself."""
        return self.loaded().make_context(info_name, args, parent, **extra)

    def loaded(self) -> Any:  # noqa: ANN401 - a command of typer
        """Import the command; a declared one may have its own message, ``pipe_closed``."""
        if self.is_own:
            found = pkgutil.resolve_name(f"{__name__}.{self._place}")
            message = _PIPE_CLOSED if self.full_name in _WRITES else ""
            return _made(found, str(self.name), message)
        found = load("commands", self.full_name)
        with blaming(offered("commands")[self.full_name]):
            if isinstance(found, typer.Typer):
                return get_command(found)
            return _made(found, str(self.name), getattr(found, "pipe_closed", _PIPE_CLOSED))


def _first_line(module: str, function: str) -> str:
    """Return the first line of a function's help without importing its module."""
    source = (pkgutil.get_data(__name__, f"{module}.py") or b"").decode()
    pattern = rf'^def {function}\(.*?^    """(.*?)(""")?$'
    line = re.search(pattern, source, re.MULTILINE | re.DOTALL)
    return line[1] if line else ""


@cache
def _made(function: Callable[..., Any], name: str, pipe_closed: str) -> Any:  # noqa: ANN401 - a command of typer
    """Make a command of a function whose parameters are options or classes of options."""
    from labeler.cli.options import expand_options

    single = _typer(add_completion=False)
    expanded = expand_options(function, {"help_all": HelpAll} if name in SHORT else None)

    @single.command(name, cls=HelpfulCommand)
    @functools.wraps(expanded)
    def _(*args: object, **given: object) -> object:
        try:
            result = expanded(*args, **given)
            sys.stdout.flush()
        except BrokenPipeError:  # which typer would report as a failure
            raise ReaderGone(pipe_closed) from None
        except SystemExit as error:  # of a user's or a package's code
            place = [one for one in extract_tb(error.__traceback__) if one.line][-1]
            where = f"{place.filename}:{place.lineno}: {place.line}"
            raise UsageError(f"{where}: it ended labeler; return or raise an error") from error
        return result

    return get_command(single)


def _typer(**settings: Any) -> typer.Typer:  # noqa: ANN401 - as typer takes them
    settings["context_settings"] = {"help_option_names": ["-h", "--help"]}
    return typer.Typer(rich_markup_mode="rich", pretty_exceptions_enable=False, **settings)


class _Group(TyperGroup):
    """Lists the commands, then the subgroups; shows its help if no command is given."""

    prefix = ""
    """Start of the names of its commands, such as ``import.``; commands of the root have no dot."""

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 - as typer passes them
        super().__init__(**settings)
        unloaded: dict[str, Any] = dict.fromkeys(self._own(_COMMANDS))  # names to suggest
        self.commands = unloaded | dict(self.commands)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - typer's own
        bare = not args and not ctx.resilient_parsing  # completion parses without running
        return super().parse_args(ctx, ["--help"] if bare else args)

    def format_help(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - typer's own
        ctx.resilient_parsing = True  # as for completion, commands are listed, not imported
        super().format_help(ctx, formatter)
        ctx.resilient_parsing = False

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401 - typer's own
        declared = sorted(self._own(offered("commands")))
        return [*dict.fromkeys([*super().list_commands(ctx), *declared])]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401 - typer's own
        found = super().get_command(ctx, cmd_name)
        if found:
            return found
        # Our own commands come first: to look for others takes longer.
        if cmd_name not in self.commands and cmd_name not in self._own(offered("commands")):
            return None
        command = LazyCommand(self.prefix + cmd_name)
        return command if ctx.resilient_parsing else command.loaded()

    def _own(self, names: Iterable[str]) -> list[str]:
        own = (name.removeprefix(self.prefix) for name in names if name.startswith(self.prefix))
        return [name for name in own if "." not in name]


app = _typer(
    cls=_Group,
    help="Label RAG records with an LLM judge once, and recompute metrics from stored labels.",
)
for _name, _group in _DECLARED["groups"].items():
    _class = type("Group", (_Group,), {"prefix": f"{_name}."})
    _typed = _typer(cls=_class, help=_group["help"])
    app.add_typer(_typed, name=_name, rich_help_panel=_group["heading"])


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
            return _exit_code(app(prog_name="labeler", standalone_mode=False))
    except Interrupted as interrupt:
        _print_error("interrupted; run it again to go on: what is stored costs nothing")
        return interrupt.exit_code
    except typer.Exit as leaving:
        return leaving.exit_code
    except TyperException as error:
        misused = getattr(getattr(error, "ctx", None), "command_path", "labeler")
        return _print_error(f"{_plain(error)}\ntry '{misused} --help'")
    except LabelerError as error:
        code = _print_error(str(error))
        return TRY_LATER if isinstance(error, RunPaused) else code
    except ReaderGone as error:
        _discard(sys.stdout)
        if error.exit_code:
            _print_error(str(error))
        return error.exit_code
    except OSError as error:
        return _print_system_error(error)


def _print_system_error(error: OSError) -> int:
    """Print an error of the system: input errors are raised as UsageError."""
    if error.filename is not None:  # raised by a command of another package
        return _print_error(f"{error.filename}: {error.strerror}")
    _discard(sys.stdout)
    return _print_error(f"cannot write the output: {error.strerror or error}")


def _exit_code(result: object) -> int:
    """Return the exit code that a command returned; ``None`` is 0."""
    if not isinstance(result, int | None):
        raise UsageError(f"the command returned {result!r:.80}, not its exit code or None")
    return int(result or 0)


def _plain(error: TyperException) -> str:
    """Return the message of a fault in the command line, with what may be meant."""
    text = error.format_message().replace("Value error, ", "")
    if faults := getattr(error.__cause__, "errors", None):  # of pydantic
        given = f"{faults()[0]['input']!r:.80}"
        text += "" if given in text else f", got {given}"
    if "unexpected extra argument" in text and _GATE.search(text):
        return f"{text}; a gate is an option: --min METRIC=NUMBER, or --max METRIC=NUMBER"
    if gate := _GATE_OPTION.match(text):
        return f"{text} Write METRIC=NUMBER, such as {gate[1]} {GATE_EXAMPLES[gate[1]]}"
    return text


def _discard(stream: TextIO) -> None:
    """Discard a stream's buffer, which Python would write again on exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _print_error(message: str) -> int:
    try:
        sys.stderr.write(f"labeler: {visible(message)}\n")
    except OSError:  # nobody reads: a closed terminal, or a pipe that had both streams
        _discard(sys.stderr)
    return WRONG_USE


# Help on two levels: the options that most people need, and all of them. Its texts are plain:
# rich would take ``[tool.labeler]`` for markup and drop it.


_ONE_BREAK = re.compile(r"(?<!\n)\n(?!\n) *")
"""A line break within a paragraph of a docstring, which rich would keep in narrower help."""


class HelpfulCommand(TyperCommand):
    """A command whose ``--help`` is short; an option that takes one value is given once."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - as typer passes them
        """Parse the options; a repeated one is an error, unless it takes all of its values.

        Raises:
            UsageError: an option that takes one value is given twice, or one has an empty value,
                as an unset variable of the shell gives.
        """
        given = [] if ctx.resilient_parsing else _values(self, ctx, args)
        rest: list[str] = super().parse_args(ctx, args)
        for option, values in given:
            if len(values) > 1 and not option.multiple:
                raise UsageError(_named_twice(self, option, values))
            if "" in values:
                name = max(option.opts, key=len)
                raise UsageError(f"{name} is empty: give it a value, or leave the option out")
        if ctx.default_map:
            from labeler.cli.config import merge_with_file

            merge_with_file(ctx)
        return rest

    def format_help(self, ctx: Any, formatter: Any, *, complete: bool = False) -> None:  # noqa: ANN401 - as above
        """Print help, if ``complete`` with all options."""
        from rich.markup import escape

        shown = copy(self)
        shown.params = [copy(one) for one in self.params]
        if not complete and self.name in SHORT:
            _shorten(shown, **SHORT[self.name])
        texts: Any = (shown, *shown.params)
        for one in texts:
            one.help = one.help and escape(_ONE_BREAK.sub(" ", one.help))
        super(HelpfulCommand, shown).format_help(ctx, formatter)


def _values(command: Any, ctx: Any, args: list[str]) -> list[tuple[Any, list[str]]]:  # noqa: ANN401 - of typer
    """Return the options that are given a value, with all of their values."""
    options = [one for one in command.params if one.param_type_name == "option" and not one.is_flag]
    once = [one for one in options if not one.multiple]
    for one in once:
        one.multiple = True  # the parser then collects
    parser = command.make_parser(ctx)
    for one in once:
        one.multiple = False
    found = parser.parse_args([*args])[0]
    return [(one, found[one.name]) for one in options if found.get(one.name)]


def _named_twice(command: Any, option: Any, values: list[str]) -> str:  # noqa: ANN401 - of typer
    """Return the message about an option that is given several times."""
    name = max(option.opts, key=len)
    several = {max(one.opts, key=len): one for one in command.params}
    lists = {
        one for one, own in several.items() if "comma-separated" in str(getattr(own, "help", ""))
    }
    listing = next((one for one in (name, f"{name}s") if one in lists), "")
    remedy = f"list them: {listing} {','.join(values)}" if listing else "it takes one value"
    return f"{name} is given {len(values)} times, as {' and '.join(map(repr, values))}: {remedy}"


def _print_all(context: typer.Context, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        command: Any = context.command
        command.format_help(context, context.make_formatter(), complete=True)
        raise typer.Exit


HelpAll = Annotated[
    bool,
    typer.Option(
        "--help-all",
        callback=_print_all,
        is_eager=True,
        expose_value=False,
        help="Show all options and exit.",
    ),
]
"""An option of each command whose help is short."""


def _shorten(command: Any, options: str, examples: list[str]) -> None:  # noqa: ANN401 - of typer
    """Hide the options that short help leaves out, and show examples below."""
    order = [*options.split(), "help_all"]
    every = [one for one in command.params if one.param_type_name == "option"]
    hidden = [one for one in every if one.name not in order and not one.hidden]
    for one in every:
        one.rich_help_panel, one.hidden = None, one.hidden or one in hidden
        if one.type_descriptor.annotation in {int, float}:
            one.metavar = "N"  # the whole type and its range take a third of the line
    listed = sorted(set(every) - set(hidden), key=lambda one: order.index(one.name))
    command.params = [*(one for one in command.params if one not in every), *listed, *hidden]
    lines = "\n\n".join(("Examples:", *examples))
    command.epilog = f"{lines}\n\n{len(hidden)} more options: --help-all"
