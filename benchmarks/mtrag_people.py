"""Compare the embedded judge with people: the faithfulness ratings of MTRAG.

    python benchmarks/mtrag_people.py [FILE]

MTRAG (Katsis and others 2025, arXiv 2501.03468): answers of two models and of people to questions
in conversations, with the passages that were retrieved, each rated by two or three people on a
scale of 1 (no) to 4 (yes) for faithfulness. FILE is its ``human_evaluations.json.gz``; by default
it lies in ``mtrag`` next to the RAGBench rows, or in the folder that ``LABELER_TEST_DATA`` names.

The judge labels every answer in memory, with the whole conversation as the question. People's word
on an answer is the median of their ratings. Two cuts make a yes or no of it: only a full yes is
one (4), or a mostly yes too (3). The judge says yes where its adherence is 1; its score is the
mean support of the answer's sentences.

The last table asks what human labels on some answers tell of all: a random hundred are taken as
judged by people, the others as judged by the judge alone, many times over. People's mean over all
answers, which is known here, is held against each way's interval.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from statistics import correlation, fmean, median
from typing import Any, NamedTuple

import krippendorff

import labeler
from judge_figures import area
from labeler.calculators import METRICS, tally
from labeler.calculators.agreement import Pattern, Ratings
from labeler.calculators.bias_correction import (
    Corrected,
    corrected_proportion,
    plain_mean,
    ppi_mean,
)
from labeler.calculators.rater_agreement import FieldRatings
from labeler.labels.record import LabelRecord
from ragbench_data import ragbench_folder

SCALE = (1, 2, 3, 4)
CUTS = (4, 3)
"""Median ratings from which people's word counts as yes."""
SAMPLE = 100
DRAWS = 500
SEED = 2025


def mtrag_file() -> Path:
    """Where the ratings lie if nobody says."""
    folder = ragbench_folder()
    base = folder.parent if folder.name == "ragbench" else folder
    return base / "mtrag" / "human_evaluations.json.gz"


class Answer(NamedTuple):
    """A rated answer.

    Attributes:
        row: the input row.
        model: who gave the answer.
        ratings: people's faithfulness ratings, 1 to 4.
    """

    row: dict[str, Any]
    model: str
    ratings: tuple[int, ...]


def read_answers(path: Path) -> list[Answer]:
    """Read the rated answers of an evaluation file."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        data = json.load(file)
    texts = {document["document_id"]: document["text"] for document in data["documents"]}
    tasks = {task["task_id"]: task for task in data["tasks"]}
    return [_answer(one, tasks[one["task_id"]], texts) for one in data["evaluations"]]


def _answer(evaluation: dict[str, Any], task: dict[str, Any], texts: dict[str, str]) -> Answer:
    said = evaluation["annotations"]["faithfulness"].values()
    row = {
        "id": f"{evaluation['task_id']}/{evaluation['model_id']}",
        "question": "\n".join(f"{turn['speaker']}: {turn['text']}" for turn in task["input"]),
        "documents": [texts[context["document_id"]] for context in task["contexts"]],
        "response": evaluation["model_response"],
    }
    return Answer(row, evaluation["model_id"], tuple(int(one["value"]) for one in said))


def alpha_among_people(answers: Iterable[Answer]) -> float:
    """Ordinal alpha of the ratings; who rated plays no part in it."""
    counts = [[answer.ratings.count(one) for one in SCALE] for answer in answers]
    return float(
        krippendorff.alpha(value_counts=counts, value_domain=SCALE, level_of_measurement="ordinal")
    )


class Judged(NamedTuple):
    """An answer with people's word and the judge's.

    Attributes:
        model: who gave the answer.
        rating: median of people's ratings.
        adherent: the judge's adherence, 0 or 1.
        score: the judge's mean support of the answer's sentences.
    """

    model: str
    rating: float
    adherent: float
    score: float


def judge(answers: Sequence[Answer]) -> tuple[list[Judged], Counter[str]]:
    """Label the answers; those without a label or a score are counted by reason."""
    found: list[Judged] = []
    left_out: Counter[str] = Counter()
    rows = [answer.row for answer in answers]
    outcomes = labeler.iter_labels(rows, judge="embedded", store=labeler.MemoryStore())
    for answer, outcome in zip(answers, outcomes, strict=True):
        if not isinstance(outcome, LabelRecord):
            left_out[outcome.reason] += 1
            continue
        adherent = METRICS["adherence"].compute(tally(outcome)).value
        support = outcome.scores.support.values() if outcome.scores else ()
        if adherent is None or not support:
            left_out["no_value"] += 1
        else:
            found.append(Judged(answer.model, median(answer.ratings), adherent, fmean(support)))
    return found, left_out


def spearman(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Rank correlation, ties at their mean rank; ``None`` where one side does not vary."""
    first, second = zip(*pairs, strict=True)
    if len(set(first)) == 1 or len(set(second)) == 1:
        return None
    return correlation(_ranks(first), _ranks(second))


def _ranks(values: Sequence[float]) -> list[float]:
    counts = Counter(values)
    rank: dict[float, float] = {}
    below = 0
    for value in sorted(counts):
        rank[value] = below + (counts[value] + 1) / 2
        below += counts[value]
    return [rank[value] for value in values]


# -- means from a sample --------------------------------------------------------------------------

Way = Callable[[Sequence[tuple[float, float]], Sequence[float]], Corrected | None]
"""People's and the judge's verdicts on the sample, and the judge's on the rest, to a mean."""


def _people_only(sample: Sequence[tuple[float, float]], _: Sequence[float]) -> Corrected:
    return plain_mean([mine for mine, _ in sample])


