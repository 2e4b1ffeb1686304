"""Human labels matched to a judge's records, and its means corrected by them."""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from labeler.calculators import METRICS, Tally, tally
from labeler.calculators.agreement import Groups
from labeler.calculators.bias_correction import (
    Corrected,
    corrected_proportion,
    plain_mean,
    ppi_mean,
)
from labeler.calculators.rater_agreement import is_yes_or_no, verdicts_of
from labeler.calculators.registry import plain_name
from labeler.calculators.summary import observations
from labeler.comparing.human_labels import (
    DOCUMENT_FIELDS,
    OVERALL,
    SENTENCE_FIELDS,
    HumanLabel,
    HumanLabels,
)
from labeler.comparing.sides import LISTED, Side
from labeler.errors import UsageError
from labeler.labels.record import LabelRecord
from labeler.sentences.characters import normalized
from labeler.sentences.display import Brief, figure, plural

_DERIVED: Mapping[str, tuple[str, ...]] = {
    "relevant": ("relevance",),
    "utilized": ("utilization",),
    "supported": ("adherence", "adherence_fraction"),
}
"""Metrics of a record that follow if a person judged every one of its sentences."""

TIE = 0.5
"""Share of yeses that is neither yes nor no."""

Place = tuple[str, str]
"""Record id and field."""
BySentence = dict[str | None, float | None]
"""Value by the key of a sentence, or by ``None`` for a whole record; ``None`` is a tie."""


@dataclass(frozen=True)
class Matched:
    """Numbers of human labels by what became of them.

    Attributes:
        used: judgments of records and sentences that have a label.
        unknown: judgments of unknown records.
        unknown_ids: the first few such ids.
        other_forms: the ones among them that a record has in another Unicode form (NFC, NFD).
        failed: judgments of records that have no label.
        unknown_sentences: judgments of sentences that the record does not have.
        sources: judgments of response sentences that only name sources, which no metric counts.
        repeated: judgments that the file holds twice.
        ties: records and sentences on which as many people say yes as no, including values derived
            from sentences: they count one half in human means and PPI++, and not at all elsewhere.
        ignored_columns: columns of the file that name no field.
        same_annotators: names of annotators that differ only in case, spaces or Unicode form; each
            counts as a person.
    """

    used: int
    unknown: int
    unknown_ids: tuple[str, ...]
    other_forms: tuple[str, ...]
    failed: int
    unknown_sentences: int
    sources: int
    repeated: int
    ties: int
    ignored_columns: tuple[str, ...]
    same_annotators: tuple[tuple[str, ...], ...]

    def lines(self) -> Iterator[str]:
        """Yield lines on the judgments that were used, and those that were not."""
        others = (
            (self.unknown, "of unknown records"),
            (self.failed, "of records without a label"),
            (self.unknown_sentences, "of unknown sentences"),
            (self.sources, "of sentences that only name sources"),
            (self.repeated, "repeated"),
        )
        ignored = ", ".join(f"{count} {what}" for count, what in others if count)
        used = f"{plural(self.used, 'human judgment')} used"
        yield f"{used}; ignored: {ignored}" if ignored else used
        if self.unknown:
            yield f"unknown records: {self.unknown_names()}"
        if self.ignored_columns:
            yield f"columns that name no field: {', '.join(map(repr, self.ignored_columns))}"
        for names in self.same_annotators:
            named = " and ".join(f"{name!r:.40}" for name in names)
            yield f"annotators {named} count as {len(names)} people: write each name in one way"

    def unknown_names(self) -> str:
        """List the first unknown ids, and mark those in another Unicode form."""
        marks = dict.fromkeys(self.other_forms, " (a record has this id in another Unicode form)")
        return ", ".join(f"{name!r:.80}{marks.get(name, '')}" for name in self.unknown_ids)


