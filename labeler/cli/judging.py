"""Chooses and makes the judge that the options of the command line describe."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from typing import Any

from labeler.api import open_judge
from labeler.cli.options import SHORT_WAIT
from labeler.cli.terminal import say
from labeler.errors import UsageError
from labeler.judges.embedded.judge import EmbeddedJudge
from labeler.judges.judge import Judge
from labeler.judges.pricing import Price, find_price
from labeler.judges.replay import ReplayJudge
from labeler.judges.traffic.traffic import Limits


def choose_judge(
    name: str | None,
    recorded: str | None,
    threshold: float | None,
    openai: dict[str, Any],
    price: Price | None = None,
    *,
    also: Iterable[str] = (),
) -> Judge:
    """Make the judge that the options describe; the key comes from the environment only.

    Args:
        name: of a judge; by default ``openai`` where a key or an option of it is given, else
            ``embedded``.
        recorded: the label file that ``replay`` answers from.
        threshold: the support threshold of ``embedded``.
        openai: the given options of ``openai``.
        price: what its tokens cost.
        also: names of given options that mean something to ``openai`` alone, and are none of its
            own.

    Raises:
        UsageError: an option is missing, or given to another judge.
    """
    asked = {*openai, *also}
    chosen = name or ("openai" if asked or os.environ.get("OPENAI_API_KEY") else "embedded")
    if openai.get("model") == os.environ.get("LABELER_MODEL"):
        asked.discard("model")
    _refuse_strange_options(chosen, recorded, threshold, asked)
    if chosen == "openai":
        return _openai(openai, price)
    if chosen == "replay":
        if not recorded:
            raise UsageError("the replay judge needs --recorded LABELS to answer from")
        return ReplayJudge.from_file(recorded)
    if threshold is not None:
        return EmbeddedJudge(support_threshold=threshold)
    if name is None:
        say(
            "no key in OPENAI_API_KEY and no --model: labelling with the embedded judge, which "
            "compares words; --judge embedded says so on purpose"
        )
    return open_judge(chosen)


def dollars(option: str, text: str | None) -> Decimal | None:
    """An amount of money from the command line.

    Raises:
        UsageError: it is no number; what a limit may be, the limit itself checks.
    """
    if text is None:
        return None
    with suppress(InvalidOperation):
        amount = Decimal(text)
        if amount.is_finite():
            return amount
    raise UsageError(f"{option} is in US dollars, such as 12.50; got {text!r:.40}")


def limits_of(
    requests_per_minute: float | None,
    tokens_per_minute: float | None,
    budget: str | None,
    *,
    no_wait: bool,
) -> Limits:
    """The limits that the options set to a run."""
    return Limits(
        requests_per_minute,
        tokens_per_minute,
        dollars("--budget", budget),
        longest_wait=SHORT_WAIT if no_wait else None,
    )


def choose_judges(
    names: str,
    recorded: str | None,
    threshold: float | None,
    openai: dict[str, Any],
    prices: tuple[str | None, str | None],
    *,
    also: Iterable[str] = (),
) -> list[Judge]:
    """Make the judges that vote together.

    Args:
        names: parted by commas; ``openai:MODEL`` may be there several times.
        recorded: as for :func:`choose_judge`.
        threshold: the same.
        openai: the given options of every ``openai`` judge.
        prices: of ``--price`` and ``--prices``.
        also: as for :func:`choose_judge`.

    Raises:
        UsageError: a judge is named twice, one price is given for several models, or as for
            :func:`choose_judge`.
    """
    wanted = [name.strip() for name in names.split(",")]
    twice = sorted({name for name in wanted if wanted.count(name) > 1})
    if twice:
        raise UsageError(f"--judges names {twice[0]!r} twice; --repeat has each judge vote again")
    kinds = [name.partition(":")[0] for name in wanted]
    given, file = prices
    if given is not None and kinds.count("openai") > 1:
        raise UsageError(
            "--price is that of one model, and --judges names several: give a file of --prices"
        )
    made = []
    for kind, name in zip(kinds, wanted, strict=True):
        model = name.partition(":")[2]
        # What no judge takes is handed to the first, which refuses it.
        ours = {kind, *({"replay", "embedded", "openai"} - set(kinds))}
        asked = {**openai, **({"model": model} if model else {})} if "openai" in ours else {}
        charged = None
        if kind == "openai" and asked.get("model"):
            charged = find_price(asked["model"], asked.get("base_url"), given=given, file=file)
        made.append(
            choose_judge(
                kind,
                recorded if "replay" in ours else None,
                threshold if "embedded" in ours else None,
                asked,
                charged,
                also=also if "openai" in ours else (),
            )
        )
    return made


def price_told(judges: Sequence[Judge]) -> Price | None:
    """The price that a run's cost is told by; ``None`` where that of a paid judge is unknown."""
    prices: list[Price | None] = [judge.price for judge in judges if hasattr(judge, "price")]
    return prices[0] if prices and None not in prices else None


def _refuse_strange_options(
    chosen: str, recorded: str | None, threshold: float | None, of_openai: set[str]
) -> None:
    """Refuse an option that the judge would ignore: its user expects an effect."""
    given = {
        "openai": of_openai,
        "replay": {"recorded"} if recorded else set(),
        "embedded": set() if threshold is None else {"support_threshold"},
    }
    for judge, options in given.items():
        if judge != chosen and options:
            named = ", ".join(f"--{option.replace('_', '-')}" for option in sorted(options))
            raise UsageError(f"judge {chosen} takes no {named}; only {judge} does")


def _openai(openai: dict[str, Any], price: Price | None) -> Judge:
    from labeler.judges.openai.judge import OpenAIJudge

    if "model" not in openai:
        raise UsageError(
            "the openai judge needs --model (or LABELER_MODEL): models retire, so none is "
            "built in; --judge embedded works without one"
        )
    key = key_for(openai.get("base_url"), instead="; --judge embedded works without one")
    return OpenAIJudge(**openai, api_key=key, price=price)


def key_for(base_url: str | None, *, instead: str = "") -> str:
    """The API key, from the environment only; ``none`` for a named server that may need none.

    Args:
        base_url: the address on the command line, if there is one.
        instead: what the command can do without a key, told where there is none.

    Raises:
        UsageError: there is no key, or a variable names another server than the command line.
    """
    if os.environ.get("OPENAI_BASE_URL") and base_url is None:
        raise UsageError(
            "OPENAI_BASE_URL is set, and labeler sends documents only where it is told on the "
            "command line: give --base-url, or unset the variable"
        )
    key = os.environ.get("OPENAI_API_KEY")
    if not key and base_url is None:
        raise UsageError(
            "a hosted model needs a key in OPENAI_API_KEY, or --base-url for a server that needs "
            f"none{instead}"
        )
    return key or "none"
