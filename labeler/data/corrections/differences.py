"""A judge's label in the form of a person's judgement, and where the two differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from labeler.data.corrections.correction import Correction, Judgement
from labeler.labels.answers import GPTLabelingOutput, in_order, judged_sentences
from labeler.labels.record import LabelRecord


@dataclass(frozen=True)
class Differences:
    """Where a judgement differs from a label; empty where it does not.

    Attributes:
        relevant: document sentences that only one of them calls relevant.
        utilized: document sentences that only one of them calls utilized.
        supported: response sentences that only one of them calls supported.
        support: response sentences that both call supported, by other keys; not where the person
            named no keys.
        overall_supported: whether they differ on the response as a whole.
    """

    relevant: tuple[str, ...] = ()
    utilized: tuple[str, ...] = ()
    supported: tuple[str, ...] = ()
    support: tuple[str, ...] = ()
    overall_supported: bool = False

    def __bool__(self) -> bool:
        return any(self.counts().values())

    def counts(self) -> dict[str, int]:
        """How many decisions differ, by field."""
        return {
            "relevant": len(self.relevant),
            "utilized": len(self.utilized),
            "supported": len(self.supported),
            "support": len(self.support),
            "overall_supported": int(self.overall_supported),
        }

    def as_json(self) -> dict[str, Any]:
        """The published form."""
        return {
            "relevant": list(self.relevant),
            "utilized": list(self.utilized),
            "supported": list(self.supported),
            "support": list(self.support),
            "overall_supported": self.overall_supported,
        }


def judgement_of(label: GPTLabelingOutput) -> Judgement:
    """The judge's own judgement: where a person begins."""
    return Judgement(
        relevant=in_order(label.all_relevant_sentence_keys),
        utilized=in_order(label.all_utilized_sentence_keys),
        support={
            key: in_order(entry.supporting_sentence_keys)
            for key, entry in judged_sentences(label).items()
            if entry.fully_supported
        },
        overall_supported=label.overall_supported,
    )


def decided(record: LabelRecord, correction: Correction) -> frozenset[str]:
    """The response sentences that a person decided on.

    A judgement names the supported ones alone. Who disagrees says no to all others; but who agrees
    says nothing of a sentence that the judge left out, as imported labels do.
    """
    if correction.opinion == "agree":
        return frozenset(judged_sentences(record.label))
    return frozenset(record.example.response_keys())


def differences(label: GPTLabelingOutput, judgement: Judgement) -> Differences:
    """Where a person's judgement differs from a judge's label."""
    judged = judgement_of(label)
    mine, theirs = judged.support, judgement.support
    return Differences(
        relevant=in_order({*judged.relevant} ^ {*judgement.relevant}),
        utilized=in_order({*judged.utilized} ^ {*judgement.utilized}),
        supported=in_order(mine.keys() ^ theirs.keys()),
        support=in_order(
            key
            for key in mine.keys() & theirs.keys()
            if theirs[key] and {*mine[key]} != {*theirs[key]}
        ),
        overall_supported=judged.overall_supported != judgement.overall_supported,
    )
