"""All figures of docs/embedded_judge.md: RAGBench's test rows, and people's ratings in MTRAG.

    python benchmarks/embedded.py [--write docs/embedded_judge.md]

Scores are what the metrics return. Nothing was chosen on the test rows, nor on the second half of
MTRAG's conversations. ``emanual`` stands apart: its test rows share documents with training rows.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import NamedTuple

import labeler
from judge_figures import area
from judges import ask, line, shown, split_of, true_labels
from labeler.labeling.failures import record_or_failure
from labeler.labeling.options import LabelOptions
from labeler.labeling.tasks import label_tasks
from labeler.labels.record import LabelRecord
from labeler.sentences.citations import find_markers
from mtrag_people import Answer, mtrag_file, read_answers
from ragbench_data import ragbench_files, ragbench_folder

METRICS = ("adherence", "adherence_score", "relevance", "utilization")
EXPECTED = ("relevance:expected", "utilization:expected")
SHOWN = 12
START, END = "<!-- figures -->", "<!-- end figures -->"


class Row(NamedTuple):
    """A record of people or of GPT-4, and what the judge says of it.

    Attributes:
        group: its data set.
        adherent: true if the response is supported in truth.
        truth: the published label; ``None`` for MTRAG.
        judged: the judge's record.
        values: the metrics of the judge's record.
    """

    group: str
    adherent: bool
    truth: LabelRecord | None
    judged: LabelRecord
    values: dict[str, float | None]


Rows = Sequence[Row]


def measured(judged: LabelRecord) -> dict[str, float | None]:
    """Return the metrics of a record."""
    (row,) = labeler.metrics([judged], [*METRICS, *EXPECTED])
    return {name: ratio.value for name, ratio in row.metrics.items()}


def ragbench(model: str) -> tuple[list[Row], float]:
    """Label the test rows; return them and the CPU seconds of the judge."""
    truth = [
        one
        for one in true_labels(ragbench_files(ragbench_folder()), "test")
        if isinstance(one, LabelRecord) and split_of(one) == "test"
    ]
    judge = labeler.EmbeddedJudge(model=model)
    tasks = label_tasks(judge, LabelOptions())
    requests = [tasks.keyed_task(one.example) for one in truth]
    replies, seconds = asyncio.run(ask(judge, requests))
    rows = []
    for one, request, reply in zip(truth, requests, replies, strict=True):
        judged = record_or_failure(request, reply)
        if isinstance(judged, LabelRecord):
            group = str(one.example.metadata["dataset_name"]).rsplit("_", 1)[0]
            adherent = one.label.overall_supported
            rows.append(Row(group, adherent, one, judged, measured(judged)))
    return rows, seconds


def half_of(answer: Answer) -> str:
    """Return the half of an answer's conversation: ``thresholds`` or ``unread``."""
    conversation = str(answer.row["id"]).partition("<::>")[0]
    odd = int(hashlib.sha256(conversation.encode()).hexdigest(), 16) % 2
    return "MTRAG, unread half" if odd else "MTRAG, half for thresholds"


def mtrag(model: str) -> list[Row]:
    """Label MTRAG's answers; people's median faithfulness of 3 or more is a yes."""
    answers = read_answers(mtrag_file())
    found = labeler.iter_labels(
        [one.row for one in answers], judge=f"embedded:{model}", store=labeler.MemoryStore()
    )
    return [
        Row(half_of(answer), median(answer.ratings) >= 3, None, one, measured(one))  # noqa: PLR2004
        for answer, one in zip(answers, found, strict=True)
        if isinstance(one, LabelRecord)
    ]


def groups_of(rows: Rows) -> Iterator[tuple[str, Rows]]:
    """Yield the rows of each data set, then those of all, without and with emanual."""
    names = dict.fromkeys(row.group for row in rows)
    for name in names:
        yield name, [row for row in rows if row.group == name]
    if "emanual" in names:
        yield "all but emanual", [row for row in rows if row.group != "emanual"]
        yield "all", rows


def auroc(rows: Rows, name: str) -> float | None:
    """AUROC of a metric for adherence; rows without a value are left out."""
    return area((value, row.adherent) for row in rows if (value := row.values[name]) is not None)


def rmse(rows: Rows, name: str, column: str) -> float:
    """Error of a metric against a published column."""
    errors = [
        (row.values[name] or 0) - row.truth.example.metadata["published"][column]
        for row in rows
        if row.truth
    ]
    return math.sqrt(fmean(error**2 for error in errors))


def sentences(rows: Rows) -> Iterator[tuple[str, str, str, float, bool]]:
    """Yield record id, key, text, probability and truth of each response sentence."""
    for row in rows:
        if row.truth is None or row.judged.scores is None:
            continue
        texts = {one.key: one.text for one in row.truth.example.response}
        for entry in row.truth.label.sentence_support_information:
            key = entry.response_sentence_key
            if key in texts:
                score = row.judged.scores.support[key]
                yield row.truth.id, key, texts[key], score, entry.fully_supported


