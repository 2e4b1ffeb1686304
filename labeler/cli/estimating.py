"""The ``estimate`` command: the cost of a run before anything is sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated

import typer

from labeler.cli import options
from labeler.cli.terminal import LineWriter, notify_read, print_grids, print_json
from labeler.data.options import RowsOptions
from labeler.judges.pricing import PRICE_FORM
from labeler.judges.tokens import CAP_BASE, CAP_TIMES, CLAIMS_PER_SENTENCE
from labeler.labeling.options import EstimateOptions
from labeler.sentences.characters import visible
from labeler.sentences.display import Column, Grid, console, percent

if TYPE_CHECKING:
    from rich.table import Table

    from labeler.labeling.estimate import Cost, Estimate

_LONGEST_ID = 40
_CAP_OF_BUDGET = f"{CAP_BASE:,} + {CAP_TIMES} times the expected"
_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def estimate(
    rows: options.Rows,
    *,
    given: EstimateOptions,
    each_profile: Annotated[
        bool, typer.Option("--each-profile", help="Compare the cost of all profiles.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Estimate requests, cost and time; nothing is sent."""
    from labeler import api
    from labeler.errors import UsageError
    from labeler.labels.profiles import AUTO, PROFILES

    if each_profile and given.prompt != EstimateOptions.prompt:
        raise UsageError("--each-profile takes each profile's own prompt: leave --prompt out")
    opened = given.open(rows)
    wanted = [*PROFILES, AUTO] if each_profile else [given.profile]
    asked = vars(given) | vars(RowsOptions())
    found = {name: api.estimate(opened, **asked | {"profile": name}) for name in wanted}
    notify_read(opened)
    if as_json:
        value = {name: one.as_json() for name, one in found.items()}
        print_json(value if each_profile else value[given.profile])
    elif each_profile:
        print_profiles(found)
    else:
        print_estimate(found[given.profile])


def print_profiles(found: Mapping[str, Estimate]) -> None:
    """Print requests and cost of each profile for the same rows, for people."""
    from rich.text import Text

    out = console()
    heads = ("requests", "prompt\ntokens", "answer\ntokens", "online", "batch")
    rows = []
    for name, one in found.items():
        sums = (one.rows.asked, one.prompt.total, one.answers.expected)
        dollars = (_dollars(cost.expected if cost else None) for cost in (one.online, one.batch))
        rows.append([name, *(f"{n:,}" for n in sums), *dollars])
    print_grids(LineWriter(), Grid([Column("profile", words=True), *map(Column, heads)], rows))
    for name, one in found.items():
        if reasons := ", ".join(f"{reason} {n}" for reason, n in one.rows.unusable.items()):
            out.print(Text(visible(f"cannot be labeled with --profile {name}: {reasons}")))
    one = next(iter(found.values()))
    out.print(Text(visible(f"US dollars if the provider caches nothing; {_answer_basis(found)}")))
    out.print(Text(visible(_price_note(one))))


def _answer_basis(found: Mapping[str, Estimate]) -> str:
    """Return the basis of the answer lengths of several profiles."""
    measured = any(one.answers.labels for one in found.values())
    assumed = f"{CLAIMS_PER_SENTENCE} claims a sentence are assumed"
    return f"{assumed}, but where stored labels tell better" if measured else assumed


def print_estimate(found: Estimate) -> None:
    """Print an estimate for people: requests, cost and their basis."""
    from rich.text import Text

    out = console()
    out.print(Text(visible(_conclusion(found))), style="bold", soft_wrap=True)
    out.print(_asked(found))
    if found.online:
        out.print(_costs(found, found.online, found.batch))
    for note in _notes(found):
        out.print(Text(visible(note)))


def _conclusion(found: Estimate) -> str:
    """Return the number of requests, their cost and time in one sentence."""
    rows = found.rows
    if not rows.asked:
        return f"Nothing to ask: {rows.stored:,} of {rows.read:,} rows are stored."
    asked = f"{rows.asked:,} {'request' if rows.asked == 1 else 'requests'} to {found.model}"
    cost = "price unknown"
    if found.online:
        cost = (
            f"about ${_dollars(found.online.expected)}, at most ${_dollars(found.online.at_most)}"
        )
        cost += f", in a batch ${_dollars(found.batch.expected)}" if found.batch else ""
    time = f", {_duration(found.seconds)}" if found.seconds is not None else ""
    return f"{asked}: {cost}{time}."


