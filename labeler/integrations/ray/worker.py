"""Workers: each labels parts exactly as one machine labels rows."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import Field

from labeler.data.columns import Columns
from labeler.data.formats.arrow_files import BATCH, arrow_errors, raw_rows
from labeler.data.formats.parquet_files import READ_LIMITS
from labeler.data.label_tables import GROUP, SCHEMA, row_of
from labeler.data.lines import open_bytes
from labeler.data.row_stream import RowStream
from labeler.data.rows import RowPart
from labeler.errors import (
    FatalJudgeError,
    LabelerError,
    UsageError,
    ending_of,
    error_of,
)
from labeler.integrations.batch.folder import PendingKeys
from labeler.integrations.opentelemetry import judge_call
from labeler.integrations.ray.filesystem import open_folder, put_table
from labeler.integrations.ray.parts import InputPart, absolute_name, read_part
from labeler.integrations.ray.quotas import LOST, LOST_AFTER, Quotas, WorkerQuotas
from labeler.integrations.ray.shards import ShardStore
from labeler.judges.judge import Judge
from labeler.judges.traffic.limits import Budget, Limits
from labeler.labeling.blind import BlindRelevance
from labeler.labeling.cache import Origin
from labeler.labeling.label_tasks import label_tasks
from labeler.labeling.modes import choose_mode, first_tasks
from labeler.labeling.options import LabelOptions
from labeler.labeling.pipeline import run_tasks
from labeler.labeling.run import Run
from labeler.labeling.tasks import LabelTasks
from labeler.labels.metering import unmetered_requests
from labeler.labels.record import AnyOutcome, LabelFailure, Usage
from labeler.sentences.example import Frozen
from labeler.store.disk import DiskStore
from labeler.store.protocol import LabelStore

WHOLE, FAILED, OPEN = ".parquet", ".failed.parquet", ".open.parquet"
"""Suffixes of partitions: without failures, with lasting failures, and with failures that the next
run asks again."""

_SHOWN_FAILURES = 3
_READERS = 8
"""Partitions that are read at once: the latency of remote files dominates."""
BEFORE = "before"
"""The origin of labels in partitions of earlier runs."""


@dataclass(frozen=True)
class Work:
    """The labeling configuration of all workers; it can be sent to another machine.

    Attributes:
        judge: makes the judge; called once on each worker, where it finds its secrets.
        output: folder or address of the partitions.
        options: of the run, without its judge; the concurrency is of each worker.
        store: folder of the label store, with the same path for every worker.
        limits: of all workers together.
        columns: the columns that fields are read from.
    """

    judge: Callable[[], Judge]
    output: str
    options: LabelOptions
    store: Path = field(init=False)
    limits: Limits = field(init=False)
    columns: Columns | None = field(init=False)

    def __post_init__(self) -> None:
        for name, value in (
            ("output", absolute_name(self.output)),
            ("store", Path(absolute_name(str(self.options.store)))),
            ("limits", self.options.limits()),
            ("columns", self.options.chosen_columns()),
        ):
            object.__setattr__(self, name, value)


class PartReport(Frozen, frozen=False):
    """The outcome of labeling a part, in numbers and texts only."""

    part: str = ""
    """Its name."""
    rows: int = 0
    """Outcomes in its partition."""
    origins: Counter[str] = Field(default_factory=Counter)
    """Labels by origin."""
    reasons: Counter[str] = Field(default_factory=Counter)
    """Failures by reason."""
    failures: tuple[str, ...] = ()
    """Messages of the first few."""
    requests: int = 0
    """Requests sent to the judge."""
    reasks: int = 0
    """Those among them that asked for a corrected answer."""
    usage: Usage = Usage()
    """Tokens of new answers."""
    unmetered: int = 0
    """Requests whose tokens the server did not report."""
    known: Decimal = Decimal(0)
    """Dollars that answers cost."""
    doubtful: Decimal = Decimal(0)
    """Dollars that requests without an answer may have cost."""
    ending: str = ""
    """Empty if its partition was written; ``budget`` if it was left because the budget is used up;
    ``lost`` if worker after worker died of it; ``dead`` for the spending of workers that died; else
    the kind of error that ends the run."""
    message: str = ""
    """Of that error."""

    def raise_ending(self) -> None:
        """Raise the error that ended the run, if any.

        Raises:
            LabelerError: of the worker's kind, with the worker's message.
        """
        if self.ending == LOST:
            raise FatalJudgeError(
                f"{LOST_AFTER} workers were lost while they labeled {self.part}: look for what "
                "ends them, such as a row too large for their memory; what was labeled is stored",
                reason=LOST,
            )
        if self.message:
            raise error_of(self.ending, self.message)


@dataclass
class _ReportListener:
    """Fills in the report of a run."""

    report: PartReport
    retried: bool = False
    """True if there are failures that another run may resolve."""
    lasting: bool = False

    def on_start(self, rows: int | None) -> None:
        """Ignore the start."""

    def on_notice(self, text: str) -> None:
        """Ignore notices: a worker has no console."""

    def on_result(self, outcome: AnyOutcome, origin: Origin) -> None:
        """Count an outcome."""
        self.report.rows += 1
        if not isinstance(outcome, LabelFailure):
            self.report.origins[origin] += 1
            return
        self.report.reasons[outcome.reason] += 1
        self.report.failures = (*self.report.failures, outcome.message)[:_SHOWN_FAILURES]
        self.lasting |= outcome.lasting
        self.retried |= origin != "row" and not outcome.lasting

    def on_judged(self, outcome: AnyOutcome) -> None:
        """Count the requests and tokens of an outcome."""
        spent: Any = outcome if isinstance(outcome, LabelFailure) else outcome.reply
        self.report.requests += spent.attempts
        self.report.reasks += spent.reasks
        self.report.usage += spent.usage or Usage()
        self.report.unmetered += unmetered_requests(outcome)

    def on_finish(self, spent: Budget) -> None:
        """Record the cost."""
        self.report.known += spent.known
        self.report.doubtful += spent.doubtful


def label_batch(
    table: Any,  # noqa: ANN401 - pyarrow has no types
    part: InputPart,
    *,
    work: Work,
    tasks: LabelTasks,
    store: LabelStore,
    limits: Limits,
    listener: _ReportListener,
) -> Any:  # noqa: ANN401 - pyarrow has no types
    """Label a table of rows: a table of labels and failures, in the rows' order.

    The result does not depend on the caller, a loop or a worker of Ray.

    Args:
        table: the rows.
        part: their position.
        work: the labeling configuration.
        tasks: the same, with the judge.
        store: where labels are looked up and saved.
        limits: budget and rate limits.
        listener: receives events.

    Raises:
        LabelerError: as :func:`labeler.iter_labels`; labels made until then are stored.
    """
    with _run(work, store, limits, listener) as run:
        labels = run_tasks(run, rows_of(table, part, work), [tasks], asks_retrievals=False)
        outcomes = [row_of(outcome) for outcome in labels]
    return pa.Table.from_pylist(outcomes, schema=SCHEMA)


def rows_of(table: Any, part: InputPart, work: Work) -> RowPart:  # noqa: ANN401 - as above
    """Return the rows of a part, which a table holds."""
    before = part.before + part.start
    return RowPart(
        lambda: raw_rows(part.file, table.to_batches(BATCH), before=before),
        id_from=work.options.id_columns,
        columns=work.columns,
        keep_thinking=work.options.keep_thinking,
    )


def _run(work: Work, store: LabelStore, limits: Limits, listener: _ReportListener) -> Run:
    """Begin a run over rows of a part."""
    return Run(
        store,
        concurrency=work.options.concurrency,
        limits=limits,
        retry_failed=work.options.retry_failed,
        batch_of=PendingKeys(work.store),
        listener=listener,
        trace=judge_call,
    )


def judge_retrievals(work: Work, parts: Sequence[InputPart]) -> PartReport:
    """Judge the retrievals of all parts in this process, each once, before any part is labeled.

    Rows of one retrieval may stand in several parts. The labels go to the label store, in which
    every part looks.

    Returns:
        The requests and their cost.

    Raises:
        LabelerError: as :func:`labeler.iter_labels`; labels made until then are stored.
    """
    report, tasks = PartReport(), label_tasks(work.judge(), work.options)
    with (
        DiskStore(work.store) as store,
        _run(work, store, work.limits, _ReportListener(report)) as run,
    ):
        run.traffic_for(tasks.judge)
        relevance = BlindRelevance(run, [tasks])
        for part in parts:
            rows = RowStream(rows_of(read_part(part), part, work), tasks.needs)
            choose_mode(tasks.judge, first_tasks(tasks, rows.first), store, run.cache.is_known)
            deque(relevance.judged(rows), maxlen=0)
    return report


class Worker:
    """Labels parts, one after the other.

    Args:
        work: the labeling configuration.
        workers: how many workers share the limits.
        quotas: where budget and rates come from.
    """

    def __init__(self, work: Work, workers: int, quotas: Quotas) -> None:
        self._work, self._quotas = work, quotas
        self._tasks: LabelTasks | None = None
        self._own = WorkerQuotas(work.limits, workers, quotas)
        self._limits = replace(work.limits, shared=self._own)

    def label_part(self, part: InputPart) -> PartReport:
        """Label a part and write its partition; the report names an error that ends the run."""
        report = PartReport(part=part.name)
        try:
            report.ending = self._quotas.begin(part.name)
            if not report.ending:
                self._label(part, _ReportListener(report))
        except LabelerError as error:
            report.message = str(error)
            report.ending = ending_of(error)
        return report

    def _label(self, part: InputPart, listener: _ReportListener) -> None:
        work = self._work
        tasks = self._tasks = self._tasks or label_tasks(work.judge(), work.options)
        table = read_part(part)
        try:
            with ShardStore(work.store, part.name, part.overlapping) as store:
                labels = label_batch(
                    table,
                    part,
                    work=work,
                    tasks=tasks,
                    store=store,
                    limits=self._limits,
                    listener=listener,
                )
        finally:
            self._own.release()
        ending = OPEN if listener.retried else FAILED if listener.lasting else WHOLE
        folder = open_folder(work.output)
        put_table(folder, part.name + ending, labels, GROUP)
        for other in {OPEN, FAILED, WHOLE} - {ending}:
            folder.remove(part.name + other)


def count_existing(output: str, names: Sequence[str]) -> PartReport:
    """Count the outcomes in existing partitions.

    Args:
        output: their folder or address.
        names: of their files.

    Returns:
        Labels with the origin :data:`BEFORE`, failures by reason.

    Raises:
        UsageError: a partition cannot be read, or is not one.
    """
    found = PartReport()
    with ThreadPoolExecutor(_READERS) as readers:
        for table in readers.map(lambda name: _outcomes(f"{output.rstrip('/')}/{name}"), names):
            found.rows += table.num_rows
            failed = table.filter(pc.is_valid(table["reason"]))
            found.reasons += Counter(failed["reason"].to_pylist())
            messages = (*found.failures, *failed["message"].to_pylist())
            found.failures = messages[:_SHOWN_FAILURES]
    found.origins[BEFORE] = found.rows - found.reasons.total()
    return found


def _outcomes(file: str) -> Any:  # noqa: ANN401 - pyarrow has no types
    """Return reasons and messages of a partition's outcomes, null for labels."""
    with arrow_errors(file), open_bytes(file) as source:
        partition = pq.ParquetFile(source, **READ_LIMITS)
        if not {"reason", "message"} <= set(partition.schema_arrow.names):
            raise UsageError(f"{file} is no partition of labels: remove it, and its part is done")
        return partition.read(columns=["reason", "message"], use_threads=False)
