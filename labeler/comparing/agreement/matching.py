"""Matches what people said to a judge's records."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from labeler.calculators import METRICS, Tally, tally
from labeler.calculators.rater_agreement import is_yes_or_no, verdicts_of
from labeler.comparing.agreement.sides import LabelsById, group_name
from labeler.comparing.human_labels import DOCUMENT_FIELDS, OVERALL, SENTENCE_FIELDS, HumanLabels
from labeler.errors import UsageError
from labeler.labels.record import LabelRecord

_FOLLOWING: Mapping[str, tuple[str, ...]] = {
    "relevant": ("relevance",),
    "utilized": ("utilization",),
    "supported": ("adherence", "adherence_fraction"),
}
"""Metrics of a record that follow where a person judged every one of its sentences."""

_NAMED = 5
"""Ids that are named at most."""

TIE = 0.5
"""Share of yeses that is neither yes nor no."""

Item = tuple[str, str, str | None]
"""Record id, field, and sentence key or ``None``."""


@dataclass(frozen=True)
class Matched:
    """What became of the human labels.

    Attributes:
        used: judgements of records and sentences that have a label.
        unknown: judgements of records that are not there.
        unknown_ids: the first few such ids.
        failed: judgements of records that have no label.
        unknown_sentences: judgements of sentences that the record does not have.
        repeated: judgements that stand in the file twice.
        ties: records and sentences on which as many people say yes as no, also by what follows
            from their sentences: they count one half in means by people and PPI++, and not at all
            elsewhere.
        ignored_columns: columns of the file that name no field.
    """

    used: int
    unknown: int
    unknown_ids: tuple[str, ...]
    failed: int
    unknown_sentences: int
    repeated: int
    ties: int
    ignored_columns: tuple[str, ...]


@dataclass(frozen=True)
class Judged:
    """What is kept of a label: its values, and the rest only where people judged it too."""

    group: str | None
    values: Mapping[str, float | None]
    """By record-level field."""
    verdicts: Mapping[str, Mapping[str, bool | None]]
    """By sentence-level field and key; empty where people did not judge the record."""
    counted: Tally | None
    """For metrics that follow from people's verdicts."""


def record_fields(human: HumanLabels) -> tuple[str, ...]:
    """The record-level fields that the human labels speak about, directly or by sentences."""
    named = dict.fromkeys(label.field for label in human.labels)
    direct = [field for field in named if field not in SENTENCE_FIELDS]
    following = [metric for field in named for metric in _FOLLOWING.get(field, ())]
    return tuple(dict.fromkeys([*direct, *following]))


def judged(record: LabelRecord, fields: Sequence[str], by: str | None, *, in_full: bool) -> Judged:
    """Keep what a comparison needs of a label.

    Args:
        record: the label.
        fields: the record-level fields whose values are needed.
        by: the grouping column, or ``None``.
        in_full: whether people judged the record too.
    """
    counted = tally(record)
    values = {
        field: float(record.label.overall_supported)
        if field == OVERALL
        else METRICS[field].compute(counted).value
        for field in fields
    }
    said = verdicts_of(record) if in_full else {}
    documents, response = record.example.document_keys(), record.example.response_keys()
    verdicts = {
        field: dict(
            zip(documents if field in DOCUMENT_FIELDS else response, said[field], strict=True)
        )
        for field in SENTENCE_FIELDS
        if field in said
    }
    group = group_name(record.example.metadata, by)
    return Judged(group, values, verdicts, counted if in_full else None)


class People:
    """What people said, matched to the judge's records.

    Attributes:
        said: every person's value by item, of items that the judge's side has.
        verdict: by item, the majority's yes or no, or the mean of what is no yes or no; ``None``
            for a tie. Metrics are among them that follow from verdicts on every sentence of a
            record: each person's own, put together like what people say of a record itself.
        matched: what became of the human labels.
        derived: by metric, of how many records it follows from verdicts on their sentences.
    """

    def __init__(
        self, human: HumanLabels, side: LabelsById[Judged], name: str = "human labels"
    ) -> None:
        """Match human labels to the judge's.

        Args:
            human: what people said.
            side: the judge's labels.
            name: what errors call the human labels.

        Raises:
            UsageError: not one of the human labels speaks of what the judge labelled.
        """
        self.said: dict[Item, dict[str, float]] = defaultdict(dict)
        fates: Counter[str] = Counter()
        unknown: dict[str, None] = {}
        astray: dict[tuple[str, str | None], None] = {}
        for label in human.labels:
            item = (label.id, label.field, label.sentence)
            fate = _fate(item, side)
            fates[fate] += 1
            if fate == _UNKNOWN:
                unknown[label.id] = None
            elif fate == _UNKNOWN_SENTENCE:
                astray[label.id, label.sentence] = None
            elif fate == _USED:
                self.said[item][label.annotator] = label.value
        self.verdict: dict[Item, float | None] = {
            item: together(list(by.values()), yes_or_no=is_yes_or_no(item[1]))
            for item, by in self.said.items()
        }
        self.derived: Counter[str] = Counter()
        for item, value in _following(self.said, self.verdict, side):
            if item not in self.verdict:
                self.verdict[item] = value
                self.derived[item[1]] += 1
        self.matched = Matched(
            used=fates[_USED],
            unknown=fates[_UNKNOWN],
            unknown_ids=tuple(unknown)[:_NAMED],
            failed=fates[_FAILED],
            unknown_sentences=fates[_UNKNOWN_SENTENCE],
            repeated=human.repeated,
            ties=sum(1 for verdict in self.verdict.values() if verdict is None),
            ignored_columns=human.ignored,
        )
        if not self.matched.used:
            raise UsageError(f"{name}: {_unused(self.matched, tuple(astray)[:_NAMED], side)}")

    def of_records(self, field: str) -> dict[str, float | None]:
        """What people said of whole records, by id."""
        return {
            name: value
            for (name, spoken_of, sentence), value in self.verdict.items()
            if spoken_of == field and sentence is None
        }

    def fields(self) -> list[str]:
        """The fields that people spoke of, directly or by sentences."""
        return list(dict.fromkeys(field for _, field, _ in self.verdict))


