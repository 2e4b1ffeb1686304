"""The command that compares questions with those that the responses would reply to."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from labeler.cli import options
from labeler.cli.interrupt import announce
from labeler.cli.running import BUDGET_REACHED, SOME_FAILED, check_label_target, write_run
from labeler.errors import UsageError

if TYPE_CHECKING:
    from labeler.cli.terminal import Progress
    from labeler.integrations.embeddings.cache import EmbeddingWork
    from labeler.integrations.embeddings.embedder import Embedder
    from labeler.judges.judge import Judge


def similarity(
    rows: options.Rows,
    *,
    id_from: options.Id = "id",
    mapped: options.Map = None,
    preset: options.PresetName = None,
    output: options.Output = "-",
    embedder: Annotated[
        str,
        typer.Option(help="wordllama (extra 'embeddings'), lexical, or openai:MODEL."),
    ] = "wordllama",
    dimensions: Annotated[
        int | None, typer.Option(min=1, help="Of the vectors of openai; by default the model's.")
    ] = None,
    embedder_url: Annotated[
        str | None, typer.Option(help="Address of the embedder; by default --base-url.")
    ] = None,
    embedding_price: Annotated[
        str | None, typer.Option(help="US dollars per million tokens of text, such as 0.02.")
    ] = None,
    model: options.Model = None,
    base_url: options.BaseUrl = None,
    temperature: options.Temperature = None,
    top_p: options.TopP = None,
    seed: options.Seed = None,
    reasoning_effort: options.ReasoningEffort = None,
    max_output_tokens: options.MaxOutputTokens = None,
    timeout: options.Timeout = None,
    store: options.Store = ".labeler",
    splitter: options.Splitter = "general",
    concurrency: options.Concurrency = 16,
    requests_per_minute: options.RequestsPerMinute = None,
    tokens_per_minute: options.TokensPerMinute = None,
    budget: Annotated[
        str | None, typer.Option(help="US dollars for judge and embedder; never overspent.")
    ] = None,
    price: options.PriceOption = None,
    prices: options.Prices = None,
    no_wait: options.NoWait = False,
    retry_failed: options.RetryFailed = False,
    trial: options.Trial = 0,
) -> int:
    """Compare each question with those that its response would reply to (answer relevancy)."""
    from labeler import api
    from labeler.cli.judging import choose_judge, limits_of
    from labeler.cli.terminal import Progress, say
    from labeler.integrations.embeddings.cache import EmbeddingWork
    from labeler.judges.pricing import find_price
    from labeler.labeling.pipeline import GRACE_SECONDS

    settings = {
        "model": model,
        "base_url": base_url,
        "temperature": temperature,
        "top_p": top_p,
        "seed": seed,
        "reasoning_effort": reasoning_effort,
        "max_output_tokens": max_output_tokens,
        "timeout": timeout,
    }
    given = {name: value for name, value in settings.items() if value is not None}
    charged = find_price(model, base_url, given=price, file=prices) if model else None
    judge = choose_judge("openai", None, None, given, charged)
    check_label_target(rows, output)
    embeds = _embedder(embedder, dimensions, embedder_url or base_url, embedding_price)
    work, kinds = EmbeddingWork(), Counter[str]()
    announce(f"stopping: requests in flight may finish within {GRACE_SECONDS:g} s")
    with Progress("writing questions", charged) as progress:
        run = api.iter_similarity(
            options.open_rows(rows, id_from, mapped, preset),
            judge=judge,
            embedder=embeds,
            store=store,
            splitter=splitter,
            trial=trial,
            concurrency=concurrency,
            limits=limits_of(requests_per_minute, tokens_per_minute, budget, no_wait=no_wait),
            retry_failed=retry_failed,
            watcher=progress,
            work=work,
        )
        write_run(
            run,
            output,
            progress,
            lambda: _counts(progress, judge),
            lambda outcome: kinds.update([outcome.kind]),
        )
    progress.close(*_counts(progress, judge))
    say(_embedding(embeds, work))
    failed = kinds["failure"]
    if failed > progress.failed:
        say(f"{failed - progress.failed} rows could not be embedded: each says why in its line")
    if progress.reasons["budget"] or (failed > progress.failed and work.spent.closed):
        return BUDGET_REACHED
    return SOME_FAILED if failed else 0


def _counts(progress: Progress, judge: Judge) -> tuple[str, ...]:
    """Where the questions of a run came from."""
    judged, stored = progress.origins["judge"], progress.origins["store"]
    return f"{judged} written by {judge.spec}", f"{stored} from the store"


def _embedder(name: str, dimensions: int | None, url: str | None, price: str | None) -> Embedder:
    """Make the embedder that the options describe; the key comes from the environment only.

    Raises:
        UsageError: an option is missing, or given to another embedder.
    """
    from labeler.api import open_embedder
    from labeler.cli.judging import dollars, key_for

    kind, _, model = name.partition(":")
    if kind != "openai":
        if dimensions is not None or price is not None:
            raise UsageError(
                f"embedder {name} takes no --dimensions and no --embedding-price; only openai does"
            )
        return open_embedder(name)
    if not model:
        raise UsageError(
            "the openai embedder needs a model: --embedder openai:MODEL; models retire, so none is "
            "built in"
        )
    from labeler.integrations.embeddings.openai_embedder import OpenAIEmbedder
    from labeler.integrations.embeddings.prices import flat_price
    from labeler.judges.openai.address import OFFICIAL_URL

    stated = dollars("--embedding-price", price)
    if stated is not None and stated < 0:
        raise UsageError(f"--embedding-price must be 0 or more, got {stated}")
    return OpenAIEmbedder(
        model,
        api_key=key_for(url),
        base_url=url or OFFICIAL_URL,
        dimensions=dimensions,
        price=None if stated is None else flat_price(stated, f"--embedding-price {stated}"),
    )


def _embedding(embedder: Embedder, work: EmbeddingWork) -> str:
    """What embedding took: texts, requests, tokens and money."""
    parts = [
        f"{work.embedded} texts embedded by {embedder.spec}",
        f"{work.stored} from the store",
        *([f"{work.failed} failed"] if work.failed else []),
    ]
    if not work.requests:
        return ", ".join(parts)
    price = embedder.price
    cost = "price unknown" if price is None else f"${work.spent.known:.6f} by {price.source}"
    return f"{', '.join(parts)}; {work.requests} requests; {work.tokens} tokens; {cost}"
