"""Read the labels of one side of a comparison.

A side is chosen in one way everywhere: by a part of the signature, by the trial, or by both.
Records of other kinds are left out. A record may have one label on a side.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import Any, Generic, NamedTuple, Self, TypeVar

from labeler.calculators import Metric
from labeler.calculators.metrics_row import MetricsRow
from labeler.calculators.outcomes import checked
from labeler.calculators.row_facts import RowFacts, group_key, group_names, part_digests
from labeler.calculators.summary import CountedRows
from labeler.errors import UsageError
from labeler.labels.answering import ANSWERED, AnsweringModel, answered_by, configuration
from labeler.labels.answers import GPTLabelingOutput
from labeler.labels.profiles import PROFILES
from labeler.labels.record import (
    AnyOutcome,
    LabelFailure,
    LabelRecord,
    Outcome,
    records_of,
)
from labeler.sentences.display import Brief

LISTED = 5
"""Ids and signatures that an error lists at most."""

T = TypeVar("T")
X = TypeVar("X", bound=AnyOutcome | MetricsRow)


@dataclass(frozen=True, slots=True)
class Choice:
    """The labels that make up one side.

    Attributes:
        name: the file or folder, or another name of the side.
        signature: a part of the signature of its labels. A full signature selects only itself.
        trial: the trial of its labels.
        signature_option: the option that sets ``signature``, named in errors.
        trial_option: the option that sets ``trial``, named in errors.
    """

    name: str = "labels"
    signature: str | None = None
    trial: int | None = None
    signature_option: str = "a_signature"
    trial_option: str = "trial"

    def fits(self, outcome: Outcome | MetricsRow) -> bool:
        """Return whether a label may be chosen; a row that failed unasked fits every choice."""
        found = _Found.of(outcome)
        if found.configuration is None:
            return True
        part = self.signature or ""
        if found.failed is not None:
            part = part.partition(ANSWERED)[0]
        return self.trial in {None, found.trial} and part in found.configuration

    def names(self, kept: Kept[Any]) -> bool:
        """Return True if the choice is the whole signature of a label."""
        return self.signature in {kept.signature, kept.configuration}

    def __str__(self) -> str:
        given = ((self.signature_option, self.signature), (self.trial_option, self.trial))
        return " and ".join(
            f"{_option(option)}={value}" for option, value in given if value is not None
        )


class _Found(NamedTuple):
    """The facts by which a label, a failure or a row of a numbers file is chosen.

    Attributes:
        label: printed signature; ``None`` if no judge was chosen.
        configuration: the same with the model that answered.
        trial: the trial.
        failed: reason code of a failure.
        metadata: the row's other columns.
    """

    label: str | None
    configuration: str | None
    trial: int
    failed: str | None
    metadata: Mapping[str, Any]

    @classmethod
    def of(cls, outcome: Outcome | MetricsRow) -> Self:
        """Return the facts of an outcome or row."""
        if isinstance(outcome, MetricsRow):
            trial = outcome.facts.trial if outcome.facts else 0
            made_by = outcome.label, outcome.configuration
            return cls(*made_by, trial, outcome.failed, outcome.metadata)
        label = None if outcome.signature is None else str(outcome.signature)
        trial = outcome.signature.trial if outcome.signature else 0
        if isinstance(outcome, LabelFailure):
            return cls(label, label, trial, outcome.reason, outcome.metadata)
        return cls(label, configuration(outcome), trial, None, outcome.example.metadata)


@dataclass(frozen=True, slots=True)
class Kept(Generic[T]):
    """The kept facts of one label, so that a file of labels need not fit into memory.

    Attributes:
        signature: the printed signature.
        answered: the model that answered; empty if unknown.
        question: digest of the question; ``None`` for a blank one, which no other label shares.
        digests: digest of each of :data:`PARTS`.
        group: value of the grouping column; ``None`` without such a column.
        output: class of the label.
        value: the facts that a comparison needs.
    """

    signature: str
    question: str | None
    digests: tuple[str, ...]
    group: str | None
    output: type[GPTLabelingOutput]
    value: T
    answered: str = field(compare=False)

    @property
    def configuration(self) -> str:
        """The printed signature with the model that answered."""
        return answered_by(self.signature, self.answered)


@dataclass(frozen=True, repr=False)
class Side(Brief, Generic[T]):
    """The labels of one side.

    Attributes:
        name: the file or folder, or another name of the side.
        signatures: printed signatures of the labels with the models that answered, sorted.
        labels: by record id, in the order of the file.
        failed: reason codes of the records without a label, by id.
        columns: names of the metadata columns.
        repeated: labels left out because they repeat another one.
        names: ids of the labels by their ids in the file, where these are others.
    """

    name: str
    signatures: tuple[str, ...]
    labels: Mapping[str, Kept[T]] = field(repr=False)
    failed: Mapping[str, str] = field(repr=False)
    columns: frozenset[str] = field(repr=False)
    repeated: int = 0
    names: Mapping[str, str] = field(default_factory=dict, repr=False)

    def renamed(self, names: Mapping[str, str]) -> Self:
        """Return the side with some labels under other ids.

        Args:
            names: new ids by present ones.
        """
        labels = {names.get(name, name): kept for name, kept in self.labels.items()}
        return replace(self, labels=labels, names=names)

    def value(self, name: str) -> T:
        """Return the kept facts of a record."""
        return self.labels[name].value

    @property
    def groups(self) -> list[str | None]:
        """``None`` for all records, then the groups, sorted."""
        found = {kept.group for kept in self.labels.values()}
        return [None, *sorted(group for group in found if group is not None)]

    @cached_property
    def _outputs(self) -> frozenset[type[GPTLabelingOutput]]:
        return frozenset(kept.output for kept in self.labels.values())

    def has_fields_of(self, metric: Metric) -> bool:
        """Return whether some label has the fields that a metric needs."""
        return any(issubclass(output, metric.profile.output) for output in self._outputs)

    def summary(self) -> str:
        """Return the number of labels and the first ids."""
        more = ", …" if len(self.labels) > LISTED else ""
        return f"{len(self.labels)} labels ({listed(self.labels)}{more})"


def read_side(
    outcomes: Iterable[AnyOutcome] | CountedRows,
    keep: Callable[[Any], T],
    choice: Choice | None = None,
    *,
    by: str | None = None,
    mixed: bool = True,
) -> Side[T]:
    """Read the labels of one side.

    Args:
        outcomes: label records and failures, among others; or a numbers file.
        keep: returns the facts of a label that are kept.
        choice: the labels that are meant; by default all.
        by: name of the metadata column to group by.
        mixed: whether labels of several signatures may be taken together without a choice.

    Raises:
        UsageError: no label fits the choice; a record has two different labels; or labels of
            several signatures are not allowed and none is chosen.
    """
    choice = choice or Choice()
    contents = _Contents(choice)
    found, columns, repeated = contents.read(outcomes, keep, by)
    # The signature of trial 0 is the beginning of those of the other trials.
    exact = any(choice.names(kept) for some in found.values() for kept in some)
    fitting = {
        name: [kept for kept in some if not exact or choice.names(kept)]
        for name, some in found.items()
    }
    chosen = {kept.signature for some in fitting.values() for kept in some}
    contents.check(chosen, mixed=mixed)
    for name, some in fitting.items():
        if len(some) > 1:
            raise contents.ambiguous(name, some)
    labeled = {name: some[0] for name, some in fitting.items() if some}
    if by is not None:
        names = group_names({kept.group or "" for kept in labeled.values()})
        labeled = {
            name: replace(kept, group=names[kept.group or ""]) for name, kept in labeled.items()
        }
    failed = {
        name: reason
        for made_by, name, reason in contents.failures
        if name not in labeled and (not exact or made_by is None or made_by in chosen)
    }
    copies = sum(repeated[signature] for signature in chosen)
    printed = tuple(sorted({kept.configuration for kept in labeled.values()}))
    return Side(choice.name, printed, labeled, failed, frozenset(columns), copies)


def _kept(record: LabelRecord | MetricsRow, keep: Callable[[Any], T], by: str | None) -> Kept[T]:
    group = None if by is None else group_key(_Found.of(record).metadata, by)
    if isinstance(record, MetricsRow):
        facts = record.facts or RowFacts(0, "label")
        return Kept(
            signature=record.label or "",
            answered=record.answered.name if record.answered else "",
            question=facts.digests[0] if record.question else None,
            digests=facts.digests,
            group=group,
            output=PROFILES[facts.profile].output,
            value=keep(record),
        )
    digests = part_digests(record.example)
    return Kept(
        signature=str(record.signature),
        answered=AnsweringModel.of(record.signature, record.reply).name,
        question=digests[0] if (record.example.question or "").strip() else None,
        digests=digests,
        group=group,
        output=type(record.label),
        value=keep(record),
    )


class _Contents:
    """The contents of a file: what is read of it, and errors about the labels of a side.

    Attributes:
        failures: signature, id and reason code of the failures that fit the choice.
    """

    def __init__(self, choice: Choice) -> None:
        self._choice = choice
        self._signatures: Counter[str] = Counter()
        self._trials: set[int] = set()
        self._others: Counter[str] = Counter()
        self.failures: list[tuple[str | None, str, str]] = []

    def read(
        self,
        outcomes: Iterable[AnyOutcome] | CountedRows,
        keep: Callable[[Any], T],
        by: str | None,
    ) -> tuple[dict[str, list[Kept[T]]], set[str], Counter[str]]:
        """Return the different labels of each id, the metadata columns, and repeated labels."""
        found: dict[str, list[Kept[T]]] = {}
        columns: set[str] = set()
        repeated: Counter[str] = Counter()
        for outcome in self._labels(outcomes):
            if not self._choice.fits(outcome):
                continue
            facts = _Found.of(outcome)
            if isinstance(outcome, LabelFailure) or facts.failed is not None:
                self.failures.append((facts.label, outcome.id, facts.failed or ""))
                continue
            columns.update(facts.metadata)
            kept = _kept(outcome, keep, by)
            if isinstance(outcome, MetricsRow) and outcome.facts:
                repeated[kept.signature] += outcome.facts.copies
            known = found.setdefault(outcome.id, [])
            if kept in known:
                repeated[kept.signature] += 1
            else:
                known.append(kept)
        return found, columns, repeated

    def _labels(
        self, outcomes: Iterable[AnyOutcome] | CountedRows
    ) -> Iterable[Outcome | MetricsRow]:
        """Count outcomes, and return labels and failures."""
        if isinstance(outcomes, CountedRows):
            return map(self._count, outcomes)
        found = checked(outcomes, f"{self._choice.name}: ")
        if str(self._choice):
            found = found.of_several_rows()
        return records_of(map(self._count, found), "label")

    def _count(self, outcome: X) -> X:
        if isinstance(outcome, LabelRecord | MetricsRow):
            facts = _Found.of(outcome)
            if facts.failed is None:
                self._signatures[facts.configuration or ""] += 1
                self._trials.add(facts.trial)
        elif not isinstance(outcome, LabelFailure):
            self._others[outcome.kind] += 1
        return outcome

    def check(self, chosen: set[str], *, mixed: bool) -> None:
        """Check that labels were chosen, of one signature where several are not allowed."""
        if not chosen:
            raise UsageError(f"{self._choice.name}: {self._why_empty(len(self.failures))}")
        if not mixed and self._choice.signature is None and len(chosen) > 1:
            raise UsageError(
                f"{self._choice.name} holds labels that were made in {len(chosen)} ways; averaged "
                f"together they would say nothing: {self._how_to_choose()}"
            )

    def _why_empty(self, failed: int) -> str:
        if self._signatures:
            trials = ", ".join(map(str, sorted(self._trials)))
            return f"no label fits {self._choice}; trials {trials}; signatures:\n{self._listed()}"
        if self._others:
            held = ", ".join(f"{count} of kind {kind!r}" for kind, count in self._others.items())
            return (
                f"no labels, but records {held}; labels are what is compared: name files of "
                "labeler label (labeler metrics summarizes scores and written questions)"
            )
        return f"no label: all {failed} records failed" if failed else "no label is there"

    def ambiguous(self, name: str, kept: list[Kept[T]]) -> UsageError:
        """Return the error about a record with several labels."""
        where = f"{self._choice.name}: record {name!r:.80}"
        signatures = {one.signature for one in kept}
        if len(signatures) > 1:
            return UsageError(
                f"{where} was labeled in {len(signatures)} ways: {self._how_to_choose()}"
            )
        same = len({one.digests for one in kept}) == 1
        return UsageError(
            f"{where} stands there twice, with different {'labels' if same else 'sentences'} by "
            f"{kept[0].signature}; give each record an id of its own, and one label: a store also "
            "keeps the labels of earlier texts, the label file of a run (labeler label -o) only "
            "its own"
        )

    def _how_to_choose(self) -> str:
        return (
            f"choose by a part of the signature ({_option(self._choice.signature_option)}) or by "
            f"the trial ({_option(self._choice.trial_option)}):\n{self._listed()}"
        )

    def _listed(self) -> str:
        most = self._signatures.most_common(LISTED)
        lines = [f"  {signature}  ({count} labels)" for signature, count in most]
        if len(self._signatures) > LISTED:
            lines.append(f"  … and {len(self._signatures) - LISTED} more")
        return "\n".join(lines)


def listed(names: Iterable[str]) -> str:
    """Return the first few names, quoted."""
    return ", ".join(f"{name!r:.80}" for name in islice(names, LISTED))


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
