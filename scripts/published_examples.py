"""The worked examples of the documents that define the metrics: published next to computed.

    python scripts/published_examples.py

Each label is the one that a careful person would give to the document's example; only counts and
keys matter, so the sentences are placeholders. Where a document's own arithmetic slips, the slip
is named and the right figure stands next to it. To add an example, write its label and its figures
into ``published_examples.toml``; figures that come from no label stand in ``_of_questions`` and
``_of_scores``. Exits with 1 where a figure differs that is not known for the document's own slip.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from labeler.calculators import METRICS, Ratio, tally
from labeler.labels.answers import ComparedClaim
from labeler.labels.record import LabelRecord
from labeler.plugins.scores.criteria import CRITERIA
from labeler.plugins.scores.records import ScoreAnswer, ScoreRecord
from labeler.plugins.similarity.embedders import Vector, cosine
from labeler.plugins.similarity.records import mean_cosine
from support.labeled import claims_output, expects, record, reference_output, right, says, wrong
from support.samples import keyed_example, signature

TRACE = "GPT Labeling Approach (RAG capstone, TRACe)"
SHORT_GUIDE = "Guide to RAG System Evaluation Metrics (DeepEval)"
LONG_GUIDE = "Comprehensive Guide to LLM & RAG Metrics (DeepEval)"
GENERATOR_GUIDE = "RAG Generator Evaluation Metrics (RAGAS)"
RUBRIC = "RAG metrics spec (omk)"


@dataclass(frozen=True)
class Figure:
    """One figure that a document prints, and what is computed in its place.

    Attributes:
        source: the document.
        example: which of its examples.
        metric: what it is: a metric's id, or the part of one that is named after it.
        printed: the figure as it is printed.
        computed: what comes out here.
        slip: why the printed figure is wrong; empty where it is right.
        correct: the right figure to as many digits, where the printed one is wrong.
    """

    source: str
    example: str
    metric: str
    printed: str
    computed: float
    slip: str = ""
    correct: str = ""

    @property
    def shown(self) -> str:
        """What is computed, to as many digits as are printed."""
        digits = len(self.printed.partition(".")[2])
        return f"{self.computed:.{digits}f}"

    @property
    def verdict(self) -> str:
        """``equal``, ``slip`` where the document is known to be wrong, else ``differs``."""
        if self.slip:
            return "slip" if self.shown == self.correct != self.printed else "differs"
        return "equal" if self.shown == self.printed else "differs"


# -- examples with a label -------------------------------------------------------------------------


def _label(example: Mapping[str, Any]) -> LabelRecord:
    """Return the label of an example; where the document gives no response, one says nothing."""
    documents, relevant = example["documents"], example.get("relevant", [])
    if "reference" in example:
        answer = reference_output(
            [_compared(claim) for claim in example["claims"]],
            [expects(**claim) for claim in example["reference"]],
            relevant=relevant,
            silent=example.get("silent", []),
        )
        return record(documents=documents, answer=answer)
    if "claims" in example:
        claims = [says(**claim) for claim in example["claims"]]
        return record(documents=documents, answer=claims_output(claims, relevant=relevant))
    if "support" in example and "relevant" not in example:  # what supports is relevant
        return record(documents=documents, support=example["support"])
    support, utilized = example.get("support", {"a": ["general"]}), example.get("utilized", [])
    return record(documents=documents, support=support, relevant=relevant, utilized=utilized)


def _compared(claim: Mapping[str, Any]) -> ComparedClaim:
    """Return a claim of the response, with the reference's verdict on it."""
    fields = dict(claim)
    return right(**fields) if fields.pop("correct", False) else wrong(**fields)


_EXAMPLES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))["examples"]


@cache
def labels() -> dict[str, LabelRecord]:
    """Return the label of every example that has one, by the example's name."""
    found: dict[str, LabelRecord] = {}
    for one in _EXAMPLES:
        found[one["name"]] = found[one["like"]] if "like" in one else _label(one)
    return found


def _ratio(labeled: LabelRecord, metric: str) -> Ratio:
    return METRICS[metric].compute(tally(labeled))


def _value(labeled: LabelRecord, metric: str) -> float:
    value = _ratio(labeled, metric).value
    return float("nan") if value is None else value


def _numerator(labeled: LabelRecord, metric: str) -> float:
    return float(_ratio(labeled, metric).numerator or Fraction())


_FOUR = ("relevance", "utilization", "completeness", "adherence")


def _apart() -> Iterator[Figure]:
    """Figures of labels that the documents get wrong, and one that is a part of a metric."""
    yield Figure(
        LONG_GUIDE,
        "nodes 2 and 3 of 5",
        "context_precision, sum of terms",
        "1.1667",
        _numerator(labels()["nodes 2 and 3 of 5"], "context_precision"),
    )
    yield Figure(
        TRACE,
        "12 of 30 relevant",
        "relevance:capstone",
        "0.40",
        _value(labels()["12 of 30 relevant"], "relevance:capstone"),
        slip="its own code divides by 20, whatever the number of sentences",
        correct="0.60",
    )
    four = [_value(labels()["complete"], f"{name}:capstone") for name in _FOUR]
    yield Figure(
        TRACE,
        "complete",
        "completeness <= utilization <= relevance",
        "1",
        float(four[2] <= four[1] <= four[0]),
        slip="its own example has 1.0, 1.0, 0.20",
        correct="0",
    )
    yield Figure(
        GENERATOR_GUIDE,
        "capital Florida",
        "faithfulness:claim, claims supported",
        "1",
        _numerator(labels()["capital Florida"], "faithfulness:claim"),
        slip="the claim it counts is the unsupported one",
        correct="0",
    )


