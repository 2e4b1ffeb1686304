"""The worked examples of the documents that define the metrics, with their figures.

Each label is the one that a careful person would give to the document's example; only counts and
keys matter, so the sentences are placeholders. Where a document's own arithmetic slips, the slip
is named and the right figure stands next to it. To add an example, write its label down and a line
in ``_from_labels``; figures that come from no label stand in ``_of_questions`` and ``_of_scores``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from labeler.calculators import METRICS, Ratio, tally
from labeler.labels.record import LabelRecord
from labeler.plugins.scores.criteria import CRITERIA
from labeler.plugins.scores.records import ScoreAnswer, ScoreRecord
from labeler.plugins.similarity.embedders import Vector, cosine
from labeler.plugins.similarity.records import mean_cosine
from labeler.sentences.example import document_key
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


# -- the metric guides in the terms of DeepEval ---------------------------------------------------

_SILENT = {"a": ["general"]}
"""Where the document gives no response, one that says nothing."""

RANKED_NODES = record(
    documents=[1, 1, 3, 3, 3],
    relevant=["1a", "2a", "2b", "2c"],
    utilized=[],
    support=_SILENT,
)
"""Five nodes, of which the second and the third answer the question."""

COUNTED_STATEMENTS = record(
    documents=[1, 1, 3, 3, 3],
    relevant=[document_key(node, sentence) for node in (2, 3, 4) for sentence in range(3)],
    utilized=[],
    support=_SILENT,
)
"""Five nodes of 11 statements, all 9 of the last three relevant. The guide called two of these
nodes irrelevant in the example above."""

EXPECTED_OUTPUT = record(
    documents=[1, 1],
    answer=reference_output(
        [],
        [expects(["1a"], claim="what the letters stand for"), expects(claim="what it is used for")],
        relevant=["1a"],
        silent=["a"],
    ),
)
"""An expected output of two statements, one of them in the second node; no response is given."""

TRUE_ANSWER = record(
    documents=[3, 3, 3],
    answer=claims_output(
        [says("a", ["0a"], claim="what it does"), says("b", ["0b"], claim="where it is used")],
        relevant=["0a", "0b"],
    ),
)
"""A response of two claims that both follow from the first node."""

CONTRADICTED_NODES = record(
    documents=[3, 3],
    answer=claims_output([says("a", ["0a"]), says("a", ["0b"])], relevant=["0a", "0b"]),
)
"""The same two claims in one sentence, over two nodes of which neither says otherwise."""

# -- the generator guide in the terms of RAGAS ----------------------------------------------------

SUPER_BOWL = record(
    documents=[1],
    answer=claims_output(
        [says("a", ["0a"], claim="the date"), says("a", against=["0a"], claim="in Florida")],
        relevant=["0a"],
    ),
)
CAPITAL_FLORIDA = record(
    documents=[2],
    answer=claims_output([says("a", against=["0b"], claim="is Florida")], relevant=["0b"]),
)
CAPITAL_BRASILIA = record(
    documents=[1],
    answer=claims_output(
        [
            says("a", claim="is Brasília"),
            says("b", claim="replaced Rio in 1960"),
            says("c", claim="what Florida is", on_topic=False),
        ]
    ),
)
"""Three statements on a question about a capital; no context is given."""

MONA_LISA = record(
    documents=[3],
    answer=reference_output(
        [right("a", ["0a"], claim="by Leonardo"), wrong("a", ["0c"], claim="15th century")],
        [expects(["0a"], found=True, claim="by Leonardo"), expects(claim="16th century")],
        relevant=["0a", "0b", "0c"],
    ),
)
JANE_EYRE = record(
    documents=[1, 1],
    answer=reference_output(
        [
            wrong("a", against=["0a"], claim="Brontë wrote the novel"),
            wrong("a", ["1a"], claim="Brontë is known for another"),
        ],
        [expects(["0a"], claim="Austen wrote the novel")],
        relevant=["0a"],
    ),
)
"""The second claim is true, and incorrect in the sense that the reference does not entail it."""

# -- the labeling guide of TRACe ------------------------------------------------------------------

_TWELVE = [document_key(document, sentence) for document in range(3) for sentence in range(4)]

TWELVE_OF_THIRTY = record(
    documents=[10, 10, 10], relevant=_TWELVE, utilized=_TWELVE[:8], support=_SILENT
)
SEVEN_AND_FOUR = record(
    documents=[2, 3, 2, 1],
    relevant=["0a", "0b", "1a", "1c", "2a", "2b", "3a"],
    utilized=["0a", "0b", "1c", "2a"],
    support=_SILENT,
)
GROUNDED = record(documents=[1, 2, 2], support={"a": ["0a"], "b": ["1b"], "c": ["2a", "2b"]})
ONE_INVENTED = record(documents=[1, 1, 2], support={"a": ["0a"], "b": [], "c": ["2a", "2b"]})
TWO_SENTENCES = record(
    documents=[2, 2],
    relevant=["0a", "0b", "1a"],
    utilized=["0a", "1a", "1b"],
    support={"a": ["0a", "1a"], "b": []},
)
"""The guide's output says ``overall_supported`` although its second sentence is not supported."""

