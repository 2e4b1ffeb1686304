"""Functions of the Python API: they open rows, judges and stores, and call the packages."""

from __future__ import annotations

import logging
import sys
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from labeler.calculators.outcomes import (
    checked_outcomes,
    measure_outcomes,
    metrics,
    read_labels,
    read_records,
    read_scores,
    stored_outcomes,
    summary,
)
from labeler.data.label_files import write_outcomes
from labeler.data.options import RowsOptions, keywords
from labeler.errors import UsageError
from labeler.extensions import load, offered
from labeler.judges.opening import hosted_spec, open_judge, open_judges, price_of_run
from labeler.labeling.options import (
    EstimateOptions,
    LabelFileOptions,
    LabelOptions,
    RunOptions,
    ScoreOptions,
    SimilarityOptions,
    StoreOptions,
)
from labeler.labels.record import AnyOutcome, Outcome
from labeler.sentences.display import is_notebook
from labeler.store.memory import MemoryStore

if TYPE_CHECKING:
    from labeler.data.options import RowSource
    from labeler.data.rows import Rows
    from labeler.integrations.embeddings.records import QuestionsOutcome
    from labeler.judges.judge import Judge
    from labeler.labeling.estimate import Estimate
    from labeler.labeling.progress import OnEvent, RunEvents
    from labeler.labeling.run import Run
    from labeler.labels.scores import ScoreOutcome
    from labeler.labels_object import Labels
    from labeler.store.memory import LabelStore

_LOG = logging.getLogger("labeler")


@keywords(RowsOptions)
def open_rows(rows: RowSource, options: RowsOptions) -> Rows:
    """Open rows for reading, any number of times.

    Args:
        rows: a file or folder (``-`` is standard input) or several, see
            :mod:`labeler.data.formats`; or examples or mappings, a data frame of polars or pandas,
            an Arrow table, or a data set of the Hugging Face library.
        options: see :class:`RowsOptions`.

    Returns:
        The rows as :class:`Example`; a row that cannot be read is a failure in its place.

    Raises:
        UsageError: there is no such preset or field, or a package to read the rows is missing.

    Example:
        >>> rows = labeler.open_rows("examples/rows.jsonl")
        >>> len(list(rows))
        14
    """
    return options.open(rows)


@keywords(LabelOptions)
def iter_labels(rows: RowSource, options: LabelOptions) -> Generator[Outcome, None, None]:
    """Label rows, one outcome each, in input order.

    A row whose label is stored costs nothing. Every label is durable in the store before it is
    yielded, so an interrupted run continues where it stopped.

    With several ``judges`` or a ``repeat`` above 1, every row is judged several times, and the
    label is the one that most judgments agree on. Each judgment is stored by itself. The majority
    is computed from them and has the profile ``trace``; see
    :func:`labeler.labeling.vote.majority`.

    Args:
        rows: as for :func:`open_rows`.
        options: ``judge`` is ``"embedded"``, ``"openai"`` with a ``model``, or a judge such as
            ``OpenAIJudge(model=…)``; ``store`` is a folder or a store (``MemoryStore()`` keeps
            nothing).

    Yields:
        A label record or a failure for each row.

    Raises:
        UsageError: the rows cannot be read; nothing was sent.
        FatalJudgeError: no record can be labeled, for example with a wrong key.
        RunPaused: the server asks to wait longer than the options allow.
        StoreError: the store cannot be read or written.

    Example:
        >>> for outcome in labeler.iter_labels("examples/rows.jsonl", judge="embedded"):
        ...     first = outcome.id
        ...     break
        >>> first
        'tide-gate-height'
    """
    yield from _labels(rows, options, _judges(options))


@keywords(LabelFileOptions)
def label(rows: RowSource, options: LabelFileOptions) -> Labels:
    """Label rows and return a record or a failure for each; see :func:`iter_labels`.

    Args:
        rows: as for :func:`open_rows`.
        options: those of :func:`iter_labels`. With ``output``, a label file, the labels are written
            there, and read when they are needed; the file appears when complete.

    Returns:
        The labels, which a notebook shows as a table.

    Raises:
        BadRows: every row lacks the same field; nothing was sent or written.
        UsageError: the file cannot be written; else as for :func:`iter_labels`.

    Example:
        >>> import labeler
        >>> labels = labeler.label("examples/rows.jsonl", judge="embedded", store="store")
        >>> labels.summary()["adherence"].defined
        14
    """
    from labeler.labels.metering import RunCost
    from labeler.labels_object import Labels

    events, judges = _events(options), _judges(options)
    path, counts = options.output, events.counts
    run = _labels(rows, options, judges, events)
    outcomes = list(run) if path is None else deque(write_outcomes(run, path), maxlen=0)
    price, spent = price_of_run(judges), counts.spent
    dollars = float(spent.spent) if price and spent and not counts.unmetered else None
    source = price.source if price else ""
    cost = RunCost(counts.requests, counts.usage, dollars, source, counts.unmetered)
    if path is None:
        return Labels(outcomes, cost=cost)
    from labeler.loading import open_labels

    return open_labels(path, cost)


