"""Checks across judgments of the same sentences by other trials, judges or prompts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from labeler.audit.registry import Found, name_some, repeat_check
from labeler.audit.subject import Judgment
from labeler.labels.answers import in_order

_MOST_SHARES = 4


@repeat_check(
    "overall_flips",
    severity="suspicion",
    title="Judgements differ on the whole response",
    why=(
        "The same sentences were judged several times, and adherence came out differently: a "
        "coin's toss away from the other verdict."
    ),
)
def overall_flips(judgment: Judgment, others: Sequence[Judgment]) -> Iterator[Found]:
    """Compare the overall verdicts."""
    verdicts = [each.overall for each in (judgment, *others)]
    if len(set(verdicts)) > 1:
        yield Found(
            f"Called supported as a whole by {sum(verdicts)} of {len(verdicts)} judgements"
            f"{_made_by(judgment, others)}."
        )


@repeat_check(
    "support_flips",
    severity="suspicion",
    title="Judgements differ on the support of a sentence",
    why="The same sentences were judged several times, and these verdicts came out both ways.",
)
def support_flips(judgment: Judgment, others: Sequence[Judgment]) -> Iterator[Found]:
    """Compare the verdicts on each response sentence."""
    all_of_them = (judgment, *others)
    yes = Counter(key for each in all_of_them for key in each.supported)
    judged = Counter(key for each in all_of_them for key in each.judged)
    flipped = [key for key in in_order(judged) if 0 < yes[key] < judged[key]]
    if flipped:
        shares = [f"{key} by {yes[key]} of {judged[key]}" for key in flipped]
        yield Found(
            f"Called supported: {name_some(shares, _MOST_SHARES)} judgements"
            f"{_made_by(judgment, others)}.",
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
def selection_flips(judgment: Judgment, others: Sequence[Judgment]) -> Iterator[Found]:
    """Compare both lists of document sentences."""
    all_of_them = (judgment, *others)
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
                f"Called {name}: {name_some(shares, _MOST_SHARES)} of {total} judgements"
                f"{_made_by(judgment, others)}.",
                tuple(flipped),
            )


def _made_by(judgment: Judgment, others: Sequence[Judgment]) -> str:
    """Return the differences in configuration between the judgments."""
    made = [each.signature for each in (judgment, *others)]
    facts: dict[str, set[object]] = {
        "judge": {(signature.judge, signature.model) for signature in made},
        "prompt": {str(signature.prompt) for signature in made},
        "trial": {signature.trial for signature in made},
    }
    differing = [name for name, values in facts.items() if len(values) > 1]
    return f" (other {' and '.join(differing)})" if differing else ""
