"""Functions of the Python API: they open rows, judges and stores, and call the packages."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Generator, Iterable, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from typing_extensions import TypedDict, Unpack

from labeler.calculators.measuring import metrics, summary
from labeler.calculators.outcomes import (
    checked_outcomes,
    measure_outcomes,
    read_labels,
    stored_outcomes,
)
from labeler.catalog import named_keywords
from labeler.data.label_files import write_outcomes
from labeler.data.options import RowsOptions, keywords, parameters_of
from labeler.judges.opening import hosted_spec, made_judge, price_of_run
from labeler.labeling.options import (
    EstimateOptions,
    LabelOptions,
)
from labeler.labels.record import AnyOutcome, LabelRecord, Outcome, given_outcome
from labeler.store import MemoryStore

if TYPE_CHECKING:
    from labeler.calculators.rater_agreement import Votes
    from labeler.data.options import ColumnMap, RowSource
    from labeler.data.rows import Rows
    from labeler.judges.options import CapField, JsonFile, JudgeLike, PriceLike, PromptCache
    from labeler.labeling.estimates import Estimate
    from labeler.labeling.options import Dollars, FileLike, SeveralJudges, StoreLike
    from labeler.labeling.progress import OnEvent
    from labeler.labels_object import Labels


class LabelOptionsDict(TypedDict, total=False):
    """Less used options of :func:`labeler.label`.

    Type checkers, editors and ``help()`` read no dataclass as keywords, so a script copies the
    fields of :class:`LabelOptions` to here.
    """

    # begin options
    retry_failed: bool
    """Ask again about rows whose failure is stored, such as refusals."""
    same_host: bool
    """Stop if a stored label comes from another host than the one asked."""
    requests_per_minute: float | None
    """Maximum requests per minute; by default the server's limit."""
    tokens_per_minute: float | None
    """Maximum tokens per minute, prompts and answers together."""
    longest_wait: float | None
    """Stop (exit 75) if the server asks for a wait of over 2 minutes."""
    max_outage: float
    """Seconds that a server which answered before may stay away."""
    on_event: OnEvent | Sequence[OnEvent] | None
    """Called with each event of the run; one function or several."""
    prompt: FileLike
    """Prompt version, name such as trace/v1, or file of your own."""
    relevance: str
    """with-response: in the same call; blind: once for each question and documents, in a call
    that shows no response.
    """
    trial: int
    """Trial number; a new number asks the judge again."""
    max_input_tokens: int | None
    """Maximum prompt tokens; longer rows fail unasked. By default the model's."""
    base_url: str | None
    """Address of the API, if not the provider's own."""
    allow_http: list[str] | None
    """Allow unencrypted http to this host; repeatable."""
    ca_file: str | None
    """PEM file of additional certificate authorities to trust."""
    proxy: str | None
    """Proxy: a URL, @VARIABLE that holds one, or env to read HTTPS_PROXY."""
    header: list[str] | None
    """Header of each request: NAME=@VARIABLE, read from the environment; repeatable."""
    query: list[str] | None
    """Query parameter of each request, such as api-version=1; repeatable."""
    api_key_command: str | None
    """Command that prints the API key; run again when the key expires."""
    organization: str | None
    """Organization that pays, if the key has several."""
    project: str | None
    """Project that pays, if the key has several."""
    temperature: float | None
    """Sampling temperature, 0 to 2; omitted from the request unless set."""
    top_p: float | None
    """Nucleus sampling share, above 0 to 1; omitted from the request unless set."""
    seed: int | None
    """Sampling seed; omitted from the request unless set."""
    reasoning_effort: str | None
    """Reasoning effort; omitted from the request unless set."""
    output_mode: str | None
    """How the answer's schema is sent: auto, strict, schema, tools, json or prompt."""
    extra_body: JsonFile | None
    """JSON file of additional request parameters."""
    prompt_cache: PromptCache
    """Prompt cache fields to send; off sends none."""
    max_output_tokens: int | None
    """Maximum tokens of an answer, doubled once if reached; --budget sets one."""
    cap_field: CapField
    """Request field for --max-output-tokens."""
    timeout: float | None
    """Total seconds for one attempt; by default 180."""
    recorded: str | None
    """Label file that the replay judge takes its answers from."""
    price: PriceLike | None
    """US dollars per million tokens: IN,OUT such as 0.25,2; then CACHED,CACHE_WRITE."""
    id_from: str
    """Columns that form the row id, comma-separated."""
    preset: str | None
    """Columns of another tool, such as ragas, deepeval or langchain; by default those that fit."""
    split_documents: str | None
    """Separator of the documents in one text, such as '\\n\\n' or '|'."""
    keep_thinking: bool
    """Judge thoughts in responses (<think>) too; by default they are left out."""
    splitter: str
    """Sentence splitter: general, ragbench or given."""
    judges: SeveralJudges | None
    """Judges that vote, comma-separated, such as embedded,openai:MODEL."""
    votes: Votes | None
    """Counts the votes, to measure their agreement."""
    # end options


