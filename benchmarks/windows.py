"""Measure how judging in windows changes labels, on real rows that also fit as a whole.

    python benchmarks/windows.py [FOLDER] [--write docs/long_records.md]

The folder holds RAGBench rows, as for ``judges.py``. Every row is judged as a whole and in 2, 3 and
5 windows, by about the smallest limits that give so many, and the labels are compared field by
field. Rows that cannot be cut into just so many are left out.

Two judges are asked. One is the embedded judge, for two profiles: it words claims alike in every
window, so that those of one sentence may be supported in different ones. The other is right as far
as it can see: it says of a window what the published label says of the sentences in it, and calls a
response sentence supported where all sentences that the published label names for it are there. Its
figures show what is lost by cutting and merging alone.

``--write`` puts the tables between two marks of a page and leaves the rest of it alone.
"""

from __future__ import annotations

import argparse
import asyncio
import platform
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import labeler
from labeler.calculators import measure, select_metrics
from labeler.calculators.rater_agreement import FieldAgreement
from labeler.comparing.agreement import compare_labels
from labeler.errors import BadRow
from labeler.judges.embedded.judge import EmbeddedJudge
from labeler.judges.task import JudgeReply, Task
from labeler.judges.tokens import request_tokens
from labeler.labeling.failures import record_or_failure
from labeler.labeling.options import LabelOptions
from labeler.labeling.tasks import LabelTasks, label_tasks
from labeler.labeling.windows import COUNTER, ContextBudget, Windowed, cut
from labeler.labels.answers import SPECIAL_SUPPORT, GPTLabelingOutput, SentenceSupport
from labeler.labels.record import LabelRecord, ReplyFacts
from labeler.sentences.example import KeyedExample
from ragbench_data import ragbench_files, ragbench_folder

JUDGE = EmbeddedJudge()

WINDOWS = (2, 3, 5)
METRICS = ("relevance", "utilization", "completeness", "adherence", "adherence_fraction")
STEPS = 5
"""Halvings in the search for a limit."""
LEXICAL = "The embedded judge, profile trace"
CLAIMS = "The embedded judge, profile claims"
RIGHT = "A judge that is right of what it sees, profile trace"
BEGIN, END = "<!-- begin measured -->", "<!-- end measured -->"


class Pair(NamedTuple):
    """One record, judged as a whole and in windows."""

    whole: LabelRecord
    windowed: LabelRecord


# -- judges ---------------------------------------------------------------------------------------


def embedded(request: Task) -> JudgeReply:
    """The answer of the embedded judge."""
    return asyncio.run(JUDGE.label(request))


class Published:
    """Says of any part of a record what its published label says of it."""

    def __init__(self, label: GPTLabelingOutput) -> None:
        self._label = label

    def __call__(self, request: Task) -> JudgeReply:
        """What is true of the sentences that are shown."""
        seen, label = set(request.example.document_keys()), self._label
        support = tuple(self._entry(entry, seen) for entry in label.sentence_support_information)
        answer = label.model_copy(
            update={
                "all_relevant_sentence_keys": _kept(label.all_relevant_sentence_keys, seen),
                "all_utilized_sentence_keys": _kept(label.all_utilized_sentence_keys, seen),
                "overall_supported": all(entry.fully_supported for entry in support),
                "sentence_support_information": support,
            }
        )
        return JudgeReply(answer, ReplyFacts(attempts=0))

    def _entry(self, entry: SentenceSupport, seen: set[str]) -> SentenceSupport:
        named = _kept(entry.supporting_sentence_keys, seen | set(SPECIAL_SUPPORT))
        whole = len(named) == len(entry.supporting_sentence_keys)
        yes = entry.fully_supported and whole
        return entry.model_copy(update={"supporting_sentence_keys": named, "fully_supported": yes})


def _kept(keys: Iterable[str], seen: set[str]) -> tuple[str, ...]:
    return tuple(key for key in keys if key in seen)


# -- judging --------------------------------------------------------------------------------------


def records(files: Iterable[Path]) -> Iterator[LabelRecord]:
    """The published records; ids are numbers, which no two of them share."""
    number = 0
    for file in files:
        for outcome in labeler.read_ragbench(file):
            if isinstance(outcome, LabelRecord):
                number += 1
                update = {"id": str(number), "metadata": {}}
                example = outcome.example.model_copy(update=update)
                yield outcome.model_copy(update={"example": example})


def cut_into(request: Task, number: int) -> Windowed | None:
    """The record in so many windows, as even as the smallest limit makes them."""
    bare = request.example.model_copy(update={"documents": ()})
    low, high = (_tokens(request, example) for example in (bare, request.example))
    low += (high - low) // number
    found = None
    for _ in range(STEPS):
        limit = (low + high) // 2
        try:
            windowed = cut(request, ContextBudget(0, limit))
        except BadRow:  # a sentence is longer than that
            windowed = None
        if windowed is None or len(windowed.parts) > number:
            low = limit
        else:
            high = limit
            found = windowed
    return found if found and len(found.parts) == number else None


def _tokens(request: Task, example: KeyedExample) -> int:
    messages = [{"content": m["content"]} for m in request.prompt.render(example)]
    return request_tokens(COUNTER, messages, request.schema.compact)