@dataclass(frozen=True)
class Judged:
    """The kept facts of a label: its values, and its verdicts if people judged the record too.

    Attributes:
        values: by record-level field.
        verdicts: by sentence-level field and key; empty if people did not judge the record.
        response: keys of all response sentences; the verdicts lack those that only name sources.
        counted: the tally, for metrics derived from human verdicts.
        stated: probabilities by sentence-level field and key, if they are compared.
    """

    values: Mapping[str, float | None]
    verdicts: Mapping[str, Mapping[str, bool | None]]
    response: Sequence[str]
    counted: Tally | None
    stated: Mapping[str, Mapping[str, float]] = dataclasses.field(default_factory=dict)

    @classmethod
    def of(cls, record: LabelRecord, fields: Sequence[str], *, in_full: bool) -> Judged:
        """Keep the facts of a label.

        Args:
            record: the label.
            fields: the record-level fields whose values are needed.
            in_full: whether people judged the record too.
        """
        counted = tally(record)
        values = {
            field: float(record.label.overall_supported)
            if field == OVERALL
            else METRICS[field].ratio(counted, record.id).value
            for field in fields
        }
        if not in_full:
            return cls(values, {}, (), None)
        given, documents = verdicts_of(record), tuple(record.example.document_keys())
        keys = dict.fromkeys(SENTENCE_FIELDS, counted.response)
        keys |= dict.fromkeys(DOCUMENT_FIELDS, documents)
        verdicts = {field: dict(zip(own, given[field], strict=True)) for field, own in keys.items()}
        return cls(values, verdicts, record.example.response_keys(), counted)


def record_fields(human: HumanLabels) -> tuple[str, ...]:
    """Return the record-level fields of human labels, given directly or derived from sentences."""
    named = dict.fromkeys(label.field for label in human.labels)
    direct = [field for field in named if field not in SENTENCE_FIELDS]
    derived = [metric for field in named for metric in _DERIVED.get(field, ())]
    return tuple(dict.fromkeys([*direct, *derived]))


class People:
    """Human labels, matched to the judge's records.

    Attributes:
        values: every person's value by place and sentence, for records of the judge's side.
        verdicts: by place and sentence, the majority's yes or no, or the mean of values other than
            yes or no. Includes metrics derived from verdicts on every sentence of a record: each
            person's own value, combined like direct judgments of a record.
        matched: numbers of human labels that were used or left out, and why.
        derived: by metric, the number of records whose value is derived from sentences.
    """

    def __init__(self, human: HumanLabels, side: Side[Judged], name: str = "human labels") -> None:
        """Match human labels to the judge's.

        Args:
            human: the human labels.
            side: the judge's labels.
            name: name of the human labels in errors.

        Raises:
            UsageError: no human label is about a label of the judge.
        """
        self.values: dict[Place, dict[str | None, dict[str, float]]] = {}
        left_out: dict[str, list[HumanLabel]] = {fate: [] for fate in _FATES}
        for label in human.labels:
            if fate := _fate(label, side):
                left_out[fate].append(label)
            else:
                own = self.values.setdefault((label.id, label.field), {})
                own.setdefault(label.sentence, {})[label.annotator] = label.value
        self.verdicts: dict[Place, BySentence] = {
            place: {
                sentence: combine(list(by.values()), yes_or_no=is_yes_or_no(place[1]))
                for sentence, by in own.items()
            }
            for place, own in self.values.items()
        }
        self.derived: Counter[str] = Counter()
        for place, value in list(_derived(self, side)):
            if place not in self.verdicts:
                self.verdicts[place] = {None: value}
                self.derived[place[1]] += 1
        unknown, failed, strange, sources = (left_out[fate] for fate in _FATES)
        unknown_ids = tuple(dict.fromkeys(label.id for label in unknown))[:LISTED]
        self.matched = Matched(
            used=len(human.labels) - sum(map(len, left_out.values())),
            unknown=len(unknown),
            unknown_ids=unknown_ids,
            other_forms=tuple(name for name in unknown_ids if _has_other_form(name, side)),
            failed=len(failed),
            unknown_sentences=len(strange),
            sources=len(sources),
            repeated=human.repeated,
            ties=sum(value is None for own in self.verdicts.values() for value in own.values()),
            ignored_columns=human.ignored,
            same_annotators=_same_annotators({label.annotator for label in human.labels}),
        )
        if not self.matched.used:
            raise UsageError(f"{name}: {_unused(self.matched, strange, side)}")

    def of_records(self, field: str) -> dict[str, float | None]:
        """Return the verdicts on whole records, by id."""
        return {
            name: own[None]
            for (name, judged), own in self.verdicts.items()
            if judged == field and None in own
        }

    def fields(self) -> list[str]:
        """Return the fields that people judged, directly or by sentences."""
        return list(dict.fromkeys(field for _, field in self.verdicts))


def _same_annotators(annotators: Iterable[str]) -> tuple[tuple[str, ...], ...]:
    """Return the names that differ only in case, spaces or Unicode form."""
    found = defaultdict[str, list[str]](list)
    for name in sorted(annotators):
        found[" ".join(normalized("NFKC", name).casefold().split())].append(name)
    return tuple(tuple(names) for names in found.values() if len(names) > 1)


_FATES = ("unknown", "failed", "unknown_sentence", "source")
"""Why a human label is left out."""


