"""Joins the labels of two files by record, and says what the two of a pair have in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from labeler.calculators import Metric, Tally, tally
from labeler.errors import UsageError
from labeler.labels.answers import GPTLabelingOutput, in_order
from labeler.labels.record import LabelFailure, LabelRecord, Outcome, is_canary, shown
from labeler.labels.signature import digest

_NAMED = 5
"""Signatures and ids that an error lists at most."""


@dataclass(frozen=True, slots=True)
class Flip:
    """Sentences that one label counts and the other does not.

    Attributes:
        field: ``relevant``, ``utilized`` or ``supported``.
        gained: keys that only B's label counts, in reading order.
        lost: keys that only A's label counts, in reading order.
    """

    field: str
    gained: tuple[str, ...]
    lost: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Measured:
    """What is kept of a label: a file of labels need not fit into memory.

    Attributes:
        values: each metric's value, or the reason why it has none, in the order of the metrics.
        question: digest of the question.
        documents: digest of the documents' sentences and keys.
        response: digest of the response's sentences and keys.
        counted: by field, the keys of the sentences that the label counts.
        column: the row's value in the column that pairs are grouped by.
    """

    values: tuple[float | str, ...]
    question: str
    documents: str
    response: str
    counted: tuple[tuple[str, frozenset[str]], ...]
    column: str | None

    def parts_unlike(self, other: Measured) -> tuple[str, ...]:
        """Which of ``documents`` and ``response`` are not the very same sentences."""
        parts = ("documents", "response")
        return tuple(part for part in parts if getattr(self, part) != getattr(other, part))

    def flips(self, other: Measured) -> tuple[Flip, ...]:
        """What the other label of the same sentences counts otherwise."""
        both = zip(self.counted, other.counted, strict=True)
        return tuple(
            Flip(name, in_order(theirs - mine), in_order(mine - theirs))
            for (name, mine), (_, theirs) in both
            if mine != theirs
        )


@dataclass(frozen=True)
class Side:
    """The labels of one side that are compared.

    Attributes:
        name: the file or folder, or what else the side is called.
        signatures: printed signatures of its labels, sorted.
        labelled: its labels by record id.
        failed: reason codes of its records without a label, by id.
        columns: names of the metadata columns of its labels.
        outputs: the classes of its labels, which tell what a metric finds in them.
    """

    name: str
    signatures: tuple[str, ...]
    labelled: Mapping[str, Measured] = field(repr=False)
    failed: Mapping[str, str] = field(repr=False)
    columns: frozenset[str] = field(repr=False)
    outputs: frozenset[type[GPTLabelingOutput]] = field(repr=False)

    def has_fields_of(self, metric: Metric) -> bool:
        """Whether some label has the fields that a metric needs."""
        return any(issubclass(output, metric.profile.output) for output in self.outputs)


@dataclass(frozen=True, slots=True)
class Pair:
    """The two labels of one record."""

    id: str
    a: Measured
    b: Measured

    @property
    def flips(self) -> tuple[Flip, ...] | None:
        """What B's label counts otherwise; ``None`` where the sentences are not the same."""
        return None if self.a.parts_unlike(self.b) else self.a.flips(self.b)

    @property
    def column(self) -> str | None:
        """Value of the grouping column, where both sides have the same."""
        return self.a.column if self.a.column == self.b.column else "(differs)"


@dataclass(frozen=True)
class Counts:
    """What became of the records of both sides.

    Attributes:
        pairs: labelled on both sides: these are compared.
        only_a: records that B does not have, failed ones included.
        only_b: records that A does not have, failed ones included.
        failed_a: records of both sides that only A has no label of.
        failed_b: records of both sides that only B has no label of.
        failed_both: records of both sides that neither has a label of.
        other_question: ids under which the sides ask different questions: no pairs.
        same: pairs of the very same question, documents and response.
        unlike: other pairs, by what is unlike: ``documents``, ``response``, or
            ``documents and response``.
    """

    pairs: int
    only_a: int
    only_b: int
    failed_a: int
    failed_b: int
    failed_both: int
    other_question: int
    same: int
    unlike: dict[str, int]


def read_side(
    outcomes: Iterable[Outcome],
    metrics: Sequence[Metric],
    *,
    name: str,
    option: str,
    signature: str | None = None,
    column: str | None = None,
) -> Side:
    """Measure the labels of one side, those of a chosen signature or of the only one.

    Args:
        outcomes: label records and failures; canaries are left out.
        metrics: what is computed of each.
        name: what the side is called in errors.
        option: the parameter that chooses a signature, named in errors.
        signature: printed signature of the labels, or a part of it. It may fit several ways of
            labelling, as two splitters, so long as no record was labelled in two of them.
        column: the metadata column that pairs are grouped by.

    Raises:
        UsageError: the labels were made in several ways and none is chosen, the chosen one is not
            there, or a record has two different labels.
    """
    reading = _Reading(metrics, name, signature, column)
    for outcome in outcomes:
        if not is_canary(outcome):
            reading.add(outcome)
    return reading.side(option)