def quality_table(rows: Rows, old: Rows) -> Iterator[str]:
    """AUROC and errors by subset, with version 1 next to them."""
    titles = [
        *("rows", "`adherence_score` AUROC", "sentence AUROC", "`adherence` AUROC"),
        *("lexical-1 `adherence`", "`relevance:expected` RMSE", "lexical-1 `relevance`"),
        *("`utilization:expected` RMSE", "lexical-1 `utilization`"),
    ]
    yield line(["test rows of", *titles])
    yield line(["---", *["--:"] * len(titles)])
    for (name, part), (_, before) in zip(groups_of(rows), groups_of(old), strict=True):
        cells = [
            auroc(part, "adherence_score"),
            area((score, truth) for *_, score, truth in sentences(part)),
            auroc(part, "adherence"),
            auroc(before, "adherence"),
            rmse(part, "relevance:expected", "relevance_score"),
            rmse(before, "relevance", "relevance_score"),
            rmse(part, "utilization:expected", "utilization_score"),
            rmse(before, "utilization", "utilization_score"),
        ]
        yield line([name, len(part), *map(shown, cells)])


def verdict_table(rows: Rows) -> Iterator[str]:
    """The verdicts at the one threshold, on each data set: how it transfers."""
    titles = ["rows", "not supported in truth", "flagged", "precision", "recall", "AUROC"]
    yield line(["data set", *titles])
    yield line(["---", *["--:"] * len(titles)])
    for name, part in groups_of(rows):
        wrong = [not row.adherent for row in part]
        flagged = [row.values["adherence"] == 0 for row in part]
        hits = sum(a and b for a, b in zip(wrong, flagged, strict=True))
        cells = [
            fmean(wrong),
            fmean(flagged),
            hits / sum(flagged) if any(flagged) else None,
            hits / sum(wrong) if any(wrong) else None,
            auroc(part, "adherence_score"),
        ]
        yield line([name, len(part), *map(shown, cells)])


def citing_table(rows: Rows, threshold: float) -> Iterator[str]:
    """Sentence figures by whether a sentence has a citation marker."""
    yield line(["sentences", "number", "supported in truth", "called so", "AUROC"])
    yield line(["---", *["--:"] * 4])
    tests: dict[str, Callable[[str], bool]] = {
        "with a marker": lambda text: bool(find_markers(text)),
        "without": lambda text: not find_markers(text),
    }
    for name, test in tests.items():
        pairs = [(score, truth) for _, _, text, score, truth in sentences(rows) if test(text)]
        if not pairs:
            yield line([name, 0, *["n/a"] * 3])
            continue
        cells = [fmean(t for _, t in pairs), fmean(s >= threshold for s, _ in pairs), area(pairs)]
        yield line([name, len(pairs), *map(shown, cells)])


def worst(rows: Rows) -> Iterator[str]:
    """The surest false alarms and misses, by row and sentence; their texts stay in the data."""
    yield line(["error", "record", "sentence", "probability"])
    yield line(["---", "---", "---", "--:"])
    found = sorted(sentences(rows), key=lambda one: one[3])
    alarms = [one for one in found if one[4]][: SHOWN // 2]
    misses = [one for one in reversed(found) if not one[4]][: SHOWN // 2]
    for kind, some in (("false alarm", alarms), ("miss", misses)):
        for name, key, _, score, _ in some:
            yield line([kind, f"`{name}`", key, shown(score)])


def report() -> Iterator[str]:
    """All figures, line by line."""
    rows, seconds = ragbench("lexical-2")
    old, _ = ragbench("lexical-1")
    count = sum(len(row.judged.example.response) for row in rows)
    threshold = labeler.EmbeddedJudge(model="lexical-2").spec.support_threshold
    yield "Ranking, and errors of ratios, against published labels:\n"
    yield from quality_table(rows, old)
    yield "\nVerdicts at the default threshold, here and on people's ratings (MTRAG):\n"
    yield from verdict_table(rows)
    yield from list(verdict_table(mtrag("lexical-2")))[2:]
    yield "\nSentences that cite, and sentences that do not:\n"
    yield from citing_table(rows, threshold)
    yield f"\nThe surest errors, of {count:,} sentences:\n"
    yield from worst(rows)
    yield (
        f"\nSpeed: {1000 * seconds / count:.2f} ms of CPU time a response sentence, "
        f"{len(rows) / seconds:,.0f} records a second."
    )


def main() -> None:
    """Measure, and print or write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--write", type=Path, metavar="PAGE", help="page with the figures' markers")
    options = parser.parse_args()
    figures = "\n".join(report())
    if options.write is None:
        print(figures)
        return
    page = options.write.read_text(encoding="utf-8")
    before, _, rest = page.partition(START)
    _, _, after = rest.partition(END)
    options.write.write_text(f"{before}{START}\n{figures}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
