"""A run on several workers: what is to be done, what is done already, and who does the rest."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from labeler.data.label_files import is_index
from labeler.errors import UsageError
from labeler.integrations.ray.filesystem import Folder, folder_of, put_bytes
from labeler.integrations.ray.labeling import (
    FAILED,
    OPEN,
    WHOLE,
    PartReport,
    Work,
    Worker,
    standing_in,
)
from labeler.integrations.ray.parts import PART_ROWS, Part, input_files, parts_of_file
from labeler.integrations.ray.shards import besides, note_size
from labeler.integrations.ray.shares import BUDGET, Ledger
from labeler.labeling.tasks import LabelTasks

MANIFEST = "_labeling.json"
"""The file beside the partitions that says what was asked; readers of Parquet pass it over."""
_SHOWN_FAILURES = 3

Engine = Callable[[Work, list[Part], int], Generator[PartReport, None, None]]
"""Labels parts with so many workers, and yields a report of each, in any order."""


@dataclass(frozen=True)
class Plan:
    """What a run is to do.

    Attributes:
        parts: those to be labelled.
        done: how many have their partitions already.
        rows: of all parts.
        unread: stores that may hold labels of these rows, and in which nothing is looked up.
        standing: what the partitions that are there already hold.
    """

    parts: list[Part]
    done: int
    rows: int
    unread: int = 0
    standing: PartReport = field(default_factory=lambda: PartReport(""))


@dataclass
class Totals:
    """How a run went, all parts together.

    Attributes:
        sum: the reports, added up.
        written: names of the parts whose partitions were written.
        left: parts that the budget did not reach.
    """

    sum: PartReport = field(default_factory=lambda: PartReport(""))
    written: set[str] = field(default_factory=set)
    left: int = 0

    @property
    def parts(self) -> int:
        """How many partitions were written."""
        return len(self.written)

    def add(self, report: PartReport) -> None:
        """Count a part."""
        total = self.sum
        self.left += report.ending == BUDGET
        if report.part and not report.ending:
            self.written.add(report.part)
        total.origins += report.origins
        total.reasons += report.reasons
        total.failures = [*total.failures, *report.failures][:_SHOWN_FAILURES]
        for name in (
            *("rows", "requests", "reasks", "prompt_tokens", "completion_tokens"),
            *("cached_tokens", "known", "doubtful"),
        ):
            setattr(total, name, getattr(total, name) + getattr(report, name))


def plan(inputs: Iterable[str], work: Work, part_rows: int = PART_ROWS) -> Plan:
    """Find out what is to be done; nothing is sent, and the judge is made once to see that it can.

    Args:
        inputs: paths, patterns, folders or addresses of Parquet files.
        work: what is asked.
        part_rows: rows of a part at most; the same for all runs into one folder.

    Raises:
        UsageError: there are no such files, or no row of one can be labelled; the folder holds
            partitions of something else; or a budget could not be kept.
    """
    if part_rows < 1:
        raise UsageError(f"part_rows must be 1 or more, got {part_rows}")
    files = list(dict.fromkeys(file for name in inputs for file in input_files(name)))
    parts = [part for file in files for part in parts_of_file(file, part_rows, work.columns)]
    _require_own_names(parts)
    how = work.label_tasks(work.judge())
    if work.limits.budget is not None:
        _require_bounds(how)
    folder = folder_of(work.output)
    there = _partitions(folder.names())
    _require_planned(work.output, parts, there)
    _require_same(folder, work.output, asked(work, how, part_rows), empty=not there)
    done = {name: next(iter(ends)) for name, ends in there.items() if _is_done(ends, work)}
    left = [part for part in parts if part.name not in done]
    looking, unread = besides(left, parts, Path(work.store), part_rows)
    if left:
        note_size(Path(work.store), part_rows)
    standing = standing_in(work.output, [name + ending for name, ending in done.items()])
    return Plan(looking, len(done), sum(p.rows for p in parts), unread, standing)


def _require_bounds(how: LabelTasks) -> None:
    """Refuse a budget that the judge could not keep.

    Raises:
        UsageError: nobody knows what an answer may cost at most.
    """
    require = getattr(how.judge, "require_bounds", None)
    if require is not None:
        require()


def asked(work: Work, how: LabelTasks, part_rows: int) -> dict[str, object]:
    """What makes the partitions of two runs different, in words of JSON."""
    return {
        "format": 1,
        "part_rows": part_rows,
        **_asked_of(how),
        "columns": sorted(
            f"{field}={' or '.join(map(str, choices))}"
            for field, choices in (work.columns.choices.items() if work.columns else ())
        ),
        "id_from": list(work.id_from),
    }


def _asked_of(how: LabelTasks) -> dict[str, object]:
    spec = how.judge.spec
    prompts = [(how.prompt, how.schema), *([how.where_referenced] if how.where_referenced else [])]
    return {
        "judge": spec.judge,
        "model": spec.model,
        "sampling": {name: str(value) for name, value in sorted(spec.sampling().items())},
        "prompts": [str(prompt.artifact) for prompt, _ in prompts],
        "schemas": [str(schema.artifact) for _, schema in prompts],
        "splitter": str(how.splitter),
        "trial": how.trial,
        "max_input_tokens": str(how.room),
    }


def run(planned: Plan, work: Work, engine: Engine, workers: int) -> Iterator[PartReport]:
    """Label what is left to do; one report a part, in the order in which they end.

    Raises:
        LabelerError: no record can be labelled, or a store or file cannot be used; what was
            labelled until then is stored.
    """
    if not planned.parts:
        return
    with closing(engine(work, planned.parts, workers)) as reports:
        for report in reports:
            yield report
            report.raise_ending()


def in_a_loop(work: Work, parts: list[Part], workers: int) -> Generator[PartReport, None, None]:
    """Label parts in this process, one after the other, whatever the number of workers."""
    worker = Worker(work, workers, Ledger(work.limits, workers))
    for part in parts:
        yield worker.label_part(part)


def _partitions(names: Iterable[str]) -> dict[str, set[str]]:
    """The parts that have partitions, each with the endings of their names."""
    found: dict[str, set[str]] = {}
    for name in names:
        if name.startswith(".") or is_index(name):
            continue
        for ending in (OPEN, FAILED, WHOLE):
            if name.endswith(ending):
                found.setdefault(name.removesuffix(ending), set()).add(ending)
                break
    return found


def _is_done(endings: set[str], work: Work) -> bool:
    """Whether a part's partition stands as it is, and alone."""
    return endings == {WHOLE} or (endings == {FAILED} and not work.retry_failed)


def _require_own_names(parts: list[Part]) -> None:
    named: dict[str, Part] = {}
    for part in parts:
        other = named.setdefault(part.name, part)
        if other is not part:
            raise UsageError(
                f"{part.file} and {other.file} have the same name and the same content: their rows "
                "would be labelled twice; name one of the two"
            )


def _require_planned(output: str, parts: list[Part], there: Iterable[str]) -> None:
    strange = sorted(set(there) - {part.name for part in parts})
    if strange:
        raise UsageError(
            f"{output} holds partitions of other rows, such as {strange[0]!r}: their file was "
            "changed, is not among the input, or was cut into parts of another size; name all the "
            "input, or write to another folder; labels of "
            "the same rows of the same file are found there; of a file that was changed only after "
            "'labeler store merge'"
        )


def _require_same(folder: Folder, output: str, wanted: dict[str, object], *, empty: bool) -> None:
    """Refuse to put labels of two kinds into one folder; note what kind it is."""
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
