"""Compare the embedded judge with people, with and without the conversation before a question.

    python benchmarks/mtrag_history.py [FILE] [--write docs/measured/embedded_judge.md]

FILE is MTRAG's ``human_evaluations.json.gz``, see ``mtrag_people``; it is read as ``labeler label``
reads it. Answers to first questions are left out. People's word on an answer is the median of
their ratings of its faithfulness.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import NamedTuple

import labeler
from judge_figures import area
from labeler.calculators.agreement import Pattern
from labeler.calculators.rater_agreement import FieldRatings
from labeler.labels.record import LabelRecord
from labeler.sentences.example import Example
from mtrag_people import CUTS, line, mtrag_file, shown

START, END = "<!-- figures -->", "<!-- end figures -->"
METRICS = ("adherence", "adherence_fraction", "adherence_score", "supported_by_history")


class Judged(NamedTuple):
    """An answer with people's word and the judge's.

    Attributes:
        rating: median of people's ratings, 1 to 4.
        adherent: the judge's adherence, 0 or 1.
        score: the judge's probability of it, or the share of supported sentences.
        by_history: share of sentences that turns support; ``None`` without turns.
    """

    rating: float
    adherent: float
    score: float
    by_history: float | None


def follow_ups(path: Path) -> list[Example]:
    """Return the answers that follow earlier turns, with people's ratings as metadata."""
    read = (row.content for row in labeler.open_rows(path))
    return [one for one in read if isinstance(one, Example) and one.history]


def judge(answers: Sequence[Example]) -> list[Judged]:
    """Label answers in memory; those without a label or a value are left out."""
    store = labeler.MemoryStore()
    found = []
    for answer, record in zip(
        answers, labeler.iter_labels(answers, judge="embedded", store=store), strict=True
    ):
        if not isinstance(record, LabelRecord):
            continue
        (row,) = labeler.metrics([record], METRICS)
        adherent, share, score, by_history = (row.metrics[name].value for name in METRICS)
        if adherent is not None and share is not None:
            said = answer.metadata["annotations"]["faithfulness"].values()
            rating = median(int(one["value"]) for one in said)
            found.append(Judged(rating, adherent, share if score is None else score, by_history))
    return found


def report(path: Path) -> Iterator[str]:
    """The table, line by line."""
    titles = ["turns", "people's yes", "answers", "agree", "judge says yes", "kappa"]
    yield line([*titles, "AUROC of the score", "`supported_by_history`"])
    yield line(["---", *["--:"] * 7])
    answers = follow_ups(path)
    without = [answer.model_copy(update={"history": None}) for answer in answers]
    for turns, rows in (("hidden", without), ("shown", answers)):
        judged = judge(rows)
        for cut in CUTS:
            yield line([turns, f"≥ {cut}", *figures(judged, cut)])


def figures(judged: Sequence[Judged], cut: int) -> list[object]:
    """Agreement with people at a cut."""
    pairs: Counter[Pattern] = Counter((one.adherent, float(one.rating >= cut)) for one in judged)
    found = FieldRatings(pairs).agreement("faithful")
    auroc = area((one.score, one.rating >= cut) for one in judged)
    shares = [one.by_history for one in judged if one.by_history is not None]
    numbers = [found.raw, found.mean_a, found.by_name["kappa"].value, auroc]
    return [found.units, *map(shown, numbers), shown(fmean(shares) if shares else None)]


def main() -> None:
    """Measure, and print or write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("file", nargs="?", type=Path, default=mtrag_file())
    parser.add_argument("--write", type=Path, metavar="PAGE", help="page with the figures' markers")
    options = parser.parse_args()
    if not options.file.is_file():
        parser.exit(0, f"no {options.file}; name MTRAG's human_evaluations.json.gz\n")
    table = "\n".join(report(options.file))
    if options.write is None:
        print(table)
        return
    page = options.write.read_text(encoding="utf-8")
    before, _, rest = page.partition(START)
    _, _, after = rest.partition(END)
    options.write.write_text(f"{before}{START}\n{table}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
