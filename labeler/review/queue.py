"""The labels that people review, and their order."""

from __future__ import annotations

import hashlib
import heapq
import random
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from labeler.audit import examine
from labeler.data.corrections.correction import Queue
from labeler.errors import UsageError
from labeler.labels.record import AnyOutcome, LabelRecord


def queue_places(
    queue: Queue,
    keys: Sequence[str],
    *,
    size: int | None = None,
    seed: int = 0,
    doubts: Sequence[float] = (),
) -> tuple[int, ...]:
    """Return the places of the labels to review, in review order.

    A random queue depends on the label keys and the seed only, not on the order of the file: the
    same labels give the same sample, and a larger sample begins with the smaller one.

    Args:
        queue: ``random``, ``doubtful`` or ``order``.
        keys: label keys, in the order of the file.
        size: maximum number of labels; all by default.
        seed: seed of the random queue.
        doubts: suspicion score of each label, for the doubtful queue. The highest score comes
            first; equal scores stay in order.

    Raises:
        UsageError: the size is below 1 or above the number of labels.
    """
    if size is not None and not 1 <= size <= len(keys):
        raise UsageError(f"--sample must be from 1 to the {len(keys)} labels there are, got {size}")
    places = range(len(keys))
    if queue == "random":
        return tuple(sorted(places, key=lambda place: _random_rank(keys[place], seed))[:size])
    if queue == "doubtful":
        return tuple(sorted(places, key=lambda place: -doubts[place])[:size])
    return tuple(places[:size])


def _random_rank(key: str, seed: int) -> tuple[str, str]:
    return hashlib.sha256(f"{seed}:{key}".encode()).hexdigest(), key


class Chosen(NamedTuple):
    """A label to review, and the queue that it came from."""

    record: LabelRecord
    queue: Queue


def choose(
    outcomes: Iterable[AnyOutcome],
    *,
    top: int | None = None,
    sample: int | None = None,
    seed: int = 0,
) -> Iterator[Chosen]:
    """Choose distinct labels in one pass: the most suspicious, a random sample, or all.

    Args:
        outcomes: outcomes of any kind.
        top: number of the most suspicious labels, highest score first; equal scores stay in order.
        sample: size of a random sample, in the order of the file.
        seed: seed of the sample: the same seed and file give the same sample.
    """
    records = _distinct(outcomes)
    if top is not None:
        ranked = heapq.nsmallest(
            top,
            ((-examine(record)[1], place, record) for place, record in enumerate(records)),
        )
        yield from (Chosen(record, "doubtful") for _, _, record in ranked)
    elif sample is not None:
        yield from (Chosen(record, "random") for record in _sample(records, sample, seed))
    else:
        yield from (Chosen(record, "order") for record in records)


def _distinct(outcomes: Iterable[AnyOutcome]) -> Iterator[LabelRecord]:
    seen: set[str] = set()
    for outcome in outcomes:
        if isinstance(outcome, LabelRecord) and outcome.key not in seen:
            seen.add(outcome.key)
            yield outcome


def _sample(records: Iterable[LabelRecord], size: int, seed: int) -> list[LabelRecord]:
    """Draw a uniform sample in one pass (reservoir sampling), in the order of the file."""
    generator = random.Random(seed)  # noqa: S311 - a reproducible draw, not a secret
    kept: dict[int, LabelRecord] = {}
    places: list[int] = []
    for place, record in enumerate(records):
        if len(places) < size:
            places.append(place)
        else:
            slot = generator.randrange(place + 1)
            if slot >= size:
                continue
            del kept[places[slot]]
            places[slot] = place
        kept[place] = record
    return [kept[place] for place in sorted(kept)]
