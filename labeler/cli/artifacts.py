"""Commands that print the schemas and prompts of the package."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from labeler.cli import options
from labeler.cli.terminal import notify_read
from labeler.data.options import ExampleOptions
from labeler.errors import UsageError

if TYPE_CHECKING:
    from labeler.data.rows import Rows
    from labeler.judges.prompting import Message
    from labeler.labeling.options import EstimateOptions


def schema(
    name: Annotated[str | None, typer.Argument(help="Schema name, such as label-trace/v1.")] = None,
) -> None:
    """Print a JSON Schema, or list all."""
    _print("schemas", name, ".json")


def prompt(
    name: Annotated[str | None, typer.Argument(help="Prompt name, such as trace/v1.")] = None,
    *,
    rows: Annotated[
        str | None, typer.Option(help="Print the messages for a row of this file instead.")
    ] = None,
    mapped: Annotated[list[str] | None, options.parameter(ExampleOptions, "columns")] = None,
    preset: Annotated[str | None, options.parameter(ExampleOptions, "preset")] = None,
    split_documents: Annotated[
        str | None, options.parameter(ExampleOptions, "split_documents")
    ] = None,
    id: Annotated[str | None, typer.Option(help="Id of the row; by default the first row.")] = None,  # noqa: A002 - its name on the command line
    splitter: Annotated[str, options.parameter(ExampleOptions, "splitter")] = "general",
) -> None:
    """Print a prompt, or the messages for one row."""
    if rows is None:
        _print("prompts", name, ".md")
        return
    from labeler.labeling.options import EstimateOptions
    from labeler.sentences.characters import visible

    given = EstimateOptions(
        columns=mapped,
        preset=preset,
        split_documents=split_documents,
        splitter=splitter,
        prompt=name or EstimateOptions.prompt,
    )
    opened = given.open(rows)
    messages = _messages(opened, id, given)
    notify_read(opened)
    for message in messages:
        sys.stdout.write(f"--- {message['role']}\n{visible(message['content'])}\n")


def _messages(
    rows: Rows,
    id: str | None,  # noqa: A002 - as above
    given: EstimateOptions,
) -> tuple[Message, ...]:
    """Return the messages for the row of an id, or for the first row.

    Raises:
        UsageError: no row has that id, or it is unreadable.
    """
    from labeler.judges.prompting import is_retrieval_prompt, load_prompt
    from labeler.labels.profiles import DEFAULT_PROFILE
    from labeler.labels.record import LabelFailure
    from labeler.labels.signature import retrieval_example
    from labeler.sentences.splitting import SPLITTERS, key_example

    splitter, prompt = SPLITTERS[given.splitter], given.prompt
    worded = load_prompt(prompt if "/" in prompt else f"{DEFAULT_PROFILE}/{prompt}")
    for row in rows:
        if id is None or row.content.id == id:
            if isinstance(row.content, LabelFailure):
                raise UsageError(row.content.message)
            keyed = key_example(row.content, splitter, shows_conversation=True)
            shown = retrieval_example(keyed) if is_retrieval_prompt(worded.name) else keyed
            return worded.render(shown)
    raise UsageError(f"there is no row {id!r}")


def _print(kind: str, name: str | None, suffix: str) -> None:
    from labeler.labels.schemas import read_resource, resource_names

    if name is None:
        sys.stdout.write("".join(f"{each}\n" for each in resource_names(kind, suffix)))
    else:
        sys.stdout.write(read_resource(kind, name, suffix))
