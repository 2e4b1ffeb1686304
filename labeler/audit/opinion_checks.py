"""Checks of a label against a second opinion: another judge's scores of the same sentences."""

from __future__ import annotations

from collections.abc import Iterator

from labeler.audit.evidence import FEWEST_WORDS
from labeler.audit.registry import Found, opinion_check
from labeler.audit.subject import Subject
from labeler.labels.opinion import GENERAL

CONTRARY = 0.75
"""Certainty of the contrary from which an opinion disagrees."""


@opinion_check(
    "second_opinion_disagrees",
    severity="suspicion",
    title="A second judge says the contrary",
    why=(
        "The embedded judge compares words and knows no paraphrase, but its errors are not a "
        "model's. The more it disagrees, the higher the suspicion, by up to 0.4 more."
    ),
    weight=0.1,
)
def second_opinion_disagrees(subject: Subject) -> Iterator[Found]:
    """Compare each verdict with the second opinion; disagreement has its own term in the score."""
    opinion = subject.second_opinion
    for key, contrary in subject.disagreements.items():
        if opinion and contrary >= CONTRARY:
            verdict = "not supported" if key in _supported(subject) else "supported"
            likely = opinion.support[key]
            yield Found(
                f"Probably {verdict}: the second opinion gives its support {likely:.2f}.",
                (key,),
            )


def _supported(subject: Subject) -> frozenset[str]:
    return frozenset(entry.response_sentence_key for entry in subject.supported)


@opinion_check(
    "general_makes_a_claim",
    severity="suspicion",
    title="Called general, though it makes a claim",
    why=(
        "A general sentence needs no support because it claims nothing; this one has content that "
        "documents could support or contradict."
    ),
    weight=0.25,
)
def general_makes_a_claim(subject: Subject) -> Iterator[Found]:
    """Find sentences with ``general`` alone that have content and are no general remark."""
    for entry in subject.supported:
        key = entry.response_sentence_key
        claim = subject.claims.get(key)
        if entry.supporting_sentence_keys != (GENERAL,) or claim is None:
            continue
        remark = claim.is_meta or claim.introduces or len(claim.words) < FEWEST_WORDS
        if not remark and subject.second_opinion and key not in subject.second_opinion.general:
            yield Found("Called general, but has content that documents could support.", (key,))
