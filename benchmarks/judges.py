"""Measures the embedded judge on real labelled rows, beside what others published on the same rows.

    python benchmarks/judges.py [DATA_FOLDER] [--split test|development|all]

The folder holds RAGBench rows as gzipped JSON Lines, one file a subset. Without one, the command
looks in ``$LABELER_TEST_DATA/ragbench``, then in ``../shared/data/ragbench`` beside the checkout.
Every row is labelled with the data set's own sentences; the truth is the data set's own labels,
which GPT-4-class models made. The tables are Markdown. ``development`` rows (train and
validation) were used to choose the judge's constants, and to choose the mean over the minimum as a
record's score; ``test`` rows were not. "embedded there" is the embedded judge on the very rows
where the published column has a value.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import math
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from labeler import __version__
from labeler.errors import UsageError
from labeler.example import KeyedExample, Sentence
from labeler.judges import JudgeReply
from labeler.judges.calibration import auroc
from labeler.judges.embedded import EmbeddedJudge
from labeler.labels import VerbatimLabel, VerbatimSupport, check_label
from labeler.prompting import JudgeRequest, load_prompt, load_schema
from labeler.signature import Signature

SUBSETS = ("covidqa", "delucionqa", "emanual", "msmarco")
Row = Mapping[str, Any]


class Truth(NamedTuple):
    """What the published row says.

    Attributes:
        adherent: whether the whole response is supported.
        support: by response key, whether the sentence is supported.
        relevant: keys of the relevant document sentences, normalised.
        utilized: keys of the utilized ones.
    """

    adherent: bool
    support: dict[str, bool]
    relevant: frozenset[str]
    utilized: frozenset[str]


@dataclass(frozen=True)
class Judged:
    """One row, what is true of it, and what the embedded judge said."""

    row: Row
    truth: Truth
    reply: JudgeReply

    @property
    def subset(self) -> str:
        """The file it came from."""
        return str(self.row["subset"])

    @property
    def support(self) -> dict[str, float]:
        """Support scores by response key."""
        return self.reply.scores.support if self.reply.scores else {}

    @property
    def adherence(self) -> float:
        """The record's score: the mean of its sentences' support scores."""
        return fmean(self.support.values()) if self.support else 0.0

    @property
    def verdict(self) -> bool:
        """The judge's yes or no on the whole response."""
        return self.reply.answer.overall_supported

    @property
    def sentences(self) -> int:
        """How many document sentences it has."""
        return sum(len(document) for document in self.row["documents_sentences"])

    @property
    def relevance(self) -> float:
        """Share of the document sentences that the judge calls relevant."""
        return len(self.reply.answer.all_relevant_sentence_keys) / (self.sentences or 1)

    @property
    def utilization(self) -> float:
        """Share of the document sentences that the judge calls utilized."""
        return len(self.reply.answer.all_utilized_sentence_keys) / (self.sentences or 1)


# -- reading and labelling ------------------------------------------------------------------------