# -- generated questions --------------------------------------------------------------------------

_QUESTION: Vector = (0.9, 0.4, 0.1)
_WRITTEN: tuple[Vector, ...] = ((0.85, 0.38, 0.09), (0.88, 0.39, 0.11), (0.87, 0.41, 0.10))
"""The generator guide's embeddings. It goes on with cosines that it calls hypothetical."""


def _likeness(*cosines: float | None) -> float:
    value = mean_cosine(cosines).value
    return float("nan") if value is None else value


def _of_questions() -> Iterator[Figure]:
    """Figures of questions that were written for a response."""
    metric = "answer_relevancy_similarity"
    for guide in (SHORT_GUIDE, LONG_GUIDE):
        yield Figure(
            guide,
            "cosines .92 .91 .93",
            metric,
            "0.9207",
            _likeness(0.92, 0.91, 0.93),
            slip="the three add up to 2.76, and a third of that is 0.92",
            correct="0.9200",
        )
    guide = GENERATOR_GUIDE
    yield Figure(guide, "cosines .98 .99 .97", metric, "0.98", _likeness(0.98, 0.99, 0.97))
    yield Figure(guide, "cosines .2 .1 .15", metric, "0.15", _likeness(0.2, 0.1, 0.15))
    yield Figure(
        guide,
        "its own vectors",
        metric,
        "0.98",
        _likeness(*(cosine(one, _QUESTION) for one in _WRITTEN)),
        slip="it calls its cosines hypothetical: those of its vectors are all above 0.999",
        correct="1.00",
    )


# -- the rubric of omk ----------------------------------------------------------------------------

_STRICT = 4
"""The threshold that the document advises for production."""


def _of_scores() -> Iterator[Figure]:
    """Thresholds of the rubric: what passes by default, and what in production."""
    for name, criterion in CRITERIA.items():
        threshold = float(criterion.threshold)
        yield Figure(RUBRIC, "default threshold", name, "3", threshold)
        for score, printed in ((3, "1"), (2, "0")):
            passed = _passes(name, score, threshold)
            yield Figure(RUBRIC, f"score {score}, default", f"{name}:pass", printed, passed)
    for score, printed in ((4, "1"), (3, "0")):
        passed = _passes("rubric_faithfulness", score, _STRICT)
        yield Figure(
            RUBRIC, f"score {score}, production", "rubric_faithfulness:pass", printed, passed
        )


def _passes(criterion: str, score: int, threshold: float) -> float:
    """1 where a score passes, else 0."""
    scored = ScoreRecord(
        key="0" * 64,
        example=keyed_example(),
        criterion=CRITERIA[criterion].model_copy(update={"threshold": threshold}),
        answer=ScoreAnswer(reasoning="because", score=score),
        signature=signature(),
    )
    return float(scored.criterion.passes(scored.value))


def figures() -> list[Figure]:
    """Every figure of every document, document by document."""
    found = [
        Figure(
            _SOURCES[source], one["name"], metric, printed, _value(labels()[one["name"]], metric)
        )
        for one in _EXAMPLES
        for source, metric, printed in one["figures"]
    ]
    found += [*_apart(), *_of_questions(), *_of_scores()]
    order = list(_SOURCES.values())
    return sorted(found, key=lambda figure: order.index(figure.source))


_SOURCES = {
    "short": SHORT_GUIDE,
    "long": LONG_GUIDE,
    "generator": GENERATOR_GUIDE,
    "trace": TRACE,
    "rubric": RUBRIC,
}


_HEAD = ("document", "example", "metric", "printed", "computed", "")


def table(rows: Iterable[Figure]) -> str:
    """The figures in columns, each document named once, and under them why slips are slips."""
    shown, previous, slips = [_HEAD], "", []
    for row in rows:
        source = "" if row.source == previous else row.source
        previous = row.source
        shown.append((source, row.example, row.metric, row.printed, row.shown, row.verdict))
        if row.slip:
            slips.append(f"slip: {row.metric} of {row.example!r}: {row.slip}")
    return "\n".join([*_aligned(shown), "", *dict.fromkeys(slips)])


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def main() -> int:
    """Print the table."""
    found = figures()
    print(table(found))
    counts = {word: sum(f.verdict == word for f in found) for word in ("equal", "slip", "differs")}
    print("; ".join(f"{count} {word}" for word, count in counts.items()))
    return 1 if counts["differs"] else 0


if __name__ == "__main__":
    sys.exit(main())
