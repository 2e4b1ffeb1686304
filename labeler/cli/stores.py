"""Commands about label stores themselves."""

from __future__ import annotations

from typing import Annotated

import typer

from labeler.cli.running import SOME_FAILED


def merge(
    sources: Annotated[list[str], typer.Argument(help="Stores, or folders of stores.")],
    *,
    into: Annotated[str, typer.Option(help="Folder of the store that takes all.")],
) -> int:
    """Copy what other stores hold into one; labels that are there already stay as they are."""
    from labeler.cli.terminal import say
    from labeler.stores.merging import merge_stores

    merged = merge_stores(sources, into)
    vectors = f", {merged.vectors} vectors" if merged.vectors else ""
    say(
        f"{into}: of {merged.stores} stores {merged.new} new, {merged.present} there already, "
        f"{merged.failures} failures{vectors}"
    )
    for id in merged.differing:  # noqa: A001 - the field's name
        say(f"  {id!r} is there with another label, which was kept")
    for error in merged.damaged:
        say(f"  not copied: {error}")
    return SOME_FAILED if merged.damaged else 0
