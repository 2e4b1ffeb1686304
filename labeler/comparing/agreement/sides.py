"""The labels of one side of a comparison: one a record, or an error that says how to choose."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Generic, TypeVar

from labeler.errors import UsageError
from labeler.labels.record import (
    AnyOutcome,
    LabelFailure,
    LabelRecord,
    Outcome,
    ScoreRecord,
    is_canary,
    records_of,
)

T = TypeVar("T")

_NAMED = 5
"""Ids that an error names at most."""


@dataclass(frozen=True)
class LabelsById(Generic[T]):
    """One side of a comparison.

    Attributes:
        name: the file or folder, or what else the side is called.
        labelled: what is kept of each label, by record id.
        failed: ids of the records that have no label.
        signatures: printed signatures of the labels, sorted.
        columns: names of the metadata columns.
    """

    name: str
    labelled: dict[str, T] = field(repr=False)
    failed: frozenset[str] = field(repr=False)
    signatures: tuple[str, ...]
    columns: frozenset[str]

    def some(self) -> str:
        """How many labels there are, and the first few ids."""
        named = ", ".join(f"{name!r:.80}" for name in islice(self.labelled, _NAMED))
        more = ", …" if len(self.labelled) > _NAMED else ""
        return f"{len(self.labelled)} labels ({named}{more})"


def labels_by_id(
    outcomes: Iterable[AnyOutcome],
    keep: Callable[[LabelRecord], T],
    *,
    name: str,
    trial: int | None = None,
    option: str = "--trial",
) -> LabelsById[T]:
    """Read the labels of one side; canaries, and what is no label, are left out.

    Args:
        outcomes: label records and failures, among others.
        keep: what to keep of a label: a file of labels need not fit into memory.
        name: what errors call the side.
        trial: only the labels of this trial; by default all.
        option: the parameter that chooses the trial, named in errors.

    Raises:
        UsageError: there is no label, or two of one record are not the same judgement.
    """
    labelled: dict[str, T] = {}
    keys: dict[str, tuple[str, str]] = {}
    failed: set[str] = set()
    columns: set[str] = set()
    contents = _Contents()
    for outcome in records_of(contents.noted(outcomes), "label"):
        if is_canary(outcome) or not _of_trial(outcome, trial):
            continue
        if isinstance(outcome, LabelFailure):
            failed.add(outcome.id)
            continue
        columns.update(outcome.example.metadata)
        kept, made_by = keep(outcome), (outcome.key, str(outcome.signature))
        if keys.setdefault(outcome.id, made_by) != made_by or (
            labelled.setdefault(outcome.id, kept) != kept
        ):
            raise _ambiguous(outcome, keys[outcome.id], name)
    if not labelled:
        raise UsageError(f"{name}: {contents.without_labels(trial, option, len(failed))}")
    return LabelsById(
        name=name,
        labelled=labelled,
        failed=frozenset(failed - labelled.keys()),
        signatures=tuple(sorted({signature for _, signature in keys.values()})),
        columns=frozenset(columns),
    )


class _Contents:
    """What a file holds, to say why no label of it can be compared."""

    def __init__(self) -> None:
        self._scores = 0
        self._trials: set[int] = set()

    def noted(self, outcomes: Iterable[AnyOutcome]) -> Iterator[AnyOutcome]:
        """The very same outcomes."""
        for outcome in outcomes:
            if isinstance(outcome, ScoreRecord):
                self._scores += 1
            elif isinstance(outcome, LabelRecord) and not is_canary(outcome):
                self._trials.add(outcome.signature.trial)
            yield outcome

    def without_labels(self, trial: int | None, option: str, failed: int) -> str:
        """Why there is no label."""
        if self._trials:
            there = ", ".join(map(str, sorted(self._trials)))
            return f"no label of trial {trial} ({option}); trials there: {there}"
        if self._scores:
            return (
                f"{self._scores} scores and no labels; name what labeler label wrote, not what "
                "labeler score did"
            )
        if failed:
            return f"no label: all {failed} records failed"
        return "no label is there"


def _of_trial(outcome: Outcome, trial: int | None) -> bool:
    """Whether an outcome is of a trial; a row that failed before it was asked is of each."""
    return trial is None or outcome.signature is None or outcome.signature.trial == trial


def _ambiguous(record: LabelRecord, known: tuple[str, str], name: str) -> UsageError:
    key, signature = known
    where = f"{name}: record {record.id!r:.80} stands there twice"
    if signature != str(record.signature):
        return UsageError(
            f"{where}, labelled by {signature} and by {record.signature}; choose a trial where "
            "only the trial differs (--trial), else compare files that hold one way of labelling"
        )
    what = "with different labels" if key == record.key else "with different sentences"
    return UsageError(
        f"{where} {what} by {signature}; give each record an id of its own, and one label"
    )


def group_name(metadata: dict[str, Any], by: str | None) -> str | None:
    """A record's value in the grouping column, as text; ``None`` where nothing is grouped."""
    if by is None:
        return None
    value = metadata.get(by)
    return "(none)" if value is None else str(value)


def check_column(side: LabelsById[T], by: str | None) -> None:
    """See that there is a column to group by.

    Raises:
        UsageError: no record has it.
    """
    if by is not None and by not in side.columns:
        have = ", ".join(sorted(side.columns)) or "none"
        raise UsageError(f"{side.name}: no record has a column {by!r}; columns: {have}")
