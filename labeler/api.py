"""The library's front door, and the twin of the command line."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from labeler.calculators import Intervals, MetricsRow, SummaryRow, select_metrics, summarize
from labeler.calculators.index.paths import is_worthwhile
from labeler.calculators.outcomes import (
    as_outcomes,
    measure_outcomes,
    read_labels,
    read_records,
    read_scores,
    stored_outcomes,
)
from labeler.calculators.score_agreement import compare_raters
from labeler.calculators.scores import (
    criterion_name,
    is_score_metric,
    length_effects,
    measure_scores,
    split_scores,
    summarize_scores,
)
from labeler.calculators.similarity import (
    QUESTION_METRICS,
    label_metric_ids,
    question_metrics,
)
from labeler.comparing.gates import Demand, Gate
from labeler.comparing.voter_agreement import Votes
from labeler.data.criteria_files import choose_criteria
from labeler.data.formats.tables import table_of
from labeler.data.label_files import write_outcomes
from labeler.data.presets import choose_columns
from labeler.data.ragbench import read_ragbench
from labeler.data.rows import RowFile, Rows, RowSequence
from labeler.errors import UnknownName, UsageError
from labeler.integrations.batch.folder import PendingKeys
from labeler.integrations.embeddings.cache import EmbeddingWork, Shelf
from labeler.integrations.embeddings.embedder import EMBEDDERS, Embedder
from labeler.integrations.embeddings.questioning import QuestionsTasks
from labeler.integrations.embeddings.similarity import compare_rows
from labeler.judges.judge import JUDGES, Judge, JudgeSpec
from labeler.judges.pricing import Price, find_price
from labeler.judges.prompting import DEFAULT_PROMPT, Message, load_prompt
from labeler.judges.traffic.traffic import Limits
from labeler.labeling.canaries import Canaries
from labeler.labeling.estimate import Estimate, Unasked
from labeler.labeling.estimate import estimate as reckon
from labeler.labeling.pipeline import DEFAULT_CONCURRENCY, Watcher, label_rows
from labeler.labeling.score_runs import Plan, score_rows
from labeler.labeling.tasks import label_tasks
from labeler.labeling.votes import vote_rows
from labeler.labels.criteria import Criterion
from labeler.labels.profiles import DEFAULT_PROFILE
from labeler.labels.record import (
    AnyOutcome,
    AnyRecord,
    LabelFailure,
    LabelRecord,
    Outcome,
    QuestionsOutcome,
    ScoreOutcome,
)
from labeler.sentences.example import Example, Frozen
from labeler.sentences.splitting import DEFAULT_SPLITTER, SPLITTERS, key_example
from labeler.store.disk import DiskStore
from labeler.store.memory import MemoryStore
from labeler.store.protocol import LabelStore
from labeler.store.reader import FILE
from labeler.store.vectors import DiskVectors

if TYPE_CHECKING:
    from labeler.integrations.batch.client import OpenAIBatches
    from labeler.integrations.batch.request_files import FileLimits
    from labeler.integrations.batch.submit import Submission

DEFAULT_STORE = ".labeler"
"""Folder of the label store, beside the work it belongs to."""


def open_rows(
    rows: str | Path | Iterable[Example | Mapping[str, Any]],
    *,
    columns: Mapping[str, str | Sequence[str]] | None = None,
    preset: str | None = None,
) -> Rows:
    """Rows of a file (a path, ``-`` for standard input), or rows from Python.

    Args:
        rows: a file or folder, see :mod:`labeler.data.formats`; or examples or mappings, a data
            frame of
            polars or pandas, a table of Arrow, a data set of the Hugging Face library.
        columns: for each field the column that it is read from, where that is not called like it;
            see :mod:`labeler.data.columns`.
        preset: whose columns the rows have, such as ``ragas``.

    Raises:
        UsageError: there is no such preset or field, or what is needed to read them is not there.
    """
    chosen = choose_columns(columns, preset)
    if isinstance(rows, str | Path):
        return RowFile(rows, columns=chosen)
    table, given = table_of(rows), cast("object", rows)
    if table:
        return RowSequence(table, chosen)
    if isinstance(given, Mapping | Example) or not isinstance(given, Iterable):
        raise UsageError(
            "rows are a file, a data frame, or a list of examples or mappings, "
            f"not {type(given).__name__}; put one row in a list"
        )
    return RowSequence(list(given), chosen)


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
            f"judge {judge!r} needs settings: {error}; make one and pass it"
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
    max_input_tokens: int | None = None,
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
        max_input_tokens: tokens that a prompt may have; by default what the judge's model takes,
            where a table knows that. A longer record is judged in windows over its documents, whose
            labels are merged; see :mod:`labeler.labeling.windows`.
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
    how = label_tasks(
        open_judge(judge),
        splitter=splitter,
        profile=profile,
        prompt=prompt,
        trial=trial,
        max_input_tokens=max_input_tokens,
    )
    opened_here = isinstance(store, str | Path)
    kept = _open_store(store, watcher) if isinstance(store, str | Path) else store
    run = label_rows(
        opened,
        how,
        kept,
        concurrency=concurrency,
        limits=limits,
        retry_failed=retry_failed,
        canaries=canaries,
        in_batch=PendingKeys(kept.directory) if isinstance(kept, DiskStore) else lambda _: None,
        watcher=watcher,
        after=kept.close if opened_here else lambda: None,
    )
    yield from cast("Generator[Outcome, None, None]", run)  # what a recipe of labels makes
    if opened_here:
        _index(store, watcher)


def iter_majority(
    rows: str | Path | Iterable[Example | Mapping[str, Any]] | Rows,
    *,
    judges: Sequence[str | Judge],
    repeat: int = 1,
    votes: Votes | None = None,
    store: LabelStore | str | Path = DEFAULT_STORE,
    splitter: str = DEFAULT_SPLITTER,
    profile: str = DEFAULT_PROFILE,
    prompt: str | None = None,
    trial: int = 0,
    max_input_tokens: int | None = None,
    concurrency: int = DEFAULT_CONCURRENCY,
    limits: Limits | None = None,
    retry_failed: bool = False,
    watcher: Watcher | None = None,
) -> Generator[Outcome, None, None]:
    """Have every row judged several times, and yield the label that most judgements agree with.

    Each judgement is stored by itself, as :func:`iter_labels` would store it; the majority is
    worked out from them and has the profile ``trace``. See
    :func:`labeler.labeling.voting.majority`.

    Args:
        rows: as for :func:`iter_labels`, like what is not named here.
        judges: who votes.
        repeat: how often each of them does, in trials of their own.
        votes: told of every vote; its agreement is :attr:`Votes.agreement`.
        store: where the votes are kept.
        splitter: the same.
        profile: what the voters are asked for.
        prompt: the same.
        trial: the first trial of each voter.
        max_input_tokens: the same, for each voter.
        concurrency: the same.
        limits: the same, for all voters together.
        retry_failed: the same.
        watcher: told of the majority's outcomes, and of what all votes cost.

    Raises:
        UsageError: there is no judge, or ``repeat`` is below 1; else as :func:`iter_labels`.
    """
    if repeat < 1:
        raise UsageError(f"repeat must be 1 or more, got {repeat}")
    opened = rows if isinstance(rows, RowFile | RowSequence) else open_rows(rows)
    asked = [open_judge(judge) for judge in judges]
    voters = [
        label_tasks(
            judge,
            splitter=splitter,
            profile=profile,
            prompt=prompt,
            trial=trial + extra,
            max_input_tokens=max_input_tokens,
        )
        for judge in asked
        for extra in range(repeat)
    ]
    opened_here = isinstance(store, str | Path)
    kept = _open_store(store, watcher) if isinstance(store, str | Path) else store
    yield from vote_rows(
        opened,
        voters,
        kept,
        votes or Votes(),
        concurrency=concurrency,
        limits=limits,
        retry_failed=retry_failed,
        in_batch=PendingKeys(kept.directory) if isinstance(kept, DiskStore) else lambda _: None,
        watcher=watcher,
        after=kept.close if opened_here else lambda: None,
    )
    if opened_here:
        _index(store, watcher)


def iter_scores(
    rows: str | Path | Iterable[Example | Mapping[str, Any]] | Rows,
    *,
    criteria: str | Path | Criterion | Iterable[str | Path | Criterion],
    judge: str | Judge | Sequence[str | Judge],
    store: LabelStore | str | Path = DEFAULT_STORE,
    splitter: str = DEFAULT_SPLITTER,
    samples: int = 1,
    repeat: int = 1,
    logprobs: bool = False,
    concurrency: int = DEFAULT_CONCURRENCY,
    limits: Limits | None = None,
    retry_failed: bool = False,
    watcher: Watcher | None = None,
) -> Generator[ScoreOutcome, None, None]:
    """Score rows by criteria, in input order; each row's criteria one after the other.

    A score that is stored costs nothing, whatever its row is called and however what the criterion
    does not show has changed. Evaluation steps that a criterion lacks are written by the judge
    once, and stored too.

    Args:
        rows: as for :func:`iter_labels`.
        criteria: names such as ``rubric_faithfulness``, TOML files, or criteria; several names
            may stand in one text, parted by commas. See :mod:`labeler.data.criteria_files`.
        judge: a hosted model, such as ``OpenAIJudge(model=…)``, or several: each scores all rows,
            one after the other. :func:`compare_raters` says how far they agree.
        store: as for :func:`iter_labels`.
        splitter: the same.
        samples: how many trials make one score, which is their mean; each is an outcome of its
            own.
        repeat: how many such scores each row gets of each judge, to see how far they spread.
        logprobs: ask for the probabilities of the answer's tokens: where the server gives them, a
            score is the mean weighted by them, else the answer alone. The record says which.
        concurrency: as for :func:`iter_labels`.
        limits: the same; a budget is one for all judges together.
        retry_failed: the same.
        watcher: the same.

    Raises:
        UsageError: a criterion is not as it must be, no judge or one judge twice is given, the
            rows cannot be read, two share an id and differ, or the judge gives labels alone.
        FatalJudgeError: no row can be scored, or a criterion gets no steps.
        RunPaused: the server asks to wait longer than the limits allow.
        StoreError: the store cannot be read or written.
    """
    for name, count in (("samples", samples), ("repeat", repeat)):
        if count < 1:
            raise UsageError(f"{name} must be 1 or more, got {count}")
    chosen = choose_criteria(criteria)
    opened = rows if isinstance(rows, RowFile | RowSequence) else open_rows(rows)
    several = judge if isinstance(judge, Sequence) and not isinstance(judge, str) else [judge]
    asked = [open_judge(one) for one in several]
    cutter = SPLITTERS[splitter]
    plans = [Plan(one, cutter, chosen, samples, repeat, logprobs) for one in asked]
    opened_here = isinstance(store, str | Path)
    kept = _open_store(store, watcher) if isinstance(store, str | Path) else store
    yield from score_rows(
        opened,
        plans,
        kept,
        concurrency=concurrency,
        limits=limits,
        retry_failed=retry_failed,
        watcher=watcher,
        after=kept.close if opened_here else lambda: None,
    )


def score(
    rows: str | Path | Iterable[Example | Mapping[str, Any]],
    *,
    criteria: str | Path | Criterion | Iterable[str | Path | Criterion],
    judge: str | Judge | Sequence[str | Judge],
    store: LabelStore | str | Path = DEFAULT_STORE,
    splitter: str = DEFAULT_SPLITTER,
    samples: int = 1,
    repeat: int = 1,
    logprobs: bool = False,
    concurrency: int = DEFAULT_CONCURRENCY,
    limits: Limits | None = None,
    retry_failed: bool = False,
) -> list[ScoreOutcome]:
    """Score rows and return an outcome for each, criterion and trial; see :func:`iter_scores`."""
    return list(
        iter_scores(
            rows,
            criteria=criteria,
            judge=judge,
            store=store,
            splitter=splitter,
            samples=samples,
            repeat=repeat,
            logprobs=logprobs,
            concurrency=concurrency,
            limits=limits,
            retry_failed=retry_failed,
        )
    )


def open_embedder(embedder: str | Embedder) -> Embedder:
    """An embedder that needs no settings, by name, or the embedder itself.

    Raises:
        UnknownName: there is no embedder of that name.
        UsageError: the embedder needs settings, or a package that is not installed.
    """
    if not isinstance(embedder, str):
        return embedder
    made: Embedder
    try:
        made = EMBEDDERS[embedder]()
    except TypeError as error:
        raise UsageError(
            f"embedder {embedder!r} needs settings: {error}; make one and pass it"
        ) from error
    return made


def iter_similarity(
    rows: str | Path | Iterable[Example | Mapping[str, Any]] | Rows,
    *,
    judge: Judge,
    embedder: str | Embedder,
    store: str | Path = DEFAULT_STORE,
    splitter: str = DEFAULT_SPLITTER,
    trial: int = 0,
    concurrency: int = DEFAULT_CONCURRENCY,
    limits: Limits | None = None,
    retry_failed: bool = False,
    watcher: Watcher | None = None,
    work: EmbeddingWork | None = None,
) -> Generator[QuestionsOutcome, None, None]:
    """Compare rows' questions with those that their responses would reply to, in input order.

    The judge writes three questions for each response, without seeing the one that was asked; the
    embedder says how like it they are. :func:`metrics` computes numbers from what comes out. What
    is stored costs nothing: neither questions nor vectors are paid for twice.

    Args:
        rows: as for :func:`iter_labels`; documents are not looked at.
        judge: a hosted model, such as ``OpenAIJudge(model=…)``.
        embedder: ``"wordllama"`` (of the extra ``embeddings``), ``"lexical"``, or an embedder such
            as ``OpenAIEmbedder(model=…)``.
        store: a folder; vectors are kept in a folder inside it.
        splitter: as for :func:`iter_labels`.
        trial: the same.
        concurrency: the same, for the judge.
        limits: the same; a budget is one for judge and embedder together.
        retry_failed: as for :func:`iter_labels`.
        watcher: told how the writing of questions goes.
        work: filled with what embedding took.

    Raises:
        UsageError: the rows cannot be read, or two share an id and differ; nothing was sent.
        FatalJudgeError: no question can be written, or no text embedded.
        RunPaused: a server asks to wait longer than the limits allow.
        StoreError: the store cannot be read or written.
    """
    opened = rows if isinstance(rows, RowFile | RowSequence) else open_rows(rows)
    how = QuestionsTasks(judge, SPLITTERS[splitter], trial)
    asked, notice = open_embedder(embedder), watcher.notice if watcher else None
    with _open_store(store, watcher) as kept, DiskVectors(store, notice=notice) as vectors:
        yield from compare_rows(
            opened,
            how,
            kept,
            Shelf(asked, vectors, work or EmbeddingWork()),
            concurrency=concurrency,
            limits=limits,
            retry_failed=retry_failed,
            watcher=watcher,
        )


def _index(store: object, watcher: Watcher | None) -> None:
    """Bring the index of a store's folder up to date, when its run is over."""
    if is_worthwhile(str(store)):
        from labeler.calculators.index.store_index import try_update_index  # noqa: PLC0415 - loads pyarrow

        try_update_index(Path(str(store)), watcher.notice if watcher else lambda _: None)


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
    max_input_tokens: int | None = None,
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
            max_input_tokens=max_input_tokens,
            concurrency=concurrency,
            limits=limits,
            retry_failed=retry_failed,
        )
    )


