"""The embedded judge's opinion of labels that another judge gave."""

from __future__ import annotations

from labeler.judges.embedded.features import load_weights
from labeler.judges.embedded.judge import scored, supporting_keys
from labeler.labels.opinion import GENERAL, SecondOpinion
from labeler.labels.record import LabelRecord


def second_opinion(record: LabelRecord) -> SecondOpinion | None:
    """Return the embedded judge's scores of a label's sentences; no request is made.

    Returns:
        ``None`` for a response without sentences.
    """
    evidence, least = scored(record.example).evidence, load_weights().thresholds["support"]
    if not evidence:
        return None
    support = {key: min(1.0, max(0.0, found.support)) for key, found in evidence.items()}
    general = (key for key in evidence if supporting_keys(evidence[key], least) == (GENERAL,))
    return SecondOpinion(support, frozenset(general))
