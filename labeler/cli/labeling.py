"""Commands that make, bring in and hand out labels."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from labeler.cli import options
from labeler.cli.interrupt import announce
from labeler.errors import UsageError

SOME_FAILED = 1
BUDGET_REACHED = 4
_SHORT_WAIT = 120.0
"""Seconds that a server may ask to wait before ``--no-wait`` ends the run."""


def label(
    rows: options.Rows,
    *,
    id_from: options.Id = "id",
    output: options.Output = "-",
    judge: Annotated[
        str | None,
        typer.Option(help="embedded, openai, replay; by default openai where a key is set."),
    ] = None,
    model: options.Model = None,
    base_url: options.BaseUrl = None,
    recorded: Annotated[
        str | None, typer.Option(help="Label file that the replay judge answers from.")
    ] = None,
    support_threshold: Annotated[
        float | None, typer.Option(help="Score from which the embedded judge calls it supported.")
    ] = None,
    temperature: options.Temperature = None,
    top_p: options.TopP = None,
    seed: options.Seed = None,
    reasoning_effort: options.ReasoningEffort = None,
    cache_prefix: options.CachePrefix = False,
    max_output_tokens: options.MaxOutputTokens = None,
    timeout: Annotated[float | None, typer.Option(help="Seconds for one attempt in all.")] = None,
    store: options.Store = ".labeler",
    splitter: options.Splitter = "general",
    profile: options.ProfileName = "trace",
    prompt: options.PromptName = None,
    concurrency: options.Concurrency = 16,
    requests_per_minute: Annotated[
        float | None, typer.Option(help="Never send more; by default what the server allows.")
    ] = None,
    tokens_per_minute: Annotated[
        float | None, typer.Option(help="The same, prompt and answer together.")
    ] = None,
    budget: Annotated[
        str | None, typer.Option(help="US dollars that the run may cost; never overspent.")
    ] = None,
    price: options.PriceOption = None,
    prices: options.Prices = None,
    no_wait: Annotated[
        bool,
        typer.Option("--no-wait", help="Stop (exit 75) where the server asks for over 2 minutes."),
    ] = False,
    retry_failed: options.RetryFailed = False,
    trial: options.Trial = 0,
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
    from labeler.cli.terminal import Progress, say
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
    chosen = choose_judge(judge, recorded, support_threshold, given, charged)
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
            RowFile(*rows, id_from=options.id_columns(id_from)),
            judge=chosen,
            store=store,
            splitter=splitter,
            profile=profile,
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
        except BaseException:
            progress.break_off()
            raise
    judged, stored = progress.origins["judge"], progress.origins["store"]
    progress.close(f"{judged} labelled by {chosen.spec}", f"{stored} from the store")
    if canaries:
        say(str(planted))
    if progress.reasons["budget"]:
        return BUDGET_REACHED
    return SOME_FAILED if progress.failed else 0


def _refuse_own_input(rows: list[str], output: str) -> None:
    """Refuse to write labels over the rows that they are made from."""
    target = Path(output)
    for path in map(Path, rows):
        if path.is_file() and target.is_file() and path.samefile(target):
            raise UsageError(f"{output} is an input: write the labels to another file")


def import_ragbench(
    file: Annotated[str, typer.Argument(help="RAGBench rows, .jsonl or .jsonl.gz.")],
    *,
    output: options.Output = "-",
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
    store: options.Store = ".labeler",
) -> None:
    """Put the records of a label file into a store."""
    from labeler import api
    from labeler.cli.terminal import say

    imported = api.import_labels(api.read_labels(file), store)
    say(f"{store}: {imported.new} new, {imported.present} there already")
    for id in imported.differing:  # noqa: A001 - the field's name
        say(f"  {id!r} is there with another label, which was kept")


def export(*, output: options.Output = "-", store: options.Store = ".labeler") -> None:
    """Write every record of a store to a label file."""
    from labeler import api
    from labeler.cli.terminal import say

    say(f"{api.write_labels(api.read_labels(store), output)} records exported from {store}")
