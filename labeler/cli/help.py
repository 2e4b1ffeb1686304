"""Commands with help on two levels: the options that most people need, and all of them.

Help texts are plain: rich would take ``[tool.labeler]`` for markup and drop it.
"""

from __future__ import annotations

from copy import copy
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperCommand

from labeler.errors import UsageError


class Short(NamedTuple):
    """The short help of a command.

    Attributes:
        options: names of the options to show.
        examples: command lines.
    """

    options: str
    examples: tuple[str, ...]


_ROWS = "id_from columns preset"
_JUDGE = "judge model profile"
SHORT = {
    "label": Short(
        f"output {_JUDGE} {_ROWS} base_url store budget concurrency retry_failed repeat config",
        (
            "labeler label rows.jsonl --judge openai:gpt-5-mini -o labels.jsonl",
            "labeler label results.csv --map documents=contexts --judge embedded",
        ),
    ),
    "estimate": Short(
        f"{_JUDGE} {_ROWS} base_url store each_profile latency price as_json",
        ("labeler estimate rows.jsonl --judge openai:gpt-5-mini --each-profile",),
    ),
    "score": Short(
        f"output judge model criteria samples {_ROWS} base_url store budget concurrency repeat",
        ("labeler score rows.jsonl --judge openai:gpt-5-mini --criteria rubric_faithfulness",),
    ),
    "similarity": Short(
        f"output judge model embedder {_ROWS} base_url store budget concurrency",
        ("labeler similarity rows.jsonl --judge openai:gpt-5-mini -o questions.jsonl",),
    ),
    "submit": Short(
        f"{_JUDGE} {_ROWS} store price as_json",
        ("labeler batch submit rows.jsonl --judge openai:gpt-5-mini",),
    ),
    "metrics": Short(
        "output ids rows as_json by every details listing threshold",
        ("labeler metrics labels.jsonl --by topic", "labeler metrics labels.jsonl --all"),
    ),
}
"""By command; the help of other commands shows all options."""


class HelpfulCommand(TyperCommand):
    """A command whose ``--help`` is short; an option that takes one value is given once."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - as typer passes them
        """Parse the options; a repeated one is an error, unless it takes all of its values.

        Raises:
            UsageError: an option that takes one value is given twice.
        """
        given = () if ctx.resilient_parsing else _repeated(self, ctx, args)
        rest: list[str] = super().parse_args(ctx, args)
        for option, values in given:
            raise UsageError(_named_twice(self, option, values))
        if ctx.default_map:
            from labeler.cli.config import merge_with_file

            merge_with_file(ctx)
        return rest

    def format_help(self, ctx: Any, formatter: Any, *, complete: bool = False) -> None:  # noqa: ANN401 - as above
        """Print help.

        Args:
            ctx: the context.
            formatter: of typer.
            complete: True for all options.
        """
        from rich.markup import escape

        shown = copy(self)
        shown.params = [copy(one) for one in self.params]
        if not complete and self.name in SHORT:
            _shorten(shown, SHORT[self.name])
        texts: Any = (shown, *shown.params)
        for one in texts:
            one.help = one.help and escape(one.help)
        super(HelpfulCommand, shown).format_help(ctx, formatter)


def _repeated(command: Any, ctx: Any, args: list[str]) -> list[tuple[Any, list[str]]]:  # noqa: ANN401 - of typer
    """Return the options that take one value and are given several, with all of these."""
    once = [
        one
        for one in command.params
        if one.param_type_name == "option" and not (one.multiple or one.is_flag)
    ]
    for one in once:
        one.multiple = True  # the parser then collects
    parser = command.make_parser(ctx)
    for one in once:
        one.multiple = False
    found = parser.parse_args([*args])[0]
    return [(one, found[one.name]) for one in once if len(found.get(one.name, ())) > 1]


def _named_twice(command: Any, option: Any, values: list[str]) -> str:  # noqa: ANN401 - of typer
    """Return the message about an option that is given several times."""
    name = max(option.opts, key=len)
    several = {max(one.opts, key=len): one for one in command.params}
    listing = next((one for one in (name, f"{name}s") if _takes_list(several.get(one))), "")
    remedy = f"list them: {listing} {','.join(values)}" if listing else "it takes one value"
    return f"{name} is given {len(values)} times, as {' and '.join(map(repr, values))}: {remedy}"


def _takes_list(option: Any) -> bool:  # noqa: ANN401 - of typer
    return option is not None and "comma-separated" in str(getattr(option, "help", ""))


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


def _shorten(command: Any, short: Short) -> None:  # noqa: ANN401 - a command of typer
    """Hide the options that short help leaves out, and show examples below."""
    order = [*short.options.split(), "help_all"]
    options = [one for one in command.params if one.param_type_name == "option"]
    hidden = [one for one in options if one.name not in order and not one.hidden]
    for one in options:
        one.rich_help_panel, one.hidden = None, one.hidden or one in hidden
        if one.type_descriptor.annotation in {int, float}:
            one.metavar = "N"  # the whole type and its range take a third of the line
    listed = sorted(set(options) - set(hidden), key=lambda one: order.index(one.name))
    command.params = [*(one for one in command.params if one not in options), *listed, *hidden]
    lines = "\n\n".join(("Examples:", *short.examples))
    command.epilog = f"{lines}\n\n{len(hidden)} more options: --help-all"
