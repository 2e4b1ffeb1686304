"""Which labels people are asked about."""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from labeler.audit.auditing import findings_of
from labeler.audit.suspicion import doubt_of
from labeler.data.corrections.correction import Queue
from labeler.labels.record import AnyOutcome, LabelRecord, is_canary


class Chosen(NamedTuple):
    """A label that people are asked about, and why this one."""

    record: LabelRecord
    queue: Queue


def choose(
    outcomes: Iterable[AnyOutcome],
    *,
    top: int | None = None,
    sample: int | None = None,
    seed: int = 0,
) -> Iterator[Chosen]:
    """Choose labels, each once and no canaries: the most doubtful, a random sample, or all.

    Args:
        outcomes: outcomes of any kind.
        top: how many of the most doubtful, these first; equal doubt stays in order.
        sample: how many at random, in the order of the file.
        seed: of the sample: equal seeds choose the same of equal files.
    """
    records = _distinct(outcomes)
    if top is not None:
        ranked = heapq.nsmallest(
            top, ((-doubt_of(findings_of(r)), place, r) for place, r in enumerate(records))
        )
        yield from (Chosen(record, "doubtful") for _, _, record in ranked)
    elif sample is not None:
        yield from (Chosen(record, "random") for record in _drawn(records, sample, seed))
    else:
        yield from (Chosen(record, "order") for record in records)


def _distinct(outcomes: Iterable[AnyOutcome]) -> Iterator[LabelRecord]:
    seen: set[str] = set()
    for outcome in outcomes:
        if isinstance(outcome, LabelRecord) and not is_canary(outcome) and outcome.key not in seen:
            seen.add(outcome.key)
            yield outcome


def _drawn(records: Iterable[LabelRecord], size: int, seed: int) -> list[LabelRecord]:
    """A sample in which every record is as likely as any other, drawn in one reading."""
    chance = random.Random(seed)  # noqa: S311 - a draw that can be repeated, no secret
    kept: dict[int, LabelRecord] = {}
    places: list[int] = []
    for place, record in enumerate(records):
        if len(places) < size:
            places.append(place)
        else:
            slot = chance.randrange(place + 1)
            if slot >= size:
                continue
            del kept[places[slot]]
            places[slot] = place
        kept[place] = record
    return [kept[place] for place in sorted(kept)]