def judged(request: Task, judge: Callable[[Task], JudgeReply]) -> LabelRecord:
    """The record of a judge's answer."""
    record = record_or_failure(request, judge(request))
    if not isinstance(record, LabelRecord):
        raise SystemExit(f"row {request.example.id}: {record}")
    return record


def pairs(
    how: LabelTasks, judge: Callable[[Task], JudgeReply], cuts: Mapping[int, Windowed]
) -> Iterator[tuple[int, Pair]]:
    """One record, judged as a whole and in each number of windows."""
    example = next(iter(cuts.values())).task.example
    whole = judged(how.keyed_task(example), judge)
    for number, windowed in cuts.items():
        parts = tuple(how.keyed_task(part.example) for part in windowed.parts)
        asked = replace(windowed, task=how.keyed_task(example), parts=parts)
        yield number, Pair(whole, asked.merged([judged(part, judge) for part in parts]))


# -- tables ---------------------------------------------------------------------------------------


def line(cells: Iterable[object]) -> str:
    """A line of a Markdown table."""
    return f"| {' | '.join(map(str, cells))} |"


def agreement(pairs: Sequence[Pair]) -> tuple[FieldAgreement, ...]:
    """How far the two labels of the same records agree, field by field."""
    return compare_labels((p.whole for p in pairs), (p.windowed for p in pairs)).fields


def agreement_table(found: dict[int, list[Pair]]) -> Iterator[str]:
    """One line for each number of windows and field."""
    heads = ["windows", "records", "field", "units", "raw", "kappa", "yes, whole", "yes, windows"]
    yield line(heads)
    yield line(["--:", "--:", "---", *["--:"] * 5])
    for number, pairs in found.items():
        for field in agreement(pairs):
            shares = (field.raw, field.kappa.value, field.mean_a, field.mean_b)
            yield line(
                [number, f"{len(pairs):,}", field.field, f"{field.units:,}", *map(_shown, shares)]
            )


def metric_table(found: dict[int, list[Pair]]) -> Iterator[str]:
    """Means of the metrics, both ways."""
    heads = [f"{metric}, {side}" for metric in METRICS for side in ("whole", "windows")]
    yield line(["windows", *heads])
    yield line(["--:"] * (1 + 2 * len(METRICS)))
    for number, pairs in found.items():
        sides = [_means(p.whole for p in pairs), _means(p.windowed for p in pairs)]
        cells = [_shown(side[metric]) for metric in METRICS for side in sides]
        yield line([number, *cells])


def _means(records: Iterable[LabelRecord]) -> dict[str, float | None]:
    metrics = select_metrics(METRICS)
    values: dict[str, list[float]] = {metric: [] for metric in METRICS}
    for record in records:
        for name, ratio in measure(record, metrics).metrics.items():
            if ratio.value is not None:
                values[name].append(ratio.value)
    return {name: fmean(each) if each else None for name, each in values.items()}


def _shown(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.3f}"


def report(
    files: Sequence[Path], rows: tuple[int, int], sides: dict[str, dict[int, list[Pair]]]
) -> Iterator[str]:
    """The tables, with what they rest on."""
    date = f"{datetime.now(UTC):%Y-%m-%d}"
    yield "Command: `python benchmarks/windows.py --write docs/long_records.md`  "
    yield (
        f"Date: {date}; labeler {labeler.__version__}, Python {platform.python_version()}, "
        f"pydantic {version('pydantic')}  "
    )
    yield (
        f"Rows: {rows[0]:,} of RAGBench, {len(files)} subsets, without the {rows[0] - rows[1]} "
        f"whose published labels break the contract; judge {JUDGE.spec}"
    )
    for title, found in sides.items():
        yield from ("", f"### {title}", "", *agreement_table(found), "", *metric_table(found))


def main() -> None:
    """Judge, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", nargs="?", type=Path, default=ragbench_folder())
    parser.add_argument("--write", type=Path, metavar="FILE", help="also put it into a page")
    options = parser.parse_args()
    files = ragbench_files(options.folder)
    if not files:
        parser.error(f"no RAGBench rows in {options.folder}; name a folder of .jsonl.gz files")
    sides: dict[str, dict[int, list[Pair]]] = {
        title: {number: [] for number in WINDOWS} for title in (LEXICAL, CLAIMS, RIGHT)
    }
    trace, claims = (label_tasks(JUDGE, LabelOptions(profile=name)) for name in ("trace", "claims"))
    read = used = 0
    for record in records(files):
        read += 1
        if record.violations:  # no judge could have said that
            continue
        used += 1
        request = trace.keyed_task(record.example)
        cuts = {n: found for n in WINDOWS if (found := cut_into(request, n)) is not None}
        for title, how, judge in (
            (LEXICAL, trace, embedded),
            (CLAIMS, claims, embedded),
            (RIGHT, trace, Published(record.label)),
        ):
            for number, pair in pairs(how, judge, cuts) if cuts else ():
                sides[title][number].append(pair)
    text = "\n".join(report(files, (read, used), sides))
    print(text)
    if options.write:
        page = options.write.read_text(encoding="utf-8")
        pattern = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
        written = pattern.sub(lambda _: f"{BEGIN}\n{text}\n{END}", page)
        options.write.write_text(written, encoding="utf-8")
        print(f"written to {options.write}", file=sys.stderr)


if __name__ == "__main__":
    main()
