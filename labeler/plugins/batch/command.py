"""Commands for OpenAI Batch: half the price, answers within a day."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from labeler.cli import options
from labeler.cli.terminal import (
    SOME_FAILED,
    TRY_LATER,
    WRONG_USE,
    announce,
    counted,
    notify,
    print_json,
    print_sections,
)
from labeler.data.options import given as given_fields
from labeler.errors import UsageError
from labeler.judges.opening import required_model
from labeler.judges.options import ServerOptions
from labeler.judges.pricing import Price, find_price
from labeler.plugins.batch.client import OpenAIBatches
from labeler.plugins.batch.collect import Collection, collect_batches
from labeler.plugins.batch.folder import batches, command
from labeler.plugins.batch.submission import (
    BatchOptions,
    BatchStatus,
    Submission,
    batch_status,
    cancel_batch,
    require_address,
    submit_batch,
)
from labeler.sentences.characters import visible
from labeler.sentences.display import Column, Grid, Section, plural

_SHOWN_BAD = 3


def submit(rows: options.Rows, *, given: BatchOptions, as_json: options.Json = False) -> int:
    """Submit rows without a label; run it again to go on."""
    given = given.resolved()
    if given.judge not in {None, "openai"}:
        raise UsageError(
            f"judge {given.judge} cannot be asked in batches: batches are those of OpenAI's API, "
            "so use --judge openai:MODEL"
        )
    required_model("openai", given)  # before the key
    announce("stopping: progress is saved; run the same command to continue")
    also = {"batches": _service(given), "notice": notify}
    done = submit_batch(rows, **vars(given) | also)
    if as_json:
        print_json(done.model_dump(mode="json"))
    else:
        _print_submission(done, str(given.store), given.server)
    return SOME_FAILED if done.bad else 0


def status(
    *,
    store: options.Store = ".labeler",
    server: ServerOptions,
    as_json: options.Json = False,
) -> None:
    """Show the batches of a store, and the next command."""
    is_open = any(batch.is_open for batch in batches(store))
    if is_open:
        require_address(store, server.base_url, "status")
    views = batch_status(store, _service(server) if is_open else None)
    if as_json:
        print_json([view.model_dump(mode="json") for view in views])
    elif views:
        _print_table(views)
    else:
        notify(f"{store} has no batches")


def collect(
    *,
    store: options.Store = ".labeler",
    server: ServerOptions,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until every batch is complete.")
    ] = False,
    price: Annotated[
        str | None,
        typer.Option(
            help="US dollars per million tokens without the batch discount: IN,OUT, such as 0.25,2."
        ),
    ] = None,
    as_json: options.Json = False,
) -> int:
    """Store the answers, and ask again where due.

    Exit code 75: files are not answered yet, so come back later; 1: all came in, and some rows have
    no label; 2: something has to be seen to.
    """

    def priced(model: str) -> Price | None:
        found = find_price(model, server.base_url, given=price)
        return found.batched() if found else None

    # The address comes before the key, which may belong to another server.
    require_address(store, server.base_url, "collect", *["--wait"] * wait)
    if wait:
        announce("stopping: what was answered until now is stored; collect again to go on")
    service = _service(server)
    done = collect_batches(service, store, wait=wait, price=priced, notice=notify)
    if as_json:
        print_json(done.model_dump(mode="json"))
    else:
        _print_collection(done)
    if done.stuck:  # a need for the user comes before a need to wait
        return WRONG_USE
    if done.still_open:
        return TRY_LATER
    return SOME_FAILED if done.results.failed or done.results.released else 0


def cancel(
    name: Annotated[str, typer.Argument(help="Name of a batch or submission.")],
    *,
    store: options.Store = ".labeler",
    server: ServerOptions,
    drop: Annotated[
        bool, typer.Option("--drop", help="Release its rows without asking the provider.")
    ] = False,
) -> None:
    """Cancel a batch; its answers can still be collected."""
    if not drop:
        require_address(store, server.base_url, "cancel", name=name)
    service = None if drop else _service(server)
    for line in cancel_batch(service, store, name, drop=drop) or ["nothing was open"]:
        notify(line)


status.pipe_closed = ""  # type: ignore[attr-defined]  # it only shows


def _service(server: ServerOptions) -> OpenAIBatches:
    return OpenAIBatches(**given_fields(server, ServerOptions))


def _print_submission(done: Submission, store: str, server: ServerOptions) -> None:
    for name in done.continued:
        notify(f"{name}: left over, and handed in now")
    left_out = counted(done.left_out)
    if done.waiting:
        notify(f"{plural(done.waiting, 'row')} to hand in by the same command after the collection")
    if done.batch is None:
        notify(f"nothing to hand in{left_out}")
    else:
        lines, files = plural(done.lines, "request"), plural(done.parts, "file")
        notify(f"{lines} handed in, {files}{left_out}")
        notify(f"look on: {command('status', store=store, server=server)}")
        notify(f"fetch:   {command('collect', store=store, server=server)}")
        sys.stdout.write(f"{done.batch}\n")
    if done.bad:
        notify(f"{plural(len(done.bad), 'row')} cannot be asked about:")
    for failure in done.bad[:_SHOWN_BAD]:
        notify(f"  {failure.message}")
    if len(done.bad) > _SHOWN_BAD:
        notify(f"  … and {len(done.bad) - _SHOWN_BAD} more; --json names all")


def _print_collection(done: Collection) -> None:
    results = done.results
    parts = [
        f"{plural(results.labeled, 'label')} stored",
        f"{results.failed.total()} failed{counted(results.failed)}",
    ]
    if results.again:
        parts.append(f"{results.again.total()} asked again{counted(results.again)}")
    if results.released:
        released = f"{results.released.total()} without an answer{counted(results.released)}"
        parts.append(f"{released}: label or submit them again")
    notify(", ".join(parts))
    if results.answered:
        usage, unmetered = results.usage, results.unmetered
        unknown = "cost unknown: no price"
        notify(
            f"{plural(results.answered, 'answer')}: {usage.prompt_tokens} prompt tokens "
            f"({usage.cached_tokens} cached), {usage.completion_tokens} completion tokens, "
            f"{unknown if results.cost is None else f'${results.cost:.4f} in batches'}"
            f"{f', {unmetered} of unknown usage' if unmetered else ''}"
        )
    for failure in done.failures:
        notify(f"  {failure.message}")
    if done.still_open:
        notify(
            f"{plural(done.still_open, 'file')} not answered yet: collect again later, or with "
            "--wait; files of answers are kept"
        )


def _print_table(views: Sequence[BatchStatus]) -> None:
    rows = []
    for view in views:
        seen = (view.remote.completed, view.remote.failed) if view.remote else (0, 0)
        counts = (view.lines, *seen, view.results.labeled)
        cells = (view.name, view.model, view.state, view.next, *counts)
        rows.append([visible(str(cell)) for cell in cells])
    columns = [Column(head, words=True) for head in ("batch", "model", "state", "next")]
    columns += map(Column, ("lines", "done", "failed", "stored"))
    print_sections([Section(None, [Grid(columns, rows)])])
    for view in views:
        if view.remote and view.remote.problems:
            notify(f"{view.name}: refused: {', '.join(view.remote.problems)}")
        if view.trouble:
            notify(f"{view.name}: {view.trouble}")
