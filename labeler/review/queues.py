"""In which order records come before a person."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from labeler.data.corrections.correction import Queue
from labeler.errors import UsageError


def places_in(
    queue: Queue,
    keys: Sequence[str],
    *,
    size: int | None = None,
    seed: int = 0,
    doubts: Sequence[float] | None = None,
) -> tuple[int, ...]:
    """The places of the records to judge, in the order in which they come.

    The draw depends on the labels' keys and the seed alone, and not on the order of the file: the
    same labels give the same sample, and a larger sample begins with the smaller one.

    Args:
        queue: ``random``, ``doubtful`` or ``order``.
        keys: the labels' keys, in the order of the file.
        size: how many come at most; by default all.
        seed: of the draw.
        doubts: how doubtful each label is; the most doubtful comes first, and equal doubt stays in
            order.

    Raises:
        UsageError: there are fewer labels than asked for, or the size is below 1.
    """
    if size is not None and not 1 <= size <= len(keys):
        raise UsageError(f"--sample must be from 1 to the {len(keys)} labels there are, got {size}")
    places = range(len(keys))
    if queue == "random":
        return tuple(sorted(places, key=lambda place: _lot(keys[place], seed))[:size])
    if queue == "doubtful":
        if doubts is None:
            raise UsageError("a doubtful queue needs the doubt about every label")
        return tuple(sorted(places, key=lambda place: -doubts[place])[:size])
    return tuple(places[:size])


def _lot(key: str, seed: int) -> tuple[str, str]:
    return hashlib.sha256(f"{seed}:{key}".encode()).hexdigest(), key