def submit_batch(
    rows: str | Path | Iterable[Example | Mapping[str, Any]] | Rows,
    *,
    judge: Judge,
    batches: OpenAIBatches,
    store: str | Path = DEFAULT_STORE,
    splitter: str = DEFAULT_SPLITTER,
    profile: str = DEFAULT_PROFILE,
    prompt: str | None = None,
    trial: int = 0,
    max_input_tokens: int | None = None,
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
        max_input_tokens: the same; labeling the rows afterwards merges what came for windows.
        retry_failed: ask again for what failed for good before.
        limits: how large one file of a batch may be.

    Raises:
        UsageError: the rows cannot be read, or judge and service do not fit; nothing was sent.
        JudgeError: the provider does not take it, or cannot be reached; run it again to go on.
        StoreError: the store cannot be read or written.
    """
    from labeler.integrations.batch.submit import submit_batch as submit  # noqa: PLC0415 - heavy

    opened = rows if isinstance(rows, RowFile | RowSequence) else open_rows(rows)
    how = label_tasks(
        judge,
        splitter=splitter,
        profile=profile,
        prompt=prompt,
        trial=trial,
        max_input_tokens=max_input_tokens,
    )
    return submit(opened, how, batches, store, retry_failed=retry_failed, limits=limits)


def estimate(
    rows: str | Path | Iterable[Example | Mapping[str, Any]] | Rows,
    *,
    judge: Judge | JudgeSpec,
    store: LabelStore | str | Path = DEFAULT_STORE,
    splitter: str = DEFAULT_SPLITTER,
    profile: str = DEFAULT_PROFILE,
    prompt: str | None = None,
    trial: int = 0,
    max_input_tokens: int | None = None,
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
        max_input_tokens: the same.
        concurrency: requests in flight at most.
        price: what the model's tokens cost; see :func:`find_price`.
        max_output_tokens: the cap on an answer; without one there is no worst case.
        latency: seconds for one answer; by default the mean of stored labels, if there are any.
        retry_failed: whether stored failures would be asked again.
    """
    opened = rows if isinstance(rows, RowFile | RowSequence) else open_rows(rows)
    asked = Unasked(judge) if isinstance(judge, JudgeSpec) else judge
    how = label_tasks(
        asked,
        splitter=splitter,
        profile=profile,
        prompt=prompt,
        trial=trial,
        max_input_tokens=max_input_tokens,
        price=price,
    )
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


def write_labels(outcomes: Iterable[AnyOutcome], path: str | Path) -> int:
    """Write outcomes as JSON Lines; the file appears when it is whole. Returns their number."""
    return sum(1 for _ in write_outcomes(outcomes, path))


def messages(
    rows: str | Path | Rows,
    *,
    id: str | None = None,  # noqa: A002 - the row's field
    prompt: str | None = None,
    splitter: str = DEFAULT_SPLITTER,
) -> tuple[Message, ...]:
    """The chat messages that a judge would be sent for a row of a file, the first by default.

    Raises:
        UsageError: there is no such row, or it is no example.
    """
    for row in RowFile(rows) if isinstance(rows, str | Path) else rows:
        if id is None or row.content.id == id:
            if isinstance(row.content, LabelFailure):
                raise UsageError(row.content.message)
            keyed = key_example(row.content, SPLITTERS[splitter])
            return load_prompt(prompt or DEFAULT_PROMPT).render(keyed)
    shown = f"{rows} has" if isinstance(rows, str | Path) else "there is"
    raise UsageError(f"{shown} no row {id!r}")


class Imported(NamedTuple):
    """What became of records that were put into a store."""

    new: int
    present: int
    """Judgements that the store held already, or that came twice, with the same label."""
    differing: tuple[str, ...]
    """Ids of records whose judgement the store holds with another label; it keeps its own."""


def import_labels(outcomes: Iterable[AnyOutcome], store: str | Path = DEFAULT_STORE) -> Imported:
    """Put records of any kind into a store; a key that it holds already keeps its first record.

    A store holds judgements, not rows: records of different rows that ask the same of the same
    sentences are one. Failures are left out.
    """
    known: dict[str, Frozen] = {}
    saved, present, differing = [], 0, []
    with DiskStore(store) as labels:
        for record in (o for o in outcomes if not isinstance(o, LabelFailure)):
            if record.key not in known:
                stored = labels.get(record.key)
                known[record.key] = _answer(stored or record)
                if stored is None:
                    saved.append(labels.put(record))
                    continue
            if known[record.key] == _answer(record):
                present += 1
            else:
                differing.append(record.id)
        for future in saved:
            future.result()
    return Imported(len(saved), present, tuple(differing))


def _answer(record: AnyRecord) -> Frozen:
    return record.label if isinstance(record, LabelRecord) else record.answer


class Gauged(NamedTuple):
    """Gates, and the rows that are held against them."""

    gates: list[Gate]
    rows: Iterator[MetricsRow]
    """Measured with the metrics of the gates, one by one."""


def gauge(outcomes: Iterable[AnyOutcome], demands: Sequence[Demand], *, column: str = "") -> Gauged:
    """Make gates of demands, and measure outcomes of every kind for them.

    Args:
        outcomes: labels, scores, written questions and failures.
        demands: on metrics of labels and of written questions, and on criteria: those that ship,
            and those that there are scores for.
        column: as for :func:`measured`.

    Raises:
        UnknownName: a metric is none of these.
        UsageError: an id names several metrics, or a threshold is no finite number.
    """
    scores: list[ScoreOutcome] = []
    others = split_scores(outcomes, scores)
    # Labels pass by one at a time, unless a name can only be that of a criterion further on.
    first: list[AnyOutcome] = list(islice(others, 1))
    try:
        gates = [demand.gate(_criteria(scores)) for demand in demands]
    except UnknownName:
        first += others
        gates = [demand.gate(_criteria(scores)) for demand in demands]
    asked = tuple(dict.fromkeys(gate.metric for gate in gates))
    of_scores = {metric.id for metric in asked if is_score_metric(metric)}
    written = tuple(metric for metric in asked if metric in QUESTION_METRICS)
    of_labels = tuple(m for m in asked if m not in written and m.id not in of_scores)
    rows = measure_outcomes(chain(first, others), of_labels, questions=written, column=column)
    return Gauged(gates, chain(rows, _measured_scores(scores, of_scores)))


def _criteria(scores: Iterable[ScoreOutcome]) -> list[str]:
    """Names of the criteria that scores, or failures to score, are there for."""
    signed = (outcome.signature for outcome in scores if outcome.signature)
    return list(dict.fromkeys(name for one in signed if (name := criterion_name(one))))


def _measured_scores(scores: Sequence[ScoreOutcome], ids: set[str]) -> Iterator[MetricsRow]:
    """The rows of scores, with the metrics of these ids alone."""
    for row in chain(*measure_scores(scores).values()) if ids else ():
        chosen = {name: value for name, value in row.metrics.items() if name in ids}
        if chosen:
            yield replace(row, metrics=chosen)


def metrics(
    outcomes: str | Path | Iterable[AnyOutcome], ids: str | Iterable[str] | None = None
) -> list[MetricsRow]:
    """Compute metrics of stored labels: no judge, no network, no key.

    Args:
        outcomes: labels, written questions and failures, or the file or store that has them.
        ids: metric ids such as ``relevance`` or ``relevance:ragbench``, or ``all``; where left
            out, each metric once, in its default dialect, that labels of the row's profile have
            the fields for.

    Returns:
        One row an outcome; each metric is a :class:`~labeler.calculators.Ratio`.
    """
    chosen = None if ids is None else select_metrics(label_metric_ids(ids))
    return list(measure_outcomes(as_outcomes(outcomes), chosen, questions=question_metrics(ids)))


def summary(
    outcomes: str | Path | Iterable[AnyOutcome],
    ids: str | Iterable[str] | None = None,
    *,
    by: str | None = None,
    intervals: Intervals | None = None,
) -> list[SummaryRow]:
    """Summarise metrics over outcomes, or over each value of a metadata column.

    Labels that were made in different ways are never averaged: see
    :func:`labeler.calculators.summarize`. A store holds judgements, not rows: summarise the label
    file of a run for numbers over its rows.

    Args:
        outcomes: labels, written questions and failures, or the file or store that has them.
        ids: as for :func:`metrics`.
        by: name of a metadata column.
        intervals: ``Intervals()`` gives each mean a confidence interval;
            ``Intervals(group="question")`` where several records share a question.
    """
    chosen, questions = select_metrics(label_metric_ids(ids)), question_metrics(ids)
    column = (intervals.group if intervals else None) or ""
    asked = None if ids is None else chosen
    rows = measure_outcomes(as_outcomes(outcomes), asked, questions=questions, column=column)
    return summarize(rows, (*chosen, *questions), by, intervals=intervals)


__all__ = [
    "DEFAULT_STORE",
    "Canaries",
    "Estimate",
    "Intervals",
    "Limits",
    "MemoryStore",
    "Price",
    "compare_raters",
    "estimate",
    "find_price",
    "gauge",
    "import_labels",
    "iter_labels",
    "iter_majority",
    "iter_scores",
    "iter_similarity",
    "label",
    "length_effects",
    "measure_outcomes",
    "metrics",
    "open_embedder",
    "open_judge",
    "open_rows",
    "read_labels",
    "read_ragbench",
    "read_records",
    "read_scores",
    "score",
    "stored_outcomes",
    "submit_batch",
    "summarize_scores",
    "summary",
    "write_labels",
]
