"""The embedded judge: a lexical baseline without API key, network or model.

It compares words. It cannot distinguish a paraphrase from a fabrication, nor a true sentence from
one that rearranges the words of the documents, and it does not replace a language model. It is
deterministic, fast and free: a baseline for other judges, and a way to run everything downstream
without cost. Claims are clauses, see ``labeler.judges.embedded.claims``.

The thresholds come from the 2,032 development rows of RAGBench that
``labeler.judges.embedded.scoring`` describes. At the support threshold, the F1 of unsupported
sentences and the F1 of non-adherent records are both within .015 of their best. The relevance
threshold gives the right mean share of relevant sentences, the utilization threshold the best
sentence F1. They do not suit every data set; ``labeler.judges.embedded.calibration`` finds the
support threshold for your own labels. ``python benchmarks/judges.py`` prints the judge's quality.
"""

from __future__ import annotations

import math
from typing import Annotated

from labeler.errors import UsageError
from labeler.judges.embedded.claims import with_claims
from labeler.judges.embedded.explain import explain_overall, explain_relevance, explain_support
from labeler.judges.embedded.scoring import Scores, score
from labeler.judges.embedded.support import Evidence
from labeler.judges.judge import JudgeSpec
from labeler.judges.options import InKey
from labeler.judges.task import LABEL_KINDS, JudgeReply, Task
from labeler.labels.answers import GPTLabelingOutput, SentenceSupport
from labeler.labels.record import ReplyFacts, SentenceScores
from labeler.sentences.example import KeyedExample

SUPPORT_THRESHOLD = 0.55
RELEVANCE_THRESHOLD = 1.05
UTILIZATION_THRESHOLD = 1.15


class EmbeddedSpec(JudgeSpec):
    """Identity of the embedded judge; a score at or above its threshold is positive."""

    judge: Annotated[str, InKey] = "embedded"
    model: Annotated[str, InKey] = "lexical-1"
    support_threshold: Annotated[float, InKey] = SUPPORT_THRESHOLD
    relevance_threshold: Annotated[float, InKey] = RELEVANCE_THRESHOLD
    utilization_threshold: Annotated[float, InKey] = UTILIZATION_THRESHOLD


class EmbeddedJudge:
    """Labels by shared words: no key, no network, the same answer every time.

    The module's docstring describes its limits.

    Args:
        support_threshold: score from which a response sentence counts as supported.
        relevance_threshold: score from which a document sentence counts as relevant.
        utilization_threshold: score from which a document sentence counts as utilized.

    Example:
        >>> strict = labeler.EmbeddedJudge(support_threshold=0.9)
        >>> found = labeler.label("examples/rows.jsonl", judge=strict, store=labeler.MemoryStore())
        >>> found.check(adherence=0.9).passed
        False
    """

    answers = LABEL_KINDS

    def __init__(
        self,
        *,
        support_threshold: float = SUPPORT_THRESHOLD,
        relevance_threshold: float = RELEVANCE_THRESHOLD,
        utilization_threshold: float = UTILIZATION_THRESHOLD,
    ) -> None:
        thresholds = {
            "support_threshold": support_threshold,
            "relevance_threshold": relevance_threshold,
            "utilization_threshold": utilization_threshold,
        }
        for name, value in thresholds.items():
            if not math.isfinite(value):
                raise UsageError(f"{name} must be a finite number, got {value}")
        self.spec = EmbeddedSpec(
            support_threshold=float(support_threshold),
            relevance_threshold=float(relevance_threshold),
            utilization_threshold=float(utilization_threshold),
        )

    async def label(self, task: Task) -> JudgeReply:
        """Judge one record, without errors or waits."""
        example, threshold = task.example, self.spec.support_threshold
        scores = score(example)
        label = decide(example, scores, self.spec)
        return JudgeReply(
            answer=with_claims(label, task.answer_type, example, scores, threshold),
            facts=ReplyFacts(served_model=self.spec.model, attempts=1),
            scores=SentenceScores(
                support={key: found.support for key, found in scores.evidence.items()},
                relevance=scores.relevance,
                utilization=scores.utilization,
            ),
        )

    async def aclose(self) -> None:
        """Nothing to release."""


def decide(example: KeyedExample, scores: Scores, spec: EmbeddedSpec) -> GPTLabelingOutput:
    """Turn scores into a label that meets the contract."""
    support = {
        key: _supporting_keys(found, spec.support_threshold)
        for key, found in scores.evidence.items()
    }
    supported = [key for key, keys in support.items() if keys]
    named = {key for keys in support.values() for key in keys}
    return GPTLabelingOutput(
        relevance_explanation=explain_relevance(
            scores.relevance, spec.relevance_threshold, scores.unseen_question
        ),
        all_relevant_sentence_keys=tuple(
            key for key, value in scores.relevance.items() if value >= spec.relevance_threshold
        ),
        overall_supported_explanation=explain_overall(scores.evidence, supported),
        # A response without sentences makes no claim, so it is not supported.
        overall_supported=bool(supported) and len(supported) == len(example.response),
        sentence_support_information=tuple(
            SentenceSupport(
                response_sentence_key=key,
                explanation=explain_support(scores.evidence[key], spec.support_threshold),
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


def _supporting_keys(found: Evidence, threshold: float) -> tuple[str, ...]:
    """Return the supporting keys or the special key; empty if the sentence is not supported."""
    if found.kind == "empty" or found.support < threshold:
        return ()
    if found.kind == "general":
        return ("general",)
    if found.kind == "meta":
        return ("supported_without_sentence",)
    return found.closest
