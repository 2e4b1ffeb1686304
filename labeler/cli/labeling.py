"""Commands that make, bring in and hand out labels."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from labeler.cli.interrupt import ReaderGone, announce
from labeler.errors import UsageError
from labeler.pricing import PRICE_FORM

if TYPE_CHECKING:
    from labeler.canaries import Canaries
    from labeler.cli.terminal import Progress
    from labeler.judges import JudgeSpec

SOME_FAILED = 1
BUDGET_REACHED = 4
_SHORT_WAIT = 120.0
"""Seconds that a server may ask to wait before ``--no-wait`` ends the run."""

Output = Annotated[
    str, typer.Option("--output", "-o", help="Label file to write; - is standard output.")
]


def _folder(name: str) -> str:
    if not name.strip():
        raise UsageError("--store (or LABELER_STORE) is empty: name a folder")
    return name


Store = Annotated[
    str,
    typer.Option(envvar="LABELER_STORE", help="Folder of the label store.", callback=_folder),
]


def label(
    rows: Annotated[
        list[str],
        typer.Argument(help="JSON Lines with question, documents, response; - reads stdin."),
    ],
    *,
    id_from: Annotated[
        str, typer.Option("--id", help="Columns that name a row, comma-separated.")
    ] = "id",
    output: Output = "-",
    judge: Annotated[
        str | None,
        typer.Option(help="embedded, openai, replay; by default openai where a key is set."),
    ] = None,
    model: Annotated[
        str | None, typer.Option(envvar="LABELER_MODEL", help="Model that openai asks; no default.")
    ] = None,
    base_url: Annotated[
        str | None, typer.Option(help="Address of an OpenAI-compatible server.")
    ] = None,
    recorded: Annotated[
        str | None, typer.Option(help="Label file that the replay judge answers from.")
    ] = None,
    support_threshold: Annotated[
        float | None, typer.Option(help="Score from which the embedded judge calls it supported.")
    ] = None,
    temperature: Annotated[float | None, typer.Option(help="Sent only where given.")] = None,
    top_p: Annotated[float | None, typer.Option(help="Sent only where given.")] = None,
    seed: Annotated[int | None, typer.Option(help="Sent only where given.")] = None,
    reasoning_effort: Annotated[str | None, typer.Option(help="Sent only where given.")] = None,
    cache_prefix: Annotated[
        bool,
        typer.Option("--cache-prefix", help="Cache the instructions alone: gpt-5.6 and later."),
    ] = False,
    max_output_tokens: Annotated[
        int | None, typer.Option(help="Cap on an answer's length; doubled once if it is hit.")
    ] = None,
    timeout: Annotated[float | None, typer.Option(help="Seconds for one attempt in all.")] = None,
    store: Store = ".labeler",
    splitter: Annotated[str, typer.Option(help="general, ragbench, given.")] = "general",
    prompt: Annotated[str, typer.Option(help="Name and version.")] = "trace/v1",
    concurrency: Annotated[int, typer.Option(min=1, help="Requests in flight at most.")] = 16,
    requests_per_minute: Annotated[
        float | None, typer.Option(help="Never send more; by default what the server allows.")
    ] = None,
    tokens_per_minute: Annotated[
        float | None, typer.Option(help="The same, prompt and answer together.")
    ] = None,
    budget: Annotated[
        str | None, typer.Option(help="US dollars that the run may cost; never overspent.")
    ] = None,
    price: Annotated[str | None, typer.Option(help=f"{PRICE_FORM}.")] = None,
    prices: Annotated[
        str | None, typer.Option(help="JSON file with prices by model, for what no table has.")
    ] = None,
    no_wait: Annotated[
        bool,
        typer.Option("--no-wait", help="Stop (exit 75) where the server asks for over 2 minutes."),
    ] = False,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Ask again for stored failures, as of refusals.")
    ] = False,
    trial: Annotated[int, typer.Option(min=0, help="Another number asks anew.")] = 0,
    canaries: Annotated[
        float,
        typer.Option(min=0, max=1, help="Share of rows judged again with planted sentences."),
    ] = 0.0,
    canary_seed: Annotated[int, typer.Option(help="Another one plants elsewhere.")] = 0,
) -> int:
    """Label rows: one judge call each, none where it is stored."""
    from labeler import api
    from labeler.canaries import Canaries
    from labeler.cli.judging import choose_judge, dollars
    from labeler.cli.terminal import Progress
    from labeler.pipeline import GRACE_SECONDS
    from labeler.pricing import find_price
    from labeler.rows import RowFile
    from labeler.traffic import Limits

    settings = {
        "model": model,
        "base_url": base_url,
        "temperature": temperature,
        "top_p": top_p,
        "seed": seed,
        "reasoning_effort": reasoning_effort,
        "max_output_tokens": max_output_tokens,
        "cache_prefix": cache_prefix or None,
        "timeout": timeout,
    }
    given = {name: value for name, value in settings.items() if value is not None}
    charged = find_price(model, base_url, given=price, file=prices) if model else None
    held_back = {
        "requests_per_minute": requests_per_minute,
        "tokens_per_minute": tokens_per_minute,
        "budget": budget,
        "price": price,
        "prices": prices,
    }
    also = {name for name, value in held_back.items() if value is not None}
    chosen = choose_judge(judge, recorded, support_threshold, given, charged, also=also)
    limits = Limits(
        requests_per_minute,
        tokens_per_minute,
        dollars("--budget", budget),
        longest_wait=_SHORT_WAIT if no_wait else None,
    )
    _refuse_own_input(rows, output)
    announce(
        f"stopping: requests in flight may finish within {GRACE_SECONDS:g} s; "
        "press Ctrl-C again to drop them"
    )
    planted = Canaries(canaries, canary_seed)
    with Progress("labeling", charged) as progress:
        run = api.iter_labels(
            RowFile(*rows, id_from=() if id_from == "id" else id_from.split(",")),
            judge=chosen,
            store=store,
            splitter=splitter,
            prompt=prompt,
            trial=trial,
            concurrency=concurrency,
            limits=limits,
            retry_failed=retry_failed,
            canaries=planted,
            watcher=progress,
        )
        try:
            # Closed here, so that a run that breaks off is over before anything is said of it.
            with closing(run):
                api.write_labels(run, output)
        except BrokenPipeError:
            progress.break_off()
            rows_said = f"{progress.reached} row{'s' * (progress.reached != 1)}"
            raise ReaderGone(
                f"the reader left after {rows_said}; run it again to go on: what is stored costs "
                "nothing"
            ) from None
        except BaseException:
            progress.break_off(*_counts(progress, chosen.spec), left=_left(output))
            raise
    progress.close(*_counts(progress, chosen.spec))
    if canaries:
        _tell_canaries(planted)
    if progress.reasons["budget"]:
        return BUDGET_REACHED
    return SOME_FAILED if progress.failed else 0


def _counts(progress: Progress, spec: JudgeSpec) -> tuple[str, str]:
    """Where the labels of a run came from."""
    judged, stored = progress.origins["judge"], progress.origins["store"]
    return f"{judged} labelled by {spec}", f"{stored} from the store"


def _left(output: str) -> str:
    """What a run that broke off leaves where its labels were to stand; pipes are their readers'."""
    path = Path(output)
    if output == "-" or (path.exists() and not path.is_file()):
        return ""
    return f"{output} {'keeps its older content' if path.exists() else 'was not written'}"


