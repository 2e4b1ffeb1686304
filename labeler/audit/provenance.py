"""Checks of how an answer became a label: contract violations, repairs, and scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from labeler.audit.registry import Found, check
from labeler.audit.subject import Subject

MARGIN = 0.1
"""Relative distance to the threshold within which a score is undecided."""
HALF = 0.5
"""Default threshold: of shares of votes, and of judges without a threshold of their own."""
LEFT_OPEN = "fully_supported_null"
"""Count of verdicts that were null in the source and derived from the supporting keys."""


@check(
    "contract_broken",
    severity="suspicion",
    title="Keys or verdicts that break the contract",
    why=(
        "The answer named sentences that were never shown, or left some out; an importer keeps "
        "such labels, and metrics count what is left."
    ),
)
def contract_broken(subject: Subject) -> Iterator[Found]:
    """Report contract violations that an importer kept."""
    broken: Counter[str] = Counter(violation.kind for violation in subject.record.violations)
    if broken:
        keys = (key for violation in subject.record.violations for key in violation.keys)
        known = subject.in_order(key for key in keys if key in subject.texts)
        yield Found(f"The answer broke the contract: {_counted(broken)}.", known)


@check(
    "answer_repaired",
    severity="note",
    title="Answer repaired",
    why=(
        "The judge wrote keys in another spelling or twice, or praised a response without "
        "content; many repairs: a careless model."
    ),
)
def answer_repaired(subject: Subject) -> Iterator[Found]:
    """Report trivial repairs."""
    repairs = {
        name: count for name, count in subject.record.normalised.items() if name != LEFT_OPEN
    }
    if repairs:
        yield Found(f"Repaired in the answer: {_counted(repairs)}.")


@check(
    "verdict_left_open",
    severity="note",
    title="Verdicts that were left open",
    why=(
        "The source holds no verdict on these sentences; they count as supported because keys "
        "are listed for them, as for partial support."
    ),
)
def verdict_left_open(subject: Subject) -> Iterator[Found]:
    """Report verdicts that were derived from the keys."""
    count = subject.record.normalised.get(LEFT_OPEN, 0)
    if count:
        yield Found(
            f"The source left {count} of {len(subject.judged)} verdicts open; they were read off "
            "the supporting keys."
        )


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
    """Find support scores close to the threshold."""
    scores = subject.record.scores.support if subject.record.scores else {}
    threshold = _threshold(subject)
    near = [k for k, v in scores.items() if abs(v - threshold) <= MARGIN * abs(threshold)]
    if near:
        yield Found(
            f"The support of {len(near)} of {len(scores)} sentences lies within {MARGIN:.0%} of "
            f"the threshold {threshold:g}.",
            subject.in_order(near),
        )


def _threshold(subject: Subject) -> float:
    record = subject.record
    return {**record.reply.thresholds, **record.signature.thresholds}.get("support", HALF)


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items())
