"""Commands that show what ships with the package: schemas and prompts."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from labeler.cli import options
from labeler.data.options import ExampleOptions, RowsOptions


def schema(
    name: Annotated[str | None, typer.Argument(help="Such as label-trace/v1.")] = None,
) -> None:
    """Print a JSON Schema, or the names of all."""
    _print("schemas", name, ".json")


def prompt(
    name: Annotated[str | None, typer.Argument(help="Such as trace/v1.")] = None,
    *,
    rows: Annotated[
        str | None, typer.Option(help="Show the messages for a row of this file instead.")
    ] = None,
    mapped: Annotated[list[str] | None, options.parameter(ExampleOptions, "columns")] = None,
    preset: Annotated[str | None, options.parameter(ExampleOptions, "preset")] = None,
    id: Annotated[str | None, typer.Option(help="Which row; by default the first.")] = None,  # noqa: A002 - its name on the command line
    splitter: Annotated[str, options.parameter(ExampleOptions, "splitter")] = "general",
) -> None:
    """Print prompts, or what a judge is sent for a row."""
    if rows is None:
        _print("prompts", name, ".md")
        return
    from labeler import api
    from labeler.sentences.characters import visible

    opened = RowsOptions(columns=mapped, preset=preset).open(rows)
    for message in api.messages(opened, id=id, prompt=name, splitter=splitter):
        sys.stdout.write(f"--- {message['role']}\n{visible(message['content'])}\n")


def _print(kind: str, name: str | None, suffix: str) -> None:
    from labeler.labels import resources

    if name is None:
        sys.stdout.write("".join(f"{each}\n" for each in resources.names(kind, suffix)))
    else:
        sys.stdout.write(resources.read(kind, name, suffix))
