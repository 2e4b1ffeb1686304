"""Options and checks of the two sides of ``compare``, ``agree`` and ``diff``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from labeler.data.lines import STDIO
from labeler.errors import UsageError

if TYPE_CHECKING:
    from labeler.comparing.options import SideOptions

A = Annotated[str, typer.Argument(help="Labels to start from: a label file, store folder, or -.")]
B = Annotated[str, typer.Argument(help="Labels to compare with them; differences are B - A.")]


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
