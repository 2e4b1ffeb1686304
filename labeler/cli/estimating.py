"""The command that reckons what a run would cost, before anything is sent."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated

import typer

from labeler.characters import plain_json, visible
from labeler.cli.labeling import Store
from labeler.pricing import PRICE_FORM

if TYPE_CHECKING:
    from rich.table import Table

    from labeler.estimating import Cost, Estimate

_LONGEST_ID = 40
_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def estimate(
    rows: Annotated[
        list[str],
        typer.Argument(help="JSON Lines with question, documents, response; - reads stdin."),
    ],
    *,
    model: Annotated[str, typer.Option(envvar="LABELER_MODEL", help="Model that openai asks.")],
    id_from: Annotated[
        str, typer.Option("--id", help="Columns that name a row, comma-separated.")
    ] = "id",
    base_url: Annotated[
        str | None, typer.Option(help="Address of an OpenAI-compatible server; it is not asked.")
    ] = None,
    price: Annotated[str | None, typer.Option(help=f"{PRICE_FORM}.")] = None,
    prices: Annotated[
        str | None, typer.Option(help="JSON file with prices by model, for what no table has.")
    ] = None,
    max_output_tokens: Annotated[
        int | None, typer.Option(min=1, help="Cap on an answer's length: gives a worst case.")
    ] = None,
    latency: Annotated[
        float | None, typer.Option(min=0, help="Seconds for an answer; by default as stored.")
    ] = None,
    temperature: Annotated[float | None, typer.Option(help="As for label.")] = None,
    top_p: Annotated[float | None, typer.Option(help="As for label.")] = None,
    seed: Annotated[int | None, typer.Option(help="As for label.")] = None,
    reasoning_effort: Annotated[str | None, typer.Option(help="As for label.")] = None,
    store: Store = ".labeler",
    splitter: Annotated[str, typer.Option(help="general, ragbench, given.")] = "general",
    prompt: Annotated[str, typer.Option(help="Name and version.")] = "trace/v1",
    concurrency: Annotated[int, typer.Option(min=1, help="Requests in flight at most.")] = 16,
    trial: Annotated[int, typer.Option(min=0, help="Another number asks anew.")] = 0,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Ask again where a failure is stored.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The estimate as JSON.")] = False,
) -> None:
    """Say what labelling rows would ask, cost and take. Sends nothing and needs no key."""
    from labeler import api
    from labeler.judges.openai_spec import spec_of
    from labeler.pricing import find_price
    from labeler.rows import RowFile

    settings = {
        "base_url": base_url,
        "temperature": temperature,
        "top_p": top_p,
        "seed": seed,
        "reasoning_effort": reasoning_effort,
    }
    spec = spec_of(model, {name: value for name, value in settings.items() if value is not None})
    found = api.estimate(
        RowFile(*rows, id_from=() if id_from == "id" else id_from.split(",")),
        judge=spec,
        store=store,
        splitter=splitter,
        prompt=prompt,
        trial=trial,
        concurrency=concurrency,
        price=find_price(model, base_url, given=price, file=prices),
        max_output_tokens=max_output_tokens,
        latency=latency,
        retry_failed=retry_failed,
    )
    if as_json:
        sys.stdout.write(plain_json(json.dumps(found.as_json(), ensure_ascii=False)) + "\n")
    else:
        print_estimate(found)


def print_estimate(found: Estimate) -> None:
    """Print an estimate for people: what is asked, what it costs, and what that rests on."""
    from rich.text import Text

    from labeler.cli.terminal import console

    out = console()
    out.print(_asked(found))
    if found.online and found.batch:
        out.print(_costs(found, found.online, found.batch))
    for note in _notes(found):
        out.print(Text(visible(note)))


def _table(*headings: str) -> Table:
    """No frame: its width is for words."""
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
    yield "  repeated", rows.repeated, "repeat an earlier row in every field"
    unusable = ", ".join(f"{reason} {number}" for reason, number in rows.unusable.items())
    yield "  cannot be labelled", sum(rows.unusable.values()), unusable
    yield "  alike", rows.shared, "ask what an earlier row asks, under another id"
    yield "  stored", rows.stored, "cost nothing"
    yield "  failed before", rows.failed, "left out; --retry-failed asks again"
    yield "requests", rows.asked, f"to {found.model}"
    long = f"longer than the model's {found.context_window or 0:,} tokens: "
    yield "  too long", rows.too_long, long + _named(rows.too_long_ids, rows.too_long)


def _named(ids: tuple[str, ...], total: int) -> str:
    shown = (f"{name!r:.{_LONGEST_ID}}" for name in ids)
    return ", ".join(shown) + (", …" if total > len(ids) else "")


def _token_lines(found: Estimate) -> Iterator[tuple[str, int, str]]:
    asked, prompt, answers = found.rows.asked, found.prompt, found.answers
    if not asked:
        return
    yield "document sentences", found.document_sentences, ""
    yield "response sentences", found.response_sentences, ""
    mean = round(prompt.total / asked)
    yield "prompt tokens", prompt.total, f"{mean:,} each, {prompt.largest:,} the largest"
    same = asked * prompt.same
    share = f"{same / prompt.total:.0%}: the first {prompt.same:,} of each"
    yield "  of them the same", same, share
    yield "answer tokens", answers.expected, f"{round(answers.expected / asked):,} each"


def _costs(found: Estimate, online: Cost, batch: Cost) -> Table:
    table = _table("US dollars", "online", "in a batch", "")
    cap = f"one answer of {found.answers.cap or 0:,} tokens each; cut off, one more of twice that"
    for name, one, other, remark in [
        ("expected", online.expected, batch.expected, "if the provider caches nothing"),
        ("  cached", online.cached, batch.cached, "if it caches what is the same in each prompt"),
        ("  written", online.written, batch.written, "if it charges for caching and never reads"),
        ("at most", online.at_most, batch.at_most, cap),
    ]:
        if one is not None:
            table.add_row(name, _dollars(one), _dollars(other), remark)
    return table


def _dollars(amount: Decimal | None) -> str:
    return "-" if amount is None else f"{amount:,.2f}" if amount >= 1 else f"{amount:.4f}"


def _notes(found: Estimate) -> Iterator[str]:
    if not found.rows.asked:
        yield "nothing would be asked"
        return
    lengths = (
        f"as in {found.answers.labels} stored labels"
        if found.answers.labels
        else "as in published labels of GPT-4, without reasoning tokens"
    )
    yield f"tokens: prompts counted by {found.prompt.counted_by}; answers {lengths}"
    if found.price is None:
        yield (
            f"cost: unknown, no table has a price for {found.model}; give --price {PRICE_FORM}, "
            "or --prices FILE"
        )
    else:
        yield f"price: {found.price}"
    if found.answers.cap is None and found.price:
        yield "worst case: unknown without --max-output-tokens"
    if found.latency is None or found.seconds is None:
        yield "time: unknown; --latency SECONDS says how long one answer takes"
    else:
        yield (
            f"time: {_duration(found.seconds)} with {found.concurrency} requests at once of "
            f"{found.latency:.3g} s each, if no rate limit slows them"
        )


def _duration(seconds: float) -> str:
    for unit, name in ((_DAY, "days"), (_HOUR, "h"), (_MINUTE, "min")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:.1f} {name}"
    return f"{seconds:.0f} s"
