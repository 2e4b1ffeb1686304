"""The library's front door, and the twin of the command line."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from labeler.batches import (
    FileLimits,
    Pending,
    Submission,
    Waiting,
    batch_status,
    cancel_batch,
    collect_batches,
)
from labeler.batches import submit_batch as hand_in
from labeler.calculators import Metric, MetricsRow, SummaryRow, measure, select_metrics, summarize
from labeler.canaries import Canaries, is_canary
from labeler.errors import UsageError
from labeler.estimating import Estimate, Unasked
from labeler.estimating import estimate as reckon
from labeler.example import Example
from labeler.importers.ragbench import read_ragbench
from labeler.judges import JUDGES, Judge, JudgeSpec
from labeler.judges.batch_service import BatchService
from labeler.label_files import read_outcomes, write_outcomes
from labeler.labels import GPTLabelingOutput
from labeler.pipeline import DEFAULT_CONCURRENCY, Watcher, label_rows
from labeler.pricing import Price, find_price
from labeler.profiles import DEFAULT_PROFILE
from labeler.prompting import DEFAULT_PROMPT, Message, load_prompt
from labeler.recipe import recipe
from labeler.record import LabelFailure, LabelRecord, Outcome
from labeler.rows import RowFile, Rows, RowSequence
from labeler.splitting import DEFAULT_SPLITTER, SPLITTERS, key_example
from labeler.stores import LabelStore
from labeler.stores.database import FILE
from labeler.stores.disk import DiskStore
from labeler.stores.memory import MemoryStore
from labeler.traffic import Limits

DEFAULT_STORE = ".labeler"
"""Folder of the label store, beside the work it belongs to."""


def open_rows(rows: str | Path | Iterable[Example | Mapping[str, Any]]) -> Rows:
    """Rows of a file (a path, ``-`` for standard input), or rows from Python."""
    if isinstance(rows, str | Path):
        return RowFile(rows)
    return RowSequence(list(rows))


def open_judge(judge: str | Judge) -> Judge:
    """A judge that needs no settings, by name, or the judge itself.

    Raises:
        UnknownName: there is no judge of that name.
        UsageError: the judge needs settings; make it yourself and pass it.
    """
    if not isinstance(judge, str):
        return judge
    made: Judge
    try:
        made = JUDGES[judge]()
    except TypeError as error:
        raise UsageError(
            f"judge {judge!r} needs settings: {error}; make one from labeler.judges and pass it"
        ) from error
    return made


def iter_labels(
    rows: str | Path | Iterable[Example | Mapping[str, Any]] | Rows,
    *,
    judge: str | Judge,
    store: LabelStore | str | Path = DEFAULT_STORE,
    splitter: str = DEFAULT_SPLITTER,
    profile: str = DEFAULT_PROFILE,
    prompt: str | None = None,
    trial: int = 0,
    concurrency: int = DEFAULT_CONCURRENCY,
    limits: Limits | None = None,
    retry_failed: bool = False,
    canaries: Canaries | None = None,
    watcher: Watcher | None = None,
) -> Generator[Outcome, None, None]:
    """Label rows, one outcome each, in input order.

    A row whose label is stored costs nothing. Every label is durable in the store before it is
    yielded, so that a run that was cut off goes on where it stopped.

    Args:
        rows: a JSON Lines file, or examples or mappings with ``question``, ``documents`` and
            ``response``.
        judge: ``"embedded"``, or a judge such as ``OpenAIJudge(model=…)``.
        store: a folder, or a store; ``MemoryStore()`` keeps nothing.
        splitter: name of a sentence splitter; rows that bring sentences keep theirs.
        profile: how much is asked in the one call: ``trace``, ``claims``, ``reference``, or
            ``auto``, which is ``reference`` for rows that have a reference answer and ``claims``
            for the others.
        prompt: name and version of another prompt than the profile's own.
        trial: 0 for the first judgement; another number asks anew and is stored apart.
        concurrency: requests in flight at most; how many there are is found by trying.
        limits: requests and tokens a minute, a budget, how long a server may ask to wait.
        retry_failed: ask again for what failed for good before, such as after a refusal.
        canaries: a share of the rows to judge once more with planted sentences; after the run it
            tells how often the judge fell for them.
        watcher: told how the run goes, such as a progress bar.

    Raises:
        UsageError: the rows cannot be read, or two share an id and differ; nothing was sent.
        FatalJudgeError: no record can be labelled, for example with a wrong key.
        RunPaused: the server asks to wait longer than the limits allow.
        StoreError: the store cannot be read or written.
    """
    opened = rows if isinstance(rows, RowFile | RowSequence) else open_rows(rows)
    how = recipe(open_judge(judge), splitter=splitter, profile=profile, prompt=prompt, trial=trial)
    opened_here = isinstance(store, str | Path)
    kept = _open_store(store, watcher) if isinstance(store, str | Path) else store
    yield from label_rows(
        opened,
        how,
        kept,
        concurrency=concurrency,
        limits=limits,
        retry_failed=retry_failed,
        canaries=canaries,
        in_batch=Pending(kept.directory) if isinstance(kept, DiskStore) else lambda _: None,
        watcher=watcher,
        after=kept.close if opened_here else lambda: None,
    )


def _open_store(folder: str | Path, watcher: Watcher | None) -> DiskStore:
    return DiskStore(folder, notice=watcher.notice if watcher else None)


def label(
    rows: str | Path | Iterable[Example | Mapping[str, Any]],
    *,
    judge: str | Judge,
    store: LabelStore | str | Path = DEFAULT_STORE,
    splitter: str = DEFAULT_SPLITTER,
    profile: str = DEFAULT_PROFILE,
    prompt: str | None = None,
    trial: int = 0,
    concurrency: int = DEFAULT_CONCURRENCY,
    limits: Limits | None = None,
    retry_failed: bool = False,
) -> list[Outcome]:
    """Label rows and return a record or a failure for each; see :func:`iter_labels`."""
    return list(
        iter_labels(
            rows,
            judge=judge,
            store=store,
            splitter=splitter,
            profile=profile,
            prompt=prompt,
            trial=trial,
            concurrency=concurrency,
            limits=limits,
            retry_failed=retry_failed,
        )
    )


def submit_batch(
    rows: str | Path | Iterable[Example | Mapping[str, Any]] | Rows,
    *,
    judge: Judge,
    batches: BatchService,
    store: str | Path = DEFAULT_STORE,
    splitter: str = DEFAULT_SPLITTER,
    profile: str = DEFAULT_PROFILE,
    prompt: str | None = None,
    trial: int = 0,
    retry_failed: bool = False,
    limits: FileLimits | None = None,
) -> Submission:
    """Hand rows in as a batch: for about half the price, within a day.

    What it brings is stored by :func:`collect_batches`; then :func:`label` finds it there.

    Args:
        rows: as for :func:`iter_labels`.
        judge: an ``OpenAIJudge``, which says what is asked; it is not asked itself.
        batches: such as ``OpenAIBatches(api_key=…)``, with the judge's ``base_url``.
        store: a folder; what is on its way is written down there.
        splitter: as for :func:`iter_labels`.
        profile: the same.
        prompt: the same.
        trial: the same.
        retry_failed: ask again for what failed for good before.
        limits: how large one file of a batch may be.

    Raises:
        UsageError: the rows cannot be read, or judge and service do not fit; nothing was sent.
        JudgeError: the provider does not take it, or cannot be reached; run it again to go on.
        StoreError: the store cannot be read or written.
    """
    opened = rows if isinstance(rows, RowFile | RowSequence) else open_rows(rows)
    how = recipe(judge, splitter=splitter, profile=profile, prompt=prompt, trial=trial)
    return hand_in(opened, how, batches, store, retry_failed=retry_failed, limits=limits)


def estimate(
    rows: str | Path | Iterable[Example | Mapping[str, Any]] | Rows,
    *,
    judge: Judge | JudgeSpec,
    store: LabelStore | str | Path = DEFAULT_STORE,
    splitter: str = DEFAULT_SPLITTER,
    profile: str = DEFAULT_PROFILE,
    prompt: str | None = None,
    trial: int = 0,
    concurrency: int = DEFAULT_CONCURRENCY,
    price: Price | None = None,
    max_output_tokens: int | None = None,
    latency: float | None = None,
    retry_failed: bool = False,
) -> Estimate:
    """Reckon what labelling would ask, cost and take; nothing is sent, no key is needed.

    Args:
        rows: as for :func:`iter_labels`.
        judge: whom it would be, or its specification.
        store: where labels are looked up; a folder that is not there holds none.
        splitter: as for :func:`iter_labels`.
        profile: the same.
        prompt: the same.
        trial: the same.
        concurrency: requests in flight at most.
        price: what the model's tokens cost; see :func:`find_price`.
        max_output_tokens: the cap on an answer; without one there is no worst case.
        latency: seconds for one answer; by default the mean of stored labels, if there are any.
        retry_failed: whether stored failures would be asked again.
    """
    opened = rows if isinstance(rows, RowFile | RowSequence) else open_rows(rows)
    asked = Unasked(judge) if isinstance(judge, JudgeSpec) else judge
    how = recipe(asked, splitter=splitter, profile=profile, prompt=prompt, trial=trial)
    with _stored_labels(store) as labels:
        return reckon(
            opened,
            how,
            labels,
            concurrency=concurrency,
            price=price,
            max_output_tokens=max_output_tokens,
            latency=latency,
            retry_failed=retry_failed,
        )


@contextmanager
def _stored_labels(store: LabelStore | str | Path) -> Iterator[LabelStore]:
    """A store for reading: an empty one where there is no folder, and none is made."""
    if not isinstance(store, str | Path):
        yield store
        return
    there = (Path(store) / FILE).exists()
    with DiskStore(store, create=False) if there else MemoryStore() as own:
        yield own


def read_labels(labels: str | Path) -> Iterator[Outcome]:
    """Read outcomes of a label file, of standard input (``-``), or of a store's folder.

    Raises:
        UsageError: there is no such file or folder, or a line is no label.
        StoreError: the store is damaged.
    """
    if Path(labels).is_dir():
        with DiskStore(labels, create=False) as store:
            yield from store
    else:
        yield from read_outcomes(labels)


def read_records(labels: str | Path) -> Iterator[LabelRecord]:
    """Read the label records among the outcomes of :func:`read_labels`."""
    return (
        outcome
        for outcome in read_labels(labels)
        if isinstance(outcome, LabelRecord) and not is_canary(outcome)
    )


def write_labels(outcomes: Iterable[Outcome], path: str | Path) -> int:
    """Write outcomes as JSON Lines; the file appears when it is whole. Returns their number."""
    return sum(1 for _ in write_outcomes(outcomes, path))


def messages(
    rows: str | Path,
    *,
    id: str | None = None,  # noqa: A002 - the row's field
    prompt: str | None = None,
    splitter: str = DEFAULT_SPLITTER,
) -> tuple[Message, ...]:
    """The chat messages that a judge would be sent for a row of a file, the first by default.

    Raises:
        UsageError: there is no such row, or it is no example.
    """
    for row in RowFile(rows):
        if id is None or row.content.id == id:
            if isinstance(row.content, LabelFailure):
                raise UsageError(row.content.message)
            keyed = key_example(row.content, SPLITTERS[splitter])
            return load_prompt(prompt or DEFAULT_PROMPT).render(keyed)
    raise UsageError(f"{rows} has no row {id!r}")


class Imported(NamedTuple):
    """What became of records that were put into a store."""

    new: int
    present: int
    """Judgements that the store held already, or that came twice, with the same label."""
    differing: tuple[str, ...]
    """Ids of records whose judgement the store holds with another label; it keeps its own."""


def import_labels(outcomes: Iterable[Outcome], store: str | Path = DEFAULT_STORE) -> Imported:
    """Put label records into a store; a key that it holds already keeps its first record.

    A store holds judgements, not rows: records of different rows that ask the same of the same
    sentences are one. Failures are left out.
    """
    known: dict[str, GPTLabelingOutput] = {}
    saved, present, differing = [], 0, []
    with DiskStore(store) as labels:
        for record in (o for o in outcomes if isinstance(o, LabelRecord)):
            if record.key not in known:
                stored = labels.get(record.key)
                known[record.key] = stored.label if stored else record.label
                if stored is None:
                    saved.append(labels.put(record))
                    continue
            if known[record.key] == record.label:
                present += 1
            else:
                differing.append(record.id)
        for future in saved:
            future.result()
    return Imported(len(saved), present, tuple(differing))


def measured(
    outcomes: Iterable[Outcome], metrics: Sequence[Metric] | None = None
) -> Iterator[MetricsRow]:
    """Measure outcomes one by one."""
    chosen = metrics if metrics is not None else select_metrics()
    for outcome in outcomes:
        if not is_canary(outcome):
            yield measure(outcome, chosen)


def metrics(
    outcomes: Iterable[Outcome], ids: str | Iterable[str] | None = None
) -> list[MetricsRow]:
    """Compute metrics of stored labels: no judge, no network, no key.

    Args:
        outcomes: label records and failures.
        ids: metric ids such as ``relevance`` or ``relevance:ragbench``, or ``all``; where left
            out, each metric once, in its default dialect.

    Returns:
        One row an outcome; each metric is a :class:`~labeler.calculators.Ratio`.
    """
    return list(measured(outcomes, select_metrics(ids)))


def summary(
    outcomes: Iterable[Outcome],
    ids: str | Iterable[str] | None = None,
    *,
    by: str | None = None,
) -> list[SummaryRow]:
    """Summarise metrics over outcomes, or over each value of a metadata column.

    Labels that were made in different ways are never averaged: see
    :func:`labeler.calculators.summarize`. A store holds judgements, not rows: summarise the label
    file of a run for numbers over its rows.

    Args:
        outcomes: label records and failures.
        ids: as for :func:`metrics`.
        by: name of a metadata column.
    """
    chosen = select_metrics(ids)
    return summarize(measured(outcomes, chosen), chosen, by)


__all__ = [
    "DEFAULT_STORE",
    "Canaries",
    "Estimate",
    "FileLimits",
    "Limits",
    "MemoryStore",
    "Price",
    "Waiting",
    "batch_status",
    "cancel_batch",
    "collect_batches",
    "estimate",
    "find_price",
    "import_labels",
    "iter_labels",
    "label",
    "measured",
    "metrics",
    "open_judge",
    "open_rows",
    "read_labels",
    "read_ragbench",
    "read_records",
    "submit_batch",
    "summary",
    "write_labels",
]
