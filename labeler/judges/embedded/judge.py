"""The embedded judge: a lexical baseline without API key, network or language model.

It compares words. It cannot distinguish a paraphrase from a fabrication, nor a true sentence from
one that rearranges the words of the documents, and it does not replace a language model. It is
deterministic, fast and free: a baseline for other judges, and a way to run everything downstream
without cost. Claims are clauses, see ``labeler.judges.embedded.claims``. Each earlier turn and each
tool output counts as one more document that may support a response.

Two versions label: ``lexical-1`` by a rule whose scores are no probabilities, and ``lexical-2`` by
calibrated probabilities. ``python benchmarks/judges.py`` prints the quality of both.

The thresholds of ``lexical-1`` come from the 2,032 development rows of RAGBench that
``labeler.judges.embedded.scoring`` describes. At the support threshold, the F1 of unsupported
sentences and the F1 of non-adherent records are both within .015 of their best. The relevance
threshold gives the right mean share of relevant sentences, the utilization threshold the best
sentence F1. Those of ``lexical-2`` stand in its weights. Neither suits every data set;
``labeler.judges.embedded.calibration`` finds the support threshold for your own labels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from labeler.catalog import Catalog
from labeler.errors import UsageError
from labeler.judges.embedded.claims import Plain, with_claims, with_conversation
from labeler.judges.embedded.explain import (
    PROBABILITY,
    SCORE,
    Measure,
    explain_overall,
    explain_relevance,
    explain_support,
)
from labeler.judges.embedded.limits import limited
from labeler.judges.embedded.plain_text import PlainText
from labeler.judges.embedded.probabilities import probabilities
from labeler.judges.embedded.scoring import Scores, score
from labeler.judges.embedded.support import Evidence
from labeler.judges.embedded.weights import load_weights
from labeler.judges.judge import JudgeSpec
from labeler.judges.options import InKey
from labeler.judges.task import LABEL_KINDS, JudgeReply, LabelKind, Task
from labeler.labels.answers import GPTLabelingOutput, SentenceSupport, lowered
from labeler.labels.record import ReplyFacts, SentenceScores
from labeler.sentences.example import KeyedExample

SUPPORT_THRESHOLD = 0.55
RELEVANCE_THRESHOLD = 1.05
UTILIZATION_THRESHOLD = 1.15


@dataclass(frozen=True)
class Version:
    """One version of the embedded judge.

    Attributes:
        score: scores a record.
        thresholds: support, relevance and utilization from which a score is positive.
        plain: returns how a record's texts are compared.
        measure: words for its numbers in explanations.
        not_measured: metrics that its labels say nothing about.
    """

    score: Callable[[KeyedExample], Scores]
    thresholds: Callable[[], Sequence[float]]
    plain: Callable[[KeyedExample], Plain] = lambda _: str
    measure: Measure = SCORE
    not_measured: tuple[str, ...] = ()


VERSIONS: Catalog[Version] = Catalog("version of the embedded judge")
VERSIONS.add(
    "lexical-1",
    Version(score, lambda: (SUPPORT_THRESHOLD, RELEVANCE_THRESHOLD, UTILIZATION_THRESHOLD)),
)
VERSIONS.add(
    "lexical-2",
    Version(
        probabilities,
        lambda: load_weights().thresholds,
        PlainText.of,
        PROBABILITY,
        ("completeness",),
    ),
)
NEWEST = "lexical-2"


class EmbeddedSpec(JudgeSpec):
    """Identity of the embedded judge; a score at or above its threshold is positive."""

    judge: Annotated[str, InKey] = "embedded"
    model: Annotated[str, InKey] = NEWEST
    support_threshold: Annotated[float, InKey]
    relevance_threshold: Annotated[float, InKey]
    utilization_threshold: Annotated[float, InKey]


class EmbeddedJudge:
    """Labels by shared words: no key, no network, the same answer every time.

    The module's docstring describes its limits.

    Args:
        support_threshold: score from which a response sentence counts as supported; by default that
            of the version, as for the others.
        relevance_threshold: score from which a document sentence counts as relevant.
        utilization_threshold: score from which a document sentence counts as utilized.
        model: version, ``lexical-1`` or ``lexical-2``.

    Example:
        >>> strict = labeler.EmbeddedJudge(support_threshold=0.9)
        >>> found = labeler.label("examples/rows.jsonl", judge=strict, store=labeler.MemoryStore())
        >>> found.check(adherence=0.9).passed
        False
    """

    answers = LABEL_KINDS | {"retrieval"}

    def __init__(
        self,
        *,
        support_threshold: float | None = None,
        relevance_threshold: float | None = None,
        utilization_threshold: float | None = None,
        model: str = NEWEST,
    ) -> None:
        self._version = VERSIONS[model]
        names = ("support_threshold", "relevance_threshold", "utilization_threshold")
        given = (support_threshold, relevance_threshold, utilization_threshold)
        chosen = {
            name: float(default if value is None else value)
            for name, value, default in zip(names, given, self._version.thresholds(), strict=True)
        }
        for name, value in chosen.items():
            if not math.isfinite(value):
                raise UsageError(f"{name} must be a finite number, got {value}")
        self.spec = EmbeddedSpec.model_validate({"model": model, **chosen})

    async def label(self, task: Task) -> JudgeReply:
        """Judge one record, without errors or waits."""
        example, version = limited(task.example), self._version
        scores = scored(example, version.score)
        measure = version.measure if example.response else version.measure.of_question()
        left_out = len(task.example.document_keys()) - len(scores.relevance)
        label = decide(example, scores, self.spec, measure, left_out)
        if isinstance(task.kind, LabelKind):
            threshold = (
                SUPPORT_THRESHOLD if scores.adherence is not None else self.spec.support_threshold
            )
            output = task.kind.profile.output
            label = with_claims(
                label, output, example, scores, threshold, plain=version.plain(example)
            )
        return JudgeReply(
            answer=lowered(label, task.answer_type),
            facts=ReplyFacts(served_model=self.spec.model, attempts=1),
            scores=SentenceScores(
                support={key: found.support for key, found in scores.evidence.items()},
                relevance=_of_all(task.example, scores.relevance),
                utilization=_of_all(task.example, scores.utilization),
                adherence=scores.adherence,
            ),
            not_measured=version.not_measured,
        )

    async def aclose(self) -> None:
        """Nothing to release."""


def scored(example: KeyedExample, score: Callable[[KeyedExample], Scores]) -> Scores:
    """Score a record; earlier turns and tool outputs support a response as documents do.

    They change neither relevance nor utilization.
    """
    alone = score(example)
    evidence = with_conversation(example)
    if evidence is example or not example.response:
        return alone
    found = score(evidence)
    return alone._replace(evidence=found.evidence, adherence=found.adherence)


def decide(
    example: KeyedExample,
    scores: Scores,
    spec: EmbeddedSpec,
    measure: Measure,
    left_out: int = 0,
) -> GPTLabelingOutput:
    """Turn scores into a label that meets the contract."""
    support = {
        key: _supporting_keys(found, spec.support_threshold)
        for key, found in scores.evidence.items()
    }
    supported = [key for key, keys in support.items() if keys]
    named = {key for keys in support.values() for key in keys}
    return GPTLabelingOutput(
        relevance_explanation=explain_relevance(
            scores.relevance, spec.relevance_threshold, scores.unseen_question, measure, left_out
        ),
        all_relevant_sentence_keys=tuple(
            key for key, value in scores.relevance.items() if value >= spec.relevance_threshold
        ),
        overall_supported_explanation=explain_overall(scores.evidence, supported, measure),
        # A response without sentences makes no claim, so it is not supported.
        overall_supported=bool(supported) and len(supported) == len(example.response),
        sentence_support_information=tuple(
            SentenceSupport(
                response_sentence_key=key,
                explanation=explain_support(scores.evidence[key], spec.support_threshold, measure),
                supporting_sentence_keys=keys,
                fully_supported=bool(keys),
            )
            for key, keys in support.items()
        ),
        # A supporting sentence counts as utilized, whatever its own score.
        all_utilized_sentence_keys=tuple(
            key
            for key, value in scores.utilization.items()
            if value >= spec.utilization_threshold or key in named
        ),
    )


def _of_all(example: KeyedExample, values: Mapping[str, float]) -> dict[str, float]:
    """Return the values of all document sentences: 0 for those that were not compared."""
    return dict.fromkeys(example.document_keys(), 0.0) | dict(values)


def _supporting_keys(found: Evidence, threshold: float) -> tuple[str, ...]:
    """Return the supporting keys or the special key; empty if the sentence is not supported."""
    if found.kind == "empty" or found.support < threshold:
        return ()
    if found.kind in {"general", "source"}:
        return ("general",)
    if found.kind == "meta":
        return ("supported_without_sentence",)
    return found.closest