_USED, _UNKNOWN, _FAILED, _UNKNOWN_SENTENCE = "used", "unknown", "failed", "unknown_sentence"


def _unused(
    matched: Matched, astray: Sequence[tuple[str, str | None]], side: LabelsById[Judged]
) -> str:
    """Why no human label could be used, each cause with what to look for."""
    causes = []
    if matched.unknown:
        named = ", ".join(f"{name!r:.80}" for name in matched.unknown_ids)
        causes.append(
            f"{matched.unknown} speak of ids that {side.name} does not have ({named}); it has "
            f"{side.some()}"
        )
    if matched.failed:
        causes.append(f"{matched.failed} speak of records that failed in {side.name}")
    if matched.unknown_sentences:
        named = ", ".join(f"{key!r:.40} of {name!r:.80}" for name, key in astray)
        causes.append(
            f"{matched.unknown_sentences} speak of sentences that the record does not have "
            f"({named}); labeler show prints the keys"
        )
    if not causes:
        return "nothing is judged there: every row is missing or without a value"
    return f"no human judgement can be used: {'; '.join(causes)}"


def _fate(item: Item, side: LabelsById[Judged]) -> str:
    """What becomes of a human label."""
    name, field, sentence = item
    judged = side.labelled.get(name)
    if judged is None:
        return _FAILED if name in side.failed else _UNKNOWN
    if sentence is not None and sentence not in judged.verdicts[field]:
        return _UNKNOWN_SENTENCE
    return _USED


def together(values: Sequence[float], *, yes_or_no: bool) -> float | None:
    """What several people say together: their mean, or what most say; ``None`` for a tie."""
    mean = fmean(values)
    if not yes_or_no:
        return mean
    return None if mean == TIE else float(mean > TIE)


Sentences = dict[str, bool]
"""Yes or no by the key of a sentence."""


def _following(
    said: Mapping[Item, Mapping[str, float]],
    verdict: Mapping[Item, float | None],
    side: LabelsById[Judged],
) -> Iterator[tuple[Item, float | None]]:
    """Metrics of records of which people judged every sentence, by the calculators' formulas.

    Of each person who judged them all by themselves, then what these say together: were the
    sentences put together first, one tie among them would leave the record out, and the records
    that people dispute are not like the others. Where nobody judged them all, but several did
    together, their majorities on the sentences stand for one person.
    """
    for (name, field), (by_person, majority) in _by_record(said, verdict).items():
        judged = side.labelled[name]
        if judged.counted is None:
            continue
        size = len(judged.verdicts[field])
        whole = [own for own in by_person.values() if len(own) == size]
        if not whole and len(majority) == size:
            whole = [majority]
        tallies = [_as_people_said(judged.counted, field, own) for own in whole]
        for metric in _FOLLOWING[field]:
            values = [METRICS[metric].compute(counted).value for counted in tallies]
            defined = [value for value in values if value is not None]
            if defined:
                yield (name, metric, None), together(defined, yes_or_no=is_yes_or_no(metric))


def _by_record(
    said: Mapping[Item, Mapping[str, float]], verdict: Mapping[Item, float | None]
) -> dict[tuple[str, str], tuple[dict[str, Sentences], Sentences]]:
    """Verdicts on sentences by record and field: each person's, and the majority's."""
    found: dict[tuple[str, str], tuple[dict[str, Sentences], Sentences]] = {}
    for (name, field, sentence), by_annotator in said.items():
        if sentence is None:
            continue
        by_person, majority = found.setdefault((name, field), ({}, {}))
        for annotator, value in by_annotator.items():
            by_person.setdefault(annotator, {})[sentence] = bool(value)
        together = verdict[name, field, sentence]
        if together is not None:
            majority[sentence] = bool(together)
    return found


def _as_people_said(counted: Tally, field: str, said: Mapping[str, bool]) -> Tally:
    """The tally of a record with people's verdicts in the place of the judge's."""
    yes = frozenset(key for key, value in said.items() if value)
    if field == "relevant":
        return replace(counted, relevant=yes)
    if field == "utilized":
        return replace(counted, utilized=yes)
    return replace(counted, supported=yes, unsupported=frozenset(said) - yes)