def _table(*headings: str) -> Table:
    """Return a table without a frame, which leaves more width for words."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column(headings[0], no_wrap=True)
    for heading in headings[1:-1]:
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column(headings[-1], overflow="fold")
    return table


def _asked(found: Estimate) -> Table:
    from rich.text import Text

    table = _table("", "number", "")
    for name, number, remark in [*_row_lines(found), *_token_lines(found)]:
        if number:
            table.add_row(name, f"{number:,}", Text(visible(remark)))
    return table


def _row_lines(found: Estimate) -> Iterator[tuple[str, int, str]]:
    rows = found.rows
    yield "rows", rows.read, ""
    unusable = ", ".join(f"{reason} {number}" for reason, number in rows.unusable.items())
    yield "  cannot be labeled", sum(rows.unusable.values()), unusable
    yield "  alike", rows.shared, "ask what an earlier row asks"
    yield "  stored", rows.stored, "cost nothing"
    yield "  failed before", rows.failed, "left out; --retry-failed asks again"
    yield "requests", rows.asked, f"to {found.model}"
    for name, number in found.profiles.items():
        yield "  retrieval labels" if name == "retrieval" else f"  profile {name}", number, ""


def _token_lines(found: Estimate) -> Iterator[tuple[str, int, str]]:
    asked, prompt, answers = found.rows.asked, found.prompt, found.answers
    if not asked:
        return
    yield "document sentences", found.document_sentences, ""
    yield "response sentences", found.response_sentences, ""
    mean = round(prompt.total / asked)
    yield "prompt tokens", prompt.total, f"{mean:,} each, {prompt.largest:,} the largest"
    share = f"{percent(prompt.same_total / prompt.total)}: the first {prompt.same:,} of each"
    if len(found.profiles) > 1:
        share += " or more, by profile"
    yield "  of them the same", prompt.same_total, share
    yield "answer tokens", answers.expected, f"{round(answers.expected / asked):,} each"


def _costs(found: Estimate, online: Cost, batch: Cost | None) -> Table:
    both = [online, *([batch] if batch else [])]
    table = _table("US dollars", *("online", "in a batch")[: len(both)], "")
    cap = f"{found.answers.cap:,}" if found.answers.cap else _CAP_OF_BUDGET
    remarks = {
        "expected": "if the provider caches nothing",
        "cached": _cached_remark(found),
        "written": "if it charges for caching and never reads",
        "at_most": f"each answer at its cap, {cap} tokens, then asked again with twice that",
    }
    if batch is None:  # answers are probabilities
        remarks |= {"expected": "", "at_most": "if each text has as many tokens as it can have"}
    for name, remark in remarks.items():
        if getattr(online, name) is not None:
            shown = name.replace("_", " ") if name in {"expected", "at_most"} else f"  {name}"
            table.add_row(shown, *(_dollars(getattr(one, name)) for one in both), remark)
    return table


def _cached_remark(found: Estimate) -> str:
    return f"if it caches the first {found.prompt.cacheable:,} tokens of each prompt"


def _dollars(amount: Decimal | None) -> str:
    return "-" if amount is None else f"{amount:,.2f}" if amount >= 1 else f"{amount:.4f}"


def _notes(found: Estimate) -> Iterator[str]:
    if not found.rows.asked:
        return
    if found.answers.expected == 0:
        yield f"tokens: prompts counted by {found.prompt.counted_by}; answers are probabilities"
    lengths = (
        f"as in {found.answers.labels} stored labels"
        if found.answers.labels
        else "as in published labels of GPT-4, without reasoning tokens"
    )
    if not found.answers.labels and set(found.profiles) - {"trace", "retrieval"}:
        lengths += f", and {CLAIMS_PER_SENTENCE} claims a sentence assumed"
    if found.answers.expected:
        yield f"tokens: prompts counted by {found.prompt.counted_by}; answers {lengths}"
        yield from _cache_notes(found)
    yield _price_note(found)
    if found.latency is None or found.seconds is None:
        yield "time: unknown; --latency SECONDS says how long one answer takes"
    else:
        yield (
            f"time: {_duration(found.seconds)} with {found.concurrency} requests at once of "
            f"{found.latency:.3g} s each, if no rate limit slows them"
        )


def _cache_notes(found: Estimate) -> Iterator[str]:
    """Report a common start that no cache holds."""
    from labeler.labeling.estimate import SHORTEST_CACHED

    if found.prompt.cacheable:
        return
    if found.prompt.same < SHORTEST_CACHED:
        yield (
            f"caching: none, the first {found.prompt.same:,} tokens are the same and providers "
            f"cache {SHORTEST_CACHED:,} or more"
        )
    else:
        yield (
            "caching: none; --prompt-cache key or off leaves the common start unmarked for models "
            "that charge for every write"
        )


def _price_note(found: Estimate) -> str:
    if found.price is None:
        return (
            f"cost: unknown, no table has a price for {found.model}; give --price {PRICE_FORM}, "
            "or --prices FILE"
        )
    return f"price: {found.price}"


def _duration(seconds: float) -> str:
    for unit, name in ((_DAY, "days"), (_HOUR, "h"), (_MINUTE, "min")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:.1f} {name}"
    return f"{seconds:.0f} s"
