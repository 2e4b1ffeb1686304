"""Corrections as human labels, and what they make of a judge's means."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from labeler.calculators import select_metrics
from labeler.comparing.agreement import Estimates, compare_with_people
from labeler.comparing.human_labels import OVERALL, HumanLabel, HumanLabels
from labeler.data.corrections.applying import usable
from labeler.data.corrections.correction import Correction, Judgement, Queue, decided
from labeler.data.corrections.file import independent
from labeler.errors import UsageError
from labeler.labels.record import AnyOutcome, LabelRecord, is_canary

RANDOM: Queue = "random"


def human_labels(
    corrections: Iterable[Correction],
    records: Iterable[AnyOutcome],
    *,
    queue: Queue | None = None,
    blind_only: bool = False,
    trial: int | None = None,
    name: str = "corrections",
) -> HumanLabels:
    """Everything that people said of sentences and records, by agreeing as by disagreeing.

    Of one person on one label the last judgement counts that was made blind, or else the last;
    and of one person on one record too: where labels of several trials were judged, that of the
    label judged last.

    Args:
        corrections: all events, in the order of the file.
        records: the labels that they speak of, among other outcomes.
        queue: only corrections of records that came before people in this way.
        blind_only: only corrections by people who did not see the judge's verdicts.
        trial: only corrections of labels of this trial.
        name: what errors call the corrections.
    """
    chosen, repeated = _chosen(
        corrections, records, queue=queue, blind_only=blind_only, trial=trial, name=name
    )
    return HumanLabels(tuple(label for each in chosen for label in each.labels), repeated, ())


class _Counted(NamedTuple):
    """A judgement that counts as human labels; the last of its person on its record."""

    place: int
    """Among all judgements, in the order in which they were made."""
    correction: Correction
    labels: list[HumanLabel]


def _chosen(
    corrections: Iterable[Correction],
    records: Iterable[AnyOutcome],
    *,
    queue: Queue | None,
    blind_only: bool,
    trial: int | None,
    name: str,
) -> tuple[list[_Counted], int]:
    """The judgements that count, and how many human labels of others they replace."""
    last: dict[str, list[Correction]] = {}
    order: dict[tuple[str, str], int] = {}
    for place, each in enumerate(independent(corrections)):
        if queue in {None, each.queue} and (each.blind or not blind_only):
            last.setdefault(each.key, []).append(each)
            order[each.key, each.annotator] = place
    found: dict[tuple[str, str], _Counted] = {}
    repeated = 0
    for record in _distinct(records, last, trial):
        for correction, judgement in usable(last[record.key], record):
            place = order[correction.key, correction.annotator]
            said = list(_labels(record, correction, judgement, f"{name}:{correction.id!r:.80}"))
            person = record.id, correction.annotator
            known = found.get(person)
            if known is None or known.place < place:
                found[person] = _Counted(place, correction, said)
                said = known.labels if known else []
            repeated += len(said)
    return list(found.values()), repeated


def _distinct(
    outcomes: Iterable[AnyOutcome], wanted: dict[str, list[Correction]], trial: int | None
) -> Iterator[LabelRecord]:
    """The labels that corrections speak of, each once."""
    seen: set[str] = set()
    for outcome in outcomes:
        if (
            isinstance(outcome, LabelRecord)
            and not is_canary(outcome)
            and outcome.key in wanted
            and outcome.key not in seen
            and trial in {None, outcome.signature.trial}
        ):
            seen.add(outcome.key)
            yield outcome


def _labels(
    record: LabelRecord, correction: Correction, judgement: Judgement, where: str
) -> Iterator[HumanLabel]:
    """One judgement as human labels: every sentence decided on, and the record."""
    example = record.example
    response = decided(record, correction).union(judgement.support)
    said = {
        "relevant": (example.document_keys(), frozenset(judgement.relevant)),
        "utilized": (example.document_keys(), frozenset(judgement.utilized)),
        "supported": (
            [key for key in example.response_keys() if key in response],
            frozenset(judgement.support),
        ),
    }
    for field, (keys, yes) in said.items():
        for key in keys:
            value = float(key in yes)
            yield HumanLabel(record.id, field, key, correction.annotator, value, where)
    overall = float(judgement.overall_supported)
    yield HumanLabel(record.id, OVERALL, None, correction.annotator, overall, where)


def estimates(
    records: Callable[[], Iterable[AnyOutcome]],
    corrections: Iterable[Correction],
    metrics: Iterable[str] | None = None,
) -> tuple[Estimates, ...]:
    """Means of metrics by the judge, by people, and by both together.

    Known are the metrics that follow from verdicts on sentences: ``relevance``, ``utilization``,
    ``adherence``, ``adherence_fraction``, and ``overall_supported``. Where all corrections that
    count are of records drawn at random, they speak for all records; else each estimate says that
    this is not known.

    Args:
        records: gives the labels, each time anew: they are read twice.
        corrections: all events.
        metrics: ids; by default all of those.

    Returns:
        The estimates; none where no correction counts.

    Raises:
        UnknownName: there is no such metric.
    """
    last = independent(corrections)
    human = human_labels(last, records())
    if not human.labels:
        return ()
    spoken = {(label.id, label.annotator) for label in human.labels}
    at_random = all(
        each.queue == RANDOM
        for each in last
        if each.verdict is not None and (each.id, each.annotator) in spoken
    )
    found = compare_with_people(records(), human, random_sample=at_random).estimates
    if metrics is None:
        return found
    wanted = _wanted(metrics)
    return tuple(each for each in found if each.metric in wanted)


def _wanted(metrics: Iterable[str]) -> frozenset[str]:
    names = list(metrics)
    known = select_metrics([name for name in names if name != OVERALL]) if names else ()
    return frozenset([*(metric.id for metric in known), *({OVERALL} & set(names))])


class ForAgreement(NamedTuple):
    """The human labels that a judge is compared with.

    Attributes:
        human: the labels.
        judgements: of how many judgements they are, one a person and record.
        blind: how many of these were made while the judge's verdicts were hidden.
    """

    human: HumanLabels
    judgements: int
    blind: int


def for_agreement(
    corrections: Iterable[Correction],
    records: Iterable[AnyOutcome],
    *,
    trial: int | None,
    random_sample: bool,
    blind_only: bool = False,
    name: str,
    labels_name: str = "the labels",
) -> ForAgreement:
    """The human labels that a judge is compared with.

    Args:
        corrections: all events.
        records: the labels.
        trial: only corrections of labels of this trial.
        random_sample: only corrections of records that were drawn at random.
        blind_only: only judgements by people who did not see the judge's verdicts.
        name: what errors call the corrections.
        labels_name: what they call the labels.

    Raises:
        UsageError: no correction counts.
    """
    events = tuple(corrections)
    queue = RANDOM if random_sample else None
    chosen, repeated = _chosen(
        events, records, queue=queue, blind_only=blind_only, trial=trial, name=name
    )
    if not chosen:
        drawn = " of a record drawn at random" if random_sample else ""
        hidden = " made blind" if blind_only else ""
        raise UsageError(
            f"{name}: none of its {len(events)} corrections is a judgement{drawn}{hidden} that "
            f"speaks of one of these labels ({labels_name}): name the label file that was corrected"
        )
    labels = tuple(label for each in chosen for label in each.labels)
    blind = sum(each.correction.blind for each in chosen)
    return ForAgreement(HumanLabels(labels, repeated, ()), len(chosen), blind)