THREE_SENTENCES = record(
    documents=[3, 2, 2],
    relevant=["0a", "0b", "1a", "1b"],
    utilized=["0a", "0b", "1a", "1b"],
    support={"a": ["0a", "0b"], "b": ["1a"], "c": []},
)


def _ratio(labeled: LabelRecord, metric: str) -> Ratio:
    return METRICS[metric].compute(tally(labeled))


def _value(labeled: LabelRecord, metric: str) -> float:
    value = _ratio(labeled, metric).value
    return float("nan") if value is None else value


def _numerator(labeled: LabelRecord, metric: str) -> float:
    return float(_ratio(labeled, metric).numerator or Fraction())


def _from_labels() -> Iterator[tuple[str, str, LabelRecord, str, str]]:
    """Document, example, label, metric, printed figure."""
    guide = LONG_GUIDE
    yield guide, "nodes 2 and 3 of 5", RANKED_NODES, "context_precision", "0.5833"
    for guide in (LONG_GUIDE, SHORT_GUIDE):
        yield guide, "expected output", EXPECTED_OUTPUT, "context_recall", "0.5"
        yield guide, "9 of 11 statements", COUNTED_STATEMENTS, "context_relevancy", "0.8182"
        yield guide, "two statements", TRUE_ANSWER, "answer_relevancy", "1.0"
        yield guide, "two claims", TRUE_ANSWER, "faithfulness:claim", "1.0"
        yield guide, "two contexts", CONTRADICTED_NODES, "hallucination_contexts", "0.0"
    guide = GENERATOR_GUIDE
    yield guide, "Super Bowl", SUPER_BOWL, "faithfulness:claim", "0.5"
    yield guide, "capital Florida", CAPITAL_FLORIDA, "hallucination_rate:claim", "1"
    yield guide, "capital Brasília", CAPITAL_BRASILIA, "answer_relevancy", "0.67"
    yield guide, "Mona Lisa", MONA_LISA, "noise_sensitivity_relevant", "0.5"
    yield guide, "Jane Eyre", JANE_EYRE, "noise_sensitivity_irrelevant", "0.5"
    guide = TRACE
    yield guide, "12 of 30 relevant", TWELVE_OF_THIRTY, "relevance", "0.40"
    yield guide, "8 of 12 used", TWELVE_OF_THIRTY, "utilization:capstone", "0.67"
    yield guide, "4 of 7 covered", SEVEN_AND_FOUR, "completeness:capstone", "0.57"
    yield guide, "three supported", GROUNDED, "adherence:capstone", "1.0"
    yield guide, "one invented", ONE_INVENTED, "adherence:capstone", "0.0"
    for example, labeled, four in (
        ("two sentences", TWO_SENTENCES, ("0.15", "1.0", "0.67", "0.0")),
        ("complete", THREE_SENTENCES, ("0.20", "1.0", "1.0", "0.0")),
    ):
        for name, printed in zip(_FOUR, four, strict=True):
            yield guide, example, labeled, f"{name}:capstone", printed
    yield guide, "complete", THREE_SENTENCES, "trace_mean:capstone", "0.55"


_FOUR = ("relevance", "utilization", "completeness", "adherence")


def _apart() -> Iterator[Figure]:
    """Figures of labels that the documents get wrong, and one that is a part of a metric."""
    yield Figure(
        LONG_GUIDE,
        "nodes 2 and 3 of 5",
        "context_precision, sum of terms",
        "1.1667",
        _numerator(RANKED_NODES, "context_precision"),
    )
    yield Figure(
        TRACE,
        "12 of 30 relevant",
        "relevance:capstone",
        "0.40",
        _value(TWELVE_OF_THIRTY, "relevance:capstone"),
        slip="its own code divides by 20, whatever the number of sentences",
        correct="0.60",
    )
    four = [_value(THREE_SENTENCES, f"{name}:capstone") for name in _FOUR]
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
        _numerator(CAPITAL_FLORIDA, "faithfulness:claim"),
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
        Figure(source, example, metric, printed, _value(labeled, metric))
        for source, example, labeled, metric, printed in _from_labels()
    ]
    found += [*_apart(), *_of_questions(), *_of_scores()]
    return sorted(found, key=lambda figure: _SOURCES.index(figure.source))


_SOURCES = (SHORT_GUIDE, LONG_GUIDE, GENERATOR_GUIDE, TRACE, RUBRIC)


def labels() -> dict[str, LabelRecord]:
    """The label of every example that has one, by the example's name."""
    return {example: labeled for _, example, labeled, _, _ in _from_labels()}
