"""The labels of one side of a comparison: one a record, or an error that says how to choose."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from labeler.canaries import is_canary
from labeler.errors import UsageError
from labeler.record import LabelFailure, LabelRecord, Outcome

T = TypeVar("T")


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


def labels_by_id(
    outcomes: Iterable[Outcome],
    keep: Callable[[LabelRecord], T],
    *,
    name: str,
    trial: int | None = None,
) -> LabelsById[T]:
    """Read the labels of one side; canaries are left out.

    Args:
        outcomes: label records and failures.
        keep: what to keep of a label: a file of labels need not fit into memory.
        name: what errors call the side.
        trial: only the labels of this trial; by default all.

    Raises:
        UsageError: two labels of one record are not the same judgement.
    """
    labelled: dict[str, T] = {}
    keys: dict[str, tuple[str, str]] = {}
    failed: set[str] = set()
    columns: set[str] = set()
    for outcome in outcomes:
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
    return LabelsById(
        name=name,
        labelled=labelled,
        failed=frozenset(failed - labelled.keys()),
        signatures=tuple(sorted({signature for _, signature in keys.values()})),
        columns=frozenset(columns),
    )


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


def group_of(metadata: dict[str, Any], by: str | None) -> str | None:
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
    if by is not None and side.labelled and by not in side.columns:
        have = ", ".join(sorted(side.columns)) or "none"
        raise UsageError(f"{side.name}: no record has a column {by!r}; columns: {have}")
