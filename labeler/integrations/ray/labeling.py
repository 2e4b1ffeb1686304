"""What a worker does with a part: the same as one machine does with its rows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from labeler.data.columns import Columns
from labeler.data.formats.arrow_files import BATCH, arrow_errors, raw_rows
from labeler.data.formats.parquet_files import READ_LIMITS
from labeler.data.label_tables import GROUP, SCHEMA, row_of
from labeler.data.lines import open_bytes
from labeler.data.rows import RowPart
from labeler.errors import FatalJudgeError, LabelerError, RunPaused, StoreError, UsageError
from labeler.integrations.batch.folder import PendingKeys
from labeler.integrations.opentelemetry import judge_call
from labeler.integrations.ray.filesystem import folder_of, put_table
from labeler.integrations.ray.parts import Part, anywhere, read_part
from labeler.integrations.ray.shards import ShardStore
from labeler.integrations.ray.shares import LOST, LOST_AFTER, Sharing, shared
from labeler.judges.judge import Judge
from labeler.judges.traffic.budget import Budget
from labeler.judges.traffic.traffic import Limits
from labeler.labeling.cache import Origin
from labeler.labeling.pipeline import label_rows
from labeler.labeling.run import DEFAULT_CONCURRENCY
from labeler.labeling.tasks import LabelTasks, label_tasks
from labeler.labels.profiles import DEFAULT_PROFILE
from labeler.labels.record import AnyOutcome, LabelFailure, Usage
from labeler.sentences.splitting import DEFAULT_SPLITTER
from labeler.store.protocol import LabelStore

WHOLE, FAILED, OPEN = ".parquet", ".failed.parquet", ".open.parquet"
"""How the name of a partition ends: one without failures that asking again could mend, one with
lasting failures, and one with failures that the next run asks again."""

_SHOWN_FAILURES = 3
_READERS = 8
"""Partitions that are counted at once: what takes long is the way to them."""
BEFORE = "before"
"""The origin of labels that stand in partitions of earlier runs."""


@dataclass(frozen=True)
class Work:
    """What workers are to do with parts; all of it can be sent to another machine.

    Attributes:
        judge: makes the judge; called once on each worker. What is secret it finds there.
        store: folder of the label store, by the same path for every worker.
        output: folder or address of the partitions.
        splitter: as for :func:`labeler.iter_labels`, like those below.
        profile: the same.
        prompt: the same.
        trial: the same.
        max_input_tokens: the same.
        concurrency: requests in flight of each worker at most.
        limits: those of all workers together.
        retry_failed: the same.
        columns: which column each field is read from.
        id_from: columns that together name a row.
    """

    judge: Callable[[], Judge]
    store: str
    output: str
    splitter: str = DEFAULT_SPLITTER
    profile: str = DEFAULT_PROFILE
    prompt: str | None = None
    trial: int = 0
    max_input_tokens: int | None = None
    concurrency: int = DEFAULT_CONCURRENCY
    limits: Limits = field(default_factory=Limits)
    retry_failed: bool = False
    columns: Columns | None = None
    id_from: Sequence[str] = ()

    def __post_init__(self) -> None:
        for name in ("store", "output"):
            object.__setattr__(self, name, anywhere(getattr(self, name)))

    def label_tasks(self, judge: Judge) -> LabelTasks:
        """What is asked about each row."""
        return label_tasks(
            judge,
            splitter=self.splitter,
            profile=self.profile,
            prompt=self.prompt,
            trial=self.trial,
            max_input_tokens=self.max_input_tokens,
        )


@dataclass
class PartReport:
    """How the labelling of a part went, in numbers and texts alone.

    Attributes:
        part: its name.
        rows: outcomes in its partition.
        origins: labels by where they came from.
        reasons: failures by reason.
        failures: messages of the first few.
        requests: sent to the judge for it.
        reasks: of these, to have an answer mended.
        prompt_tokens: of answers that came now.
        completion_tokens: the same.
        cached_tokens: of the prompt tokens, those read from a cache.
        known: dollars that answers cost.
        doubtful: dollars that requests without an answer may have cost.
        ending: empty where its partition was written; ``budget`` where nothing more may be spent,
            so that it was left; ``lost`` where worker after worker died of it; ``dead`` for what
            workers spent that died; else the kind of error that ends the run.
        message: of that error.
    """

    part: str
    rows: int = 0
    origins: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    requests: int = 0
    reasks: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    known: Decimal = Decimal(0)
    doubtful: Decimal = Decimal(0)
    ending: str = ""
    message: str = ""

    def to_json(self) -> str:
        """The report as a text."""
        return json.dumps(vars(self), default=str)

    @classmethod
    def from_json(cls, text: str) -> PartReport:
        """The report of a text that :meth:`to_json` made."""
        made = cls(**json.loads(text))
        made.origins, made.reasons = Counter(made.origins), Counter(made.reasons)
        made.known, made.doubtful = Decimal(made.known), Decimal(made.doubtful)
        return made

    def raise_ending(self) -> None:
        """Raise what ended the run, if it was an error.

        Raises:
            LabelerError: of the worker's kind, in the worker's words.
        """
        if self.ending == LOST:
            raise FatalJudgeError(
                f"{LOST_AFTER} workers were lost while they labelled {self.part}: look for what "
                "ends them, such as a row too large for their memory; what was labelled is stored",
                reason=LOST,
            )
        if self.ending in _ENDINGS:
            raise _ENDINGS[self.ending](self.message)


_ENDINGS: dict[str, Callable[[str], LabelerError]] = {
    "RunPaused": lambda text: RunPaused(text, reason="rate_limit"),
    "FatalJudgeError": lambda text: FatalJudgeError(text, reason="fatal"),
    "StoreError": StoreError,
    "UsageError": UsageError,
    "LabelerError": LabelerError,
}


@dataclass
class _Counting:
    """Watches a run for its report."""

    report: PartReport
    retried: bool = False
    """Whether there are failures that asking again may mend."""
    lasting: bool = False

    def on_start(self, rows: int, repeated: int) -> None:
        """Told of before any spend."""

    def on_notice(self, text: str) -> None:
        """Told what the run waits for; a worker has nobody to tell."""

    def on_result(self, outcome: AnyOutcome, origin: Origin) -> None:
        """Count an outcome."""
        self.report.rows += 1
        if not isinstance(outcome, LabelFailure):
            self.report.origins[origin] += 1
            return
        self.report.reasons[outcome.reason] += 1
        if len(self.report.failures) < _SHOWN_FAILURES:
            self.report.failures.append(outcome.message)
        self.lasting |= outcome.lasting
        self.retried |= origin != "row" and not outcome.lasting

    def on_judged(self, outcome: AnyOutcome) -> None:
        """Count what an outcome took."""
        if isinstance(outcome, LabelFailure):
            took: Any = outcome
        else:
            took = outcome.reply
        report, usage = self.report, took.usage or Usage()
        report.requests += took.attempts
        report.reasks += took.reasks
        report.prompt_tokens += usage.prompt_tokens
        report.completion_tokens += usage.completion_tokens
        report.cached_tokens += usage.cached_tokens

    def on_finish(self, spent: Budget) -> None:
        """Learn what it cost."""
        self.report.known += spent.known
        self.report.doubtful += spent.doubtful


def label_batch(
    table: Any,  # noqa: ANN401 - pyarrow has no types
    part: Part,
    *,
    work: Work,
    how: LabelTasks,
    store: LabelStore,
    limits: Limits,
    counting: _Counting,
) -> Any:  # noqa: ANN401 - pyarrow has no types
    """Label a table of rows: a table of labels and failures, in the rows' order.

    Who calls it, a loop or a worker of Ray, makes no difference to what comes out.

    Args:
        table: the rows.
        part: where they come from.
        work: what is asked, and how.
        how: the same, with the judge in it.
        store: where labels are looked up and saved.
        limits: what holds requests back.
        counting: told how it goes.

    Raises:
        LabelerError: as :func:`labeler.iter_labels`; what was labelled until then is stored.
    """
    before = part.before + part.start
    rows = RowPart(
        lambda: raw_rows(part.file, table.to_batches(BATCH), before=before),
        id_from=work.id_from,
        columns=work.columns,
    )
    outcomes = label_rows(
        rows,
        how,
        store,
        concurrency=work.concurrency,
        limits=limits,
        retry_failed=work.retry_failed,
        in_batch=PendingKeys(work.store),
        listener=counting,
        trace=judge_call,
    )
    return pa.Table.from_pylist([row_of(outcome) for outcome in outcomes], schema=SCHEMA)


class Worker:
    """Labels parts, one after the other.

    Args:
        work: what is to be done.
        workers: how many share the limits.
        ledger: who shares them out.
    """

    def __init__(self, work: Work, workers: int, ledger: Sharing) -> None:
        self._work, self._ledger = work, ledger
        self._how: LabelTasks | None = None
        self._limits, self._shares = shared(work.limits, workers, ledger)

    def label_part(self, part: Part) -> PartReport:
        """Label a part and write its partition; what ends the whole run is in the report."""
        report = PartReport(part.name)
        try:
            report.ending = self._ledger.begin(part.name)
            if not report.ending:
                self._label(part, _Counting(report))
        except LabelerError as error:
            report.message = str(error)
            report.ending = next(name for name in _ENDINGS if _is_a(error, name))
        return report

    def _label(self, part: Part, counting: _Counting) -> None:
        work = self._work
        how = self._how = self._how or work.label_tasks(work.judge())
        table = read_part(part)
        try:
            with ShardStore(Path(work.store), part.name, part.besides) as store:
                labels = label_batch(
                    table,
                    part,
                    work=work,
                    how=how,
                    store=store,
                    limits=self._limits,
                    counting=counting,
                )
        finally:
            self._shares.let_go()
        ending = OPEN if counting.retried else FAILED if counting.lasting else WHOLE
        folder = folder_of(work.output)
        put_table(folder, part.name + ending, labels, GROUP)
        for other in {OPEN, FAILED, WHOLE} - {ending}:
            folder.remove(part.name + other)


def standing_in(output: str, names: Sequence[str]) -> PartReport:
    """Count what partitions hold that are there already.

    Args:
        output: their folder or address.
        names: of their files.

    Returns:
        Labels under the origin :data:`BEFORE`, failures by their reasons.

    Raises:
        UsageError: one cannot be read, or is no partition.
    """
    standing = PartReport("")
    with ThreadPoolExecutor(_READERS) as readers:
        for table in readers.map(lambda name: _outcomes(f"{output.rstrip('/')}/{name}"), names):
            standing.rows += table.num_rows
            failed = table.filter(pc.is_valid(table["reason"]))
            standing.reasons += Counter(failed["reason"].to_pylist())
            standing.failures += failed["message"].to_pylist()[:_SHOWN_FAILURES]
            del standing.failures[_SHOWN_FAILURES:]
    standing.origins[BEFORE] = standing.rows - standing.reasons.total()
    return standing


def _outcomes(file: str) -> Any:  # noqa: ANN401 - pyarrow has no types
    """Why outcomes of a partition failed, with nulls for those that did not."""
    with arrow_errors(file), open_bytes(file) as source:
        partition = pq.ParquetFile(source, **READ_LIMITS)
        if not {"reason", "message"} <= set(partition.schema_arrow.names):
            raise UsageError(f"{file} is no partition of labels: remove it, and its part is done")
        return partition.read(columns=["reason", "message"], use_threads=False)


def _is_a(error: LabelerError, name: str) -> bool:
    return any(kind.__name__ == name for kind in type(error).__mro__)
