"""Checks across judgements of the very same sentences: other trials, judges or prompts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from labeler.audit.registry import Found, repeat_check
from labeler.audit.subject import Judgment
from labeler.labels.answers import in_order

MOST_LISTED = 4


@repeat_check(
    "overall_flips",
    severity="suspicion",
    title="Judgements differ on the whole response",
    why=(
        "The same sentences were judged several times, and adherence came out differently: a "
        "coin's toss away from the other verdict."
    ),
)
def overall_flips(judgement: Judgment, others: Sequence[Judgment]) -> Iterator[Found]:
    """Look at the overall verdicts."""
    verdicts = [each.overall for each in (judgement, *others)]
    if len(set(verdicts)) > 1:
        yield Found(
            f"Called supported as a whole by {sum(verdicts)} of {len(verdicts)} judgements"
            f"{_made_by(judgement, others)}."
        )


@repeat_check(
    "support_flips",
    severity="suspicion",
    title="Judgements differ on the support of a sentence",
    why="The same sentences were judged several times, and these verdicts came out both ways.",
)
def support_flips(judgement: Judgment, others: Sequence[Judgment]) -> Iterator[Found]:
    """Look at each response sentence that several have a verdict on."""
    all_of_them = (judgement, *others)
    yes = Counter(key for each in all_of_them for key in each.supported)
    judged = Counter(key for each in all_of_them for key in each.judged)
    flipped = [key for key in in_order(judged) if 0 < yes[key] < judged[key]]
    if flipped:
        shares = [f"{key} by {yes[key]} of {judged[key]}" for key in flipped]
        yield Found(
            f"Called supported: {_listed(shares)} judgements{_made_by(judgement, others)}.",
            tuple(flipped),
        )


@repeat_check(
    "selection_flips",
    severity="note",
    title="Judgements differ on relevant or utilized sentences",
    why=(
        "The same sentences were judged several times, and these were chosen by some judgements "
        "only; relevance, utilization and completeness move with them."
    ),
)
def selection_flips(judgement: Judgment, others: Sequence[Judgment]) -> Iterator[Found]:
    """Look at both lists of document sentences."""
    all_of_them = (judgement, *others)
    total = len(all_of_them)
    lists = {
        "relevant": [each.relevant for each in all_of_them],
        "utilized": [each.utilized for each in all_of_them],
    }
    for name, selections in lists.items():
        chosen = Counter(key for selection in selections for key in set(selection))
        flipped = [key for key in in_order(chosen) if chosen[key] < total]
        if flipped:
            shares = [f"{key} by {chosen[key]}" for key in flipped]
            yield Found(
                f"Called {name}: {_listed(shares)} of {total} judgements"
                f"{_made_by(judgement, others)}.",
                tuple(flipped),
            )


def _made_by(judgement: Judgment, others: Sequence[Judgment]) -> str:
    """What differs between the judgements besides the outcome."""
    made = [each.signature for each in (judgement, *others)]
    facts: dict[str, set[object]] = {
        "judge": {(signature.judge, signature.model) for signature in made},
        "prompt": {str(signature.prompt) for signature in made},
        "trial": {signature.trial for signature in made},
    }
    differing = [name for name, values in facts.items() if len(values) > 1]
    return f" (other {' and '.join(differing)})" if differing else ""


def _listed(texts: Sequence[str]) -> str:
    more = f" and {len(texts) - MOST_LISTED} more" if len(texts) > MOST_LISTED else ""
    return f"{', '.join(texts[:MOST_LISTED])}{more}"
