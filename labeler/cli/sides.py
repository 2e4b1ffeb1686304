"""Options and checks of the two sides of ``compare``, ``agree`` and ``diff``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from labeler.cli.running import reject_overwrite
from labeler.data.lines import STDIO
from labeler.errors import UsageError

if TYPE_CHECKING:
    from labeler.comparing.options import SideOptions

A = Annotated[str, typer.Argument(help="Labels to start from: a label file, store folder, or -.")]
B = Annotated[str, typer.Argument(help="Labels to compare with them; differences are B - A.")]


Html = Annotated[str | None, typer.Option(help="Write an offline HTML page to this file.")]


def check_page(labels: list[str], html: str | None, **others: bool) -> None:
    """Check that one output is asked for, and that a page overwrites none of its labels.

    Args:
        labels: the labels to compare.
        html: file of the page, if one is asked for.
        others: the other outputs by option, such as ``json``; true if it is asked for.

    Raises:
        UsageError: one of these is not so.
    """
    if sum(others.values()) + (html is not None) > 1:
        options = [f"--{name}" for name in (*others, "html")]
        listed = f"{', '.join(options[:-1])} and {options[-1]}"
        raise UsageError(f"{listed} exclude each other: run it once for each")
    if html == STDIO:
        raise UsageError("--html names a file: a page is looked at in a browser")
    if html is not None:
        reject_overwrite(labels, html)


def check_sides(a: str, b: str, options: SideOptions) -> None:
    """Check that two sides can be read and are not the same.

    Raises:
        UsageError: both are standard input, or the same labels.
    """
    if a == b == STDIO:
        raise UsageError("standard input (-) can be read once; give one side as a file")
    if a == b and options.same_choice:
        raise UsageError(
            f"{a} is compared with itself; name two files, or two trials (--trial 0 --b-trial 1) "
            "or signatures (--a-signature, --b-signature) of one"
        )
