"""The embedded judge: a lexical baseline without API key, network or language model.

It compares words. It cannot distinguish a paraphrase from a fabrication, nor a true sentence from
one that rearranges the words of the documents, and it does not replace a language model. It is
deterministic, fast and free: a baseline for other judges, and a way to run everything downstream
without cost. Claims are clauses, see ``labeler.judges.embedded.claims``. Each earlier turn and each
tool output counts as one more document that may support a response.

Its verdicts follow from calibrated probabilities, which a label stores. The thresholds stand in the
weights and do not suit every data set: ``Labels.at`` moves them afterwards.
``python benchmarks/embedded.py`` measures the judge's quality.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from labeler.judges.embedded.claims import with_claims, with_conversation
from labeler.judges.embedded.features import Scores, load_weights, probabilities
from labeler.judges.embedded.support import Evidence, limited
from labeler.judges.judge import JudgeSpec
from labeler.judges.task import LABEL_KINDS, JudgeReply, LabelKind, Task
from labeler.labels.answers import (
    GENERAL,
    GPTLabelingOutput,
    SecondOpinion,
    SentenceSupport,
    lowered,
)
from labeler.labels.record import LabelRecord, ReplyFacts, SentenceScores
from labeler.sentences.example import KeyedExample

QUOTED_WORDS = 6
QUOTED_LETTERS = 24
NAMED_KEYS = 3


_WITHOUT_CLAIM = {
    "empty": "Not supported: the response claims nothing that documents could support.",
    "general": "Claims nothing of its own, so there is nothing to look for in the documents.",
    "source": "Only names sources, so there is nothing to look for in the documents.",
}
_SILENT = "Says that the documents do not say something"


def explain_support(evidence: Evidence, threshold: float) -> str:
    """Explain the probability of support of one response sentence."""
    if evidence.kind in _WITHOUT_CLAIM:
        return _WITHOUT_CLAIM[evidence.kind]
    if evidence.kind == "meta":
        if not evidence.flipped:
            return f"{_SILENT}, and no document sentence says just that."
        words = _words(evidence.matched)
        return f"{_SILENT}, but the closest sentence {evidence.closest[0]} says it ({words})."
    relation = "at least" if evidence.support >= threshold else "below"
    parts = [
        _closest(evidence),
        _listed("Not in any document", evidence.unseen),
        _listed("Names not in any document", evidence.names),
        _listed("Numbers without a match in the closest sentences", evidence.numbers),
        "The closest sentence says the same but for a negation." if evidence.flipped else "",
        "It negates, and no sentence near the closest does." if evidence.negates_alone else "",
        f"Probability of support {evidence.support:.2f}, {relation} the threshold {threshold:.2f}.",
    ]
    return " ".join(filter(None, parts))


def explain_overall(evidence: Mapping[str, Evidence], supported: Sequence[str]) -> str:
    """Explain the overall verdict by the number of supported sentences and the weakest others."""
    if all(found.kind == "empty" for found in evidence.values()):
        return "The response claims nothing that documents could support."
    counted = f"{len(supported)} of {len(evidence)} response sentences are supported."
    weak = {key: found.support for key, found in evidence.items() if key not in supported}
    if not weak:
        return counted
    lowest = _ranked({key: -value for key, value in weak.items()}, -1)
    return f"{counted} Lowest probabilities of support: {lowest}."


def explain_relevance(
    scores: Scores, threshold: float, *, of_response: bool, left_out: int = 0
) -> str:
    """Explain the choice of relevant document sentences, whose probability reaches a threshold.

    Args:
        scores: all probabilities of the record.
        threshold: lowest probability of a relevant sentence.
        of_response: True if the words of a response counted, too.
        left_out: number of sentences beyond the limit, which were not compared.
    """
    likely = scores.relevance
    chosen = sum(value >= threshold for value in likely.values())
    if not likely:
        return "There are no document sentences."
    found = (
        f"{chosen} of {len(likely)} document sentences reach probability {threshold:.2f} by words "
        f"shared with the question{' and the response' * of_response}; highest: {_ranked(likely)}."
    )
    missing = _listed("Words of the question in no document", scores.unseen_question)
    cut = f"{left_out} more share fewer words and were not compared." if left_out else ""
    return " ".join(filter(None, [found, missing, cut]))


def _closest(evidence: Evidence) -> str:
    if not evidence.closest:
        return "No document sentence shares a content word with it."
    share = f"{evidence.coverage:.0%} of its content by weight ({_words(evidence.matched)})"
    first, *others = evidence.closest
    second = f"; more is in {others[0]}" if others else ""
    return f"Closest {_SENTENCES.get(first[0], 'document sentence')} {first} has {share}{second}."


_SENTENCES = {"h": "sentence of earlier turns", "t": "sentence of tool outputs"}
"""Kinds of sentences by the first letter of a key; keys of documents begin with a digit."""


def _listed(title: str, words: Sequence[str]) -> str:
    return f"{title}: {_words(words)}." if words else ""


def _words(words: Sequence[str]) -> str:
    quoted = ", ".join(word[:QUOTED_LETTERS] for word in words[:QUOTED_WORDS])
    return f"{quoted}, …" if len(words) > QUOTED_WORDS else quoted


def _ranked(scores: Mapping[str, float], sign: int = 1) -> str:
    """List the highest scores with their keys, each multiplied by the sign."""
    best = sorted(scores, key=lambda key: -scores[key])[:NAMED_KEYS]
    return ", ".join(f"{key} ({sign * scores[key]:.2f})" for key in best)


MODEL = "lexical/1"
"""Version of the judge: another one may label otherwise."""
NOT_MEASURED = ("completeness",)
"""Metrics that its labels say nothing about."""


class EmbeddedJudge:
    """Labels by shared words: no key, no network, the same answer every time.

    The module's docstring describes its limits.

    Example:
        >>> judge = labeler.EmbeddedJudge()
        >>> found = labeler.label("examples/rows.jsonl", judge=judge, store=labeler.MemoryStore())
        >>> found.check(adherence=0.6).passed
        True
    """

    answers = LABEL_KINDS | {"retrieval"}
    reads_prompts = False

    def __init__(self) -> None:
        self.spec = JudgeSpec(judge="embedded", model=MODEL)

    async def label(self, task: Task) -> JudgeReply:
        """Judge one record, without errors or waits."""
        example, thresholds = limited(task.example), load_weights().thresholds
        scores = scored(example)
        left_out = len(task.example.document_keys()) - len(scores.relevance)
        label = decide(example, scores, thresholds, left_out)
        if isinstance(task.kind, LabelKind):
            label = with_claims(label, task.kind.profile.output, example, scores)
        return JudgeReply(
            answer=lowered(label, task.answer_type),
            facts=ReplyFacts(served_model=MODEL, attempts=1, thresholds=thresholds),
            scores=SentenceScores(
                support={key: found.support for key, found in scores.evidence.items()},
                relevance=_of_all(task.example, scores.relevance),
                utilization=_of_all(task.example, scores.utilization),
                adherence=scores.adherence,
            ),
            not_measured=NOT_MEASURED,
        )

    async def aclose(self) -> None:
        """Nothing to release."""


def scored(example: KeyedExample) -> Scores:
    """Score a record; earlier turns and tool outputs support a response as documents do.

    They change neither relevance nor utilization.
    """
    alone = probabilities(example)
    evidence = with_conversation(example)
    if evidence is example or not example.response:
        return alone
    found = probabilities(evidence)
    return alone._replace(evidence=found.evidence, adherence=found.adherence)


def decide(
    example: KeyedExample, scores: Scores, thresholds: Mapping[str, float], left_out: int = 0
) -> GPTLabelingOutput:
    """Turn probabilities into a label that meets the contract."""
    least = thresholds["support"]
    support = {key: supporting_keys(found, least) for key, found in scores.evidence.items()}
    supported = [key for key, keys in support.items() if keys]
    named = {key for keys in support.values() for key in keys}
    return GPTLabelingOutput(
        relevance_explanation=explain_relevance(
            scores, thresholds["relevance"], of_response=bool(example.response), left_out=left_out
        ),
        all_relevant_sentence_keys=tuple(
            key for key, value in scores.relevance.items() if value >= thresholds["relevance"]
        ),
        overall_supported_explanation=explain_overall(scores.evidence, supported),
        # A response without sentences makes no claim, so it is not supported.
        overall_supported=bool(supported) and len(supported) == len(example.response),
        sentence_support_information=tuple(
            SentenceSupport(
                response_sentence_key=key,
                explanation=explain_support(scores.evidence[key], least),
                supporting_sentence_keys=keys,
                fully_supported=bool(keys),
            )
            for key, keys in support.items()
        ),
        # A supporting sentence counts as utilized, whatever its own probability.
        all_utilized_sentence_keys=tuple(
            key
            for key, value in scores.utilization.items()
            if value >= thresholds["utilization"] or key in named
        ),
    )


def _of_all(example: KeyedExample, values: Mapping[str, float]) -> dict[str, float]:
    """Return the values of all document sentences: 0 for those that were not compared."""
    return dict.fromkeys(example.document_keys(), 0.0) | dict(values)


def supporting_keys(found: Evidence, threshold: float) -> tuple[str, ...]:
    """Return the supporting keys or the special key; empty if the sentence is not supported."""
    if found.kind == "empty" or found.support < threshold:
        return ()
    if found.kind in {"general", "source"}:
        return ("general",)
    if found.kind == "meta":
        return ("supported_without_sentence",)
    return found.closest


def second_opinion(record: LabelRecord) -> SecondOpinion | None:
    """Return the embedded judge's scores of a label's sentences; no request is made.

    Returns:
        ``None`` for a response without sentences.
    """
    evidence, least = scored(record.example).evidence, load_weights().thresholds["support"]
    if not evidence:
        return None
    support = {key: min(1.0, max(0.0, found.support)) for key, found in evidence.items()}
    general = (key for key in evidence if supporting_keys(evidence[key], least) == (GENERAL,))
    return SecondOpinion(support, frozenset(general))