def _judge_only(sample: Sequence[tuple[float, float]], alone: Sequence[float]) -> Corrected:
    return plain_mean([*(theirs for _, theirs in sample), *alone])


def _ppi(sample: Sequence[tuple[float, float]], alone: Sequence[float]) -> Corrected:
    people, judged = zip(*sample, strict=True)
    return ppi_mean(people, judged, alone, is_share=True, random_sample=True)


def _error_corrected(sample: Sequence[tuple[float, float]], alone: Sequence[float]) -> Corrected:
    people, judged = zip(*sample, strict=True)
    return corrected_proportion(people, judged, alone, random_sample=True)


WAYS: dict[str, Way] = {
    "the sample's people alone": _people_only,
    "the judge alone, as it is": _judge_only,
    "PPI++": _ppi,
    "error-corrected": _error_corrected,
}


class Trial(NamedTuple):
    """How one way did over many samples.

    Attributes:
        defined: samples that it had a value for.
        mean: mean of its values.
        error: mean distance of its values from people's mean over all.
        width: mean width of its intervals.
        held: share of its intervals that hold people's mean over all.
    """

    defined: int
    mean: float
    error: float
    width: float
    held: float


def try_way(way: Way, pairs: Sequence[tuple[float, float]], draws: int = DRAWS) -> Trial | None:
    """Take a random sample as judged by people, many times; ``None`` if it never has a value."""
    truth = fmean(mine for mine, _ in pairs)
    generator = random.Random(SEED)  # noqa: S311 - samples, not secrets
    found: list[tuple[float, float, float]] = []
    for _ in range(draws):
        order = generator.sample(pairs, len(pairs))
        mean = way(order[:SAMPLE], [theirs for _, theirs in order[SAMPLE:]])
        if mean is not None and mean.value is not None and mean.interval is not None:
            found.append((mean.value, mean.interval.low, mean.interval.high))
    if not found:
        return None
    return Trial(
        defined=len(found),
        mean=fmean(value for value, _, _ in found),
        error=fmean(abs(value - truth) for value, _, _ in found),
        width=fmean(high - low for _, low, high in found),
        held=fmean(low <= truth <= high for _, low, high in found),
    )


# -- tables ---------------------------------------------------------------------------------------


def line(cells: Iterable[object]) -> str:
    """A line of a Markdown table."""
    return f"| {' | '.join(map(str, cells))} |"


def shown(value: float | None) -> str:
    """A figure as a cell."""
    return "n/a" if value is None else f"{value:.3f}"


def agreement_table(judged: Sequence[Judged]) -> Iterator[str]:
    """Judge against people, for all answers and by who gave them, at each cut."""
    titles = ["people's yes", "answers", "agree", "judge says yes", "people say yes"]
    yield line(["answers of", *titles, "kappa", "AC1", "alpha", "AUROC of the score"])
    yield line(["---", *["--:"] * 9])
    for model in [None, *sorted({one.model for one in judged})]:
        part = [one for one in judged if model in (None, one.model)]
        for cut in CUTS:
            patterns: Counter[Pattern] = Counter(
                (one.adherent, float(one.rating >= cut)) for one in part
            )
            found = FieldRatings(patterns).agreement("faithful")
            auroc = area((one.score, one.rating >= cut) for one in part)
            coefficients = [one.value for one in found.by_name.values()]
            figures = [found.raw, found.mean_a, found.mean_b, *coefficients, auroc]
            yield line([model or "all", f"≥ {cut}", found.units, *map(shown, figures)])


def means_table(judged: Sequence[Judged], cut: int, draws: int = DRAWS) -> Iterator[str]:
    """What a sample tells of all answers, way by way."""
    pairs = [(float(one.rating >= cut), one.adherent) for one in judged]
    yield line(["share of yes by", "mean value", "mean error", "mean width", "holds the truth"])
    yield line(["---", *["--:"] * 4])
    for name, way in WAYS.items():
        tried = try_way(way, pairs, draws)
        if tried is None:
            yield line([name, *["n/a"] * 4])
        else:
            yield line([name, *map(shown, tried[1:])])


def report(answers: Sequence[Answer], draws: int = DRAWS) -> Iterator[str]:
    """The whole report, line by line."""
    rated = Ratings.of((*one.ratings, *[None] * len(SCALE))[: len(SCALE)] for one in answers)
    judged, left_out = judge(answers)
    yield f"## MTRAG, {len(answers)} answers rated by people, and the embedded judge"
    yield ""
    yield (
        f"People among themselves: ordinal alpha {shown(alpha_among_people(answers))} over "
        f"{rated.units} answers, the same rating in {shown(float(rated.raw or 0))} of the pairs  "
    )
    reasons = "; ".join(f"{reason} ({count})" for reason, count in sorted(left_out.items()))
    yield f"Answers without a label: {left_out.total()}{f': {reasons}' if reasons else ''}  "
    rank = spearman([(one.score, one.rating) for one in judged])
    yield f"Spearman's rank correlation of judge's score and people's median: {shown(rank)}"
    yield ""
    yield from agreement_table(judged)
    for cut in CUTS:
        truth = fmean(one.rating >= cut for one in judged)
        yield ""
        yield (
            f"### Yes from {cut}: {shown(truth)} of all answers by people; "
            f"{draws} random samples of {SAMPLE}"
        )
        yield ""
        yield from means_table(judged, cut, draws)


def main() -> None:
    """Read, label, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("file", nargs="?", type=Path, default=mtrag_file())
    options = parser.parse_args()
    if not options.file.is_file():
        parser.exit(0, f"no {options.file}; name MTRAG's human_evaluations.json.gz\n")
    print("\n".join(report(read_answers(options.file))))


if __name__ == "__main__":
    main()
