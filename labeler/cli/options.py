"""Options that several commands share, each written once, and what is read from them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from labeler.errors import UsageError
from labeler.judges.pricing import PRICE_FORM

if TYPE_CHECKING:
    from labeler.data.columns import Columns
    from labeler.data.rows import RowFile


def _folder(name: str) -> str:
    if not name.strip():
        raise UsageError("--store (or LABELER_STORE) is empty: name a folder")
    return name


Rows = Annotated[
    list[str],
    typer.Argument(
        help="Rows with question, documents, response: JSON Lines, JSON, CSV, Parquet, Arrow; "
        "- reads JSON Lines from stdin."
    ),
]
Map = Annotated[
    list[str] | None,
    typer.Option("--map", help="FIELD=COLUMN, such as documents=contexts; may be repeated."),
]
PresetName = Annotated[
    str | None,
    typer.Option(
        "--preset",
        help="Columns of ragbench, ragas, deepeval, langchain, llamaindex or ragchecker.",
    ),
]
Id = Annotated[str, typer.Option("--id", help="Columns that name a row, comma-separated.")]
Output = Annotated[
    str, typer.Option("--output", "-o", help="Label file to write; - is standard output.")
]
Store = Annotated[
    str,
    typer.Option(envvar="LABELER_STORE", help="Folder of the label store.", callback=_folder),
]
Splitter = Annotated[str, typer.Option(help="general, ragbench, given.")]
ProfileName = Annotated[
    str, typer.Option(help="How much is asked in the one call: trace, claims, reference, auto.")
]
PromptName = Annotated[
    str | None, typer.Option(help="Name and version; by default the profile's own.")
]
Trial = Annotated[int, typer.Option(min=0, help="Another number asks anew.")]
Concurrency = Annotated[int, typer.Option(min=1, help="Requests in flight at most.")]
Timeout = Annotated[float | None, typer.Option(help="Seconds for one attempt in all.")]
RequestsPerMinute = Annotated[
    float | None, typer.Option(help="Never send more; by default what the server allows.")
]
TokensPerMinute = Annotated[
    float | None, typer.Option(help="The same, prompt and answer together.")
]
BudgetOption = Annotated[
    str | None,
    typer.Option("--budget", help="US dollars that the run may cost; never overspent."),
]
NoWait = Annotated[
    bool,
    typer.Option("--no-wait", help="Stop (exit 75) where the server asks for over 2 minutes."),
]
SHORT_WAIT = 120.0
"""Seconds that a server may ask to wait before ``--no-wait`` ends the run."""
RetryFailed = Annotated[
    bool, typer.Option("--retry-failed", help="Ask again for stored failures, as of refusals.")
]
Json = Annotated[bool, typer.Option("--json", help="As JSON.")]

# What a hosted model is asked with.
Model = Annotated[
    str | None, typer.Option(envvar="LABELER_MODEL", help="Model that openai asks; no default.")
]
BaseUrl = Annotated[str | None, typer.Option(help="Address of an OpenAI-compatible server.")]
Temperature = Annotated[float | None, typer.Option(help="Sent only where given.")]
TopP = Annotated[float | None, typer.Option(help="Sent only where given.")]
Seed = Annotated[int | None, typer.Option(help="Sent only where given.")]
ReasoningEffort = Annotated[str | None, typer.Option(help="Sent only where given.")]
CachePrefix = Annotated[
    bool,
    typer.Option("--cache-prefix", help="Cache the instructions alone: gpt-5.6 and later."),
]
MaxOutputTokens = Annotated[
    int | None, typer.Option(min=1, help="Cap on an answer's length; doubled once if it is hit.")
]
MaxInputTokens = Annotated[
    int | None,
    typer.Option(
        min=1, help="Tokens of a prompt; longer rows go in windows. By default as the model takes."
    ),
]
PriceOption = Annotated[str | None, typer.Option("--price", help=f"{PRICE_FORM}.")]
Prices = Annotated[
    str | None, typer.Option(help="JSON file with prices by model, for what no table has.")
]


def id_columns(given: str) -> tuple[str, ...]:
    """The columns of ``--id``; none for the default, the column ``id``."""
    return () if given == "id" else tuple(given.split(","))


def open_rows(
    rows: Iterable[str], id_from: str, mapped: list[str] | None, preset: str | None
) -> RowFile:
    """The rows of files, by ``--id``, ``--map`` and ``--preset``.

    Raises:
        UsageError: a mapping is not written as one, or there is no such field or preset.
    """
    from labeler.data.rows import RowFile

    return RowFile(*rows, id_from=id_columns(id_from), columns=columns_of(mapped, preset))


def columns_of(mapped: list[str] | None, preset: str | None) -> Columns | None:
    """The columns of ``--map`` and ``--preset``.

    Raises:
        UsageError: a mapping is not written as one, or there is no such field or preset.
    """
    from labeler.data.presets import choose_columns

    given: dict[str, str] = {}
    for one in mapped or ():
        field, equals, column = one.partition("=")
        if not equals or field in given:
            fault = "names a field twice" if equals else "is not FIELD=COLUMN"
            raise UsageError(f"--map {one!r:.80} {fault}: write --map documents=contexts")
        given[field] = column
    return choose_columns(given, preset)
