"""Commands that print the schemas and prompts of the package."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from labeler.cli import options
from labeler.cli.terminal import notify_read
from labeler.data.options import ExampleOptions
from labeler.errors import UsageError
from labeler.labeling.options import TaskOptions

if TYPE_CHECKING:
    from labeler.data.rows import Rows
    from labeler.judges.prompting import Message, Prompt
    from labeler.labeling.options import EstimateOptions


def prompt(
    name: Annotated[
        str | None, typer.Argument(help="Prompt name, such as trace/v1, or a file of your own.")
    ] = None,
    *,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print a JSON Schema instead, or list all.")
    ] = False,
    instructions: Annotated[str | None, options.parameter(TaskOptions, "instructions")] = None,
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
    """Print a prompt, the messages for one row, or a JSON Schema."""
    from labeler.labeling.options import EstimateOptions
    from labeler.labeling.wording import prompt_file
    from labeler.sentences.characters import visible

    if rows is None and instructions is None and not (name and prompt_file(name)):
        _print("schemas", name, ".json") if schema else _print("prompts", name, ".md")
        return

    given = EstimateOptions(
        columns=mapped,
        instructions=instructions,
        preset=preset,
        split_documents=split_documents,
        splitter=splitter,
        prompt=name or EstimateOptions.prompt,
    )
    worded = _worded(given)
    if rows is None:
        sys.stdout.write(f"# System\n\n{visible(worded.system_text)}\n\n# User\n\n{worded.user}\n")
        return
    opened = given.open(rows)
    messages = _messages(opened, id, given, worded)
    notify_read(opened)
    for message in messages:
        sys.stdout.write(f"--- {message['role']}\n{visible(message['content'])}\n")


def _worded(given: EstimateOptions) -> Prompt:
    """Return the prompt that is named or given as a file, with instructions."""
    from labeler.judges.prompting import DECISIONS, load_prompt
    from labeler.labeling.wording import prompt_file, read_instructions, read_prompt
    from labeler.labels.profiles import DEFAULT_PROFILE, family_of, version_of

    name, file = str(given.prompt), prompt_file(given.prompt)
    worded: Prompt
    if file is not None:
        worded = read_prompt(file, DEFAULT_PROFILE)
    elif family_of(name) == DECISIONS:
        from labeler.judges.decisions.questions import decision_prompt

        worded = decision_prompt(f"{DEFAULT_PROFILE}/{version_of(name)}")
    else:
        worded = load_prompt(name if "/" in name else f"{DEFAULT_PROFILE}/{name}")
    return worded.with_instructions(read_instructions(given.instructions))


def _messages(
    rows: Rows,
    id: str | None,  # noqa: A002 - as above
    given: EstimateOptions,
    worded: Prompt,
) -> tuple[Message, ...]:
    """Return the messages for the row of an id, or for the first row.

    Raises:
        UsageError: no row has that id, or it is unreadable.
    """
    from labeler.judges.prompting import is_retrieval_prompt
    from labeler.labels.record import LabelFailure
    from labeler.labels.signature import retrieval_example
    from labeler.sentences.splitting import SPLITTERS, key_example

    splitter = SPLITTERS[given.splitter]
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
