"""The command line: it translates and nothing else.

Rows go to standard output or to files, talk goes to standard error. Exit codes: 0 all well, 1 some
rows failed or a gate was missed, 2 wrong use or a run that cannot go on, 4 the budget is used up,
75 come back later: the server asks for it, or a batch is not answered yet, 130 and 143 interrupted,
141 the reader of the labels left. Everything heavy is imported inside the commands, so that
``--help`` answers at once.
"""

from __future__ import annotations

import functools
import io
import os
import sys
from collections.abc import Callable
from typing import Annotated, ParamSpec, TextIO, TypeVar

import typer
from typer.exceptions import TyperException

from labeler import __version__
from labeler.characters import visible
from labeler.cli import (
    agreeing,
    artifacts,
    auditing,
    batching,
    checking,
    comparing,
    corrections,
    diffing,
    estimating,
    indexing,
    labeling,
    reading,
    reporting,
    reviewing,
    scoring,
    similarity,
    stores,
)
from labeler.cli.interrupt import Interrupted, ReaderGone, signals_raise
from labeler.errors import LabelerError, RunPaused

P = ParamSpec("P")
T = TypeVar("T")

WRONG_USE = 2
TRY_LATER = 75
"""What Unix calls a temporary failure."""

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
batch = typer.Typer(
    help="Have rows labelled within a day, for half the price.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
correcting = typer.Typer(
    help="Take what people said of a judge's labels to other tools and back, and into numbers.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
store = typer.Typer(help="Work on label stores.", no_args_is_help=True, rich_markup_mode=None)


_UNREAD = "the reader left before all was written"


def _guarded(command: Callable[P, T], lacking: str = "") -> Callable[P, T]:
    """Notice a closed pipe before typer does: it would call that a failure.

    Args:
        command: what is run.
        lacking: what is said where its output is more than a view, which one may stop reading.
    """

    @functools.wraps(command)
    def run_command(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            result = command(*args, **kwargs)
            sys.stdout.flush()
        except BrokenPipeError:
            raise ReaderGone(lacking) from None
        return result

    return run_command


app.command("label")(_guarded(labeling.label, _UNREAD))
app.command("estimate")(_guarded(estimating.estimate))
app.command("score")(_guarded(scoring.score))
app.command("length")(_guarded(scoring.length))
app.command("metrics")(_guarded(reading.metrics))
app.command("compare")(_guarded(comparing.compare))
app.command("check")(_guarded(checking.check))
app.command("agree")(_guarded(agreeing.agree))
app.command("index")(_guarded(indexing.index))
app.command("similarity")(_guarded(similarity.similarity))
app.command("show")(_guarded(reading.show))
app.command("audit")(_guarded(auditing.audit))
app.command("report")(_guarded(reporting.report))
app.command("review")(_guarded(reviewing.review))
app.add_typer(correcting, name="corrections")
correcting.command("apply")(_guarded(corrections.apply))
correcting.command("export")(_guarded(corrections.export))
correcting.command("import")(_guarded(corrections.import_))
app.command("diff")(_guarded(diffing.diff))
app.command("calibrate")(_guarded(reading.calibrate))
app.add_typer(imports, name="import")
imports.command("ragbench")(_guarded(labeling.import_ragbench, _UNREAD))
imports.command("labels")(_guarded(labeling.import_labels))
app.add_typer(batch, name="batch")
batch.command("submit")(_guarded(batching.submit))
batch.command("status")(_guarded(batching.status))
batch.command("collect")(_guarded(batching.collect))
batch.command("cancel")(_guarded(batching.cancel))
app.add_typer(store, name="store")
store.command("merge")(_guarded(stores.merge))
app.command("export")(_guarded(labeling.export, _UNREAD))
app.command("schema")(_guarded(artifacts.schema))
app.command("prompt")(_guarded(artifacts.prompt))


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


def run() -> int:  # noqa: PLR0911 - one line for each way to end
    """Run the command line and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.encoding.lower() != "utf-8":
            stream.reconfigure(encoding="utf-8", errors="replace")
    try:
        with signals_raise():
            return int(app(prog_name="labeler", standalone_mode=False) or 0)
    except Interrupted as interrupt:
        _complain("interrupted; run it again to go on: what is stored costs nothing")
        return interrupt.exit_code
    except typer.Exit as leaving:
        return leaving.exit_code
    except TyperException as error:
        return _complain(f"{error.format_message()}\ntry '{_at(error)} --help'")
    except RunPaused as error:
        _complain(str(error))
        return TRY_LATER
    except LabelerError as error:
        return _complain(str(error))
    except ReaderGone as gone:
        return _part(gone)
    except OSError as error:
        # What was read has named its file by now; this is the output.
        _let_go(sys.stdout)
        return _complain(f"cannot write the output: {error.strerror or error}")


def _part(gone: ReaderGone) -> int:
    """Say what the reader missed, if anything, to whoever still listens."""
    _let_go(sys.stdout)
    if gone.exit_code:
        try:
            _complain(str(gone))
        except BrokenPipeError:  # it had both streams
            _let_go(sys.stderr)
    return gone.exit_code


def _let_go(stream: TextIO) -> None:
    """Drop what a stream still holds: Python would try to write it once more on exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _at(error: TyperException) -> str:
    """The command that was used wrongly, as far as it was understood."""
    context = getattr(error, "ctx", None)
    return context.command_path if context else "labeler"


def _complain(message: str) -> int:
    sys.stderr.write(f"labeler: {visible(message)}\n")
    return WRONG_USE
