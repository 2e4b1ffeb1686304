"""Plan and run labeling on several workers."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace

from labeler.errors import UsageError
from labeler.integrations.ray.filesystem import Folder, open_folder, put_bytes
from labeler.integrations.ray.parts import (
    PART_ROWS,
    InputPart,
    input_files,
    parts_of_file,
)
from labeler.integrations.ray.quotas import BUDGET
from labeler.integrations.ray.shards import find_overlapping, record_size
from labeler.integrations.ray.worker import (
    FAILED,
    OPEN,
    WHOLE,
    PartReport,
    Work,
    count_existing,
    judge_retrievals,
)
from labeler.labeling.label_tasks import label_tasks
from labeler.labeling.options import BLIND
from labeler.labeling.tasks import LabelTasks

MANIFEST = "_labeling.json"
"""The file next to the partitions that holds the configuration; Parquet readers ignore it."""
_SHOWN_FAILURES = 3

Engine = Callable[[Work, list[InputPart], int], Generator[PartReport, None, None]]
"""Labels parts with a number of workers, and yields a report of each, in any order."""


@dataclass(frozen=True)
class Plan:
    """The work of a run.

    Attributes:
        parts: the parts to be labeled.
        done: parts that have their partitions already.
        rows: of all parts.
        unread: stores that may hold labels of these rows but are not read.
        existing: counts of the existing partitions.
    """

    parts: list[InputPart]
    done: int
    rows: int
    unread: int = 0
    existing: PartReport = field(default_factory=PartReport)


@dataclass
class Totals:
    """The outcome of a run, for all parts.

    Attributes:
        sum: the reports, added up.
        written: names of the parts whose partitions were written.
        left: parts that the budget did not reach.
    """

    sum: PartReport = field(default_factory=PartReport)
    written: set[str] = field(default_factory=set)
    left: int = 0

    @property
    def parts(self) -> int:
        """The number of partitions that were written."""
        return len(self.written)

    def add(self, report: PartReport) -> None:
        """Add the report of a part."""
        total = self.sum
        self.left += report.ending == BUDGET
        if report.part and not report.ending:
            self.written.add(report.part)
        total.origins += report.origins
        total.reasons += report.reasons
        total.failures = (*total.failures, *report.failures)[:_SHOWN_FAILURES]
        for name in ("rows", "requests", "reasks", "usage", "unmetered", "known", "doubtful"):
            setattr(total, name, getattr(total, name) + getattr(report, name))


def plan(inputs: Iterable[str], work: Work, part_rows: int = PART_ROWS) -> Plan:
    """Plan a run; nothing is sent, and the judge is made once to check that it can be.

    Args:
        inputs: paths, patterns, folders or addresses of Parquet files.
        work: the labeling configuration.
        part_rows: most rows of a part; the same for all runs into one folder.

    Raises:
        UsageError: there are no such files, or no row of one can be labeled; the folder holds
            partitions of something else; or the budget cannot be guaranteed.
    """
    if part_rows < 1:
        raise UsageError(f"part_rows must be 1 or more, got {part_rows}")
    files = list(dict.fromkeys(file for name in inputs for file in input_files(name)))
    parts = [part for file in files for part in parts_of_file(file, part_rows, work.columns)]
    _require_own_names(parts)
    judge = work.judge()
    tasks = label_tasks(judge, work.options)
    if work.limits.budget is not None:
        # Judges without this method have no costs to bound.
        getattr(judge, "require_bounds", lambda: None)()
    folder = open_folder(work.output)
    found = _partitions(folder.names())
    _require_planned(work.output, parts, found)
    done = {name: next(iter(ends)) for name, ends in found.items() if _is_done(ends, work)}
    left = [part for part in parts if part.name not in done]
    _require_same(folder, work.output, _configuration(work, tasks, part_rows), empty=not found)
    labeled, unread = find_overlapping(left, parts, work.store, part_rows)
    if left:
        record_size(work.store, part_rows)
    existing = count_existing(work.output, [name + ending for name, ending in done.items()])
    return Plan(labeled, len(done), sum(p.rows for p in parts), unread, existing)


def _configuration(work: Work, tasks: LabelTasks, part_rows: int) -> dict[str, object]:
    """Return everything that makes the partitions of two runs differ, as JSON values."""
    spec = tasks.judge.spec
    prompts = [(tasks.prompt, tasks.schema)]
    if tasks.where_referenced:
        prompts.append(tasks.where_referenced)
    if tasks.relevance:
        prompts.append((tasks.relevance.prompt, tasks.relevance.schema))
    return {
        "format": 1,
        "part_rows": part_rows,
        "judge": spec.judge,
        "model": spec.model,
        "sampling": {name: str(value) for name, value in sorted(spec.sampling().items())},
        "prompts": [str(prompt.artifact) for prompt, _ in prompts],
        "schemas": [str(schema.artifact) for _, schema in prompts],
        "splitter": str(tasks.splitter),
        "trial": tasks.trial,
        "max_input_tokens": str(tasks.limit and tasks.limit.tokens),
        "columns": sorted(
            f"{field}={' or '.join(map(str, choices))}"
            for field, choices in (work.columns.choices.items() if work.columns else ())
        ),
        "id_from": list(work.options.id_columns),
    }


def run(planned: Plan, work: Work, engine: Engine, workers: int) -> Iterator[PartReport]:
    """Label the planned parts; yield a report of each when it ends.

    Raises:
        LabelerError: no record can be labeled, or a store or file cannot be used; labels made
            until then are stored.
    """
    if not planned.parts:
        return
    if work.options.relevance == BLIND:
        report = judge_retrievals(work, planned.parts)
        yield report
        budget = work.limits.budget
        if budget is not None:
            left = budget - report.known - report.doubtful
            if left <= 0:
                yield from (PartReport(part=part.name, ending=BUDGET) for part in planned.parts)
                return
            work = replace(work, options=replace(work.options, budget=left))
    with closing(engine(work, planned.parts, workers)) as reports:
        for report in reports:
            yield report
            report.raise_ending()


def _partitions(names: Iterable[str]) -> dict[str, set[str]]:
    """Return the parts that have partitions, each with the suffixes of its partitions."""
    found: dict[str, set[str]] = {}
    for name in names:
        if name.startswith("."):
            continue
        for ending in (OPEN, FAILED, WHOLE):
            if name.endswith(ending):
                found.setdefault(name.removesuffix(ending), set()).add(ending)
                break
    return found


def _is_done(endings: set[str], work: Work) -> bool:
    """Return true if a part has exactly one partition, and it can stay."""
    return endings == {WHOLE} or (endings == {FAILED} and not work.options.retry_failed)


def _require_own_names(parts: list[InputPart]) -> None:
    named: dict[str, InputPart] = {}
    for part in parts:
        other = named.setdefault(part.name, part)
        if other is not part:
            raise UsageError(
                f"{part.file} and {other.file} have the same name and the same content: their rows "
                "would be labeled twice; name one of the two"
            )


def _require_planned(output: str, parts: list[InputPart], found: Iterable[str]) -> None:
    strange = sorted(set(found) - {part.name for part in parts})
    if strange:
        raise UsageError(
            f"{output} holds partitions of other rows, such as {strange[0]!r}: their file was "
            "changed, is not among the input, or was cut into parts of another size; name all the "
            "input, or write to another folder; labels of "
            "the same rows of the same file are found there; of a file that was changed only after "
            "'labeler store merge'"
        )


def _require_same(folder: Folder, output: str, wanted: dict[str, object], *, empty: bool) -> None:
    """Reject labels of two configurations in one folder; record the configuration."""
    found = folder.read(MANIFEST)
    if found is None:
        if not empty:
            raise UsageError(
                f"{output} holds Parquet files and no {MANIFEST}: they are of something else; "
                "write to another folder"
            )
        put_bytes(folder, MANIFEST, json.dumps(wanted, indent=1).encode())
        return
    try:
        before = json.loads(found)
    except ValueError:
        before = None
    if not isinstance(before, dict):
        raise UsageError(f"{output}/{MANIFEST} is damaged; write to another folder")
    differing = [name for name in wanted if before.get(name) != wanted[name]]
    if differing:
        name = differing[0]
        raise UsageError(
            f"{output} holds labels that were asked for otherwise: {name} was "
            f"{before.get(name)!r:.200}, and is {wanted[name]!r:.200} now; write to another folder"
        )
