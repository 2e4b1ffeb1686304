"""All figures of docs/measured/embedded_judge.md: RAGBench's test rows, and people's ratings.

    python benchmarks/embedded.py [--write docs/measured/embedded_judge.md]
    python benchmarks/embedded.py --show-errors    # the surest errors with their texts

Scores are what the metrics return. Nothing was chosen on the test rows, nor on the second half of
MTRAG's conversations. ``emanual`` stands apart: its test rows share documents with training rows.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean, median
from typing import NamedTuple

import labeler
from judge_figures import area
from judges import ask, line, shown, split_of, true_labels
from labeler.judges.embedded.features import describe, load_weights
from labeler.labeling.failures import record_or_failure
from labeler.labeling.options import LabelOptions
from labeler.labeling.tasks import label_tasks
from labeler.labels.answers import SPECIAL_SUPPORT
from labeler.labels.record import LabelRecord
from labeler.sentences.citations import find_markers
from labeler.sentences.example import Sentence, position
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


def test_rows() -> list[LabelRecord]:
    """The published labels of the test rows."""
    return [
        one
        for one in true_labels(ragbench_files(ragbench_folder()), "test")
        if isinstance(one, LabelRecord) and split_of(one) == "test"
    ]


def with_markers(record: LabelRecord) -> LabelRecord:
    """Plant "[n]" at the end of each sentence, for each document of its published support."""
    named = {
        one.response_sentence_key: sorted(
            {
                position(key).document + 1
                for key in one.supporting_sentence_keys
                if key not in SPECIAL_SUPPORT
            }
        )
        for one in record.label.sentence_support_information
    }
    response = tuple(
        replace(one, text="".join([one.text.rstrip(), *(f" [{n}]" for n in named[one.key])]))
        if named.get(one.key)
        else one
        for one in record.example.response
    )
    return record.model_copy(
        update={"example": record.example.model_copy(update={"response": response})}
    )


def labeled(truth: Sequence[LabelRecord]) -> tuple[list[Row], float]:
    """Label rows; return them and the CPU seconds of the judge."""
    judge = labeler.EmbeddedJudge()
    tasks = label_tasks(judge, LabelOptions())
    requests = [tasks.keyed_task(one.example) for one in truth]
    replies, seconds = asyncio.run(ask(judge, requests))
    rows = []
    for one, request, reply in zip(truth, requests, replies, strict=True):
        found = record_or_failure(request, reply)
        if isinstance(found, LabelRecord):
            group = str(one.example.metadata["dataset_name"]).rsplit("_", 1)[0]
            adherent = one.label.overall_supported
            rows.append(Row(group, adherent, one, found, measured(found)))
    return rows, seconds


def half_of(answer: Answer) -> str:
    """Return the half of an answer's conversation: ``thresholds`` or ``unread``."""
    conversation = str(answer.row["id"]).partition("<::>")[0]
    odd = int(hashlib.sha256(conversation.encode()).hexdigest(), 16) % 2
    return "MTRAG, unread half" if odd else "MTRAG, half for thresholds"