def _tell_canaries(planted: Canaries) -> None:
    """Say how records with planted sentences came out, and what that means."""
    from labeler.cli.terminal import say

    say(str(planted))
    if planted.ordered.judged or planted.plain.judged:
        say(
            "  fooled: a planted sentence of a document was called relevant, used or a support, or "
            "one of a response supported; with orders: they also asked for that"
        )
    elif not planted.failed:
        say(
            f"  none was judged: chance chose no row for a share of {planted.share:g}; a greater "
            "--canaries chooses more"
        )


def _refuse_own_input(rows: list[str], output: str) -> None:
    """Refuse to write labels over the rows that they are made from."""
    target = Path(output)
    for path in map(Path, rows):
        if path.is_file() and target.is_file() and path.samefile(target):
            raise UsageError(f"{output} is an input: write the labels to another file")


def import_ragbench(
    file: Annotated[str, typer.Argument(help="RAGBench rows, .jsonl or .jsonl.gz.")],
    *,
    output: Output = "-",
) -> int:
    """Turn published RAGBench rows into label records: their sentences, their labels."""
    from labeler import api
    from labeler.cli.terminal import Progress

    with Progress("importing") as progress:
        api.write_labels(progress.watching(api.read_ragbench(file)), output)
    progress.close(f"{progress.origins['row']} imported")
    return SOME_FAILED if progress.failed else 0


def import_labels(
    file: Annotated[str, typer.Argument(help="A label file, such as export writes.")],
    *,
    store: Store = ".labeler",
) -> None:
    """Put the records of a label file into a store."""
    from labeler import api
    from labeler.cli.terminal import say

    imported = api.import_labels(api.read_labels(file), store)
    say(f"{store}: {imported.new} new, {imported.present} there already")
    for id in imported.differing:  # noqa: A001 - the field's name
        say(f"  {id!r} is there with another label, which was kept")


def export(*, output: Output = "-", store: Store = ".labeler") -> None:
    """Write every record of a store to a label file."""
    from labeler import api
    from labeler.cli.terminal import say

    say(f"{api.write_labels(api.read_labels(store), output)} records exported from {store}")
