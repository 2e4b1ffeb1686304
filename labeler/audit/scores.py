"""Checks of the numbers behind the verdicts, where a judge or a vote gives them."""

from __future__ import annotations

from collections.abc import Iterator

from labeler.audit.registry import Found, check
from labeler.audit.subject import Subject

MARGIN = 0.1
"""How near to its threshold a score is no decision: of the way from 0 to the threshold."""
HALF = 0.5
"""The threshold of shares of votes, and of judges that name none."""


def _threshold(subject: Subject) -> float:
    given = subject.record.signature.sampling.get("support_threshold", HALF)
    return float(given) if isinstance(given, int | float) else HALF


@check(
    "undecided_score",
    severity="note",
    title="A verdict hangs by little",
    why=(
        "The score of a sentence lies next to the threshold, or the votes on it were nearly even: "
        "a little more or less, and the verdict were the other."
    ),
    applies=lambda subject: bool(subject.record.scores and subject.record.scores.support),
    weight=0.2,
)
def undecided_score(subject: Subject) -> Iterator[Found]:
    """Look at the support of each response sentence."""
    scores = subject.record.scores.support if subject.record.scores else {}
    threshold = _threshold(subject)
    near = [k for k, v in scores.items() if abs(v - threshold) <= MARGIN * abs(threshold)]
    if near:
        yield Found(
            f"The support of {len(near)} of {len(scores)} sentences lies within {MARGIN:.0%} of "
            f"the threshold {threshold:g}.",
            subject.in_order(near),
        )
