"""Reads two sides of a diff and pairs their records; labels are kept compressed."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from labeler.calculators import Metric
from labeler.comparing.agreement.sides import LabelsById, labels_by_id
from labeler.errors import UsageError
from labeler.labels.answers import GPTLabelingOutput
from labeler.labels.record import AnyOutcome, LabelFailure, LabelRecord, records_of, shown
from labeler.labels.signature import digest
from labeler.sentences.example import KeyedExample

_NAMED = 5
"""Signatures and ids that an error lists at most."""
_QUICK = 1
"""Level of compression: a harder one saves a tenth and takes twice as long."""

PARTS = ("question", "documents", "response")
"""Parts of a record that must be the same on both sides."""


@dataclass(frozen=True)
class Choice:
    """Which labels of a side are meant.

    Attributes:
        name: the file or folder, or what else the side is called.
        signature: a part of the signature of its labels, where they were made in several ways.
        trial: their trial; by default all.
        option: the parameter that chooses a signature, named in errors.
        trial_option: the one that chooses a trial.
    """

    name: str
    signature: str | None = None
    trial: int | None = None
    option: str = "--a-signature"
    trial_option: str = "--trial"


@dataclass(frozen=True)
class Kept:
    """What is kept of a label: a file of labels need not fit into memory.

    Attributes:
        digests: of each of the parts that must be the same on both sides.
        judgement: digest of the label.
        output: the label's class, which tells what a metric finds in it.
        packed: the record, compressed; that of B without the sentences that A has too.
    """

    digests: tuple[str, ...]
    judgement: str
    output: type[GPTLabelingOutput]
    packed: bytes = field(repr=False, compare=False)

    def unlike(self, other: Kept) -> tuple[str, ...]:
        """The parts that are not the same."""
        both = zip(PARTS, self.digests, other.digests, strict=True)
        return tuple(part for part, mine, theirs in both if mine != theirs)

    def record(self) -> LabelRecord:
        """The record again."""
        return LabelRecord.model_validate_json(zlib.decompress(self.packed))


@dataclass(frozen=True)
class PairCounts:
    """What became of the records of both sides.

    Attributes:
        pairs: labelled on both sides with the very same sentences: these are compared.
        unlike: labelled on both sides, but not the same: left out, by what differs, such as
            ``response`` or ``documents and response``.
        only_a: labels of records that B does not have.
        only_b: labels of records that A does not have.
        failed_a: records that only A has no label of.
        failed_b: records that only B has no label of.
        failed_both: records that failed on both sides.
    """

    pairs: int
    unlike: dict[str, int]
    only_a: int
    only_b: int
    failed_a: int
    failed_b: int
    failed_both: int

    def as_json(self) -> dict[str, Any]:
        """The published form."""
        return asdict(self)


@dataclass(frozen=True)
class Pairs:
    """The records that both sides have a label of, for the very same sentences.

    Attributes:
        a: the labels that changes start from.
        b: the labels that are compared with them.
        ids: the records, in A's order.
        counts: what became of the others.
    """

    a: LabelsById[Kept]
    b: LabelsById[Kept]
    ids: tuple[str, ...] = field(repr=False)
    counts: PairCounts

    def records(self, name: str) -> tuple[LabelRecord, LabelRecord]:
        """Both labels of a record."""
        a, b = self.a.labelled[name].record(), self.b.labelled[name].record()
        sentences = {"documents": a.example.documents, "response": a.example.response}
        return a, b.model_copy(update={"example": b.example.model_copy(update=sentences)})

    def __iter__(self) -> Iterator[tuple[LabelRecord, LabelRecord]]:
        return map(self.records, self.ids)

    def have_fields_of(self, metric: Metric) -> bool:
        """Whether some label of each side has the fields that a metric needs."""
        return all(
            any(issubclass(kept.output, metric.profile.output) for kept in side.labelled.values())
            for side in (self.a, self.b)
        )


def read_pairs(
    a: Iterable[AnyOutcome], b: Iterable[AnyOutcome], choices: tuple[Choice, Choice]
) -> Pairs:
    """Read both sides and pair them by record id.

    Raises:
        UsageError: a side has no label that was chosen, or two of one record that differ; or no
            record has a label on both sides for the very same sentences.
    """
    first = _side(a, choices[0], _whole)
    second = _side(b, choices[1], _bare)
    both = [name for name in first.labelled if name in second.labelled]
    unlike: Counter[str] = Counter()
    alike = []
    for name in both:
        parts = first.labelled[name].unlike(second.labelled[name])
        if parts:
            unlike[" and ".join(parts)] += 1
        else:
            alike.append(name)
    counts = PairCounts(
        pairs=len(alike),
        unlike=dict(unlike.most_common()),
        only_a=len(first.labelled.keys() - second.labelled.keys() - second.failed),
        only_b=len(second.labelled.keys() - first.labelled.keys() - first.failed),
        failed_a=len(first.failed - second.failed),
        failed_b=len(second.failed - first.failed),
        failed_both=len(first.failed & second.failed),
    )
    if not alike:
        raise UsageError(_nothing_common(first, second, counts))
    return Pairs(first, second, tuple(alike), counts)


def _nothing_common(a: LabelsById[Kept], b: LabelsById[Kept], counts: PairCounts) -> str:
    if counts.unlike:
        differing = ", ".join(f"{count} in {parts}" for parts, count in counts.unlike.items())
        return (
            f"{a.name} and {b.name} share {sum(counts.unlike.values())} labelled ids, but the "
            f"sentences differ in each ({differing}), or another splitter cut them: flips are of "
            "the very same sentences (labeler compare can compare their metrics)"
        )
    return (
        f"{a.name} and {b.name} have no labelled record in common: {a.name} has {a.some()}, "
        f"{b.name} has {b.some()}; records are joined by id: give both sides the same ids (--id)"
    )


def _side(
    outcomes: Iterable[AnyOutcome], choice: Choice, keep: Callable[[LabelRecord], Kept]
) -> LabelsById[Kept]:
    return labels_by_id(
        _of_signature(outcomes, choice),
        keep,
        name=choice.name,
        trial=choice.trial,
        option=choice.trial_option,
    )


def _of_signature(outcomes: Iterable[AnyOutcome], choice: Choice) -> Iterator[AnyOutcome]:
    """The labels whose signature is chosen, and all failures that may be theirs.

    Raises:
        UsageError: there are labels, and none of them is chosen.
    """
    wanted = choice.signature
    if wanted is None:
        yield from outcomes
        return
    others: Counter[str] = Counter()
    found = False
    for outcome in records_of(outcomes, "label"):
        signature = outcome.signature
        if signature is None or wanted in str(signature):
            found = found or isinstance(outcome, LabelRecord)
            yield outcome
        elif not isinstance(outcome, LabelFailure):
            others[str(signature)] += 1
    if others and not found:
        listed = "\n".join(f"  {name}  ({n} labels)" for name, n in others.most_common(_NAMED))
        more = f"\n  … and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
        raise UsageError(
            f"{choice.name}: no label's signature contains {choice.option}={wanted!r}; have:\n"
            f"{listed}{more}"
        )


def _whole(record: LabelRecord) -> Kept:
    return _kept(record, record.example)


def _bare(record: LabelRecord) -> Kept:
    return _kept(record, record.example.model_copy(update={"documents": (), "response": ()}))


def _kept(record: LabelRecord, example: KeyedExample) -> Kept:
    seen = shown(record.example)
    content = record.model_copy(update={"example": example}).model_dump_json()
    return Kept(
        digests=tuple(digest(seen[part]) for part in PARTS),
        judgement=digest(record.label.model_dump()),
        output=type(record.label),
        packed=zlib.compress(content.encode(), _QUICK),
    )