def rows(folder: Path, split: str) -> Iterator[Row]:
    """Read the rows of a split; ``subset`` is added to each."""
    for subset in SUBSETS:
        with gzip.open(folder / f"{subset}.jsonl.gz", "rt", encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                test = row["dataset_name"].endswith("_test")
                if split == "all" or test == (split == "test"):
                    yield {**row, "subset": subset}


def keyed(row: Row) -> KeyedExample:
    """The row with the data set's own sentences and keys."""

    def sentences(pairs: Iterable[Sequence[str]]) -> tuple[Sentence, ...]:
        return tuple(Sentence(key=key, text=text, start=0, end=0) for key, text in pairs)

    return KeyedExample(
        id=f"{row['dataset_name']}/{row['id']}/{row['generation_model_name']}",
        question=row["question"],
        documents=tuple(map(sentences, row["documents_sentences"])),
        response=sentences(row["response_sentences"]),
        splitter="given/1",
    )


def truth_of(row: Row, example: KeyedExample) -> Truth:
    """Read the published label, spelling repaired and unknown keys left out."""
    verbatim = VerbatimLabel(
        relevance_explanation="",
        all_relevant_sentence_keys=row["all_relevant_sentence_keys"],
        overall_supported_explanation="",
        overall_supported=row["adherence_score"],
        sentence_support_information=tuple(
            VerbatimSupport(**{name: entry[name] for name in VerbatimSupport.model_fields})
            for entry in row["sentence_support_information"]
        ),
        all_utilized_sentence_keys=row["all_utilized_sentence_keys"],
    )
    label = check_label(verbatim, example).label
    return Truth(
        adherent=row["adherence_score"],
        support={
            entry.response_sentence_key: entry.fully_supported
            for entry in label.sentence_support_information
        },
        relevant=frozenset(label.all_relevant_sentence_keys),
        utilized=frozenset(label.all_utilized_sentence_keys),
    )


async def label_all(examples: Sequence[KeyedExample]) -> tuple[list[JudgeReply], float]:
    """Label every example; returns replies and CPU seconds, reading and checking left out."""
    judge = EmbeddedJudge()
    prompt, schema = load_prompt(), load_schema()
    signature = Signature(
        judge=judge.spec.judge,
        model=judge.spec.model,
        sampling=judge.spec.sampling(),
        prompt=prompt.artifact,
        response_schema=schema.artifact,
        splitter="given/1",
    )
    requests = [JudgeRequest("0" * 64, example, signature, prompt, schema) for example in examples]
    started = time.process_time()
    replies = [await judge.label(request) for request in requests]
    return replies, time.process_time() - started


# -- figures --------------------------------------------------------------------------------------


def area(judged: Sequence[Judged], score: Callable[[Judged], float]) -> float | None:
    """AUROC of a record score for adherence; undefined where one class is missing."""
    try:
        return auroc((score(one), one.truth.adherent) for one in judged)
    except UsageError:
        return None


def support_area(judged: Sequence[Judged]) -> float | None:
    """AUROC of the sentence scores for support."""
    pairs = [
        (score, one.truth.support[key])
        for one in judged
        for key, score in one.support.items()
        if key in one.truth.support
    ]
    try:
        return auroc(pairs)
    except UsageError:
        return None


class Verdicts(NamedTuple):
    """How the yes-or-no on whole responses compares with the truth, as shares of the rows.

    Attributes:
        prevalence: share of rows that are non-adherent.
        flagged: share of rows that the judge calls non-adherent.
        precision: of those flagged, the share that is non-adherent.
        recall: of the non-adherent, the share that is flagged.
    """

    prevalence: float | None
    flagged: float | None
    precision: float | None
    recall: float | None


def verdicts(judged: Sequence[Judged]) -> Verdicts:
    """Count verdicts at the default threshold."""
    true = [one for one in judged if not one.truth.adherent]
    flagged = [one for one in judged if not one.verdict]
    hits = sum(not one.truth.adherent for one in flagged)
    return Verdicts(
        len(true) / len(judged) if judged else None,
        len(flagged) / len(judged) if judged else None,
        hits / len(flagged) if flagged else None,
        hits / len(true) if true else None,
    )


def rmse(
    judged: Sequence[Judged], predicted: Callable[[Judged], float], column: str
) -> float | None:
    """Root mean square error of a predicted ratio against a published one."""
    if not judged:
        return None
    return math.sqrt(fmean((predicted(one) - one.row[column]) ** 2 for one in judged))


def constant_rmse(judged: Sequence[Judged], column: str) -> float | None:
    """Error of always predicting the mean of these rows: the standard deviation."""
    if not judged:
        return None
    mean = fmean(one.row[column] for one in judged)
    return rmse(judged, lambda _: mean, column)


def f1(found: int, predicted: int, true: int) -> float | None:
    """F1 from counts; undefined where nothing was predicted and nothing is true."""
    return 2 * found / (predicted + true) if predicted + true else None


def sentence_f1(judged: Sequence[Judged], field: str) -> float | None:
    """F1 over all document sentences of the rows together."""
    found = predicted = true = 0
    for one in judged:
        said = set(getattr(one.reply.answer, f"all_{field}_sentence_keys"))
        right: frozenset[str] = getattr(one.truth, field)
        found += len(said & right)
        predicted += len(said)
        true += len(right)
    return f1(found, predicted, true)


def constant_f1(judged: Sequence[Judged], field: str) -> float | None:
    """F1 of calling every document sentence a yes."""
    true = sum(len(getattr(one.truth, field)) for one in judged)
    return f1(true, sum(one.sentences for one in judged), true)


# -- tables ---------------------------------------------------------------------------------------

Figure = Callable[[Sequence[Judged]], float | None]


class Column(NamedTuple):
    """A table column: its title, and what it says of a group of rows."""

    title: str
    figure: Figure


def by_subset(judged: Sequence[Judged]) -> dict[str, list[Judged]]:
    """The rows of each subset."""
    return {subset: [one for one in judged if one.subset == subset] for subset in SUBSETS}


def mean_defined(values: Iterable[float | None]) -> float | None:
    """Mean of the defined figures."""
    defined = [value for value in values if value is not None]
    return fmean(defined) if defined else None


def shown(value: float | None) -> str:
    """A figure as a cell."""
    return "n/a" if value is None else f"{value:.3f}".removeprefix("0")


def line(cells: Iterable[object]) -> str:
    """A line of a Markdown table."""
    return f"| {' | '.join(map(str, cells))} |"


def table(judged: Sequence[Judged], columns: Sequence[Column]) -> Iterator[str]:
    """One line a subset, then the mean over subsets and all rows pooled."""
    yield line(["", "rows", *(column.title for column in columns)])
    yield line(["---", *["--:"] * (len(columns) + 1)])
    groups = by_subset(judged)
    for subset, group in groups.items():
        yield line([subset, len(group), *(shown(column.figure(group)) for column in columns)])
    means = [mean_defined(map(column.figure, groups.values())) for column in columns]
    yield line(["mean over subsets", "", *map(shown, means)])
    yield line(["pooled", len(judged), *(shown(column.figure(judged)) for column in columns)])


def comparison(
    judged: Sequence[Judged], published: Iterable[str], own: Figure, other: Callable[[str], Figure]
) -> Iterator[str]:
    """Published columns beside the embedded judge on the very rows where each has a value."""
    pairs = ["mean over subsets", "embedded there", "pooled", "embedded there"]
    yield line(["published column", "rows used", "without value", "subsets", *pairs])
    yield line(["---", *["--:"] * 7])
    for name in published:
        rows_used = [one for one in judged if one.row[name] is not None]
        theirs = other(name)
        groups = [g for g in by_subset(rows_used).values() if theirs(g) is not None]
        counts = [len(rows_used), len(judged) - len(rows_used), len(groups)]
        means = [mean_defined(map(figure, groups)) for figure in (theirs, own)]
        pooled = [figure(rows_used) for figure in (theirs, own)]
        yield line([f"`{name}`", *counts, *map(shown, means + pooled)])


def adherence_section(judged: Sequence[Judged]) -> Iterator[str]:
    """Tables about support."""
    yield "### Adherence: AUROC, higher is better; a record scores the mean of its sentences"
    yield ""

    def own(group: Sequence[Judged]) -> float | None:
        return area(group, lambda one: one.adherence)

    def lowest(group: Sequence[Judged]) -> float | None:
        return area(group, lambda one: min(one.support.values(), default=0.0))

    def other(name: str) -> Figure:
        return lambda group: area(group, lambda one: float(one.row[name]))

    yield from table(
        judged,
        [
            Column("sentence support AUROC", support_area),
            Column("adherence AUROC", own),
            Column("the same, minimum for mean", lowest),
            Column("non-adherent in truth", lambda group: verdicts(group).prevalence),
            Column("flagged at the default threshold", lambda group: verdicts(group).flagged),
            Column("precision", lambda group: verdicts(group).precision),
            Column("recall", lambda group: verdicts(group).recall),
        ],
    )
    yield ""
    published = ["ragas_faithfulness", "trulens_groundedness", "gpt3_adherence"]
    yield from comparison(judged, published, own, other)


def ratio_section(
    judged: Sequence[Judged], name: str, field: str, published: Iterable[str]
) -> Iterator[str]:
    """Tables about relevance or utilization."""
    column = f"{name}_score"
    yield f"### {name.title()}: RMSE of the record's ratio, lower is better; F1 of sentences"
    yield ""

    def own(group: Sequence[Judged]) -> float | None:
        return rmse(group, lambda one: getattr(one, name), column)

    def other(theirs: str) -> Figure:
        return lambda group: rmse(group, lambda one: float(one.row[theirs]), column)

    yield from table(
        judged,
        [
            Column("RMSE", own),
            Column("RMSE of the rows' mean", lambda group: constant_rmse(group, column)),
            Column("sentence F1", lambda group: sentence_f1(group, field)),
            Column("F1 of always yes", lambda group: constant_f1(group, field)),
        ],
    )
    yield ""
    yield from comparison(judged, published, own, other)


def report(judged: Sequence[Judged], cpu_seconds: float, split: str) -> Iterator[str]:
    """The whole report, line by line."""
    sentences = sum(len(one.support) for one in judged)
    yield "## Embedded judge on RAGBench"
    yield ""
    yield f"Command: `{shlex.join(['python', *sys.argv])}`  "
    yield f"Date: {datetime.now(UTC):%Y-%m-%d}, labeler {__version__}, split: {split}  "
    yield (
        f"Rows: {len(judged):,}; response sentences: {sentences:,}; document sentences: "
        f"{sum(one.sentences for one in judged):,}  "
    )
    yield f"Speed: {len(judged) / cpu_seconds:,.0f} records per CPU-second, scores and labels"
    yield ""
    yield from adherence_section(judged)
    yield ""
    yield from ratio_section(
        judged,
        "relevance",
        "relevant",
        ["ragas_context_relevance", "trulens_context_relevance", "gpt3_context_relevance"],
    )
    yield ""
    yield from ratio_section(judged, "utilization", "utilized", ["gpt35_utilization"])


def data_folder(given: Path | None) -> Path:
    """The folder given, else the one of the test data."""
    if given:
        return given
    beside = Path(__file__).resolve().parent.parent.parent / "shared" / "data"
    return Path(os.environ.get("LABELER_TEST_DATA", beside)) / "ragbench"


def main() -> None:
    """Read, label, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data_folder", nargs="?", type=Path)
    parser.add_argument("--split", choices=["test", "development", "all"], default="all")
    options = parser.parse_args()
    folder = data_folder(options.data_folder)
    if not folder.is_dir():
        parser.error(f"no RAGBench rows in {folder}; name the folder that holds covidqa.jsonl.gz")
    chosen = list(rows(folder, options.split))
    examples = [keyed(row) for row in chosen]
    replies, cpu_seconds = asyncio.run(label_all(examples))
    judged = [
        Judged(row, truth_of(row, example), reply)
        for row, example, reply in zip(chosen, examples, replies, strict=True)
    ]
    print("\n".join(report(judged, cpu_seconds, options.split)))


if __name__ == "__main__":
    main()
