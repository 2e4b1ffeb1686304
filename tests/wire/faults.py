"""A provider that misbehaves by the dice, the same dice in whatever order it is asked."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence

from wire.calls import Call

FAULTS = (
    *("429", "429-wait", "429-date", "429-wait-long", "500", "503"),
    *("reset", "close", "short", "hang", "slow-loris"),
    *("truncated", "refusal", "filtered", "malformed"),
    *("unknown-key", "missing-sentence", "twice-sentence", "twice-name"),
    *("no-choices", "drift", "no-usage"),
)
"""What a server is seen to do wrong, by the names of behaviors."""


def faulty(
    share: float, seed: int = 0, kinds: Sequence[str] = FAULTS
) -> Callable[[Call], str | None]:
    """A script that makes a share of calls misbehave.

    Whether and how depends on the record, on how often it was asked before, and on the seed; not
    on the order in which records are asked.

    Args:
        share: of all calls, from 0 to 1.
        seed: another seed picks other calls.
        kinds: names of behaviors, all as likely.
    """
    asked: Counter[str] = Counter()

    def pick(call: Call) -> str | None:
        asked[call.identity] += 1
        dice = dice_of(seed, call, asked[call.identity])
        return dice.choice(kinds) if dice.random() < share else None

    return pick


def spread(median: float, sigma: float = 0.5, seed: int = 0) -> Callable[[Call], float]:
    """Latencies that are mostly near their median, with a long tail (log-normal).

    Each depends on the record, on how often it was asked before, and on the seed.

    Args:
        median: seconds.
        sigma: how far they spread; at 0.5 one in twenty takes over 2.3 times the median.
        seed: another seed gives others.
    """
    asked: Counter[str] = Counter()

    def pick(call: Call) -> float:
        asked[call.identity] += 1
        return median * dice_of(seed, call, asked[call.identity]).lognormvariate(0, sigma)

    return pick


def dice_of(seed: int, call: Call, asked: int) -> random.Random:
    """Dice that fall the same for a record that is asked for the same time."""
    return random.Random(f"{seed}/{call.identity}/{asked}")  # noqa: S311 - a test's choice