def _labels(
    rows: RowSource,
    options: LabelOptions,
    judges: Sequence[Judge],
    events: RunEvents | None = None,
) -> Generator[Outcome, None, None]:
    """Label rows; see :func:`iter_labels`."""
    from labeler.labeling.pipeline import run_tasks
    from labeler.labeling.tasks import label_tasks

    if options.repeat < 1:
        raise UsageError(f"repeat must be 1 or more, got {options.repeat}")
    opened = options.open(rows)
    tasks = [
        label_tasks(judge, options, extra=extra)
        for judge in judges
        for extra in range(options.repeat)
    ]
    with _begin(options, events) as run:
        if options.are_voting:
            from labeler.labeling.vote import vote_rows

            yield from vote_rows(run, opened, tasks, options.votes)
        else:
            labels = run_tasks(run, opened, tasks)
            yield from cast("Generator[Outcome, None, None]", labels)  # what a task of labels makes


@keywords(ScoreOptions)
def iter_scores(rows: RowSource, options: ScoreOptions) -> Generator[ScoreOutcome, None, None]:
    """Score rows by criteria, in input order; each row's criteria one after the other.

    A stored score costs nothing, whatever its row's id and whatever changed in fields that the
    criterion does not show. Evaluation steps that a criterion lacks are written by the judge once,
    and stored too.

    Args:
        rows: as for :func:`open_rows`.
        options: ``criteria`` are names such as ``rubric_faithfulness``, TOML files, or criteria;
            several names may stand in one text, separated by commas (see
            :mod:`labeler.data.criteria_files`). Each of several ``judges`` scores all rows, one
            after the other; :func:`labeler.calculators.score_agreement.compare_raters` measures
            their agreement. Each of ``samples`` is an outcome of its own.

    Yields:
        A score record or a failure for each row, criterion and trial.

    Raises:
        UsageError: a criterion is malformed, a judge is given twice or gives labels only, or the
            rows cannot be read.
        FatalJudgeError: no row can be scored, or a criterion gets no steps.
        RunPaused: the server asks to wait longer than the options allow.
        StoreError: the store cannot be read or written.

    Example:
        >>> for outcome in labeler.api.iter_scores(  # doctest: +SKIP
        ...     "rows.jsonl", judge="openai:MODEL", criteria="rubric_faithfulness"
        ... ):
        ...     print(outcome.id, outcome.score)
    """
    from labeler.data.criteria_files import choose_criteria
    from labeler.labeling.score_runs import Plan, score_rows
    from labeler.sentences.splitting import SPLITTERS

    for name in ("samples", "repeat"):
        if (count := getattr(options, name)) < 1:
            raise UsageError(f"{name} must be 1 or more, got {count}")
    chosen = choose_criteria(options.criteria)
    opened, judges = options.open(rows), _judges(options, default="openai")
    how = SPLITTERS[options.splitter], chosen, options.samples, options.repeat, options.logprobs
    plans = [Plan(judge, *how) for judge in judges]
    with _begin(options) as run:
        yield from score_rows(run, opened, plans)


@keywords(ScoreOptions)
def score(rows: RowSource, options: ScoreOptions) -> list[ScoreOutcome]:
    """Score rows and return an outcome for each, criterion and trial; see :func:`iter_scores`.

    Args:
        rows: as for :func:`open_rows`.
        options: those of :func:`iter_scores`.

    Returns:
        Score records and failures, in input order.

    Raises:
        UsageError: as for :func:`iter_scores`.

    Example:
        >>> labeler.score(  # doctest: +SKIP
        ...     "rows.jsonl", judge="openai:MODEL", criteria="rubric_faithfulness"
        ... )
    """
    return list(iter_scores(rows, **vars(options)))


@keywords(SimilarityOptions)
def iter_similarity(
    rows: RowSource, options: SimilarityOptions
) -> Generator[QuestionsOutcome, None, None]:
    """Compare each row's question with questions generated from its response, in input order.

    The judge writes three questions for each response without seeing the real one; the embedder
    measures their similarity. :func:`metrics` computes numbers from the outcomes.
    Stored questions and comparisons cost nothing.

    Args:
        rows: as for :func:`open_rows`; documents are ignored.
        options: ``embedder`` is a name or an embedder such as ``OpenAIEmbedder(model=…)``;
            ``budget`` covers judge and embedder together.

    Raises:
        UsageError: the rows cannot be read; nothing was sent.
        FatalJudgeError: no question can be written, or no text embedded.
        RunPaused: a server asks to wait longer than the options allow.
        StoreError: the store cannot be read or written.
    """
    from labeler.integrations.embeddings.embedder import open_embedder
    from labeler.integrations.embeddings.questioning import QuestionsTasks
    from labeler.integrations.embeddings.similarity import EmbeddingWork, compare_rows
    from labeler.sentences.splitting import SPLITTERS

    opened = options.open(rows)
    [judge] = _judges(options, default="openai")
    task = QuestionsTasks(judge, SPLITTERS[options.splitter], options.trial)
    embedder, work = open_embedder(options.embedder), options.work or EmbeddingWork()
    with _begin(options) as run:
        yield from compare_rows(run, opened, task, embedder, work)