def label_parameters(
    data: RowSource,
    *,
    judge: JudgeLike | None = LabelOptions.judge,
    model: str | None = LabelOptions.model,
    store: StoreLike = LabelOptions.store,
    output: str | Path | None = LabelOptions.output,
    profile: str = LabelOptions.profile,
    instructions: FileLike | None = LabelOptions.instructions,
    columns: ColumnMap = LabelOptions.columns,
    repeat: int = LabelOptions.repeat,
    budget: Dollars | None = LabelOptions.budget,
    concurrency: int = LabelOptions.concurrency,
    progress: bool = LabelOptions.progress,
    **options: Unpack[LabelOptionsDict],
) -> None:
    """Declare the parameters: those that most people need, and the others."""


_labeling = parameters_of(label_parameters, LabelOptions)


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


@_labeling
def iter_labels(data: RowSource, options: LabelOptions) -> Generator[Outcome, None, None]:
    """Label rows, one outcome each, in input order.

    A row whose label is stored costs nothing. Every label is durable in the store before it is
    yielded, so an interrupted run continues where it stopped.

    With several ``judges`` or a ``repeat`` above 1, every row is judged several times, and the
    label is the one that most judgments agree on. Each judgment is stored by itself. The majority
    is computed from them and has the profile ``trace``; see
    :func:`labeler.labeling.vote.majority`.

    Args:
        data: rows, as for :func:`open_rows`.
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
    from labeler.labeling.starting import judges_of, label_rows, warn_of_loop

    warn_of_loop("iter_labels", "async for outcome in labeler.aiter_labels(…)")
    yield from label_rows(data, options, judges_of(options))


@_labeling
async def aiter_labels(data: RowSource, options: LabelOptions) -> AsyncGenerator[Outcome, None]:
    """Label rows as :func:`iter_labels` does, without blocking the running event loop.

    A task that is cancelled lets requests in flight finish and stores their answers.

    Args:
        data: rows, as for :func:`open_rows`.
        options: as for :func:`iter_labels`.

    Yields:
        A label record or a failure for each row.

    Raises:
        UsageError: as for :func:`iter_labels`, like the other errors.

    Example:
        >>> import asyncio
        >>> async def ids():
        ...     run = labeler.aiter_labels("examples/rows.jsonl", judge="embedded")
        ...     return [outcome.id async for outcome in run]
        >>> asyncio.run(ids())[0]
        'tide-gate-height'
    """
    from labeler.labeling.starting import in_thread, judges_of, label_rows

    async with aclosing(in_thread(label_rows(data, options, judges_of(options)))) as run:
        async for outcome in run:
            yield outcome


@_labeling
def label(data: RowSource, options: LabelOptions) -> Labels:
    """Label rows and return a record or a failure for each; see :func:`iter_labels`.

    Args:
        data: rows, as for :func:`open_rows`.
        options: as for :func:`iter_labels`. With ``output``, a label file, the labels are written
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
    from labeler.labeling.starting import warn_of_loop

    warn_of_loop("label", "await labeler.alabel(…)")
    labels: Labels = deque(_labeled(data, options), maxlen=1).pop()
    return labels