def _fate(label: HumanLabel, side: Side[Judged]) -> str | None:
    """Return why a human label is left out; ``None`` if it is used."""
    if label.id not in side.labels:
        return "failed" if label.id in side.failed else "unknown"
    judged = side.value(label.id)
    if label.sentence is None or label.sentence in judged.verdicts[label.field]:
        return None
    return "source" if label.sentence in judged.response else "unknown_sentence"


def _has_other_form(name: str, side: Side[Judged]) -> bool:
    """Return True if a label has an unknown id in the other of Unicode's two forms."""
    return any(normalized(form, name) in side.labels for form in ("NFC", "NFD"))


def _unused(matched: Matched, strange: Sequence[HumanLabel], side: Side[Judged]) -> str:
    """Return why no human label could be used, each cause with a hint."""
    causes = []
    if matched.unknown:
        causes.append(
            f"{plural(matched.unknown, 'judgment')} of ids that {side.name} does not have "
            f"({matched.unknown_names()}); it has {side.summary()}"
        )
    if matched.failed:
        causes.append(f"{plural(matched.failed, 'judgment')} of records that failed in {side.name}")
    if matched.unknown_sentences:
        keys = list(dict.fromkeys((label.id, label.sentence) for label in strange))[:LISTED]
        named = ", ".join(f"{key!r:.40} of {name!r:.80}" for name, key in keys)
        causes.append(
            f"{plural(matched.unknown_sentences, 'judgment')} of sentences that the record does "
            f"not have ({named}); labeler show prints the keys"
        )
    if matched.sources:
        causes.append(f"{plural(matched.sources, 'judgment')} of sentences that only name sources")
    if not causes:
        return "nothing is judged there: every row is missing or without a value"
    return f"no human judgment can be used: {'; '.join(causes)}"


def combine(values: Sequence[float], *, yes_or_no: bool) -> float | None:
    """Combine several people's values: their mean, or the majority; ``None`` for a tie."""
    mean = fmean(values)
    if not yes_or_no:
        return mean
    return None if mean == TIE else float(mean > TIE)


def _derived(people: People, side: Side[Judged]) -> Iterator[tuple[Place, float | None]]:
    """Yield metrics of records whose every sentence people judged, by the calculators' formulas.

    The metric is computed for each person who judged all sentences, and the values are combined.
    If the sentences were combined first, one tie among them would leave the record out, and the
    records that people dispute are not like the others. Where nobody judged all sentences, but
    several people did together, their majorities on the sentences stand for one person.
    """
    for (name, field), sentences in people.values.items():
        judged = side.value(name)
        if judged.counted is None or field not in _DERIVED:
            continue
        by_person: dict[str, BySentence] = defaultdict(dict)
        for sentence, by in sentences.items():
            for annotator, value in by.items():
                by_person[annotator][sentence] = value
        combined = people.verdicts[name, field]
        majority: BySentence = {key: one for key, one in combined.items() if one is not None}
        size = len(judged.verdicts[field])
        complete = [own for own in by_person.values() if len(own) == size]
        if not complete and len(majority) == size:
            complete = [majority]
        tallies = [_with_verdicts(judged.counted, field, own) for own in complete]
        for metric in _DERIVED[field]:
            ratios = [METRICS[metric].ratio(counted, name).value for counted in tallies]
            defined = [value for value in ratios if value is not None]
            if defined:
                yield (name, metric), combine(defined, yes_or_no=is_yes_or_no(metric))


def _with_verdicts(counted: Tally, field: str, verdicts: BySentence) -> Tally:
    """Return the tally of a record with human verdicts in place of the judge's."""
    every = frozenset(key for key in verdicts if key)
    yes = frozenset(key for key in every if verdicts[key])
    if field == "relevant":
        return replace(counted, relevant=yes)
    if field == "utilized":
        return replace(counted, utilized=yes)
    return replace(counted, supported=yes, unsupported=every - yes)


_NO_WIDTH = "there is no interval: by these values it would have no width"


