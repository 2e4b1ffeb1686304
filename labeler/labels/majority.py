"""Majorities of votes, by judges or by people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Iterable

from labeler.labels.answers import in_order


def is_majority(yes: int, voters: int, *, tie: bool = False) -> bool:
    """Return True if more than half of the voters say yes.

    Args:
        yes: number of yes votes.
        voters: number of voters.
        tie: the verdict if exactly half of them do.
    """
    return tie if 2 * yes == voters else 2 * yes > voters


def majority_keys(named: Collection[Iterable[str]], tied: Container[str] = ()) -> tuple[str, ...]:
    """Return the keys that more than half of the voters name, else those that most of them name.

    Args:
        named: the keys of each voter, at least one of them not empty.
        tied: keys that half of the voters are enough for.
    """
    counts = Counter(key for keys in named for key in set(keys))
    kept = [key for key, n in counts.items() if is_majority(n, len(named), tie=key in tied)]
    most = max(counts.values())
    return in_order(kept or [key for key, count in counts.items() if count == most])