@keywords(EstimateOptions)
def estimate(rows: RowSource, options: EstimateOptions) -> Estimate:
    """Estimate the requests, cost and time of labeling; nothing is sent, no key is needed.

    Args:
        rows: as for :func:`open_rows`.
        options: those of :func:`label`; a store folder that does not exist holds no labels.

    Returns:
        Requests, tokens, dollars and time.

    Raises:
        UsageError: an option is wrong, or the rows cannot be read.

    Example:
        >>> labeler.estimate("examples/rows.jsonl", model="gpt-4.1-mini").rows.read
        14
    """
    from labeler.labeling import estimate as estimating
    from labeler.labeling.tasks import label_tasks

    opened, price = options.open(rows), options.find_price()
    given = options.judge
    judge = (
        estimating.Unasked(hosted_spec(options), auto=options.output_mode == "auto")
        if isinstance(given, str | None)
        else given
    )
    task = label_tasks(judge, options, price=price)
    with _stored_labels(options) as labels:
        return estimating.estimate(opened, task, labels, options, price=price)


def _judges(
    options: LabelOptions | ScoreOptions | SimilarityOptions,
    *,
    default: str | None = None,
) -> list[Judge]:
    """Open the judges that options name."""
    several = getattr(options, "judges", None)
    if several is not None:
        return open_judges(several, options)
    return [open_judge(replace(options, judge=options.judge or default))]


def _begin(options: RunOptions, events: RunEvents | None = None) -> Run:
    """Begin a run that closes the store at its end if it opens it here."""
    from labeler.labeling.pending import pending_labels
    from labeler.labeling.run import Run

    limits, events = options.limits(), events or _events(options)
    store, opened = options.store, None
    if isinstance(store, str | Path):
        from labeler.store.disk import DiskStore

        store = opened = DiskStore(store, notice=events.notice if events.listeners else None)
    run = Run(
        store,
        concurrency=options.concurrency,
        limits=limits,
        retry_failed=options.retry_failed,
        same_host=options.same_host,
        batch_of=pending_labels(
            getattr(store, "directory", None) if isinstance(options, LabelOptions) else None
        ),
        events=events,
    )
    if opened is not None:  # an empty store is false
        run.closing.callback(opened.close)
    return run


def _events(options: RunOptions) -> RunEvents:
    """Return the events of a run: with progress where somebody can see it."""
    from labeler.labeling.progress import Progress, RunEvents

    listeners = options.listeners()
    if options.progress and (sys.stderr.isatty() or is_notebook()):
        doing = "labeling" if isinstance(options, LabelOptions) else "scoring"
        if isinstance(options, SimilarityOptions):
            doing = "writing questions"
        listeners.insert(0, Progress(doing))
    return RunEvents([*listeners, *_declared_listeners()])


def _declared_listeners() -> Iterator[OnEvent]:
    """Yield the listeners of installed packages; one that cannot be made costs no run."""
    for name in offered("listeners"):
        try:
            listener: OnEvent | None = load("listeners", name)()
        except Exception as error:  # noqa: BLE001 - anyone may register a listener
            _LOG.warning("listener %s: %s", name, error)
        else:
            yield from [listener] if listener else ()


@contextmanager
def _stored_labels(options: StoreOptions) -> Iterator[LabelStore]:
    """Open a store for reading; a folder that does not exist is an empty store."""
    from labeler.data.label_files import is_store
    from labeler.store.disk import DiskStore

    store = options.store
    if not isinstance(store, str | Path):
        yield store
        return
    with DiskStore(store, create=False) if is_store(Path(store)) else MemoryStore() as own:
        yield own


def write_labels(outcomes: Iterable[AnyOutcome], path: str | Path) -> int:
    """Write outcomes to a label file; the file appears when complete.

    Args:
        outcomes: records and failures.
        path: the file, JSON Lines, or Parquet if the name ends in ``.parquet``.

    Returns:
        The number of outcomes.

    Raises:
        UsageError: the file cannot be written.

    Example:
        >>> labeler.api.write_labels(labels, folder / "labels.jsonl")
        14
    """
    return sum(1 for _ in write_outcomes(outcomes, path))


__all__ = [
    "MemoryStore",
    "checked_outcomes",
    "estimate",
    "iter_labels",
    "iter_scores",
    "iter_similarity",
    "label",
    "measure_outcomes",
    "metrics",
    "open_rows",
    "read_labels",
    "read_records",
    "read_scores",
    "score",
    "stored_outcomes",
    "summary",
    "write_labels",
]