class _Reading:
    """Collects the labels of one side, each way of labelling by itself."""

    def __init__(
        self, metrics: Sequence[Metric], name: str, wanted: str | None, column: str | None
    ) -> None:
        self._metrics, self._name, self._wanted, self._column = metrics, name, wanted, column
        self._seen: Counter[str] = Counter()
        self._labels: dict[str, dict[str, Measured]] = {}
        self._failures: list[tuple[str | None, str, str]] = []
        self._columns: set[str] = set()
        self._outputs: set[type[GPTLabelingOutput]] = set()

    def add(self, outcome: Outcome) -> None:
        if isinstance(outcome, LabelFailure):
            made_by = None if outcome.signature is None else str(outcome.signature)
            self._failures.append((made_by, outcome.id, outcome.reason))
            return
        made_by = str(outcome.signature)
        self._seen[made_by] += 1
        if self._wanted is None or self._wanted in made_by:
            self._columns.update(outcome.example.metadata)
            self._outputs.add(type(outcome.label))
            self._keep(self._labels.setdefault(made_by, {}), outcome)

    def _keep(self, labels: dict[str, Measured], record: LabelRecord) -> None:
        measured = _measured(record, self._metrics, self._column)
        if labels.setdefault(record.id, measured) != measured:
            raise UsageError(
                f"{self._name} holds record {record.id!r} twice, with different sentences or "
                "labels; give each record once: a store also keeps the labels of earlier texts, "
                "the label file of a run (labeler label -o) only its own"
            )

    def side(self, option: str) -> Side:
        chosen = self._chosen(option)
        labelled: dict[str, Measured] = {}
        for made_by in chosen:
            if twice := labelled.keys() & self._labels[made_by].keys():
                raise UsageError(
                    f"{self._name}: {option}={self._wanted!r} fits {len(chosen)} ways of "
                    f"labelling, and {min(twice)!r} was labelled in more than one; choose "
                    f"one:\n{self._listed()}"
                )
            labelled |= self._labels[made_by]
        failed = {
            row: reason
            for made_by, row, reason in self._failures
            if row not in labelled and (made_by is None or self._fits(made_by, chosen))
        }
        return Side(
            self._name,
            tuple(chosen),
            labelled,
            failed,
            frozenset(self._columns),
            frozenset(self._outputs),
        )

    def _chosen(self, option: str) -> list[str]:
        if self._wanted is None and len(self._seen) > 1:
            raise UsageError(
                f"{self._name} holds labels that were made in {len(self._seen)} ways; averaged "
                f"together they would say nothing: choose by a part of the signature with "
                f"{option}:\n{self._listed()}"
            )
        if self._wanted is not None and self._seen and not self._labels:
            raise UsageError(
                f"{self._name}: no label's signature contains {option}={self._wanted!r}; "
                f"have:\n{self._listed()}"
            )
        # A signature may be the beginning of another: given in full it means itself.
        return [self._wanted] if self._wanted in self._labels else sorted(self._labels)

    def _fits(self, made_by: str, chosen: Sequence[str]) -> bool:
        if self._wanted is None:
            return True
        return made_by in chosen or (self._wanted in made_by and self._wanted not in chosen)

    def _listed(self) -> str:
        lines = [f"  {made_by}  ({n} labels)" for made_by, n in self._seen.most_common(_NAMED)]
        if len(self._seen) > _NAMED:
            lines.append(f"  … and {len(self._seen) - _NAMED} more")
        return "\n".join(lines)


def join(a: Side, b: Side) -> tuple[list[Pair], Counts]:
    """Pair the records that both sides have a label of, in A's order, and count the others.

    Raises:
        UsageError: there is not one pair.
    """
    joined = [
        Pair(row, mine, b.labelled[row]) for row, mine in a.labelled.items() if row in b.labelled
    ]
    pairs = [pair for pair in joined if pair.a.question == pair.b.question]
    have_a, have_b = a.labelled.keys() | a.failed.keys(), b.labelled.keys() | b.failed.keys()
    unlike = Counter(" and ".join(pair.a.parts_unlike(pair.b)) for pair in pairs)
    counts = Counts(
        pairs=len(pairs),
        only_a=len(have_a - have_b),
        only_b=len(have_b - have_a),
        failed_a=len(a.failed.keys() & b.labelled.keys()),
        failed_b=len(a.labelled.keys() & b.failed.keys()),
        failed_both=len(a.failed.keys() & b.failed.keys()),
        other_question=len(joined) - len(pairs),
        same=unlike.pop("", 0),
        unlike=dict(unlike),
    )
    if not pairs:
        raise UsageError(_nothing_common(a, b, counts))
    return pairs, counts


def _nothing_common(a: Side, b: Side, counts: Counts) -> str:
    if counts.other_question:
        return (
            f"{a.name} and {b.name} share {counts.other_question} ids, but ask other questions "
            "under them; records are joined by id: give both sides the same ids (--id)"
        )
    return (
        f"{a.name} and {b.name} share no labelled record: {a.name} has {_some(a)}, {b.name} has "
        f"{_some(b)}; records are joined by id: give both sides the same ids (--id)"
    )


def _some(side: Side) -> str:
    named = ", ".join(map(repr, islice(side.labelled, _NAMED)))
    more = ", …" if len(side.labelled) > _NAMED else ""
    return f"{len(side.labelled)} labels{f' ({named}{more})' if named else ''}"


def _measured(record: LabelRecord, metrics: Sequence[Metric], column: str | None) -> Measured:
    counted, texts = tally(record), shown(record.example)
    value = record.example.metadata.get(column) if column is not None else None
    return Measured(
        values=tuple(_value(metric, counted) for metric in metrics),
        question=digest(texts["question"]),
        documents=digest(texts["documents"]),
        response=digest(texts["response"]),
        counted=(
            ("relevant", counted.relevant),
            ("utilized", counted.utilized),
            ("supported", counted.supported),
        ),
        column=None if value is None else str(value),
    )


def _value(metric: Metric, counted: Tally) -> float | str:
    ratio = metric.compute(counted)
    return ratio.undefined or "undefined" if ratio.value is None else ratio.value
