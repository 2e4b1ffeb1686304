"""Commands that make, bring in and hand out labels."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from labeler.cli import distributing, options
from labeler.cli.interrupt import announce
from labeler.cli.running import SOME_FAILED, check_label_target, exit_code, write_run
from labeler.errors import UsageError

if TYPE_CHECKING:
    from labeler.cli.terminal import Progress
    from labeler.judges.judge import Judge
    from labeler.judges.pricing import Price
    from labeler.labeling.canaries import Canaries


def label(
    rows: Annotated[
        list[str] | None,
        typer.Argument(
            help="Rows with question, documents, response: JSON Lines, JSON, CSV, Parquet, Arrow; "
            "- reads JSON Lines from stdin."
        ),
    ] = None,
    *,
    id_from: options.Id = "id",
    mapped: options.Map = None,
    preset: options.PresetName = None,
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
    max_input_tokens: options.MaxInputTokens = None,
    timeout: options.Timeout = None,
    store: options.Store = ".labeler",
    splitter: options.Splitter = "general",
    profile: options.ProfileName = "trace",
    prompt: options.PromptName = None,
    concurrency: options.Concurrency = 16,
    requests_per_minute: options.RequestsPerMinute = None,
    tokens_per_minute: options.TokensPerMinute = None,
    budget: options.BudgetOption = None,
    price: options.PriceOption = None,
    prices: options.Prices = None,
    no_wait: options.NoWait = False,
    retry_failed: options.RetryFailed = False,
    trial: options.Trial = 0,
    canaries: Annotated[
        float,
        typer.Option(min=0, max=1, help="Share of rows judged again with planted sentences."),
    ] = 0.0,
    canary_seed: Annotated[int, typer.Option(help="Another one plants elsewhere.")] = 0,
    repeat: Annotated[
        int, typer.Option(min=1, help="Judgements of each row; the label is their majority.")
    ] = 1,
    judges: Annotated[
        str | None,
        typer.Option(help="Several judges that vote, such as embedded,openai:MODEL,openai:OTHER."),
    ] = None,
    engine: distributing.EngineName = "local",
    input: distributing.Input = None,  # noqa: A002 - its name on the command line
    workers: distributing.Workers = None,
    part_rows: distributing.PartRows = None,
) -> int:
    """Label rows: one judge call each, none where it is stored, several where it is too long."""
    from labeler import api
    from labeler.cli.agreement_view import print_voters
    from labeler.cli.judging import choose_judge, choose_judges, limits_of, price_told
    from labeler.cli.terminal import Progress
    from labeler.comparing.voter_agreement import Votes
    from labeler.judges.pricing import find_price
    from labeler.labeling.canaries import Canaries
    from labeler.labeling.pipeline import GRACE_SECONDS

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
    voting = judges is not None or repeat > 1
    if voting and canaries:
        raise UsageError("--canaries test one judge: they go without --repeat and --judges")
    if judges is not None and judge is not None:
        raise UsageError("--judge names one judge and --judges several: give one of the two")
    if judges is None:
        chosen = [choose_judge(judge, recorded, support_threshold, given, charged, also=also)]
    else:
        chosen = choose_judges(
            judges, recorded, support_threshold, given, (price, prices), also=also
        )
    limits = limits_of(requests_per_minute, tokens_per_minute, budget, no_wait=no_wait)
    if engine == "ray":
        return _label_in_parts(
            [*(rows or ()), *([input] if input else ())],
            output,
            (workers, part_rows, price_told(chosen)),
            {"canaries": canaries, "judges": judges, "repeat": repeat > 1},
            judge=partial(
                choose_judge, judge, recorded, support_threshold, given, charged, also=also
            ),
            store=store,
            splitter=splitter,
            profile=profile,
            prompt=prompt,
            trial=trial,
            max_input_tokens=max_input_tokens,
            concurrency=concurrency,
            limits=limits,
            retry_failed=retry_failed,
            columns=options.columns_of(mapped, preset),
            id_from=options.id_columns(id_from),
        )
    distributing.require_engine(engine, input=input, workers=workers, part_rows=part_rows)
    if not rows:
        raise UsageError("Missing argument 'ROWS...'.\ntry 'labeler label --help'")
    check_label_target(rows, output)
    announce(
        f"stopping: requests in flight may finish within {GRACE_SECONDS:g} s; "
        "press Ctrl-C again to drop them"
    )
    planted, votes = Canaries(canaries, canary_seed), Votes()
    with Progress("labeling", price_told(chosen)) as progress:
        asked: dict[str, Any] = {
            "rows": options.open_rows(rows, id_from, mapped, preset),
            "store": store,
            "splitter": splitter,
            "profile": profile,
            "prompt": prompt,
            "trial": trial,
            "max_input_tokens": max_input_tokens,
            "concurrency": concurrency,
            "limits": limits,
            "retry_failed": retry_failed,
            "watcher": progress,
        }
        if voting:
            run = api.iter_majority(judges=chosen, repeat=repeat, votes=votes, **asked)
        else:
            run = api.iter_labels(judge=chosen[0], canaries=planted, **asked)
        write_run(run, output, progress, lambda: _counts(progress, chosen, repeat))
    progress.close(*_counts(progress, chosen, repeat))
    if voting:
        print_voters(votes.agreement())
    if canaries:
        _tell_canaries(planted)
    return exit_code(progress)


def _label_in_parts(
    inputs: list[str],
    output: str,
    several: tuple[int | None, int | None, Price | None],
    refused: dict[str, object],
    **settings: Any,  # noqa: ANN401 - those of Work
) -> int:
    """Label with Ray; several are the workers, the rows of a part and the judge's price."""
    distributing.require_engine("ray", **refused)
    distributing.require_folder(output)
    if not inputs:
        raise UsageError("--engine ray needs --input: Parquet files, a pattern, folder or address")
    from labeler.integrations.ray.labeling import Work

    work = Work(output=output, **settings)
    return distributing.label_in_parts(distributing.PartsAsked(inputs, output, *several), work)


def _counts(progress: Progress, judges: list[Judge], repeat: int) -> tuple[str, ...]:
    """Where the labels of a run came from."""
    judged, stored = progress.origins["judge"], progress.origins["store"]
    if len(judges) == 1 and repeat == 1:
        return f"{judged} labelled by {judges[0].spec}", f"{stored} from the store"
    by = ", ".join(str(judge.spec) for judge in judges)
    times = f", {repeat} times each" if repeat > 1 else ""
    return (f"{judged} labelled by the majority of {by}{times}",)


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


def import_ragbench(
    files: Annotated[
        list[str],
        typer.Argument(
            help="RAGBench rows: Parquet or JSON Lines, folders of the former, patterns, or - for "
            "standard input."
        ),
    ],
    *,
    output: options.Output = "-",
) -> int:
    """Turn published RAGBench rows into label records: their sentences, their labels."""
    from labeler import api
    from labeler.cli.terminal import Progress

    check_label_target(files, output)
    with Progress("importing") as progress:
        api.write_labels(progress.watching(api.read_ragbench(*files)), output)
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

    imported = api.import_labels(api.stored_outcomes(file), store)
    say(f"{store}: {imported.new} new, {imported.present} there already")
    for id in imported.differing:  # noqa: A001 - the field's name
        say(f"  {id!r} is there with another label, which was kept")


def export(*, output: options.Output = "-", store: options.Store = ".labeler") -> None:
    """Write every record of a store to a label file."""
    from labeler import api
    from labeler.cli.terminal import say

    check_label_target([store], output)
    say(f"{api.write_labels(api.stored_outcomes(store), output)} records exported from {store}")
