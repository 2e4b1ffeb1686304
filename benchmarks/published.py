"""Labels of people to hold a judge against: RAGBench's published ones, and MTRAG's ratings.

MTRAG (Katsis and others 2025, arXiv 2501.03468): answers of two models and of people to questions
in conversations, with the passages that were retrieved, each rated by two or three people on a
scale of 1 (no) to 4 (yes) for faithfulness. Both lie where ``ragbench_data.py`` says.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import labeler
from labeler.judges.judge import Judge
from labeler.judges.task import JudgeReply, Task
from labeler.labeling.failures import record_or_failure
from labeler.labeling.options import LabelOptions
from labeler.labeling.tasks import label_tasks
from labeler.labels.record import LabelRecord
from labeler.plugins.ragbench import read_ragbench
from labeler.sentences.example import Frozen
from ragbench_data import ragbench_files, ragbench_folder


def published(*splits: str, files: Iterable[Path] | None = None) -> list[LabelRecord]:
    """Return the published labels of all files, or of some; all splits unless some are named.

    Raises:
        SystemExit: there are no files.
    """
    if not (named := list(files or ragbench_files())):
        raise SystemExit(
            f"no RAGBench rows in {ragbench_folder()}: see benchmarks/ragbench_data.py"
        )
    outcomes = (one for file in named for one in read_ragbench(file))
    return [
        one
        for one in outcomes
        if isinstance(one, LabelRecord) and (not splits or split_of(one) in splits)
    ]


def split_of(record: LabelRecord) -> str:
    """Return ``test`` or ``development``: the rows that weights and thresholds may be chosen on."""
    test = str(record.example.metadata["dataset_name"]).endswith("_test")
    return "test" if test else "development"


def subset_of(record: LabelRecord) -> str:
    """Return the data set of a row without the split: ``covidqa`` of ``covidqa_test``."""
    return str(record.example.metadata["dataset_name"]).rsplit("_", 1)[0]


def judged(truth: Iterable[LabelRecord]) -> tuple[list[LabelRecord], float]:
    """Label the very sentences of true labels by the embedded judge; its CPU seconds."""
    judge = labeler.EmbeddedJudge()
    how = label_tasks(judge, LabelOptions())
    tasks = [how.keyed_task(one.example) for one in truth]
    began = time.process_time()
    replies = asyncio.run(_replies(judge, tasks))
    seconds = time.process_time() - began
    outcomes = map(record_or_failure, tasks, replies)
    return [one for one in outcomes if isinstance(one, LabelRecord)], seconds


async def _replies(judge: Judge, tasks: Sequence[Task]) -> list[JudgeReply[Frozen]]:
    return [await judge.label(task) for task in tasks]


def area(pairs: Iterable[tuple[float, bool]]) -> float | None:
    """Return the AUROC of scores for true or false; undefined if one of the two is missing."""
    counts: dict[float, list[int]] = {}
    for score, truth in pairs:
        counts.setdefault(score, [0, 0])[bool(truth)] += 1
    false = true = half_pairs = 0  # half pairs are integers, so the sum is exact
    for _, (no, yes) in sorted(counts.items()):
        half_pairs += yes * (2 * false + no)
        false, true = false + no, true + yes
    return half_pairs / (2 * false * true) if false and true else None


# -- MTRAG -----------------------------------------------------------------------------------------


CUTS = (4, 3)
"""Median ratings from which people's word counts as yes: a full yes, or a mostly yes too."""


class Answer(NamedTuple):
    """A rated answer.

    Attributes:
        row: the input row; its question is the whole conversation.
        ratings: people's faithfulness ratings, 1 to 4.
    """

    row: dict[str, Any]
    ratings: tuple[int, ...]

    @property
    def rating(self) -> float:
        """Their median: people's word on the answer."""
        return median(self.ratings)


def mtrag_file() -> Path:
    """Return where the ratings lie."""
    folder = ragbench_folder()
    base = folder.parent if folder.name == "ragbench" else folder
    return base / "mtrag" / "human_evaluations.json.gz"


def mtrag_answers(path: Path | None = None) -> list[Answer]:
    """Read the rated answers."""
    with gzip.open(path or mtrag_file(), "rt", encoding="utf-8") as file:
        data = json.load(file)
    texts = {document["document_id"]: document["text"] for document in data["documents"]}
    tasks = {task["task_id"]: task for task in data["tasks"]}
    answers = []
    for one in data["evaluations"]:
        task = tasks[one["task_id"]]
        row = {
            "id": f"{one['task_id']}/{one['model_id']}",
            "question": "\n".join(f"{turn['speaker']}: {turn['text']}" for turn in task["input"]),
            "documents": [texts[context["document_id"]] for context in task["contexts"]],
            "response": one["model_response"],
        }
        said = one["annotations"]["faithfulness"].values()
        answers.append(Answer(row, tuple(int(rating["value"]) for rating in said)))
    return answers