@dataclass(frozen=True, repr=False)
class Estimates(Brief):
    """Several estimates of one metric's mean.

    Attributes:
        metric: the metric's id, or ``overall_supported``.
        group: value of the grouping column; ``None`` for all records together.
        questions: number of questions that intervals are grouped by; ``None`` where all records
            differ, or ask the same one.
        people: the mean of the human-judged records, by people.
        plain: the judge's mean over all records.
        ppi: the PPI++ mean.
        corrected: the error-corrected proportion; ``None`` where the metric is not yes or no.
    """

    metric: str
    group: str | None
    questions: int | None
    people: Corrected
    plain: Corrected
    ppi: Corrected
    corrected: Corrected | None

    @property
    def sentence(self) -> str:
        """The judge's mean next to the mean that people's verdicts make of it, in plain words."""
        metric = METRICS.get("adherence" if self.metric == OVERALL else self.metric)
        name = plain_name(metric) if metric else self.metric
        judge, people = figure(self.plain.value), figure(self.ppi.value)
        drawn = self.ppi.interval
        ends = f" ({figure(drawn.low)} to {figure(drawn.high)})" if drawn else ""
        return f"{name} by the judge {judge}, corrected by people {people}{ends}"

    @property
    def all(self) -> list[Corrected]:
        """The estimates, in the order in which they are shown."""
        return [one for one in (self.people, self.plain, self.ppi, self.corrected) if one]

    def as_json(self) -> dict[str, Any]:
        """Return the published form."""
        return {
            "metric": self.metric,
            "group": self.group,
            "questions": self.questions,
            "people": self.people.as_json(),
            "plain": self.plain.as_json(),
            "ppi": self.ppi.as_json(),
            "corrected": self.corrected and self.corrected.as_json(),
        }


def estimate_metrics(
    people: People, side: Side[Judged], metrics: Sequence[str], *, random_sample: bool
) -> Iterator[Estimates]:
    """Yield the means of metrics, corrected by what people said of some records."""
    by_group: dict[str | None, list[str]] = defaultdict(list)
    for name, kept in side.labels.items():
        for group in {None, kept.group}:
            by_group[group].append(name)
    verdicts = {metric: people.of_records(metric) for metric in metrics}
    for group in side.groups:
        for metric in metrics:
            values = {name: side.value(name).values[metric] for name in by_group[group]}
            if group is not None and not any(name in verdicts[metric] for name in values):
                continue  # people judged no record of the group: there is nothing to compare
            yield estimate(
                metric,
                group,
                values,
                verdicts[metric],
                questions={name: side.labels[name].question for name in values},
                random_sample=random_sample,
            )


def estimate(
    metric: str,
    group: str | None,
    judged: Mapping[str, float | None],
    verdicts: Mapping[str, float | None],
    *,
    questions: Mapping[str, int | None] | None = None,
    random_sample: bool,
) -> Estimates:
    """Estimate the mean of one metric.

    Args:
        metric: its id.
        group: value of the grouping column, or ``None``.
        judged: the judge's value by record; ``None`` where the metric is undefined.
        verdicts: people's value by record; ``None`` where they are tied.
        questions: question of each record; equal ones are one observation.
        random_sample: whether the human-judged records are known to have been drawn at random.
    """
    # Sorted, so that rounding does not depend on the order of records.
    values = {name: value for name, value in sorted(judged.items()) if value is not None}
    human = {name: verdicts[name] for name in values if name in verdicts}
    decided = {name: value for name, value in human.items() if value is not None}
    alone = [name for name in values if name not in human]
    rest, asked = [values[name] for name in alone], questions or {}
    # A value outside 0 to 1 proves that the mean is not a share.
    declared = metric == OVERALL or METRICS[metric].bounded
    is_share = declared and all(0 <= value <= 1 for value in values.values())
    by_people = [TIE if value is None else value for value in human.values()]
    plain = plain_mean(list(values.values()), groups=_groups(asked, values))
    people = plain_mean(by_people, groups=_groups(asked, human))
    ppi = ppi_mean(
        by_people,
        [values[name] for name in human],
        rest,
        is_share=is_share,
        groups=_groups(asked, [*human, *alone]),
        random_sample=random_sample,
    )
    if ppi.interval and ppi.interval.low == ppi.interval.high:
        ppi = replace(ppi, interval=None, warnings=(*ppi.warnings, _NO_WIDTH))
    corrected = None
    if is_yes_or_no(metric):
        corrected = corrected_proportion(
            list(decided.values()),
            [values[name] for name in decided],
            rest,
            groups=_groups(asked, [*decided, *alone]),
            random_sample=random_sample,
        )
    return Estimates(
        metric=metric,
        group=group,
        plain=replace(plain, labeled=len(human), unlabeled=len(alone)),
        ppi=ppi,
        corrected=corrected,
        people=replace(people, method="people", labeled=len(human), unlabeled=0),
        questions=observations([asked.get(name) for name in values])[0],
    )


def _groups(questions: Mapping[str, int | None], names: Iterable[str]) -> Groups:
    """Return the question of each record; ``None`` if all differ, or all are one."""
    return observations([questions.get(name) for name in names])[1]
