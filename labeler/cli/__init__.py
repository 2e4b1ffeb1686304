"""The command line: it translates and nothing else.

Rows go to standard output or to files, talk goes to standard error. Exit codes: 0 all well, 1 some
rows failed, 2 wrong use or a run that cannot go on, 130 interrupted. Everything heavy is imported
inside the commands, so that ``--help`` answers at once.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer
from typer.exceptions import TyperException

from labeler import __version__
from labeler.cli import artifacts, labeling, reading
from labeler.errors import LabelerError

WRONG_USE = 2
INTERRUPTED = 130

app = typer.Typer(
    name="labeler",
    help="Label RAG records with an LLM judge once, and compute metrics from the labels for ever.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
imports = typer.Typer(
    help="Bring in labels that were made elsewhere.", no_args_is_help=True, rich_markup_mode=None
)

app.command("label")(labeling.label)
app.command("metrics")(reading.metrics)
app.command("show")(reading.show)
app.command("calibrate")(reading.calibrate)
app.add_typer(imports, name="import")
imports.command("ragbench")(labeling.import_ragbench)
imports.command("labels")(labeling.import_labels)
app.command("export")(labeling.export)
app.command("schema")(artifacts.schema)
app.command("prompt")(artifacts.prompt)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"labeler {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and leave."
        ),
    ] = False,
) -> None:
    pass


def run() -> int:
    """Run the command line and return its exit code."""
    try:
        return int(app(standalone_mode=False) or 0)
    except typer.Exit as leaving:
        return leaving.exit_code
    except TyperException as error:
        return _complain(f"{error.format_message()}\ntry 'labeler --help'")
    except LabelerError as error:
        return _complain(str(error))
    except (KeyboardInterrupt, typer.Abort):
        _complain("interrupted; every label that came back is in the store: run it again to go on")
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has gone; without this Python complains again when it flushes on exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _complain(message: str) -> int:
    from labeler.characters import visible

    sys.stderr.write(f"labeler: {visible(message)}\n")
    return WRONG_USE