@_labeling
async def alabel(data: RowSource, options: LabelOptions) -> Labels:
    """Label rows as :func:`label` does, without blocking the running event loop.

    A task that is cancelled lets requests in flight finish and stores their answers.

    Args:
        data: rows, as for :func:`open_rows`.
        options: as for :func:`iter_labels`.

    Returns:
        The labels, as from :func:`label`.

    Raises:
        UsageError: as for :func:`label`, like the other errors.

    Example:
        >>> import asyncio
        >>> run = labeler.alabel("examples/rows.jsonl", judge="embedded")
        >>> len(asyncio.run(run))
        14
    """
    from labeler.labeling.starting import in_thread

    last: Any = None
    async with aclosing(in_thread(_labeled(data, options))) as run:
        async for found in run:
            last = found
    return cast("Labels", last)


def _labeled(data: RowSource, options: LabelOptions) -> Generator[Any, None, None]:
    """Yield an outcome for each row, then all of them as labels."""
    from labeler.calculators.frame import Given
    from labeler.data.formats.objects import own_ids
    from labeler.labeling.starting import judges_of, label_rows, run_events
    from labeler.labels.answering import RunCost
    from labeler.labels_object import Labels, open_labels

    events, judges = run_events(options), judges_of(options)
    path, counts = options.output, events.counts
    outcomes, names = list[Outcome](), list[str | None]()
    for outcome in label_rows(data, options, judges, events):
        names.append(outcome.id if isinstance(outcome, LabelRecord) else None)
        if path is None:
            outcomes.append(outcome)
        yield outcome
    price, spent = price_of_run(judges), counts.spent
    dollars = float(spent.spent) if price and spent and not counts.unmetered else None
    source = price.source if price else ""
    cost = RunCost(counts.requests, counts.usage, dollars, source, counts.unmetered)
    index = getattr(data, "index", None)  # of a list it is a method
    given = Given(own_ids(data, names), None if callable(index) else index)
    if path is None:
        yield Labels(outcomes, cost=cost, given=given)
        return
    yield open_labels(path, cost, given)


@keywords(EstimateOptions)
def estimate(rows: RowSource, options: EstimateOptions) -> Estimate:
    """Estimate the requests, cost and time of labeling; nothing is sent, no key is needed.

    Args:
        rows: as for :func:`open_rows`.
        options: as for :func:`label`; a store folder that does not exist holds no labels.

    Returns:
        Requests, tokens, dollars and time.

    Raises:
        UsageError: an option is wrong, or the rows cannot be read.

    Example:
        >>> labeler.estimate("examples/rows.jsonl", model="gpt-4.1-mini").rows.read
        14
    """
    from labeler.labeling import estimate as estimating
    from labeler.labeling.starting import stored_labels
    from labeler.labeling.tasks import label_tasks

    opened, price = options.open(rows), options.find_price()
    given = options.judge
    judge = (
        estimating.Unasked(hosted_spec(options), auto=options.output_mode == "auto")
        if isinstance(given, str | None)
        else made_judge(given)
    )
    task = label_tasks(judge, options, price=price)
    with stored_labels(options) as labels:
        return estimating.estimate(opened, task, labels, options, price=price)


@named_keywords
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
    given = (given_outcome(f"outcome {n}", one) for n, one in enumerate(outcomes, start=1))
    return sum(1 for _ in write_outcomes(given, path))


__all__ = [
    "MemoryStore",
    "aiter_labels",
    "alabel",
    "checked_outcomes",
    "estimate",
    "iter_labels",
    "label",
    "measure_outcomes",
    "metrics",
    "open_rows",
    "read_labels",
    "stored_outcomes",
    "summary",
    "write_labels",
]
