"""Read the labels of one side of a comparison.

A side is chosen in one way everywhere: by a part of the signature, by the trial, or by both.
Records of other kinds are left out. A record may have one label on a side.

Annotations are evaluated, as in :mod:`labeler.data.options`.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Annotated, Any, Generic, Self, TypeVar

from labeler.calculators import Metric
from labeler.calculators.groups import group_key, group_names
from labeler.calculators.metrics_row import Measurer, MetricsRow
from labeler.calculators.outcomes import checked
from labeler.calculators.registry import LABEL
from labeler.calculators.summary import CountedRows
from labeler.calculators.tally import RowFacts
from labeler.data.options import Option
from labeler.errors import UsageError
from labeler.labels.answering import ANSWERED, answered_by
from labeler.labels.answers import PROFILES, GPTLabelingOutput
from labeler.labels.record import AnyOutcome, LabelFailure, LabelRecord, no_labels, requested_kind
from labeler.sentences.display import Brief, plural, reason_counts

LISTED = 5
"""Ids and signatures that an error lists at most."""
_NO_FACTS = RowFacts(0, LABEL)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Choice:
    """The labels that make up one side.

    Attributes:
        name: the file or folder, or another name of the side.
        signature: a part of the signature of its labels. A full signature selects only itself.
        trial: the trial of its labels.
    """

    name: str = "labels"
    signature: str | None = None
    trial: int | None = None

    def fits(self, configuration: str | None, trial: int, *, failed: bool = False) -> bool:
        """Return whether a label or failure may be chosen.

        Args:
            configuration: its signature with the model that answered; ``None`` for a row that
                failed before a judge was chosen, which fits every choice.
            trial: its trial.
            failed: True for a failure, which no model answered.
        """
        if configuration is None:
            return True
        part = self.signature or ""
        if failed:
            part = part.partition(ANSWERED)[0]
        return self.trial in {None, trial} and part in configuration

    def names(self, kept: "Kept[Any]") -> bool:
        """Return True if the choice is the whole signature of a label."""
        return self.signature in {kept.signature, kept.configuration}

    def __str__(self) -> str:
        given = {"--signature": self.signature, "--trial": self.trial}
        return " and ".join(f"{name}={one}" for name, one in given.items() if one is not None)


@dataclass(frozen=True, slots=True)
class Kept(Generic[T]):
    """The kept facts of one label, so that a file of labels need not fit into memory.

    Attributes:
        signature: the printed signature.
        answered: the model that answered; empty if unknown.
        question: digest of the question; ``None`` for a blank one, which no other label shares.
        digests: digest of each of :data:`PARTS`.
        group: text of the value of the grouping column, by :func:`group_key`, or its name, by
            :func:`with_named_groups`; ``None`` without such a column.
        output: class of the label.
        value: the facts that a comparison needs.
    """

    signature: str
    question: int | None
    digests: tuple[str, ...]
    group: str | None
    output: type[GPTLabelingOutput]
    value: T
    answered: str = field(compare=False)

    @classmethod
    def of(cls, row: MetricsRow, value: T, by: str | None) -> Self:
        """Return the facts of a row.

        Args:
            row: a labeled row with its facts.
            value: the facts that a comparison needs.
            by: name of the metadata column to group by.
        """
        facts = row.facts or _NO_FACTS
        return cls(
            signature=row.label or "",
            question=row.question or None,
            digests=facts.digests,
            group=None if by is None else group_key(row.metadata, by),
            output=PROFILES[facts.profile].output,
            value=value,
            answered=row.answered.name if row.answered else "",
        )

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

    @property
    def judges(self) -> set[str]:
        """The signatures without trial and splitter."""
        return {
            "|".join(p for p in one.split("|") if not p.startswith(("trial:", "splitter:")))
            for one in self.signatures
        }

    def as_json(self) -> dict[str, Any]:
        """Return the published form."""
        return {
            "name": self.name,
            "signatures": list(self.signatures),
            "labeled": len(self.labels),
            "failed": dict(Counter(self.failed.values())),
        }

    def summary(self) -> str:
        """Return the number of labels and the first ids."""
        return f"{plural(len(self.labels), 'label')} ({quoted(self.labels)})"


def read_side(
    outcomes: Iterable[AnyOutcome] | CountedRows,
    keep: Callable[[Any], T],
    choice: Choice | None = None,
    *,
    metrics: Sequence[Metric] | None = None,
    by: str | None = None,
    mixed: bool = True,
) -> Side[T]:
    """Read the labels of one side.

    Args:
        outcomes: label records and failures, among others; or a numbers file.
        keep: returns the facts of a label that are kept.
        choice: the labels that are meant; by default all.
        metrics: metrics to measure: then ``keep`` is called with a :class:`MetricsRow`.
        by: name of the metadata column to group by.
        mixed: whether labels of several signatures may be taken together without a choice.

    Raises:
        UsageError: no label fits the choice; a record has two different labels; or labels of
            several signatures are not allowed and none is chosen.
    """
    choice = choice or Choice()
    contents = _Contents[T](choice)
    contents.read(_rows(outcomes, choice, metrics, contents.others), keep, by)
    labeled, chosen, exact = contents.chosen(mixed=mixed)
    failed = dict[str, str]()
    # As in metrics, the first failure counts, and one of a judge before one of none.
    for made_by, name, reason in sorted(contents.failures, key=lambda one: one[0] is None):
        if name not in labeled and (not exact or made_by is None or made_by in chosen):
            failed.setdefault(name, reason)
    copies = sum(contents.repeated[signature] for signature in chosen)
    printed = tuple(sorted({kept.configuration for kept in labeled.values()}))
    return Side(choice.name, printed, labeled, failed, frozenset(contents.columns), copies)


def with_named_groups(*sides: Side[T]) -> list[Side[T]]:
    """Return sides with names of groups: a value has the same name on every side.

    A number and its text, as of a CSV file, are one group unless one side has both, and so are true
    and "True".
    """
    names: dict[str, str] = {}
    for side in sides:
        groups = {kept.group for kept in side.labels.values()}
        for group, name in group_names(one for one in groups if one is not None).items():
            names[group] = max(name, names.get(group, ""), key=len)  # in quotes where one has both
    return [
        replace(
            side,
            labels={
                name: kept if kept.group is None else replace(kept, group=names[kept.group])
                for name, kept in side.labels.items()
            },
        )
        for side in sides
    ]


def _rows(
    outcomes: Iterable[AnyOutcome] | CountedRows,
    choice: Choice,
    metrics: Sequence[Metric] | None,
    others: Counter[str],
) -> Iterator[tuple[MetricsRow, Any]]:
    """Yield the row of each label and failure, and its record unless metrics are measured."""
    if isinstance(outcomes, CountedRows):
        yield from ((row, row) for row in outcomes)
        return
    found = checked(outcomes, f"{choice.name}: ")
    measurer = Measurer(metrics or (), facts=True)
    for outcome in found.of_several_rows() if str(choice) else found:
        if not isinstance(outcome, LabelRecord | LabelFailure):
            others[outcome.kind] += 1
        elif requested_kind(outcome) in {LABEL, None}:
            row = measurer.row(outcome)
            if isinstance(outcome, LabelFailure):
                row = replace(row, facts=RowFacts.of(0, outcome, LABEL))
            yield row, outcome if metrics is None else row


class _Contents(Generic[T]):
    """The contents of a file: what fits the choice, and what errors say about the rest.

    Attributes:
        labels: the different labels of each id.
        failures: signature, id and reason code of the failures.
        columns: names of the metadata columns.
        repeated: numbers of repeated labels by signature.
    """

    def __init__(self, choice: Choice) -> None:
        self._choice = choice
        self._signatures: Counter[str] = Counter()
        self._trials: set[int] = set()
        self.others: Counter[str] = Counter()
        self.labels: dict[str, list[Kept[T]]] = {}
        self.failures: list[tuple[str | None, str, str]] = []
        self.columns: set[str] = set()
        self.repeated: Counter[str] = Counter()

    def read(
        self, rows: Iterable[tuple[MetricsRow, Any]], keep: Callable[[Any], T], by: str | None
    ) -> None:
        """Read the rows of labels and failures, each with what ``keep`` is called with."""
        for row, record in rows:
            trial = row.facts.trial if row.facts else 0
            failed = row.failed is not None
            if not failed:
                self._signatures[row.configuration or ""] += 1
                self._trials.add(trial)
            if not self._choice.fits(row.configuration, trial, failed=failed):
                continue
            if row.failed is not None:
                self.failures.append((row.label, row.id, row.failed))
                continue
            self.columns.update(row.metadata)
            kept = Kept.of(row, keep(record), by)
            known = self.labels.setdefault(row.id, [])
            self.repeated[kept.signature] += (row.facts or _NO_FACTS).copies + (kept in known)
            if kept not in known:
                known.append(kept)

    def chosen(self, *, mixed: bool) -> tuple[dict[str, Kept[T]], set[str], bool]:
        """Return the label of each id, their signatures, and whether the choice names one in full.

        Raises:
            UsageError: see :func:`read_side`.
        """
        # The signatures of other trials begin with the signature of trial 0.
        exact = any(self._choice.names(kept) for some in self.labels.values() for kept in some)
        fitting = {
            name: [kept for kept in some if not exact or self._choice.names(kept)]
            for name, some in self.labels.items()
        }
        signatures = {kept.signature for some in fitting.values() for kept in some}
        if not signatures:
            raise UsageError(f"{self._choice.name}: {self._why_empty()}")
        if not mixed and self._choice.signature is None and len(signatures) > 1:
            raise UsageError(
                f"{self._choice.name} holds labels that were made in {len(signatures)} ways; "
                f"averaged together they would say nothing: {self._how_to_choose()}"
            )
        for name, some in fitting.items():
            if len(some) > 1:
                raise self._ambiguous(name, some)
        return {name: some[0] for name, some in fitting.items() if some}, signatures, exact

    def _why_empty(self) -> str:
        if self._signatures:
            trials = ", ".join(map(str, sorted(self._trials)))
            return f"no label fits {self._choice}; trials {trials}; signatures:\n{self._listed()}"
        if self.others:
            return no_labels(self.others)
        reasons = Counter(reason for _, _, reason in self.failures)
        failed = f"{plural(reasons.total(), 'record')} failed ({reason_counts(reasons)})"
        return f"no label: {failed}" if reasons else "no label is there"

    def _ambiguous(self, name: str, kept: list[Kept[T]]) -> UsageError:
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
            "choose by a part of the signature (--signature) or by the trial (--trial):\n"
            f"{self._listed()}"
        )

    def _listed(self) -> str:
        most = self._signatures.most_common(LISTED)
        lines = [f"  {signature}  ({plural(count, 'label')})" for signature, count in most]
        if len(self._signatures) > LISTED:
            lines.append(f"  … and {len(self._signatures) - LISTED} more")
        return "\n".join(lines)


def mixed_labels(**signatures: Collection[str]) -> Iterator[str]:
    """Yield a warning for each side, by name, whose labels were made in several ways."""
    for side, ways in signatures.items():
        if len(ways) > 1:
            made = f"labels of {side} were made in {len(ways)} ways"
            yield f"{made}, and the numbers are over all of them together"


def quoted(names: Collection[str], total: int | None = None) -> str:
    """Return the first few names, quoted, of all or of a larger number of names."""
    first = ", ".join(f"{name!r:.80}" for name in islice(names, LISTED))
    return f"{first}{', …' if (total or len(names)) > LISTED else ''}"


@dataclass(frozen=True, kw_only=True)
class ChoiceOptions:
    """The labels that are meant, of each file."""

    signature: Annotated[
        str | None, Option("Use only labels whose signature contains this text.")
    ] = None
    trial: Annotated[int | None, Option("Use only this trial.")] = None


@dataclass(frozen=True, kw_only=True)
class SideOptions(ChoiceOptions):
    """The labels of both sides, and their groups."""

    by: Annotated[str | None, Option("Group by this metadata column.")] = None

    def __post_init__(self) -> None:
        by: object = self.by
        if not isinstance(by, str | None):
            raise UsageError(f"by must be the name of one metadata column, got {by!r:.40}")


@dataclass(frozen=True, kw_only=True)
class HumanOptions:
    """Human labels to compare a judge with."""

    human: Annotated[
        str | None,
        Option(
            "Human labels: JSON Lines or CSV with the columns id, sentence, annotator, field, "
            "value; or a file of corrections."
        ),
    ] = None
    random_sample: Annotated[
        bool,
        Option(
            "Treat the human-labeled records as a random sample; of corrections, use only those "
            "drawn at random."
        ),
    ] = False
    blind_only: Annotated[
        bool,
        Option("Use only corrections made without seeing the judge's verdicts."),
    ] = False