def mtrag() -> list[Row]:
    """Label MTRAG's answers; people's median faithfulness of 3 or more is a yes."""
    answers = read_answers(mtrag_file())
    found = labeler.iter_labels(
        [one.row for one in answers], judge="embedded", store=labeler.MemoryStore()
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


class Judged(NamedTuple):
    """A response sentence with its published verdict and the judge's probability."""

    row: Row
    sentence: Sentence
    score: float
    supported: bool


def sentences(rows: Rows) -> Iterator[Judged]:
    """Yield each response sentence that has a published verdict."""
    for row in rows:
        if row.truth is None or row.judged.scores is None:
            continue
        found = {one.key: one for one in row.truth.example.response}
        for entry in row.truth.label.sentence_support_information:
            key = entry.response_sentence_key
            if key in found:
                yield Judged(row, found[key], row.judged.scores.support[key], entry.fully_supported)


def quality_table(rows: Rows) -> Iterator[str]:
    """AUROC and errors by subset."""
    titles = [
        *("rows", "`adherence_score` AUROC", "sentence AUROC", "`adherence` AUROC"),
        *("`relevance:expected` RMSE", "`utilization:expected` RMSE"),
    ]
    yield line(["test rows of", *titles])
    yield line(["---", *["--:"] * len(titles)])
    for name, part in groups_of(rows):
        cells = [
            auroc(part, "adherence_score"),
            area((one.score, one.supported) for one in sentences(part)),
            auroc(part, "adherence"),
            rmse(part, "relevance:expected", "relevance_score"),
            rmse(part, "utilization:expected", "utilization_score"),
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


def citing_table(rows: Rows, planted: Rows, threshold: float) -> Iterator[str]:
    """Sentence figures without markers and with planted ones, by whether a sentence got one."""
    titles = ["number", "supported in truth", "called so", "AUROC"]
    yield line(["sentences", "markers", *titles, "probabilities changed", "verdicts changed"])
    yield line(["---", "---", *["--:"] * 6])
    pairs = list(zip(sentences(rows), sentences(planted), strict=True))
    groups = {
        "that support names": [pair for pair in pairs if find_markers(pair[1].sentence.text)],
        "others": [pair for pair in pairs if not find_markers(pair[1].sentence.text)],
        "all": pairs,
    }
    for name, some in groups.items():
        changed = sum(a.score != b.score for a, b in some)
        turned = sum((a.score >= threshold) != (b.score >= threshold) for a, b in some)
        for kind, counts, place in (("none", ("", ""), 0), ("planted", (changed, turned), 1)):
            part = [pair[place] for pair in some]
            cells = [
                fmean(one.supported for one in part),
                fmean(one.score >= threshold for one in part),
                area((one.score, one.supported) for one in part),
            ]
            yield line([name, kind, len(part), *map(shown, cells), *counts])


def surest_errors(rows: Rows) -> Iterator[tuple[str, Judged]]:
    """The surest false alarms and misses."""
    found = sorted(sentences(rows), key=lambda one: one.score)
    alarms = [one for one in found if one.supported]
    misses = [one for one in reversed(found) if not one.supported]
    for kind, some in (("false alarm", alarms), ("miss", misses)):
        yield from ((kind, one) for one in some[: SHOWN // 2])


def worst(rows: Rows) -> Iterator[str]:
    """The surest errors by row and sentence; their texts stay in the data."""
    yield line(["error", "record", "sentence", "probability"])
    yield line(["---", "---", "---", "--:"])
    for kind, one in surest_errors(rows):
        yield line([kind, f"`{one.row.judged.id}`", one.sentence.key, shown(one.score)])


def texts_of_errors(rows: Rows) -> Iterator[str]:
    """The surest errors with question, sentence and closest document sentence."""
    for kind, one in surest_errors(rows):
        example = one.row.judged.example
        texts = {sentence.key: sentence.text for sentence in example.document_sentences()}
        key = next(iter(describe(example).evidence[one.sentence.key].closest), None)
        yield f"{kind}: {one.row.judged.id}, probability {shown(one.score)}"
        yield f"  question      {example.question!r}"
        yield f"  sentence {one.sentence.key:4} {one.sentence.text!r}"
        yield f"  closest {key or '-':5} {texts[key] if key else '(none)'!r}\n"


def report() -> Iterator[str]:
    """All figures, line by line."""
    truth = test_rows()
    rows, seconds = labeled(truth)
    planted, _ = labeled(list(map(with_markers, truth)))
    count = sum(len(row.judged.example.response) for row in rows)
    threshold = load_weights().thresholds["support"]
    yield "Ranking, and errors of ratios, against published labels:\n"
    yield from quality_table(rows)
    yield "\nVerdicts at the default threshold, here and on people's ratings (MTRAG):\n"
    yield from verdict_table(rows)
    yield from list(verdict_table(mtrag()))[2:]
    yield "\nSentences without markers, and with markers planted from the published support:\n"
    yield from citing_table(rows, planted, threshold)
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
    parser.add_argument("--show-errors", action="store_true", help="print the surest errors only")
    options = parser.parse_args()
    if options.show_errors:
        print(*texts_of_errors(labeled(test_rows())[0]), sep="\n")
        return
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
