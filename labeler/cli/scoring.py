"""Commands that score rows by criteria, and that look at what length does to scores."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from labeler.cli import options
from labeler.cli.interrupt import announce
from labeler.cli.running import BUDGET_REACHED, check_label_target, exit_code, write_run
from labeler.errors import FatalJudgeError, UsageError
from labeler.sentences.characters import plain_json
from labeler.version import __version__

if TYPE_CHECKING:
    from labeler.cli.terminal import Progress
    from labeler.judges.judge import Judge
    from labeler.labels.record import ScoreOutcome


def score(
    rows: options.Rows,
    *,
    criteria: Annotated[
        str,
        typer.Option(help="Names such as rubric_faithfulness, TOML files; parted by commas."),
    ],
    id_from: options.Id = "id",
    mapped: options.Map = None,
    preset: options.PresetName = None,
    output: options.Output = "-",
    judge: Annotated[
        str | None, typer.Option(help="openai, the default; other judges give labels alone.")
    ] = None,
    model: options.Model = None,
    base_url: options.BaseUrl = None,
    temperature: options.Temperature = None,
    top_p: options.TopP = None,
    seed: options.Seed = None,
    reasoning_effort: options.ReasoningEffort = None,
    cache_prefix: options.CachePrefix = False,
    max_output_tokens: options.MaxOutputTokens = None,
    timeout: options.Timeout = None,
    samples: Annotated[
        int, typer.Option(min=1, help="Trials that make one score: their mean.")
    ] = 1,
    logprobs: Annotated[
        bool, typer.Option("--logprobs", help="Weigh scores by their probabilities, if given.")
    ] = False,
    repeat: Annotated[
        int, typer.Option(min=1, help="Scores of each row, to see their spread.")
    ] = 1,
    store: options.Store = ".labeler",
    splitter: options.Splitter = "general",
    concurrency: options.Concurrency = 16,
    requests_per_minute: options.RequestsPerMinute = None,
    tokens_per_minute: options.TokensPerMinute = None,
    budget: options.BudgetOption = None,
    price: options.PriceOption = None,
    prices: options.Prices = None,
    no_wait: options.NoWait = False,
    retry_failed: options.RetryFailed = False,
    judges: Annotated[
        str | None,
        typer.Option(help="Several judges, each of which scores, such as openai:M,openai:OTHER."),
    ] = None,
) -> int:
    """Score rows by criteria: one judge call for each, none where it is stored."""
    from labeler import api
    from labeler.calculators.score_agreement import RaterScores
    from labeler.cli.judging import choose_judge, choose_judges, limits_of, price_told
    from labeler.cli.score_view import print_panels
    from labeler.cli.terminal import Progress, say
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
        "cache_prefix": cache_prefix or None,
        "timeout": timeout,
    }
    given = {name: value for name, value in settings.items() if value is not None}
    if judges is not None and judge is not None:
        raise UsageError("--judge names one judge and --judges several: give one of the two")
    _require_scorers(judges or judge or "openai")
    if judges is None:
        charged = find_price(model, base_url, given=price, file=prices) if model else None
        chosen = [choose_judge(judge or "openai", None, None, given, charged)]
    else:
        chosen = choose_judges(judges, None, None, given, (price, prices))
    limits = limits_of(requests_per_minute, tokens_per_minute, budget, no_wait=no_wait)
    check_label_target(rows, output)
    announce(
        f"stopping: requests in flight may finish within {GRACE_SECONDS:g} s; "
        "press Ctrl-C again to drop them"
    )
    methods, panels = Counter[str](), RaterScores() if len(chosen) > 1 or repeat > 1 else None

    def take(outcome: ScoreOutcome) -> None:
        methods.update(_method(outcome))
        if panels:
            panels.add(outcome)

    with Progress("scoring", price_told(chosen)) as progress:
        run = api.iter_scores(
            options.open_rows(rows, id_from, mapped, preset),
            criteria=criteria,
            judge=chosen,
            store=store,
            splitter=splitter,
            samples=samples,
            repeat=repeat,
            logprobs=logprobs,
            concurrency=concurrency,
            limits=limits,
            retry_failed=retry_failed,
            watcher=progress,
        )
        try:
            write_run(
                run,
                output,
                progress,
                lambda: _counts(progress, chosen, methods),
                take,
            )
        except FatalJudgeError as error:
            if error.reason != "budget":
                raise
            say(str(error))
            return BUDGET_REACHED
    progress.close(*_counts(progress, chosen, methods))
    if panels:
        print_panels(panels.panels(), stderr=True)
    return exit_code(progress)


def _method(outcome: ScoreOutcome) -> list[str]:
    """What a score is computed from; nothing for a failure."""
    return [outcome.method] if outcome.kind == "score" else []


def _counts(progress: Progress, judges: Sequence[Judge], methods: Counter[str]) -> tuple[str, ...]:
    """Where the scores of a run came from, and how they were made."""
    judged, stored = progress.origins["judge"], progress.origins["store"]
    by = ", ".join(f"{count} by {method}" for method, count in methods.most_common())
    named = ", ".join(str(judge.spec) for judge in judges)
    scored = f"{judged} scored by {named}", f"{stored} from the store"
    return (*scored, f"scores: {by}") if by else scored


def length(
    scores: Annotated[str, typer.Argument(help="Score file, store folder, or - for stdin.")],
    *,
    as_json: options.Json = False,
) -> None:
    """Show whether longer responses get higher scores."""
    from labeler import api
    from labeler.calculators.scores import length_effects
    from labeler.cli.score_view import print_length

    found = length_effects(api.read_scores(scores))
    if not found:
        raise UsageError(f"{scores} holds no scores: 'labeler score' makes some")
    if as_json:
        effects = [one.as_json(__version__) for one in found]
        sys.stdout.write(plain_json(json.dumps(effects, ensure_ascii=False)) + "\n")
    else:
        print_length(found, __version__)


def _require_scorers(judges: str) -> None:
    """Refuse, before anything is read, a judge that gives nothing but labels."""
    for judge in (name.strip() for name in judges.split(",")):
        if judge in {"embedded", "replay"}:
            raise UsageError(
                f"judge {judge!r} gives labels alone, and scores need a language model: use "
                "--judge openai --model NAME, with --base-url for a server of your own"
            )
